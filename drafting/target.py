"""What the loop asks of a target model; llama.cpp and the scripted fake both answer it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from drafting.distribution import Distribution


class Row(NamedTuple):
    """One token of a pass: its sequence, its position there, and whether its logits are wanted."""

    seq: int
    token: int
    pos: int
    output: bool


class TokenChance(NamedTuple):
    """How likely the model found a token before any sampler (natural logarithm), and the likeliest."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


class SavedState(Protocol):
    """What a target held of a sequence."""

    @property
    def n_bytes(self) -> int: ...

    def usable(self, length: int) -> int:
        """How many of its first ``length`` tokens there are once it is put back and cut there."""


class Target(Protocol):
    """A model with a KV cache per sequence. Sizes are in tokens."""

    @property
    def n_ctx(self) -> int:
        """Tokens a sequence can hold."""

    @property
    def n_vocab(self) -> int: ...

    @property
    def n_batch(self) -> int:
        """Rows of one pass."""

    @property
    def n_outputs(self) -> int:
        """Rows of one pass that may ask for logits."""

    @property
    def n_slots(self) -> int:
        """Sequences it holds; a draft is at most ``n_outputs - n_slots`` tokens long."""

    @property
    def saves_all(self) -> bool:
        """What ``save`` gives can be cut wherever the sequence itself could be."""

    def decode(self, rows: Sequence[Row]) -> None:
        """Run one pass. Raises Interrupted when it was stopped: ``rewind`` tells what is left then."""

    def rewind(self, seq: int, length: int) -> int:
        """Keep at most the first ``length`` tokens of a sequence, and say how many it has now.

        A memory that cannot be cut there goes back further, to 0 in the worst case.
        """

    def forget(self, seq: int) -> None:
        """Drop a whole sequence."""

    def save(self, seq: int, most_bytes: int) -> SavedState | None:
        """A copy of a sequence, None where it takes more than ``most_bytes``."""

    def restore(self, seq: int, saved: SavedState) -> int:
        """Put what ``save`` gave into any sequence, and say how many tokens that has now: 0 where it could
        not be done."""


class TokenSource(Protocol):
    """One sequence's view of a pass: the distribution its next token is drawn from."""

    def at(self, output: int, last: int | None) -> Distribution | int:
        """After the last pass's logits row ``output`` (counted over the rows with output); a bare
        token where it is certain.

        ``last`` is the answer's token before this place, None at the answer's beginning. Each place
        is asked for once, in order, and never behind a rejected token: so a source may follow the
        text by it (penalties, grammar) and has nothing to take back.
        """

    def chance(self, output: int, token: int, top: int) -> TokenChance:
        """How likely ``token`` was in the last pass's logits row ``output``, and the ``top`` likeliest."""
