"""Models that other programs keep on this machine, listed here with one click and without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from model_store.fit import shown_bytes
from model_store.library import ModelEntry
from ui.bidi import visible
from ui.session import Session
from ui.theme import Theme
from ui.tooltips import plain
from ui.widgets.layouts import clear

if TYPE_CHECKING:
    from model_store.imported import Imported


class ForeignBar(QFrame):
    """One line for each program that has something; hidden when none has. ``imported``: there is more now."""

    imported = Signal()
    noticed = Signal(str)

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.buttons: dict[str, QPushButton] = {}
        self.setObjectName("notice")
        self.setAccessibleName("Models of other programs")
        self._rows: list[QWidget] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 8, 8, 8)
        self._column.setSpacing(4)
        self.hide()

    def look(self) -> None:
        """Look for them, in a thread."""
        self._session.models.ask(lambda store, stop: store.foreign(), self._take)

    def _take(self, entries: list[ModelEntry]) -> None:
        clear(self._column, self._rows)
        self.buttons = {}
        by_program: dict[str, list[ModelEntry]] = {}
        for entry in entries:
            if entry.problem is None and entry.program is not None and entry.kind in ("chat", "drafter"):
                by_program.setdefault(entry.program, []).append(entry)
        for program, found in by_program.items():
            self._add(program, found)
        self.setVisible(bool(by_program))

    def _add(self, program: str, found: list[ModelEntry]) -> None:
        row = QWidget(self)
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        models = "1 model" if len(found) == 1 else f"{len(found):,} models"
        size = shown_bytes(sum(entry.size_bytes for entry in found))
        words = QLabel(f"{program} keeps {models} on this computer ({size}).", row)
        words.setTextFormat(Qt.TextFormat.PlainText)
        words.setWordWrap(True)
        words.setToolTip(plain("\n".join(visible(entry.name) for entry in found[:20])))
        button = QPushButton("List them here", row)
        button.setAccessibleName(f"List the models of {program} here")
        button.setToolTip("They stay where they are: nothing is copied, and nothing of theirs ever deleted")
        button.clicked.connect(lambda: self._import(program))
        line.addWidget(words, 1)
        line.addWidget(button)
        self._column.addWidget(row)
        self._rows.append(row)
        self.buttons[program] = button

    def _import(self, program: str) -> None:
        self.buttons[program].setEnabled(False)
        self._session.models.order(
            lambda store, stop: store.import_foreign(program),
            self._imported,
            lambda problem: self.noticed.emit(problem.message),
        )

    def _imported(self, new: list[Imported]) -> None:
        self.noticed.emit(
            "1 model is listed, and stays where it is."
            if len(new) == 1
            else f"{len(new):,} models are listed, and stay where they are."
        )
        self.imported.emit()
        self.look()
