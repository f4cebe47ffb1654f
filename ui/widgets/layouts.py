"""What is laid out, without a layout item that Python knows of."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QGridLayout, QLayout, QWidget

_Inner = TypeVar("_Inner", bound=QLayout)


def nested(
    outer: QBoxLayout | QGridLayout, inner: _Inner, stretch: int = 0, cell: tuple[int, int] = (0, 0)
) -> _Inner:
    """Put the empty ``inner`` at the end of ``outer``, or in the ``cell`` (row, column) of a grid, and
    return it to be filled. Raises ValueError for one that holds something already.

    For each item of a filled layout PySide would keep an object of Python's, and would never learn that
    the item went with its widget. Where the next C++ object comes to lie at the same address, the end of
    that object is a crash (6.10, 6.11: ``Shiboken::Object::destroy`` goes on with a freed wrapper as long
    as any wrapper is known at the address). So no layout item may ever reach Python: ``itemAt``,
    ``itemAtPosition`` and ``takeAt`` are not to be used either.
    """
    if inner.count():
        raise ValueError("a layout is filled only after it was put into another")
    if isinstance(outer, QGridLayout):
        outer.addLayout(inner, *cell)
    else:
        outer.addLayout(inner, stretch)
    return inner


def clear(layout: QLayout, widgets: list[QWidget]) -> None:
    """Delete these, which ``layout`` holds, and empty the list."""
    for widget in widgets:
        layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
    widgets.clear()
