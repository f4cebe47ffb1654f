"""A text file as a part of a message: its name and its text in a block of code."""

from __future__ import annotations

import re
from pathlib import Path

from ui.bidi import visible

MOST_BYTES = 256 * 1024
_LANGUAGES = {".py": "python", ".js": "javascript", ".ts": "typescript", ".rs": "rust", ".yml": "yaml"}
_BACKTICKS = re.compile("`+")


class NotQuotable(Exception):
    """Says in a sentence why a file is not put into a message."""


def quoted_file(path: Path) -> str:
    """Raises NotQuotable for what is no text, too large, or cannot be read."""
    name = visible(path.name)
    try:
        if not path.is_file():
            raise NotQuotable(f"{name} is not a file.")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise NotQuotable(
                f"{name} is too large: {_size(size)}, and at most {_size(MOST_BYTES)} can be quoted."
            )
        data = path.read_bytes()
    except OSError as error:
        raise NotQuotable(f"{name} cannot be read: {error.strerror or error}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotQuotable(f"{name} is not a text file.") from error
    if "\0" in text:
        raise NotQuotable(f"{name} is not a text file.")
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    ending = path.suffix.lower()
    language = _LANGUAGES.get(ending, ending[1:] if ending[1:].isalnum() else "")
    body = text.replace("\r\n", "\n").rstrip("\n")
    label = name.replace("`", "'")
    return f"`{label}`:\n\n{fence}{language}\n{body}\n{fence}\n"


def _size(size_bytes: int) -> str:
    return (
        f"{size_bytes / 1024 / 1024:.1f} MB" if size_bytes >= 1024 * 1024 else f"{size_bytes / 1024:.0f} KB"
    )
