"""Code in an answer: colours come in small steps, Copy gives what was written.

Times are of this thread alone: what other processes take from it says nothing about the window.
"""

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from ui.chat.code_colours import CodeColours, lexer_for
from ui.chat.code_view import CodeView
from ui.theme import Theme

SOURCE = '''def f(a):
    """A docstring
    over lines."""
    return [a, 'text', 12]  # why


class Thing:
    pass'''


def loaded(language: str) -> CodeColours:
    colours = CodeColours(language)
    colours.load()
    return colours


def make(theme: Theme, qtbot: QtBot, language: str = "python") -> CodeView:
    loaded(language)  # as for the second block of code in it
    view = CodeView(theme, language)
    qtbot.addWidget(view)
    return view


def test_the_first_code_in_a_language_gets_its_colours_a_turn_later(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for close in (False, True):
        monkeypatch.setattr("ui.chat.code_colours._loaded", {""})
        view = CodeView(theme, "python")
        qtbot.addWidget(view)
        view.append(SOURCE)
        if close:
            view.close_code()
        assert not view._runs
        qtbot.waitUntil(lambda view=view: bool(view._runs) and not view._timer.isActive(), timeout=20_000)
        assert {line: runs for line, runs in view._runs.items() if runs} == {
            line: runs for line, runs in loaded("python").all_lines(SOURCE) if runs
        }


def test_streamed_code_gets_the_colours_of_the_whole(theme: Theme, qtbot: QtBot) -> None:
    view = make(theme, qtbot)
    whole = dict(loaded("python").all_lines(SOURCE))
    for start in range(0, len(SOURCE), 3):
        view.append(SOURCE[start : start + 3])
    assert {line: runs for line, runs in view._runs.items() if runs} == {
        line: runs for line, runs in whole.items() if runs
    }
    view.close_code()
    qtbot.waitUntil(lambda: not view._timer.isActive())
    assert {line: runs for line, runs in view._runs.items() if runs} == {
        line: runs for line, runs in whole.items() if runs
    }


def test_copy_gives_the_code_as_it_was_written(theme: Theme, qtbot: QtBot) -> None:
    view = make(theme, qtbot)
    view.append("a = '\u202e'\n  b")
    assert view._edit.toPlainText() == "a = '⟨U+202E⟩'\n  b"  # on screen it cannot deceive
    qtbot.mouseClick(view._copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "a = '\u202e'\n  b"


def test_an_unknown_language_is_shown_in_one_colour(theme: Theme, qtbot: QtBot) -> None:
    assert lexer_for("klingon") is None
    view = make(theme, qtbot, "klingon")
    view.append("x = 1")
    view.close_code()
    assert view._label.text() == "klingon"
    assert not view._runs


def test_five_thousand_lines_do_not_hold_up_the_loop(theme: Theme, qtbot: QtBot) -> None:
    lines = [f"def f{n}(a):  # {n}" if n % 3 == 0 else f"    x = 'text {n}'" for n in range(5000)]

    def worst() -> float:
        """Seconds of the processor that the longest turn takes."""
        view = make(theme, qtbot)
        turns = []
        for start in range(0, len(lines), 25):
            began = time.thread_time()
            view.append("\n".join(lines[start : start + 25]) + "\n")
            view.fit(700)
            turns.append(time.thread_time() - began)
        view.close_code()
        view.show()
        while view._timer.isActive():
            began = time.thread_time()
            view._colour_some()
            turns.append(time.thread_time() - began)
        assert view._runs[4998]
        return max(turns)

    # On a busy machine one turn of hundreds may be slow by itself.
    assert any(worst() < 0.1 for _ in range(3))


def test_its_height_follows_its_lines(theme: Theme, qtbot: QtBot) -> None:
    view = make(theme, qtbot)
    view.append("one")
    one = view.fit(400)
    view.append("\ntwo\nthree")
    assert view.fit(400) > one + 1.8 * view._line
