"""What the engine asks of a model in memory, whatever computes behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.protocol import (
    DraftingParams,
    FailureKind,
    Generate,
    Load,
    ModelReport,
    RequestPart,
    SamplingParams,
)
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import Drafter
from drafting.exact import ExactRows
from drafting.history import History
from drafting.target import Target, TokenSource
from drafting.thread_count import ThreadCount

NO_EXACT = (
    "Exact mode is not to be had with this model on this machine: no two sizes of a pass compute the very "
    "same. This is answered without it."
)


class EngineError(Exception):
    """A request that cannot be served, in words for the person who sent it."""

    def __init__(self, kind: FailureKind, message: str, about: RequestPart | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.about = about


class NoExact(Exception):
    """Exact mode is not to be had; says why in a sentence for a person."""


@dataclass(frozen=True)
class Prepared:
    """What a model makes of a request. ``closing``: the tag ending thoughts that the prompt opened;
    ``grammar``: what the answer must follow, in a form that the model's ``source`` understands;
    ``begun``: tokens of the beginning of the answer, which the prompt ends with, where they are known."""

    tokens: list[int]
    end_tokens: frozenset[int]
    stops: tuple[str, ...] = ()
    closing: str | None = None
    grammar: str | None = None
    notices: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


class LoadedModel(Protocol):
    """A model in memory, with everything that depends on what kind of model it is."""

    @property
    def report(self) -> ModelReport: ...

    @property
    def target(self) -> Target: ...

    def prepare(self, request: Generate) -> Prepared:
        """Raises EngineError for a request that this model cannot take."""

    def source(self, sampling: SamplingParams, prepared: Prepared) -> ClosableSource:
        """Where the next token's distribution comes from, for one request. Raises EngineError."""

    def links(self, slot: int, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        """A slot's own drafters that can draft for this model, in the order asked for."""

    def history(self, slot: int) -> History | None:
        """What a slot's links share to look things up in."""

    @property
    def controller(self) -> Controller | None:
        """Decides in automatic mode; None where there is nothing to decide."""

    @property
    def costs(self) -> CostCurve | None:
        """What its passes cost, learned while running; None where nobody measures."""

    @property
    def threads(self) -> ThreadCount | None:
        """Shares the machine with other programs; None where it has no threads of its own."""

    def exact_rows(self) -> ExactRows:
        """Pass sizes that compute the very same, found out when first asked. Raises NoExact."""

    def token_bytes(self, token: int) -> bytes: ...

    def answered(self, text: str, tokens: Sequence[int]) -> None:
        """An answer ended: its visible text and the tokens it was made of."""

    def learn(self, tokens: Sequence[int]) -> None:
        """An answer ended by itself: the tokens of what was said, thoughts apart. Costs no time."""

    def settle(self) -> bool:
        """Do one piece of what no answer should wait for. False when there is nothing to do."""

    def abort(self) -> None:
        """Stop the running pass; may be called from any thread."""

    def allow(self) -> None:
        """Let passes run again."""

    def close(self) -> None: ...


class Embedder(Protocol):
    """An embedding model in memory."""

    @property
    def report(self) -> ModelReport: ...

    def embed(self, texts: Sequence[str]) -> tuple[tuple[bytes, ...], int]:
        """A vector for each text (see Embedded), and the tokens read. Raises EngineError, Interrupted."""

    def abort(self) -> None: ...

    def allow(self) -> None: ...

    def close(self) -> None: ...


class ClosableSource(TokenSource, Protocol):
    def close(self) -> None: ...


Loader = Callable[[Load, Callable[[float], bool]], LoadedModel | Embedder]
"""Loads a model, reporting the fraction done to a callback that returns False to cancel. Raises
EngineError."""
