"""The list of models, and the label that tells what is loaded (case B05)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.protocol import DrafterReport
from model_store.classify import Kind
from model_store.library import ModelEntry
from tests.ui.test_live_numbers import report
from ui.engine_state import EngineState
from ui.models import model_picker
from ui.models.model_picker import ModelLibrary, ModelPicker
from ui.theme import Theme


def entry(name: str, kind: Kind = "chat", problem: str | None = None) -> ModelEntry:
    return ModelEntry(Path(f"/m/{name}.gguf"), name, kind, 2_500_000_000, problem, "llama", "")


@pytest.fixture
def picker(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> ModelPicker:
    monkeypatch.setattr(model_picker, "starter_path", lambda: Path("/s/starter.gguf"))
    library = ModelLibrary(lambda: Path("/m"))
    library.entries = [
        entry("good"),
        entry("drafter", "drafter"),
        entry("half", problem="incomplete (1.0 of 2.5 GB)"),
        entry("evil\u202efug"),
    ]
    picker = ModelPicker(theme, library, lambda: Path("/m"))
    qtbot.addWidget(picker, before_close_func=lambda _: library.close())
    return picker


def test_chat_models_are_offered_and_unusable_ones_say_why(picker: ModelPicker) -> None:
    actions = {action.text(): action for action in picker.menu().actions() if action.text()}
    assert list(actions) == [
        "starter  (starter)",
        "good   2.5 GB",
        "half   2.5 GB   incomplete (1.0 of 2.5 GB)",
        "evil⟨U+202E⟩fug   2.5 GB",
        "Open file…",
        "Open models folder",
    ]
    assert not actions["half   2.5 GB   incomplete (1.0 of 2.5 GB)"].isEnabled()


def test_choosing_gives_the_path(picker: ModelPicker) -> None:
    chosen: list[str] = []
    picker.chosen.connect(chosen.append)
    picker.menu().actions()[1].trigger()
    assert chosen == ["/m/good.gguf"]


def test_the_label_is_what_the_worker_reports(picker: ModelPicker) -> None:
    picker.show_state(EngineState(phase="loading", wanted="/m/wish.gguf"))
    assert picker.text() == "Loading wish"
    loaded = replace(report(), name="Real \u202eName", draft_model_path="/m/small.gguf")
    picker.show_state(EngineState(phase="ready", wanted="/m/wish.gguf", report=loaded))
    assert picker.text() == "Real ⟨U+202E⟩Name  + small"
    head = replace(report(DrafterReport("eagle3")), name="Real", draft_model_path="/m/long-name-of-head.gguf")
    picker.show_state(EngineState(phase="ready", report=head))
    assert picker.text() == "Real  + EAGLE-3"
    picker.show_state(EngineState(phase="failed", wanted="/m/wish.gguf", problem="No."))
    assert picker.text() == "wish could not be loaded"


def test_the_folder_is_read_off_the_gui_thread(picker: ModelPicker, qtbot: QtBot, tmp_path: Path) -> None:
    library = ModelLibrary(lambda: tmp_path)
    (tmp_path / "broken.gguf").write_bytes(b"nothing")
    with qtbot.waitSignal(library.changed):
        library.refresh()
    assert [found.path.name for found in library.entries] == ["broken.gguf"]
    assert library.entries[0].problem
    library.close()
