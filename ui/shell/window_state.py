"""Where the window was and what it showed: a small file of its own, so that settings hold only choices."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from app import paths
from model_store.files import write_atomically

log = logging.getLogger(__name__)

DEFAULT_SIZE = (1160, 780)
# So much of the title's height and width must be on a screen, for a hand to find it.
_GRIP = 64

Pixels = Annotated[int, Meta(ge=-100_000, le=100_000)]


class Area(Struct, frozen=True):
    """A rectangle in logical pixels, of a window or of a screen without its panels."""

    x: Pixels
    y: Pixels
    width: Pixels
    height: Pixels


class WindowState(Struct, frozen=True, kw_only=True):
    """``splitters`` holds the sizes of each named splitter's parts."""

    area: Area | None = None
    maximised: bool = False
    page: str | None = None
    splitters: dict[str, tuple[int, ...]] = {}


class WindowStateFile:
    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.data_dir() / "window.json"

    def load(self) -> WindowState:
        """The default where there is none, or none that can be read: nothing of worth is lost."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=WindowState)
        except FileNotFoundError:
            return WindowState()
        except (msgspec.DecodeError, OSError) as error:
            log.info("where the window was cannot be read: %s", error)
            return WindowState()

    def save(self, state: WindowState) -> None:
        try:
            write_atomically(self.path, msgspec.json.encode(state))
        except OSError as error:
            log.warning("where the window was cannot be kept: %s", error)


def placed(wanted: Area | None, screens: Sequence[Area], least: tuple[int, int]) -> Area:
    """Where to put a window that was at ``wanted``: there, or in the middle of the first screen where
    its title could not be reached any more. It is never larger than its screen, nor smaller than
    ``least`` (width and height), unless the screen is."""
    screen = screens[0]
    if wanted is not None:
        screen = max(screens, key=lambda one: _shared(wanted, one))
    width, height = DEFAULT_SIZE if wanted is None else (wanted.width, wanted.height)
    width = min(max(width, least[0]), screen.width)
    height = min(max(height, least[1]), screen.height)
    if wanted is not None:
        there = Area(wanted.x, wanted.y, width, height)
        if _reachable(there, screens):
            # Made smaller, most of it may be on another screen, which may be smaller still.
            return there if there == wanted else placed(there, screens, least)
    return Area(
        screen.x + (screen.width - width) // 2, screen.y + (screen.height - height) // 2, width, height
    )


def _shared(one: Area, other: Area) -> int:
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(0, width) * max(0, height)


def _reachable(area: Area, screens: Sequence[Area]) -> bool:
    title = Area(area.x, area.y, area.width, _GRIP)
    return any(
        screen.y <= area.y <= screen.y + screen.height - _GRIP
        and _shared(title, screen) >= min(_GRIP, area.width) * _GRIP
        for screen in screens
    )
