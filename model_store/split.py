"""Names of the parts of a model that is split over several files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.IGNORECASE)
_MAX_PARTS = 1000


class SplitName(NamedTuple):
    """``number`` counts from 1."""

    stem: str
    number: int
    total: int
    parts: tuple[Path, ...]


def split_name(path: Path) -> SplitName | None:
    """Take ``stem-00001-of-00003.gguf`` apart; None when ``path`` is not named like a part."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return None
    number, count = int(match["number"]), int(match["count"])
    if not 1 <= number <= count <= _MAX_PARTS:
        return None
    parts = tuple(
        path.with_name(f"{match['stem']}-{part:05}-of-{count:05}{match['suffix']}")
        for part in range(1, count + 1)
    )
    return SplitName(match["stem"], number, count, parts)


def parts_of(path: Path) -> tuple[Path, ...]:
    """All files of the model that ``path`` is a file of, the first of them first."""
    split = split_name(path)
    return split.parts if split is not None else (path,)
