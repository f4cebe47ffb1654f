"""The suffix drafter: the longest earlier match of the text's end, and what followed it.

In the spirit of suffix decoding (Oliaro et al. 2024), over this chat and this person's earlier
answers, with hash chains and a sorted index in place of a suffix tree: the longest match leads, and
the other matches vote on how sure to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from drafting.drafter import NO_DRAFT, Draft, Draw, IndexDrafter
from drafting.history import History, common_prefix
from drafting.parameters import SuffixParameters
from drafting.past_answers import LONGEST_MATCH, PastAnswers

# n and how many matches are looked at. A long key finds the matches that matter among many; the
# short ones are for where it finds none.
_KEYS = ((8, 8), (3, 16), (1, 8))
# Log odds that a drafted token is right: a base, then by the logarithms of matched tokens, of matches
# that agree, and of one more than those that contradict it. Fitted by logistic regression to recorded
# answers of small models, at the places where a draft is due; boosted trees that also see the
# target's own certainty know hardly more.
_RIGHT = (-0.62, 1.10, 1.30, -1.22)
# The same for matches in earlier answers, which know less of what is being said.
_RIGHT_IN_PAST = (-1.52, 1.43, 0.60, -1.20)
_PAST_MATCHES = 8
# A match in this chat is only passed over for a longer one of so many tokens.
_LEAST_PAST_MATCH = 4


class Suffix(IndexDrafter):
    name = "suffix"
    doubt = 0.7  # what it says was fitted

    def __init__(
        self, history: History | None = None, longest: int = 48, past: PastAnswers | None = None
    ) -> None:
        """``past``: earlier answers, shared by all chats: the second place to look."""
        super().__init__(history)
        self.longest = longest
        self._past = past
        self._p_min = 0.0

    def configure(self, parameters: SuffixParameters) -> None:
        """For the next answers."""
        self.longest, self._p_min = parameters.n_max, parameters.p_min

    def propose(self, limit: int, draw: Draw) -> Draft:
        limit = min(limit, self.longest)
        matches = self._matches()
        length = matches[0][1] if matches else 0
        if self._past is not None and length < LONGEST_MATCH and len(self._past):
            least = max(_LEAST_PAST_MATCH, length + 1) if matches else 1
            past = self._past.matches(self.history.tokens[-LONGEST_MATCH:], _PAST_MATCHES, least)
            if past:
                length = past[0][1]
                follow = [self._past.following(place, limit) for place, n in past if 2 * n >= length]
                return self._draft(follow[0], follow[1:], length, _RIGHT_IN_PAST)
        if not matches:
            return NO_DRAFT
        lead = self.history.following(matches[0][0], limit)
        return self._draft(lead, [self._after(place, lead) for place, _ in matches[1:]], length, _RIGHT)

    def _draft(self, lead: list[int], others: list[list[int]], length: int, right: Sequence[float]) -> Draft:
        """``lead`` followed a match of ``length`` tokens, ``others`` followed further ones.

        A match has a say until it first contradicts the draft, or until its own text is over.
        """
        ends = [0] * (len(lead) + 1)  # matches whose say ends before token i
        against = [0] * (len(lead) + 1)  # those that contradict it there
        for other in others:
            same = common_prefix(lead, other)
            ends[same] += 1
            against[same] += same < len(other)
        base, per_length, per_vote, per_objection = right
        agreeing = 1 + len(others)
        confidence: list[float] = []
        reached = 1.0
        for i in range(len(lead)):
            agreeing -= ends[i]
            odds = base + per_length * log(length + i) + per_vote * log(agreeing)
            if against[i]:
                odds += per_objection * log(1 + against[i])
            sure = 1 / (1 + exp(-odds))
            reached *= sure
            if reached < self._p_min:
                break
            confidence.append(sure)
        return Draft(lead[: len(confidence)], confidence=confidence)

    def _after(self, place: int, lead: list[int]) -> list[int]:
        """What follows ``place``. A match that runs into the end goes on with the draft itself."""
        tokens = self.history.tokens
        follow = tokens[place : place + len(lead)]
        return follow + lead[: len(lead) - len(follow)]

    def _matches(self) -> list[tuple[int, int]]:
        """(place, matched tokens) of earlier matches, longest first and newest first among equals."""
        tokens = self.history.tokens
        wanted = tokens[-LONGEST_MATCH:]
        for n, most in _KEYS:
            places = self.history.earlier(n, most)
            if places:
                matches = [(place, self._matched(place, n, wanted)) for place in places]
                matches.sort(key=lambda match: -match[1])
                return matches
        return []

    def _matched(self, place: int, n: int, wanted: list[int]) -> int:
        """How many tokens before ``place`` equal those at the end; the last n are known to."""
        tokens = self.history.tokens
        longest = min(LONGEST_MATCH, place)
        if longest == LONGEST_MATCH and tokens[place - longest : place] == wanted:
            return longest
        end = len(tokens)
        while n < longest and tokens[place - n - 1] == tokens[end - n - 1]:
            n += 1
        return n
