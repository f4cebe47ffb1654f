"""Which addresses in an answer may be opened, and what a person must see before one is."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Struct

from ui.bidi import visible

_WEB = ("http", "https")
# Browsers read a backslash as a slash and drop control characters: either can hide the real host.
_DECEPTIVE = re.compile(r"[\x00-\x20\\\x7f-\x9f]")

# What reads as a host's name, within an address or by itself.
_HOST = re.compile(r"[^\s/@:?#()\[\]<>\"'.]+(?:\.[^\s/@:?#()\[\]<>\"'.]+)*\.[^\W\d_]{2,}(?![\w.])")


class Link(Struct, frozen=True):
    """``target`` names who is reached (a host, or a mail address); None: it is never opened."""

    url: str
    target: str | None
    warning: str | None = None

    @property
    def openable(self) -> bool:
        return self.target is not None


def judge(url: str) -> Link:
    """Only http, https and mailto are openable, and only with a host that can be named."""
    if _DECEPTIVE.search(url):
        return Link(url, None, "The address holds characters that hide where it leads.")
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return Link(url, None, "The address cannot be read.")
    scheme = parts.scheme.lower()
    if scheme == "mailto" and "@" in parts.path:
        return Link(url, visible(parts.path))
    if scheme not in _WEB or not host:
        return Link(url, None, "Only web and mail addresses are opened.")
    try:
        shown = host.encode("idna").decode("ascii")
    except UnicodeError:
        return Link(url, None, "The host's name cannot be read.")
    warning = None
    if parts.username is not None:
        warning = f"“{visible(parts.username)}” before the @ is not where it leads."
    elif shown != host:
        warning = f"The host is written with other letters: {visible(host)}"
    return Link(url, f"{shown}:{port}" if port else shown, warning)


def names_another_host(words: str, link: Link) -> bool:
    """Whether the words of a link read as an address of somebody other than the one it leads to."""
    target = (link.target or "").lower().rpartition("@")[2]
    if not target or link.target == words.strip().removeprefix("mailto:"):
        return False
    host = target.partition(":")[0]
    named = [match.group().lower() for match in _HOST.finditer(words)]
    return bool(named) and not any(host == name or host.endswith(f".{name}") for name in named[:1])
