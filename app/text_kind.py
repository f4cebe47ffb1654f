"""What kind of text an answer is, so that speed can be told apart by it: pure rules over text and tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

TextKind = Literal["prose", "code", "data", "repeated"]
"""``data``: JSON, lists, tables. ``repeated``: mostly what the prompt said, as in an edit or a copy."""

KINDS: tuple[TextKind, ...] = get_args(TextKind)
KIND_NAMES: dict[TextKind, str] = {
    "prose": "prose",
    "code": "code",
    "data": "JSON, lists",
    "repeated": "repeated source",
}

# An answer on the same subject shares many short runs with its prompt, an edit or a copy long ones.
RUN = 8
_REPEATED = 0.5

_FENCE = re.compile(r"^\s*(```|~~~)\s*([\w+#.-]*)")
_DATA_LABELS = frozenset(("json", "jsonl", "json5", "yaml", "yml", "toml", "csv", "tsv", "ini"))
_LIST_ITEM = re.compile(r"^\s*([-*+•]|\d{1,4}[.)])\s+\S")
_SHORT_ITEM = 80  # characters; a longer item is a paragraph with a bullet
_LOOKED_AT = 400  # characters of a line: no pattern may meet a line of a megabyte
_DATA_LINE = re.compile(
    r"""^\s*( \|.*\|                                 # a table's row
            | ([-*]\s+)?"[^"]*"\s*:(\s.*)?           # a key of JSON
            | ("[^"]*"|-?\d+(\.\d+)?|true|false|null)\s*,?   # a value of a list
            | ([^;,\t|]{0,24}[;,\t|]){3,}[^;,\t|]{0,24}   # a row of short fields
            )\s*$""",
    re.VERBOSE,
)
_YAML_LINE = re.compile(r"""^\s*(-\s+)?[\w."-]+:(\s+("[^"]*"|'[^']*'|\S+))?\s*$""")
_CODE_LINE = re.compile(
    r"""^\s*( .*[;{]\s*(//.*|/\*.*)?$              # the end of a statement, the start of a block
            | (//|/\*|\*/|\#include\b|\#!|@\w+|</?[a-zA-Z][^>]*>)   # comments, decorators, tags
            | (async|def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b.*:$
            | (import|from)\s+[\w.]+(\s+(import|as)\b.*)?$
            | (public|private|protected|static|const|let|var|function|func|fn|struct|impl|package)\s.*[^.!?]$
            | (SELECT|INSERT|CREATE|UPDATE|DELETE|ALTER|FROM|WHERE|JOIN|GROUP|ORDER|VALUES|PRIMARY|FOREIGN)\b
            | [\w.\[\]"'*&]+(\s*,\s*[\w.]+)*\s*(:\s*[\w\[\], .]+)?\s*([-+*/|&]|:)?=\s*\S   # an assignment
            | [\w.:]+\(.*\)[;,:]?$                  # a call
            )""",
    re.VERBOSE,
)
_INDENT = ("  ", "\t")
_PUNCTUATION = re.compile(r"^[\s\[\]{}()<>,;:\"'`|=-]*$")


def repeated_share(answer: Sequence[int], prompt: Sequence[int], n: int = RUN) -> float:
    """The share (0 to 1) of the answer's tokens in runs of at least ``n`` that the prompt has too.

    Linear in both lengths; memory for the answer's runs only.
    """
    if len(answer) < n or len(prompt) < n:
        return 0.0
    wanted = set(_runs(answer, n))
    known = wanted.intersection(_runs(prompt, n))
    covered = end = 0
    for start, run in enumerate(_runs(answer, n)):
        if run in known:
            covered += start + n - max(start, end)
            end = start + n
    return covered / len(answer)


def kind_of(text: str, repeated: float) -> TextKind:
    """The kind of an answer, ``repeated`` of which (0 to 1, ``repeated_share``) is the prompt's."""
    if repeated >= _REPEATED:
        return "repeated"
    weights: Counter[TextKind] = Counter()
    last: TextKind = "prose"
    for line, label in _lines(text):
        kind = _line_kind(line[:_LOOKED_AT], label) or last
        # What is indented goes on with what it stands under: a docstring, an item's second line.
        if kind == "prose" and line.startswith(_INDENT):
            kind = last
        weights[kind] += len(line)
        last = kind
    return max(weights, key=lambda kind: weights[kind], default="prose")


def _runs(tokens: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    return zip(*(tokens[i:] for i in range(n)), strict=False)


def _lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Each line with the label of its code fence: empty without one, None outside of fences."""
    label: str | None = None
    for line in text.splitlines():
        if fence := _FENCE.match(line):
            label = fence[2].lower() if label is None else None
        elif line.strip():
            yield line.rstrip(), label


def _line_kind(line: str, label: str | None) -> TextKind | None:
    """None for a line that goes with the one before, such as a closing bracket."""
    if label:
        return "data" if label in _DATA_LABELS else "code"
    if _PUNCTUATION.match(line):
        return None
    if _DATA_LINE.match(line):
        return "data"
    if _LIST_ITEM.match(line):
        return "data" if len(line.strip()) <= _SHORT_ITEM else "prose"
    if _CODE_LINE.match(line):
        return "code"
    if label is not None:
        return "data" if _YAML_LINE.match(line) else "code"
    return "prose"
