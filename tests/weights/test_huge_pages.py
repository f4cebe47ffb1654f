"""Where the weights of a loaded model are."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from app.worker import weights
from model_store.starter import starter_path
from native import huge_pages
from tests.session import Session

pytestmark = pytest.mark.all_cores


def in_huge_pages(pid: int) -> int:
    """Bytes of the process' own memory that are in huge pages."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    return 0


@pytest.mark.skipif(
    sys.platform != "linux" or not huge_pages.offered(), reason="this machine offers no huge pages"
)
def test_the_starters_weights_are_in_huge_pages(session: Session) -> None:
    path = starter_path()
    session.load(path)
    assert session.client.pid is not None
    # Memory in pieces may leave the kernel short of some; most must be there.
    assert in_huge_pages(session.client.pid) > 0.5 * path.stat().st_size


def test_weights_that_leave_little_room_stay_in_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [tmp_path / f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
    for part in parts:
        part.write_bytes(bytes(1000))
    whole = tmp_path / "m.gguf"
    whole.write_bytes(bytes(1000))

    def free(size: int) -> None:
        memory = psutil.virtual_memory()._replace(available=size)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)

    free(4000)
    assert weights.has_room(whole)
    assert not weights.has_room(parts[0])
    free(6000)
    assert weights.has_room(parts[0])
    parts[1].unlink()
    assert not weights.has_room(parts[0])
