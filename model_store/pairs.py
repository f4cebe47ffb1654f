"""Remembers which drafter was got together with which model, so that the two are loaded together."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import msgspec
from filelock import FileLock

from model_store.files import write_atomically
from model_store.local_path import HIDDEN

log = logging.getLogger(__name__)

_FILE = "pairs.json"
_MAX_DEPTH = 7  # folders between a model and the models folder


class _Content(msgspec.Struct):
    """Paths relative to the models folder, of a split model the first part's."""

    drafters: dict[str, str] = {}


class Pairs:
    """The pairs in one models folder. Any thread and any process may use it."""

    def __init__(self, models: Path) -> None:
        self._models = models
        self._file = models / HIDDEN / _FILE

    def drafter_of(self, target: Path) -> Path | None:
        """The drafter of the file ``target``, where both are in the models folder and it is there."""
        name = self._name(target)
        drafter = self._read().get(name) if name is not None else None
        if drafter is None or ".." in PurePosixPath(drafter).parts:
            return None
        path = self._models / drafter
        return path if path.is_file() else None

    def all(self) -> dict[Path, Path]:
        """The drafter of each target that has one, whether or not the files are there."""
        return {
            self._models / target: self._models / drafter
            for target, drafter in self._read().items()
            if ".." not in (*PurePosixPath(target).parts, *PurePosixPath(drafter).parts)
        }

    def pair(self, target: Path, drafter: Path | None) -> None:
        """Load ``drafter`` with ``target`` from now on; None: none. Raises OSError, and ValueError for a
        file outside the models folder."""
        names = self._name(target), self._name(drafter) if drafter is not None else None
        if names[0] is None or (drafter is not None and names[1] is None):
            raise ValueError(f"{target} or {drafter} is not in {self._models}")
        self._change(set_to={names[0]: names[1]})

    def forget(self, paths: Iterable[Path]) -> None:
        """Take the pairs apart that one of these files is in. Raises OSError."""
        gone = {name for path in paths if (name := self._name(path)) is not None}
        if any(gone.intersection(pair) for pair in self._read().items()):
            self._change(gone=gone)

    def _change(
        self, set_to: dict[str, str | None] | None = None, gone: frozenset[str] | set[str] = frozenset()
    ) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._file.with_suffix(".lock")):
            wanted: dict[str, str | None] = {**self._known(), **(set_to or {})}
            drafters = {
                target: drafter
                for target, drafter in wanted.items()
                if drafter is not None and not gone.intersection((target, drafter))
            }
            content = msgspec.json.encode(_Content(drafters))
            write_atomically(self._file, msgspec.json.format(content, indent=1))

    def _read(self) -> dict[str, str]:
        try:
            return self._known()
        except OSError as error:
            log.warning("which drafters belong to which models cannot be read: %s", error)
            return {}

    def _known(self) -> dict[str, str]:
        """Nothing where the file is damaged. Raises OSError: what is there must not be written over then."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Content).drafters
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except msgspec.DecodeError as error:
            log.warning("which drafters belong to which models is damaged: %s", error)
            return {}

    def _name(self, path: Path) -> str | None:
        try:
            return path.absolute().relative_to(self._models.absolute()).as_posix()
        except ValueError:
            return None


def paired_drafter(target: Path) -> Path | None:
    """The drafter that was got with ``target``, by the pairs of the models folder that it lies in."""
    for folder in target.absolute().parents[:_MAX_DEPTH]:
        if (folder / HIDDEN / _FILE).is_file():
            return Pairs(folder).drafter_of(target)
    return None
