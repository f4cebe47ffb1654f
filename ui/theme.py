"""The colours and measures of the window, and the switch between light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from app import paths

Choice = Literal["system", "light", "dark"]

STEP = 4
RADIUS = 8
FONT_PX = 13
SMALL_PX = 12
MEASURE = 760
LINE_HEIGHT = 1.5


class Tokens(Struct, frozen=True, kw_only=True):
    """One theme: every colour that is drawn, by its role."""

    dark: bool
    background: str
    panel: str
    raised: str
    text: str
    muted: str
    line: str
    accent: str
    on_accent: str
    accent_hover: str
    hover: str
    danger: str
    danger_panel: str
    warning: str
    code_background: str
    inline_code: str
    selection: str
    on_selection: str
    code_keyword: str
    code_string: str
    code_comment: str
    code_number: str
    code_name: str
    code_type: str


LIGHT = Tokens(
    dark=False,
    background="#FBFBFA",
    panel="#F3F3F1",
    raised="#FFFFFF",
    text="#1C1C1A",
    muted="#63635E",
    line="#E3E3DF",
    accent="#0B6E99",
    on_accent="#FFFFFF",
    accent_hover="#095C80",
    hover="#E9E9E5",
    danger="#B3261E",
    danger_panel="#FBEEEC",
    warning="#7A5200",
    code_background="#F3F3F1",
    inline_code="#EDEDEA",
    selection="#BFDDEA",
    on_selection="#1C1C1A",
    code_keyword="#8A2A6B",
    code_string="#2E6B34",
    code_comment="#63635E",
    code_number="#8A4B08",
    code_name="#0B5F85",
    code_type="#5A3FA0",
)

DARK = Tokens(
    dark=True,
    background="#161716",
    panel="#1E201F",
    raised="#232524",
    text="#E9E9E6",
    muted="#9A9A94",
    line="#30322F",
    accent="#4FB3DB",
    on_accent="#0E1A20",
    accent_hover="#74C4E4",
    hover="#2A2D2B",
    danger="#F2938C",
    danger_panel="#2E1D1B",
    warning="#E0B35C",
    code_background="#1E201F",
    inline_code="#292C2A",
    selection="#23566B",
    on_selection="#FFFFFF",
    code_keyword="#E08BC0",
    code_string="#8CC793",
    code_comment="#9A9A94",
    code_number="#E5A352",
    code_name="#72C2E3",
    code_type="#B795EB",
)

# Which colours carry text, and on what: each pair reaches 4.5:1 (a test measures it).
TEXT_PAIRS: tuple[tuple[str, str], ...] = (
    *((role, ground) for role in ("text", "muted") for ground in ("background", "panel", "raised", "hover")),
    *((role, ground) for role in ("accent", "danger", "warning") for ground in ("background", "panel")),
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    ("on_selection", "selection"),
    ("text", "danger_panel"),
    ("danger", "danger_panel"),
    ("text", "inline_code"),
    *(
        (f"code_{role}", "code_background")
        for role in ("keyword", "string", "comment", "number", "name", "type")
    ),
)


class Theme(QObject):
    """The theme in force. ``changed`` is sent after palette and style sheet were put in place."""

    changed = Signal()

    def __init__(
        self,
        application: QApplication,
        choice: Choice = "system",
        scheme: Callable[[], Qt.ColorScheme] | None = None,
    ) -> None:
        super().__init__(application)
        self._application = application
        self._scheme = scheme or application.styleHints().colorScheme
        self._choice = choice
        self._sheet = (paths.assets_dir() / "styles" / "slipstream.qss").read_text(encoding="utf-8")
        application.setStyle("Fusion")
        font = application.font()
        font.setPixelSize(FONT_PX)
        application.setFont(font)
        self.tokens = LIGHT
        self._put(self._wanted())
        application.styleHints().colorSchemeChanged.connect(self.follow)

    def choose(self, choice: Choice) -> None:
        self._choice = choice
        # For what the desktop draws itself, such as the title bar.
        self._application.styleHints().setColorScheme(
            {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(choice, Qt.ColorScheme.Unknown)
        )
        self.follow()

    def follow(self) -> None:
        """Take what was chosen, or what the desktop uses now."""
        tokens = self._wanted()
        if tokens is not self.tokens:
            self._put(tokens)
            self.changed.emit()

    def _wanted(self) -> Tokens:
        if self._choice == "system":
            return DARK if self._scheme() == Qt.ColorScheme.Dark else LIGHT
        return DARK if self._choice == "dark" else LIGHT

    def _put(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self._application.setPalette(palette(tokens))
        self._application.setStyleSheet(style_sheet(self._sheet, tokens))

    def colour(self, role: str) -> QColor:
        value: str = getattr(self.tokens, role)
        return QColor(value)


def palette(tokens: Tokens) -> QPalette:
    result = QPalette()
    role = QPalette.ColorRole
    for key, value in {
        role.Window: tokens.background,
        role.WindowText: tokens.text,
        role.Base: tokens.raised,
        role.AlternateBase: tokens.panel,
        role.Text: tokens.text,
        role.Button: tokens.panel,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.danger,
        role.ToolTipBase: tokens.raised,
        role.ToolTipText: tokens.text,
        role.PlaceholderText: tokens.muted,
        role.Link: tokens.accent,
        role.LinkVisited: tokens.accent,
        role.Highlight: tokens.selection,
        role.HighlightedText: tokens.on_selection,
        role.Accent: tokens.accent,
        role.Light: tokens.raised,
        role.Midlight: tokens.hover,
        role.Mid: tokens.line,
        role.Dark: tokens.line,
        role.Shadow: tokens.line,
    }.items():
        result.setColor(key, QColor(value))
    for key in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        result.setColor(QPalette.ColorGroup.Disabled, key, QColor(tokens.muted))
    return result


def style_sheet(template: str, tokens: Tokens) -> str:
    """``template`` with each @role replaced by its colour; an unknown role is an error of ours."""
    return re.sub(r"@(\w+)", lambda match: str(getattr(tokens, match[1])), template)


def code_font(size_px: int = FONT_PX) -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(size_px)
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def small_font(base: QFont) -> QFont:
    font = QFont(base)
    font.setPixelSize(SMALL_PX)
    return font


def numbers_font(base: QFont, size_px: int = SMALL_PX) -> QFont:
    """``base`` with digits of one width, so that nothing moves while they change."""
    font = QFont(base)
    font.setPixelSize(size_px)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font
