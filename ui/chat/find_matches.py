"""Where a text stands in the messages of a chat, whether or not they are built. Knows no Qt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from app.chats.message import Message
from ui.bidi import visible
from ui.chat.markdown_blocks import Block, CodeBlock, TableBlock, TextBlock
from ui.chat.markdown_stream import (
    Change,
    CodeClosed,
    CodeOpened,
    CodeText,
    Finished,
    Live,
    MarkdownStream,
)
from ui.chat.plain_text import plain_changes

_SLICE_CHARS = 1000
_SPACE = r"[^\S\n]+"  # a paragraph's end is not found by a blank
_LETTERS = re.compile("[A-Za-z0-9]+")
# Marks that may stand inside of a word, and those with which words are shown that are not written so.
_MARKS = str.maketrans("", "", "*_`~")
_OTHERWISE = re.compile(r"[&$\\]|\]\(|\]\[|\]:")


class Match(Struct, frozen=True):
    """The match ``number``, from 0, in what a message thought or in what it says."""

    message: int
    thoughts: bool
    number: int


class Mark(Struct, frozen=True):
    """What is marked: all that ``pattern`` finds, in one message or (None) in all, and one match more
    than the others."""

    pattern: re.Pattern[str]
    message: int | None = None
    current: Match | None = None

    def is_for(self, message: int) -> bool:
        return self.message is None or self.message == message

    def current_in(self, message: int, thoughts: bool) -> int | None:
        match = self.current
        if match is None or (match.message, match.thoughts) != (message, thoughts):
            return None
        return match.number


def pattern_of(text: str) -> re.Pattern[str] | None:
    """Finds ``text`` in upper and lower case, however wide its blanks are; None: there is nothing to
    find."""
    if not text.strip():
        return None
    return re.compile(_SPACE.join(re.escape(part) for part in re.split(r"\s+", text)), re.IGNORECASE)


class ShownText:
    """What is shown of a text that grows: a line for each paragraph, cell of a table and line of code."""

    def __init__(self, *, plain: bool) -> None:
        """``plain``: as a person typed it."""
        self._plain = plain
        self._stream: MarkdownStream | None = None
        self._fed = 0
        self._ended = False
        self._lines: list[str] = []
        self._live: list[str] = []
        self._code: list[str] | None = None

    def can_read(self, text: str, ended: bool) -> bool:
        """Whether ``text`` goes on from what was read."""
        return len(text) >= self._fed and not (self._ended and (not ended or len(text) > self._fed))

    def read(self, text: str, ended: bool, late: Callable[[], bool]) -> bool:
        """Read on to the end of ``text``, which no more will follow if it is ``ended``. Returns False
        where it was ``late`` before that."""
        if self._plain:
            if self._fed < len(text):
                self._apply(plain_changes(text))
                self._fed = len(text)
            return True
        if self._stream is None:
            if self._ended or not text:
                return True
            self._stream = MarkdownStream()
        while self._fed < len(text):
            self._stream.feed(text[self._fed : self._fed + _SLICE_CHARS])
            self._fed = min(len(text), self._fed + _SLICE_CHARS)
            self._apply(self._stream.changes())
            if late() and self._fed < len(text):
                return False
        if ended:
            self._apply(self._stream.finish())
            self._ended = True
            self._stream = None  # there may be thousands of texts
            self._lines, self._live, self._code = [self.text], [], None
        return True

    @property
    def text(self) -> str:
        code = ["".join(self._code)] if self._code is not None else []
        return "\n".join([*self._lines, *code, *self._live])

    def _apply(self, changes: Iterable[Change]) -> None:
        self._live = []
        for change in changes:
            match change:
                case Finished(block):
                    self._lines += _lines_of(block)
                case Live(blocks):
                    self._live = [line for block in blocks for line in _lines_of(block)]
                case CodeOpened():
                    self._code, self._live = [], []
                case CodeText(text) if self._code is not None:
                    self._code.append(visible(text))
                case CodeClosed() if self._code is not None:
                    self._lines.append("".join(self._code))
                    self._code = None


def _lines_of(block: Block) -> list[str]:
    match block:
        case CodeBlock():
            return [visible(block.text)]
        case TableBlock():
            # Where a table goes on, its head is only repeated.
            rows = block.rows[1:] if block.continues else block.rows
            return [_line("".join(span.text for span in cell)) for row in rows for cell in row]
        case TextBlock():
            return [_line(block.text)]


def _line(text: str) -> str:
    return text.replace("\n", "\u2028").replace("\u2029", "\u2028")


class _Said(Struct):
    """A message as far as it was read, and how often the pattern is in it."""

    thoughts: ShownText
    text: ShownText
    seen: tuple[int, int, bool] | None = None  # what of it was counted
    counts: tuple[int, int] = (0, 0)


class FoundMatches:
    """Counts the matches in all messages, the newest first, a little at a time."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._said: dict[int, _Said] = {}
        self._order: list[int] = []
        self._uncounted = 0  # so many of the oldest are not counted yet

    @property
    def pattern(self) -> re.Pattern[str] | None:
        return self._pattern

    @property
    def complete(self) -> bool:
        return self._uncounted == 0

    @property
    def total(self) -> int:
        return sum(sum(self._said[message].counts) for message in self._order[self._uncounted :])

    def look_for(self, pattern: re.Pattern[str] | None) -> None:
        self._pattern = pattern
        self._uncounted = len(self._order)
        for said in self._said.values():
            said.seen, said.counts = None, (0, 0)

    def forget(self, message: int) -> None:
        """Its text may be another."""
        self._said.pop(message, None)
        if message in self._order:
            self._uncounted = max(self._uncounted, self._order.index(message) + 1)

    def count(self, messages: Sequence[Message], late: Callable[[], bool]) -> bool:
        """Count what has changed in ``messages``. Returns False where it was ``late`` before the end."""
        self._order = [message.id for message in messages] if self._pattern is not None else []
        self._uncounted = len(self._order)
        if self._pattern is None:
            return True
        needed = max(_LETTERS.findall(_without_escapes(self._pattern)), key=len, default="").lower()
        worked = False
        for message in reversed(messages):
            if self._is_counted(message):
                self._uncounted -= 1
                continue
            if (worked and late()) or not self._count_one(message, needed, late):
                return False
            self._uncounted -= 1
            worked = True  # so that each call gets on, however slow the machine is
        return True

    def _is_counted(self, message: Message) -> bool:
        said = self._said.get(message.id)
        return said is not None and said.seen == _seen(message)

    def _count_one(self, message: Message, needed: str, late: Callable[[], bool]) -> bool:
        assert self._pattern is not None
        said = self._said.get(message.id)
        ended = not message.in_progress
        texts = (message.reasoning, message.text)
        plain = message.role == "user"
        if said is None or not (
            said.thoughts.can_read(texts[0], ended) and said.text.can_read(texts[1], ended)
        ):
            said = self._said[message.id] = _Said(ShownText(plain=False), ShownText(plain=plain))
        counts = []
        for shown, text in zip((said.thoughts, said.text), texts, strict=True):
            if ended and not _may_show(text, needed):
                counts.append(0)
                continue
            if not shown.read(text, ended, late):
                return False
            counts.append(sum(1 for _ in self._pattern.finditer(shown.text)))
        said.counts = (counts[0], counts[1])
        said.seen = _seen(message)
        return True

    # ---- matches by their number, from 0, among those that are counted

    def at(self, number: int) -> Match:
        """Raises IndexError where there is none."""
        left = number
        for message in self._order[self._uncounted :]:
            for thoughts, count in zip((True, False), self._said[message].counts, strict=True):
                if 0 <= left < count:
                    return Match(message, thoughts, left)
                left -= count
        raise IndexError(number)

    def number_of(self, match: Match) -> int | None:
        """None where it is no more, or not counted yet."""
        before = 0
        for message in self._order[self._uncounted :]:
            thoughts, text = self._said[message].counts
            if message == match.message:
                if match.number >= (thoughts if match.thoughts else text):
                    return None
                return before + match.number + (0 if match.thoughts else thoughts)
            before += thoughts + text
        return None

    def from_here(self, message: int, number: int) -> int | None:
        """The first match at or after the one with ``number`` in what ``message`` says, else the last one
        before it. None: there is none, or it cannot be known yet."""
        if message not in self._order:
            return 0 if self.complete and self.total else None
        at = self._order.index(message)
        if at < self._uncounted:
            return None
        before = sum(sum(self._said[one].counts) for one in self._order[self._uncounted : at])
        thoughts, _ = self._said[message].counts
        first = before + thoughts + number
        total = self.total
        return min(first, total - 1) if total else None


def _seen(message: Message) -> tuple[int, int, bool]:
    pieces = message.pieces
    return len(pieces), len(pieces[-1].text) if pieces else 0, message.in_progress


def _without_escapes(pattern: re.Pattern[str]) -> str:
    return re.sub(r"\\(.)", r"\1", pattern.pattern.replace(_SPACE, " "))


def _may_show(source: str, needed: str) -> bool:
    """Whether reading ``source`` as Markdown is worth it, which takes long: words are shown as they are
    written, apart from a few marks."""
    return not needed or needed in source.translate(_MARKS).lower() or _OTHERWISE.search(source) is not None
