"""Title, help, range and choices of each setting, read from its one declaration in app.settings."""

from __future__ import annotations

from functools import cache

import msgspec.inspect
from msgspec import Struct

from app.settings import Settings

# Changing one of these puts the model into memory again.
RELOADS = frozenset({"draft_model", "n_ctx", "n_threads", "chat_templates"})


class Declared(Struct, frozen=True):
    name: str
    title: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@cache
def declared(name: str) -> Declared:
    """Raises KeyError for a name that is no setting."""
    info = msgspec.inspect.type_info(Settings)
    assert isinstance(info, msgspec.inspect.StructType)
    field = {field.name: field for field in info.fields}[name]
    kind: msgspec.inspect.Type = field.type
    words: dict[str, object] = {}
    if isinstance(kind, msgspec.inspect.Metadata):
        words = kind.extra_json_schema or {}
        kind = kind.type
    help = str(words.get("description", ""))
    if name in RELOADS:
        help += " Loads the model again."
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        minimum, maximum = kind.ge, kind.le
    elif isinstance(kind, msgspec.inspect.LiteralType):
        choices = tuple(str(value) for value in kind.values)
    return Declared(name, str(words.get("title", name)), help.strip(), minimum, maximum, choices)
