"""Lists the models in a folder, with a reason beside each file that cannot be used."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model_store.check import describe_os_error, shown_name
from model_store.classify import Kind
from model_store.imported import Imported
from model_store.scan import Scan
from model_store.scan_cache import ScanCache
from model_store.split import parts_of, split_name

_MAX_DEPTH = 6  # folders below the models folder
_BETWEEN_PARTS = 0.25  # seconds


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model. ``problem`` says why it cannot be used; ``size_bytes`` counts all parts on disk.

    ``fingerprint`` is that of its tokenizer. ``program`` names the other program whose file this is.
    """

    path: Path
    name: str
    kind: Kind
    size_bytes: int
    problem: str | None
    architecture: str
    description: str
    fingerprint: str | None = None
    program: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Models sorted by name; ``unread`` more are found, and their files are still to be read."""

    entries: tuple[ModelEntry, ...]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """A model of one or more parts, of which ``path`` is there."""

    path: Path
    name: str
    parts: tuple[Path, ...]
    program: str | None = None


def list_models(
    folder: Path | None,
    cache: ScanCache | None = None,
    imported: Sequence[Imported] = (),
    *,
    on_part: Callable[[Listing], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[ModelEntry]:
    """List the GGUF files in ``folder`` and up to six folders below, and the imported ones, by name.

    Without a folder, only those; without a cache, all are read. A split model is one entry, that of its
    first part. Never raises for what it finds; a folder that is missing or unreadable is empty. May take
    long on a slow disk: not for a GUI thread. ``on_part`` gets what the cache knows before any file is
    opened, and then what is read, a few times a second. When ``stopped`` turns true, the rest is left out.
    """
    cache = cache or ScanCache()
    found = list(_found(folder, imported))
    entries = [_entry(model, cache.known) for model in found]
    unread = [number for number, entry in enumerate(entries) if entry is None]
    if on_part is not None and unread:
        on_part(Listing(_sorted(entries, folder), len(unread)))
    last = time.monotonic()
    for count, number in enumerate(unread, start=1):
        if stopped():
            break
        entries[number] = _entry(found[number], cache.scan)
        late = time.monotonic() - last >= _BETWEEN_PARTS
        if on_part is not None and count < len(unread) and late and not stopped():
            on_part(Listing(_sorted(entries, folder), len(unread) - count))
            last = time.monotonic()
    cache.save()
    return list(_sorted(entries, folder))


class BackgroundScan:
    """Lists models in a thread of its own, and tells ``on_listing``, in that thread, what it has so far;
    the last time with nothing unread, unless it was stopped."""

    def __init__(
        self,
        folder: Path | None,
        cache: ScanCache,
        imported: Sequence[Imported],
        on_listing: Callable[[Listing], None],
    ) -> None:
        self._stopped = threading.Event()

        def run() -> None:
            stopped = self._stopped.is_set
            entries = list_models(folder, cache, imported, on_part=on_listing, stopped=stopped)
            if not stopped():
                on_listing(Listing(tuple(entries)))

        # A file on a disk that hangs must not keep the program from ending.
        self._thread = threading.Thread(target=run, name="model scan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends after the file that is being read."""
        self._stopped.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has ended, within ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()


def gguf_files(folder: Path) -> Iterator[Path]:
    """GGUF files below ``folder``; links are followed, but no folder is visited twice."""
    visited: set[tuple[int, int]] = set()
    pending = [(folder, 0)]
    while pending:
        current, depth = pending.pop()
        try:
            status = current.stat()
            identity = (status.st_dev, status.st_ino)
            if identity in visited:
                continue
            visited.add(identity)
            with os.scandir(current) as listing:
                children = sorted(listing, key=lambda child: child.name)
        except (OSError, ValueError):
            continue
        for child in children:
            try:
                is_folder = child.is_dir()
            except OSError:
                is_folder = False
            # Hidden folders hold what download tools keep for themselves.
            if is_folder and depth < _MAX_DEPTH and not child.name.startswith("."):
                pending.append((Path(child.path), depth + 1))
            elif not is_folder and child.name.lower().endswith(".gguf"):
                yield Path(child.path)


def _found(folder: Path | None, imported: Sequence[Imported]) -> Iterator[_Found]:
    listed: set[Path] = set()
    for path in gguf_files(folder) if folder is not None else ():
        split, parts = split_name(path), parts_of(path)
        if parts[0] not in listed:
            listed.add(parts[0])
            yield _Found(path, split.stem if split else path.stem, parts)
    for model in imported:
        if model.path not in listed:
            yield _Found(model.path, model.name, parts_of(model.path), model.program)


def _sorted(entries: Sequence[ModelEntry | None], folder: Path | None) -> tuple[ModelEntry, ...]:
    """The entries that are there, each with a name of its own where its folder or program gives one."""
    there = [entry for entry in entries if entry is not None]
    repeated = {name for name, count in Counter(entry.name for entry in there).items() if count > 1}
    named: list[ModelEntry] = []
    for entry in there:
        name = entry.name
        if name in repeated and entry.program is not None:
            name = f"{name} ({entry.program})"
        elif name in repeated and entry.path.parent != folder:
            name = f"{shown_name(entry.path.parent)}/{name}"
        named.append(replace(entry, name=name))
    return tuple(sorted(named, key=lambda entry: (entry.name.casefold(), str(entry.path))))


def _entry(model: _Found, scan: Callable[[Path, os.stat_result], Scan | None]) -> ModelEntry | None:
    """The entry of a model; None when ``scan`` does not know one of its parts."""
    sizes: list[int] = []
    scans: list[Scan] = []
    missing: list[int] = []
    for number, part in enumerate(model.parts, start=1):
        try:
            status = part.stat()
            sizes.append(status.st_size)
            known = scan(part, status)
            if known is None:
                return None
            scans.append(known)
        except FileNotFoundError:
            if len(model.parts) > 1:
                missing.append(number)
            elif model.program is not None and not part.is_symlink():
                scans.append(Scan("other", "it was moved or deleted since it was imported"))
            else:
                scans.append(Scan("other", "cannot be read: the link leads nowhere"))
        except OSError as error:
            scans.append(Scan("other", describe_os_error(error)))
    problem = next((scan.problem for scan in scans if scan.problem is not None), None)
    if missing:
        count = len(model.parts)
        problem = f"incomplete (part {missing[0]} of {count} is missing)"
        if len(missing) > 1:
            problem = f"incomplete ({len(missing)} of {count} parts are missing)"
    first = scans[0] if scans else Scan("other")  # none: all gone since they were listed
    return ModelEntry(
        path=model.path if 1 in missing else model.parts[0],
        name=model.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        kind=first.kind,
        size_bytes=sum(sizes),
        problem=problem,
        architecture=first.architecture,
        description=first.description,
        fingerprint=first.fingerprint,
        program=model.program,
    )
