"""The local server beside the window: one engine, one queue, and a switch in the settings."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable

import httpx
from msgspec.structs import replace
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from app import api_key
from app.server.background import Place, ServerState
from app.worker.fake_script import FakeReply
from tests.server.test_serve_command import free_port
from tests.ui.conftest import MakeWindow
from tests.ui.test_window import WAIT, answered, ready, say
from ui.main_window import SETTINGS, MainWindow
from ui.settings.server_row import described
from ui.settings.settings_page import SettingsPage


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


def page_of(window: MainWindow) -> SettingsPage:
    window.show_page(SETTINGS)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    return page


def asked(text: str) -> dict[str, object]:
    return {"model": "toy", "messages": [{"role": "user", "content": text}]}


def post(port: int, body: object, key: str | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    url = f"http://localhost:{port}/v1/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=60)


def test_the_row_says_what_the_server_does(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(text="Said: {prompt}"), server_port=port)
    ready(window, qtbot)
    page = page_of(window)
    row = page.server
    port_box = page.form.controls["server_port"]
    assert isinstance(port_box, QSpinBox) and port_box.text() == str(port), "as it stands in an address"
    assert "Off" in row.explanation.text()
    session = window.session
    session.apply(replace(session.settings, server=True))
    qtbot.waitUntil(lambda: "Running" in row.explanation.text(), timeout=4 * WAIT)
    assert f"http://localhost:{port}/v1" in row.explanation.text() and "0 requests" in row.explanation.text()
    assert row.address.text() == f"http://localhost:{port}/v1"
    in_background(qtbot, lambda: post(port, asked("one")))
    qtbot.waitUntil(lambda: "1 request answered" in row.explanation.text(), timeout=WAIT)
    session.apply(replace(session.settings, server=False))
    qtbot.waitUntil(lambda: "Off" in row.explanation.text(), timeout=WAIT)


def test_the_line_that_can_be_copied_is_answered(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(text="Said: {prompt}"), server=True, server_port=port)
    ready(window, qtbot)
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    row = page_of(window).server
    row.copy_line.click()
    command, url, *rest = shlex.split(row.line.text())
    assert command == "curl" and rest[::2] == ["-H", "-d"]
    name, _, value = rest[1].partition(": ")
    answer = in_background(qtbot, lambda: httpx.post(url, content=rest[3], headers={name: value}, timeout=60))
    assert answer.json()["choices"][0]["message"]["content"] == "Said: Hello"
    assert json.loads(rest[3])["model"] == "toy"


def test_a_key_is_asked_for_as_soon_as_there_is_one(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(text="fine"), server=True, server_port=port)
    ready(window, qtbot)
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    page = page_of(window)
    assert not page.key.copy.isEnabled()
    page.key.make.click()
    key = api_key.kept()
    assert key is not None and key not in page.key.explanation.text()
    assert "$SLIPSTREAM_API_KEY" in page.server.line.text() and key not in page.server.line.text()
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    assert in_background(qtbot, lambda: post(port, asked("x"))).status_code == 401
    assert in_background(qtbot, lambda: post(port, asked("x"), key)).status_code == 200
    page.key.make.click()
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    assert in_background(qtbot, lambda: post(port, asked("x"), key)).status_code == 401
    page.key.forget.click()
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    assert in_background(qtbot, lambda: post(port, asked("x"))).status_code == 200


def test_the_network_is_not_served_without_a_key(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(), server=True, server_port=port, server_access="network")
    ready(window, qtbot)
    row = page_of(window).server
    qtbot.waitUntil(lambda: "needs an API key" in row.explanation.text(), timeout=4 * WAIT)
    assert not up(port)


def test_a_request_limit_holds_at_once(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    window = make_window(FakeReply(text="fine"), server=True, server_port=port)
    ready(window, qtbot)
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    session = window.session
    session.apply(replace(session.settings, server_requests_per_minute=1))
    codes = [in_background(qtbot, lambda: post(port, asked("x"))).status_code for _ in range(2)]
    assert codes == [200, 429]
    session.apply(replace(session.settings, server_requests_per_minute=0))
    assert in_background(qtbot, lambda: post(port, asked("x"))).status_code == 200
    assert session.server.state.answered == 2, "it was not started anew"


def test_several_are_answered_at_once_where_that_is_set(make_window: MakeWindow, qtbot: QtBot) -> None:
    port = free_port()
    slow = FakeReply(text="word " * 2000, tokens_per_second=20)
    window = make_window(slow, server=True, server_port=port)
    ready(window, qtbot)
    qtbot.waitUntil(lambda: up(port), timeout=4 * WAIT)
    session = window.session
    session.apply(replace(session.settings, server_parallel=2), later=True)
    assert session.controller.needs_reload, "the page says so"
    session.controller.reload()
    qtbot.waitUntil(lambda: not session.controller.needs_reload, timeout=WAIT)
    ready(window, qtbot)

    def both() -> httpx.Response:
        url = f"http://localhost:{port}/v1/chat/completions"
        with httpx.Client(timeout=60) as client:
            body = asked("x") | {"stream": True}
            with client.stream("POST", url, json=body) as one, client.stream("POST", url, json=body) as two:
                for answer in (one, two):
                    lines = (line for line in answer.iter_lines() if "word" in line)
                    assert "word" in next(lines), "each begins before another has ended"
                return one

    assert in_background(qtbot, both).status_code == 200


def test_each_state_is_said() -> None:
    place = Place(1337, network=True, key="k")
    assert "the network" in described(ServerState("running", place, answered=1_234))
    assert "1,234 requests" in described(ServerState("running", place, answered=1_234))
    assert described(ServerState("failed", place, "Port 1337 is in use.")).endswith("Port 1337 is in use.")
    assert described(ServerState("starting", place)) == "Starting."
