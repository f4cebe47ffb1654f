"""The key that programs send to the local server, kept for this person's eyes only.

It is no setting: it is never exported and never logged.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from app import paths
from app.secret_file import forget_secret, masked, read_secret, write_secret

_WHAT = "key"


def key_path() -> Path:
    return paths.config_dir() / "server-key"


def kept() -> str | None:
    """None where no key is asked for."""
    return read_secret(key_path())


def described() -> str | None:
    """What can be shown of it: its last characters. None where there is none."""
    key = kept()
    return masked(key) if key else None


def new() -> str:
    """A key that nobody can guess, with a beginning that shows what it is."""
    return f"sk-slipstream-{secrets.token_urlsafe(24)}"


def save(key: str) -> None:
    """Raises SecretProblem."""
    write_secret(key_path(), key, _WHAT)


def forget() -> None:
    """Raises SecretProblem."""
    forget_secret(key_path(), _WHAT)
