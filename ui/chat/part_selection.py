"""One selection over all parts of an answer: dragged from text into code and on, and copied as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

Editor = QTextEdit | QPlainTextEdit
_START, _END = QTextCursor.MoveOperation.Start, QTextCursor.MoveOperation.End
_KEEP = QTextCursor.MoveMode.KeepAnchor


class PartSelection(QObject):
    """``editors`` gives what shows the answer, from top to bottom. Each selects its own text; what is
    dragged out of one is selected in the others from here."""

    def __init__(self, editors: Callable[[], Sequence[Editor]], parent: QObject) -> None:
        super().__init__(parent)
        self._editors = editors

    def begin(self, editor: Editor) -> None:
        """A press in ``editor``: what was selected elsewhere is no more."""
        for other in self._editors():
            if other is not editor:
                _clear(other)

    def drag(self, origin: Editor, place: QPoint) -> None:
        """The pointer, pressed in ``origin``, is at ``place`` on the screen."""
        editors = list(self._editors())
        if origin not in editors:
            return
        first = editors.index(origin)
        last = _at(editors, place.y())
        for index, editor in enumerate(editors):
            if index == first:
                if last != first:
                    _extend(editor, _END if last > first else _START)
            elif index == last:
                _select(editor, _START if last > first else _END, place)
            elif min(first, last) < index < max(first, last):
                _select(editor, _START)
            else:
                _clear(editor)

    def select_all(self) -> None:
        for editor in self._editors():
            _select(editor, _START)


def _at(editors: Sequence[Editor], y: int) -> int:
    """The editor at a height on the screen; between two of them, the upper one."""
    tops = [editor.mapToGlobal(QPoint(0, 0)).y() for editor in editors]
    return max((index for index, top in enumerate(tops) if top <= y), default=0)


def _clear(editor: Editor) -> None:
    cursor = editor.textCursor()
    if cursor.hasSelection():
        cursor.clearSelection()
        editor.setTextCursor(cursor)


def _extend(editor: Editor, to: QTextCursor.MoveOperation) -> None:
    cursor = editor.textCursor()
    cursor.movePosition(to, _KEEP)
    editor.setTextCursor(cursor)


def _select(editor: Editor, begin: QTextCursor.MoveOperation, end: QPoint | None = None) -> None:
    """From its ``begin`` to a place on the screen, or all of it."""
    cursor = editor.textCursor()
    cursor.movePosition(begin)
    if end is None:
        cursor.movePosition(_END, _KEEP)
    else:
        there = editor.cursorForPosition(editor.viewport().mapFromGlobal(end))
        cursor.setPosition(there.position(), _KEEP)
    editor.setTextCursor(cursor)
