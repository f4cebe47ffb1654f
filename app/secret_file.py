"""A word that gives access, in a file for this person's eyes only."""

from __future__ import annotations

from pathlib import Path

from model_store.files import write_atomically

_SHOWN = 4


class SecretProblem(Exception):
    """It cannot be kept; says why in a sentence for a person, without the secret."""


def write_secret(path: Path, secret: str, what: str) -> None:
    """``what`` it is called in words. Raises SecretProblem."""
    secret = secret.strip()
    if not secret:
        raise SecretProblem(f"The {what} is empty.")
    if not secret.isascii() or any(not each.isprintable() or each.isspace() for each in secret):
        raise SecretProblem(f"That is no {what}: it holds spaces or other characters that no {what} has.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, secret.encode("ascii"))  # with mode 0600 from its first byte on
    except OSError as error:
        raise SecretProblem(
            f"The {what} cannot be kept: {error.strerror or type(error).__name__}."
        ) from error


def forget_secret(path: Path, what: str) -> None:
    """Delete it; harmless where there is none. Raises SecretProblem."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise SecretProblem(f"The {what} cannot be deleted: {words}.") from error


def read_secret(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def masked(secret: str) -> str:
    """Enough to know which one it is, too little to use it."""
    return f"••••{secret[-_SHOWN:]}" if len(secret) >= 4 * _SHOWN else "••••"
