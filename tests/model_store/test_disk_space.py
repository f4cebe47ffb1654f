"""Room on the disk: claimed before, watched while, and shared by all downloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.disk_space import DiskFullError, DiskSpace, free_bytes
from model_store.transfer_rate import TransferRate

FOLDER = Path("/models")


class Disk:
    def __init__(self, free: int) -> None:
        self.free = free

    def __call__(self, folder: Path) -> int:
        assert folder == FOLDER
        return self.free


def test_what_would_touch_the_reserve_is_refused() -> None:
    space = DiskSpace(FOLDER, reserve=1000, free=Disk(5000))
    space.claim("a", 4000)
    with pytest.raises(DiskFullError, match=r"needs 4\.0 kB more; 5\.0 kB are free, and 1\.0 kB stay free"):
        DiskSpace(FOLDER, reserve=1000, free=Disk(5000)).claim("a", 4001)


def test_downloads_do_not_count_on_the_same_room() -> None:
    space = DiskSpace(FOLDER, reserve=0, free=Disk(5000))
    space.claim("a", 3000)
    with pytest.raises(DiskFullError, match=r"3\.0 kB of it for other downloads"):
        space.claim("b", 2001)
    space.claim("a", 2999)  # it has got on
    space.claim("b", 2001)
    space.release("a")
    space.release("a")
    space.claim("b", 5000)


def test_disk_that_others_fill_is_noticed() -> None:
    disk = Disk(5000)
    space = DiskSpace(FOLDER, reserve=1000, free=disk)
    space.claim("a", 3000)
    disk.free = 1000
    space.watch("a", 2000)
    disk.free = 999
    with pytest.raises(DiskFullError, match="999 bytes are free"):
        space.watch("a", 1999)
    space.claim("b", 0)  # a whole file takes nothing more


def test_free_bytes_are_asked_of_the_system(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0


def test_rate_is_that_of_the_last_seconds() -> None:
    rate = TransferRate()
    assert rate.rate(0.0) == 0.0
    rate.add(10_000, 0.0)  # was there before
    assert rate.rate(0.0) == 0.0
    for step in range(1, 101):
        rate.add(10_000 + 100 * step, step / 10)
    assert rate.rate(10.0) == pytest.approx(1000, rel=0.01)
    for step in range(1, 101):
        rate.add(20_000 + 500 * step, 10 + step / 10)
    assert rate.rate(20.0) == pytest.approx(5000, rel=0.05)
    assert rate.rate(40.0) < 1200  # nothing has come since
    rate.add(0, 41.0)  # started anew
    assert rate.rate(41.0) == 0.0
    rate.add(50, 42.0)
    assert rate.rate(42.0) == 50.0


def test_rate_keeps_few_points() -> None:
    rate = TransferRate()
    for step in range(100_000):
        rate.add(step, step / 10_000)
    assert rate.rate(10.0) == pytest.approx(10_000, rel=0.01)
    assert len(rate._points) < 100
