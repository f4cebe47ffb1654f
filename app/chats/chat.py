"""What is known of a chat without its messages."""

from __future__ import annotations

import time

import msgspec
from msgspec import Struct

from app.chats.ids import new_id
from app.chats.sampling import SamplingChoice
from app.chats.titles import NO_TITLE, title_of


class Chat(Struct, kw_only=True, omit_defaults=True, eq=False):
    """``title`` is what a person gave it where ``title_given``, else what its first message says.

    ``system_prompt`` and ``sampling`` hold for this chat instead of the settings (None, or values
    left out); ``preset`` names where the sampling came from. ``folder`` is "" for none. ``draft`` is
    what stands in the composer. ``leaf`` is the id of the last message shown; ``place`` is where its
    reader was, a message's id and how many pixels of it were above the view, None at the end. Times are
    Unix seconds; ``deleted_at`` is set while a deletion can be taken back.
    """

    id: int = msgspec.field(default_factory=new_id)
    title: str = ""
    title_given: bool = False
    system_prompt: str | None = None
    preset: str | None = None
    sampling: SamplingChoice = SamplingChoice()
    pinned: bool = False
    folder: str = ""
    draft: str = ""
    leaf: int | None = None
    place: tuple[int, int] | None = None
    created_at: float = msgspec.field(default_factory=time.time)
    updated_at: float = msgspec.field(default_factory=time.time)
    deleted_at: float | None = None

    @property
    def label(self) -> str:
        """Its title in one short line; of a chat without one what its draft says."""
        return self.title or title_of(self.draft) or NO_TITLE
