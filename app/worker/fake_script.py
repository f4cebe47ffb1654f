"""What the scripted fake engine says and how it fails: the JSON file behind ``app.worker --fake``."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from app.protocol import Device

Crash = Literal["abort", "kill", "exit137", "segfault"]


class FakeReply(Struct, frozen=True, kw_only=True):
    """One scripted answer.

    ``text`` is cut into tokens of about four characters unless ``pieces`` gives them, or ``bytewise`` makes
    each of its bytes one; "{prompt}" in it stands for the last user message, "{model}" for the model's name,
    and "{sampling}", "{drafting}" and "{options}" for what the worker was told of them, as JSON. ``drafts``
    is a cycle of (drafted, accepted) per target pass, shown under the names in ``drafters`` in turn;
    ``link_fail`` is raised by the drafter from its third call on. ``crash`` happens before token ``at``;
    ``fail`` raises an engine error there.
    """

    text: str = "You said: {prompt}"
    pieces: tuple[str, ...] | None = None
    bytewise: bool = False
    tokens_per_second: float = 200.0
    prefill_s: float = 0.0
    drafts: tuple[tuple[int, int], ...] = ((0, 0),)
    drafters: tuple[str, ...] = ("cache", "map-k", "mod")
    link_fail: str | None = None
    crash: Crash | None = None
    fail: str | None = None
    at: int = 0


class FakeScript(Struct, frozen=True, kw_only=True):
    """Answers are given in turn and start over; ``asked`` has those to prompts of their own. ``noise_bytes``
    are written to stderr and to fd 1 before the worker is ready; ``load_s`` is how long a load takes, and
    ``fails`` names the only model whose load does what ``load_fail`` says. ``devices`` are said to be there.
    ``plain_tokens_per_second`` is what plain decoding is said to reach, None where nobody measured it."""

    replies: tuple[FakeReply, ...] = (FakeReply(),)
    asked: dict[str, FakeReply] = {}
    load_s: float = 0.0
    load_crash: Crash | None = None
    load_fail: str | None = None
    fails: str | None = None
    noise_bytes: int = 0
    n_ctx: int = 100_000
    devices: tuple[Device, ...] = ()
    plain_tokens_per_second: float | None = None
