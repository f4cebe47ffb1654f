"""Settings: kept over versions, never lost to a damaged file or a full disk."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import msgspec
import pytest

from app.protocol import DRAFTERS
from app.settings import Settings, SettingsFile
from drafting.parameters import CacheParameters, LinkParameters, MapParameters
from model_store import files


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    return SettingsFile(tmp_path / "settings.json")


def test_without_a_file_there_are_defaults(file: SettingsFile) -> None:
    assert file.load() == Settings()
    assert list(file.path.parent.iterdir()) == []  # reading creates nothing


def test_round_trip(file: SettingsFile) -> None:
    settings = Settings(
        model="/models/ü.gguf",
        draft_model="/d.gguf",
        links=("mod", "cache"),
        order=("mod", "simple", "cache"),
        floor_manual=0.35,
        verification="exact",
        max_draft=64,
        temperature=0.0,
        max_tokens=200,
        system_prompt="Be\nbrief. 👩‍💻",
        theme="dark",
        chat_templates={"/models/ü.gguf": "gemma"},
    )
    file.save(settings)
    assert file.load() == settings
    file.save(Settings())
    assert file.load() == Settings()
    assert [path.name for path in file.path.parent.iterdir()] == ["settings.json"]


def test_the_default_file_lies_in_the_private_home(private_home: Path) -> None:
    assert SettingsFile().path == private_home / "config" / "settings.json"


def test_a_file_of_another_version_still_reads(file: SettingsFile) -> None:
    """Keys it lacks have their defaults, keys of a newer version are ignored."""
    file.path.write_text(json.dumps({"temperature": 0.3, "telepathy": {"on": True}}))
    assert file.load() == Settings(temperature=0.3)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"temperature": 0.3',
        b"\x00" * 200,
        b"\xff\xfe",
        b'{"system_prompt": "\xff"}',
        b"[]",
    ],
)
def test_a_damaged_file_is_set_aside(file: SettingsFile, content: bytes) -> None:
    file.path.write_bytes(content)
    assert file.load() == Settings()
    assert not file.path.exists()
    aside = file.path.with_name("settings.damaged.json")
    assert aside.read_bytes() == content
    file.save(Settings(temperature=0.1))
    assert file.load() == Settings(temperature=0.1)
    assert aside.read_bytes() == content


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": "warm"}, {"temperature": 99}, {"n_ctx": 1}, {"links": ["telepathy"]}, {"order": 3}],
)
def test_a_value_that_means_nothing_costs_only_itself(file: SettingsFile, wrong: dict[str, object]) -> None:
    file.path.write_text(json.dumps({"system_prompt": "Be brief.", **wrong}))
    assert file.load() == Settings(system_prompt="Be brief.")
    assert file.path.exists()


def test_a_full_disk_leaves_the_old_file(file: SettingsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.save(Settings(temperature=0.1))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file.save(Settings(temperature=0.9))
    assert file.load() == Settings(temperature=0.1)
    assert [path.name for path in file.path.parent.iterdir()] == ["settings.json"]


def test_a_failed_rename_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    files.write_atomically(path, b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, "held open")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        SettingsFile(tmp_path / "gone" / "settings.json").save(Settings())


def test_every_setting_has_words_and_a_valid_default() -> None:
    """The dialog is drawn from them."""
    properties = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    for name in Settings.__struct_fields__:
        assert properties[name]["title"], name
        assert properties[name]["description"].endswith("."), name
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()


def test_what_the_engine_is_asked_for(private_home: Path) -> None:
    settings = Settings(temperature=0.5, max_draft=3, n_ctx=512, n_threads=2, chat_templates={"m": "gemma"})
    assert settings.sampling_params().temperature == 0.5
    assert settings.drafting_params().links == DRAFTERS
    assert settings.drafting_params().max_draft == 3
    assert Settings(drafting=False).drafting_params().links == ()
    options = settings.engine_options("m")
    assert (options.n_ctx, options.n_threads, options.chat_template) == (512, 2, "gemma")
    assert settings.engine_options("other").chat_template is None
    assert settings.engine_options("m").answers_folder == str(private_home / "data" / "answers")
    assert Settings(learn=False).engine_options("m").answers_folder is None
    assert Settings(lookup_cache="/static.lcs").engine_options("m").lookup_cache == "/static.lcs"


def test_a_cache_of_8_bits_keeps_what_it_needs() -> None:
    settings = Settings(kv_type="q8_0", flash_attention="off")
    assert settings.engine_options("m").flash_attention == "auto"
    assert Settings(kv_type="q8_0", flash_attention="on").engine_options("m").flash_attention == "on"
    assert Settings(flash_attention="off").engine_options("m").flash_attention == "off"


def test_what_decides_about_a_token_is_passed_on() -> None:
    sampling = Settings(top_k=3, top_p=0.5, min_p=0.0, repeat_penalty=1.1).sampling_params()
    assert (sampling.top_k, sampling.top_p, sampling.min_p, sampling.repeat_penalty) == (3, 0.5, 0.0, 1.1)


def test_links_are_asked_for_in_the_order_chosen() -> None:
    settings = Settings(order=("mod", "cache", "mod"), links=("cache", "suffix", "mod"))
    assert settings.chain() == ("mod", "cache", *(name for name in DRAFTERS if name not in ("mod", "cache")))
    assert settings.drafting_params().links == ("mod", "cache", "suffix")


def test_each_mode_has_its_floor() -> None:
    assert Settings().drafting_params().floor == 0.0
    assert Settings(draft_mode="manual").drafting_params().floor == 0.2
    assert Settings(draft_mode="manual", floor_manual=0.0).drafting_params().floor == 0.0
    assert Settings(floor_auto=0.3).drafting_params().floor == 0.3


def test_parameters_are_kept_and_a_bad_one_costs_only_itself(
    file: SettingsFile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    settings = Settings(parameters=LinkParameters(map_k=MapParameters(n=8), cache=CacheParameters(p_min=0.5)))
    file.save(settings)
    assert file.load() == settings
    assert settings.drafting_params().parameters == settings.parameters
    content = json.loads(file.path.read_text())
    assert content["parameters"]["map-k"]["n"] == 8
    content["parameters"]["map-k"]["m"] = 0
    content["parameters"]["simple"] = "fast"
    content["parameters"]["mod"] = {"n_min": 9, "n_max": 3}
    file.path.write_text(json.dumps(content))
    assert file.load() == settings
    assert [record.args[0] for record in caplog.records if record.args] == [
        "parameters.simple",
        "parameters.map-k.m",
        "parameters.mod",
    ]


def test_two_settings_do_not_share_their_templates() -> None:
    first = Settings()
    first.chat_templates["m"] = "gemma"
    assert Settings().chat_templates == {}
