"""What of an answer can be finished by itself: a top-level block, or one item of a list."""

from __future__ import annotations

import re

from markdown_it.token import Token
from msgspec import Struct

_NESTING_LIMIT = 16
_MOST_COLUMNS = 32
_CONTAINERS = re.compile(r"^(?:[ \t]*(?:>|[-*+](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$))){17,}")
_DEEP_ITEM = re.compile(r"^[ \t]{33,}(?:[-*+]|\d{1,9}[.)])[ \t]")
_ONE_CONTAINER = re.compile(r"[ \t]*(?:>|[-*+]|\d{1,9}[.)])")


class Unit(Struct):
    """A top-level block, or one item of a top-level list: what can be finished by itself."""

    tokens: list[Token]
    first_line: int
    number: int | None = None  # of an item of an ordered list
    position: int = 0  # of an item within its list
    fence_line: int | None = None  # where code begins inside a list item
    fence_items: list[Token] = []  # the list items around that code, the outermost first
    before_fence: list[Token] = []


def units_of(tokens: list[Token]) -> list[Unit]:
    units: list[Unit] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        end = i
        if token.nesting == 1:
            while not (tokens[end].level == token.level and tokens[end].nesting == -1):
                end += 1
        if token.type in ("ordered_list_open", "bullet_list_open"):
            units += _items(tokens[i : end + 1])
        else:
            units.append(Unit(tokens[i : end + 1], token.map[0] if token.map else 0))
        i = end + 1
    return units


def _items(tokens: list[Token]) -> list[Unit]:
    opening, closing = tokens[0], tokens[-1]
    ordered = opening.type == "ordered_list_open"
    start = int(opening.attrs.get("start", 1))
    units: list[Unit] = []
    i = 1
    while i < len(tokens) - 1:
        end = i
        while not (tokens[end].level == opening.level + 1 and tokens[end].nesting == -1):
            end += 1
        item = tokens[i : end + 1]
        unit = Unit([opening, *item, closing], item[0].map[0] if item[0].map else 0)
        unit.position = len(units)
        if ordered:
            unit.number = start + unit.position
        _find_fence(unit)
        units.append(unit)
        i = end + 1
    return units


def _find_fence(unit: Unit) -> None:
    items: list[Token] = []
    for at, token in enumerate(unit.tokens):
        if token.type == "list_item_open":
            items.append(token)
        elif token.type == "list_item_close":
            items.pop()
        elif token.type == "blockquote_open":
            return
        elif token.type == "fence" and token.map:
            unit.fence_line = token.map[0]
            unit.fence_items = items
            unit.before_fence = unit.tokens[:at]
            return


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def tame(line: str) -> str:
    """Quotes and lists nested deeper than a person can read are kept as text, not as structure."""
    if _DEEP_ITEM.match(line):
        return " " * _MOST_COLUMNS + line.lstrip()
    if not _CONTAINERS.match(line):
        return line
    at = 0
    for _ in range(_NESTING_LIMIT):
        match = _ONE_CONTAINER.match(line, at)
        assert match is not None
        at = match.end()
    return f"{line[:at]} \\{line[at:].lstrip()}"
