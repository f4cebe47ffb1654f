"""All settings in one column, drawn from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QHideEvent
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.declaration import Declared, declarations
from app.protocol import ModelReport
from app.settings import GROUPS, Settings
from app.shortcuts import ACTIONS
from ui.bidi import visible
from ui.settings.chain_editor import ChainEditor
from ui.settings.editors import Changed, Editor, make_editor, shown_value
from ui.settings.learning_control import LearningControl
from ui.settings.setting_row import SettingRow
from ui.settings.shortcut_list import ShortcutList
from ui.settings.special_editors import FontChoice, ModeChoice, TemplateChoice
from ui.settings.wide_column import WideColumn
from ui.speed import drafters
from ui.theme import Theme

_SETTLE_MS = 500
_DEFAULTS = Settings()
NEEDED = "A KV cache of 8 bits cannot do without it, so it is not off."
AUTO_HELP = "Who may guess; auto takes whichever guess is expected to pay most."


Rows = Mapping[str, Sequence[Callable[[QWidget], SettingRow]]]


class SettingsForm(QWidget):
    """``changed`` carries the new settings; typed values are sent once they have settled. ``reached``
    names the group that is at the top now."""

    changed = Signal(object)
    reached = Signal(str)

    def __init__(
        self,
        theme: Theme,
        settings: Settings,
        model_path: str | None,
        models_folder: Path,
        templates: Callable[[], list[str]],
        parent: QWidget | None = None,
        *,
        first: Rows | None = None,
        last: Rows | None = None,
    ) -> None:
        """``first`` and ``last`` make rows that are no setting, at the ends of their groups."""
        super().__init__(parent)
        self.settings = settings
        self.controls: dict[str, QWidget] = {}
        self.sections: dict[str, QLabel] = {}
        self._theme = theme
        self._folder = models_folder
        self._templates = templates
        self._report: ModelReport | None = None
        self._pending: dict[str, Any] = {}  # what the session has not heard of yet
        self._row_of: dict[str, SettingRow] = {}
        self._rows_in: dict[str, list[SettingRow]] = {group.name: [] for group in GROUPS}
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(_SETTLE_MS)
        self._settle.timeout.connect(self._send)
        self.column = WideColumn(theme, self)
        self.area = QScrollArea(self)
        self.area.setAccessibleName("Settings")
        self._draw(first or {}, last or {})
        self.area.setWidgetResizable(True)
        self.area.setWidget(self.column)
        self.area.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.chain.moved.connect(self.area.ensureWidgetVisible)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.area, 1)
        theme.changed.connect(self.chain.recolour)
        self.template.show_model(model_path)
        self._refresh()

    # ---- drawing

    def _draw(self, first: Rows, last: Rows) -> None:
        """From top to bottom, which is the order in which Tab comes to what was made."""
        declared = declarations(Settings)
        for group in GROUPS:
            title = QLabel(group.title, self.column)
            title.setProperty("role", "group")
            title.setWordWrap(True)
            title.setIndent(0)
            self.sections[group.name] = title
            self.column.rows.addWidget(title)
            for make in first.get(group.name, ()):
                self._add(group.name, make(self.column))
            for words in declared.values():
                if words.group == group.name and words.part_of is None:
                    names = [each.name for each in declared.values() if each.part_of == words.name]
                    self._setting(words, (words.name, *names))
            for make in last.get(group.name, ()):
                self._add(group.name, make(self.column))
        self.column.rows.addStretch(1)

    def _setting(self, words: Declared, names: tuple[str, ...]) -> None:
        keywords = ""
        if words.control == "chain":
            keywords = " ".join(f"{look.name} {look.help}" for look in drafters.looks())
        elif words.control == "shortcuts":
            keywords = " ".join(f"{action.title} {action.keys}" for action in ACTIONS)
        row = SettingRow(
            self._theme,
            words,
            lambda parent: self._editor(words, parent),
            names=names,
            keywords=keywords,
            parent=self.column,
        )
        row.reset_asked.connect(lambda: self._reset(row))
        for name in names:
            self._row_of[name] = row
        self.controls[words.name] = row.control
        self._add(words.group, row)

    def _add(self, group: str, row: SettingRow) -> None:
        self._rows_in[group].append(row)
        self.column.rows.addWidget(row)

    @property
    def rows(self) -> list[SettingRow]:
        """From top to bottom."""
        return [row for rows in self._rows_in.values() for row in rows]

    def row(self, name: str) -> SettingRow:
        """Where this setting is changed. Raises KeyError for one that has no row."""
        return self._row_of[name]

    def _editor(self, words: Declared, parent: QWidget) -> Editor:
        """Most controls come from the declaration alone."""
        value = getattr(self.settings, words.name)
        match words.control:
            case "mode":
                mode = ModeChoice(self.settings, parent)
                mode.changed.connect(lambda on, mode: self._change(drafting=on, draft_mode=mode))
                return Editor(mode, lambda _: mode.show_settings(self.settings))
            case "chain":
                self.chain = ChainEditor(self._theme, self.settings, parent)
                self.chain.changed.connect(
                    lambda: self._change(links=self.chain.links, order=self.chain.order)
                )
                self.chain.tuned.connect(lambda: self._change(settle=True, parameters=self.chain.parameters))
                self.controls.update(self.chain.controls())
                return Editor(self.chain, lambda _: self.chain.show_settings(self.settings), below=True)
            case "learning":
                learning = LearningControl(self._theme, value, parent)
                learning.changed.connect(lambda learns: self._change(learn=learns))
                return Editor(learning, learning.show_learns)
            case "template":
                self.template = TemplateChoice(self._templates, self.settings, parent)
                self.template.changed.connect(lambda chosen: self._change(chat_templates=chosen))
                return Editor(self.template, self.template.show_templates)
            case "font":
                font = FontChoice(value, parent)
                font.changed.connect(lambda family: self._change(font_family=family))
                return Editor(font, font.show_family)
            case "shortcuts":
                keys = ShortcutList(self._theme, value, parent)
                keys.changed.connect(lambda own: self._change(shortcuts=own))
                return Editor(keys, keys.show_keys, below=True)
            case _:
                return make_editor(self._theme, words, value, self._changer(words.name), self._folder, parent)

    def _changer(self, name: str) -> Changed:
        return lambda value, more: self._change(settle=more, **{name: value})

    # ---- changes

    def _change(self, *, settle: bool = False, **values: Any) -> None:
        self.settings = replace(self.settings, **values)
        self._pending |= values
        self._refresh()
        if settle:
            self._settle.start()
        else:
            self._send()

    def _send(self) -> None:
        self._settle.stop()
        self._pending.clear()
        self.changed.emit(self.settings)

    def _reset(self, row: SettingRow) -> None:
        values = {name: getattr(_DEFAULTS, name) for name in row.names}
        if row.control is self.template:  # of this model alone
            values = {"chat_templates": self.template.without_choice()}
        self._change(**values)
        row.editor.show(getattr(self.settings, row.words.name))

    def show_settings(self, settings: Settings) -> None:
        """Take over what was changed elsewhere; what is still being typed here stays."""
        before, self.settings = self.settings, replace(settings, **self._pending)
        changed = {
            self._row_of[name]
            for name in Settings.__struct_fields__
            if name in self._row_of and getattr(before, name) != getattr(self.settings, name)
        }
        for row in changed:
            row.editor.show(getattr(self.settings, row.words.name))
        if changed:
            self._refresh()

    def _refresh(self) -> None:
        """Show what matters now, and where there is a way back."""
        manual = self.settings.draft_mode == "manual"
        self.chain.show_mode(manual)
        chain = self._row_of["links"]
        chain.explain(f"{chain.words.help} Drag to change the order." if manual else AUTO_HELP)
        for row in self.rows:
            if row.words.only_if is not None:
                field, value = row.words.only_if
                row.wanted = getattr(self.settings, field) == value
                row.setVisible(row.wanted and row.is_found)
            if row.names:
                row.show_differs(self._differs(row), shown_value(row.words, _default(row)))
        needed = self.settings.needs_flash_attention
        self._row_of["flash_attention"].show_note(NEEDED if needed else "")
        self._show_clamp()

    def _differs(self, row: SettingRow) -> bool:
        if row.control is self.template:
            return self.template.is_chosen
        return any(getattr(self.settings, name) != getattr(_DEFAULTS, name) for name in row.names)

    # ---- the model in memory

    def show_model(self, path: str | None, report: ModelReport | None) -> None:
        """The model that is chosen, and what is known of it while it is in memory."""
        self._report = report
        self.template.show_model(path)
        self.chain.show_reports(report.drafters if report is not None else ())
        self._refresh()

    def _show_clamp(self) -> None:
        """The longest draft that a pass has room for, where that is less than what was asked for."""
        report, asked = self._report, self.settings.max_draft
        room = asked if report is None else report.max_draft
        text = ""
        if report is not None and room < asked:
            tokens = "1 token" if room == 1 else f"{room} tokens"
            what = f"holds {tokens} at most" if room else "cannot be made"
            text = f"With {visible(report.name)} a draft {what}: a pass has room for no more."
        self._row_of["max_draft"].show_note(text)

    # ---- search and groups

    def search(self, text: str) -> int:
        """Show only the rows in which every word of ``text`` occurs; how many those are."""
        found = text.casefold().split()
        titles = {group.name: group.title for group in GROUPS}
        shown = dict.fromkeys(titles, 0)
        for group, rows in self._rows_in.items():
            for row in rows:
                matches = row.search(found, titles[group])
                row.setVisible(matches and row.wanted)
                shown[group] += matches and row.wanted
        for name, section in self.sections.items():
            section.setVisible(shown[name] > 0)
        self.area.verticalScrollBar().setValue(0)
        return sum(shown.values())

    def found_groups(self) -> list[str]:
        """Those that have a row to show."""
        return [name for name, section in self.sections.items() if not section.isHidden()]

    def go_to(self, group: str) -> None:
        """Bring a group to the top, also on a page that was shown only now."""
        for widget in (self.window(), self, self.area, self.column):
            QApplication.sendPostedEvents(widget, QEvent.Type.LayoutRequest)
        self.area.verticalScrollBar().setValue(self.sections[group].y())

    def _scrolled(self, value: int) -> None:
        bar = self.area.verticalScrollBar()
        there = self.found_groups()
        if not there:
            return
        above = [name for name in there if self.sections[name].y() <= value + self.sections[name].height()]
        at_end = value == bar.maximum() > 0
        self.reached.emit(there[-1] if at_end else above[-1] if above else there[0])

    # ---- end

    def hideEvent(self, event: QHideEvent) -> None:
        self._flush()
        super().hideEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._flush()
        super().closeEvent(event)

    def _flush(self) -> None:
        """What was typed last is not lost with the page."""
        if self._settle.isActive():
            self._send()


def _default(row: SettingRow) -> Any:
    return getattr(_DEFAULTS, row.words.name)
