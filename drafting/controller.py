"""Whether a draft pays, and how long it should be: the shortest time per token, by what was learned.

Pure: it sees confidences, counts and the cost curve, never tokens or a clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from drafting.cost import CostCurve
from drafting.draft_cost import DraftCost

# What was seen weighs less with each further observation (a half after three), so that a change of
# text is noticed within a few words; a drafter's own word counts like this many observations, and
# where it has none an even chance counts like so few. All were chosen on recorded answers and on
# scripted changes of acceptance (slipstream replay).
_MEMORY = 0.8
_WORD_WEIGHT = 4.0
_NO_WORD, _NO_WORD_WEIGHT = 0.5, 2.0
# Log odds that one outcome moves what a link says in every class, and how far that may go.
_BIAS_RATE, _BIAS_LIMIT = 0.04, 3.0
DOUBT = 2.0
"""Log odds by which a link is believed less than it says until it proves itself: of several that look
at the same text, the boldest is the likeliest to be wrong, and being right is noticed for free."""
# What was expected of drafts weighs less with each further one, and fades with every pass; so many
# tokens of it are needed before a shortfall counts for half.
_DRAFT_MEMORY, _PASS_MEMORY, _GRACE = 0.8, 0.99, 6.0
# Plain passes that one draft may lose, beyond what drafts have saved in this answer. Measured on
# recorded answers it costs nothing, and no answer is a tenth slower for one long guess.
_STAKE = 4.0
# Classes of confidence, in steps of log odds: 0.5 apart, from 0.02 to 0.998.
_STEPS_PER_LOG_ODD = 2.0
_CLASS_LIMIT = 12
_EVEN_BETTER = 1e-9
_HOPELESS = 0.02  # a token reached this seldom pays on no machine


class Choice(NamedTuple):
    """Draft ``length`` tokens; ``gain`` is the expected speed over that of plain decoding."""

    gain: float
    length: int


PLAIN = Choice(1.0, 0)


class Acceptance:
    """How often a link's drafted token is right, by what it said of it; learned from every outcome."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int | None], tuple[float, float]] = {}  # right, all: both decayed
        self._bias: dict[str, float] = {}  # log odds by which a link's word is off, in all classes

    def introduce(self, link: str, doubt: float) -> None:
        """Begin with this much doubt (log odds); DOUBT for a link that was not introduced."""
        self._bias.setdefault(link, -doubt)

    def rate(self, link: str, confidence: float | None) -> float:
        """The probability (0 to 1) that a token of this confidence (None: nothing said) is right."""
        right, seen = self._seen.get((link, _class(confidence)), (0.0, 0.0))
        weight = _NO_WORD_WEIGHT if confidence is None else _WORD_WEIGHT
        return (right + weight * self._word(link, confidence)) / (seen + weight)

    def _word(self, link: str, confidence: float | None) -> float:
        """What a link's word is worth, as it turned out lately whatever the class."""
        stated = _NO_WORD if confidence is None else confidence
        odds = stated / max(1.0 - stated, 1e-6) * math.exp(self._bias.get(link, -DOUBT))
        return odds / (1.0 + odds)

    def record(self, link: str, confidence: float | None, is_right: bool) -> None:
        surprise = is_right - self._word(link, confidence)
        bias = self._bias.get(link, -DOUBT) + _BIAS_RATE * surprise
        self._bias[link] = max(-_BIAS_LIMIT, min(_BIAS_LIMIT, bias))
        key = (link, _class(confidence))
        right, seen = self._seen.get(key, (0.0, 0.0))
        self._seen[key] = (right * _MEMORY + is_right, seen * _MEMORY + 1.0)


class Delivery:
    """How many of a link's drafted tokens were right, beside how many were expected to be.

    Expectations multiply what is believed of each token, and so does what is wrong with them: a long
    draft may miss its promise where each token, for itself, hardly does.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}  # expected, right: both decayed

    def share(self, link: str) -> float:
        """What to expect of what is promised (0 to 1)."""
        expected, right = self._sums.get(link, (0.0, 0.0))
        return min(1.0, (right + _GRACE) / (expected + _GRACE))

    def record(self, link: str, expected: float, right: int) -> None:
        before, right_before = self._sums.get(link, (0.0, 0.0))
        self._sums[link] = (before * _DRAFT_MEMORY + expected, right_before * _DRAFT_MEMORY + right)

    def passed(self) -> None:
        """A pass is over: what was seen is older now, so that a link gets another chance."""
        for link, (expected, right) in self._sums.items():
            self._sums[link] = (expected * _PASS_MEMORY, right * _PASS_MEMORY)


class Controller:
    """Decides for one answer. Costs are the target's; acceptance is learned anew for each answer:
    what held for the last one is worth less than a short look (measured by replay)."""

    def __init__(self, costs: CostCurve, draft_costs: dict[str, DraftCost] | None = None) -> None:
        """``draft_costs``: by name, of links whose drafts take time; what is missing is learned."""
        self.costs = costs
        self._draft_costs = {} if draft_costs is None else draft_costs
        self.acceptance = Acceptance()
        self._delivery = Delivery()
        self._saved = 0.0  # plain passes that drafts have saved in this answer
        self.least_rows = 1  # exact mode pads shorter passes to this: up to there, drafts cost nothing
        self._rows = 0  # of other sequences in the same pass
        self._tokens = 0.0  # that they are expected to get from it

    def fresh(self) -> Controller:
        """One for the next answer: the same costs, nothing learned of the links."""
        controller = Controller(self.costs, self._draft_costs)
        controller.least_rows = self.least_rows
        return controller

    def beside(self, rows: int, tokens: float) -> None:
        """What the next pass holds for other sequences: its rows, and the tokens they should get of it.

        A draft makes all of them wait, so that it must pay for all: the more there are, the less a
        pass costs for each, and the less there is to gain. Naive drafting loses here.
        """
        self._rows, self._tokens = rows, tokens

    def draft_cost(self, link: str) -> DraftCost:
        """What drafts of this link take; it is kept for the answers to come."""
        return self._draft_costs.setdefault(link, DraftCost())

    def choose(
        self, link: str, confidence: Sequence[float | None], drafting: DraftCost | None = None
    ) -> Choice:
        """The best length for a draft with these confidences, PLAIN when none beats plain decoding.

        ``drafting`` is what making it takes, where that is still to be spent. The expected yield of n
        drafted tokens is 1 + p1 + p1 p2 + ... (Leviathan et al. 2023), as far as the link's drafts have
        lately delivered; their cost is that of a pass with n + 1 rows, and those of other sequences
        beside it. No draft may lose more than the stake.
        """
        costs = self.costs
        plain = self._cost(1)
        others = self._tokens
        # Tokens that a row must bring to be worth what it costs at least, at plain speed.
        dear = costs.least_slope * (others + 1.0) / plain
        best = PLAIN
        share = self._delivery.share(link)
        most = plain * (1.0 + _STAKE + max(0.0, self._saved))
        reached, tokens = 1.0, 1.0
        for i, stated in enumerate(confidence):
            reached *= self.acceptance.rate(link, stated)
            # However right the rest may be: further tokens must bring more than their rows cost.
            if self._rows + i + 1 >= self.least_rows and reached < max(_HOPELESS, dear * best.gain):
                break
            tokens += reached * share
            length = i + 1
            cost = self._cost(1 + length)
            if cost > most:
                continue  # a longer one may cost less: rows are computed in blocks
            # At most: where the draft turns out wrong early, fewer tokens are computed again.
            again = (1.0 - reached) * (cost - plain) if costs.repeats else 0.0
            draft = drafting.seconds(length) / costs.seconds(1) if drafting is not None else 0.0
            gain = (others + tokens) * plain / ((others + 1.0) * (cost + again + draft))
            if gain > best.gain + _EVEN_BETTER:
                best = Choice(gain, length)
        return best

    def expected(self, link: str, confidence: Sequence[float | None]) -> float:
        """Tokens that a pass with this draft should bring, as the link's drafts have lately delivered."""
        return 1.0 + self._promised(link, confidence) * self._delivery.share(link)

    def _promised(self, link: str, confidence: Sequence[float | None]) -> float:
        reached, promised = 1.0, 0.0
        for stated in confidence:
            reached *= self.acceptance.rate(link, stated)
            promised += reached
        return promised

    def could_pay(self, limit: int, drafting: DraftCost) -> bool:
        """Whether drafts of up to ``limit`` tokens would beat plain if every token were right."""
        plain, one = self._cost(1), self.costs.seconds(1)
        share = 1.0 / (self._tokens + 1.0)
        return any(
            self._cost(1 + n) + drafting.seconds(n) / one < plain * (1 + n * share)
            for n in range(1, limit + 1)
        )

    def extra_seconds(self, length: int) -> float:
        """By how much drafted tokens make a pass longer than a plain one."""
        return self.costs.seconds(1) * (self._cost(1 + length) - self._cost(1))

    def plain_seconds(self) -> float:
        """What a pass without a draft takes."""
        return self.costs.seconds(1) * self._cost(1)

    def _cost(self, rows: int) -> float:
        """Of a pass with so many rows of this sequence, in passes of one row."""
        least = max(self.least_rows, self._rows + 1)
        return self.costs.relative(max(self._rows + rows, least), least)

    def record(self, link: str, confidence: Sequence[float | None], accepted: int) -> None:
        """What became of a draft: ``accepted`` tokens were right, the next (if any) was wrong.

        Tokens after the first wrong one say nothing: they were never put to the question.
        """
        expected = self._promised(link, confidence)
        self._delivery.record(link, expected, accepted)
        gained = 1 + accepted / (self._tokens + 1.0)
        self._saved += gained - self._cost(1 + len(confidence)) / self._cost(1)
        for i, stated in enumerate(confidence[: accepted + 1]):
            self.acceptance.record(link, stated, i < accepted)

    def passed(self) -> None:
        """A pass is over, with or without a draft."""
        self._delivery.passed()


def _class(confidence: float | None) -> int | None:
    if confidence is None:
        return None
    odds = confidence / max(1.0 - confidence, 1e-6)
    step = round(math.log(max(odds, 1e-6)) * _STEPS_PER_LOG_ODD)
    return max(-_CLASS_LIMIT, min(_CLASS_LIMIT, step))
