"""The chain in automatic mode: it asks all links and lets the controller pick link and length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from drafting.chain import Chain
from drafting.controller import DOUBT, PLAIN, Controller
from drafting.draft_cost import DraftCost
from drafting.drafter import NO_DRAFT, CostlyDrafter, Draft, Drafter, Draw, Interrupted
from drafting.floor import Floor
from drafting.history import History
from drafting.silence import UNPAID, Silence

# A costly drafter that is not expected to pay is tried all the same, for so much of the time.
_PROBE_SHARE = 0.02
_PROBE_LENGTH = 3
# Passes until it is thought of again, where it would not pay even beside nothing: to think is not free.
_REST = 3
# Reading what it missed must be worth it within so many passes.
_PAYBACK_PASSES = 64
_ALWAYS_READ = 8  # tokens that a drafter reads for a draft anyway, if it drafts for every pass
_WORDS_LAST = 8  # passes, some ten in a blink: figures that change faster cannot be read
_TOO_DEAR = Silence(UNPAID, "The draft model takes longer than its guesses save.")


class AutoChain(Chain):
    """Links whose look-ups cost nothing are asked each time; the best offer is taken, if any pays.

    Those that were not taken are judged all the same by what the target then says, so a link that
    begins to fit is noticed without risking a pass on it. A link is left out where another is there that
    sees all it sees, and more (``covered_by`` in its class). A costly link (``costly`` in its class) is
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
        names = {link.name for link in links}
        super().__init__([link for link in links if _covered_by(link) not in names], history, floor)
        self._controller = controller
        for link in links:
            controller.acceptance.introduce(link.name, getattr(link, "doubt", DOUBT))
        self._clock = clock
        self._offers: list[tuple[str, int, float | None]] = []  # link, first token, stated confidence
        self._drafted: Sequence[float | None] = ()  # stated confidences of the draft that was taken
        self._unpaid: tuple[str, int, float | None] | None = None  # the best offer, where none was taken
        self._rests: dict[str, int] = {}  # passes left in which a costly link is not thought of
        self._unpaid_words: Silence | None = None
        self._unpaid_passes = 0  # since those words

    @property
    def silence(self) -> Silence:
        if self._limit < 1:
            return super().silence
        if self._unpaid is not None:
            self._unpaid_passes += 1
            if self._unpaid_words is None or self._unpaid_passes >= _WORDS_LAST:
                self._unpaid_words, self._unpaid_passes = self._figures(*self._unpaid), 0
            return self._unpaid_words
        if any(is_costly(link) for link in self._awake()):
            return _TOO_DEAR
        return super().silence

    def _figures(self, link: str, _token: int, stated: float | None) -> Silence:
        """Why an offer was not taken."""
        controller = self._controller
        rate = controller.acceptance.rate(link, stated)
        # In exact mode the first row that costs anything is the one behind the padding.
        cost = 1 + controller.extra_seconds(controller.least_rows) / controller.plain_seconds()
        return Silence(
            UNPAID,
            f"One more row makes a pass {cost:.2f} times as long, "
            f"and {100 * rate:.0f} % of such guesses are right.",
        )

    def beside(self, rows: int, tokens: float) -> None:
        self._controller.beside(rows, tokens)

    @property
    def expected(self) -> float:
        speaker = self._speaker
        return 1.0 if speaker is None else self._controller.expected(speaker.name, self._drafted)

    def propose(self, limit: int, draw: Draw) -> tuple[Draft, str | None]:
        self._speaker = None
        self._limit = limit
        self._unpaid = None
        self._offers.clear()
        self._drafted = ()
        if limit < 1:
            return NO_DRAFT, None
        best, best_draft, speaker = PLAIN, NO_DRAFT, None
        awake = self._awake()
        for link in awake:
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
        for link in awake:
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
        controller.passed()
        if speaker is not None and drafted:
            controller.record(speaker.name, self._drafted[:drafted], accepted)
        if tokens:
            for name, token, stated in self._offers:
                if speaker is None or name != speaker.name:
                    controller.acceptance.record(name, stated, token == tokens[0])
        self._offers.clear()
        super().commit(tokens, drafted, accepted)

    def _ask_costly(self, link: CostlyDrafter, limit: int, draw: Draw, to_beat: float) -> Draft:
        """A draft of a link that takes time, where its record says that it will pay; else a probe."""
        controller = self._controller
        known = controller.draft_cost(link.name)
        if self._rests.get(link.name, 0) > 0:
            self._rests[link.name] -= 1
            known.waited += 1
            return NO_DRAFT
        behind = link.behind
        reading = behind * known.seconds_row if behind > _ALWAYS_READ else 0.0
        expected = controller.choose(link.name, [known.confidence] * limit, known)
        gained = (expected.gain - to_beat) * controller.plain_seconds()
        is_probe = gained <= 0 or reading > _PAYBACK_PASSES * gained
        if not is_probe:
            # What a block says beyond its expected length is free, and may be better than expected.
            length = limit if known.drafts_blocks else expected.length
        elif to_beat <= 1.0 and self._may_probe(known, limit, reading):
            length = min(_PROBE_LENGTH if known.seconds_each else 1, limit)
        else:
            known.waited += 1
            if expected.gain <= 1.0:
                self._rests[link.name] = _REST
            return NO_DRAFT
        known.waited = 0
        if behind > _ALWAYS_READ and not self._catch_up(link, behind, known):
            return NO_DRAFT
        began = self._clock()
        draft = self._ask(link, length, draw)
        known.drafted(len(draft), self._clock() - began)
        stated = _stated(draft)
        if not draft:
            known.stated(0.0)
        elif draft.confidence:
            # A block runs on where it is unsure, and what it says there decides nothing.
            said = draft.confidence[:_PROBE_LENGTH] if known.drafts_blocks else draft.confidence
            mean = sum(said) / len(said)
            # What was known before a probe is old.
            if is_probe:
                known.confidence = mean
            else:
                known.stated(mean)
        if draft and not is_probe:
            # What it took is spent; now its rows must be worth theirs.
            choice = controller.choose(link.name, stated)
            if choice.gain <= to_beat:
                self._offers.append((link.name, draft.tokens[0], stated[0]))
            return draft.cut(choice.length) if choice.gain > to_beat else NO_DRAFT
        return draft

    def _may_probe(self, known: DraftCost, limit: int, reading: float) -> bool:
        """Whether a try that is lost would cost little of the time since the last."""
        if not known.seconds_each:
            return True
        length = min(_PROBE_LENGTH, limit)
        lost = reading + known.seconds(length) + self._controller.extra_seconds(length)
        if lost > _PROBE_SHARE * known.waited * self._controller.plain_seconds():
            return False
        return self._controller.could_pay(limit, known)

    def _catch_up(self, link: CostlyDrafter, behind: int, known: DraftCost) -> bool:
        """Let it read what was committed since its last draft; False where it failed and is off."""
        began = self._clock()
        try:
            link.catch_up()
        except Interrupted:
            raise
        except Exception as error:
            self._switch_off(link, error)
            return False
        known.caught_up(behind, self._clock() - began)
        return True


def _stated(draft: Draft) -> Sequence[float | None]:
    return draft.confidence if draft.confidence is not None else [None] * len(draft)


def _covered_by(link: Drafter) -> str | None:
    covered_by: str | None = getattr(link, "covered_by", None)
    return covered_by


def is_costly(link: Drafter) -> TypeGuard[CostlyDrafter]:
    """Whether a proposal takes time worth counting: a model's pass, not a look-up."""
    return bool(getattr(link, "costly", False))
