"""The tool behind ``make screenshots``: a picture for each theme and size, the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from tests.ui import screenshots
from ui.theme import Theme


def test_pictures_are_taken_and_taken_alike(
    qapp: QApplication, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))  # put back at the end
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    flash = qapp.cursorFlashTime()
    try:
        first, second = (
            screenshots.take(_folder(tmp_path / name), tmp_path / f"{name}-homes", ["chat"])
            for name in ("first", "second")
        )
    finally:
        qapp.setCursorFlashTime(flash)
        theme.choose("dark")  # else it believes that its light one is still in force
    assert [path.name for path in first] == [
        f"chat-{theme}-{width}x{height}.png"
        for theme in screenshots.THEMES
        for width, height in screenshots.SIZES
    ]
    for path in first:
        picture = QImage(str(path))
        assert f"{picture.width()}x{picture.height()}" in path.name
        colours = {picture.pixel(x, y) for x in range(0, picture.width(), 40) for y in range(0, 700, 10)}
        assert len(colours) > 5
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
