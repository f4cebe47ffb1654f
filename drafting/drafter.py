"""What every drafter is: it follows the committed tokens and proposes what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from drafting.distribution import Distribution
from drafting.history import History

Draw = Callable[[Distribution, int], int]
"""Draws a token from a drafter's distribution for an absolute position in the sequence."""


class Interrupted(Exception):
    """A pass was stopped on request; nothing is wrong with whoever was running it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposed tokens.

    ``q[i]`` is the distribution token i was drawn from; None means it was certain (an n-gram
    look-up). ``confidence[i]`` is the drafter's own estimate that token i is right if those before
    it are (0 to 1); None where it has none. ``learn`` is told the target's distribution at each
    place that verification looked at, from the first on, where it was not certain.
    """

    tokens: list[int] = field(default_factory=list)
    q: list[Distribution] | None = None
    confidence: list[float] | None = None
    learn: Callable[[Sequence[Distribution]], None] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def cut(self, length: int) -> Draft:
        """The first ``length`` tokens of this draft."""
        if length >= len(self.tokens):
            return self
        return Draft(
            self.tokens[:length],
            None if self.q is None else self.q[:length],
            None if self.confidence is None else self.confidence[:length],
            self.learn,
        )


NO_DRAFT = Draft()


class Drafter(Protocol):
    """One sequence's drafter. It never sees the target, its sampler or its logits; a draft with a q may
    ask to be told afterwards what it was judged by.

    What differs from the ordinary is known by its class: ``doubt`` (drafting.controller.DOUBT),
    ``costly`` of a CostlyDrafter, and ``covered_by``: the name of a link that sees all this one sees,
    and more.
    """

    @property
    def name(self) -> str:
        """Its name in settings, statistics and ``--spec``."""

    def begin(self, tokens: Sequence[int]) -> None:
        """A request starts with these tokens (the whole prompt), whatever came before."""

    def commit(self, tokens: Sequence[int]) -> None:
        """These tokens were added to the sequence."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        """At most ``limit`` (>= 1) tokens that may follow; NO_DRAFT when it has nothing to say."""

    def judged(self, drafted: int, accepted: int) -> None:
        """How its last proposal fared."""


class CostlyDrafter(Drafter, Protocol):
    """A drafter that computes its drafts, and reads what was committed only when it is asked."""

    costly: bool

    @property
    def behind(self) -> int:
        """Committed tokens that it must read before its next draft."""

    def catch_up(self) -> None:
        """Read all but the last few of them now. Raises Interrupted."""


class ConfigurableDrafter(Drafter, Protocol):
    """A drafter with parameters (drafting.parameters), which take effect with the next answer."""

    def configure(self, parameters: Any) -> None: ...


class IndexDrafter:
    """Base of the n-gram drafters that only look things up in the sequence's history."""

    name = ""

    def __init__(self, history: History | None = None) -> None:
        """``history``: shared with others and fed by its owner; None makes one of its own."""
        self._own = history is None
        self.history = History() if history is None else history

    def begin(self, tokens: Sequence[int]) -> None:
        if self._own:
            self.history.begin(tokens)

    def commit(self, tokens: Sequence[int]) -> None:
        if self._own:
            self.history.commit(tokens)

    def judged(self, drafted: int, accepted: int) -> None:
        """Look-ups are the same however the last one fared."""
