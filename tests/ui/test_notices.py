"""Lines to read once: where they are shown, and what they offer."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.settings import Settings
from tests.ui.chats import WAIT, ready
from tests.ui.conftest import MakeWindow
from ui.main_window import CHATS, MODELS, SETTINGS, MainWindow
from ui.settings.settings_page import SettingsPage
from ui.theme import Theme
from ui.widgets.cards import ACTIONS
from ui.widgets.notices import Notices


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window()
    ready(window, qtbot)
    return window


def choose(notices: Notices, text: str) -> None:
    """Press the button of the line with these words."""
    [line] = [line for line in notices.lines() if text in line.text]
    assert line.button is not None and line.button.accessibleDescription() == line.text
    line.button.click()


def test_settings_that_could_not_be_saved_are_saved_again(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.show_page(SETTINGS)
    file = window.session._settings_file
    saved = type(file).save

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(file), "save", full)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    window._zoom(120)
    assert window.notices.texts() == ("The settings could not be saved: No space left on device.",)
    assert window.notices.isVisible()  # where the person is
    choose(window.notices, "could not be saved")
    assert len(window.notices.texts()) == 1  # it failed again
    monkeypatch.setattr(type(file), "save", saved)
    choose(window.notices, "could not be saved")
    assert window.notices.texts() == () and window.notices.isHidden()
    assert file.load().zoom == 120


def test_what_was_said_on_another_page_comes_along_to_the_chat(window: MainWindow) -> None:
    window.show_page(MODELS)
    window.shell.copy_report()
    assert "clipboard" in window.notices.texts()[0] and window.chat.notices() == ()
    window.show_page(CHATS)
    assert window.notices.texts() == () and "clipboard" in window.chat.notices()[0]
    window.session.noticed.emit("Something else.")
    assert window.chat.notices()[-1] == "Something else." and window.notices.texts() == ()


def test_a_server_that_cannot_start_leads_to_its_settings(
    window: MainWindow, qtbot: QtBot, unused_port: int
) -> None:
    import socket

    from msgspec.structs import replace

    with socket.create_server(("127.0.0.1", unused_port)):
        window.session.apply(replace(window.session.settings, server=True, server_port=unused_port))
        qtbot.waitUntil(
            lambda: any("local server is not running" in text for text in window.chat.notices()), timeout=WAIT
        )
        choose(window.chat._notices, "local server is not running")
    assert window.shown == SETTINGS
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    section = page.form.sections["server"]
    area = page.form.area
    top = section.mapTo(area.viewport(), section.rect().topLeft()).y()
    assert top == 0 or area.verticalScrollBar().value() == area.verticalScrollBar().maximum()
    window.session.apply(replace(window.session.settings, server=False))


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_an_error_that_nobody_caught_offers_the_report(window: MainWindow) -> None:
    QApplication.clipboard().clear()
    window.tell_of_failure("Something went wrong inside Slipstream (ValueError).")
    choose(window.chat._notices, "ValueError")
    assert "Slipstream" in QApplication.clipboard().text()


@pytest.mark.parametrize("zoom", [100, 150])
def test_where_there_is_little_width_the_button_stands_below_the_words(
    theme: Theme, qtbot: QtBot, zoom: int
) -> None:
    theme.apply(Settings(theme="light", zoom=zoom))
    around = QWidget()
    qtbot.addWidget(around)
    column = QVBoxLayout(around)
    notices = Notices(theme, around)
    column.addWidget(notices)
    column.addStretch(1)
    around.resize(900 * zoom // 100, 300)
    notices.add(
        "The last run of Slipstream did not end properly. Your chats and settings are kept.", "report"
    )
    around.show()
    qtbot.waitExposed(around)
    [line] = notices.lines()
    button, words = line.button, line.findChild(QLabel)
    assert button is not None and isinstance(words, QLabel)
    qtbot.waitUntil(lambda: button.x() > words.geometry().right())
    for width, below in ((330, True), (900, False), (330, True)):
        around.resize(width * zoom // 100, 300)
        qtbot.waitUntil(
            lambda below=below: (
                (button.y() >= words.geometry().bottom()) is below  # type: ignore[misc]
                and words.height() >= words.heightForWidth(words.width())
                and line.rect().contains(button.geometry())
                and button.width() >= button.sizeHint().width()
            )
        )


@pytest.mark.parametrize("page", [CHATS, SETTINGS])
def test_f6_comes_to_what_a_notice_offers(window: MainWindow, qtbot: QtBot, page: str) -> None:
    window.show_page(page)
    window.session.offered.emit("The settings could not be saved.", "save_settings")
    with qtbot.waitActive(window, timeout=WAIT):
        window.activateWindow()
    [line] = (window.chat._notices if page == CHATS else window.notices).lines()
    assert line.button is not None
    for _ in window.shell.regions.parts():
        if line.isAncestorOf(QApplication.focusWidget() or window):
            break
        qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_F6)
    assert line.button.hasFocus()
    qtbot.keyClick(line.button, Qt.Key.Key_Space)
    assert window.chat.notices() == () and window.notices.texts() == ()


def test_every_action_that_a_notice_or_card_names_is_there(window: MainWindow, tmp_path: Path) -> None:
    """Those of cards are done by the chat page, the others by the window."""
    of_cards = {"retry", "continue", "reload", "restart", "restart_plain", "choose", "save", "ask_anew"}
    for name in set(ACTIONS) - of_cards - {"save_settings"}:
        assert window.actions_[name.partition(":")[0]].isEnabled()
