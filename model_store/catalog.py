"""Models that are known to work well, each with the drafters that fit it, and those a person adds."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from filelock import FileLock
from msgspec import Meta, Struct

from model_store.drafting_kind import DraftKind
from model_store.files import write_atomically

VERSION = 1
_MAX_BYTES = 4 << 20

_ONE_LINE = r"^[^\x00-\x1f\x7f]+$"
Line = Annotated[str, Meta(min_length=1, max_length=160, pattern=_ONE_LINE)]
Title = Annotated[str, Meta(min_length=1, max_length=80, pattern=_ONE_LINE)]
Repo = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")]
Pattern = Annotated[str, Meta(min_length=1, max_length=300)]
SizeClass = Literal["starter", "small", "mid", "large"]


class CatalogTarget(Struct, frozen=True, kw_only=True):
    """``file`` names the quantisation to be recommended, ``others`` its alternatives in the repository.

    Both may hold ``*`` and are compared in any case. Of a split model the first part is named.
    """

    repo: Repo
    file: Pattern
    others: Pattern = "*.gguf"


class CatalogDrafter(Struct, frozen=True, kw_only=True):
    """A drafter of its own; ``file`` is a pattern as in a target."""

    kind: DraftKind
    repo: Repo
    file: Pattern


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """A model. ``target`` is None for one that comes with the program.

    ``licence`` is None where we do not know it. ``min_memory`` is what a machine should have free, in
    bytes. ``drafters`` are in the order of preference; ``heads_inside``: the target brings MTP heads.
    """

    id: Annotated[str, Meta(max_length=80, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    title: Title
    description: Line
    size_class: SizeClass
    min_memory: Annotated[int, Meta(ge=0, le=1 << 50)]
    licence: Title | None = None
    target: CatalogTarget | None = None
    drafters: tuple[CatalogDrafter, ...] = ()
    heads_inside: bool = False


class _File(Struct, frozen=True, kw_only=True):
    version: int
    entries: tuple[msgspec.Raw, ...] = ()


class CatalogError(Exception):
    """The person's own catalogue cannot be changed; the text is one sentence for the person."""


class NewerCatalog(CatalogError):
    """It was written by a newer version of this program, and stays as it is."""


class Catalog(Struct, frozen=True):
    """``notices`` say what of the files could not be used. ``own`` are the ids of a person's additions."""

    entries: tuple[CatalogEntry, ...]
    own: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()

    def find(self, text: str) -> CatalogEntry | None:
        """By id or title, in any case."""
        wanted = text.strip().casefold()
        return next((each for each in self.entries if wanted in (each.id, each.title.casefold())), None)

    def search(self, text: str) -> list[CatalogEntry]:
        """Those of whose id, title and description all words of ``text`` are a part, in any case."""
        words = text.casefold().split()
        return [
            entry
            for entry in self.entries
            if all(word in f"{entry.id} {entry.title} {entry.description}".casefold() for word in words)
        ]


def load_catalog(builtin: Path, own: Path | None = None) -> Catalog:
    """The catalogue in the assets with a person's own entries, of which one replaces another of its id.

    Never raises for what is in the files.
    """
    entries, notices = _read(builtin)
    added: list[CatalogEntry] = []
    if own is not None and own.exists():
        added, more = _read(own)
        notices += more
    found = {entry.id: entry for entry in (*entries, *added)}
    return Catalog(tuple(found.values()), frozenset(entry.id for entry in added), tuple(notices))


def add_entry(own: Path, entry: CatalogEntry) -> None:
    """Put ``entry`` into the person's own catalogue. Raises CatalogError and OSError.

    A file that is damaged is set aside as ``….damaged``, since entries must not get lost.
    """
    try:
        msgspec.convert(msgspec.to_builtins(entry), CatalogEntry)
    except msgspec.ValidationError as error:
        raise CatalogError(f"{entry.title} cannot be added: {_reason(error)}.") from error
    with FileLock(f"{own}.lock"):
        _write(own, [*(each for each in _own_entries(own) if each.id != entry.id), entry])


def remove_entry(own: Path, entry_id: str) -> None:
    """Take an entry out of the person's own catalogue. Raises CatalogError and OSError."""
    if own.exists():
        with FileLock(f"{own}.lock"):
            _write(own, [each for each in _own_entries(own) if each.id != entry_id])


def matches(path: str, pattern: str) -> bool:
    """Whether a file of a repository is meant by ``pattern``, which may leave its folders out."""
    path, pattern = path.casefold(), pattern.casefold()
    return fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def _read(path: Path) -> tuple[list[CatalogEntry], list[str]]:
    """The entries that can be used, and a sentence about each thing that cannot."""
    try:
        return _entries(_decode(path), path.name)
    except CatalogError as error:
        return [], [str(error)]


def _entries(file: _File, name: str) -> tuple[list[CatalogEntry], list[str]]:
    entries: list[CatalogEntry] = []
    notices: list[str] = []
    for number, raw in enumerate(file.entries, start=1):
        try:
            entries.append(msgspec.json.decode(raw, type=CatalogEntry))
        except msgspec.DecodeError as error:
            notices.append(f"Entry {number} of the catalogue {name} is left out: {_reason(error)}.")
    return entries, notices


def _decode(path: Path) -> _File:
    """Raises CatalogError in words for the person."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CatalogError(f"The catalogue {path.name} is not used: it is too large.")
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise CatalogError(f"The catalogue {path.name} cannot be read: {reason}.") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CatalogError(f"The catalogue {path.name} is damaged: {_reason(error)}.") from error
    if file.version > VERSION:
        raise NewerCatalog(f"The catalogue {path.name} is of a newer version of this program, and not used.")
    return file


def _own_entries(own: Path) -> list[CatalogEntry]:
    """Those in the person's file, before it is written anew. Raises NewerCatalog and OSError."""
    if not own.exists():
        return []
    try:
        entries, notices = _entries(_decode(own), own.name)
    except NewerCatalog:
        raise
    except CatalogError as error:
        entries, notices = [], [str(error)]
    if notices:
        own.replace(own.with_name(f"{own.name}.damaged"))
    return entries


def _write(own: Path, entries: list[CatalogEntry]) -> None:
    own.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode({"version": VERSION, "entries": entries})
    write_atomically(own, msgspec.json.format(content, indent=2) + b"\n")


def _reason(error: Exception) -> str:
    text = str(error).rstrip(".").split("\n")[0]
    return f"{text[:1].lower()}{text[1:200]}"
