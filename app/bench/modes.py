"""The ways of drafting that are compared: off, each link alone, the chain of all, and auto."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from app.protocol import DRAFTERS, NEURAL, DrafterName, DraftingParams
from drafting.parameters import NeuralParameters

OFF, CHAIN, AUTO = "off", "chain", "auto"

_LINKS: dict[str, DrafterName] = {name: name for name in DRAFTERS}


def mode_names(neural: Collection[str] = ()) -> tuple[str, ...]:
    """All modes, plain decoding first; of the neural links alone those named."""
    links = (name for name in DRAFTERS if name not in NEURAL or name in neural)
    return (OFF, *links, CHAIN, AUTO)


def drafting_of(mode: str, max_draft: int | None = None) -> DraftingParams:
    """What a request says to be answered in ``mode``, with drafts of at most ``max_draft`` (1 to 64)
    tokens. Raises KeyError for an unknown mode."""
    links = {OFF: (), CHAIN: DRAFTERS}
    if mode == AUTO:
        drafting = DraftingParams()
    else:
        drafting = DraftingParams(mode="manual", links=links[mode] if mode in links else (_LINKS[mode],))
    if max_draft is None:
        return drafting
    # A neural drafter stops at its own n_max, which is less than others may draft.
    neural = dict.fromkeys(NEURAL, NeuralParameters(n_max=max_draft))
    parameters = msgspec.structs.replace(drafting.parameters, **neural)
    return msgspec.structs.replace(drafting, max_draft=max_draft, parameters=parameters)
