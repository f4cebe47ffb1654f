"""A table of an answer: as wide as the text; one that needs more room scrolls sideways by itself."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextOption, QWheelEvent
from PySide6.QtWidgets import QWidget

from ui.chat.drafted_text import DraftedText
from ui.chat.markdown_blocks import Block
from ui.chat.prose_view import ProseView
from ui.theme import Theme


class TableView(ProseView):
    """Words stay whole, so that a column is never thinner than its longest word."""

    def __init__(
        self, theme: Theme, font: QFont, parent: QWidget | None = None, *, drafted: DraftedText | None = None
    ) -> None:
        super().__init__(theme, font, parent, drafted=drafted)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WordWrap)
        self.document().setDefaultTextOption(option)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setAccessibleName("Table")

    def show_blocks(self, finished: Sequence[Block], live: Sequence[Block]) -> None:
        super().show_blocks(finished, live)
        cursor = self.textCursor()
        if not cursor.hasSelection():  # else Qt scrolls to where the last word was written
            cursor.setPosition(0)
            self.setTextCursor(cursor)

    def fit(self, width: int) -> int:
        height = super().fit(width)
        if self.document().size().width() > width + 1:
            height += self.horizontalScrollBar().sizeHint().height()
            self.resize(width, height)
        return height

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        bar = self.horizontalScrollBar()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and bar.maximum():
            bar.setValue(bar.value() - (delta.x() or delta.y()))
            event.accept()
        else:
            event.ignore()
