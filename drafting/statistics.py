"""Counts and times of one answer, per drafter and per draft position."""

from __future__ import annotations

from msgspec import Struct


class DrafterCounts(Struct):
    """What one drafter did in an answer.

    ``proposals`` counts non-empty drafts, ``drafted`` the tokens in them and ``accepted`` those of
    them that became part of the answer. ``drafted_at[i]`` and ``accepted_at[i]`` count the same
    tokens by their place in the draft. The passes that verified its drafts, prefill apart, said
    ``pass_tokens`` tokens in ``draft_s`` + ``verify_s`` + ``rest_s`` seconds; plain decoding would
    have needed ``plain_s`` + ``rest_s`` for these, as far as its cost is known.
    """

    proposals: int = 0
    drafted: int = 0
    accepted: int = 0
    drafted_at: list[int] = []
    accepted_at: list[int] = []
    pass_tokens: int = 0
    draft_s: float = 0.0
    verify_s: float = 0.0
    rest_s: float = 0.0
    plain_s: float = 0.0

    def record(self, drafted: int, accepted: int) -> None:
        """Count one draft of ``drafted`` tokens of which the first ``accepted`` were kept."""
        self.proposals += 1
        self.drafted += drafted
        self.accepted += accepted
        for counts, n in ((self.drafted_at, drafted), (self.accepted_at, accepted)):
            counts.extend([0] * (n - len(counts)))
            for i in range(n):
                counts[i] += 1

    @property
    def speedup(self) -> float | None:
        """Of the passes it drafted for, over plain decoding; None where that was not measured."""
        took = self.draft_s + self.verify_s + self.rest_s
        return (self.plain_s + self.rest_s) / took if self.plain_s > 0 and took > 0 else None


class Statistics(Struct):
    """One answer in numbers. Times are in seconds, everything else counts tokens or passes.

    A drafted token counts as accepted only when it was kept: one cut off by a stop, a length cap
    or the end of the context was drafted but not accepted, and the token the target adds itself
    (the corrected or bonus token) is neither. ``completion_tokens`` includes the end token.
    ``undrafted`` counts the passes without a draft by the reason. ``plain_s`` is the time that plain
    decoding would have spent in the target for the same tokens, by what its passes cost just then;
    0 where nobody knows.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    first_pass_tokens: int = 0
    target_passes: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    plain_s: float = 0.0
    by_drafter: dict[str, DrafterCounts] = {}
    undrafted: dict[str, int] = {}

    @property
    def drafted(self) -> int:
        return sum(counts.drafted for counts in self.by_drafter.values())

    @property
    def accepted(self) -> int:
        return sum(counts.accepted for counts in self.by_drafter.values())

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted, or None when nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def tokens_per_pass(self) -> float | None:
        """Answer tokens per target pass; 1.0 without drafting, None before the first pass."""
        return self.completion_tokens / self.target_passes if self.target_passes else None

    @property
    def tokens_per_second(self) -> float | None:
        """Decode speed, prefill apart: the tokens after the first pass over the time they took."""
        tokens = self.completion_tokens - self.first_pass_tokens
        return tokens / self.decode_s if tokens > 0 and self.decode_s > 0 else None

    @property
    def rest_s(self) -> float:
        """Decoding time in neither drafters nor target: sampling, text, the way out."""
        return max(0.0, self.decode_s - self.draft_s - self.verify_s)

    @property
    def speedup(self) -> float | None:
        """Over plain decoding by its measured cost, which has the same rest to do; None if unknown."""
        return (
            (self.plain_s + self.rest_s) / self.decode_s if self.plain_s > 0 and self.decode_s > 0 else None
        )

    def record_draft(self, drafter: str, drafted: int, accepted: int) -> None:
        self.by_drafter.setdefault(drafter, DrafterCounts()).record(drafted, accepted)

    def record_silence(self, reason: str) -> None:
        self.undrafted[reason] = self.undrafted.get(reason, 0) + 1

    def as_report(self) -> dict[str, object]:
        """The flat form that ``slipstream chat --json`` prints."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "reused_tokens": self.reused_tokens,
            "completion_tokens": self.completion_tokens,
            "prefill_s": self.prefill_s,
            "decode_s": self.decode_s,
            "tokens_per_second": self.tokens_per_second,
            "target_passes": self.target_passes,
            "drafted": self.drafted,
            "accepted": self.accepted,
            "acceptance_rate": self.acceptance_rate,
            "tokens_per_pass": self.tokens_per_pass,
            "draft_s": self.draft_s,
            "verify_s": self.verify_s,
            "speedup": self.speedup,
            "undrafted": self.undrafted,
            "by_drafter": {
                name: {
                    "drafted": counts.drafted,
                    "accepted": counts.accepted,
                    "proposals": counts.proposals,
                    "drafted_at": counts.drafted_at,
                    "accepted_at": counts.accepted_at,
                    "speedup": counts.speedup,
                }
                for name, counts in self.by_drafter.items()
            },
        }
