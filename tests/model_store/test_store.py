"""The store as a whole: listing, finding, deleting, checking and updating, against a local Hub."""

from __future__ import annotations

import hashlib
import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.paths import assets_dir
from model_store.bundled import default_drafter
from model_store.catalog import CatalogEntry, CatalogTarget
from model_store.download_job import JobProgress
from model_store.fit import Loading
from model_store.hub import Hub
from model_store.library import Listing
from model_store.manifest import Manifest
from model_store.offer_lookup import OfferError
from model_store.pairing import check_drafter
from model_store.readiness import readiness
from model_store.removal import RemovalError
from model_store.starter import STARTER_NAME
from model_store.store import Event, Store, StoreError
from tests.model_store.local_hub import Fault, LocalHub
from tests.model_store.raw_gguf import CHAT, gguf, text, u32
from tests.models.eagle3 import write_eagle3
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/Model-GGUF"


def model(name: str) -> bytes:
    return gguf({**CHAT, "general.name": text(name)})


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        yield hub


@pytest.fixture
def events() -> queue.SimpleQueue[Event]:
    return queue.SimpleQueue()


@pytest.fixture
def store(tmp_path: Path, hub: LocalHub, events: queue.SimpleQueue[Event]) -> Iterator[Store]:
    store = Store(
        tmp_path / "Modèles 模型 (1)",
        cache=tmp_path / "cache" / "models.cache",
        imported=tmp_path / "data" / "imported.json",
        catalog=assets_dir() / "catalog.json",
        own_catalog=tmp_path / "data" / "catalog.json",
        on_event=events.put,
        hub=Hub(hub.url),
    )
    yield store
    store.close()


def ended(job: JobProgress, events: queue.SimpleQueue[Event]) -> JobProgress:
    while job.state not in ("complete", "failed", "cancelled"):
        event = events.get(timeout=60)
        if isinstance(event, JobProgress) and event.id == job.id:
            job = event
    return job


def names(store: Store) -> list[str]:
    return [entry.name for entry in store.entries() if entry.name != STARTER_NAME]


def test_starter_is_there_at_once_and_stays(store: Store) -> None:
    starter = store.find(STARTER_NAME)
    assert (starter.kind, starter.problem) == ("chat", None)
    with pytest.raises(RemovalError, match="belongs to Slipstream"):
        store.remove(starter)
    assert starter.path.exists()


def test_downloaded_file_is_listed_verified_and_deleted(
    store: Store, hub: LocalHub, events: queue.SimpleQueue[Event]
) -> None:
    hub.add(REPO, {"model-Q4.gguf": model("a")})
    job = ended(store.get_file(f"{hub.url}/{REPO}/blob/main/model-Q4.gguf"), events)
    assert job.state == "complete"
    entry = store.find("model-Q4")
    assert entry.path == job.files[0].path
    manifest = store.manifests.read(entry.path)
    assert manifest is not None
    assert manifest.repository == REPO
    [check] = store.verify(entry)
    assert (check.outcome, check.reason) == ("verified", f"SHA-256 {manifest.sha256}")
    assert store.disk_use().models == len(model("a"))
    removed = store.remove(entry)
    assert (removed.paths, removed.bytes_freed) == ((entry.path,), len(model("a")))
    assert names(store) == []
    assert store.manifests.all() == {}
    assert not (store.models / "someone").exists()


def test_split_model_comes_and_goes_whole(
    store: Store, hub: LocalHub, events: queue.SimpleQueue[Event]
) -> None:
    parts = {f"big-0000{n}-of-00002.gguf": gguf({**CHAT, "split.no": u32(n)}) for n in (1, 2)}
    hub.add(REPO, parts)
    assert ended(store.get_file(f"hf://{REPO}/big-00001-of-00002.gguf"), events).state == "complete"
    entry = store.find("big")
    assert entry.size_bytes == sum(map(len, parts.values()))
    assert [check.outcome for check in store.verify(entry)] == ["verified", "verified"]
    entry.path.with_name("big-00002-of-00002.gguf").unlink()
    assert [check.outcome for check in store.verify(entry)] == ["verified", "missing"]
    store.remove(entry)
    assert store.manifests.all().keys() == {entry.path.with_name("big-00002-of-00002.gguf")}


@pytest.mark.parametrize(
    ("change", "outcome", "reason"),
    [
        (lambda data: data[:-1], "damaged", "bytes instead of"),
        (lambda data: data[:-1] + b"\x01", "damaged", "SHA-256"),
    ],
)
def test_changed_file_is_found_damaged(
    store: Store,
    hub: LocalHub,
    events: queue.SimpleQueue[Event],
    change: object,
    outcome: str,
    reason: str,
) -> None:
    assert callable(change)
    hub.add(REPO, {"m.gguf": model("a")})
    job = ended(store.get_file(f"hf://{REPO}/m.gguf"), events)
    path = job.files[0].path
    path.write_bytes(change(path.read_bytes()))
    [check] = store.verify(store.find("m"))
    assert check.outcome == outcome
    assert reason in check.reason


def test_file_without_a_manifest_is_checked_by_its_header_or_its_name(store: Store, tmp_path: Path) -> None:
    store.models.mkdir()
    (store.models / "mine.gguf").write_bytes(model("a"))
    (store.models / "cut.gguf").write_bytes(model("a")[:-1])
    assert store.verify(store.find("mine"))[0].outcome == "unknown"
    assert store.verify(store.find("cut"))[0].outcome == "damaged"
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    (blobs / ("0" * 64)).write_bytes(model("a"))
    (store.models / "linked.gguf").symlink_to(blobs / ("0" * 64))
    [check] = store.verify(store.find("linked"))
    assert (check.outcome, "0" * 64 in check.reason) == ("damaged", True)
    ours = blobs / f"sha256-{hashlib.sha256(model('a')).hexdigest()}"
    ours.write_bytes(model("a"))
    store.import_path(ours)
    assert store.verify(store.find(ours.name))[0].outcome == "verified"


def test_model_that_is_being_downloaded_or_used_stays(
    store: Store, hub: LocalHub, events: queue.SimpleQueue[Event]
) -> None:
    hub.add(REPO, {"m.gguf": model("a")})
    path = ended(store.get_file(f"hf://{REPO}/m.gguf"), events).files[0].path
    with pytest.raises(RemovalError, match="it is loaded"):
        store.remove(store.find("m"), lambda p: "it is loaded" if p == path else None)
    hub.add(REPO, {"m.gguf": model("b")})
    hub.script(REPO, "m.gguf", Fault("stall", seconds=60))
    job = store.get_file(f"hf://{REPO}/m.gguf")
    with pytest.raises(RemovalError, match="a download of it is not finished"):
        store.remove(store.find("m"))
    store.queue.cancel(job.id)
    assert ended(job, events).state == "cancelled"
    store.remove(store.find("m"))
    assert names(store) == []


def test_download_of_a_program_that_is_gone_can_be_given_up(
    store: Store, hub: LocalHub, tmp_path: Path
) -> None:
    hub.add(REPO, {"m.gguf": os.urandom(4 << 20)})
    hub.script(REPO, "m.gguf", Fault("stall", seconds=60))
    store.get_file(f"hf://{REPO}/m.gguf")
    deadline = time.monotonic() + 60
    while store.disk_use().unfinished < 1 << 20:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    other = Store(
        store.models,
        cache=None,
        imported=tmp_path / "i",
        catalog=tmp_path / "c",
        own_catalog=tmp_path / "o",
        hub=store.hub,
    )
    with pytest.raises(StoreError, match="Another program is downloading"):
        other.cancel("m")
    store.close()
    assert [job.received > 0 for job in other.jobs()] == [True]
    assert other.cancel("m.gguf").title == "m.gguf"
    assert other.jobs() == []
    assert other.disk_use().unfinished == 0
    with pytest.raises(StoreError, match="no unfinished download"):
        other.cancel("m.gguf")


def test_name_that_means_several_downloads_ends_none(store: Store, hub: LocalHub) -> None:
    hub.add(REPO, {name: os.urandom(1 << 20) for name in ("a.gguf", "b.gguf", "drafter.gguf")})
    files = {file.path: file for file in store.hub.repository(REPO).files}
    for name in files:
        hub.script(REPO, name, Fault("stall", seconds=60))
    jobs = [store.queue.add([files[f"{name}.gguf"], files["drafter.gguf"]], name) for name in "ab"]
    with pytest.raises(StoreError, match=r"in more than one download: a .*, b ") as caught:
        store.cancel("drafter.gguf")
    assert caught.value.kind == "ambiguous"
    assert store.cancel("a").id == jobs[0].id
    assert store.cancel("drafter").id == jobs[1].id


def test_downloads_that_cannot_begin_leave_the_listing_alone(
    store: Store, events: queue.SimpleQueue[Event]
) -> None:
    store.models.parent.mkdir(parents=True, exist_ok=True)
    store.models.write_bytes(b"no folder")
    store.scan()
    with pytest.raises(OSError, match="exists"):
        _ = store.queue
    listing = events.get(timeout=30)
    while not isinstance(listing, Listing) or listing.unread:
        listing = events.get(timeout=30)
    assert [entry.name for entry in listing.entries] == [STARTER_NAME]
    store.models.unlink()
    assert store.queue.jobs() == []


def test_newer_version_on_the_hub_is_an_update(
    store: Store, hub: LocalHub, events: queue.SimpleQueue[Event]
) -> None:
    hub.add(REPO, {"m.gguf": model("a"), "n.gguf": model("n")})
    for name in ("m", "n"):
        ended(store.get_file(f"hf://{REPO}/{name}.gguf"), events)
    assert store.updates() == []
    hub.add(REPO, {"m.gguf": model("a"), "n.gguf": model("n"), "README.md": b"only words"})
    assert store.updates() == []
    hub.add(REPO, {"m.gguf": model("b")})
    changed, gone = sorted(store.updates(), key=lambda update: update.path)
    assert (changed.path.name, gone.path.name, gone.file) == ("m.gguf", "n.gguf", None)
    assert changed.file is not None
    assert changed.file.revision != changed.manifest.revision
    del hub.repositories[REPO]
    assert [update.file for update in store.updates()] == [None, None]


def test_finding_by_name_file_or_path(store: Store) -> None:
    for folder, name in (("one", "a"), ("two", "a"), ("two", "b")):
        (store.models / folder).mkdir(parents=True, exist_ok=True)
        (store.models / folder / f"{name}.gguf").write_bytes(model(name))
    b = store.find("b")
    for name in ("b.gguf", "two/b.gguf", str(b.path)):
        assert store.find(name) == b
    assert store.find("one/a").path == store.models / "one" / "a.gguf"
    with pytest.raises(StoreError, match=r"'a' is more than one model: one/a\.gguf, two/a\.gguf") as caught:
        store.find("a")
    assert caught.value.kind == "ambiguous"
    with pytest.raises(StoreError, match="There is no model 'B2'") as caught:
        store.find("B2")
    assert caught.value.kind == "not_found"
    with pytest.raises(StoreError, match=r"there is: .*b"):
        store.find("B")


def test_import_of_files_and_folders(store: Store, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "a.gguf").write_bytes(model("a"))
    (theirs / "b-00001-of-00002.gguf").write_bytes(model("b"))
    (theirs / "b-00002-of-00002.gguf").write_bytes(model("b"))
    (theirs / "page.gguf").write_bytes(b"<html>")
    [new] = store.import_path(theirs / "b-00002-of-00002.gguf")
    assert (new.path.name, new.name) == ("b-00001-of-00002.gguf", "b")
    for bad, kind in (("page.gguf", "unusable"), ("absent.gguf", "not_found")):
        with pytest.raises(StoreError) as caught:
            store.import_path(theirs / bad)
        assert caught.value.kind == kind
    assert {model.name for model in store.import_path(theirs)} == {"a", "page"}
    assert names(store) == ["a", "b", "page"]
    with pytest.raises(StoreError, match="no models in"):
        store.import_path(tmp_path / "data")
    a = store.find("a")
    assert store.remove(a).bytes_freed == 0
    assert a.path.exists()
    assert names(store) == ["b", "page"]
    store.models.mkdir()
    (store.models / "mine.gguf").write_bytes(model("mine"))
    assert store.import_path(store.models / "mine.gguf") == []


def test_other_programs_models_can_be_imported_at_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    models = home / ".lmstudio" / "models" / "pub" / "repo"
    models.mkdir(parents=True)
    (models / "a.gguf").write_bytes(model("a"))
    (models / "cut.gguf").write_bytes(model("a")[:-1])
    monkeypatch.setattr(Path, "home", lambda: home)
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert [(e.name, e.program) for e in store.foreign()] == [("a", "LM Studio"), ("cut", "LM Studio")]
    assert store.import_foreign("Ollama") == []
    assert [model.name for model in store.import_foreign("LM Studio")] == ["a"]
    assert [e.name for e in store.foreign()] == ["cut"]
    assert store.find("a").program == "LM Studio"


def test_model_and_its_drafter_come_in_one_job_and_stay_together(
    store: Store, hub: LocalHub, events: queue.SimpleQueue[Event], tmp_path: Path
) -> None:
    target = write_llama(tmp_path / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(tmp_path / "head.gguf", Tiny(n_layer=4))
    hub.add(REPO, {"Model-Q4_0.gguf": target, "eagle3-Model.gguf": head})
    offer = store.offer(REPO)
    assert offer.drafter is not None
    job = ended(store.get(offer), events)
    assert (job.state, len(job.files)) == ("complete", 2)
    model_path, drafter_path = (file.path for file in job.files)
    assert store.find("Model-Q4_0").kind == "chat"
    assert store.find("eagle3-Model").kind == "drafter"
    assert default_drafter(tmp_path / "none", model_path) == drafter_path
    assert check_drafter(model_path, drafter_path) == "eagle3"
    alone, together = (
        readiness(store.find("Model-Q4_0"), drafter, Loading(), store.free_memory()).fit
        for drafter in (None, drafter_path)
    )
    # Before the download the headers themselves count as weights.
    assert together.needed == pytest.approx(offer.fit.needed, rel=0.01)
    assert alone.needed == pytest.approx(offer.target.needed, rel=0.01)
    assert alone.needed < together.needed
    job = ended(store.get(store.offer(REPO, drafter="none")), events)
    assert len(job.files) == 1
    assert default_drafter(tmp_path / "none", model_path) is None
    ended(store.get(offer), events)
    assert default_drafter(tmp_path / "none", model_path) == drafter_path
    store.remove(store.find("eagle3-Model"))
    drafter_path.write_bytes(head.read_bytes())
    # it is another file than the one that the model was got with
    assert default_drafter(tmp_path / "none", model_path) is None


def test_own_catalogue_entry_is_offered_by_its_title(store: Store, hub: LocalHub, tmp_path: Path) -> None:
    hub.add(REPO, {"Model-Q4_0.gguf": write_llama(tmp_path / "target.gguf")})
    entry = CatalogEntry(
        id="mine",
        title="My model",
        description="Mine.",
        size_class="small",
        min_memory=1,
        target=CatalogTarget(repo=REPO, file="*Q4_0.gguf"),
    )
    shipped = len(store.catalog().entries)
    store.add_entry(entry)
    assert len(store.catalog().entries) == shipped + 1
    assert store.offer("my model").files[0].repo == REPO
    store.remove_entry("mine")
    with pytest.raises(OfferError, match="Nothing in the catalogue"):
        store.offer("my model")


def test_background_scan_tells_through_the_same_callback(
    store: Store, events: queue.SimpleQueue[Event]
) -> None:
    store.models.mkdir()
    (store.models / "a.gguf").write_bytes(model("a"))
    store.scan()
    while True:
        event = events.get(timeout=30)
        assert isinstance(event, Listing)
        if event.unread == 0:
            break
    assert [entry.name for entry in event.entries] == ["a", STARTER_NAME]


def test_listener_may_ask_the_store(tmp_path: Path, hub: LocalHub) -> None:
    hub.add(REPO, {"m.gguf": model("a")})
    asked: queue.SimpleQueue[JobProgress] = queue.SimpleQueue()

    def ask(event: Event) -> None:
        for job in store.jobs():
            asked.put(job)

    store = Store(
        tmp_path / "m",
        cache=None,
        imported=tmp_path / "i",
        catalog=tmp_path / "c",
        own_catalog=tmp_path / "o",
        on_event=ask,
        hub=Hub(hub.url),
    )
    try:
        job = store.get_file(f"hf://{REPO}/m.gguf")
        while job.state != "complete":
            job = asked.get(timeout=30)
    finally:
        store.close()


def test_models_folder_that_cannot_be_made_is_an_error_each_time(tmp_path: Path, hub: LocalHub) -> None:
    (tmp_path / "file").write_bytes(b"")
    hub.add(REPO, {"m.gguf": model("a")})
    store = Store(
        tmp_path / "file" / "m",
        cache=None,
        imported=tmp_path / "i",
        catalog=tmp_path / "c",
        own_catalog=tmp_path / "o",
        hub=Hub(hub.url),
    )
    for _ in range(2):
        with pytest.raises(OSError, match="file"):
            store.get_file(f"hf://{REPO}/m.gguf")
    assert store.entries() != []  # the starter
    store.close()


def test_manifest_of_a_file_elsewhere_is_not_asked_for(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(model("a"))
    store.import_path(tmp_path / "a.gguf")
    manifest: Manifest | None = store.manifests.read(store.find("a").path)
    assert manifest is None
