"""What the local Hub holds, and what it can be told to do wrong."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

Stage = Literal["resolve", "content"]
FaultKind = Literal[
    "reset",  # the connection is torn down in the middle
    "early_close",  # it ends cleanly in the middle
    "short_without_length",  # so that nothing tells that more was to come
    "flip",  # one byte is another
    "stall",  # nothing more comes
    "ignore_range",  # everything is sent, with status 200
    "wrong_part",  # another part than was asked for
    "status_416",
    "status_429",
    "status_503",
    "status_403",  # the content network's signature is too old
    "redirect_loop",
    "page",  # a sign-in page, with status 200; without its length if ``at`` is less than a half
    "changed_etag",  # the content network's, for good
    "longer",  # more bytes than the file has
]
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)
_AT_RESOLVE = frozenset({"status_429", "status_503", "redirect_loop", "page"})
_LFS_FROM = 64  # bytes: smaller files lie in git itself


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes once, ``at`` a share of the bytes that were to be sent; ``seconds`` is how long a stall
    lasts, or what Retry-After says."""

    kind: FaultKind
    at: float = 0.5
    seconds: float = 0.0

    @property
    def stage(self) -> Stage:
        return "resolve" if self.kind in _AT_RESOLVE else "content"


@dataclass(slots=True)
class Seen:
    """A request, in the order in which they came; ``sent`` counts bytes of the file in its answer."""

    method: str
    path: str
    range: str | None
    token: str | None
    status: int = 0
    sent: int = 0
    answered: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class LocalFile:
    """Its content is bytes or, for a large one, a file."""

    content: bytes | Path
    sha256: str
    git_id: str
    size: int
    etag: str  # the content network's; empty: it names none
    piece_pause: float = 0.0  # seconds between pieces of 64 KiB
    faults: deque[Fault] = field(default_factory=deque)

    @property
    def lfs(self) -> bool:
        return self.size >= _LFS_FROM

    def read(self, start: int, end: int) -> bytes:
        if isinstance(self.content, bytes):
            return self.content[start:end]
        with self.content.open("rb") as file:
            file.seek(start)
            return file.read(end - start)


def local_file(content: bytes | Path) -> LocalFile:
    if isinstance(content, Path):
        with content.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return LocalFile(content, sha256, sha256[:40], content.stat().st_size, f'"cdn-{sha256[:16]}"')
    sha256 = hashlib.sha256(content).hexdigest()
    git_id = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return LocalFile(content, sha256, git_id, len(content), f'"cdn-{sha256[:16]}"')


@dataclass(slots=True)
class LocalRepository:
    """``gated``: who may have its files, by token; None means everybody. ``commits`` holds all there were,
    the last one is main."""

    name: str
    commits: dict[str, dict[str, LocalFile]]
    gated: frozenset[str] | None = None
    private: bool = False
    licence: str = "apache-2.0"
    downloads: int = 0
    likes: int = 0

    @property
    def sha(self) -> str:
        return next(reversed(self.commits))

    def at(self, revision: str) -> str | None:
        """The commit that a branch or commit names."""
        if revision == "main":
            return self.sha
        return revision if revision in self.commits else None
