"""The access token for the Hugging Face Hub, kept where its own tools keep it, for this person's eyes only.

It is no setting: it is never exported, never logged, and never shown in full.
"""

from __future__ import annotations

import os
from pathlib import Path

from app.secret_file import forget_secret, masked, read_secret, write_secret

_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_WHAT = "token"


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
        return f"{masked(os.environ[variable].strip())}, from {variable}"
    token = read_secret(token_path())
    return masked(token) if token else None


def save(token: str) -> None:
    """Keep ``token`` in a file that only this person can read. Raises SecretProblem."""
    write_secret(token_path(), token, _WHAT)


def forget() -> None:
    """Delete the kept token; harmless where there is none. Raises SecretProblem."""
    forget_secret(token_path(), _WHAT)
