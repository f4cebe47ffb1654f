"""The list of models, and the label that tells what is loaded (case B05)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.protocol import DrafterReport
from model_store.classify import Kind
from model_store.fit import FreeMemory, Loading
from model_store.imported import Imported
from model_store.library import ModelEntry
from model_store.readiness import readiness
from tests.models.eagle3 import write_eagle3
from tests.tiny_gguf import Tiny, write_llama
from tests.ui.test_live_numbers import report
from ui.engine_state import EngineState
from ui.models import model_library
from ui.models.model_library import ModelLibrary
from ui.models.model_picker import ModelPicker
from ui.theme import Theme


def entry(name: str, kind: Kind = "chat", problem: str | None = None) -> ModelEntry:
    return ModelEntry(Path(f"/m/{name}.gguf"), name, kind, 2_500_000_000, problem, "llama", "")


@pytest.fixture
def picker(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> ModelPicker:
    starter = Imported(Path("/s/starter.gguf"), "starter", "Slipstream")
    monkeypatch.setattr(model_library, "starter_model", lambda: starter)
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
        "Get more models…",
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
    library.refresh()
    qtbot.waitUntil(lambda: bool(library.entries), timeout=20_000)
    assert [found.path.name for found in library.entries] == ["broken.gguf"]
    assert library.entries[0].problem
    library.close()


def test_the_menu_says_how_a_model_will_run(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    write_llama(tmp_path / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(tmp_path / "head.gguf", Tiny(n_layer=4))
    library = ModelLibrary(
        lambda: tmp_path, lambda entry: readiness(entry, head, Loading(), FreeMemory(8 << 30))
    )
    picker = ModelPicker(theme, library, lambda: tmp_path)
    qtbot.addWidget(picker, before_close_func=lambda _: library.close())
    picker.menu().aboutToShow.emit()
    qtbot.waitUntil(lambda: bool(library.ready), timeout=20_000)
    [action] = [each for each in picker.menu().actions() if each.text().startswith("target")]
    assert action.text() == "target   1 MB   EAGLE-3, fits"
    for words in ("Weights: ", "KV cache: ", "Drafter: ", "are free"):
        assert words in action.toolTip()


def test_many_models_lead_to_the_page(picker: ModelPicker, qtbot: QtBot) -> None:
    picker._library.entries = [entry(f"m{number}") for number in range(1000)]
    picker.fill()
    texts = [action.text() for action in picker.menu().actions()]
    assert len(texts) < 50
    more = picker.menu().actions()[texts.index("All 1,000 models, and more…")]
    with qtbot.waitSignal(picker.more_asked):
        more.trigger()
