"""The chain: drafters in order, the first with something to say speaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from drafting.drafter import NO_DRAFT, Draft, Drafter, Draw, Interrupted
from drafting.floor import Floor
from drafting.history import History
from drafting.silence import FAILED, NO_OFFER, NO_ROOM, OFF, PAUSED, Silence

log = logging.getLogger(__name__)


class Chain:
    """One sequence's drafters. A link that raises is switched off; the answer goes on.

    ``failures`` maps the name of such a link to the reason, for as long as the chain lives.
    """

    def __init__(
        self, links: Sequence[Drafter], history: History | None = None, floor: Floor | None = None
    ) -> None:
        """``history`` is what the links look things up in, where they share one; ``floor`` pauses
        those that are seldom right."""
        self._links = list(links)
        self._history = history
        self._floor = floor or Floor()
        self.failures: dict[str, str] = {}
        self._speaker: Drafter | None = None
        self._limit = 0  # of the last proposal

    @property
    def names(self) -> list[str]:
        """Links that still work, in order."""
        return [link.name for link in self._links]

    def begin(self, tokens: Sequence[int]) -> None:
        self._speaker = None
        self._floor.begin()
        if self._history is not None:
            self._history.begin(tokens)
        self._each(lambda link: link.begin(tokens))

    def propose(self, limit: int, draw: Draw) -> tuple[Draft, str | None]:
        """The first non-empty draft of at most ``limit`` tokens and who made it.

        Raises Interrupted when a neural drafter's pass was stopped.
        """
        self._speaker = None
        self._limit = limit
        if limit < 1:
            return NO_DRAFT, None
        for link in self._awake():
            draft = self._ask(link, limit, draw)
            if draft:
                self._speaker = link
                return draft, link.name
        return NO_DRAFT, None

    def beside(self, rows: int, tokens: float) -> None:
        """What the next pass holds for other sequences. A fixed chain drafts all the same."""

    @property
    def expected(self) -> float:
        """Tokens that the last proposal should bring, the target's own included."""
        return 1.0

    @property
    def silence(self) -> Silence:
        """Why the last proposal was empty."""
        if not self._links:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.failures.items())
            return Silence(FAILED, f"{reasons}.") if reasons else OFF
        if self._limit < 1:
            return NO_ROOM
        paused = [(name, words) for name in self.names if (words := self._floor.paused(name))]
        if paused:
            return Silence(PAUSED, ". ".join(f"{name}: {words}" for name, words in paused) + ".")
        return NO_OFFER

    def _awake(self) -> list[Drafter]:
        """The links that are not paused, in order."""
        return [link for link in self._links if self._floor.limit(link.name)]

    def _ask(self, link: Drafter, limit: int, draw: Draw) -> Draft:
        """One link's draft; NO_DRAFT from one that fails, which is off from then on."""
        limit = min(limit, self._floor.limit(link.name))
        if limit < 1:
            return NO_DRAFT
        try:
            draft = link.propose(limit, draw)
            if not draft.tokens:
                return NO_DRAFT
            draft = draft.cut(limit)
            for what in (draft.q, draft.confidence):
                if what is not None and len(what) != len(draft):
                    raise ValueError(f"{len(what)} values for {len(draft)} tokens")
        except Interrupted:
            raise
        except Exception as error:
            self._switch_off(link, error)
            return NO_DRAFT
        return draft

    def offers(self, limit: int, draw: Draw) -> list[Draft]:
        """What each link has to say, in order, without taking any of it."""
        return [self._ask(link, limit, draw) for link in self._awake()]

    def commit(self, tokens: Sequence[int], drafted: int, accepted: int) -> None:
        """Tell every link what was added, and the last speaker how its draft fared."""
        speaker, self._speaker = self._speaker, None
        self._floor.passed()
        if speaker is not None:
            self._floor.record(speaker.name, drafted, accepted)

        def follow(link: Drafter) -> None:
            if link is speaker:
                link.judged(drafted, accepted)
            link.commit(tokens)

        if self._history is not None:
            self._history.commit(tokens)
        self._each(follow)

    def switch_off_all(self, reason: str) -> None:
        """Draft no more, for a reason that has nothing to do with the links themselves."""
        for link in self._links:
            self.failures[link.name] = reason
        self._links.clear()

    def _each(self, action: Callable[[Drafter], None]) -> None:
        for link in list(self._links):
            try:
                action(link)
            except Exception as error:
                self._switch_off(link, error)

    def _switch_off(self, link: Drafter, error: Exception) -> None:
        log.warning("drafter %s failed and is off from here on", link.name, exc_info=error)
        self.failures[link.name] = f"{type(error).__name__}: {error}"
        if link in self._links:
            self._links.remove(link)
