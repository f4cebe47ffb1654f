"""What went wrong with a model, on its card: what happened, what was kept, and a page that helps."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.links import judge
from ui.models.card_view import Trouble
from ui.tooltips import plain
from ui.widgets.layouts import nested


class TroubleNote(QFrame):
    """``token_asked``: the person wants to put in an access token."""

    token_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("problem")
        self.setAccessibleName("Problem")
        self._trouble: Trouble | None = None
        self.what = _wrapping(self)
        self.kept = _wrapping(self)
        self.kept.setProperty("role", "muted")
        self.link = QPushButton("Open its page", self)
        self.link.clicked.connect(self._open)
        self.token = QPushButton("Access token…", self)
        self.token.setToolTip("Settings: where the access token goes")
        self.token.clicked.connect(self.token_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self.what)
        column.addWidget(self.kept)
        row = nested(column, QHBoxLayout())
        row.setSpacing(8)
        row.addWidget(self.link)
        row.addWidget(self.token)
        row.addStretch(1)
        self.hide()

    def show_trouble(self, trouble: Trouble | None) -> None:
        if trouble == self._trouble:
            return
        self._trouble = trouble
        self.setVisible(trouble is not None)
        if trouble is None:
            return
        for label, text in ((self.what, trouble.what), (self.kept, trouble.kept)):
            label.setText(text)
            label.setAccessibleName(text)
            label.setVisible(bool(text))
        link = judge(trouble.link) if trouble.link else None
        self.link.setVisible(link is not None and link.openable)
        if link is not None:
            self.link.setToolTip(plain(f"{link.url}\nOpens {link.target} in the browser"))
        self.token.setVisible(trouble.token)

    def _open(self) -> None:
        if self._trouble is not None and self._trouble.link is not None:
            QDesktopServices.openUrl(QUrl(self._trouble.link))


def _wrapping(parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
