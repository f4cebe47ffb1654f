"""What a GBNF text must not hold: llama.cpp takes some of it by ending the process.

Its grammar code recurses once per nested group and per leftmost rule, unrolls ``x{5,2}`` into 2^64
rules, and follows a left recursion that hides behind a rule that may be empty until memory ends; the
exceptions it throws cannot cross into Python. All of that can be told from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from native.errors import GrammarError

MAX_CHARS = 256 * 1024
MAX_NESTING = 500
MAX_DEPTH = 1000  # rules that begin with rules
MAX_RULES = 10_000  # groups included
MAX_REPETITIONS = 2000  # llama.cpp's own limit
# llama.cpp tries all ways to go on at once, and compares each with each.
MAX_WAYS = 10_000
# Where parts that may be left out follow each other, each way leads to all those behind it.
MAX_OPTIONAL = 128

_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\n]|\#[^\r\n]*)+)
    |(?P<rule>(?P<rule_name>[A-Za-z0-9-]+)[ \t]*::=)
    |(?P<name>[A-Za-z0-9-]+)
    |(?P<empty>""|\[\^?\])
    |(?P<literal>"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|!?<[^>]*>|\.)
    |(?P<open>\()|(?P<close>\))|(?P<alternative>\|)
    |(?P<repeat>[*+?]|\{\s*(?P<least>\d+)\s*(?P<range>,\s*(?P<most>\d*)\s*)?\})""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Item(NamedTuple):
    """One part of a sequence: a rule by its name, or None for a character, up to ``copies`` times."""

    rule: str | None
    optional: bool = False
    copies: int = 1


_Rules = dict[str, list[list[_Item]]]  # each rule's alternatives


def check_gbnf(text: str) -> None:
    """Raises GrammarError, in one line, for a text that llama.cpp cannot take, or not safely.

    Some texts pass that llama.cpp then refuses, harmlessly.
    """
    if len(text) > MAX_CHARS:
        raise GrammarError(f"it is {len(text):,} characters long, where {MAX_CHARS:,} are allowed")
    if "\0" in text:
        raise GrammarError("it holds a NUL character")
    rules = _parse(text)
    if len(rules) > MAX_RULES:
        raise GrammarError(f"it has {len(rules):,} rules and brackets, where {MAX_RULES:,} are allowed")
    if "root" not in rules:
        raise GrammarError("it has no rule called root")
    for alternatives in rules.values():
        for item in (item for sequence in alternatives for item in sequence):
            if item.rule is not None and item.rule not in rules:
                raise GrammarError(f"the rule {item.rule} is used but not defined")
    _check_beginnings(rules, _may_be_empty(rules))


def _parse(text: str) -> _Rules:
    """The rules by name; a group is a rule of its own, as it is for llama.cpp."""
    rules: _Rules = {}
    opened: list[str] = []  # the rule that is being read, and the open groups in it
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        kind = match.lastgroup if match else None
        if match is None or not (opened or kind in ("space", "rule")):
            line = text.count("\n", 0, at) + 1
            raise GrammarError(f"line {line} cannot be read at {text[at : at + 20].splitlines()[0]!r}")
        at = match.end()
        if kind == "space":
            continue
        if kind == "rule":
            if len(opened) > 1:
                raise GrammarError(f"a bracket in the rule {opened[0]} is not closed")
            opened = [match["rule_name"]]
            rules[opened[0]] = [[]]
            continue
        alternatives = rules[opened[-1]]
        sequence = alternatives[-1]
        if kind == "alternative":
            alternatives.append([])
        elif kind == "open":
            if len(opened) > MAX_NESTING:
                raise GrammarError(f"the rule {opened[0]} is nested deeper than {MAX_NESTING} brackets")
            group = f"{opened[0]}({len(rules)})"
            sequence.append(_Item(group))
            rules[group] = [[]]
            opened.append(group)
        elif kind == "close":
            if len(opened) == 1:
                raise GrammarError(f"a bracket in the rule {opened[0]} was never opened")
            opened.pop()
        elif kind == "repeat":
            if not sequence:
                raise GrammarError(f"there is nothing before a {match[0]} in the rule {opened[0]}")
            sequence[-1] = _repeated(sequence[-1], match)
        else:
            sequence.append(_Item(match[0] if kind == "name" else None, optional=kind == "empty"))
    if len(opened) > 1:
        raise GrammarError(f"a bracket in the rule {opened[0]} is not closed")
    return rules


def _repeated(item: _Item, match: re.Match[str]) -> _Item:
    if match[0] in _SIGNS:
        least, most = _SIGNS[match[0]]
    else:
        least = int(match["least"])
        most = (int(match["most"]) if match["most"] else None) if match["range"] else least
    if max(least, most or 0) > MAX_REPETITIONS:
        raise GrammarError(f"{match[0]} repeats more than {MAX_REPETITIONS:,} times")
    if most is not None and most < least:
        raise GrammarError(f"{match[0]} asks for at least {least} and at most {most}")
    copies = max(1, least + 1 if most is None else most)
    return _Item(item.rule, item.optional or least == 0, item.copies * copies)


def _may_be_empty(rules: _Rules) -> set[str]:
    """Rules that the empty text satisfies."""
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, alternatives in rules.items():
        for rule in (item.rule for sequence in alternatives for item in sequence if item.rule):
            users[rule].add(name)
    empty: set[str] = set()
    waiting = list(rules)
    while waiting:
        name = waiting.pop()
        if name not in empty and any(
            all(item.optional or item.rule in empty for item in sequence) for sequence in rules[name]
        ):
            empty.add(name)
            waiting += users[name]
    return empty


def _check_beginnings(rules: _Rules, empty: set[str]) -> None:
    """What a rule begins with must not be the rule itself, nor too much, nor too deep down."""

    def optional(item: _Item) -> bool:
        return item.optional or item.rule in empty

    def beginnings(sequence: list[_Item]) -> Iterator[_Item]:
        for item in sequence:
            yield item
            if not optional(item):
                return

    graph = {
        name: {item.rule for sequence in alternatives for item in beginnings(sequence) if item.rule}
        for name, alternatives in rules.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise GrammarError(f"the rule {_owner(error.args[1][0])} begins with itself") from error
    ways = dict.fromkeys(rules, 0)
    depth = dict.fromkeys(rules, 1)
    for name in order:
        for sequence in rules[name]:
            behind = 0  # ways to go on after an item, where it is left out
            for item in reversed(sequence):
                # Of copies that may be empty, each may be the first that is not.
                copies = item.copies if item.rule in empty else 1
                here = copies * (ways[item.rule] if item.rule else 1)
                behind = here + (behind if optional(item) else 0)
                if behind > MAX_OPTIONAL and (copies > 1 or behind > here):
                    raise GrammarError(f"too many parts in a row are optional in the rule {_owner(name)}")
            ways[name] += max(1, behind)
            for item in beginnings(sequence):
                if item.rule:
                    steps = item.copies if item.rule in empty else 1
                    depth[name] = max(depth[name], steps + depth[item.rule])
        if ways[name] > MAX_WAYS:
            raise GrammarError(f"the rule {_owner(name)} can begin in more than {MAX_WAYS:,} ways")
        if depth[name] > MAX_DEPTH:
            raise GrammarError(f"the rule {_owner(name)} begins with more than {MAX_DEPTH:,} others")


def _owner(name: str) -> str:
    """The rule that a group belongs to, or the rule itself."""
    return name.partition("(")[0]
