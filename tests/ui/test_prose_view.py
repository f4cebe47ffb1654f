"""Text of an answer: nothing is fetched or opened unasked, direction per paragraph (H05, H08)."""

from __future__ import annotations

import socket

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QDesktopServices, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.protocol import Piece
from tests.ui.test_markdown_stream import ANSWER, read
from ui.chat.answer_body import AnswerBody
from ui.chat.block_writer import BlockWriter
from ui.chat.code_view import CodeView
from ui.chat.markdown_blocks import Block, CodeBlock
from ui.chat.prose_view import ProseView
from ui.theme import Theme


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> ProseView:
    view = ProseView(theme, theme.parent().font())  # type: ignore[attr-defined]
    qtbot.addWidget(view)
    return view


def prose(text: str) -> list[Block]:
    return [block for block in read(text) if not isinstance(block, CodeBlock)]


def test_live_blocks_are_replaced_and_finished_ones_stay(view: ProseView) -> None:
    blocks = prose(ANSWER)
    for count in range(len(blocks)):
        view.show_blocks([], blocks[count : count + 2])  # a wrong guess of what comes
        view.show_blocks([blocks[count]], [])
    streamed = view.document().toHtml()
    view.recolour()
    assert view.document().toHtml() == streamed
    whole = ProseView(view._theme, view.font())
    whole.show_blocks(blocks, [])
    assert whole.toPlainText() == view.toPlainText()
    assert [(b.blockFormat().indent(), b.blockFormat().bottomMargin()) for b in _blocks(whole)] == [
        (b.blockFormat().indent(), b.blockFormat().bottomMargin()) for b in _blocks(view)
    ]
    whole.deleteLater()


def _blocks(view: ProseView) -> list[object]:
    found = []
    block = view.document().begin()
    while block.isValid():
        found.append(block)
        block = block.next()
    return found  # type: ignore[return-value]


def test_only_the_live_block_is_written_again(view: ProseView, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = BlockWriter.write

    def counting(self: BlockWriter, cursor: QTextCursor, block: Block) -> None:
        written.append(type(block).__name__)
        write(self, cursor, block)

    monkeypatch.setattr(BlockWriter, "write", counting)
    view.show_blocks(prose("para\n\n" * 200), [])
    written.clear()
    for n in range(1, 20):
        view.show_blocks([], prose("word " * n))
    assert len(written) == 19


def test_a_selection_survives_further_tokens(view: ProseView) -> None:
    view.show_blocks(prose("the finished paragraph"), prose("and a live one"))
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.setPosition(30, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    chosen = view.textCursor().selectedText()
    view.show_blocks([], prose("and a live one that goes on"))
    view.show_blocks(prose("and a live one that goes on"), prose("next"))
    assert view.textCursor().selectedText() == chosen


def test_nothing_is_read_or_fetched(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    original = QTextDocument.loadResource

    def watching(self: QTextDocument, kind: int, name: QUrl) -> object:
        loads.append(name)
        return original(self, kind, name)

    monkeypatch.setattr(QTextDocument, "loadResource", watching)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.2)
        port = server.getsockname()[1]
        body = AnswerBody(theme, theme.parent().font())  # type: ignore[attr-defined]
        qtbot.addWidget(body)
        body.write(
            [
                Piece(
                    f'<img src="file:///etc/hostname">\n\n![x](http://127.0.0.1:{port}/?q=secret)\n\n'
                    '<a href="javascript:1">x</a>\n\n<style>*{display:none}</style>\n\n[y][r]\n\n'
                    f"[r]: http://127.0.0.1:{port}/r\n"
                )
            ]
        )
        body.finish()
        body.resize(600, body.fit(600))
        with qtbot.waitExposed(body, timeout=60_000):
            body.show()
        body.grab()
        with pytest.raises(TimeoutError):
            server.accept()
    assert not loads
    (part,) = body.parts()
    assert isinstance(part, ProseView)
    assert '<img src="file:///etc/hostname">' in part.toPlainText()
    assert "\ufffc" not in part.toPlainText()  # no picture was put in
    assert part.loadResource(2, QUrl("file:///etc/hostname")) is None
    assert part.document().resource(2, QUrl("file:///etc/hostname")) is None


def test_a_link_opens_only_from_the_menu_that_names_its_host(
    view: ProseView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view.show_blocks(prose("[bank](https://a.example@b.example/)"), [])
    view.resize(400, view.fit(400))
    view.show()
    view.anchorClicked.emit(QUrl("https://a.example@b.example/"))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert view.toPlainText() == "bank" and not opened  # the page is still there
    words = [action.text() for action in menu.actions()]
    assert words[0] == "Leads to b.example"
    assert any("a.example" in word for word in words)
    next(action for action in menu.actions() if action.text().startswith("Open")).trigger()
    assert opened == ["https://a.example@b.example/"]
    menu.close()


@pytest.mark.parametrize("address", ["file:///C:/calc.exe", "javascript:1", "ms-settings:x"])
def test_other_schemes_offer_no_opening(view: ProseView, address: str) -> None:
    words = [action.text() for action in view.link_menu(address).actions()]
    assert words[0] == "This link is not opened"
    assert not any(word.startswith("Open") for word in words)


def test_each_paragraph_has_its_own_direction_and_code_reads_left_to_right(
    theme: Theme, qtbot: QtBot
) -> None:
    body = AnswerBody(theme, theme.parent().font())  # type: ignore[attr-defined]
    qtbot.addWidget(body)
    body.write([Piece("שלום, x = 1!\n\nEnglish here.\n\n```python\nif a:\n    'שלום'\n```\n")])
    body.finish()
    prose_part, code = body.parts()
    assert isinstance(prose_part, ProseView) and isinstance(code, CodeView)
    directions = [block.textDirection() for block in _blocks(prose_part)]  # type: ignore[attr-defined]
    assert directions == [Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight]
    block = code._edit.document().begin()
    while block.isValid():
        assert block.textDirection() == Qt.LayoutDirection.LeftToRight
        block = block.next()


def test_what_is_shown_already_takes_the_new_colours(theme: Theme, qtbot: QtBot) -> None:
    body = AnswerBody(theme, theme.parent().font())  # type: ignore[attr-defined]
    qtbot.addWidget(body)
    theme.changed.connect(body.recolour)
    body.write(
        [
            Piece(
                "Some `code` and [a link](https://a.example/).\n\n> quoted\n\n"
                "```python\ndef f():\n    return 'x'\n```\n"
            )
        ]
    )
    body.finish()
    qtbot.waitUntil(lambda: not body.parts()[1]._timer.isActive())  # type: ignore[union-attr]
    body.resize(500, body.fit(500))
    body.show()

    def has(colour: str) -> bool:
        image = body.grab().toImage()
        wanted = QColor(colour).rgb()
        return any(image.pixel(x, y) == wanted for y in range(image.height()) for x in range(image.width()))

    light, dark = theme.tokens, None
    assert has(light.code_background) and has(light.inline_code)
    theme.choose("dark")
    dark = theme.tokens
    assert has(dark.code_background) and has(dark.inline_code)
    assert not has(light.code_background) and not has(light.inline_code) and not has(light.text)
    theme.changed.disconnect(body.recolour)


def test_half_a_fence_leaves_no_empty_text_behind(theme: Theme, qtbot: QtBot) -> None:
    body = AnswerBody(theme, theme.parent().font())  # type: ignore[attr-defined]
    qtbot.addWidget(body)
    for character in "```python\nx = 1\n```\nafter":
        body.write([Piece(character)])
        body.fit(400)
    body.finish()
    assert [type(part) for part in body.parts()] == [CodeView, ProseView]
    assert body.fit(400) == body.parts()[0].height() + body.parts()[1].height() + 12


def test_the_height_is_right_before_it_is_shown(view: ProseView, qtbot: QtBot) -> None:
    view.show_blocks(prose("A sentence that fits in one line when there is room for it."), [])
    hidden = view.fit(700)
    with qtbot.waitExposed(view, timeout=60_000):
        view.show()
    assert view.fit(700) == hidden
    assert hidden < 40


def test_a_stray_fence_at_the_end_leaves_nothing(theme: Theme, qtbot: QtBot) -> None:
    body = AnswerBody(theme, theme.parent().font())  # type: ignore[attr-defined]
    qtbot.addWidget(body)
    body.write([Piece("words\n```\n")])
    body.fit(400)
    body.finish()
    assert [type(part) for part in body.parts()] == [ProseView]
    assert body.fit(400) == body.parts()[0].height()
