"""Settings as a file that can be given away: to other machines and other people."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from app.lenient import converted
from app.settings import Settings

# What belongs to this machine or is too much for another: never in a file for others.
_OURS = ("model",)
_PATHS = ("draft_model", "lookup_cache", "models_folder")
_LARGEST_FILE = 4 << 20


class ImportProblem(Exception):
    """Nothing was read; says why in a sentence for a person."""


class Imported(NamedTuple):
    """``ignored`` names what was left out, each with the reason."""

    settings: Settings
    changed: int
    ignored: dict[str, str]


def exported(settings: Settings) -> bytes:
    """All settings but the chosen model. Access tokens are no settings, so none is in it."""
    values = msgspec.to_builtins(settings)
    for name in _OURS:
        del values[name]
    return msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"


def read_export(path: Path, present: Settings) -> Imported:
    """The settings in a file, over ``present`` ones: what it does not name stays. Raises ImportProblem."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ImportProblem(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if len(content) > _LARGEST_FILE:
        raise ImportProblem(f"{path.name} is too large to hold settings.")
    return imported(content, present, path.name)


def imported(content: bytes, present: Settings, name: str = "The file") -> Imported:
    """Raises ImportProblem for what holds no settings at all."""
    try:
        values = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ImportProblem(f"{name} holds no settings: {error}.") from error
    known = Settings.__struct_fields__
    if not any(key in known for key in values):
        raise ImportProblem(f"{name} holds no settings of Slipstream.")
    ignored = {key: "Slipstream has no such setting" for key in values if key not in known}
    for key in _OURS:
        if key in values:
            ignored[key] = "it is chosen on each machine"
    for key in _PATHS:
        given = values.get(key)
        if isinstance(given, str) and not Path(given).expanduser().exists():
            ignored[key] = "it is not on this machine"
    read, wrong = converted({key: value for key, value in values.items() if key not in ignored}, Settings)
    # What means nothing inside a setting costs that one value, a whole setting keeps what it was.
    ignored |= wrong
    taken = {key: getattr(read, key) for key in values if key in known and key not in ignored}
    settings = replace(present, **taken)
    changed = sum(getattr(settings, key) != getattr(present, key) for key in taken)
    return Imported(settings, changed, ignored)


def reset(settings: Settings) -> Settings:
    """Everything as it was at first, but for the chosen model."""
    return Settings(model=settings.model)
