"""Manual mode in the settings: order by pointer and keyboard, parameters, and what the model allows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QDoubleSpinBox, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.protocol import DRAFTERS, NEURAL, DrafterReport
from app.settings import Settings
from drafting.parameters import (
    CacheParameters,
    LinkParameters,
    MapParameters,
    ModParameters,
    SuffixParameters,
)
from tests.ui.test_live_numbers import report
from tests.ui.test_settings_form import Heard, make
from ui.settings.chain_editor import Grip, LinkRow
from ui.settings.settings_form import SettingsForm
from ui.settings.special_editors import ModeChoice
from ui.theme import Theme

MANUAL = Settings(draft_mode="manual")


def shown(theme: Theme, qtbot: QtBot, settings: Settings = MANUAL) -> tuple[SettingsForm, Heard]:
    dialog, heard = make(theme, qtbot, settings)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    return dialog, heard


def row(dialog: SettingsForm, name: str) -> LinkRow:
    return next(each for each in dialog.chain.rows if each.name == name)


def spin(dialog: SettingsForm, name: str) -> QSpinBox:
    box = dialog.controls[name]
    assert isinstance(box, QSpinBox)
    return box


def test_up_and_down_move_a_drafter_that_stays_in_focus(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    grip = row(dialog, "map-k").grip
    grip.setFocus()
    QTest.keyClick(grip, Qt.Key.Key_Up)
    QTest.keyClick(grip, Qt.Key.Key_Up)
    QTest.keyClick(grip, Qt.Key.Key_Up)  # there is no place above the first
    assert heard[-1].order == ("map-k", "cache", "simple", "map-k4v", "mod", "suffix", *NEURAL)
    assert len(heard) == 2
    assert grip.hasFocus()
    QTest.keyClick(grip, Qt.Key.Key_Down)
    assert heard[-1].drafting_params().links[:3] == ("cache", "map-k", "simple")


def test_tab_follows_the_order_on_the_page(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = shown(theme, qtbot)
    for _ in range(3):
        QTest.keyClick(row(dialog, "suffix").grip, Qt.Key.Key_Up)
    row(dialog, "cache").fold.click()
    dialog.controls["drafting"].setFocus()
    visited: list[QWidget] = []
    while (focused := QApplication.focusWidget()) is not dialog.controls["max_draft"]:
        visited.append(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        assert len(visited) < 60
    heights = [
        widget.mapTo(dialog.chain, QPoint()).y() for widget in visited if dialog.chain.isAncestorOf(widget)
    ]
    assert len(heights) >= 3 * len(DRAFTERS) + 3
    grips = [widget for widget in visited if isinstance(widget, Grip)]
    assert [grip.accessibleName().split()[1] for grip in grips] == list(dialog.chain.order)
    tops = [grip.mapTo(dialog.chain, QPoint()).y() for grip in grips]
    assert tops == sorted(tops)


def test_a_row_follows_the_pointer(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    grip = row(dialog, "cache").grip
    target = row(dialog, "map-k4v")
    below = target.mapToGlobal(target.rect().center()) + QPoint(0, 4)
    QTest.mousePress(grip, Qt.MouseButton.LeftButton)
    grip.dragged.emit(below.y())  # what a move of the pressed pointer says
    QTest.mouseRelease(grip, Qt.MouseButton.LeftButton)
    assert heard[-1].order == ("simple", "map-k", "map-k4v", "cache", "mod", "suffix", *NEURAL)
    grip.dragged.emit(dialog.chain.mapToGlobal(QPoint(0, -500)).y())
    assert heard[-1].order[0] == "cache"


def test_a_pointer_without_a_button_drags_nothing(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    QTest.mouseMove(row(dialog, "cache").grip, QPoint(8, 400))
    assert not heard


def test_order_survives_switching_off_and_on(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    QTest.keyClick(row(dialog, "mod").grip, Qt.Key.Key_Up)
    row(dialog, "mod").switch.click()
    assert "mod" not in heard[-1].links
    row(dialog, "mod").switch.click()
    assert heard[-1].drafting_params().links == (
        "cache",
        "simple",
        "map-k",
        "mod",
        "map-k4v",
        "suffix",
        *NEURAL,
    )


def test_parameters_settle_and_are_sent(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    row(dialog, "map-k").fold.click()
    spin(dialog, "parameters.map-k.n").setValue(8)
    spin(dialog, "parameters.map-k.m").setValue(24)
    assert not heard
    qtbot.waitUntil(lambda: len(heard) == 1)
    assert heard[-1].drafting_params().parameters == LinkParameters(map_k=MapParameters(n=8, m=24))
    row(dialog, "map-k").fold.click()
    assert row(dialog, "map-k")._note.text() == "n 8, m 24"
    row(dialog, "map-k").panel.defaults.click()
    qtbot.waitUntil(lambda: len(heard) == 2)
    assert heard[-1].parameters == LinkParameters()
    assert spin(dialog, "parameters.map-k.n").value() == 12
    assert not row(dialog, "map-k")._note.isVisible()


def test_closing_at_once_loses_no_parameter(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    spin(dialog, "parameters.simple.m").setValue(5)
    dialog.close()
    assert heard[-1].parameters.simple.m == 5


def test_the_smallest_never_passes_the_largest(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    spin(dialog, "parameters.mod.n_max").setValue(20)
    assert spin(dialog, "parameters.mod.n_min").value() == 20
    spin(dialog, "parameters.cache.ngram_max").setValue(2)
    spin(dialog, "parameters.cache.ngram_min").setValue(3)
    dialog.close()
    assert heard[-1].parameters.mod == ModParameters(n_min=20, n_max=20)
    assert heard[-1].parameters.cache == CacheParameters(ngram_min=3, ngram_max=3)


def test_ranges_are_the_workers(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = shown(theme, qtbot)
    assert (spin(dialog, "parameters.mod.n").minimum(), spin(dialog, "parameters.mod.n").maximum()) == (1, 64)
    share = dialog.controls["parameters.suffix.p_min"]
    assert isinstance(share, QDoubleSpinBox)
    assert (share.minimum(), share.maximum(), share.value()) == (0.0, 1.0, SuffixParameters().p_min)


def test_auto_shows_neither_order_nor_parameters(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    row(dialog, "cache").fold.click()
    cache = row(dialog, "cache")
    assert cache.panel.isVisible() and cache.grip.isVisible()
    assert not dialog.controls["floor_auto"].isVisible() and dialog.controls["floor_manual"].isVisible()
    mode = dialog.controls["drafting"]
    assert isinstance(mode, ModeChoice)
    mode.buttons["auto"].click()
    assert heard[-1].draft_mode == "auto"
    assert not (cache.panel.isVisible() or cache.grip.isVisible() or cache.fold.isVisible())
    assert dialog.controls["floor_auto"].isVisible() and not dialog.controls["floor_manual"].isVisible()
    mode.buttons["manual"].click()
    assert cache.panel.isVisible()  # as it was left


def test_everything_that_can_be_changed_explains_itself(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = shown(theme, qtbot)
    for name, control in dialog.controls.items():
        assert control.accessibleName(), name
        if name != "draft_model":  # its buttons do
            assert control.toolTip().endswith("."), name


@pytest.mark.parametrize(("mode", "setting"), [("auto", "floor_auto"), ("manual", "floor_manual")])
def test_the_floor_is_a_share_in_percent(theme: Theme, qtbot: QtBot, mode: str, setting: str) -> None:
    dialog, heard = shown(theme, qtbot, Settings(draft_mode=mode))
    box = spin(dialog, setting)
    assert box.text() == ("Off" if mode == "auto" else "20 %")
    box.setValue(35)
    dialog.close()
    assert heard[-1].drafting_params().floor == 0.35


def test_verification_is_a_choice(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = shown(theme, qtbot)
    box = dialog.controls["verification"]
    assert isinstance(box, QComboBox)
    assert [box.itemText(n) for n in range(box.count())] == ["Automatic", "Reproducible", "Exact"]
    box.setCurrentIndex(2)
    assert heard[-1].verification == "exact"


# ---- what the model in memory allows


def test_the_longest_draft_that_a_pass_has_room_for_is_shown(theme: Theme, qtbot: QtBot) -> None:
    """A09."""
    dialog, _ = shown(theme, qtbot)
    note = next(row.note for row in dialog.rows if "max_draft" in row.names)
    assert not note.isVisible()
    dialog.show_model("/m/toy.gguf", replace(report(), max_draft=7))
    assert note.text() == "With toy a draft holds 7 tokens at most: a pass has room for no more."
    assert note.isVisible()
    spin(dialog, "max_draft").setValue(7)
    assert not note.isVisible()
    dialog.show_model("/m/toy.gguf", replace(report(), max_draft=0))
    assert note.text() == "With toy a draft cannot be made: a pass has room for no more."
    dialog.show_model("/m/toy.gguf", None)
    assert not note.isVisible()


def test_a_drafter_that_cannot_draft_says_why(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = shown(theme, qtbot)
    known = report(DrafterReport("cache"), DrafterReport("draft", "no file\u202e"))
    dialog.show_model("/m/toy.gguf", known)
    assert row(dialog, "draft")._note.text().startswith("Cannot draft now: no file")
    assert "\u202e" not in row(dialog, "draft")._note.text()
    assert not row(dialog, "cache")._note.isVisible()
    dialog.show_model("/m/toy.gguf", None)
    assert not row(dialog, "draft")._note.isVisible()


def test_names_keep_their_colours_on_the_other_theme(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = shown(theme, qtbot)
    before = row(dialog, "cache")._label.styleSheet()
    theme.choose("dark")
    assert row(dialog, "cache")._label.styleSheet() != before
