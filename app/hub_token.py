"""The access token for the Hugging Face Hub, kept where its own tools keep it, for this person's eyes only.

It is no setting: it is never exported, never logged, and never shown in full.
"""

from __future__ import annotations

import os
from pathlib import Path

from model_store.files import write_atomically

_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_SHOWN = 4


class TokenProblem(Exception):
    """The token cannot be kept; says why in a sentence for a person, without the token."""


def token_path() -> Path:
    """Where huggingface_hub looks, too."""
    if named := os.environ.get("HF_TOKEN_PATH"):
        return Path(os.path.expandvars(named)).expanduser()
    home = os.environ.get("HF_HOME")
    if home is None:
        home = str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    return Path(os.path.expandvars(home)).expanduser() / "token"


def from_environment() -> str | None:
    """The variable that gives the token, before any file; None where there is none."""
    return next((name for name in _VARIABLES if os.environ.get(name, "").strip()), None)


def described() -> str | None:
    """What can be shown of the token in use: its last characters. None where there is none."""
    variable = from_environment()
    if variable is not None:
        return f"{_masked(os.environ[variable].strip())}, from {variable}"
    token = _read()
    return _masked(token) if token else None


def save(token: str) -> None:
    """Keep ``token`` in a file that only this person can read. Raises TokenProblem."""
    token = token.strip()
    if not token:
        raise TokenProblem("The token is empty.")
    if not token.isascii() or any(not character.isprintable() or character.isspace() for character in token):
        raise TokenProblem("That is no token: it holds spaces or other characters that no token has.")
    path = token_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, token.encode("ascii"))  # with mode 0600 from its first byte on
    except OSError as error:
        raise TokenProblem(f"The token cannot be kept: {error.strerror or type(error).__name__}.") from error


def forget() -> None:
    """Delete the kept token; harmless where there is none. Raises TokenProblem."""
    try:
        token_path().unlink(missing_ok=True)
    except OSError as error:
        raise TokenProblem(
            f"The token cannot be deleted: {error.strerror or type(error).__name__}."
        ) from error


def _read() -> str | None:
    try:
        return token_path().read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def _masked(token: str) -> str:
    """Enough to know which one it is, too little to use it."""
    return f"••••{token[-_SHOWN:]}" if len(token) >= 4 * _SHOWN else "••••"
