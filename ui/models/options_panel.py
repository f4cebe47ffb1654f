"""The fold-out of a card: which quantisation, and which drafter."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QStandardItemModel, QWheelEvent
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QLabel, QWidget

from model_store.fit import Verdict
from ui.icons import icon
from ui.models.fit_mark import ICONS, ROLES
from ui.theme import Theme
from ui.tooltips import plain


class Option(Struct, frozen=True):
    """``value`` is what it is called when it is asked for. ``verdict`` None: nothing is known of its fit.
    ``problem`` says why it cannot be chosen."""

    value: str
    text: str
    help: str = ""
    verdict: Verdict | None = None
    problem: str | None = None


class ChoiceBox(QComboBox):
    """The wheel scrolls the page, it does not change what the pointer happens to be over."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class OptionsPanel(QFrame):
    """``chosen`` carries the values of quantisation and drafter; "" where there is no such choice."""

    chosen = Signal(str, str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("parameters")
        self._shown: tuple[tuple[Option, ...], str, tuple[Option, ...], str] = ((), "", (), "")
        theme.changed.connect(self._fill_both)
        self._labels: list[QLabel] = []  # in the order of the rows
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 8, 12, 8)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        self.quantisation = self._box(0, "Quantisation", "Fewer bits take less memory, and lose more")
        self.drafter = self._box(1, "Drafter", "What guesses ahead for this model")
        self.words = QLabel(self)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setWordWrap(True)
        self.words.setProperty("role", "small")
        self._grid.addWidget(self.words, 2, 0, 1, 2)

    def show_choices(
        self,
        quantisations: Sequence[Option],
        quantisation: str,
        drafters: Sequence[Option],
        drafter: str,
        words: str = "",
    ) -> None:
        shown = (tuple(quantisations), quantisation, tuple(drafters), drafter)
        if shown != self._shown:
            self._shown = shown
            self._fill_both()
        self.say(words)

    def say(self, words: str) -> None:
        self.words.setText(words)
        self.words.setAccessibleName(words)
        self.words.setVisible(bool(words))

    def _box(self, row: int, name: str, help: str) -> ChoiceBox:
        label = QLabel(name, self)
        box = ChoiceBox(self)
        box.setAccessibleName(name)
        box.setToolTip(help)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(12)
        box.activated.connect(self._chosen)
        label.setBuddy(box)
        label.hide()
        box.hide()
        self._labels.append(label)
        self._grid.addWidget(label, row, 0)
        self._grid.addWidget(box, row, 1)
        return box

    def _fill_both(self) -> None:
        quantisations, quantisation, drafters, drafter = self._shown
        self._fill(self.quantisation, quantisations, quantisation)
        self._fill(self.drafter, drafters, drafter)

    def _fill(self, box: ChoiceBox, options: Sequence[Option], chosen: str) -> None:
        box.clear()
        for number, option in enumerate(options):
            box.addItem(option.text, option.value)
            box.setItemData(number, plain(option.problem or option.help), Qt.ItemDataRole.ToolTipRole)
            if option.verdict is not None:
                colour = str(getattr(self._theme.tokens, ROLES[option.verdict]))
                box.setItemIcon(number, icon(ICONS[option.verdict], colour))
            model = box.model()
            if option.problem is not None and isinstance(model, QStandardItemModel):
                model.item(number).setEnabled(False)
            if option.value == chosen:
                box.setCurrentIndex(number)
        for widget in (box, self._label_of(box)):
            widget.setVisible(bool(options))

    def _label_of(self, box: ChoiceBox) -> QWidget:
        row = 0 if box is self.quantisation else 1
        return self._labels[row]

    def _chosen(self) -> None:
        self.chosen.emit(self.quantisation.currentData() or "", self.drafter.currentData() or "")
