"""The model store as the window and the command line use it: models here, the Hub, and downloads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from model_store.catalog import Catalog, CatalogEntry, add_entry, load_catalog, remove_entry
from model_store.check import describe_os_error, shown_name
from model_store.disk_use import DiskUse, disk_use
from model_store.download_folder import DownloadFolder
from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.fit import FreeMemory, Loading, free_memory
from model_store.foreign import ANOTHER_FOLDER, find_foreign, read_folder
from model_store.hub import Hub, HubError, HubFile, HubHit
from model_store.imported import Imported, ImportedModels
from model_store.library import BackgroundScan, Listing, ModelEntry, list_models
from model_store.listed_sizes import ListedSizes, listed_sizes
from model_store.local_path import HIDDEN
from model_store.manifest import Manifest, Manifests
from model_store.offer import Offer, Offers
from model_store.pairs import Pairs
from model_store.remote_header import RemoteHeaders
from model_store.removal import Removed, remove_model
from model_store.repo_link import parse_repo
from model_store.repository_files import RepositoryFiles, group_by_name, read_groups
from model_store.scan import scan_file
from model_store.scan_cache import ScanCache
from model_store.split import parts_of, split_name
from model_store.starter import starter_model
from model_store.stop_signal import StopSignal
from model_store.verification import FileCheck, verify_file

Event = Listing | JobProgress


class StoreError(Exception):
    """What was asked for cannot be done; the text is one sentence for the person."""

    def __init__(self, kind: Literal["not_found", "ambiguous", "unusable"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Update:
    """A downloaded file that the Hub now has in another version; ``file`` is None when it is gone there."""

    path: Path
    manifest: Manifest
    file: HubFile | None


class Store:
    """Everything about models on this machine, for one models folder.

    ``on_event`` is told of listings and of downloads, from other threads. Methods that read many files
    or ask the Hub take their time, and belong in a thread; every one may be called from any. ``close``
    must be called.
    """

    def __init__(
        self,
        models: Path,
        *,
        cache: Path | None,
        imported: Path,
        catalog: Path,
        own_catalog: Path,
        on_event: Callable[[Event], None] = lambda event: None,
        hub: Hub | None = None,
        free: Callable[[], FreeMemory] = free_memory,
    ) -> None:
        """``cache`` and ``imported`` are the files that keep what was scanned, and what was imported;
        ``catalog`` is the one that comes along, ``own_catalog`` the person's. ``free`` says how much
        memory a model may take, and may take its time."""
        self.models = models = models.absolute()
        self.hub = hub or Hub()
        self.imported = ImportedModels(imported)
        self.manifests = Manifests(models)
        self.pairs = Pairs(models)
        self._catalog, self._own_catalog = catalog, own_catalog
        self._headers = RemoteHeaders(self.hub)
        self._on_event = on_event
        self._free = free
        self._cache = ScanCache(cache)
        self._lock = threading.Lock()
        self._queue: DownloadQueue | None = None
        self._scan: BackgroundScan | None = None

    @property
    def queue(self) -> DownloadQueue:
        """The downloads; they begin, or go on, when it is first asked for. Raises OSError."""
        with self._lock:
            if self._queue is not None:
                return self._queue
            queue = self._queue = DownloadQueue(self.models, self.hub, self._on_event)
        # Not under the lock: what it tells may lead to more questions.
        try:
            queue.start()
        except OSError:
            with self._lock:
                self._queue = None
            queue.close()
            raise
        return queue

    def close(self) -> None:
        """Stop what runs; downloads go on when the next program asks for them."""
        with self._lock:
            queue, self._queue = self._queue, None
            scan, self._scan = self._scan, None
        if scan is not None:
            scan.stop()
        if queue is not None:
            queue.close()

    # Models here

    def entries(self) -> list[ModelEntry]:
        """All models on this machine that are known to us, by name."""
        return list_models(self.models, self._cache, self._listed())

    def scan(self) -> None:
        """List them in the background; a scan that still runs is stopped."""
        with self._lock:
            if self._scan is not None:
                self._scan.stop()
            self._scan = BackgroundScan(self.models, self._cache, self._listed(), self._on_event)

    def find(self, name: str) -> ModelEntry:
        """The model called ``name``, or whose file is. Raises StoreError."""
        entries = self.entries()
        path = Path(name).absolute()
        # What is written in full means one model; the rest may be said of several.
        found = [entry for entry in entries if name == entry.name or path in parts_of(entry.path)]
        if not found:
            found = [e for e in entries if name in (e.path.name, e.path.stem, self._below(e.path))]
        if not found:
            close = [entry.name for entry in entries if name.casefold() in entry.name.casefold()]
            hint = f" (there is: {', '.join(close[:5])})" if close else ""
            raise StoreError("not_found", f"There is no model {name!r}{hint}.")
        if len(found) > 1:
            paths = ", ".join(self._below(entry.path) for entry in found)
            raise StoreError("ambiguous", f"{name!r} is more than one model: {paths}.")
        return found[0]

    def remove(self, entry: ModelEntry, in_use: Callable[[Path], str | None] = lambda path: None) -> Removed:
        """Delete a model, or take an imported one off the list, which frees nothing.

        ``in_use`` says why a file must stay: "it is loaded". One that is part of a download stays as well,
        until that has ended.
        Raises RemovalError, ImportedError and OSError.
        """
        if entry.program is not None and self.imported.remove(entry.path):
            return Removed((), 0)
        records = DownloadFolder(self.models).records()
        coming = {self.models / file.place for record in records for file in record.files}

        def reason(path: Path) -> str | None:
            return "a download of it is not finished" if path in coming else in_use(path)

        removed = remove_model(entry, self.models, reason)
        for path in removed.paths:
            self.manifests.remove(path)
        self.pairs.forget(removed.paths)
        return removed

    def verify(self, entry: ModelEntry, stop: StopSignal | None = None) -> list[FileCheck]:
        """Read all of a model's files and compare them with their manifests. Raises Stopped."""
        stop = stop or StopSignal()
        return [verify_file(part, self.manifests.read(part), stop) for part in parts_of(entry.path)]

    def free_memory(self) -> FreeMemory:
        """What a model may take now."""
        return self._free()

    def leftovers(self) -> int:
        """Bytes in the models folder of downloads that no program goes on with."""
        return sum(size for _, size in DownloadFolder(self.models).leftovers())

    def clean_up(self) -> int:
        """Delete them. Returns the bytes that freed. Raises OSError."""
        return DownloadFolder(self.models).sweep()

    def disk_use(self) -> DiskUse:
        return disk_use(self.models, self.models / HIDDEN / "downloads")

    # Models of other programs

    def foreign(self) -> list[ModelEntry]:
        """What other programs keep on this machine and is not listed yet."""
        return list_models(None, self._cache, self._unlisted())

    def import_foreign(self, program: str | None = None) -> list[Imported]:
        """List what ``program`` keeps (None: any of those we know). Raises ImportedError."""
        found = [model for model in self._unlisted() if program in (None, model.program)]
        entries = list_models(None, self._cache, found)
        usable = {entry.path for entry in entries if entry.problem is None}
        return self._import(model for model in found if model.path in usable)

    def import_path(self, path: Path) -> list[Imported]:
        """List a file, or what is in a folder, where it is. Returns what was not listed before.

        Raises StoreError when there is nothing to list, and ImportedError.
        """
        path = path.absolute()
        split, first = split_name(path), parts_of(path)[0]
        try:
            if path.is_dir():
                return self._import_folder(path)
            problem = scan_file(first).problem
        except OSError as error:
            raise StoreError("not_found", f"{shown_name(first)} {describe_os_error(error)}.") from error
        if problem is not None:
            raise StoreError("unusable", f"{shown_name(first)} cannot be imported: {problem}.")
        return self._import([Imported(first, split.stem if split else path.stem, ANOTHER_FOLDER)])

    # The Hub

    def catalog(self) -> Catalog:
        """As it is in the files now."""
        return load_catalog(self._catalog, self._own_catalog)

    def add_entry(self, entry: CatalogEntry) -> None:
        """Put a model into the person's own catalogue. Raises CatalogError and OSError."""
        add_entry(self._own_catalog, entry)

    def remove_entry(self, entry_id: str) -> None:
        """Take one out again. Raises CatalogError and OSError."""
        remove_entry(self._own_catalog, entry_id)

    def listed_sizes(self, entry: CatalogEntry) -> ListedSizes | None:
        """How large a model of the catalogue and its drafter are. Raises HubError."""
        return listed_sizes(self.hub, entry)

    def search(self, text: str, limit: int = 20) -> list[HubHit]:
        """Raises HubError."""
        return self.hub.search(text, limit)

    def repository(
        self, repo: str, revision: str | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> RepositoryFiles:
        """What a repository's files are, by what they say of themselves. Raises HubError."""
        found = self.hub.repository(repo, revision)
        return read_groups(group_by_name(found), self._headers, cancelled)

    def offer(
        self,
        text: str,
        *,
        quantisation: str | None = None,
        drafter: str = "auto",
        loading: Loading = Loading(),
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Offer:
        """What Get would download, as in Offers. Raises OfferError, HubError and ModelFileError."""
        return Offers(self.hub, self.catalog(), self._headers).offer(
            text,
            quantisation=quantisation,
            drafter=drafter,
            loading=loading,
            free=self._free(),
            cancelled=cancelled,
        )

    def get(self, offer: Offer) -> JobProgress:
        """Download a model with its drafter, in one job; the two are loaded together from then on.

        Raises DownloadError and OSError.
        """
        job = self.queue.add(offer.files, offer.title)
        paths = [file.path for file in job.files]
        drafter = paths[len(offer.target.files)] if len(paths) > len(offer.target.files) else None
        self.pairs.pair(paths[0], drafter)
        return job

    def get_file(self, text: str) -> JobProgress:
        """Download the file that ``text`` links to, whatever it is, with all parts of a split model.

        Raises StoreError, HubError, DownloadError and OSError.
        """
        link = parse_repo(text, self.hub.endpoint)
        if link is None or link.path is None:
            raise StoreError("not_found", f"{text!r} names no file on the Hub.")
        repository = self.hub.repository(link.repo, link.revision)
        file = repository.file(link.path)
        split = split_name(Path(file.path))
        paths = [part.as_posix() for part in parts_of(Path(file.path))]
        return self.queue.add([repository.file(path) for path in paths], split.stem if split else file.name)

    def jobs(self) -> list[JobProgress]:
        """Downloads of this and of other programs; looking at them starts none."""
        with self._lock:
            if self._queue is not None:
                return self._queue.jobs()
        queue = DownloadQueue(self.models, self.hub, lambda progress: None)
        try:
            return queue.jobs()
        finally:
            queue.close()

    def cancel(self, name: str) -> JobProgress:
        """Give up the unfinished download with this id, title or file, and delete what has come of it.

        Raises StoreError when there is none or several, or another program is at work on it, and OSError.
        """
        unfinished = [job for job in self.jobs() if job.state not in ("complete", "cancelled")]
        # A drafter may come with several models.
        found = [job for job in unfinished if name in (job.id, job.title)]
        found = found or [job for job in unfinished if name in _file_names(job)]
        if not found:
            raise StoreError("not_found", f"There is no unfinished download {name!r}.")
        if len(found) > 1:
            titles = ", ".join(f"{job.title} ({job.id})" for job in found)
            raise StoreError("ambiguous", f"{name!r} is in more than one download: {titles}.")
        [job] = found
        with self._lock:
            queue = self._queue
        if queue is not None and job.ours:
            queue.cancel(job.id)
            return job
        folder = DownloadFolder(self.models)
        record = next((record for record in folder.records() if record.id == job.id), None)
        if record is not None and not folder.abandon(record):
            raise StoreError("unusable", f"Another program is downloading {job.title}: cancel it there.")
        return job

    def updates(self) -> list[Update]:
        """Downloaded files that are not the Hub's newest any more. Raises HubError."""
        by_repository: dict[str, list[tuple[Path, Manifest]]] = {}
        for path, manifest in self.manifests.all().items():
            if path.exists():
                by_repository.setdefault(manifest.repository, []).append((path, manifest))
        updates: list[Update] = []
        for name, known in sorted(by_repository.items()):
            try:
                files = {file.path: file for file in self.hub.repository(name).files}
            except HubError as error:
                if error.kind != "not_found":
                    raise
                files = {}
            for path, manifest in known:
                file = files.get(manifest.file)
                if file is None or (file.sha256 or manifest.sha256) != manifest.sha256:
                    updates.append(Update(path, manifest, file))
        return updates

    def _unlisted(self) -> list[Imported]:
        known = {entry.path.resolve() for entry in self.entries()}
        return [model for model in find_foreign() if model.path.resolve() not in known]

    def _import_folder(self, folder: Path) -> list[Imported]:
        found = read_folder(folder)
        if not found:
            raise StoreError("unusable", f"There are no models in {folder}.")
        return self._import(found)

    def _import(self, models: Iterable[Imported]) -> list[Imported]:
        inside = self.models.resolve()
        return self.imported.add(model for model in models if not model.path.resolve().is_relative_to(inside))

    def _listed(self) -> Sequence[Imported]:
        starter = starter_model()
        return (*([starter] if starter is not None else ()), *self.imported.models())

    def _below(self, path: Path) -> str:
        return str(path.relative_to(self.models)) if path.is_relative_to(self.models) else str(path)


def _file_names(job: JobProgress) -> set[str]:
    return {file.path.name for file in job.files} | {file.path.stem for file in job.files}
