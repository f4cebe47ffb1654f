"""Where a file of the Hub lies below the models folder, under a name that every system can hold."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path, PurePosixPath

HIDDEN = ".slipstream"
"""The folder in the models folder where the store keeps manifests and unfinished downloads."""
JOB = ".job"
"""How the name of an unfinished download's record ends."""

_MAX_FOLDERS = 4  # in a repository: with owner and name, as deep as the library looks
_MAX_BYTES = 180  # of a name, as UTF-8: leaves room for suffixes, and for the folders before it on Windows
_FORBIDDEN = re.compile(r'[<>:"|?*\\]')
# what Windows takes for a device, whatever follows the first dot
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_SPLIT = re.compile(r"-\d{5}-of-\d{5}$")


class UnsafePathError(Exception):
    """A repository names a file by a path that is none below it; the text is for the person."""


def has_unfinished(models: Path) -> bool:
    """Whether a program has left a download in this models folder, or is at it."""
    return next((models / HIDDEN / "downloads").glob(f"*{JOB}"), None) is not None


def local_path(repo: str, path: str) -> PurePosixPath:
    """Where file ``path`` of ``repo`` belongs, relative to the models folder. Raises UnsafePathError.

    A name that some system could not hold is changed, and gets eight digits of its hash so that no two
    files meet. Parts of a split model keep their endings, and so stay together.
    """
    parts = path.split("/")
    if "\\" in path or re.match("[A-Za-z]:", path) or any(part in ("", ".", "..") for part in parts):
        raise UnsafePathError(
            f'{repo} names a file "{_shown(path)}", which is no path in it: not downloaded.'
        )
    if len(parts) > _MAX_FOLDERS + 1:
        raise UnsafePathError(f'{repo} keeps "{_shown(path)}" in too many folders: not downloaded.')
    return PurePosixPath(*(_safe(part) for part in (*repo.split("/"), *parts)))


def renamed(path: PurePosixPath, why: str) -> PurePosixPath:
    """The same path with a name of its own that depends on ``why``."""
    return path.with_name(_with_hash(path.name, why))


def same_place(path: PurePosixPath) -> str:
    """Equal for paths that some file system takes for one."""
    return unicodedata.normalize("NFC", str(path)).casefold()


def _safe(name: str) -> str:
    """``name``, or what stands for it where some system could not hold it."""
    safe = "".join(
        char if char.isprintable() or char == "\u3000" else "_" for char in _FORBIDDEN.sub("_", name)
    )
    safe = safe.rstrip(". ")
    if safe.startswith(".") or safe != safe.lstrip() or not safe:
        safe = f"_{safe.lstrip('. ')}"
    if _DEVICE.fullmatch(safe):
        safe = f"_{safe}"
    if safe != name or len(safe.encode()) > _MAX_BYTES:
        safe = _with_hash(safe, name)
    return safe


def _with_hash(name: str, why: str) -> str:
    """``name``, cut where it is too long, with a hash of ``why`` before its ending."""
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix) > 10:
        stem, dot, suffix = name, "", ""
    split = _SPLIT.search(stem)
    ending = split[0] if split else ""
    stem = stem.removesuffix(ending)
    # The parts of a split model must agree in all but their number.
    why = re.sub(r"-\d{5}(-of-\d{5})", r"\1", why)
    digits = hashlib.sha256(why.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    room = _MAX_BYTES - len(f"-{digits}{ending}{dot}{suffix}".encode())
    while len(stem.encode()) > room:
        stem = stem[:-1]
    return f"{stem}-{digits}{ending}{dot}{suffix}"


def _shown(path: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in path)[:200]
