"""Files that the native loader must never see, and the sentence that each gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from model_store.check import ModelFileError, check_model_file
from tests.model_store.raw_gguf import CHAT, gguf, u32


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        check_model_file(path, "chat")
    return str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.gguf") == f"gone.gguf was not found in {tmp_path}."


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "dir.gguf").mkdir()
    assert refusal(tmp_path / "dir.gguf") == "dir.gguf is a folder, not a GGUF file."


def test_other_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello, world")
    assert refusal(tmp_path / "notes.txt") == "notes.txt cannot be used: not a GGUF file."


def test_truncated_file_names_both_sizes(tmp_path: Path) -> None:
    whole = gguf()
    (tmp_path / "half.gguf").write_bytes(whole[:-100])
    sizes = f"incomplete ({len(whole) - 100} of {len(whole)} bytes)"
    assert refusal(tmp_path / "half.gguf") == f"half.gguf cannot be used: {sizes}."


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(gguf())

    def refuse(*_: object) -> int:  # root may read everything, so the refusal is played
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert refusal(path) == "secret.gguf cannot be read: permission denied."


def test_impossible_names(tmp_path: Path) -> None:
    assert "not a file name" in refusal(tmp_path / "zero\0byte.gguf")
    assert "too long" in refusal(tmp_path / ("x" * 300 + ".gguf"))


@pytest.mark.parametrize("folder", ["Modèles 模型 (1)/ü \u3000x", "a#b%20c", "it's", "n\u0303"])
def test_odd_folders_are_ordinary(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "model.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(gguf())
    assert check_model_file(path, "chat").architecture == "llama"


def test_name_that_is_not_utf8_gives_a_printable_sentence(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.gguf"))
    path.write_bytes(b"nothing")
    refusal(path).encode()


def test_split_model_is_checked_in_all_its_parts(tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{number}-of-00002.gguf" for number in (1, 2))
    first.write_bytes(gguf({**CHAT, "split.count": u32(2)}))
    assert refusal(first) == f"{second.name} was not found in {tmp_path}."
    second.write_bytes(gguf({"split.count": u32(2)})[:-1])
    assert refusal(first).startswith(f"{second.name} cannot be used: incomplete")
    second.write_bytes(gguf({"split.count": u32(2)}))
    assert check_model_file(first, "chat").architecture == "llama"
    assert refusal(second) == f"{second.name} is part 2 of 2: choose {first.name} instead."


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"block_count": 0}, "it claims 0 layers"),
        ({"block_count": 513}, "it claims 513 layers"),
        ({"block_count": 2, "nextn_predict_layers": 3}, "it claims 3 MTP layers of 2"),
        ({"block_count": 2, "expert_used_count": 2}, "it claims to use 2 of 0 experts"),
        ({"expert_count": 4, "expert_used_count": 5}, "it claims to use 5 of 4 experts"),
        ({"expert_count": 4, "expert_used_count": 0}, "it claims to use 0 of 4 experts"),
    ],
)
def test_numbers_at_which_llama_cpp_would_end_the_process(
    tmp_path: Path, numbers: dict[str, int], words: str
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf({**CHAT, **{f"llama.{key}": u32(value) for key, value in numbers.items()}}))
    assert refusal(path) == f"m.gguf cannot be used: {words}."
