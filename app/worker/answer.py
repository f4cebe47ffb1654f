"""One answer as text: bytes to characters, stop strings, thoughts; nothing past a stop is shown."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal

from app.protocol import Piece
from app.reasoning import ReasoningSplitter, held_back


class Answer:
    """Takes committed tokens one by one and releases text once it is certain to stay."""

    def __init__(
        self,
        token_bytes: Callable[[int], bytes],
        end_tokens: frozenset[int],
        stops: Sequence[str] = (),
        closing: str | None = None,
        begun: bool = False,
    ) -> None:
        """``closing``: the tag that ends thoughts which the prompt opened, if it did. ``begun``: there
        was something of the answer before, and this is the rest."""
        self._token_bytes = token_bytes
        self._end_tokens = end_tokens
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = ReasoningSplitter(closing, begun)
        self._begun = begun
        self._held = ""  # decoded text that may turn out to be a stop
        self._length = 0  # characters decoded so far
        self._tokens: list[int] = []
        self._first_said: int | None = None  # index of the first token behind the thoughts
        self._starts: list[int] = []  # where each token's text begins
        self._released: list[tuple[int, str, bool]] = []  # token index, text, thought
        self._taken = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def take(self, token: int) -> Literal["stop"] | None:
        """Add the next token; "stop" when the answer ends with it."""
        index = self._taken
        self._taken += 1
        if token in self._end_tokens:
            self._release(index, self._held)
            self._held = ""
            return "stop"
        text = self._decoder.decode(self._token_bytes(token))
        self._tokens.append(token)
        self._starts.append(self._length)
        self._length += len(text)
        self._held += text
        # The stop that is complete first ends the answer, however its text is cut into tokens.
        found = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            _, at = min(found)
            self._end_at(self._length - len(self._held) + at)
            self._release(index, self._held[:at])
            self._held = ""
            return "stop"
        certain = len(self._held) - (held_back(self._held, self._stops) if self._stops else 0)
        self._release(index, self._held[:certain])
        self._held = self._held[certain:]
        return None

    def finish(self) -> None:
        """The answer has ended: what was held back is text after all.

        A character whose bytes did not all come is dropped, and so are their tokens.
        """
        self._end_at(self._length)
        self._release(self._taken - 1, self._held)
        self._held = ""
        for text, thought in self._splitter.finish():
            self._add(self._taken - 1, text, thought)

    def pieces(self, first: int, accepted: int, drafter: str | None) -> tuple[Piece, ...]:
        """Text released since the last call. Tokens ``first`` to ``first + accepted`` (counted over
        all that were taken) were guessed by ``drafter``."""
        pieces: list[Piece] = []
        for index, text, thought in self._released:
            by = drafter if first <= index < first + accepted else None
            if pieces and pieces[-1].drafter == by and pieces[-1].reasoning == thought:
                pieces[-1] = Piece(pieces[-1].text + text, by, thought)
            else:
                pieces.append(Piece(text, by, thought))
        self._released.clear()
        return tuple(pieces)

    def ends_with(self, token: int) -> bool:
        """Whether the answer ends where the model says this token, which has no text."""
        return token in self._end_tokens

    @property
    def taken(self) -> int:
        """Tokens taken, the end token included."""
        return self._taken

    @property
    def certain(self) -> int:
        """How many of ``token_ids`` are certain to stay."""
        return bisect_left(self._starts, self._length - len(self._held))

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        thoughts = "".join(self._reasoning).rstrip()
        return thoughts if self._begun else thoughts.lstrip()

    @property
    def thinking(self) -> bool:
        """The thoughts have not ended yet."""
        return self._splitter.thinking

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Tokens of the text, thoughts included, without an end token or a stop."""
        return tuple(self._tokens)

    @property
    def said_ids(self) -> tuple[int, ...]:
        """The same without thoughts and their tags."""
        return () if self._first_said is None else tuple(self._tokens[self._first_said :])

    def _end_at(self, length: int) -> None:
        """Forget tokens that lie wholly behind the first ``length`` characters."""
        while self._starts and self._starts[-1] >= length:
            self._starts.pop()
            self._tokens.pop()

    def _release(self, index: int, text: str) -> None:
        for part, thought in self._splitter.feed(text) if text else ():
            self._add(index, part, thought)

    def _add(self, index: int, text: str, thought: bool) -> None:
        (self._reasoning if thought else self._text).append(text)
        if not thought and self._first_said is None:
            self._first_said = index if self._splitter.opened else 0
        self._released.append((index, text, thought))
