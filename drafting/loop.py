"""The generation loop: one target pass for every active sequence, drafts verified in it.

Prompt, draft, verify, commit, emit, for a list of sequences. The last piece of a prompt already
yields the first token, so prefill and decoding are one thing: a pass computes pending tokens, and
where it computes the last of them the sequence gets what its draft and the target agree on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from drafting.cost import CostCurve
from drafting.distribution import Distribution
from drafting.drafter import NO_DRAFT, Draft, Interrupted
from drafting.sequence import Sequence
from drafting.silence import Silence
from drafting.target import Row, Target, TokenChance
from drafting.thread_count import ThreadCount
from drafting.verification import verify

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """What one pass did for one sequence.

    No ``tokens`` means that the prompt is still being read: ``prefilled`` of it are computed.
    ``drafter`` names whose draft was verified; the first ``accepted`` of ``tokens`` are its. Where
    there could have been a draft and was none, ``silence`` says why. ``chances`` are those of ``tokens``,
    where they were asked for. After ``error`` the loop has dropped
    the sequence, and its KV cache is not to be trusted.
    """

    sequence: Sequence
    prefilled: int
    tokens: list[int]
    drafter: str | None = None
    drafted: int = 0
    accepted: int = 0
    silence: Silence | None = None
    error: Exception | None = None
    chances: tuple[TokenChance, ...] = ()


class _Times(NamedTuple):
    """When a pass began, its drafts were made, it was computed, and all was committed: seconds."""

    began: float
    drafted: float
    decoded: float
    ended: float


class _Plan(NamedTuple):
    sequence: Sequence
    take: int  # pending tokens in this pass
    draft: Draft
    known: int  # leading draft tokens that the target can compute
    drafter: str | None
    padding: int  # rows behind the draft that are thrown away
    output: int | None  # index of its first logits row; None while its prompt is not complete
    repeats: str | None  # whose wrong draft made it compute tokens again


class Loop:
    """Drives one target. Give it sequences with ``add`` and call ``step`` while ``busy``."""

    def __init__(
        self,
        target: Target,
        clock: Callable[[], float],
        costs: CostCurve | None = None,
        threads: ThreadCount | None = None,
    ) -> None:
        """``clock`` returns seconds and is only used to tell how long things took; ``costs`` learns
        from every pass that reads no prompt, and ``threads`` from those whose last bits may differ."""
        self._target = target
        self._clock = clock
        self._costs = costs
        self._threads = threads
        self._active: list[Sequence] = []

    @property
    def busy(self) -> bool:
        return bool(self._active)

    def add(self, sequence: Sequence) -> None:
        """The sequence must have a token that is not computed, and room for one more."""
        sequence.chain.begin(sequence.tokens)
        self._active.append(sequence)
        if self._threads is not None and sequence.mode == "reproducible":
            self._threads.hold()

    def remove(self, sequence: Sequence) -> None:
        """Stop working on a sequence; its KV cache stays as it is, ``computed`` tokens long."""
        if sequence in self._active:
            self._active.remove(sequence)

    def step(self) -> list[Step]:
        """Run one pass and return what it did.

        Raises Interrupted when the pass was stopped, and whatever else the target raises; the
        sequences' tokens then are what they were before. What goes wrong with one sequence alone is
        in its Step.
        """
        began = self._clock()
        plans, rows = self._plan(began)
        drafted = self._clock()
        try:
            self._target.decode(rows)
        except Interrupted:
            for plan in plans:
                plan.sequence.computed = self._target.rewind(plan.sequence.seq, plan.sequence.computed)
            raise
        decoded = self._clock()
        if self._costs is not None and all(plan.take == 1 for plan in plans):
            self._learn(self._costs, len(rows), decoded - drafted, decoded)
        steps = [self._commit_or_fail(plan) for plan in plans]
        times = _Times(began, drafted, decoded, self._clock())
        is_plain = all(plan.take == 1 and plan.drafter is None for plan in plans)
        for plan, step in zip(plans, steps, strict=True):
            self._account(plan, len(step.tokens), times, len(plans), is_plain)
        self._active = [
            step.sequence for step in steps if step.sequence.finished is None and step.error is None
        ]
        return steps

    def _commit_or_fail(self, plan: _Plan) -> Step:
        """What goes wrong with one sequence (a grammar that allows nothing) is no other's trouble."""
        try:
            return self._commit(plan)
        except Exception as error:
            log.exception("a sequence failed")
            return Step(plan.sequence, plan.sequence.n_prompt, [], error=error)

    def _learn(self, costs: CostCurve, rows: int, seconds: float, now: float) -> None:
        if self._threads is not None and all(s.mode != "reproducible" for s in self._active):
            self._threads.passed(costs.slowdown(rows, seconds), now)
        costs.observe(rows, seconds)

    def _plan(self, now: float) -> tuple[list[_Plan], list[Row]]:
        """Share the pass among the sequences: pending tokens first, then drafts where they are due."""
        takes = self._takes(now)
        drafts = self._drafts(takes)
        plans: list[_Plan] = []
        rows: list[Row] = []
        outputs = 0
        for sequence, take, (draft, known, drafter) in zip(self._active, takes, drafts, strict=True):
            complete = take == sequence.pending
            seq, start = sequence.seq, sequence.computed
            end = start + take
            last = end - 1 if complete else -1
            tokens = sequence.tokens
            rows += [Row(seq, tokens[pos], pos, pos == last) for pos in range(start, end)]
            if known:
                rows += [Row(seq, t, end + i, True) for i, t in enumerate(draft.tokens[:known])]
            output = outputs if complete else None
            plans.append(_Plan(sequence, take, draft, known, drafter, 0, output, sequence.repeats))
            if complete:
                outputs += 1 + known
        return plans, rows + self._padding(plans, len(rows))

    def _takes(self, now: float) -> list[int]:
        """How many pending tokens of each sequence this pass computes: an equal share of its rows."""
        takes: list[int] = []
        left = self._target.n_batch
        for place, sequence in enumerate(self._active):
            if sequence.started is None:
                sequence.started = now
            take = self._piece(sequence, left // (len(self._active) - place))
            takes.append(take)
            left -= take
        return takes

    def _drafts(self, takes: list[int]) -> list[tuple[Draft, int, str | None]]:
        """A draft for each sequence, where one is due, in the room that pending tokens leave.

        Each chain hears what the pass holds besides: a draft that pays alone may hold up the others.
        """
        target = self._target
        complete = [take == s.pending for s, take in zip(self._active, takes, strict=True)]
        rows, tokens = sum(takes), float(sum(complete))
        room = min(target.n_batch - rows, target.n_outputs - sum(complete))
        drafts: list[tuple[Draft, int, str | None]] = []
        for sequence, is_complete in zip(self._active, complete, strict=True):
            if not is_complete or sequence.pending != 1:
                drafts.append((NO_DRAFT, 0, None))
                continue
            chain = sequence.chain
            chain.beside(rows - 1, tokens - 1.0)
            made = self._draft(sequence, min(room, target.n_outputs - target.n_slots))
            drafts.append(made)
            if made[1]:
                room -= made[1]
                rows += made[1]
                tokens += chain.expected - 1.0
        return drafts

    def _piece(self, sequence: Sequence, share: int) -> int:
        """Pending tokens for this pass, of ``share`` rows.

        Large passes compute other last bits than small ones. So in exact mode a prompt is read in
        blocks whose places do not depend on what the KV cache had of it, and its last token, which
        starts the answer, belongs to the passes of the answer.
        """
        if not sequence.most_rows or sequence.pending == 1:
            return min(sequence.pending, share)
        block = self._target.n_batch - sequence.computed % self._target.n_batch
        return min(sequence.pending - 1, share, block)

    def _padding(self, plans: list[_Plan], n_rows: int) -> list[Row]:
        """Rows to throw away, where exact mode wants passes of more rows than this one has.

        They repeat a sequence's last token behind its draft and are rewound with what is rejected.
        """
        missing = max((p.sequence.least_rows for p in plans), default=1) - n_rows
        if missing <= 0:
            return []
        for place, plan in enumerate(plans):
            sequence = plan.sequence
            end = sequence.computed + plan.take + plan.known
            if end + missing <= self._target.n_ctx:
                plans[place] = plan._replace(padding=missing)
                # Their logits are wanted too: the output layer must see as many rows as any other.
                last = sequence.tokens[-1]
                return [Row(sequence.seq, last, end + i, True) for i in range(missing)]
        return []

    def _draft(self, sequence: Sequence, room: int) -> tuple[Draft, int, str | None]:
        """A draft that fits the pass and the answer, how much of it the target knows, who made it.

        A padded vocabulary may hold ids the target has not. The first of them ends the draft but
        stays in it to be rejected: were it left out for what it is, the token said in its place
        would no longer follow p.
        """
        room = min(room, sequence.most_rows - 1) if sequence.most_rows else room
        limit = min(sequence.max_draft, room, sequence.remaining(self._target.n_ctx) - 1)
        draft, drafter = sequence.chain.propose(limit, sequence.draw_draft)
        if not draft.tokens:
            return NO_DRAFT, 0, None
        unknown = (i for i, t in enumerate(draft.tokens) if not 0 <= t < self._target.n_vocab)
        known = next(unknown, len(draft))
        return draft.cut(known + 1), known, drafter

    def _commit(self, plan: _Plan) -> Step:
        sequence, draft = plan.sequence, plan.draft
        sequence.computed += plan.take
        if plan.output is None:
            if plan.padding:
                self._rewind(plan, 0)
            return Step(sequence, min(sequence.computed, sequence.n_prompt), [])
        first, source, drafted = plan.output, sequence.source, draft.tokens
        position = len(sequence.tokens)
        before = sequence.tokens[-1] if position > sequence.n_prompt else None
        targets: list[Distribution] = []

        def target(i: int) -> Distribution | int:
            p = source.at(first + i, drafted[i - 1] if i else before)
            if draft.learn is not None and not isinstance(p, int):
                targets.append(p)
            return p

        verified = verify(draft, target, sequence.noise, position, sequence.mode)
        if draft.learn is not None:
            draft.learn(targets)
        kept = self._keep(sequence, verified.tokens)
        accepted = min(verified.accepted, len(kept))
        chances: tuple[TokenChance, ...] = ()
        if sequence.top is not None:
            top = sequence.top
            chances = tuple(source.chance(first + i, token, top) for i, token in enumerate(kept))
        silence = sequence.chain.silence if plan.drafter is None and plan.take == 1 else None
        # Links are judged by what the target agreed with, also where the answer ended before.
        sequence.chain.commit(kept, len(draft), verified.accepted)
        sequence.stats.target_passes += 1
        sequence.stats.completion_tokens += len(kept)
        if plan.drafter is not None:
            sequence.stats.record_draft(plan.drafter, len(draft), accepted)
        elif silence is not None:
            sequence.stats.record_silence(silence.reason)
        self._rewind(plan, accepted)
        return Step(
            sequence, sequence.n_prompt, kept, plan.drafter, len(draft), accepted, silence, chances=chances
        )

    def _keep(self, sequence: Sequence, tokens: list[int]) -> list[int]:
        """Add tokens to the answer until it ends; nothing after its end ever happened."""
        kept: list[int] = []
        for token in tokens:
            kept.append(token)
            sequence.tokens.append(token)
            sequence.finished = sequence.take(token)
            if sequence.finished is None and sequence.remaining(self._target.n_ctx) <= 0:
                sequence.finished = "length"
            if sequence.finished is not None:
                break
        return kept

    def _rewind(self, plan: _Plan, accepted: int) -> None:
        """Cut what was rejected, or was only there to fill the pass, out of the KV cache.

        A memory that cannot be cut there has gone back further, and the tokens between are computed
        again with the next pass. One that went back behind this pass would do so after every wrong
        draft, so nothing is drafted for this sequence any more.
        """
        sequence = plan.sequence
        began = sequence.computed - plan.take
        sequence.computed += accepted
        sequence.repeats = None
        if plan.known + plan.padding == accepted:
            return
        left = self._target.rewind(sequence.seq, sequence.computed)
        if left < sequence.computed:
            sequence.computed = left
            sequence.repeats = plan.drafter
        if left < began:
            sequence.chain.switch_off_all("this model's memory cannot drop rejected tokens")

    def _account(self, plan: _Plan, tokens: int, times: _Times, n_sequences: int, is_plain: bool) -> None:
        """``is_plain``: nobody drafted in this pass, so that it tells itself what plain decoding costs."""
        sequence = plan.sequence
        began, drafted, decoded, ended = times
        stats = sequence.stats
        if sequence.decoding_since is None:
            assert sequence.started is not None
            stats.prefill_s = ended - sequence.started
            if stats.target_passes:
                sequence.decoding_since = ended
                stats.first_pass_tokens = stats.completion_tokens
            return
        draft_s, verify_s = drafted - began, decoded - drafted
        plain_s = 0.0
        if self._costs is not None:
            least = max(sequence.least_rows, n_sequences)
            plain_s = tokens * (verify_s if is_plain else self._costs.seconds(least))
        stats.decode_s = ended - sequence.decoding_since
        stats.draft_s += draft_s
        stats.verify_s += verify_s
        stats.plain_s += plain_s
        if plan.drafter is not None:
            counts = stats.by_drafter[plan.drafter]
            counts.pass_tokens += tokens
            counts.draft_s += draft_s
            counts.verify_s += verify_s
            counts.rest_s += ended - decoded
            counts.plain_s += plain_s
        elif plan.repeats is not None:
            # What its wrong draft costs on top.
            stats.by_drafter[plan.repeats].verify_s += max(0.0, verify_s - plain_s)
