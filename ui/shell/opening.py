"""What a start was asked to open: a model file, a chat, or just the window."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

_CHAT = re.compile(r"slipstream:(?://)?chat/(\d{1,19})/?")
LONGEST = 16_384  # bytes of an encoded opening


class Opening(Struct, frozen=True, kw_only=True):
    """``token`` is the desktop's permission to raise a window (Wayland), as the second start got it."""

    model: str | None = None
    chat: int | None = None
    token: str | None = None


def chat_link(chat: int) -> str:
    """The link that opens a chat, for a shortcut or a note."""
    return f"slipstream:chat/{chat}"


def opening(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Opening:
    """What is meant by the words after the program's name; what is neither file nor link is ignored."""
    token = environment.get("XDG_ACTIVATION_TOKEN")
    for argument in arguments:
        if link := _CHAT.fullmatch(argument):
            return Opening(chat=int(link[1]), token=token)
        path = unquote(urlsplit(argument).path) if argument.startswith("file://") else argument
        if path.lower().endswith(".gguf"):
            # The first start may run in another folder.
            return Opening(model=str(Path(path).expanduser().absolute()), token=token)
    return Opening(token=token)


def encode(opening: Opening) -> bytes:
    return msgspec.json.encode(opening)


def decode(content: bytes) -> Opening | None:
    """None for anything but an opening: everybody of this person may write to the socket."""
    try:
        return msgspec.json.decode(content, type=Opening)
    except msgspec.DecodeError:
        return None
