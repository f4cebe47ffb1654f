"""The local server beside the window: one engine, one queue, and a switch in the settings."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.fake_script import FakeReply
from tests.server.test_serve_command import free_port
from tests.ui.conftest import MakeWindow
from tests.ui.test_window import WAIT, answered, ready, say


def in_background(qtbot: QtBot, work: Callable[[], httpx.Response]) -> httpx.Response:
    """Do it beside the window's event loop."""
    results: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    qtbot.waitUntil(lambda: not thread.is_alive(), timeout=4 * WAIT)
    thread.join()
    [result] = results
    return result


def up(port: int) -> bool:
    try:
        return httpx.get(f"http://localhost:{port}/health", timeout=1).status_code == 200
    except httpx.TransportError:
        return False


def test_programs_and_the_window_share_one_engine(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(text="Said: {prompt}"), server=True, server_port=port)
    ready(window, qtbot)
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    # The window's model is in no models folder, and is there all the same.
    models = httpx.get(f"http://localhost:{port}/v1/models").json()["data"]
    assert "toy" in [model["id"] for model in models]
    body = {"model": "toy", "messages": [{"role": "user", "content": "one"}]}
    answer = in_background(
        qtbot, lambda: httpx.post(f"http://localhost:{port}/v1/chat/completions", json=body, timeout=60)
    )
    assert answer.json()["choices"][0]["message"]["content"] == "Said: one"
    say(window, qtbot, "two")
    answered(window, qtbot)
    assert window.chat.messages.views()[-1].message.text == "Said: two"
    messages = window.session.controller.conversation.messages
    assert [message.text for message in messages] == ["two", "Said: two"], "what programs ask is no chat"


def test_the_switch_opens_and_frees_the_port(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(), server_port=port)
    ready(window, qtbot)
    assert not up(port)
    session = window.session
    for _ in range(2):
        session.apply(replace(session.settings, server=True))
        qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
        session.apply(replace(session.settings, server=False))
        assert not up(port)


def test_a_port_that_is_taken_is_said(make_window: MakeWindow, qtbot: QtBot) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        window = make_window(FakeReply(), server=True, server_port=other.getsockname()[1])
        qtbot.waitUntil(
            lambda: any("in use by another program" in text for text in window.chat.notices()),
            timeout=4 * WAIT,
        )
