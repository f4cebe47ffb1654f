"""The Speed panel over the real pipe: what it draws is what the script drafted."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QToolTip
from pytestqt.qtbot import QtBot

from app.chats.message import Message
from app.protocol import Piece
from app.settings import Settings
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.conftest import MakeWindow
from ui.main_window import MainWindow
from ui.speed import answer_words, drafters
from ui.speed.speed_panel import EMPTY, SpeedPanel
from ui.speed.speed_split import LEAST_PX
from ui.theme import DARK, LIGHT, Theme

WAIT = 20_000
DRAFTS = ((4, 3), (8, 8), (5, 0), (0, 0), (6, 4))
NAMES = ("cache", "map-k", "suffix")
REPLY = FakeReply(
    text="One word and another one. " * 40, tokens_per_second=2000, drafts=DRAFTS, drafters=NAMES
)
SCRIPT = FakeScript(replies=(REPLY,), plain_tokens_per_second=500)


def ask(window: MainWindow, qtbot: QtBot, text: str = "Go on") -> None:
    controller = window.session.controller
    qtbot.waitUntil(lambda: controller.state.phase == "ready", timeout=WAIT)
    before = len(controller.conversation.messages)
    assert controller.send(text)
    qtbot.waitUntil(
        lambda: not controller.busy and len(controller.conversation.messages) == before + 2, timeout=WAIT
    )


@pytest.fixture
def window(make_window: MakeWindow) -> MainWindow:
    window = make_window(script=SCRIPT)
    window.resize(1280, 800)
    return window


def opened(window: MainWindow) -> SpeedPanel:
    window.chat.speed.open_panel()
    panel = window.chat.speed.panel
    assert panel is not None and panel.isVisible()
    return panel


def widths(item: object) -> list[float]:
    return [float(width) for width in item.opts["width"]]  # type: ignore[attr-defined]


def test_bars_and_curves_are_the_scripts(window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(window)
    assert panel.subject.text() == EMPTY
    ask(window, qtbot)
    stats = window.session.controller.conversation.messages[-1].stats
    assert stats is not None
    points = window.session.controller.numbers.series.points
    # The first pass reads the prompt; the script begins with the second and is cut at the end only.
    script = itertools.cycle(DRAFTS)
    whole = [next(script) for _ in range(30)]
    assert [(p.drafted, p.accepted) for p in points[1:31]] == whole
    said = [p.drafter for p in points[1:31] if p.drafted]
    assert said == [name for name, _ in zip(itertools.cycle(NAMES), said, strict=False)]
    assert sum(p.tokens for p in points) == stats.completion_tokens

    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    names = answer_words.who_drafted(stats)
    assert panel.by_drafter.names == tuple(names) == panel.legend.names
    assert set(names) == set(NAMES)
    assert widths(panel.by_drafter.drafted) == [stats.by_drafter[name].drafted for name in names]
    assert widths(panel.by_drafter.accepted) == [stats.by_drafter[name].accepted for name in names]
    shares = [accepted / drafted for drafted, accepted in answer_words.by_position(stats)]
    assert [float(height) for height in panel.by_position.bars.opts["height"]] == shares
    for curve, values in (
        (panel.speed, [p.speed for p in points]),
        (panel.acceptance, [p.acceptance for p in points]),
        (panel.draft_length, [p.draft_length for p in points]),
    ):
        x, y = curve.curve.getData()
        assert list(x) == [p.end for p in points]
        assert [float(v) for v in y[1:]] == values[1:]
    shown = panel.figures.text()
    strip = window.chat.strip
    assert f"{stats.completion_tokens} tokens" in shown
    for field, words in (
        (strip.speed, "tok/s"),
        (strip.acceptance, "accepted"),
        (strip.per_pass, "per pass"),
    ):
        assert field.text().endswith(words)
        assert field.text() in shown
    assert strip.speedup.text() == f"{stats.speedup:.1f}x plain"
    assert f"{stats.speedup:.1f}x plain speed" in shown


def test_it_follows_the_answer_while_it_is_written(make_window: MakeWindow, qtbot: QtBot) -> None:
    slow = FakeReply(text="word " * 2000, tokens_per_second=100, drafts=((4, 3),), drafters=("cache",))
    window = make_window(slow)
    panel = opened(window)
    controller = window.session.controller
    qtbot.waitUntil(lambda: controller.state.phase == "ready", timeout=WAIT)
    controller.send("Go on")
    seen: set[int] = set()

    def grew() -> bool:
        seen.add(len(panel.speed.curve.getData()[0]) if panel.speed.isVisible() else 0)
        return len(seen) > 5

    qtbot.waitUntil(grew, timeout=WAIT)
    assert panel.subject.text() == "The answer that is being written"
    controller.stop()
    qtbot.waitUntil(lambda: not controller.busy, timeout=WAIT)


def test_a_closed_panel_does_nothing(window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.by_drafter.value != "", timeout=WAIT)
    panel.close_button.click()
    assert not panel.isVisible() and not window.chat.speed.is_open
    before = (panel.by_drafter.value, panel.speed.accessibleDescription())
    QApplication.processEvents()
    drawn: list[bool] = []
    for plot in (*panel.curves, panel.by_drafter, panel.by_position):
        plot.plot.scene().changed.connect(lambda regions: drawn.append(True))
    ask(window, qtbot)
    assert not panel._pace.waiting
    assert drawn == []
    assert (panel.by_drafter.value, panel.speed.accessibleDescription()) == before
    opened(window)
    assert panel.speed.accessibleDescription() != ""


def test_nothing_of_it_is_imported_before_it_is_seen() -> None:
    """The library that draws takes a while."""
    code = (
        "import sys; import ui.main, ui.speed.speed_split, ui.speed.speed_page; "
        "print([name for name in ('pyqtgraph', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_it_says_itself_in_words(window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    stats = panel.stats
    assert panel.by_drafter.accessibleDescription() == answer_words.drafters_words(stats)
    assert panel.by_position.accessibleDescription() == answer_words.positions_words(stats)
    passes = f"in {len(window.session.controller.numbers.series.points)} passes."
    for curve in panel.curves:
        assert curve.accessibleDescription().endswith(passes)
    for plot in (*panel.curves, panel.by_drafter, panel.by_position):
        assert plot.toolTip() and plot.toolTip() in plot.accessibleName()
    assert "without a draft" in panel.silences.text()
    for mark in panel.legend.marks:
        assert mark.look.pattern in mark.accessibleName()


def test_the_pointer_and_the_arrow_keys_tell_the_pass(window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    QApplication.processEvents()
    points = window.session.controller.numbers.series.points
    QTest.mouseMove(panel.speed, QPoint(panel.speed.width() // 2, panel.speed.height() // 2))
    qtbot.waitUntil(lambda: panel.speed.mark.isVisible(), timeout=WAIT)
    assert QToolTip.text() in {answer_words.pass_words(point) for point in points}
    marked = panel._marked
    assert marked is not None and marked.end == panel.acceptance.mark.value()
    place = points.index(marked)
    QTest.keyClick(panel.speed, Qt.Key.Key_Right)
    assert panel._marked is points[place + 1]
    QTest.keyClick(panel.speed, Qt.Key.Key_Left)
    QTest.keyClick(panel.speed, Qt.Key.Key_Left)
    assert panel._marked is points[place - 1]


def test_a_theme_recolours_it(window: MainWindow, theme: Theme, qtbot: QtBot) -> None:
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    names = panel.by_drafter.names
    for tokens in (LIGHT, DARK, LIGHT):
        theme.choose("dark" if tokens.dark else "light")
        for curve in panel.curves:
            assert curve.curve.opts["pen"].color() == QColor(tokens.accent)
            assert curve.plot.getAxis("left").textPen().color() == QColor(tokens.muted)
        colours = [brush.color() for brush in panel.by_drafter.accepted.opts["brushes"]]
        assert colours == [QColor(drafters.look(name).colour(tokens.dark)) for name in names]


def test_large_text_is_not_cut(window: MainWindow, theme: Theme, qtbot: QtBot) -> None:
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    scroll = panel.findChild(QScrollArea)
    for zoom in (100, 150, 200):
        theme.apply(Settings(theme="light", zoom=zoom))
        window.chat.speed.set_part_sizes((zoom * 7 // 4 + 105,))
        QApplication.processEvents()
        assert scroll.widget().width() <= scroll.viewport().width()
        assert panel.legend.height() >= panel.legend.heightForWidth(panel.legend.width())
        for value, caption in panel.figures._cells:
            for label in (value, caption):
                assert label.width() >= label.fontMetrics().horizontalAdvance(label.text())
        axis = panel.acceptance.plot.getAxis("left")
        assert axis.width() > panel.fontMetrics().horizontalAdvance("100 %") * 0.8


def test_an_earlier_answer_is_shown_from_its_footer(window: MainWindow, qtbot: QtBot) -> None:
    ask(window, qtbot, "First")
    ask(window, qtbot, "Second")
    first = window.session.controller.conversation.messages[1]
    view = window.chat.messages.view_of(first)
    assert view is not None and view.footer is not None
    number = view.footer._labels[2]
    QTest.mouseClick(number, Qt.MouseButton.LeftButton)
    panel = window.chat.speed.panel
    assert panel is not None and panel.isVisible()
    assert panel.subject.text().startswith("An earlier answer: “One word")
    assert panel.stats is first.stats
    numbers = window.session.controller.numbers
    assert first.stats is not None
    course = numbers.course(first.stats)
    assert course[-1].end == first.stats.completion_tokens
    assert list(panel.speed.curve.getData()[0]) == [point.end for point in course]
    assert not panel.no_curves.isVisible()
    panel.latest.click()
    assert panel.stats is numbers.stats
    assert list(panel.speed.curve.getData()[0]) == [point.end for point in numbers.series.points]
    old = Message(role="assistant", pieces=[Piece("Said long ago")], stats=replace(first.stats))
    panel.show_message(old)  # it was read from the disk, without its course
    assert panel.no_curves.isVisible() and not any(curve.isVisible() for curve in panel.curves)
    assert panel.by_drafter.accessibleDescription() == answer_words.drafters_words(first.stats)
    panel.show_latest()
    assert all(curve.isVisible() for curve in panel.curves)
    window.chat.speed.open_panel(first)
    ask(window, qtbot, "Third")
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)


def test_the_strip_opens_and_closes_it(window: MainWindow, qtbot: QtBot) -> None:
    strip, split = window.chat.strip, window.chat.speed
    QTest.mouseClick(strip.speed, Qt.MouseButton.LeftButton)
    assert split.is_open and strip.more.accessibleName() == "Hide the Speed panel"
    strip.more.setFocus()
    QTest.keyClick(strip.more, Qt.Key.Key_Return)
    assert not split.is_open and strip.more.accessibleName() == "Show the Speed panel"
    QTest.keyClick(strip.more, Qt.Key.Key_Space)
    assert split.is_open
    QTest.mouseClick(strip.more, Qt.MouseButton.LeftButton)
    assert not split.is_open
    window.actions_["speed_panel"].trigger()
    assert split.is_open and split.panel is not None
    assert split.panel in window.shell.regions.parts(), "F6 goes there"


def test_a_narrow_window_shows_one_of_the_two(window: MainWindow, qtbot: QtBot) -> None:
    split = window.chat.speed
    opened(window)
    assert window.chat.composer.isVisible()
    window.resize(420, 700)
    qtbot.waitUntil(lambda: not window.chat.composer.isVisible(), timeout=WAIT)
    assert split.panel is not None and split.panel.isVisible()
    split.close_panel()
    assert window.chat.composer.isVisible()


def test_its_width_is_remembered(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(script=SCRIPT)
    window.resize(1280, 800)
    opened(window)
    split = window.chat.speed
    split.moveSplitter(split.width() - 400, 1)
    width = split.sizes()[1]
    assert width == pytest.approx(400, abs=4)
    split.close_panel()
    window.close()
    again = make_window(script=SCRIPT)
    again.resize(1280, 800)
    opened(again)
    qtbot.waitUntil(lambda: again.chat.speed.sizes()[1] == width, timeout=WAIT)
    again.chat.speed.set_part_sizes((10,))
    assert again.chat.speed.part_sizes() == (LEAST_PX,)
    again.chat.speed.set_part_sizes((10, 20, 30))  # of a version that has other parts
    assert again.chat.speed.part_sizes() == (LEAST_PX,)


def test_opening_and_closing_leaves_nothing_behind(window: MainWindow, qtbot: QtBot) -> None:
    ask(window, qtbot)
    panel = opened(window)

    def count() -> tuple[int, int]:
        return len(window.findChildren(object)), len(panel.findChildren(object))  # type: ignore[type-var]

    window.chat.speed.close_panel()
    counts: list[tuple[int, int]] = []
    for _ in range(5):
        opened(window)
        QApplication.processEvents()
        window.chat.speed.close_panel()
        QApplication.processEvents()
        counts.append(count())
    assert counts[1:] == counts[:-1]


def test_an_answer_without_drafts(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(script=SCRIPT, drafting=False)
    panel = opened(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: panel.subject.text() == "The last answer", timeout=WAIT)
    assert panel.by_drafter.names == () == panel.legend.names
    assert not panel.by_drafter.drafted.isVisible()
    assert panel.by_drafter.accessibleDescription() == answer_words.NOTHING_DRAFTED
    assert panel.by_position.accessibleDescription() == answer_words.NOTHING_DRAFTED
    assert panel.acceptance.accessibleDescription() == "Nothing to show yet."
    assert "— accepted" in panel.figures.text()
