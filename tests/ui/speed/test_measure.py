"""Try it: a scripted bench in a real process, and what becomes of the chat's model meanwhile."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.bench.measurement import Row
from tests.ui.conftest import MakeWindow
from ui.main_window import SPEED, MainWindow
from ui.speed.measure_box import MeasureBox
from ui.speed.measurement import Outcome
from ui.theme import Theme

HEAD = """
import json, pathlib, sys, tempfile, time
print("1/4 edit, off", file=sys.stderr, flush=True)
here = pathlib.Path(sys.argv[1])
here.with_suffix(".arguments").write_text(json.dumps(sys.argv[2:]))
left = pathlib.Path(tempfile.mkdtemp())
here.with_suffix(".home").write_text(str(left))
"""


def row(workload: str, mode: str, speed: float, speedup: float) -> Row:
    return Row(
        model="toy",
        workload=workload,
        mode=mode,
        tokens_per_second=speed,
        speedup=speedup,
        drafted=10,
        accepted=8,
        acceptance_rate=0.8 if mode == "auto" else None,
        tokens_per_pass=2.0,
    )


REPORT = {
    "machine": {},
    "runs": 1,
    "rows": [
        row("edit", "off", 50.0, 1.0),
        row("edit", "auto", 200.0, 4.0),
        row("tale", "off", 50.0, 1.0),
        row("tale", "auto", 50.0, 1.0),
    ],
}


class Scripted:
    def __init__(self, folder: Path, body: str) -> None:
        self.script = folder / "bench.py"
        self.script.write_text(HEAD + body, encoding="utf-8")

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(self.script), str(self.script))

    @property
    def arguments(self) -> list[str]:
        found: list[str] = json.loads(self.script.with_suffix(".arguments").read_text())
        return found

    @property
    def home(self) -> Path:
        return Path(self.script.with_suffix(".home").read_text())


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window(n_threads=3)
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    return window


def box(window: MainWindow, theme: Theme, qtbot: QtBot, scripted: Scripted) -> MeasureBox:
    box = MeasureBox(theme, window.session, None, scripted.command)
    qtbot.addWidget(box)
    box.show()
    return box


def grid(box: MeasureBox) -> list[str]:
    labels = [box._grid.itemAt(at).widget() for at in range(box._grid.count())]
    return [label.text() for label in labels]  # type: ignore[union-attr]


def test_a_measurement(window: MainWindow, theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    report = msgspec.json.encode(REPORT).decode()
    go = tmp_path / "go"
    waits = f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\n"
    scripted = Scripted(tmp_path, f"{waits}print({report!r})\n")
    measure = box(window, theme, qtbot, scripted)
    state = window.session.controller.state
    measure.button.click()
    assert measure.button.text() == "Cancel"
    assert window.session.controller.state.phase == "no_model", "not two models in memory at once"
    qtbot.waitUntil(lambda: measure.words.text() == "1 of 4: edit, off")
    assert (measure.bar.value(), measure.bar.maximum()) == (0, 4)
    go.touch()
    qtbot.waitUntil(lambda: not measure.measurement.running)
    assert scripted.arguments == ["--model", state.wanted, "--threads", "3"]
    assert measure.words.text() == "toy: 2.0x plain with drafting, over 2 tasks."
    assert grid(measure)[5:] == ["edit", "50", "200", "4.0x", "80 %", "tale", "50", "50", "1.0x", "80 %"]
    assert measure.button.text() == "Measure"
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    qtbot.waitUntil(lambda: not scripted.home.exists())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('slipstream: the disk is full', file=sys.stderr)\nsys.exit(4)", "the disk is full"),
        ("sys.stderr.write('no newline'); sys.exit(4)", "no newline"),
        ("sys.exit(3)", "The measurement ended with code 3."),
        ("print('{')", "What was measured cannot be read: "),
    ],
    ids=["a reason", "half a line", "no reason", "no report"],
)
def test_one_that_fails_says_why(
    window: MainWindow, theme: Theme, qtbot: QtBot, tmp_path: Path, body: str, words: str
) -> None:
    measure = box(window, theme, qtbot, Scripted(tmp_path, body))
    measure.button.click()
    qtbot.waitUntil(lambda: not measure.measurement.running)
    assert measure.words.text().startswith(f"Not measured: {words}")
    assert grid(measure) == [] and not measure.bar.isVisible()
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")


ENDLESS = "print('2/4 edit, auto', file=sys.stderr, flush=True)\ntime.sleep(600)\n"


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_cancel_ends_the_process(window: MainWindow, theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    before = children()
    scripted = Scripted(tmp_path, ENDLESS)
    measure = box(window, theme, qtbot, scripted)
    measure.button.click()
    qtbot.waitUntil(lambda: measure.words.text() == "2 of 4: edit, auto")
    assert len(children() - before) == 2, "the bench and its guard"
    measure.button.click()
    assert measure.words.text() == "Stopped; nothing was measured."
    qtbot.waitUntil(lambda: children() <= before)
    qtbot.waitUntil(lambda: not scripted.home.exists())
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    measure.button.click()
    qtbot.waitUntil(lambda: measure.words.text() == "2 of 4: edit, auto")
    measure.close_down()
    qtbot.waitUntil(lambda: children() <= before)


def test_a_message_comes_first(window: MainWindow, theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    before = children()
    measure = box(window, theme, qtbot, Scripted(tmp_path, ENDLESS))
    measure.button.click()
    qtbot.waitUntil(lambda: measure.words.text() == "2 of 4: edit, auto")
    controller = window.session.controller
    assert controller.send("Hello")
    assert not measure.measurement.running
    assert measure.words.text() == "Stopped, because the model was needed; nothing was measured."
    qtbot.waitUntil(lambda: not controller.busy and bool(controller.conversation.messages[-1].text))
    qtbot.waitUntil(lambda: children() <= before)


def test_closing_the_window_ends_it(
    make_window: MakeWindow, theme: Theme, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    window.show_page(SPEED)
    page = window.page(SPEED)
    page.measure.measurement._command = Scripted(tmp_path, ENDLESS).command  # type: ignore[attr-defined]
    page.measure.button.click()  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: page.measure.words.text() == "2 of 4: edit, auto")  # type: ignore[attr-defined]
    window.close()
    qtbot.waitUntil(lambda: children() == set())


def test_the_benchs_own_report_is_understood() -> None:
    from app.bench.machine import this_machine
    from app.bench.report import as_object
    from app.bench.runner import Outcome as BenchOutcome

    rows = REPORT["rows"]
    assert isinstance(rows, list)
    report = as_object(BenchOutcome("engine", 2, rows, [], []), this_machine("engine", 2))
    assert msgspec.json.decode(msgspec.json.encode(report), type=Outcome).rows == rows
