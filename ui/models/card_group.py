"""A group of cards under a heading: only as many are made as a person asks to see."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.models.card_view import CardView
from ui.models.model_card import ModelCard
from ui.theme import Theme, scaled_px
from ui.widgets.layouts import nested

_CARD_PX = 400  # the least width of a card where there are several beside each other
_MOST_COLUMNS = 3
_AT_FIRST, _MORE = 12, 24


class CardGroup(QWidget):
    """``view_of`` says what the card of a key shows; it is asked for the cards that are seen only.

    ``made`` carries a new card, to be listened to. ``shown_changed``: other keys are seen than before.
    ``asked_again``: what could not be had is to be tried again.
    """

    made = Signal(object)  # ModelCard
    arranging = Signal()  # cards are about to come, go or move
    shown_changed = Signal()
    asked_again = Signal()

    def __init__(
        self, theme: Theme, title: str, view_of: Callable[[str], CardView], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view_of = view_of
        self._keys: list[str] = []
        self._at_first = _AT_FIRST
        self._limit = _AT_FIRST
        self._columns = 1
        self.cards: dict[str, ModelCard] = {}
        self._placed: dict[str, tuple[int, int]] = {}  # row and column of each card
        self.setAccessibleName(title)
        self.title = QLabel(title, self)
        self.title.setProperty("role", "section")
        self.count = QLabel(self)
        self.count.setProperty("role", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        self.head = nested(column, QHBoxLayout())
        self.head.setSpacing(8)
        self.head.addWidget(self.title)
        self.head.addWidget(self.count)
        self.head.addStretch(1)
        self.words = QLabel(self)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setWordWrap(True)
        self.words.setProperty("role", "muted")
        self.words.hide()
        self.again = QPushButton("Try again", self)
        self.again.hide()
        self.again.clicked.connect(self.asked_again)
        said = nested(column, QHBoxLayout())
        said.setSpacing(12)
        said.addWidget(self.words, 1)
        said.addWidget(self.again, 0, Qt.AlignmentFlag.AlignTop)
        self._grid = nested(column, QGridLayout())
        self._grid.setSpacing(12)
        # A column without a card in it would have no gap beside it, and the others would be wider for it.
        self._fillers = [QWidget(self) for _ in range(_MOST_COLUMNS - 1)]
        for number, filler in enumerate(self._fillers, 1):
            filler.setFixedHeight(0)
            filler.hide()
            self._grid.addWidget(filler, 0, number)
        self.more = QPushButton(self)
        self.more.clicked.connect(self._show_more)
        self.more.setVisible(False)
        theme.changed.connect(self._count_columns)
        column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)

    @property
    def shown(self) -> list[str]:
        """The keys of the cards that there are."""
        return self._keys[: self._limit]

    def begin_with(self, count: int) -> None:
        """Show so many cards, and the rest when asked."""
        self._at_first = self._limit = count

    def show_keys(self, keys: Sequence[str]) -> None:
        """Show these in this order; cards that are there already stay as they are."""
        keys = list(keys)
        if keys != self._keys:
            self._keys = keys
            self._limit = max(self._limit, self._at_first) if keys else self._at_first
            self._arrange()
        self.refresh()

    def refresh(self, key: str | None = None) -> None:
        """Ask again what the card of ``key`` shows, or all of them."""
        for each in self.shown if key is None else [key]:
            card = self.cards.get(each)
            if card is not None:
                card.show_view(self._view_of(each))

    def say(self, words: str, *, again: bool = False) -> None:
        """A sentence above the cards, or in their place; ``again`` offers to try once more."""
        self.words.setText(words)
        self.words.setAccessibleName(words)
        self.words.setVisible(bool(words))
        self.again.setAccessibleDescription(words)
        self.again.setVisible(again)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._count_columns()

    def _count_columns(self) -> None:
        least = scaled_px(_CARD_PX, self._theme.measures.zoom)
        columns = max(1, min(_MOST_COLUMNS, self.width() // least))
        if columns != self._columns:
            self._columns = columns
            self._place()

    def _arrange(self) -> None:
        self.arranging.emit()
        shown = self.shown
        for key in [key for key in self.cards if key not in set(shown)]:
            card = self.cards.pop(key)
            del self._placed[key]
            self._grid.removeWidget(card)
            card.hide()
            card.deleteLater()
        for key in shown:
            if key not in self.cards:
                card = ModelCard(self._theme, self._view_of(key), self)
                self.cards[key] = card
                self.made.emit(card)
        self._place()
        left = len(self._keys) - len(shown)
        self.more.setVisible(left > 0)
        self.more.setText(
            f"Show {min(left, _MORE)} more of {left:,}" if left > _MORE else f"Show {left} more"
        )
        self.count.setText(f"{len(self._keys):,}" if self._keys else "")
        self.shown_changed.emit()

    def _place(self) -> None:
        for number, key in enumerate(self.shown):
            row, column = divmod(number, self._columns)
            card = self.cards[key]
            if self._placed.get(key) != (row, column):
                self._placed[key] = (row, column)
                self._grid.addWidget(card, row, column, Qt.AlignmentFlag.AlignTop)
                card.show()  # not only later: whoever keeps the place must know it
        for column in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(column, 1 if column < self._columns else 0)
        for column, filler in enumerate(self._fillers, 1):
            filler.setVisible(len(self.shown) <= column < self._columns)

    def controls(self) -> list[QWidget]:
        """All that the focus should go through, in its order."""
        cards = [widget for key in self.shown for widget in self.cards[key].controls()]
        return [self.again, *cards, self.more]

    def _show_more(self) -> None:
        first_new = len(self.shown)
        self._limit += _MORE
        self._arrange()
        if len(self.shown) > first_new:
            self.cards[self.shown[first_new]].button.setFocus()
