"""Following, reading back, and long chats (cases H01, H02).

Times are of this thread alone: what other processes take from it says nothing about the window.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chats.message import Message
from app.protocol import Piece
from app.settings import Settings
from drafting.statistics import Statistics
from ui.chat.code_view import CodeView
from ui.chat.message_list import MessageList, Place
from ui.chat.prose_view import ProseView
from ui.theme import Theme
from ui.widgets.cards import ProblemCard

PARAGRAPH = "Some **bold** words with `code` in a sentence that wraps.\n\n- one\n- two\n\n"


@pytest.fixture
def frozen_heap() -> Iterator[None]:
    """As in the program: what earlier tests left on the heap is not looked through again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def messages(theme: Theme, qtbot: QtBot) -> MessageList:
    view = MessageList(theme)
    qtbot.addWidget(view)
    view.resize(800, 600)
    with qtbot.waitExposed(view, timeout=60_000):
        view.show()
    return view


def answer(text: str = "", state: str = "done", **values: object) -> Message:
    pieces = [Piece(text)] if text else []
    return Message(role="assistant", pieces=pieces, state=state, **values)  # type: ignore[arg-type]


@pytest.fixture
def streaming(messages: MessageList) -> Message:
    """A long answer that is still being written."""
    messages.add(Message(role="user", pieces=[Piece("hi")]))
    message = answer(state="writing")
    messages.add(message)
    more(messages, message, 30)
    return message


def more(messages: MessageList, message: Message, times: int = 1) -> None:
    for _ in range(times):
        messages.grow(message, [Piece(PARAGRAPH)])
    QApplication.processEvents()


def wheel(messages: MessageList, notches: int) -> None:
    at = QPointF(messages.viewport().rect().center())
    event = QWheelEvent(
        at,
        messages.viewport().mapToGlobal(at),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(messages.viewport(), event)


def at_end(messages: MessageList) -> bool:
    bar = messages.verticalScrollBar()
    return bar.maximum() > 0 and bar.value() == bar.maximum()


def test_it_follows_while_at_the_end(messages: MessageList, streaming: Message) -> None:
    assert at_end(messages) and messages.following
    more(messages, streaming, 5)
    assert at_end(messages)


def test_the_wheel_stops_following_and_end_resumes(
    messages: MessageList, streaming: Message, qtbot: QtBot
) -> None:
    wheel(messages, 3)
    value = messages.verticalScrollBar().value()
    assert not messages.following and messages.jump.isVisible()
    more(messages, streaming, 5)
    assert messages.verticalScrollBar().value() == value
    messages.setFocus()
    qtbot.keyClick(messages, Qt.Key.Key_End)
    assert messages.following and not messages.jump.isVisible() and at_end(messages)
    more(messages, streaming, 5)
    assert at_end(messages)


def test_scrolling_back_to_the_end_resumes(messages: MessageList, streaming: Message) -> None:
    wheel(messages, 2)
    assert not messages.following
    wheel(messages, -20)
    assert messages.following


def test_the_button_goes_to_the_end(messages: MessageList, streaming: Message, qtbot: QtBot) -> None:
    wheel(messages, 3)
    qtbot.mouseClick(messages.jump, Qt.MouseButton.LeftButton)
    assert messages.following and at_end(messages)


def test_dragging_the_bar_up_stops_following(messages: MessageList, streaming: Message) -> None:
    bar = messages.verticalScrollBar()
    bar.setSliderDown(True)
    bar.setSliderPosition(bar.maximum() - 200)
    bar.triggerAction(bar.SliderAction.SliderMove)
    assert not messages.following
    bar.setSliderDown(False)


def test_a_selection_stops_following_and_survives(messages: MessageList, streaming: Message) -> None:
    part = messages.views()[-1].body.parts()[-1]
    assert isinstance(part, ProseView)
    cursor = part.textCursor()
    cursor.setPosition(3)
    cursor.setPosition(12, QTextCursor.MoveMode.KeepAnchor)
    part.setTextCursor(cursor)
    chosen = part.textCursor().selectedText()
    value = messages.verticalScrollBar().value()
    more(messages, streaming, 20)
    assert messages.verticalScrollBar().value() == value
    assert part.textCursor().selectedText() == chosen != ""


def test_resizing_at_the_end_stays_at_the_end(messages: MessageList, streaming: Message) -> None:
    for width in (500, 900, 420):
        messages.resize(width, 600)
        QApplication.processEvents()
        assert at_end(messages)


def test_opening_the_thoughts_does_not_jump(messages: MessageList, qtbot: QtBot) -> None:
    message = answer(state="writing")
    messages.add(message)
    messages.grow(message, [Piece("I think. " * 400, reasoning=True), Piece("Answer. " * 600)])
    thoughts = messages.views()[-1].thoughts
    assert thoughts is not None and thoughts.body is None  # folded, and not even laid out
    settled(messages, qtbot)
    messages.verticalScrollBar().setValue(0)
    wheel(messages, 1)
    qtbot.mouseClick(thoughts.button, Qt.MouseButton.LeftButton)
    assert thoughts.body is not None and thoughts.body.height() > 20
    assert messages.verticalScrollBar().value() == 0


def test_copy_takes_the_answer_without_the_thoughts(messages: MessageList, qtbot: QtBot) -> None:
    message = answer(stats=Statistics(completion_tokens=3))
    message.pieces = [Piece("secret plan", reasoning=True), Piece("The answer.")]
    messages.add(message)
    view = messages.views()[-1]
    qtbot.mouseClick(view.footer.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "The answer."


def test_cut_while_thinking_is_said_and_empty_thoughts_are_not_shown(messages: MessageList) -> None:
    cut = answer(state="stopped", cut_in_reasoning=True)
    cut.pieces = [Piece("half a thou", reasoning=True)]
    messages.add(cut)
    assert messages.views()[-1]._state.text() == "Cut while thinking"
    empty = answer()
    empty.pieces = [Piece("\n\n", reasoning=True), Piece("Answer")]
    messages.add(empty)
    assert messages.views()[-1].thoughts is None


def test_a_chat_of_600_messages_opens_at_once_and_the_rest_on_demand(
    messages: MessageList, qtbot: QtBot
) -> None:
    text = (PARAGRAPH * 30)[:2000]
    chat = [Message(role="user" if n % 2 == 0 else "assistant", pieces=[Piece(text)]) for n in range(600)]
    began = time.thread_time()
    messages.show_messages(chat)
    QApplication.processEvents()
    assert time.thread_time() - began < 0.5
    assert at_end(messages)
    assert len(messages.views()) < 40
    assert messages.views()[-1].message is chat[-1]
    built = len(messages.views())
    wheel(messages, 1)
    messages.verticalScrollBar().setValue(0)
    qtbot.waitUntil(lambda: len(messages.views()) > built)
    assert messages.verticalScrollBar().value() > 0  # what was read stays where it was
    assert [view.message for view in messages.views()] == chat[-len(messages.views()) :]


def test_adding_to_a_long_chat_puts_old_messages_away(messages: MessageList) -> None:
    for n in range(70):
        messages.add(Message(role="user", pieces=[Piece(f"message {n}")]))
    assert len(messages.views()) < 60
    assert messages.views()[-1].message.text == "message 69"
    assert at_end(messages)


@pytest.mark.usefixtures("frozen_heap")
def test_one_answer_of_200_kb_never_holds_up_the_loop(messages: MessageList, qtbot: QtBot) -> None:
    text = (PARAGRAPH * 4000)[:200_000]

    def longest_and_all() -> tuple[float, float]:
        """Seconds of the processor that the longest turn takes, and all of them."""
        worst = 0.0
        last = began = time.thread_time()
        messages.show_messages([Message(role="user", pieces=[Piece("hi")]), answer(text)])
        body = messages.views()[-1].body
        while body.building:
            QApplication.processEvents()
            now = time.thread_time()
            worst, last = max(worst, now - last), now
        shown = sum(len(part.toPlainText()) for part in body.parts())  # type: ignore[union-attr]
        assert shown > 150_000
        return worst, last - began

    # On a busy machine one turn of many may be slow by itself.
    assert any(longest < 0.1 and whole < 5 for longest, whole in (longest_and_all() for _ in range(3)))


def test_the_time_of_an_update_does_not_grow_with_the_answer(
    messages: MessageList, streaming: Message
) -> None:
    def cost() -> float:
        times = []
        for _ in range(15):
            began = time.thread_time()
            messages.grow(streaming, [Piece("word ")])
            times.append(time.thread_time() - began)
        return sorted(times)[len(times) // 2]

    early = cost()
    more(messages, streaming, 600)
    assert cost() < 4 * early + 0.002


# ---- a reader who is not at the end


def chat_of(count: int, text: str = PARAGRAPH * 4) -> list[Message]:
    return [
        Message(role="user" if n % 2 == 0 else "assistant", pieces=[Piece(f"{n} {text}")])
        for n in range(count)
    ]


def top_of(messages: MessageList, message: Message) -> int:
    """Where it stands in what can be seen."""
    view = messages.view_of(message)
    assert view is not None
    return view.y() - messages.verticalScrollBar().value()


def settled(messages: MessageList, qtbot: QtBot) -> None:
    """What is near is built."""

    def built() -> bool:
        return not messages._build_timer.isActive() and not any(v.body.building for v in messages.views())

    qtbot.waitUntil(built)


def test_a_chat_opens_in_its_middle_and_the_rest_comes_on_demand(messages: MessageList, qtbot: QtBot) -> None:
    chat = chat_of(2000)
    began = time.thread_time()
    messages.show_messages(chat, Place(chat[900].id, 30))
    assert time.thread_time() - began < 0.5
    assert not messages.following and messages.jump.isVisible()
    assert top_of(messages, chat[900]) == -30
    assert len(messages.views()) < 60
    settled(messages, qtbot)
    assert top_of(messages, chat[900]) == -30  # what came above moved nothing
    assert messages.place() == Place(chat[900].id, 30)


def test_reading_up_and_down_builds_and_puts_away(messages: MessageList, qtbot: QtBot) -> None:
    chat = chat_of(300)
    messages.show_messages(chat, Place(chat[150].id, 0))
    for key, first in ((Qt.Key.Key_PageDown, 150), (Qt.Key.Key_PageUp, 190)):
        for _ in range(60):
            qtbot.keyClick(messages, key)
            settled(messages, qtbot)
        assert len(messages.views()) < 90
        assert messages.messages() == chat
        place = messages.place()
        assert place is not None
        at = next(n for n, message in enumerate(chat) if message.id == place.message)
        assert at > first if key == Qt.Key.Key_PageDown else at < first
    tops = [view.y() for view in messages.views()]
    assert tops == sorted(tops)


def test_home_and_end_go_all_the_way(messages: MessageList, qtbot: QtBot) -> None:
    chat = chat_of(300)
    messages.show_messages(chat, Place(chat[150].id, 0))
    qtbot.keyClick(messages, Qt.Key.Key_Home)
    settled(messages, qtbot)
    assert messages.views()[0].message is chat[0] and messages.verticalScrollBar().value() == 0
    qtbot.keyClick(messages, Qt.Key.Key_End)
    settled(messages, qtbot)
    assert messages.views()[-1].message is chat[-1] and at_end(messages) and messages.following


def test_a_message_sent_from_far_up_is_gone_to_and_an_answer_elsewhere_is_not(
    messages: MessageList, qtbot: QtBot
) -> None:
    chat = chat_of(300)
    messages.show_messages(chat, Place(chat[20].id, 0))
    late = answer("an answer to something")
    messages.add(late)
    assert top_of(messages, chat[20]) == 0 and messages.view_of(late) is None
    asked = Message(role="user", pieces=[Piece("hello")])
    messages.add(asked)
    assert messages.following and at_end(messages)
    assert [view.message for view in messages.views()[-2:]] == [late, asked]


def test_a_new_width_keeps_the_place(messages: MessageList, qtbot: QtBot) -> None:
    chat = chat_of(40, PARAGRAPH * 20)
    messages.show_messages(chat, Place(chat[20].id, 0))
    for width in (500, 900, 420):
        messages.resize(width, 600)
        QApplication.processEvents()
        assert top_of(messages, chat[20]) == 0


def test_a_place_that_is_gone_is_the_end(messages: MessageList, qtbot: QtBot) -> None:
    messages.show_messages(chat_of(20), Place(12345, 0))
    settled(messages, qtbot)
    assert messages.following and at_end(messages)


def test_larger_text_holds_for_all_of_a_message_at_once(
    messages: MessageList, theme: Theme, qtbot: QtBot
) -> None:
    text = PARAGRAPH + "```python\nx = 1\n```\n"
    messages.show_messages([answer(text, stats=Statistics())])
    settled(messages, qtbot)
    view = messages.views()[0]
    assert view.footer is not None
    footer = view.footer

    def sizes() -> list[int]:
        code = next(part for part in view.body.parts() if isinstance(part, CodeView))
        return [
            view.body.height(),
            code.height(),
            footer.height(),
            footer._labels[0].fontMetrics().height(),
            footer.again_button.width(),
        ]

    before = sizes()
    theme.apply(Settings(theme="light", zoom=160))
    qtbot.waitUntil(lambda: all(now > then for now, then in zip(sizes(), before, strict=True)))
    assert footer.again_button.geometry().right() <= view.width() + 8
    theme.apply(Settings(theme="light"))
    qtbot.waitUntil(lambda: sizes() == before)


def test_what_is_opened_at_the_very_end_is_followed(messages: MessageList, qtbot: QtBot) -> None:
    chat = chat_of(30)
    messages.show_messages(chat, Place(chat[-1].id, -72))
    qtbot.waitUntil(lambda: messages.following)
    assert at_end(messages) and not messages.jump.isVisible()
    messages.show_messages(chat, Place(chat[10].id, -72))
    settled(messages, qtbot)
    assert not messages.following and messages.jump.isVisible()


@pytest.mark.parametrize("above", [1, 10, 23])
def test_a_place_between_two_messages_is_kept_as_it_is(
    messages: MessageList, qtbot: QtBot, above: int
) -> None:
    said = [answer(f"message {number}\n\n" + PARAGRAPH * 2) for number in range(40)]
    messages.show_messages(said, Place(said[20].id, -above))
    qtbot.waitUntil(lambda: messages._awaited is None)
    value = messages.verticalScrollBar().value()
    upper, lower = (next(view for view in messages.views() if view.message is said[n]) for n in (19, 20))
    assert upper.y() + upper.height() <= value < lower.y()  # it is between them
    for _ in range(3):
        place = messages.place()
        assert place == Place(said[20].id, -above)
        messages.show_messages(said, place)
        qtbot.waitUntil(lambda: messages._awaited is None)
        messages._lay_out_all(messages.place())
    assert messages.place() == Place(said[20].id, -above)


def test_a_place_below_the_last_message_is_kept_as_it_is(messages: MessageList, qtbot: QtBot) -> None:
    said = [answer(f"message {number}\n\n" + PARAGRAPH * 2) for number in range(10)]
    messages.show_messages(said)
    messages.set_problem(ProblemCard(messages._theme, "Something " * 400, "", ()))
    QApplication.processEvents()
    bar = messages.verticalScrollBar()
    last = messages.views()[-1]
    bar.setValue(last.y() + last.height() + 40)
    messages.set_following(False)
    before = bar.value()
    assert before > last.y() + last.height()
    messages._lay_out_all(messages.place())
    assert bar.value() == before
