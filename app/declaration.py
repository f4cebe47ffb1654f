"""What a field of a struct says of itself: title, help, range and place, for window and command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec.inspect
from msgspec import Meta, Struct

Control = Literal["switch", "whole", "decimal", "share", "choice", "text", "file", "folder"]


class Declared(Struct, frozen=True):
    """``minimum`` and ``maximum`` are None where there is no such limit.

    ``group`` is where it is shown, "" for what is not shown. ``control`` names what it is changed with, one
    of Control or an editor of its own. ``choices`` are values with their words. ``least`` is what the
    minimum is called. ``part_of`` names the field in whose row it is shown, ``only_if`` a field and the
    value of it that this one is for. ``reloads``: a change needs the model to be loaded again.
    ``is_name``: a number that counts nothing, and is written without separators.
    """

    name: str
    title: str
    help: str
    control: str = "text"
    minimum: float | None = None
    maximum: float | None = None
    group: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: str = ""
    unit: str = ""
    step: float = 0
    part_of: str | None = None
    only_if: tuple[str, str] | None = None
    reloads: bool = False
    is_name: bool = False

    @property
    def is_whole(self) -> bool:
        """An integer."""
        return self.control == "whole"


def setting(
    group: str,
    title: str,
    help: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    control: str | None = None,
    choices: Mapping[str, str] | None = None,
    least: str = "",
    unit: str = "",
    step: float = 0,
    part_of: str | None = None,
    only_if: tuple[str, str] | None = None,
    reloads: bool = False,
    is_name: bool = False,
) -> Meta:
    """A declaration to annotate a field with; see Declared for the words."""
    extra = {
        "group": group,
        "control": control,
        "choices": tuple((choices or {}).items()),
        "least": least,
        "unit": unit,
        "step": step,
        "part_of": part_of,
        "only_if": only_if,
        "reloads": reloads,
        "is_name": is_name,
    }
    return Meta(ge=ge, le=le, title=title, description=help, extra=extra)


@cache
def declarations(kind: type[Struct]) -> dict[str, Declared]:
    """All fields of a struct, in order."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return {field.name: _declared(field.name, field.type) for field in info.fields}


def _declared(name: str, kind: msgspec.inspect.Type) -> Declared:
    words: dict[str, object] = {}
    extra: dict[str, object] = {}
    if isinstance(kind, msgspec.inspect.Metadata):
        words = kind.extra_json_schema or {}
        extra = {key: value for key, value in (kind.extra or {}).items() if value is not None}
        kind = kind.type
    limits = {}
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        limits = {"minimum": kind.ge, "maximum": kind.le}
    return msgspec.convert(
        {
            "name": name,
            "title": words.get("title", name),
            "help": words.get("description", ""),
            "control": _control(kind),
            **limits,
            **extra,
        },
        Declared,
    )


def _control(kind: msgspec.inspect.Type) -> Control:
    match kind:
        case msgspec.inspect.BoolType():
            return "switch"
        case msgspec.inspect.IntType():
            return "whole"
        case msgspec.inspect.FloatType():
            return "decimal"
        case msgspec.inspect.LiteralType():
            return "choice"
        case _:
            return "text"
