"""The chain in automatic mode: it asks all links and lets the controller pick link and length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drafting.chain import Chain
from drafting.controller import DOUBT, PLAIN, Controller
from drafting.drafter import NO_DRAFT, Draft, Drafter, Draw
from drafting.floor import Floor
from drafting.history import History
from drafting.silence import UNPAID, Silence

# A costly drafter that did not pay is tried again after so many passes, each time less often.
_FIRST_PAUSE = 32
_LONGEST_PAUSE = 1024
_PROBE_LENGTH = 3
_SPEED_RATE = 0.2


@dataclass
class _Costly:
    """What is known of a drafter whose drafts take time."""

    seconds_each: float = 0.0  # 0 until it was asked once
    confidence: float = 0.8  # what it stated lately, on average
    pause: int = _FIRST_PAUSE
    waiting: int = 0  # passes until the next probe


class AutoChain(Chain):
    """Links whose look-ups cost nothing are asked each time; the best offer is taken, if any pays.

    Those that were not taken are judged all the same by what the target then says, so a link that
    begins to fit is noticed without risking a pass on it. A costly link (``costly`` in its class) is
    asked only when its record promises more than the best free offer, and probed now and then.
    """

    def __init__(
        self,
        links: Sequence[Drafter],
        controller: Controller,
        clock: Callable[[], float],
        history: History | None = None,
        floor: Floor | None = None,
    ) -> None:
        super().__init__(links, history, floor)
        self._controller = controller
        for link in links:
            controller.acceptance.introduce(link.name, getattr(link, "doubt", DOUBT))
        self._clock = clock
        self._costly: dict[str, _Costly] = {}
        self._offers: list[tuple[str, int, float | None]] = []  # link, first token, stated confidence
        self._drafted: Sequence[float | None] = ()  # stated confidences of the draft that was taken
        self._unpaid: tuple[str, int, float | None] | None = None  # the best offer, where none was taken

    @property
    def silence(self) -> Silence:
        if self._limit > 0 and self._unpaid is not None:
            link, _, stated = self._unpaid
            least, costs = self._controller.least_rows, self._controller.costs
            rate = self._controller.acceptance.rate(link, stated)
            cost = costs.relative(least + 1) / costs.relative(least)
            return Silence(
                UNPAID,
                f"One more row makes a pass {cost:.2f} times as long, "
                f"and {100 * rate:.0f} % of such guesses are right.",
            )
        if self._limit > 0 and any(is_costly(link) for link in self._awake()):
            return Silence(UNPAID, "The draft model takes longer than its guesses save.")
        return super().silence

    def propose(self, limit: int, draw: Draw) -> tuple[Draft, str | None]:
        self._speaker = None
        self._limit = limit
        self._unpaid = None
        self._offers.clear()
        self._drafted = ()
        if limit < 1:
            return NO_DRAFT, None
        best, best_draft, speaker = PLAIN, NO_DRAFT, None
        for link in self._awake():
            if is_costly(link):
                continue
            draft = self._ask(link, limit, draw)
            if not draft:
                continue
            stated = _stated(draft)
            self._offers.append((link.name, draft.tokens[0], stated[0]))
            choice = self._controller.choose(link.name, stated)
            if choice.gain > best.gain:
                best, best_draft, speaker = choice, draft, link
        for link in self._awake():
            if is_costly(link):
                draft = self._ask_costly(link, limit, draw, best.gain)
                if draft:
                    best, best_draft, speaker = best._replace(length=len(draft)), draft, link
                    break
        if speaker is None:
            self._unpaid = max(self._offers, key=lambda offer: offer[2] or 0.0, default=None)
            return NO_DRAFT, None
        self._speaker = speaker
        taken = best_draft.cut(best.length)
        self._drafted = _stated(taken)
        return taken, speaker.name

    def commit(self, tokens: Sequence[int], drafted: int, accepted: int) -> None:
        controller, speaker = self._controller, self._speaker
        if speaker is not None and drafted:
            controller.record(speaker.name, self._drafted[:drafted], accepted)
        if tokens:
            for name, token, stated in self._offers:
                if speaker is None or name != speaker.name:
                    controller.acceptance.record(name, stated, token == tokens[0])
        self._offers.clear()
        super().commit(tokens, drafted, accepted)

    def _ask_costly(self, link: Drafter, limit: int, draw: Draw, to_beat: float) -> Draft:
        """A draft of a link that takes time, where its record says that it will pay; else a probe."""
        known = self._costly.setdefault(link.name, _Costly())
        expected = self._controller.choose(link.name, [known.confidence] * limit, known.seconds_each)
        if expected.gain > to_beat:
            length = expected.length
        elif known.waiting <= 0 and to_beat <= 1.0:
            length = min(_PROBE_LENGTH if known.seconds_each else 1, limit)
        else:
            known.waiting -= 1
            return NO_DRAFT
        began = self._clock()
        draft = self._ask(link, length, draw)
        took = (self._clock() - began) / max(1, len(draft))
        first = known.seconds_each == 0.0
        known.seconds_each += (1.0 if first else _SPEED_RATE) * (took - known.seconds_each)
        if not self._controller.could_pay(limit, known.seconds_each):
            known.waiting = _LONGEST_PAUSE
        if not draft:
            known.waiting = max(known.waiting, known.pause)
            return NO_DRAFT
        stated = _stated(draft)
        if draft.confidence:
            known.confidence += _SPEED_RATE * (sum(draft.confidence) / len(draft) - known.confidence)
        if self._controller.choose(link.name, stated, known.seconds_each).length:
            known.pause = _FIRST_PAUSE
        else:
            known.waiting = max(known.waiting, known.pause)
            known.pause = min(2 * known.pause, _LONGEST_PAUSE)
        return draft


def _stated(draft: Draft) -> Sequence[float | None]:
    return draft.confidence if draft.confidence is not None else [None] * len(draft)


def is_costly(link: Drafter) -> bool:
    """Whether a proposal takes time worth counting: a model's pass, not a look-up."""
    return bool(getattr(link, "costly", False))
