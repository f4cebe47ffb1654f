"""Settings that are given away and taken: nothing private goes out, nothing odd comes in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.settings import Settings
from app.settings_exchange import ImportProblem, exported, imported, read_export, reset
from drafting.parameters import LinkParameters, MapParameters


def test_a_round_trip_keeps_everything_but_the_chosen_model(tmp_path: Path) -> None:
    draft = tmp_path / "d.gguf"
    draft.write_bytes(b"GGUF")
    given = Settings(
        model="/mine.gguf",
        draft_model=str(draft),
        temperature=0.1,
        links=("mod", "cache"),
        parameters=LinkParameters(map_k=MapParameters(n=8)),
        shortcuts={"new_chat": "Ctrl+T"},
        theme="dark",
    )
    file = tmp_path / "s.json"
    file.write_bytes(exported(given))
    assert "/mine.gguf" not in file.read_text()
    taken = read_export(file, Settings(model="/other.gguf", zoom=150))
    assert taken.settings == Settings(
        model="/other.gguf",
        draft_model=str(draft),
        temperature=0.1,
        links=("mod", "cache"),
        parameters=LinkParameters(map_k=MapParameters(n=8)),
        shortcuts={"new_chat": "Ctrl+T"},
        theme="dark",
    )
    assert taken.changed == 7  # zoom went back, too
    assert taken.ignored == {}


def test_what_means_nothing_is_left_out_and_told() -> None:
    content = {
        "temperature": 99,
        "telepathy": True,
        "top_k": 7,
        "model": "/theirs.gguf",
        "draft_model": "/not/here.gguf",
        "parameters": {"map-k": {"n": 8, "m": 0}},
    }
    present = Settings(temperature=0.3, top_p=0.5, draft_model="/mine.gguf")
    taken = imported(json.dumps(content).encode(), present)
    assert set(taken.ignored) == {"temperature", "telepathy", "model", "draft_model", "parameters.map-k.m"}
    assert all(taken.ignored.values())
    # What the file does not name, or names wrongly, stays as it was.
    assert (taken.settings.temperature, taken.settings.top_p) == (0.3, 0.5)
    assert taken.settings.draft_model == "/mine.gguf"
    assert taken.settings.top_k == 7
    assert taken.settings.parameters.map_k == MapParameters(n=8)
    assert taken.changed == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff\xfe", b"{}", b'{"a": 1}', b'"text"', b'{"n_ctx": "\xff"}', b"[" * 5000],
)
def test_a_file_without_settings_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(ImportProblem, match=r"^x\.json holds no settings"):
        read_export(file, Settings())


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "x.json"
    large.write_bytes(b" " * (5 << 20))
    with pytest.raises(ImportProblem, match="too large"):
        read_export(large, Settings())
    with pytest.raises(ImportProblem, match="cannot be read"):
        read_export(tmp_path / "gone.json", Settings())


def test_no_token_is_in_an_export(private_home: Path) -> None:
    from app import hub_token

    hub_token.save("hf_abcdefghijklmnopqrstuvwxyz")
    assert b"hf_abc" not in exported(Settings())


def test_reset_keeps_the_chosen_model() -> None:
    assert reset(Settings(model="/m.gguf", n_ctx=512, theme="dark")) == Settings(model="/m.gguf")
