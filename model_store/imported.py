"""The list of models that stay where another program or the person keeps them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock

from model_store.check import describe_os_error
from model_store.files import write_atomically

log = logging.getLogger(__name__)

_VERSION = 1


class Imported(msgspec.Struct, frozen=True):
    """A model's file, or its first one, where it lies. ``program`` says whose it is: "Ollama"."""

    path: Path
    name: str
    program: str


class _Content(msgspec.Struct):
    version: int
    models: list[Imported]


class ImportedError(Exception):
    """The list cannot be kept; the text is one sentence for the person."""


class ImportedModels:
    """Reads and writes the list. Nothing is ever copied, and no file on it is ever deleted.

    Any thread and any process may use it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def models(self) -> tuple[Imported, ...]:
        """What was imported, in that order; nothing when the list cannot be read. A damaged one is set
        aside."""
        try:
            return tuple(self._read())
        except ImportedError as error:
            log.warning("%s", error)
            return ()

    def add(self, models: Iterable[Imported]) -> list[Imported]:
        """Those of ``models`` that were not on the list. Raises ImportedError."""
        with self._alone():
            kept = self._read()
            known = {model.path for model in kept}
            new = list({model.path: model for model in models if model.path not in known}.values())
            if new:
                self._write([*kept, *new])
            return new

    def remove(self, path: Path) -> bool:
        """Take a model off the list; whether it was on it. Raises ImportedError."""
        with self._alone():
            kept = self._read()
            left = [model for model in kept if model.path != path]
            if len(left) == len(kept):
                return False
            self._write(left)
            return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """So that nothing is lost that another program adds at the same time. Raises ImportedError."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._file.with_suffix(".lock")):
                yield
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise ImportedError(f"The list of imported models cannot be written: {reason}.") from error

    def _read(self) -> list[Imported]:
        try:
            data = self._file.read_bytes()
            content = msgspec.json.decode(data, type=_Content, dec_hook=lambda kind, value: kind(value))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ImportedError(f"The list of imported models {describe_os_error(error)}.") from error
        except msgspec.MsgspecError as error:
            aside = self._file.with_name(f"{self._file.name}.damaged")
            log.warning("the list of imported models is damaged, and kept as %s: %s", aside, error)
            try:
                self._file.replace(aside)
            except OSError as refused:
                log.warning("it could not be renamed: %s", refused)
            return []
        return content.models

    def _write(self, models: list[Imported]) -> None:
        try:
            content = msgspec.json.encode(_Content(_VERSION, models), enc_hook=str)
        except UnicodeEncodeError:
            raise ImportedError("A file whose name is not text cannot be imported.") from None
        write_atomically(self._file, msgspec.json.format(content, indent=1))
