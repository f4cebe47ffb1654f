"""The colours, sizes and room of the window, and the switch between light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from app import paths
from app.settings import Settings
from ui.icons import icon_file

Choice = Literal["system", "light", "dark"]

# Room between and inside of things, in steps of four pixels.
STEP = 4
SPACE_TIGHT, SPACE, SPACE_WIDE, SPACE_PAGE = STEP, 2 * STEP, 4 * STEP, 6 * STEP
# Corners: of what is in a line of text, of controls and boxes, of what floats.
RADIUS_SMALL, RADIUS, RADIUS_LARGE = 4, 8, 12
FONT_PX = 13
SMALL_PX = 12
TITLE_PX = 20
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
    found: str
    on_found: str
    found_now: str
    on_found_now: str
    shade: str
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
    found="#F8E5A0",
    on_found="#1C1C1A",
    found_now="#F2A93B",
    on_found_now="#1C1C1A",
    shade="#381C1C1A",
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
    found="#57481A",
    on_found="#FFFFFF",
    found_now="#F0B545",
    on_found_now="#161716",
    shade="#90000000",
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
    ("on_found", "found"),
    ("on_found_now", "found_now"),
    ("text", "danger_panel"),
    ("danger", "danger_panel"),
    ("text", "inline_code"),
    *(
        (f"code_{role}", "code_background")
        for role in ("keyword", "string", "comment", "number", "name", "type")
    ),
)


class Measures(Struct, frozen=True, kw_only=True):
    """Sizes that a person can change: of text in percent, and how much room lines of lists have."""

    zoom: int = 100
    compact: bool = False

    @property
    def row_px(self) -> int:
        """Height of one line of a list."""
        return scaled_px(24 if self.compact else 32, self.zoom)

    @property
    def gap_px(self) -> int:
        """Room above and below what is in a row that is higher than a line."""
        return STEP if self.compact else 2 * STEP

    # Roles of the style sheet

    @property
    def radius_small(self) -> str:
        return f"{RADIUS_SMALL}px"

    @property
    def radius(self) -> str:
        return f"{RADIUS}px"

    @property
    def radius_large(self) -> str:
        return f"{RADIUS_LARGE}px"

    @property
    def small_size(self) -> str:
        return f"{scaled_px(SMALL_PX, self.zoom)}px"

    @property
    def title_size(self) -> str:
        return f"{scaled_px(TITLE_PX, self.zoom)}px"

    @property
    def item_padding(self) -> str:
        return "3px" if self.compact else "6px"


class Theme(QObject):
    """The theme in force. ``changed`` is sent after palette, fonts and style sheet were put in place."""

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
        self._desktop_family = application.font().family()
        self._family = ""
        self.tokens = LIGHT
        self.measures = Measures()
        self._set_font()
        self._put(self._wanted())
        application.styleHints().colorSchemeChanged.connect(self.follow)

    def apply(self, settings: Settings) -> None:
        """Take theme, font, text size and density from the settings."""
        measures = Measures(zoom=settings.zoom, compact=settings.density == "compact")
        resized = (measures, settings.font_family) != (self.measures, self._family)
        self.measures, self._family = measures, settings.font_family
        if resized:
            self._set_font()
        before = self.tokens
        if settings.theme != self._choice:
            self.choose(settings.theme)
        if resized and self.tokens is before:
            self._put(before)
            self.changed.emit()

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
        # Without the old sheet on, the new one is put on in a quarter of the time.
        self._application.setStyleSheet("")
        self._application.setPalette(palette(tokens))
        self._application.setStyleSheet(style_sheet(self._sheet, tokens, self.measures))

    def _set_font(self) -> None:
        font = self._application.font()
        font.setFamily(self._family or self._desktop_family)
        font.setPixelSize(scaled_px(FONT_PX, self.measures.zoom))
        self._application.setFont(font)

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


def style_sheet(template: str, tokens: Tokens, measures: Measures = Measures()) -> str:
    """``template`` with each @role replaced by its colour or size, and @icon(name, role) by the file of
    that icon in that colour; an unknown role is an error of ours."""

    def value(match: re.Match[str]) -> str:
        source = tokens if match[1] in tokens.__struct_fields__ else measures
        return str(getattr(source, match[1]))

    def file(match: re.Match[str]) -> str:
        return f'url("{icon_file(match[1], getattr(tokens, match[2])).as_posix()}")'

    return re.sub(r"@(\w+)", value, re.sub(r"@icon\((\w+), (\w+)\)", file, template))


def scaled_px(size_px: int, zoom: int) -> int:
    return max(1, round(size_px * zoom / 100))


def _like(base: QFont, size_px: int) -> int:
    """``size_px`` is for text of FONT_PX; ``base`` may be larger or smaller, as the person likes it."""
    return round(size_px * base.pixelSize() / FONT_PX) if base.pixelSize() > 0 else size_px


def code_font(size_px: int | None = None) -> QFont:
    """In pixels as they are; None is as large as the other text."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(size_px if size_px is not None else _like(QApplication.font(), FONT_PX))
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def math_font(size_px: int) -> QFont:
    """A serif face for formulas, whose letters tell variables from words."""
    font = QFont()
    font.setFamilies(["STIX Two Text", "Cambria", "Times New Roman", "DejaVu Serif", "Liberation Serif"])
    font.setStyleHint(QFont.StyleHint.Serif)
    font.setPixelSize(size_px)
    return font


def small_font(base: QFont | None = None) -> QFont:
    """Of ``base``, which has the usual size; None is the window's own font."""
    font = QFont(base or QApplication.font())
    font.setPixelSize(_like(font, SMALL_PX))
    return font


def numbers_font(base: QFont | None = None, size_px: int = SMALL_PX) -> QFont:
    """``base`` with digits of one width, so that nothing moves while they change; None is the window's own
    font."""
    font = QFont(base or QApplication.font())
    font.setPixelSize(_like(font, size_px))
    font.setFeature(QFont.Tag("tnum"), 1)
    return font
