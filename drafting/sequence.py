"""One answer in the making: its tokens, its place in the KV cache, its chain and its counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from drafting.chain import Chain
from drafting.distribution import DRAFTER, TARGET, Distribution, Noise
from drafting.statistics import Statistics
from drafting.target import TokenSource
from drafting.verification import Mode

FinishReason = Literal["stop", "length"]


@dataclass(eq=False)
class Sequence:
    """``seq`` is its slot in the target. ``computed`` of its ``tokens`` are in the KV cache.

    ``take`` is called for every committed token, in order, and returns "stop" when the answer ends
    with it. ``max_new`` None sets no limit but the context.
    """

    seq: int
    tokens: list[int]
    source: TokenSource
    chain: Chain
    noise: Noise
    mode: Mode
    take: Callable[[int], FinishReason | None]
    max_new: int | None = None
    max_draft: int = 8
    least_rows: int = 1  # exact mode: passes with fewer rows are padded
    top: int | None = None  # how many of the likeliest tokens are told beside each; None tells nothing
    most_rows: int = 0  # exact mode: no pass has more rows than this; 0 for no such limit
    computed: int = 0
    repeats: str | None = None  # the drafter whose wrong draft made the KV cache shorter than the text
    finished: FinishReason | None = None
    stats: Statistics = field(default_factory=Statistics)
    started: float | None = None  # the loop's clock at its first step
    decoding_since: float | None = None

    def __post_init__(self) -> None:
        self.n_prompt = len(self.tokens)
        self.stats.prompt_tokens = self.n_prompt
        self.stats.reused_tokens = self.computed

    @property
    def pending(self) -> int:
        """Tokens not yet in the KV cache; 1 while decoding."""
        return len(self.tokens) - self.computed

    def remaining(self, n_ctx: int) -> int:
        """Tokens the answer may still get."""
        room = n_ctx - len(self.tokens) - max(0, self.least_rows - 2)  # padding needs places as well
        if self.max_new is None:
            return room
        return min(room, self.max_new - (len(self.tokens) - self.n_prompt))

    def draw_draft(self, distribution: Distribution, position: int) -> int:
        """How its neural drafter draws from q.

        In reproducible mode with the target's own noise, so that the two agree as often as they
        can; otherwise with noise the target never uses, which rejection sampling needs.
        """
        stream = TARGET if self.mode == "reproducible" else DRAFTER
        return self.noise.draw(distribution, position, stream)
