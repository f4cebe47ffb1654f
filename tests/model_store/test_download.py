"""One download: whatever goes wrong, what lies in the folder in the end is the file, or nothing."""

from __future__ import annotations

import hashlib
import os
import random
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store import disk_space
from model_store.download import DownloadError, RetryPolicy
from model_store.fingerprint import TO_HASH, tokenizer_fingerprint
from model_store.gguf_header import read_header
from model_store.hub import HubFile
from model_store.manifest import Manifests
from tests.model_store.hub_content import FAULTS
from tests.model_store.local_hub import Fault, FaultKind, LocalHub
from tests.model_store.queue_bench import LONG_STALL, QUICK, QueueBench, suffixes, unfinished
from tests.model_store.raw_gguf import CHAT, gguf, strings

REPO = "owner/model-GGUF"
CONTENT = random.Random(1).randbytes(1_000_000)
TINY = b"in git itself"


@pytest.fixture
def bench(tmp_path: Path, local_hub: LocalHub) -> Iterator[QueueBench]:
    local_hub.add(REPO, {"x.gguf": CONTENT, "tiny.txt": TINY})
    with QueueBench(tmp_path / "models", local_hub) as bench:
        yield bench


def target(bench: QueueBench) -> Path:
    return bench.models / REPO / "x.gguf"


def test_file_and_its_manifest(tmp_path: Path, local_hub: LocalHub) -> None:
    content = gguf(CHAT | {"tokenizer.ggml.tokens": strings(list("abcdefgh"))})
    local_hub.add(REPO, {"sub/x.gguf": content, "tiny.txt": TINY})
    with QueueBench(tmp_path / "models", local_hub) as bench:
        job = bench.end(bench.get(REPO).id)
    assert job.state == "complete"
    assert job.received == job.size == len(content) + len(TINY)
    path = bench.models / REPO / "sub" / "x.gguf"
    assert [file.path for file in job.files] == [path, bench.models / REPO / "tiny.txt"]
    assert path.read_bytes() == content
    assert (bench.models / REPO / "tiny.txt").read_bytes() == TINY
    manifest = Manifests(bench.models).read(path)
    assert manifest is not None
    assert manifest.repository == REPO
    assert manifest.revision == local_hub.repositories[REPO].sha
    assert (manifest.file, manifest.size) == ("sub/x.gguf", len(content))
    assert manifest.sha256 == hashlib.sha256(content).hexdigest()
    assert manifest.fingerprint == tokenizer_fingerprint(read_header(path, hash_arrays=TO_HASH))
    assert unfinished(bench.models) == []


@pytest.mark.parametrize("kind", FAULTS)
def test_fault_that_passes(bench: QueueBench, local_hub: LocalHub, kind: FaultKind) -> None:
    """G02. At the start, and where the download is to be resumed."""
    fault = Fault(kind, 0.9, LONG_STALL if kind == "stall" else 0.0)
    first = [] if kind in ("flip", "ignore_range", "changed_etag") else [fault]
    local_hub.script(REPO, "x.gguf", *first, Fault("early_close"), fault)
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert (job.state, job.error) == ("complete", None)
    assert target(bench).read_bytes() == CONTENT
    assert unfinished(bench.models) == []
    assert not local_hub.file(REPO, "x.gguf").faults


def test_five_interruptions_and_no_byte_twice(bench: QueueBench, local_hub: LocalHub) -> None:
    """G01"""
    local_hub.script(REPO, "x.gguf", *(Fault("early_close", 0.4) for _ in range(5)))
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert job.state == "complete"
    assert local_hub.sent(REPO, "x.gguf") == len(CONTENT)
    asked = [seen.range for seen in local_hub.requests("/content/")]
    assert asked[0] is None
    assert asked[1:3] == ["bytes=400000-", "bytes=640000-"]


@pytest.mark.parametrize("at", [0.1, 0.9])
def test_sign_in_page_does_not_cost_what_has_come(bench: QueueBench, local_hub: LocalHub, at: float) -> None:
    """G02, G06: whether it tells its length or not."""
    local_hub.script(REPO, "x.gguf", Fault("early_close"), Fault("page", at), Fault("page", at))
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert local_hub.sent(REPO, "x.gguf") == len(CONTENT)


def test_content_network_without_etags(bench: QueueBench, local_hub: LocalHub) -> None:
    """As the Hub's is: a resumed download still loses nothing, and damage is still found."""
    local_hub.file(REPO, "x.gguf").etag = ""
    local_hub.script(REPO, "x.gguf", Fault("early_close", 0.4), Fault("early_close", 0.5))
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert target(bench).read_bytes() == CONTENT
    assert local_hub.sent(REPO, "x.gguf") == len(CONTENT)


def test_range_that_is_refused_once_costs_nothing(bench: QueueBench, local_hub: LocalHub) -> None:
    """The Hub's content network answers 416 within a file when it has trouble of its own."""
    refused = Fault("status_416")
    local_hub.script(REPO, "x.gguf", Fault("early_close"), refused, Fault("early_close"), refused)
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert local_hub.sent(REPO, "x.gguf") == len(CONTENT)


def test_range_that_is_refused_twice_starts_anew(bench: QueueBench, local_hub: LocalHub) -> None:
    """G02"""
    local_hub.script(REPO, "x.gguf", Fault("early_close"), Fault("status_416"), Fault("status_416"))
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert target(bench).read_bytes() == CONTENT
    assert local_hub.requests("/content/")[-1].range is None


def test_memory_stays_flat(tmp_path: Path, local_hub: LocalHub) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(60_000_000)
    local_hub.add(REPO, {"x.gguf": large})
    tracemalloc.start()
    try:
        with QueueBench(tmp_path / "models", local_hub) as bench:
            assert bench.end(bench.get(REPO).id).state == "complete"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_next_program_goes_on_where_the_last_one_was(
    bench: QueueBench, local_hub: LocalHub, tmp_path: Path
) -> None:
    """G01"""
    local_hub.script(REPO, "x.gguf", Fault("stall", 0.7, 30.0))
    job = bench.get(REPO, "x.gguf")
    bench.wait(job.id, lambda event: event.received > 0)
    bench.queue.close()
    assert suffixes(bench.models) == {".job", ".lock", ".part", ".state"}
    assert not target(bench).exists()
    with QueueBench(bench.models, local_hub) as later:
        done = later.end(job.id)
        assert done.state == "complete"
    assert target(bench).read_bytes() == CONTENT
    assert unfinished(bench.models) == []
    last = local_hub.requests("/content/")[-1]
    assert last.status == 206
    assert last.sent < len(CONTENT)


def test_wrong_content_twice_is_set_aside_and_said(bench: QueueBench, local_hub: LocalHub) -> None:
    """G02: one retry from the start, and what is wrong is never in the folder."""
    local_hub.script(REPO, "x.gguf", Fault("flip"), Fault("flip"))
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert job.state == "failed"
    assert job.error is not None
    assert job.error.kind == "mismatch"
    assert "x.gguf arrived damaged twice" in job.error.message
    assert not target(bench).exists()
    assert ".bad" in suffixes(bench.models)
    assert ".part" not in suffixes(bench.models)
    assert [seen.range for seen in local_hub.requests("/content/")] == [None, None]
    bench.queue.resume(job.id)
    assert bench.end(job.id).state == "complete"
    assert unfinished(bench.models) == []


def test_whole_part_is_checked_without_asking_for_more(bench: QueueBench, local_hub: LocalHub) -> None:
    """G02: endless 416."""
    local_hub.script(REPO, "x.gguf", Fault("stall", 0.99, 30.0))
    job = bench.get(REPO, "x.gguf")
    bench.wait(job.id, lambda event: event.received > 0)
    bench.queue.close()
    [part] = (bench.models / ".slipstream" / "downloads").glob("*.part")
    part.write_bytes(CONTENT)
    before = len(local_hub.seen)
    with QueueBench(bench.models, local_hub) as later:
        assert later.end(job.id).state == "complete"
    assert len(local_hub.seen) == before
    assert target(bench).read_bytes() == CONTENT


@pytest.mark.parametrize("tail", [b"", b"and more than the file has" * 40000])
def test_part_of_something_else_is_thrown_away(bench: QueueBench, local_hub: LocalHub, tail: bytes) -> None:
    local_hub.script(REPO, "x.gguf", Fault("stall", 0.5, 30.0))
    job = bench.get(REPO, "x.gguf")
    bench.wait(job.id, lambda event: event.received > 0)
    bench.queue.close()
    folder = bench.models / ".slipstream" / "downloads"
    [part] = folder.glob("*.part")
    part.write_bytes(b"something else" + tail)
    if not tail:
        [state] = folder.glob("*.state")
        state.write_bytes(b"{half")
    with QueueBench(bench.models, local_hub) as later:
        assert later.end(job.id).state == "complete"
    assert target(bench).read_bytes() == CONTENT
    assert local_hub.requests("/content/")[-1].range is None


def test_changed_content_is_never_mixed(bench: QueueBench, local_hub: LocalHub) -> None:
    """G10: it changes between the halves, on a server that does not even say so."""
    local_hub.script(REPO, "x.gguf", Fault("early_close"))
    file = local_hub.file(REPO, "x.gguf")
    other = bytes(reversed(CONTENT))
    job = bench.queue.add(bench.files(REPO, "x.gguf"))
    file.content = other
    file.etag = '"other"'
    job = bench.end(job.id)
    assert job.state == "failed"
    assert job.error is not None
    assert job.error.kind == "mismatch"
    assert not target(bench).exists()


def test_file_that_is_other_than_announced_costs_no_download(bench: QueueBench, local_hub: LocalHub) -> None:
    """G10"""
    [file] = bench.files(REPO, "x.gguf")
    there = local_hub.file(REPO, "x.gguf")
    there.sha256 = "0" * 64
    there.piece_pause = 0.01
    job = bench.end(bench.queue.add([file]).id)
    assert job.error is not None
    assert job.error.kind == "changed"
    assert "look up owner/model-GGUF again" in job.error.message
    assert local_hub.requests("/content/")[-1].sent < len(CONTENT) / 2


def test_newer_revision_takes_the_old_ones_place(bench: QueueBench, local_hub: LocalHub) -> None:
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    newer = CONTENT[::-1]
    sha = local_hub.add(REPO, {"x.gguf": newer}).sha
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert target(bench).read_bytes() == newer
    manifest = Manifests(bench.models).read(target(bench))
    assert manifest is not None
    assert manifest.revision == sha
    assert [path.name for path in target(bench).parent.iterdir()] == ["x.gguf"]


def test_file_that_is_there_is_not_downloaded(bench: QueueBench, local_hub: LocalHub) -> None:
    target(bench).parent.mkdir(parents=True)
    target(bench).write_bytes(CONTENT)
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    manifest = Manifests(bench.models).read(target(bench))
    assert manifest is not None
    assert manifest.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert local_hub.sent(REPO, "x.gguf") == 0
    assert bench.end(bench.get(REPO, "x.gguf").id).state == "complete"
    assert local_hub.sent(REPO, "x.gguf") == 0


def test_part_of_a_file_that_is_there_by_now_is_deleted(bench: QueueBench, local_hub: LocalHub) -> None:
    local_hub.script(REPO, "x.gguf", Fault("stall", 0.5, 30.0))
    job = bench.get(REPO, "x.gguf")
    bench.wait(job.id, lambda event: event.received > 0)
    bench.queue.close()
    assert ".part" in suffixes(bench.models)
    target(bench).parent.mkdir(parents=True, exist_ok=True)
    target(bench).write_bytes(CONTENT)
    with QueueBench(bench.models, local_hub) as later:
        assert later.end(job.id).state == "complete"
    assert unfinished(bench.models) == []


def test_link_that_leads_nowhere_is_not_overwritten(bench: QueueBench) -> None:
    target(bench).parent.mkdir(parents=True)
    target(bench).symlink_to(bench.models / "gone")
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert job.state == "complete"
    assert target(bench).is_symlink()
    assert job.files[0].path != target(bench)
    assert job.files[0].path.read_bytes() == CONTENT


def test_somebody_elses_file_is_not_overwritten(bench: QueueBench) -> None:
    target(bench).parent.mkdir(parents=True)
    target(bench).write_bytes(b"mine")
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert job.state == "complete"
    assert target(bench).read_bytes() == b"mine"
    assert job.files[0].path != target(bench)
    assert job.files[0].path.parent == target(bench).parent
    assert job.files[0].path.read_bytes() == CONTENT


def test_another_file_of_the_same_size_is_not_overwritten(bench: QueueBench) -> None:
    target(bench).parent.mkdir(parents=True)
    target(bench).write_bytes(bytes(len(CONTENT)))
    job = bench.end(bench.get(REPO, "x.gguf").id)
    assert job.error is not None
    assert job.error.kind == "occupied"
    assert target(bench).read_bytes() == bytes(len(CONTENT))


@pytest.mark.parametrize("token", ["", "hf_valid_elsewhere"])
def test_gated_file_says_what_to_do(tmp_path: Path, local_hub: LocalHub, token: str) -> None:
    local_hub.add(REPO, {"x.gguf": CONTENT}, gated=frozenset({"hf_valid"}))
    with QueueBench(tmp_path, local_hub, token=token) as bench:
        job = bench.end(bench.get(REPO).id)
        assert job.error is not None
        assert job.error.kind == "gated"
        assert job.error.link == f"{local_hub.url}/{REPO}"
        assert ("token field" in job.error.message) == (not token)
    assert len(local_hub.requests("/resolve/")) == 1  # trying again would not help
    with QueueBench(tmp_path, local_hub, token="hf_valid") as bench:
        [job] = bench.queue.jobs()
        assert job.error is not None
        assert job.state == "failed"
        bench.queue.resume(job.id)
        assert bench.end(job.id).state == "complete"
    assert {seen.token for seen in local_hub.requests("/content/")} == {None}


def test_renamed_repository_still_delivers(bench: QueueBench, local_hub: LocalHub) -> None:
    files = bench.files(REPO, "x.gguf")
    local_hub.repositories["owner/new"] = local_hub.repositories.pop(REPO)
    local_hub.renamed[REPO] = "owner/new"
    assert bench.end(bench.queue.add(files).id).state == "complete"
    assert target(bench).read_bytes() == CONTENT


def test_removed_file_says_so(bench: QueueBench, local_hub: LocalHub) -> None:
    """G10"""
    files = bench.files(REPO, "x.gguf")
    del local_hub.repositories[REPO].commits[files[0].revision]["x.gguf"]
    job = bench.end(bench.queue.add(files).id)
    assert job.error is not None
    assert (job.error.kind, "choose another" in job.error.message) == ("not_found", True)


def test_retry_after_is_honoured(tmp_path: Path, local_hub: LocalHub) -> None:
    policy = RetryPolicy(first_wait=0.01, longest_wait=0.02)
    local_hub.add(REPO, {"x.gguf": CONTENT})
    local_hub.script(REPO, "x.gguf", Fault("status_429", seconds=1.0))
    with QueueBench(tmp_path, local_hub, policy=policy) as bench:
        started = time.monotonic()
        job = bench.get(REPO)
        event = bench.wait(job.id, lambda event: event.files[0].phase == "retrying")
        assert event.note == (
            "x.gguf: The Hub is asked too often from here: try again in 1 seconds; "
            "an access token allows more."
        )
        assert bench.end(job.id).state == "complete"
        assert time.monotonic() - started >= 1.0


def test_waits_grow_and_end() -> None:
    policy = RetryPolicy()
    waits = [policy.wait(failures, None) for failures in range(1, 11)]
    assert all(0.7 * 2**index <= wait <= 2**index for index, wait in enumerate(waits[:6]))
    assert max(waits) <= policy.longest_wait
    assert policy.wait(1, 30.0) == 30.0
    assert policy.wait(1, 1e9) == policy.longest_asked


def test_server_that_never_delivers_is_given_up(tmp_path: Path, local_hub: LocalHub) -> None:
    policy = RetryPolicy(first_wait=0.001, longest_wait=0.002, tries=4)
    local_hub.add(REPO, {"x.gguf": CONTENT})
    local_hub.script(REPO, "x.gguf", *(Fault("status_503") for _ in range(50)))
    with QueueBench(tmp_path, local_hub, policy=policy) as bench:
        job = bench.end(bench.get(REPO).id)
    assert job.error is not None
    assert job.error.kind == "server"
    assert len(local_hub.requests("/resolve/")) == 4


def test_server_that_always_starts_anew_is_given_up(tmp_path: Path, local_hub: LocalHub) -> None:
    policy = RetryPolicy(first_wait=0.001, longest_wait=0.002, tries=4)
    local_hub.add(REPO, {"x.gguf": CONTENT})
    anew = [Fault("early_close"), Fault("status_416"), Fault("status_416")]
    local_hub.script(REPO, "x.gguf", *anew * 30)
    with QueueBench(tmp_path, local_hub, policy=policy) as bench:
        job = bench.end(bench.get(REPO).id)
    assert job.error is not None
    assert job.error.kind == "server"
    assert len(local_hub.requests("/content/")) <= 8


def test_disk_without_room(tmp_path: Path, local_hub: LocalHub) -> None:
    local_hub.add(REPO, {"x.gguf": CONTENT})
    with QueueBench(tmp_path, local_hub, reserve=disk_space.free_bytes(tmp_path)) as bench:
        job = bench.end(bench.get(REPO).id)
    assert job.error is not None
    assert job.error.kind == "disk_full"
    assert "1.0 MB" in job.error.message
    assert local_hub.requests("/resolve/") == []


def test_path_with_all_that_is_hard(tmp_path: Path, local_hub: LocalHub) -> None:
    """F06"""
    deep = tmp_path / "Modèles 模型 (1)" / "ü \u3000x" / "a#b%20c" / "it's" / "e\u0301"
    while len(str(deep)) < 250:
        deep = deep / "long enough to hurt"
    path = "Žofie/モデル　倉庫 'q' #1%20.gguf"
    local_hub.add(REPO, {path: CONTENT})
    with QueueBench(deep, local_hub) as bench:
        job = bench.end(bench.get(REPO).id)
    assert (job.state, job.error) == ("complete", None)
    assert (deep / REPO / path).read_bytes() == CONTENT
    manifest = Manifests(deep).read(deep / REPO / path)
    assert manifest is not None
    assert manifest.file == path


def test_path_that_is_too_long_is_named(tmp_path: Path, local_hub: LocalHub) -> None:
    """F06"""
    local_hub.add(REPO, {"/".join(["d" * 170] * 5): CONTENT})
    deep = tmp_path
    while len(str(deep)) < 3300:  # what a file then needs is more than the system's 4096
        deep = deep / ("d" * 100)
    with QueueBench(deep, local_hub) as bench:
        job = bench.end(bench.get(REPO).id)
    assert job.error is not None
    assert "too long" in job.error.message


def test_names_from_the_server(tmp_path: Path, local_hub: LocalHub) -> None:
    """G11"""
    names = ["CON.gguf", "x.gguf:ads", "n" * 235 + ".gguf", "Case.gguf", "case.GGUF"]
    local_hub.add(REPO, {name: CONTENT + bytes([index]) for index, name in enumerate(names)})
    models = tmp_path / "models"
    with QueueBench(models, local_hub) as bench:
        for path in ("../../x.gguf", "C:\\x.gguf", "\\\\host\\share\\x.gguf", "a/b/../../../x"):
            file = HubFile(REPO, "c" * 40, path, 5, "a" * 64, "a" * 64)
            with pytest.raises(DownloadError) as caught:
                bench.queue.add([file])
            assert caught.value.kind == "unsafe_name"
        job = bench.end(bench.get(REPO).id)
        assert job.state == "complete"
    places = [file.path for file in job.files]
    assert len({str(place).casefold() for place in places}) == len(names)
    for index, place in enumerate(places):
        assert place.parent == models / REPO
        assert place.read_bytes() == CONTENT + bytes([index])
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def test_folder_that_is_a_link_out_of_the_store(tmp_path: Path, local_hub: LocalHub) -> None:
    """G11"""
    local_hub.add(REPO, {"x.gguf": CONTENT})
    models = tmp_path / "models"
    models.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (models / "owner").symlink_to(tmp_path / "elsewhere")
    with QueueBench(models, local_hub) as bench, pytest.raises(DownloadError, match="by a link"):
        bench.get(REPO)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_links_are_made(tmp_path: Path, local_hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """G04: Windows refuses them."""

    def refuse(*args: object, **options: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    for name in ("symlink", "link"):
        monkeypatch.setattr(os, name, refuse)
    local_hub.add(REPO, {"x.gguf": CONTENT, "y.gguf": CONTENT[1:]})
    with QueueBench(tmp_path / "models", local_hub) as bench:
        assert bench.end(bench.get(REPO).id).state == "complete"
    assert target(bench).read_bytes() == CONTENT
    assert target(bench).with_name("y.gguf").read_bytes() == CONTENT[1:]


def test_quick_policy_is_the_real_one_but_for_its_times() -> None:
    assert QUICK.tries == RetryPolicy().tries
