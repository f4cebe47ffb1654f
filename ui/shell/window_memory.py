"""Puts a window back where it was, with its splitters, and notes it for the next time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec.structs import replace
from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSplitter, QWidget

from ui.shell.window_state import Area, WindowStateFile, placed


@runtime_checkable
class Divided(Protocol):
    """A widget with a name whose parts have widths that a person chose, whether they can be seen just
    now or not."""

    def part_sizes(self) -> tuple[int, ...]: ...

    def set_part_sizes(self, sizes: Sequence[int]) -> None:
        """What ``part_sizes`` said at another time, perhaps in another version."""


class WindowMemory:
    """``page`` is the page that was shown last, None at the first start."""

    def __init__(self, window: QWidget, file: WindowStateFile | None = None) -> None:
        self._window = window
        self._file = file or WindowStateFile()
        self._state = self._file.load()

    @property
    def page(self) -> str | None:
        return self._state.page

    def restore(self) -> None:
        """Before the window is shown."""
        window = self._window
        screens = [_area(screen.availableGeometry()) for screen in QGuiApplication.screens()]
        primary = QGuiApplication.primaryScreen()
        if primary is not None:
            screens.insert(0, _area(primary.availableGeometry()))
        if not screens:
            return
        least = window.minimumSize()
        area = placed(self._state.area, screens, (least.width(), least.height()))
        if self._state.area is None:
            window.resize(area.width, area.height)  # the desktop knows best where to
        else:
            window.setGeometry(area.x, area.y, area.width, area.height)
        if self._state.maximised:
            # Only noted: it shows nothing yet.
            window.setWindowState(window.windowState() | window.windowState().WindowMaximized)

    def restore_splitters(self, page: QWidget) -> None:
        """Those with a name, once a page is there."""
        for part in page.findChildren(QWidget):
            sizes = self._state.splitters.get(part.objectName())
            if sizes is None:
                continue
            if isinstance(part, Divided):
                part.set_part_sizes(sizes)
            elif isinstance(part, QSplitter) and len(sizes) == part.count() and sum(sizes) > 0:
                part.setSizes(list(sizes))

    def keep(self, page: str) -> None:
        """Before the window is closed or hidden."""
        window = self._window
        sizes: dict[str, tuple[int, ...]] = {}
        for part in window.findChildren(QWidget):
            if part.objectName() and isinstance(part, Divided):
                sizes[part.objectName()] = part.part_sizes()
            elif part.objectName() and isinstance(part, QSplitter):
                sizes[part.objectName()] = tuple(part.sizes())
        self._state = replace(
            self._state,
            area=_area(window.normalGeometry() if window.isMaximized() else window.geometry()),
            maximised=window.isMaximized(),
            page=page,
            splitters={**self._state.splitters, **sizes},
        )
        self._file.save(self._state)


def _area(rect: QRect) -> Area:
    return Area(rect.x(), rect.y(), rect.width(), rect.height())
