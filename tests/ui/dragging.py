"""Things dragged as a desktop does it: over a widget, and then dropped there or taken away again.

Never one without the other: Qt remembers what was dragged over last by its address, and sends the next drop
there, even when the widget has long gone. What was not dragged over anything cannot be dropped at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget

_ACTION, _BUTTON, _NO_KEYS = (
    Qt.DropAction.CopyAction,
    Qt.MouseButton.LeftButton,
    Qt.KeyboardModifier.NoModifier,
)


def moved(widget: QWidget, data: QMimeData, at: QPoint, action: Qt.DropAction = _ACTION) -> bool:
    """What is held over ``widget`` already goes on to ``at``; whether it would be taken there."""
    event = QDragMoveEvent(at, action, data, _BUTTON, _NO_KEYS)
    event.accept()  # as Qt does: who took it when it came in need say no more
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


@contextmanager
def held_over(
    widget: QWidget, data: QMimeData, at: QPoint, action: Qt.DropAction = _ACTION
) -> Iterator[bool]:
    """Whether it would be taken; afterwards it is taken away again."""
    enter = QDragEnterEvent(at, action, data, _BUTTON, _NO_KEYS)
    QApplication.sendEvent(widget, enter)
    try:
        yield enter.isAccepted() and moved(widget, data, at, action)
    finally:
        QApplication.sendEvent(widget, QDragLeaveEvent())


def dropped(widget: QWidget, data: QMimeData, at: QPoint, action: Qt.DropAction = _ACTION) -> bool:
    """Whether it was taken. What ``widget`` itself does not take may be taken by what it is in."""
    with held_over(widget, data, at, action) as wanted:
        if not wanted:
            return False
        event = QDropEvent(QPointF(at), action, data, _BUTTON, _NO_KEYS)
        QApplication.sendEvent(widget, event)
        return event.isAccepted()
