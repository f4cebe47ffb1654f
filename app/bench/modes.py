"""The ways of drafting that are compared: off, each link alone, the chain of all, and auto."""

from __future__ import annotations

from app.protocol import DRAFTERS, DrafterName, DraftingParams

OFF, CHAIN, AUTO = "off", "chain", "auto"

_LINKS: dict[str, DrafterName] = {name: name for name in DRAFTERS}


def mode_names(*, draft_model: bool) -> tuple[str, ...]:
    """All modes, plain decoding first; the link ``draft`` alone only where there is a draft model."""
    links = (name for name in DRAFTERS if draft_model or name != "draft")
    return (OFF, *links, CHAIN, AUTO)


def drafting_of(mode: str) -> DraftingParams:
    """What a request says to be answered in ``mode``. Raises KeyError for an unknown one."""
    if mode == AUTO:
        return DraftingParams()
    links = {OFF: (), CHAIN: DRAFTERS}
    return DraftingParams(mode="manual", links=links[mode] if mode in links else (_LINKS[mode],))
