"""How a chat's answers are drawn where that differs from the settings, and named sets of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from app.protocol import SamplingParams


class SamplingChoice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values that a chat has of its own; None takes the setting. Ranges are those of SamplingParams."""

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    repeat_penalty: Annotated[float, Meta(gt=0.0, le=10.0)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    penalty_last_n: Annotated[int, Meta(ge=-1, le=2**20)] | None = None

    def over(self, settings: SamplingParams) -> SamplingParams:
        """``settings`` with this choice's values in their places."""
        own = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(settings, **own)

    @property
    def is_empty(self) -> bool:
        """Everything is as in the settings."""
        return self == SamplingChoice()


class Preset(Struct, frozen=True, kw_only=True):
    """A named choice. ``system_prompt`` None leaves that of the chat alone; ``own`` presets are a
    person's, the others come with the program."""

    name: str
    help: str = ""
    sampling: SamplingChoice = SamplingChoice()
    system_prompt: str | None = None
    own: bool = True


BUILT_IN: tuple[Preset, ...] = (
    Preset(
        name="Precise",
        help="The likeliest words: for facts, code and text that must follow a form.",
        sampling=SamplingChoice(temperature=0.2, top_k=40, top_p=0.9, min_p=0.05),
        own=False,
    ),
    Preset(
        name="Balanced",
        help="Some variety without losing the thread: for everyday questions.",
        sampling=SamplingChoice(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05),
        own=False,
    ),
    Preset(
        name="Creative",
        help="Less likely words too: for stories and ideas.",
        sampling=SamplingChoice(temperature=1.1, top_k=0, top_p=1.0, min_p=0.05),
        own=False,
    ),
)
