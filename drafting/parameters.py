"""Each drafter's parameters: type, default, range and words, declared once for settings, command line
and window. Names and defaults are llama.cpp's where it has the drafter."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

LongestDraft = Annotated[
    int,
    Meta(ge=1, le=64, title="Longest draft (n_max)", description="Drafts hold at most so many tokens."),
]
LeastProbability = Annotated[
    float,
    Meta(
        ge=0.0,
        le=1.0,
        title="Least probability (p_min)",
        description="A draft ends before it becomes less likely than this that all of it is right.",
    ),
]


class CacheParameters(Struct, frozen=True, kw_only=True):
    ngram_min: Annotated[
        int,
        Meta(ge=1, le=4, title="Shortest n-gram (ngram_min)", description="So few tokens may decide."),
    ] = 1
    ngram_max: Annotated[
        int,
        Meta(ge=1, le=4, title="Longest n-gram (ngram_max)", description="So many tokens are tried first."),
    ] = 4
    p_min: LeastProbability = 0.3  # replayed: with 0, drafts run on and halve the speed on a CPU

    def __post_init__(self) -> None:
        if self.ngram_min > self.ngram_max:
            raise ValueError(f"ngram_min ({self.ngram_min}) is larger than ngram_max ({self.ngram_max})")


class MapParameters(Struct, frozen=True, kw_only=True):
    n: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Key (n)",
            description="So many of the last tokens must be found again; fewer find more, and err more.",
        ),
    ] = 12
    m: Annotated[
        int, Meta(ge=1, le=64, title="Draft (m)", description="So many tokens that followed are drafted.")
    ] = 48
    min_hits: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Least hits (min_hits)",
            description="How often the key must have occurred before it is trusted.",
        ),
    ] = 1


class ModParameters(Struct, frozen=True, kw_only=True):
    n: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Key (n)",
            description="So many of the last tokens are looked up; a change empties the table.",
        ),
    ] = 24
    n_min: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Shortest draft (n_min)",
            description="Drafts that end before so many tokens are not made at all.",
        ),
    ] = 48
    n_max: LongestDraft = 64

    def __post_init__(self) -> None:
        if self.n_min > self.n_max:
            raise ValueError(f"n_min ({self.n_min}) is larger than n_max ({self.n_max})")


class SuffixParameters(Struct, frozen=True, kw_only=True):
    n_max: LongestDraft = 48
    p_min: LeastProbability = 0.3  # replayed: still faster than plain on a CPU, 2.4 times as fast on a GPU


class NeuralParameters(Struct, frozen=True, kw_only=True):
    n_max: LongestDraft = 3
    p_min: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Least probability (p_min)",
            description="A draft ends where the drafter's favourite token is less likely than this.",
        ),
    ] = 0.0


class LinkParameters(Struct, frozen=True, kw_only=True, rename="kebab"):
    """The parameters of every link, under its name."""

    cache: CacheParameters = CacheParameters()
    simple: MapParameters = MapParameters()
    map_k: MapParameters = MapParameters()
    map_k4v: MapParameters = MapParameters()
    mod: ModParameters = ModParameters()
    suffix: SuffixParameters = SuffixParameters()
    draft: NeuralParameters = NeuralParameters()
    eagle3: NeuralParameters = NeuralParameters()
    mtp: NeuralParameters = NeuralParameters()
    dflash: NeuralParameters = NeuralParameters()
    dspark: NeuralParameters = NeuralParameters()

    def of(self, link: str) -> Struct:
        """Raises AttributeError for a name that is no link's."""
        parameters: Struct = getattr(self, link.replace("-", "_"))
        return parameters


_UNSURE_ENDS = NeuralParameters(n_max=64, p_min=0.75)
_WHOLE_BLOCK = NeuralParameters(n_max=64, p_min=0.0)
AUTOMATIC = LinkParameters(
    cache=CacheParameters(p_min=0.02),
    suffix=SuffixParameters(p_min=0.02),
    draft=_UNSURE_ENDS,
    eagle3=_UNSURE_ENDS,
    mtp=_UNSURE_ENDS,
    dflash=_WHOLE_BLOCK,
    dspark=_WHOLE_BLOCK,
)
"""For automatic mode: the controller cuts what it is offered; a neural drafter, whose tokens take time,
stops where it is unsure."""
