"""Text files in a message: what is quoted, and why something is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ui.chat.quoted_file import MOST_BYTES, NotQuotable, quoted_file


def test_a_file_becomes_a_block_of_code_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "load.py"
    path.write_bytes("\ufeffdef f():\r\n    return 'ü'\r\n".encode())
    assert quoted_file(path) == "`load.py`:\n\n```python\ndef f():\n    return 'ü'\n```\n"


def test_the_fence_is_longer_than_any_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("````\ncode\n````")
    assert "`````md\n````\ncode\n````\n`````\n" in quoted_file(path)


def test_odd_names_stay_one_line_of_text(tmp_path: Path) -> None:
    path = tmp_path / "a`b\u202e.weird-ending"
    path.write_text("x")
    assert quoted_file(path).startswith("`a'b⟨U+202E⟩.weird-ending`:\n\n```\nx\n")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("picture.png", b"\x89PNG\r\n\x1a\n\xff", "is not a text file"),
        ("zero.txt", b"a\0b", "is not a text file"),
        ("large.txt", b"x" * (MOST_BYTES + 1), "is too large: 256 KB, and at most 256 KB"),
    ],
)
def test_what_is_not_quoted_and_why(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(NotQuotable, match=why):
        quoted_file(path)


def test_folders_and_files_that_are_gone(tmp_path: Path) -> None:
    with pytest.raises(NotQuotable, match="is not a file"):
        quoted_file(tmp_path)
    with pytest.raises(NotQuotable, match="is not a file"):
        quoted_file(tmp_path / "gone.txt")
