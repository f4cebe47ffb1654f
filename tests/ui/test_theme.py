"""Colours: contrast of every role, one source of colours, live switching (case H06)."""

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QMenu
from pytestqt.qtbot import QtBot

import ui
from app import paths
from app.settings import Settings
from ui.speed import drafters
from ui.theme import (
    DARK,
    LIGHT,
    TEXT_PAIRS,
    Theme,
    Tokens,
    code_font,
    numbers_font,
    small_font,
    style_sheet,
)
from ui.widgets.quiet_button import QuietButton


def contrast(first: str, second: str) -> float:
    """Contrast ratio of WCAG 2.1."""

    def luminance(colour: str) -> float:
        channels = (QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF())
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_computed_right() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("role", "ground"), TEXT_PAIRS)
def test_text_can_be_read(tokens: Tokens, role: str, ground: str) -> None:
    assert contrast(getattr(tokens, role), getattr(tokens, ground)) >= 4.5


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_drafters_can_be_read_and_told_apart(tokens: Tokens) -> None:
    colours = [look.colour(tokens.dark) for look in drafters.looks()]
    assert len(set(colours)) == len(colours)
    for colour in colours:
        assert contrast(colour, tokens.panel) >= 4.5
        assert contrast(colour, tokens.background) >= 4.5


def test_no_colour_is_written_elsewhere() -> None:
    for path in [*Path(ui.__path__[0]).rglob("*.py"), *(paths.assets_dir() / "styles").glob("*.qss")]:
        if path.name not in ("theme.py", "drafters.py"):
            assert not re.findall(r'["\s:]#[0-9A-Fa-f]{3,8}\b', path.read_text(encoding="utf-8")), path.name


def test_every_role_of_the_style_sheet_exists() -> None:
    sheet = (paths.assets_dir() / "styles" / "slipstream.qss").read_text(encoding="utf-8")
    assert "@" not in style_sheet(sheet, LIGHT)
    with pytest.raises(AttributeError):
        style_sheet("a { color: @nonsense; }", LIGHT)


def test_switching_reaches_the_palette_and_says_so(theme: Theme, qapp: QApplication) -> None:
    heard: list[bool] = []
    theme.changed.connect(lambda: heard.append(theme.tokens.dark))
    theme.choose("dark")
    theme.choose("dark")
    assert heard == [True]
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.background)
    theme.choose("light")
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(LIGHT.background)


def test_the_desktops_choice_is_followed_live(theme: Theme, qapp: QApplication) -> None:
    scheme = Qt.ColorScheme.Light
    following = Theme(qapp, "system", lambda: scheme)
    heard: list[Tokens] = []
    following.changed.connect(lambda: heard.append(following.tokens))
    for scheme in (Qt.ColorScheme.Dark, Qt.ColorScheme.Light):
        qapp.styleHints().colorSchemeChanged.emit(scheme)
    assert heard == [DARK, LIGHT]
    following.choose("light")
    scheme = Qt.ColorScheme.Dark
    qapp.styleHints().colorSchemeChanged.emit(scheme)
    assert heard == [DARK, LIGHT]  # what was chosen counts
    qapp.styleHints().colorSchemeChanged.disconnect(following.follow)
    following.deleteLater()


def test_text_size_font_and_density_hold_at_once(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    label, button = QLabel("Wörter"), QuietButton(theme, "copy", "Copy")
    small = QLabel("small")
    small.setProperty("role", "small")
    for widget in (label, button, small):
        qtbot.addWidget(widget)
        widget.show()
    family = qapp.font().family()
    before = (label.fontMetrics().height(), small.fontMetrics().height(), button.sizeHint())
    heard: list[int] = []
    theme.changed.connect(lambda: heard.append(theme.measures.zoom))
    theme.apply(Settings(theme="light", zoom=200, density="compact", font_family="Monospace"))
    assert heard == [200]
    assert qapp.font().pixelSize() == 26 and qapp.font().family() == "Monospace"
    assert label.fontMetrics().height() > 1.5 * before[0]
    assert small.fontMetrics().height() > 1.5 * before[1]
    assert button.sizeHint().width() > before[2].width() and button.sizeHint().height() > before[2].height()
    assert theme.measures.row_px == 48
    assert "padding: 3px 24px 3px 12px" in qapp.styleSheet()
    theme.apply(Settings(theme="dark"))
    assert heard == [200, 100]
    assert (qapp.font().pixelSize(), qapp.font().family()) == (13, family)
    assert theme.measures.row_px == 32
    assert label.fontMetrics().height() == before[0]
    assert theme.tokens is DARK


def test_fonts_follow_the_text_size(theme: Theme, qapp: QApplication) -> None:
    sizes = []
    for zoom in (100, 200):
        theme.apply(Settings(theme="light", zoom=zoom))
        sizes.append(
            [small_font().pixelSize(), numbers_font(qapp.font()).pixelSize(), code_font().pixelSize()]
        )
    assert sizes == [[12, 12, 13], [24, 24, 26]]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_ticks_in_menus_are_ours_and_in_the_accent(theme: Theme, qtbot: QtBot, name: str) -> None:
    theme.apply(Settings(theme=name))  # type: ignore[arg-type]
    menu = QMenu()
    qtbot.addWidget(menu)
    for text in ("one", "two"):
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(text == "two")
    menu.ensurePolished()
    menu.resize(menu.sizeHint())
    picture = menu.grab().toImage()
    accent = QColor(theme.tokens.accent)
    ticked = {
        action.text()
        for action in menu.actions()
        for x in range(menu.actionGeometry(action).left(), menu.actionGeometry(action).left() + 28)
        for y in range(menu.actionGeometry(action).top(), menu.actionGeometry(action).bottom())
        if picture.pixelColor(x, y) == accent
    }
    assert ticked == {"two"}
