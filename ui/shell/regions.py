"""F6: from one part of the window to the next, wherever the focus was in it."""

from __future__ import annotations

import weakref

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget

REGION = "region"  # the property that marks a part; its value is what the part is called


def mark_region(widget: QWidget, name: str) -> None:
    """Let F6 stop at ``widget``."""
    widget.setProperty(REGION, name)
    if not widget.accessibleName():
        widget.setAccessibleName(name)


class Regions:
    """The marked parts of one window, as they stand on the screen. Each remembers what had its focus."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._last: weakref.WeakKeyDictionary[QWidget, QWidget] = weakref.WeakKeyDictionary()

    def move(self, backwards: bool = False) -> None:
        """Put the focus into the next part that can take it."""
        focused = QApplication.focusWidget()
        parts = self.parts()
        at = next((i for i, part in enumerate(parts) if focused and _within(focused, part)), None)
        if at is not None and focused is not None:
            self._last[parts[at]] = focused
        start = at if at is not None else (0 if backwards else -1)
        step = -1 if backwards else 1
        for distance in range(1, len(parts) + 1):
            if self._enter(parts[(start + step * distance) % len(parts)]):
                return

    def parts(self) -> list[QWidget]:
        """Those that can be seen, column by column."""
        found = [
            widget
            for widget in self._window.findChildren(QWidget)
            if widget.property(REGION) and widget.isVisible() and widget.width() and widget.height()
        ]
        return sorted(found, key=self._place)

    def _place(self, widget: QWidget) -> tuple[int, int]:
        corner = widget.mapTo(self._window, QPoint(0, 0))
        return corner.x(), corner.y()

    def _enter(self, part: QWidget) -> bool:
        last = self._last.get(part)
        candidates = [part, *part.findChildren(QWidget)]
        if last in candidates:
            candidates.insert(0, last)
        for widget in candidates:
            proxy = widget.focusProxy() or widget
            if proxy.isVisible() and proxy.isEnabled() and proxy.focusPolicy() & Qt.FocusPolicy.TabFocus:
                proxy.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return True
        return False


def _within(widget: QWidget, part: QWidget) -> bool:
    return widget is part or part.isAncestorOf(widget)
