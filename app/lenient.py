"""Reading a struct so that a value that means nothing costs only itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

_AnyStruct = TypeVar("_AnyStruct", bound=Struct)


def converted(values: Mapping[str, object], kind: type[_AnyStruct]) -> tuple[_AnyStruct, dict[str, str]]:
    """A struct of every value that still means something; the others have their defaults, and are named
    with the reason, such as "parameters.map-k.m". Names that the struct does not have are left out."""
    ignored: dict[str, str] = {}
    return _converted(values, kind, "", ignored), ignored


def _converted(
    values: Mapping[str, object], kind: type[_AnyStruct], where: str, ignored: dict[str, str]
) -> _AnyStruct:
    kept: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        value, name = values[field.encode_name], f"{where}{field.encode_name}"
        inner = type(field.default)
        try:
            if issubclass(inner, Struct) and isinstance(value, dict):
                kept[field.name] = _converted(value, inner, f"{name}.", ignored)
            else:
                kept[field.name] = msgspec.convert(value, field.type)
        except (msgspec.ValidationError, ValueError) as error:
            ignored[name] = str(error)
    return kind(**kept)
