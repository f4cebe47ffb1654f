"""Why a pass had no draft, in words for a person."""

from __future__ import annotations

from msgspec import Struct


class Silence(Struct, frozen=True):
    """``reason`` is one of a few phrases, ``detail`` a sentence that may hold figures of the moment."""

    reason: str
    detail: str


OFF = Silence("switched off", "No drafter is switched on.")
NO_ROOM = Silence("no room for a draft", "The pass, or the rest of the answer, has room for one token only.")
NO_OFFER = Silence("no drafter has an offer", "No drafter finds anything that it could continue from.")
UNPAID = "a draft would not pay"
PAUSED = "paused: low acceptance"
FAILED = "all drafters are off"
