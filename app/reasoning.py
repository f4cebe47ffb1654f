"""Telling a model's thoughts from its answer while the text arrives in pieces."""

from __future__ import annotations

from typing import Literal

TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
)
"""How models mark their thoughts: opening and closing."""


def opened_by(prompt: str) -> str | None:
    """The closing tag of a thought that the prompt itself opens at its end, if it does."""
    tail = prompt.rstrip()
    return next((close for start, close in TAGS if tail.endswith(start)), None)


class ReasoningSplitter:
    """Feed it text; it gives it back as thoughts or answer.

    Only a tag at the very start opens thoughts (or the prompt did): a tag later on is part of the
    answer, however it is quoted. Empty thoughts vanish.
    """

    def __init__(self, closing: str | None = None, begun: bool = False) -> None:
        """``closing``: the tag that ends the thoughts which the prompt opened. ``begun``: something was
        thought or said before, and this goes on from there."""
        self._closing = closing
        self._state: Literal["start", "thinking", "answer"] = "answer" if begun else "start"
        if closing:
            self._state = "thinking"
        self._held = ""
        self._thought = begun  # something but white space was thought
        self._trim = False  # white space between thoughts and answer

    @property
    def thinking(self) -> bool:
        """Thoughts were opened and have not ended."""
        return self._state == "thinking"

    @property
    def opened(self) -> bool:
        """Thoughts were opened, whether they have ended or not."""
        return self._closing is not None

    def feed(self, text: str) -> list[tuple[str, bool]]:
        """What can be told for certain by now, as (text, whether it is a thought)."""
        if self._state == "answer" and not self._trim:
            return [(text, False)] if text else []  # nothing is held back any more
        self._held += text
        result: list[tuple[str, bool]] = []
        if self._state == "start":
            self._start()
        if self._state == "thinking":
            self._think(result)
        if self._state == "answer":
            self._answer(result)
        return result

    def finish(self) -> list[tuple[str, bool]]:
        """What was still held back when the text ended."""
        held, self._held = self._held, ""
        if self.thinking:
            held = held.rstrip()
        return [(held, self.thinking)] if held else []

    def _start(self) -> None:
        lead = self._held.lstrip()
        for opening, closing in TAGS:
            if lead.startswith(opening):
                self._state, self._closing = "thinking", closing
                self._held = lead[len(opening) :]
                return
        if lead and not any(opening.startswith(lead) for opening, _ in TAGS):
            self._state = "answer"

    def _think(self, result: list[tuple[str, bool]]) -> None:
        assert self._closing is not None
        if not self._thought:
            self._held = self._held.lstrip()
        thought, tag, rest = self._held.partition(self._closing)
        if tag:
            self._state, self._held, self._trim = "answer", rest, True
            thought = thought.rstrip()
        else:
            keep = held_back(thought, (self._closing,))
            # White space before the tag would not be a thought, so it waits as well.
            thought = thought[: len(thought) - keep].rstrip()
            self._held = self._held[len(thought) :]
        if thought:
            self._thought = True
            result.append((thought, True))

    def _answer(self, result: list[tuple[str, bool]]) -> None:
        if self._trim:
            self._held = self._held.lstrip()
            self._trim = not self._held
        if self._held:
            result.append((self._held, False))
            self._held = ""


def held_back(text: str, marks: tuple[str, ...]) -> int:
    """Characters at the end of ``text`` that may be the beginning of one of ``marks``."""
    longest = max((len(mark) for mark in marks), default=0) - 1
    for n in range(min(longest, len(text)), 0, -1):
        tail = text[-n:]
        if any(mark.startswith(tail) for mark in marks):
            return n
    return 0
