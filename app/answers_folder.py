"""The folder where drafting keeps what it learns from answers: one lock for all, and a way to empty it."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

SUFFIX = ".answers"
_LOCK_S = 1.0


def lock_answers(folder: Path) -> FileLock:
    """Whoever reads to write again, or deletes, holds it. Entering it raises filelock.Timeout when
    another program does not let go, and other OSErrors."""
    return FileLock(folder / ".lock", timeout=_LOCK_S, mode=0o600)


def forget_answers(folder: Path) -> int:
    """Delete what was learned, with every tokenizer, and what was set aside. Returns how many files.

    A program that has learned notices before its next answer. Raises OSError.
    """
    if not folder.is_dir():
        return 0
    with lock_answers(folder):
        files = list(folder.glob(f"*{SUFFIX}*"))
        for file in files:
            file.unlink(missing_ok=True)
    return len(files)
