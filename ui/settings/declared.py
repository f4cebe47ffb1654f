"""The settings' declarations, with what a person should know before a change."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from app.declaration import Declared, declarations
from app.settings import Settings

# Changing one of these puts the model into memory again.
RELOADS = frozenset({"draft_model", "n_ctx", "n_threads", "chat_templates", "learn", "lookup_cache"})


@cache
def declared(name: str) -> Declared:
    """Raises KeyError for a name that is no setting."""
    words = declarations(Settings)[name]
    return replace(words, help=f"{words.help} Loads the model again.") if name in RELOADS else words
