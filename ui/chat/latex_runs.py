"""Runs of a formula's text, and how they are put together so that they read as people write them."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence

from msgspec import Struct

from ui.chat.latex_names import OPERATORS, SUMS, WORDS


class Run(Struct, frozen=True):
    """Text in one style. ``at`` is where its first character comes from in the formula's source, the
    others follow it there; -1 for blanks and brackets of ours. ``script``: 1 raised, -1 lowered."""

    text: str
    at: int = -1
    italic: bool = False
    bold: bool = False
    script: int = 0


def put_between(parts: list[list[Run]], text: str) -> list[Run]:
    runs: list[Run] = []
    for index, part in enumerate(parts):
        if index and (runs or text != " "):
            runs.append(Run(text))
        runs += part
    return runs


def wants_room(runs: Sequence[Run]) -> bool:
    """After a sum or a limit with what stands over and under it."""
    if not runs or not runs[-1].script:
        return bool(runs) and runs[-1].text in SUMS
    base = next((run.text for run in reversed(runs) if not run.script), "")
    return base in SUMS or base in WORDS


def ends_operand(runs: Sequence[Run]) -> bool:
    """Whether what follows a sign stands between two values: then it is no sign of one alone."""
    text = runs[-1].text if runs else ""
    return bool(text) and not text[-1].isspace() and text[-1] not in "([{⟨" and text[-1] not in OPERATORS


def length(runs: Sequence[Run]) -> int:
    """How many values stand there; scripts belong to what they are at, and a number is one."""
    text = "".join(run.text for run in runs if not run.script or run.script == runs[0].script)
    if text.replace(".", "").isdigit() or ((text[:1], text[-1:]) == ("(", ")") and text.count("(") == 1):
        return 1
    return len([c for c in text if not unicodedata.combining(c)])


def has_operator(runs: Sequence[Run]) -> bool:
    """Outside of brackets, and blanks count: ``sin x`` over something needs brackets too."""
    depth = 0
    for character in "".join(run.text for run in runs if run.script == runs[0].script):
        depth += (character in "([{") - (character in ")]}")
        if not depth and (character in OPERATORS or character == " "):
            return True
    return False


def bracketed(runs: Sequence[Run], script: int) -> list[Run]:
    return [Run("(", script=script), *runs, Run(")", script=script)]


def lettered(run: Run, alphabet: str) -> Run:
    if alphabet == "":
        return Run(run.text, run.at, bold=run.bold, script=run.script)
    if alphabet == "BOLD":
        return Run(run.text, run.at, italic=False, bold=True, script=run.script)
    return Run("".join(letter(c, alphabet) for c in run.text), run.at, script=run.script)


@functools.cache
def letter(character: str, alphabet: str) -> str:
    if not (character.isascii() and character.isalpha()):
        return character
    name = f"{alphabet} {'CAPITAL' if character.isupper() else 'SMALL'} {character.upper()}"
    for prefix in ("", "MATHEMATICAL ", "BLACK-LETTER "):
        try:
            return unicodedata.lookup(prefix + (name if prefix[:1] != "B" else name.removeprefix("FRAKTUR ")))
        except KeyError:
            continue
    return character


def accented(run: Run, accent: str) -> Run:
    text = "".join(c + accent if not c.isspace() else c for c in run.text)
    return Run(text, run.at, italic=run.italic, bold=run.bold, script=run.script)


def trimmed(runs: list[Run]) -> list[Run]:
    """Without blanks of ours at the ends, and never two of them in a row."""
    result: list[Run] = []
    for run in runs:
        if run.text == " " and run.at < 0 and (not result or result[-1].text.endswith((" ", "\u2028"))):
            continue
        result.append(run)
    if result and result[-1].text == " " and result[-1].at < 0:
        result.pop()
    return result


def joined(runs: Sequence[Run]) -> list[Run]:
    result: list[Run] = []
    for run in runs:
        if result:
            last = result[-1]
            follows = run.at == last.at + len(last.text) if last.at >= 0 else run.at < 0
            if follows and (last.italic, last.bold, last.script) == (run.italic, run.bold, run.script):
                result[-1] = Run(last.text + run.text, last.at, last.italic, last.bold, last.script)
                continue
        if run.text:
            result.append(run)
    return result
