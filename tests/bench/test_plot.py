"""The picture, where matplotlib is installed: a PNG that says what the rows say."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bench import plot
from app.bench.measurement import rows
from tests.bench.test_measurement import measured


def test_it_draws_a_png_for_every_model(tmp_path: Path) -> None:
    if not plot.can_plot():
        pytest.skip("matplotlib is not installed; it is optional")
    table = rows([measured("off", 0, 100), measured("chain", 0, 150, drafted=80, accepted=40)], "off")
    path = tmp_path / "plot.png"
    plot.draw(table, path, note="a note")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
