"""Deletes a model of the models folder, and says exactly how many bytes that freed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from model_store.check import shown_name
from model_store.library import ModelEntry
from model_store.split import parts_of

RemovalKind = Literal["in_use", "not_ours", "gone", "refused"]


class RemovalError(Exception):
    """A model was not deleted, or not all of it; the text is one sentence for the person."""

    def __init__(self, kind: RemovalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Removed:
    """The files and links that are gone. A link, or one of several names of a file, frees no bytes."""

    paths: tuple[Path, ...]
    bytes_freed: int


def remove_model(
    entry: ModelEntry, folder: Path, in_use: Callable[[Path], str | None] = lambda path: None
) -> Removed:
    """Delete the file of ``entry``, or all parts of a split one, and the folders that this leaves empty.

    A link goes itself and its target stays; what lies behind a linked folder is not ours to delete.
    ``in_use`` says why a file must stay: "it is loaded". Raises RemovalError; after one of the kind
    "refused" some parts may be gone, and the rest can be deleted later.
    """
    name = shown_name(entry.path)
    if entry.program is not None:
        raise RemovalError("not_ours", f"{name} belongs to {entry.program}, and is only listed here.")
    _check_is_inside(entry.path, folder)
    parts = [part for part in parts_of(entry.path) if os.path.lexists(part)]
    if not parts:
        raise RemovalError("gone", f"{name} was deleted already.")
    for part in parts:
        reason = in_use(part) or in_use(part.resolve())
        if reason is not None:
            raise RemovalError("in_use", f"{shown_name(part)} cannot be deleted: {reason}.")
    freed = sum(_remove(part) for part in parts)
    _remove_empty(entry.path.parent, folder)
    return Removed(tuple(parts), freed)


def _check_is_inside(path: Path, folder: Path) -> None:
    """Raises RemovalError when a link leads from ``folder`` to where ``path`` is, or nothing does."""
    try:
        below = path.parent.absolute().relative_to(folder.absolute())
        inside = ".." not in below.parts and path.parent.resolve() == folder.resolve() / below
    except (ValueError, OSError):
        inside = False
    if not inside:
        raise RemovalError(
            "not_ours", f"{shown_name(path)} lies outside the models folder: delete it where it is."
        )


def _remove(path: Path) -> int:
    """The bytes that are free now."""
    try:
        status = path.lstat()
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise RemovalError("refused", f"{shown_name(path)} cannot be deleted: {reason}.") from error
    return status.st_size if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else 0


def _remove_empty(emptied: Path, folder: Path) -> None:
    while emptied.absolute() != folder.absolute():
        try:
            emptied.rmdir()
        except OSError:  # it is not empty
            return
        emptied = emptied.parent
