"""The numbers of an answer that was written in several goes."""

from __future__ import annotations

from itertools import zip_longest

from drafting.statistics import DrafterCounts, Statistics


def joined(first: Statistics, then: Statistics) -> Statistics:
    """Both together, as if the answer had been written in one go: its prompt is that of the first, all
    else adds up."""
    undrafted = dict(first.undrafted)
    for reason, passes in then.undrafted.items():
        undrafted[reason] = undrafted.get(reason, 0) + passes
    by_drafter = dict(first.by_drafter)
    for name, counts in then.by_drafter.items():
        by_drafter[name] = _counts(by_drafter[name], counts) if name in by_drafter else counts
    return Statistics(
        prompt_tokens=first.prompt_tokens,
        reused_tokens=first.reused_tokens,
        completion_tokens=first.completion_tokens + then.completion_tokens,
        first_pass_tokens=first.first_pass_tokens + then.first_pass_tokens,
        target_passes=first.target_passes + then.target_passes,
        prefill_s=first.prefill_s,
        decode_s=first.decode_s + then.decode_s,
        draft_s=first.draft_s + then.draft_s,
        verify_s=first.verify_s + then.verify_s,
        # What plain decoding would have taken is known of all or of none.
        plain_s=first.plain_s + then.plain_s if first.plain_s > 0 and then.plain_s > 0 else 0.0,
        by_drafter=by_drafter,
        undrafted=undrafted,
    )


def _counts(first: DrafterCounts, then: DrafterCounts) -> DrafterCounts:
    return DrafterCounts(
        proposals=first.proposals + then.proposals,
        drafted=first.drafted + then.drafted,
        accepted=first.accepted + then.accepted,
        drafted_at=_sums(first.drafted_at, then.drafted_at),
        accepted_at=_sums(first.accepted_at, then.accepted_at),
        pass_tokens=first.pass_tokens + then.pass_tokens,
        draft_s=first.draft_s + then.draft_s,
        verify_s=first.verify_s + then.verify_s,
        rest_s=first.rest_s + then.rest_s,
        plain_s=first.plain_s + then.plain_s if first.plain_s > 0 and then.plain_s > 0 else 0.0,
    )


def _sums(first: list[int], then: list[int]) -> list[int]:
    return [a + b for a, b in zip_longest(first, then, fillvalue=0)]
