"""The settings page: drawn from the declarations, every change in force at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QPlainTextEdit, QSpinBox
from pytestqt.qtbot import QtBot

from app.declaration import Declared, declarations
from app.protocol import NEURAL
from app.settings import GROUPS, Settings
from ui.settings.learning_control import LearningControl
from ui.settings.settings_form import SettingsForm
from ui.theme import Theme
from ui.widgets.file_choice import FileChoice


class Heard(list[Settings]):
    pass


def make(theme: Theme, qtbot: QtBot, settings: Settings | None = None) -> tuple[SettingsForm, Heard]:
    dialog = SettingsForm(theme, settings or Settings(), "/m/toy.gguf", Path(), lambda: ["chatml", "llama-2"])
    qtbot.addWidget(dialog)
    heard = Heard()
    dialog.changed.connect(heard.append)
    return dialog, heard


def test_every_setting_but_the_chosen_model_has_a_row(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = make(theme, qtbot)
    fields = {field.name for field in msgspec.structs.fields(Settings)}
    rows = {name.split(".")[0] for name in dialog.controls}
    declared = declarations(Settings)
    assert fields - rows == {
        words.name for words in declared.values() if not words.group or words.part_of == "drafting"
    }
    assert not declared["model"].group
    groups = {group.name for group in GROUPS}
    assert {words.group for words in declared.values() if words.group} < groups


@pytest.mark.parametrize("words", declarations(Settings).values(), ids=lambda words: words.name)
def test_each_setting_explains_itself(words: Declared) -> None:
    assert words.title != words.name
    assert words.help.endswith(".")
    for field, value in [words.only_if] if words.only_if else []:
        assert value in dict(declarations(Settings)[field].choices) or field == "draft_mode"
    if words.control == "choice" and words.part_of is None:
        assert getattr(Settings(), words.name) in dict(words.choices)


def test_what_the_engine_is_loaded_with_is_declared_to_reload() -> None:
    """A change of each such setting asks for other options, and no other change does."""
    other = {
        "learn": False,
        "lookup_cache": "/x",
        "n_ctx": 512,
        "n_threads": 3,
        "n_batch": 64,
        "prompt_cache_mb": 0,
        "server_parallel": 4,
        "n_gpu_layers": 0,
        "kv_type": "q8_0",
        "flash_attention": "off",
        "chat_templates": {"m": "gemma"},
        "draft_model": "/d",
    }
    assert {w.name for w in declarations(Settings).values() if w.reloads} == set(other)
    for name, value in other.items():
        changed = Settings(server=True, **{name: value})  # type: ignore[arg-type]
        if name != "draft_model":
            assert changed.engine_options("m") != Settings(server=True).engine_options("m"), name


def test_ranges_come_from_the_declaration(theme: Theme, qtbot: QtBot) -> None:
    dialog, _ = make(theme, qtbot)
    temperature, draft = dialog.controls["temperature"], dialog.controls["max_draft"]
    assert isinstance(temperature, QDoubleSpinBox) and isinstance(draft, QSpinBox)
    assert (temperature.minimum(), temperature.maximum()) == (0.0, 2.0)
    assert (draft.minimum(), draft.maximum()) == (1, 64)


def test_drafters_keep_their_order(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = make(theme, qtbot)
    for name in ("cache", "mod"):
        box = dialog.controls[f"links.{name}"]
        assert isinstance(box, QCheckBox)
        box.click()
    kept = ("simple", "map-k", "map-k4v", "suffix", *NEURAL)
    assert heard[-1].links == kept
    box = dialog.controls["links.cache"]
    assert isinstance(box, QCheckBox)
    box.click()
    assert heard[-1].links == ("cache", *kept)


def test_typed_values_settle_first_and_closing_does_not_lose_them(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = make(theme, qtbot)
    context, prompt = dialog.controls["n_ctx"], dialog.controls["system_prompt"]
    assert isinstance(context, QSpinBox) and isinstance(prompt, QPlainTextEdit)
    context.setValue(2048)
    context.setValue(1024)
    assert not heard
    qtbot.waitUntil(lambda: len(heard) == 1)
    assert heard[-1].n_ctx == 1024
    dialog.show()
    prompt.setPlainText("Be brief.")
    dialog.close()
    assert heard[-1].system_prompt == "Be brief."


def test_the_template_belongs_to_the_model(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = make(theme, qtbot, Settings(chat_templates={"/m/other.gguf": "llama-2"}))
    box = dialog.controls["chat_templates"]
    assert isinstance(box, QComboBox)
    assert [box.itemText(n) for n in range(box.count())] == ["Automatic", "chatml", "llama-2"]
    box.setCurrentIndex(1)
    assert heard[-1].chat_templates == {"/m/other.gguf": "llama-2", "/m/toy.gguf": "chatml"}
    box.setCurrentIndex(0)
    assert heard[-1].chat_templates == {"/m/other.gguf": "llama-2"}


def test_a_draft_model_can_be_chosen_and_taken_away(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = make(theme, qtbot)
    choice = dialog.controls["draft_model"]
    assert isinstance(choice, FileChoice)
    choice.choose("/m/small\u202egnp.gguf")
    assert heard[-1].draft_model == "/m/small\u202egnp.gguf"
    assert "\u202e" not in choice.button.toolTip()
    choice.clear.click()
    assert heard[-1].draft_model is None


def test_a_lookup_cache_can_be_chosen(theme: Theme, qtbot: QtBot) -> None:
    dialog, heard = make(theme, qtbot)
    choice = dialog.controls["lookup_cache"]
    assert isinstance(choice, FileChoice)
    choice.choose("/m/static.lcs")
    assert heard[-1].lookup_cache == "/m/static.lcs"
    assert choice.button.text() == "static.lcs"
    choice.clear.click()
    assert heard[-1].lookup_cache is None


def test_learning_can_be_switched_off_and_forgotten(theme: Theme, qtbot: QtBot, private_home: Path) -> None:
    folder = private_home / "data" / "answers"
    folder.mkdir(parents=True)
    (folder / "a.answers").write_bytes(b"ids")
    dialog, heard = make(theme, qtbot)
    learning = dialog.controls["learn"]
    assert isinstance(learning, LearningControl)
    learning.switch.click()
    assert not heard[-1].learn
    learning.button.click()
    assert list(folder.glob("*.answers")) == []
    assert learning.button.text() == "Forgotten"


def test_what_cannot_be_forgotten_is_said(theme: Theme, qtbot: QtBot, private_home: Path) -> None:
    folder = private_home / "data" / "answers"
    (folder / "a.answers").mkdir(parents=True)  # a folder is not deleted like a file
    dialog, _ = make(theme, qtbot)
    learning = dialog.controls["learn"]
    assert isinstance(learning, LearningControl)
    learning.button.click()
    assert learning.button.text() == "Could not delete"
    assert learning.button.toolTip()
