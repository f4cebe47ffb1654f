"""The ways of drafting that are compared: off, each link alone, the chain of all, and auto."""

from __future__ import annotations

from collections.abc import Collection

from app.protocol import DRAFTERS, NEURAL, DrafterName, DraftingParams

OFF, CHAIN, AUTO = "off", "chain", "auto"

_LINKS: dict[str, DrafterName] = {name: name for name in DRAFTERS}


def mode_names(neural: Collection[str] = ()) -> tuple[str, ...]:
    """All modes, plain decoding first; of the neural links alone those named."""
    links = (name for name in DRAFTERS if name not in NEURAL or name in neural)
    return (OFF, *links, CHAIN, AUTO)


def drafting_of(mode: str) -> DraftingParams:
    """What a request says to be answered in ``mode``. Raises KeyError for an unknown one."""
    if mode == AUTO:
        return DraftingParams()
    links = {OFF: (), CHAIN: DRAFTERS}
    return DraftingParams(mode="manual", links=links[mode] if mode in links else (_LINKS[mode],))
