"""What a field of a struct says of itself: title, help and range, for window and command line."""

from __future__ import annotations

from functools import cache

import msgspec.inspect
from msgspec import Struct


class Declared(Struct, frozen=True):
    """``is_whole``: an integer. ``minimum`` and ``maximum`` are None where there is no such limit."""

    name: str
    title: str
    help: str
    is_whole: bool = False
    minimum: float | None = None
    maximum: float | None = None


@cache
def declarations(kind: type[Struct]) -> dict[str, Declared]:
    """All fields of a struct, in order."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return {field.name: _declared(field.name, field.type) for field in info.fields}


def _declared(name: str, kind: msgspec.inspect.Type) -> Declared:
    words: dict[str, object] = {}
    if isinstance(kind, msgspec.inspect.Metadata):
        words = kind.extra_json_schema or {}
        kind = kind.type
    minimum: float | None = None
    maximum: float | None = None
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        minimum, maximum = kind.ge, kind.le
    return Declared(
        name,
        str(words.get("title", name)),
        str(words.get("description", "")),
        isinstance(kind, msgspec.inspect.IntType),
        minimum,
        maximum,
    )
