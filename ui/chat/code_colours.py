"""Colours for code by Pygments, taken in small steps so that long code never holds up the window."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Literal

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType, is_token_subtype
from pygments.util import ClassNotFound

Role = Literal["keyword", "string", "comment", "number", "name", "type"]
Run = tuple[int, int, Role]  # start in the line, length, role

# While code is being written only this many lines before the end are read again.
_LIVE_LINES = 120
_OPEN_ENDED = (Token.Literal.String, Token.Comment)

_ROLES: tuple[tuple[_TokenType, Role], ...] = (
    (Token.Comment, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Keyword.Type, "type"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "type"),
    (Token.Name.Decorator, "type"),
    (Token.Name.Builtin, "name"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "name"),
)

# Languages that can be used at once; the first use of any other takes long.
_loaded = {""}


def role_of(token: _TokenType) -> Role | None:
    return next((role for kind, role in _ROLES if is_token_subtype(token, kind)), None)


def lexer_for(language: str) -> Lexer | None:
    """None for a language that is not known: the code then stays in one colour."""
    if not language or language in ("text", "plain", "plaintext", "txt"):
        return None
    return _read_lexer(language)


@functools.lru_cache(maxsize=64)
def _read_lexer(language: str) -> Lexer | None:
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    next(iter(lexer.get_tokens_unprocessed(" ")), None)  # Pygments compiles its rules at first use
    return lexer


class CodeColours:
    """Runs of colour by line. While text is added only its end is read again, from the last line
    that surely begins outside a string or comment; ``all_lines`` reads everything once more."""

    def __init__(self, language: str) -> None:
        self._language = language
        self.loaded = False
        self._lexer: Lexer | None = None
        if language in _loaded:
            self.load()
        self._from_line = 0
        self._lines: list[str] = []

    def load(self) -> None:
        """Learn how the language is written. Takes tens of milliseconds for the first code in it."""
        self._lexer = lexer_for(self._language)
        self.loaded = True
        _loaded.add(self._language)

    @property
    def known(self) -> bool:
        return self._lexer is not None

    def added(self, lines: list[str]) -> Iterator[tuple[int, list[Run]]]:
        """``lines`` are those from ``first_line`` to the end; gives the runs of each."""
        if self._lexer is None or len(lines) > _LIVE_LINES:
            self._from_line += max(0, len(lines) - _LIVE_LINES // 2)
            return
        restart = 0
        for number, runs, restartable in _by_line(self._lexer, "\n".join(lines)):
            yield self._from_line + number, runs
            if restartable and number < len(lines) - 1 and lines[number][:1].strip():
                restart = number
        self._from_line += restart

    @property
    def first_line(self) -> int:
        """The line from which ``added`` wants to see the code."""
        return self._from_line

    def all_lines(self, text: str) -> Iterator[tuple[int, list[Run]]]:
        """Lazily: take as many lines as there is time for."""
        if self._lexer is not None:
            for number, runs, _ in _by_line(self._lexer, text):
                yield number, runs


def _by_line(lexer: Lexer, text: str) -> Iterator[tuple[int, list[Run], bool]]:
    """Line number, its runs, and whether reading could begin anew at this line."""
    number = 0
    column = 0
    runs: list[Run] = []
    restartable = True
    for _, kind, value in lexer.get_tokens_unprocessed(text):
        role = role_of(kind)
        parts = value.split("\n")
        for index, part in enumerate(parts):
            if index:
                yield number, runs, restartable
                number, column, runs = number + 1, 0, []
                last = index == len(parts) - 1
                restartable = not any(is_token_subtype(kind, open_ended) for open_ended in _OPEN_ENDED) or (
                    last and not part
                )
            if role is not None and part:
                runs.append((column, len(part), role))
            column += len(part)
    yield number, runs, restartable
