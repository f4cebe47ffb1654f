"""A file's key: the same wherever it lies, another for another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.file_key import file_key
from tests.tiny_gguf import Tiny, write_llama


def test_a_moved_and_renamed_file_keeps_its_key(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "a.gguf")
    key = file_key(path)
    (tmp_path / "elsewhere").mkdir()
    moved = path.rename(tmp_path / "elsewhere" / "b.gguf")
    assert file_key(moved) == key and len(key) == 32
    assert file_key(write_llama(tmp_path / "c.gguf", Tiny(seed=1))) != key  # only its weights differ


@pytest.mark.parametrize("size", [0, 1, 1 << 16, 1 << 18, (1 << 18) + 1, 1 << 20])
def test_size_beginning_and_end_count(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    keys = {file_key(path)}
    for place in {0, size - 1} if size else ():
        content = bytearray(size)
        content[place] = 1
        path.write_bytes(content)
        keys.add(file_key(path))
    path.write_bytes(bytes(size + 1))
    keys.add(file_key(path))
    assert len(keys) == 2 + len({0, size - 1} if size else ())


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        file_key(tmp_path / "gone.gguf")
