"""Editors of settings that no plain control can change."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QFocusEvent, QFontDatabase
from PySide6.QtWidgets import QWidget

from app.settings import Settings
from ui.settings.editors import ChoiceBox
from ui.widgets.segments import Segments

_MODES = (("off", "Off"), ("auto", "Auto"), ("manual", "Manual"))
_AUTOMATIC = "Automatic"


class ModeChoice(Segments):
    """Off, auto or manual: whether is drafted, and who decides about it."""

    changed = Signal(bool, str)  # drafting, draft_mode

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__(_MODES, _mode(settings), parent)
        self._last_mode = settings.draft_mode
        self.chosen.connect(self._take)

    def show_settings(self, settings: Settings) -> None:
        self._last_mode = settings.draft_mode
        self.show_value(_mode(settings))

    def _take(self, mode: str) -> None:
        # Off keeps which of the two it was.
        self.changed.emit(mode != "off", self._last_mode if mode == "off" else mode)


def _mode(settings: Settings) -> str:
    return settings.draft_mode if settings.drafting else "off"


class TemplateChoice(ChoiceBox):
    """The chat format of one model; its own, or one that comes along. ``changed`` carries the
    templates of all models."""

    changed = Signal(dict)

    def __init__(self, templates: Callable[[], list[str]], settings: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self._model: str | None = None
        self._chosen = settings.chat_templates
        self.addItem(_AUTOMATIC, None)
        for name in templates():
            self.addItem(name, name)
        self.currentIndexChanged.connect(self._take)

    @property
    def is_chosen(self) -> bool:
        return self._model in self._chosen

    def show_model(self, path: str | None) -> None:
        self._model = path
        self.setEnabled(path is not None)
        self.show_data(self._chosen.get(path or ""))

    def show_templates(self, chosen: dict[str, str]) -> None:
        self._chosen = chosen
        self.show_model(self._model)

    def _take(self) -> None:
        if self._model is None:
            return
        chosen = {path: name for path, name in self._chosen.items() if path != self._model}
        if (name := self.currentData()) is not None:
            chosen[self._model] = name
        self._chosen = chosen
        self.changed.emit(chosen)

    def without_choice(self) -> dict[str, str]:
        """The templates when this model goes back to its own."""
        return {path: name for path, name in self._chosen.items() if path != self._model}


class FontChoice(ChoiceBox):
    """The families of this machine, read when somebody is about to choose one."""

    changed = Signal(str)

    def __init__(self, family: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_filled = False
        self.addItem("The desktop's own", "")
        self.show_family(family)
        self.currentIndexChanged.connect(lambda: self.changed.emit(self.currentData()))

    def show_family(self, family: str) -> None:
        with QSignalBlocker(self):
            if self.findData(family) < 0:
                self.addItem(family, family)
            self.setCurrentIndex(self.findData(family))

    def fill(self) -> None:
        if self._is_filled:
            return
        self._is_filled = True
        with QSignalBlocker(self):
            chosen = self.currentData()
            while self.count() > 1:
                self.removeItem(1)
            for family in QFontDatabase.families():
                if not QFontDatabase.isPrivateFamily(family):
                    self.addItem(family, family)
        self.show_family(chosen)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.fill()
        super().focusInEvent(event)

    def showPopup(self) -> None:
        self.fill()
        super().showPopup()
