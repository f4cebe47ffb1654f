"""What an answer must look like, as the GBNF text that the model is held to."""

from __future__ import annotations

from collections.abc import Sequence

from app.protocol import Gbnf, Grammar
from native.gbnf import check_gbnf
from native.json_schema import schema_to_gbnf

ROOT = "whole-answer"
_SPACE = r"[ \t\r\n]{0,16}"


def answer_gbnf(
    grammar: Grammar, closing: str | None, tags: Sequence[tuple[str, str]]
) -> tuple[str, tuple[str, ...]]:
    """GBNF whose rule ROOT is the whole answer, and lines about what of ``grammar`` is not enforced.

    Thoughts may come before what ``grammar`` asks for: where the prompt has opened some, up to the tag
    ``closing``; else where the answer opens them with one of ``tags``. Raises GrammarError, in one
    line, for a grammar that cannot be used.
    """
    unenforced: tuple[str, ...] = ()
    if isinstance(grammar, Gbnf):
        text = grammar.text
        check_gbnf(text)
    else:
        text, unenforced = schema_to_gbnf(grammar.schema)
    notices = (f"Not all of the JSON schema is enforced: {', '.join(unenforced)}.",) if unenforced else ()
    rules = []
    if closing is not None:
        rules += [f"{ROOT} ::= thoughts--0-0 {_SPACE} root", *_up_to(closing, "thoughts--0")]
    else:
        ways = ["root"]
        for i, (opening, end) in enumerate(tags):
            ways.append(f'{_SPACE} "{_escaped(opening)}" thoughts--{i}-0 {_SPACE} root')
            rules += _up_to(end, f"thoughts--{i}")
        rules.append(f"{ROOT} ::= {' | '.join(ways)}")
    return "\n".join([*rules, text]), notices


def _up_to(tag: str, name: str) -> list[str]:
    """Rules for any text that ends with the first ``tag`` in it, from ``name-0``.

    One rule for each number of the tag's characters that the text may end with, as in the string
    search of Knuth, Morris and Pratt (1977).
    """
    letters = sorted(set(tag))
    rules = []
    for read in range(len(tag)):
        ways = [f"[^{_escaped(''.join(letters))}] {name}-0"]
        for letter in letters:
            text = tag[:read] + letter
            now = next(n for n in range(len(text), -1, -1) if text.endswith(tag[:n]))
            ways.append(f'"{_escaped(letter)}"' + (f" {name}-{now}" if now < len(tag) else ""))
        rules.append(f"{name}-{read} ::= {' | '.join(ways)}")
    return rules


def _escaped(text: str) -> str:
    return "".join(f"\\x{ord(letter):02X}" for letter in text)
