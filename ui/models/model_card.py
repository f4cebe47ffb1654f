"""A card of the models page: what a model is, whether it fits, and the one thing to do with it."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QElapsedTimer, Qt, Signal
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.models.card_view import ACTION_WORDS, CardView, MenuItem, Trouble
from ui.models.delete_question import DeleteQuestion
from ui.models.fit_mark import FitMark
from ui.models.options_panel import OptionsPanel
from ui.models.trouble_note import TroubleNote
from ui.theme import Theme
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton
from ui.widgets.restyle import restyle

MENU_WORDS: dict[MenuItem, str] = {
    "verify": "Verify",
    "stop_verifying": "Stop verifying",
    "show": "Show in folder",
    "drafter": "Choose drafter…",
    "unpair": "Draft without it",
    "delete": "Delete…",
    "unlist": "Take off the list",
    "page": "Open its page",
}
_STEPS = 1000


class ModelCard(QFrame):
    """Shows a view and says what a person chose; it does nothing of itself."""

    acted = Signal(str)  # Action
    picked = Signal(str)  # MenuItem
    options_opened = Signal()
    options_chosen = Signal(str, str)  # quantisation and drafter
    confirmed = Signal(bool)  # whether the drafter goes as well
    token_asked = Signal()

    def __init__(self, theme: Theme, view: CardView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.view = view
        self._since_act = QElapsedTimer()
        # Made when they are needed, which on most cards is never.
        self.trouble: TroubleNote | None = None
        self.question: DeleteQuestion | None = None
        self.panel: OptionsPanel | None = None
        self.setObjectName("card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._build()
        self._show(view)

    def show_view(self, view: CardView) -> None:
        if view != self.view:
            self.view = view
            self._show(view)

    def ask_to_delete(self, words: str, drafter_words: str = "") -> None:
        """A question on the card; ``confirmed`` is sent once it is answered with yes."""
        if self.question is None:
            self.question = DeleteQuestion(self)
            self.question.confirmed.connect(self.confirmed)
            self._column.insertWidget(self._column.indexOf(self._row) + 1, self.question)
        self.question.ask(words, drafter_words)
        self._order_focus()

    def controls(self) -> list[QWidget]:
        """All that the focus should go through, in its order."""
        controls: list[QWidget] = [self.button, self.options, self.more]
        if self.trouble is not None:
            controls += [self.trouble.link, self.trouble.token]
        if self.question is not None:
            controls += [self.question.with_drafter, self.question.delete, self.question.keep]
        if self.panel is not None:
            controls += [self.panel.quantisation, self.panel.drafter]
        return controls

    def _order_focus(self) -> None:
        for before, after in pairwise(self.controls()):
            QWidget.setTabOrder(before, after)

    # ---- building

    def _build(self) -> None:
        self.title = ElidedLabel(role="section")
        self.tag = ElidedLabel(role="small")
        self.tag.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.mark = FitMark(self._theme, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 12)
        column.setSpacing(4)
        head = nested(column, QHBoxLayout())
        head.setSpacing(8)
        head.addWidget(self.title, 1)
        head.addWidget(self.tag)
        head.addWidget(self.mark)
        self.line = ElidedLabel(role="muted")
        self.facts = ElidedLabel(role="small")
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        self.news = QLabel(self)
        self.news.setTextFormat(Qt.TextFormat.PlainText)
        self.news.setWordWrap(True)
        self.news.setProperty("role", "small")
        for widget in (self.line, self.facts, self.bar, self.news):
            column.addWidget(widget)
        self._row = nested(column, QHBoxLayout())
        self._fill_row(self._row)
        self._column = column

    def _fill_row(self, row: QHBoxLayout) -> None:
        self.options = QuietButton(self._theme, "right", "Options", self)
        self.options.setCheckable(True)
        self.options.toggled.connect(self._fold)
        self.more = QuietButton(self._theme, "more", "", self)
        self.more.setToolTip("More")
        self.more.clicked.connect(self._open_menu)
        self.button = QPushButton(self)
        widest = max(self.button.fontMetrics().horizontalAdvance(words) for words in ACTION_WORDS.values())
        self.button.setMinimumWidth(widest + 32)
        self.button.clicked.connect(self._act)
        row.setContentsMargins(0, 4, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.options)
        row.addWidget(self.more)
        row.addStretch(1)
        row.addWidget(self.button)

    # ---- showing

    def _show(self, view: CardView) -> None:
        self.setAccessibleName(view.title)
        self.title.say(view.title)
        self.tag.say(view.tag)
        self.tag.setVisible(bool(view.tag))
        self.mark.show_mark(view.mark)
        self.line.say(view.line)
        self.line.setVisible(bool(view.line))
        self.facts.say(
            " · ".join(fact.text for fact in view.facts),
            "\n".join(f"{fact.text}: {fact.help}" for fact in view.facts),
        )
        self._show_progress(view)
        self._show_trouble(view.trouble)
        self.news.setText(view.news)
        self.news.setAccessibleName(view.news)
        self.news.setVisible(bool(view.news))
        self.options.setVisible(view.options)
        if not view.options and self.options.isChecked():
            self.options.setChecked(False)
        self.options.setAccessibleName(f"Options of {view.title}")
        self.more.setVisible(bool(view.menu))
        self.more.setAccessibleName(f"More about {view.title}")
        action = view.action
        self.button.setVisible(action is not None)
        if action is not None and self.button.property("action") != action:
            self.button.setProperty("action", action)
            self.button.setText(ACTION_WORDS[action])
            restyle(self.button, "look", "primary" if action in ("get", "chat") else "")
        if action is not None:
            self.button.setToolTip(view.action_help)
            self.button.setAccessibleName(f"{ACTION_WORDS[action]}: {view.title}")

    def _show_trouble(self, trouble: Trouble | None) -> None:
        if self.trouble is None:
            if trouble is None:
                return
            self.trouble = TroubleNote(self)
            self.trouble.token_asked.connect(self.token_asked)
            self._column.insertWidget(self._column.indexOf(self.news), self.trouble)
            self._order_focus()
        self.trouble.show_trouble(trouble)

    def _show_progress(self, view: CardView) -> None:
        self.bar.setVisible(view.working or view.progress is not None)
        if view.working:
            self.bar.setRange(0, 0)
        else:
            self.bar.setRange(0, _STEPS)
            self.bar.setValue(round((view.progress or 0) * _STEPS))
        done = "working" if view.working else f"{view.progress or 0:.0%}"
        self.bar.setAccessibleName(f"{view.title}: {done}")

    # ---- what a person does

    def _act(self) -> None:
        action = self.view.action
        if action is None or (action == "stop_looking" and self._since_act.isValid() and self._is_double()):
            return
        self._since_act.start()
        self.acted.emit(action)

    def _is_double(self) -> bool:
        """A double click on Get means it once, and not to stop at once what it began."""
        return self._since_act.elapsed() < QApplication.doubleClickInterval()

    def _fold(self, out: bool) -> None:
        self.options.show_icon("down" if out else "right")
        if out and self.panel is None:
            self.panel = OptionsPanel(self._theme, self)
            self.panel.chosen.connect(self.options_chosen)
            self.panel.say("Looking…")
            self._column.addWidget(self.panel)
            self._order_focus()
        if self.panel is not None:
            self.panel.setVisible(out)
        if out:
            self.options_opened.emit()

    def _open_menu(self) -> None:
        self.menu().popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def menu(self) -> QMenu:
        """What else can be done."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for item in self.view.menu:
            if item in ("delete", "unlist"):
                menu.addSeparator()
            menu.addAction(MENU_WORDS[item]).triggered.connect(lambda _=False, item=item: self._pick(item))
        return menu

    def _pick(self, item: MenuItem) -> None:
        if item == "drafter":
            self.options.setChecked(True)
        else:
            self.picked.emit(item)
