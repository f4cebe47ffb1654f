"""The queue: two at once, stopped and resumed at will, and never two downloads of one file."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from filelock import FileLock

from model_store import download_queue, following_hash
from model_store.download import RetryPolicy
from model_store.download_folder import DownloadFolder
from model_store.download_job import JobProgress, JobRecord
from tests.model_store.local_hub import Fault, LocalHub
from tests.model_store.queue_bench import PATIENT, QueueBench, suffixes, unfinished

ROOT = Path(__file__).resolve().parents[2]
SIZE = 1_600_000
PAUSE = 0.02  # a piece of 64 KiB: a file then takes 0.5 s
SLOW = 0.4  # then 10 s: long enough for whatever is done to it meanwhile


def content(number: int) -> bytes:
    return random.Random(number).randbytes(SIZE)


@pytest.fixture
def hub(local_hub: LocalHub) -> LocalHub:
    """Four repositories of one file, sent slowly."""
    for number, name in enumerate("abcd"):
        local_hub.add(f"o/{name}", {f"{name}.gguf": content(number)})
        local_hub.file(f"o/{name}", f"{name}.gguf").piece_pause = PAUSE
    return local_hub


@pytest.fixture
def bench(tmp_path: Path, hub: LocalHub) -> Iterator[QueueBench]:
    with QueueBench(tmp_path / "models", hub, policy=PATIENT) as bench:
        yield bench


def pace(hub: LocalHub, names: str, pause: float) -> None:
    """How slowly the files are sent from now on."""
    for name in names:
        hub.file(f"o/{name}", f"{name}.gguf").piece_pause = pause


def under_way(event: JobProgress) -> bool:
    return event.received > SIZE * 0.1


def place(bench: QueueBench, name: str) -> Path:
    return bench.models / "o" / name / f"{name}.gguf"


def child(bench_models: Path, hub: LocalHub, repo: str = "", *paths: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.model_store.download_child", str(bench_models), hub.url, repo]
    return subprocess.Popen([*command, *paths], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_two_at_once_in_order(bench: QueueBench) -> None:
    jobs = [bench.get(f"o/{name}") for name in "abcd"]
    for job in jobs:
        assert bench.end(job.id).state == "complete"
    latest: dict[str, str] = {}
    most = 0
    for event in bench.events:
        latest[event.id] = event.state
        most = max(most, sum(state == "active" for state in latest.values()))
    assert most == 2
    begun = [event.id for event in bench.events if event.state == "active"]
    assert list(dict.fromkeys(begun)) == [job.id for job in jobs]
    assert [job.id for job in bench.queue.jobs()] == [job.id for job in jobs]


def test_two_files_are_one_job(bench: QueueBench, hub: LocalHub) -> None:
    files = bench.files("o/a") + bench.files("o/b")
    job = bench.queue.add(files, "A with its drafter")
    assert (job.title, job.size) == ("A with its drafter", 2 * SIZE)
    bench.wait(job.id, lambda event: all(file.received > 0 for file in event.files))  # both at once
    assert bench.end(job.id).state == "complete"
    assert place(bench, "a").read_bytes() == content(0)
    assert place(bench, "b").read_bytes() == content(1)


def test_progress_is_told_ten_times_a_second(bench: QueueBench) -> None:
    job = bench.get("o/a")
    started = time.monotonic()
    assert bench.end(job.id).state == "complete"
    took = time.monotonic() - started
    events = [event for event in bench.events if event.id == job.id]
    assert 3 < len(events) < 10 * took + 8
    received = [event.received for event in events]
    assert received == sorted(received)
    assert received[-1] == SIZE
    middle = next(event for event in events if 0 < event.received < SIZE and event.rate > 0)
    assert middle.seconds_left is not None
    assert middle.seconds_left == pytest.approx((SIZE - middle.received) / middle.rate)
    assert events[-1].state == "complete"
    assert events[-1].seconds_left is None


def test_pause_and_resume(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    job = bench.get("o/a")
    bench.wait(job.id, under_way)
    bench.queue.pause(job.id)
    bench.queue.pause(job.id)
    assert bench.wait_for_state(job.id, "paused").files[0].phase == "paused"
    pace(hub, "a", 0)
    assert hub.sent("o/a", "a.gguf") < SIZE  # and no more comes
    [job_now] = bench.queue.jobs()
    assert 0 < job_now.received < SIZE
    assert not place(bench, "a").exists()
    bench.queue.resume(job.id)
    assert bench.end(job.id).state == "complete"
    assert place(bench, "a").read_bytes() == content(0)
    assert hub.requests("/content/")[-1].status == 206
    bench.queue.resume(job.id)
    bench.queue.pause(job.id)
    assert bench.end(job.id).state == "complete"


def test_paused_job_leaves_its_place_to_the_next(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "ab", SLOW)
    first, second, third = (bench.get(f"o/{name}") for name in "abc")
    bench.wait(first.id, under_way)
    assert bench.wait_for_state(third.id, "waiting").received == 0
    bench.queue.pause(first.id)
    pace(hub, "ab", 0)
    assert bench.end(third.id).state == "complete"
    assert bench.end(second.id).state == "complete"
    assert bench.wait_for_state(first.id, "paused")


def test_pause_survives_the_program(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    job = bench.get("o/a")
    bench.wait(job.id, under_way)
    bench.queue.pause(job.id)
    bench.queue.close()
    later = QueueBench(bench.models, hub, policy=PATIENT)
    [there] = later.queue.jobs()  # looking starts nothing
    assert (there.id, there.state, there.ours, there.files[0].phase) == (job.id, "paused", False, "paused")
    pace(hub, "a", 0)
    asked = len(hub.requests("/content/"))
    with later:
        [there] = later.queue.jobs()
        assert (there.id, there.state, there.ours) == (job.id, "paused", True)
        assert 0 < there.received < SIZE
        other = later.get("o/b")  # goes its way, and the paused one does not
        assert later.end(other.id).state == "complete"
        assert len(hub.requests("/content/")) == asked + 1
        later.queue.resume(job.id)
        assert later.end(job.id).state == "complete"


def test_cancel_stops_the_traffic_and_not_the_neighbours(bench: QueueBench, hub: LocalHub) -> None:
    """G08: A at 30 %, twice, and again from the start at once."""
    pace(hub, "a", SLOW)
    first, second = bench.get("o/a"), bench.get("o/b")
    bench.wait(first.id, lambda event: event.received > SIZE * 0.3)
    bench.queue.cancel(first.id)
    bench.queue.cancel(first.id)
    assert bench.wait_for_state(first.id, "cancelled")
    pace(hub, "a", 0)
    again = bench.get("o/a")
    assert again.id != first.id
    assert bench.end(second.id).state == "complete"
    assert bench.end(again.id).state == "complete"
    assert place(bench, "a").read_bytes() == content(0)
    assert place(bench, "b").read_bytes() == content(1)
    cancelled = hub.requests("/content/o/a/")[0]
    assert cancelled.answered.wait(20)
    assert cancelled.sent < SIZE
    assert len(hub.requests("/content/o/b/")) == 1
    assert unfinished(bench.models) == []


def test_cancelled_traffic_ends_at_once(bench: QueueBench, hub: LocalHub) -> None:
    """G08: the server, which would go on for 10 s, finds nobody there for its next piece but one."""
    pace(hub, "a", SLOW)
    job = bench.get("o/a")
    bench.wait(job.id, under_way)
    bench.queue.cancel(job.id)
    bench.wait(job.id, lambda event: event.state == "cancelled")
    assert hub.sent("o/a", "a.gguf") < SIZE * 0.7
    bench.queue.close()
    assert unfinished(bench.models) == []


def test_cancel_while_nothing_comes(tmp_path: Path, hub: LocalHub) -> None:
    """G08: the reader is waiting for a server that would answer in 15 s at the earliest."""
    hub.script("o/a", "a.gguf", Fault("stall", 0.5, 60.0))
    with QueueBench(tmp_path, hub, policy=RetryPolicy()) as bench:
        job = bench.get("o/a")
        bench.wait(job.id, lambda event: event.received > 0)
        [asked] = hub.requests("/content/")
        assert asked.answered.wait(20)
        started = time.monotonic()
        bench.queue.cancel(job.id)
        bench.queue.close()
        assert time.monotonic() - started < 10
    assert unfinished(tmp_path) == []


def test_cancel_while_it_is_checked(bench: QueueBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """G08"""

    go_on = threading.Event()

    class Slow:
        def __init__(self) -> None:
            self._digest = hashlib.sha256()

        def update(self, data: memoryview) -> None:
            assert go_on.wait(60)
            self._digest.update(data)

        def hexdigest(self) -> str:
            return self._digest.hexdigest()

    class SlowHashes:
        sha256 = Slow
        sha1 = hashlib.sha1

    monkeypatch.setattr(following_hash, "hashlib", SlowHashes)
    job = bench.get("o/a")
    bench.wait(job.id, lambda event: event.files[0].phase == "checking")
    bench.queue.cancel(job.id)
    go_on.set()
    assert bench.wait_for_state(job.id, "cancelled")
    bench.queue.close()
    assert not place(bench, "a").exists()
    assert unfinished(bench.models) == []


def test_cancel_of_a_job_that_never_ran(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "abc", SLOW)
    jobs = [bench.get(f"o/{name}") for name in "abc"]
    bench.queue.cancel(jobs[2].id)
    assert bench.wait_for_state(jobs[2].id, "cancelled")
    bench.queue.dismiss(jobs[2].id)
    assert len(bench.queue.jobs()) == 2
    for job in jobs[:2]:
        bench.queue.dismiss(job.id)
    assert bench.queue.jobs() == []
    bench.queue.close()
    assert unfinished(bench.models) == []
    assert not list(bench.models.rglob("*.gguf"))


def test_two_clicks_are_one_download(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    first = bench.get("o/a")
    second = bench.get("o/a")
    assert first.id == second.id
    pace(hub, "a", 0)
    assert bench.end(first.id).state == "complete"
    assert hub.sent("o/a", "a.gguf") == SIZE
    third = bench.get("o/a")  # it is there
    assert bench.end(third.id).state == "complete"
    assert hub.sent("o/a", "a.gguf") == SIZE


def test_click_on_a_paused_job_resumes_it(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    job = bench.get("o/a")
    bench.wait(job.id, under_way)
    bench.queue.pause(job.id)
    pace(hub, "a", 0)
    assert bench.get("o/a").id == job.id
    assert bench.end(job.id).state == "complete"


def test_one_file_in_two_jobs_is_downloaded_once(bench: QueueBench, hub: LocalHub) -> None:
    drafter = bench.files("o/d")
    first = bench.queue.add(bench.files("o/a") + drafter)
    second = bench.queue.add(bench.files("o/b") + drafter)
    assert first.id != second.id
    assert bench.end(first.id).state == "complete"
    assert bench.end(second.id).state == "complete"
    assert hub.sent("o/d", "d.gguf") == SIZE


def test_cancel_keeps_what_another_job_wants(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "ad", SLOW)
    drafter = bench.files("o/d")
    first = bench.queue.add([*drafter, *bench.files("o/a")])
    second = bench.queue.add([*drafter, *bench.files("o/b")])
    bench.wait(first.id, under_way)
    bench.queue.cancel(first.id)
    pace(hub, "ad", 0)
    assert bench.end(second.id).state == "complete"
    assert place(bench, "d").read_bytes() == content(3)
    assert unfinished(bench.models) == []


def test_newer_revision_supersedes_an_unfinished_download(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    old = bench.get("o/a")
    bench.wait(old.id, under_way)
    hub.add("o/a", {"a.gguf": content(9)})
    new = bench.get("o/a")
    assert bench.end(new.id).state == "complete"
    assert bench.end(old.id).state == "cancelled"
    assert place(bench, "a").read_bytes() == content(9)
    bench.queue.close()
    assert unfinished(bench.models) == []


def test_failed_file_does_not_stop_its_companion(bench: QueueBench, hub: LocalHub) -> None:
    target, drafter = bench.files("o/a")[0], bench.files("o/b")[0]
    del hub.repositories["o/b"]
    job = bench.queue.add([drafter, target])
    bench.wait(job.id, lambda event: event.error is not None)
    bench.wait(job.id, lambda event: event.files[1].phase == "complete")
    ended = bench.end(job.id)
    assert ended.state == "failed"
    assert [file.phase for file in ended.files] == ["failed", "complete"]
    assert ended.error is not None
    assert ended.error.kind == "not_found"


def test_two_programs_make_one_download(bench: QueueBench, hub: LocalHub) -> None:
    other = child(bench.models, hub, "o/a", "a.gguf")
    job = bench.get("o/a")
    assert bench.end(job.id).state == "complete"
    assert other.wait(60) == 0
    assert other.stdout is not None
    assert other.stdout.read().splitlines()[-1] == f"complete {SIZE}"
    other.stdout.close()
    assert hub.sent("o/a", "a.gguf") == SIZE
    assert place(bench, "a").read_bytes() == content(0)
    bench.queue.close()
    assert unfinished(bench.models) == []


def test_job_of_another_program_is_shown_and_left_alone(bench: QueueBench, hub: LocalHub) -> None:
    pace(hub, "a", SLOW)
    other = child(bench.models, hub, "o/a", "a.gguf")
    try:
        while not (jobs := bench.queue.jobs()) or not jobs[0].received:
            time.sleep(0.02)
        [job] = jobs
        assert (job.ours, job.state, job.files[0].phase) == (False, "active", "elsewhere")
        bench.queue.cancel(job.id)
        bench.queue.start()
        assert [job.ours for job in bench.queue.jobs()] == [False]
    finally:
        other.kill()
        other.communicate()
    pace(hub, "a", 0)
    bench.queue.start()  # now it is nobody's
    assert bench.end(job.id).state == "complete"
    assert place(bench, "a").read_bytes() == content(0)


def test_killed_program(tmp_path: Path, hub: LocalHub) -> None:
    """G01: kill -9 in the middle, and the next program goes on."""
    models = tmp_path / "models"
    pace(hub, "a", SLOW)
    killed = child(models, hub, "o/a", "a.gguf")
    assert killed.stdout is not None
    for line in killed.stdout:
        if int(line.split()[1]) > SIZE * 0.3:
            break
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    pace(hub, "a", 0)
    assert ".part" in suffixes(models)
    assert not list(models.rglob("*.gguf"))
    bench = QueueBench(models, hub, policy=PATIENT)
    [job] = bench.queue.jobs()
    assert (job.state, job.ours, job.files[0].phase) == ("waiting", False, "waiting")
    assert job.received > SIZE * 0.2
    with bench:
        assert bench.end(job.id).state == "complete"
    assert place(bench, "a").read_bytes() == content(0)
    assert unfinished(models) == []
    last = hub.requests("/content/")[-1]
    assert last.answered.wait(20)
    assert last.status == 206
    assert last.sent < SIZE * 0.75


def test_what_a_killed_program_leaves_is_swept(tmp_path: Path, hub: LocalHub) -> None:
    """G01: orphans are shown with their size, and removed unless somebody holds them."""
    models = tmp_path / "models"
    folder = DownloadFolder(models)
    folder.path.mkdir(parents=True)
    for name in ("gone-1.part", "gone-1.state", "gone-1.bad", "gone-2.new", "held.part", "0123-ab.lock"):
        (folder.path / name).write_bytes(b"12345")
    (models / ".slipstream" / "manifests" / "o").mkdir(parents=True)
    (models / ".slipstream" / "manifests" / "o" / ".x.gguf.json.abc").write_bytes(b"half")
    (folder.path / "broken.job").write_bytes(b"{")
    assert folder.leftovers() == []  # too young: somebody may be about to use them
    assert sum(size for _, size in folder.leftovers(older_than=0)) > 25
    with FileLock(folder.path / "held.lock"):
        folder.sweep(older_than=0)
        assert unfinished(models) == ["held.lock", "held.part"]
    folder.sweep(older_than=0)
    assert unfinished(models) == []
    assert not list((models / ".slipstream" / "manifests" / "o").iterdir())


def test_lock_that_a_killed_program_leaves_is_no_reason_not_to_start(
    tmp_path: Path, hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows keeps a file that is open."""
    folder = DownloadFolder(tmp_path / "models")
    folder.path.mkdir(parents=True)
    (folder.path / "gone.lock").write_bytes(b"")
    (folder.path / "gone.part").write_bytes(b"12345")
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".lock":
            raise PermissionError(13, "it is used by another process", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert folder.sweep(older_than=0) == 5
    assert not (folder.path / "gone.part").exists()


def test_job_is_taken_over_as_its_last_program_left_it(
    tmp_path: Path, hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It pauses the job and ends, just as the next program looks."""
    pace(hub, "a", SLOW)
    with QueueBench(tmp_path / "models", hub, policy=PATIENT) as bench:
        job = bench.get("o/a")
        bench.wait(job.id, under_way)
        bench.queue.close()
        folder = DownloadFolder(bench.models)
        [record] = folder.records()
        assert record.state == "running"

        def take(lock: FileLock, within: float = 0.0) -> bool:
            folder.write(msgspec.structs.replace(record, state="paused"))
            return real_take(lock, within)

        real_take = download_queue._take
        monkeypatch.setattr(download_queue, "_take", take)
        with QueueBench(bench.models, hub) as later:
            [there] = later.queue.jobs()
            assert (there.state, there.ours, there.files[0].phase) == ("paused", True, "paused")
            monkeypatch.undo()
            later.queue.cancel(job.id)
    assert unfinished(bench.models) == []


def test_half_written_record_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut too: its bytes are on the disk before it has its name."""
    folder = DownloadFolder(tmp_path)
    folder.path.mkdir(parents=True)
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    record = JobRecord(folder.new_id(), "A", ())
    folder.write(record)
    assert synced == [(folder.path / f"{record.id}.job").stat().st_size]
    assert folder.records() == [record]
    assert folder.read("none") is None


def test_quit_leaves_no_thread_and_no_half_file(tmp_path: Path, hub: LocalHub) -> None:
    """G08: that no thread is left is checked behind every test."""
    pace(hub, "abc", SLOW)
    with QueueBench(tmp_path / "models", hub, policy=PATIENT) as bench:
        jobs = [bench.get(f"o/{name}") for name in "abc"]
        bench.wait(jobs[0].id, under_way)
        started = time.monotonic()
    assert time.monotonic() - started < 8
    pace(hub, "abc", 0)
    assert not list(bench.models.rglob("*.gguf"))
    with QueueBench(tmp_path / "models", hub) as later:
        for job in jobs:
            assert later.end(job.id).state == "complete"


def test_listener_that_fails_or_calls_back(
    tmp_path: Path, hub: LocalHub, caplog: pytest.LogCaptureFixture
) -> None:
    with QueueBench(tmp_path / "models", hub) as bench:
        calls = threading.Event()

        def listen(job: JobProgress) -> None:
            bench.queue.jobs()
            if job.state == "active" and job.received:
                bench.queue.pause(job.id)
                calls.set()
                raise RuntimeError("listener")

        bench.queue._on_progress = listen
        job = bench.get("o/a")
        assert calls.wait(60)
        assert bench.wait_for_state(job.id, "paused")
    assert "listener" in caplog.text
