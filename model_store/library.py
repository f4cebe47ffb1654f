"""Lists the models in a folder, with a reason beside each file that cannot be used."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from model_store.check import describe_os_error, shown_name
from model_store.classify import Kind, classify
from model_store.gguf_header import GgufError, GgufHeader, read_header
from model_store.split import split_name

_MAX_DEPTH = 6  # folders below the models folder
_MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model. ``problem`` says why it cannot be used; ``size_bytes`` counts all parts on disk."""

    path: Path
    name: str
    kind: Kind
    size_bytes: int
    problem: str | None
    architecture: str
    description: str


@dataclass(frozen=True, slots=True)
class _Scan:
    kind: Kind
    problem: str | None
    architecture: str
    description: str


# ctime is in the key because a change of permissions or a copied-back mtime shows only there
_CacheKey = tuple[str, int, int, int, int]
_cache: dict[_CacheKey, _Scan] = {}
_cache_lock = threading.Lock()


def list_models(folder: Path) -> list[ModelEntry]:
    """List the GGUF files in ``folder`` and up to six folders below, sorted by name.

    A split model is one entry, that of its first part. Never raises for what it finds; a folder
    that is missing or unreadable is empty. May take long on a slow disk: not for a GUI thread.
    """
    entries: list[ModelEntry] = []
    seen_splits: set[Path] = set()
    for path in _gguf_files(folder):
        split = split_name(path)
        if split is None:
            entries.append(_entry(path, path.stem, (path,)))
        elif split.parts[0] not in seen_splits:
            seen_splits.add(split.parts[0])
            entries.append(_entry(path, split.stem, split.parts))
    repeated = {name for name, count in Counter(entry.name for entry in entries).items() if count > 1}
    entries = [
        replace(entry, name=f"{shown_name(entry.path.parent)}/{entry.name}")
        if entry.name in repeated and entry.path.parent != folder
        else entry
        for entry in entries
    ]
    return sorted(entries, key=lambda entry: (entry.name.casefold(), str(entry.path)))


def _gguf_files(folder: Path) -> Iterator[Path]:
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


def _entry(found: Path, stem: str, parts: tuple[Path, ...]) -> ModelEntry:
    """The entry of a model of one or more parts, of which ``found`` is there."""
    sizes: list[int] = []
    scans: list[_Scan] = []
    missing: list[int] = []
    for number, part in enumerate(parts, start=1):
        try:
            status = part.stat()
            sizes.append(status.st_size)
            scans.append(_scan(part, status))
        except FileNotFoundError:
            if len(parts) == 1:
                scans.append(_Scan("other", "cannot be read: the link leads nowhere", "", ""))
            else:
                missing.append(number)
        except OSError as error:
            scans.append(_Scan("other", describe_os_error(error), "", ""))
    problem = next((scan.problem for scan in scans if scan.problem is not None), None)
    if missing:
        problem = f"incomplete (part {missing[0]} of {len(parts)} is missing)"
        if len(missing) > 1:
            problem = f"incomplete ({len(missing)} of {len(parts)} parts are missing)"
    first = scans[0] if scans else _Scan("other", None, "", "")  # none: all gone since they were listed
    return ModelEntry(
        path=found if 1 in missing else parts[0],
        name=stem.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        kind=first.kind,
        size_bytes=sum(sizes),
        problem=problem,
        architecture=first.architecture,
        description=first.description,
    )


def _scan(path: Path, status: os.stat_result) -> _Scan:
    """What the file is, from the cache while it is unchanged. Raises OSError."""
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    with _cache_lock:
        cached = _cache.get(key)
    if cached is not None:
        return cached
    try:
        header = read_header(path)
    except GgufError as error:
        scan = _Scan("other", str(error), "", "")
    else:
        classified = classify(header)
        noun = None if classified.kind == "chat" else re.sub("^an? ", "", classified.noun)
        scan = _Scan(classified.kind, None, header.architecture, _description(header, noun))
    with _cache_lock:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[key] = scan
    return scan


def _description(header: GgufHeader, noun: str | None) -> str:
    """A line such as "llama, 135M, Q4_1, context 8,192"."""
    weights: Counter[str] = Counter()
    for tensor in header.tensors:
        weights[tensor.type] += tensor.size
    context = header.number("{arch}.context_length")
    words = [
        noun,
        header.architecture,
        header.text("general.size_label"),
        weights.most_common(1)[0][0] if weights else None,
        f"context {context:,}" if context else None,
    ]
    line = ", ".join(word for word in words if word)
    return "".join(char if char.isprintable() else " " for char in line)[:200]
