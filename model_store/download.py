"""Downloads one file of the Hub: resumes, retries and checks it, and puts it in its place when whole."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from huggingface_hub import constants, hf_raise_for_status

from model_store.disk_space import DiskFullError, DiskSpace
from model_store.following_hash import FollowingHash, hash_file
from model_store.http_library import httpx
from model_store.hub import Hub, HubFile, names_other
from model_store.hub_error import PASSING, HubError, HubErrorKind, page_error
from model_store.manifest import Manifests, manifest_of
from model_store.part_file import PartFile
from model_store.stop_signal import StopSignal

DownloadErrorKind = Literal[
    HubErrorKind,
    "changed",  # the Hub now has something else there
    "mismatch",  # twice, what came is not what the Hub announced
    "disk_full",
    "disk",  # it refuses for another reason
    "occupied",  # another file is in the place
    "unsafe_name",
    "internal",
]
Phase = Literal["downloading", "retrying", "checking"]
Report = Callable[[Phase, int, str | None], None]
"""Told of each piece: what goes on, how many bytes are there, and why it has to be retried."""

_WATCH_EVERY = 64 << 20  # bytes between looks at the free space
_PART = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class DownloadError(Exception):
    """The file could not be downloaded. ``message`` says what to do; ``link`` may help with it."""

    def __init__(self, kind: DownloadErrorKind, message: str, link: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.link = link


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. ``tries`` counts those in a row that brought nothing new."""

    connect: float = 5.0
    stall: float = 15.0
    first_wait: float = 1.0
    longest_wait: float = 60.0
    longest_asked: float = 3600.0
    tries: int = 10

    def wait(self, failures: int, asked: float | None) -> float:
        """How long to wait after so many failures in a row; ``asked`` is the server's Retry-After."""
        if asked is not None:
            return min(asked, self.longest_asked)
        # Two programs that failed together should not come back together.
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.7, 1.0)


class _MismatchError(Exception):
    """What has come cannot be the file."""


def open_client(policy: RetryPolicy) -> httpx.Client:
    """A client for downloads from any thread. Each request has a connection of its own, so that stopping
    one never touches another."""
    return httpx.Client(
        follow_redirects=True,
        max_redirects=10,
        timeout=httpx.Timeout(policy.stall, connect=policy.connect),
        limits=httpx.Limits(max_keepalive_connections=0),
    )


@dataclass(frozen=True, slots=True)
class Tools:
    """What all downloads of a queue share."""

    hub: Hub
    client: httpx.Client
    manifests: Manifests
    disk: DiskSpace
    policy: RetryPolicy


class Download:
    """One file on its way. Whoever runs it holds the lock of ``part``."""

    def __init__(
        self,
        file: HubFile,
        part: PartFile,
        destination: Path,
        tools: Tools,
        *,
        report: Report,
        stop: StopSignal,
    ) -> None:
        self._file = file
        self._part = part
        self._destination = destination
        self._tools = tools
        self._report = report
        self._stop = stop
        self._hash: FollowingHash | None = None
        self._claim = part.path.name
        self._range_refused = False  # by the last answer

    def run(self) -> None:
        """Return when the file lies whole in its place, with its manifest.

        Raises DownloadError, and Stopped, with what has come kept for the next run.
        """
        try:
            if not self._already_there():
                self._part.open(self._file)
                self._try_until_whole()
            self._part.discard()
        except HubError as error:
            raise DownloadError(error.kind, error.message, error.link) from error
        except DiskFullError as error:
            raise DownloadError("disk_full", str(error)) from error
        except OSError as error:
            raise disk_error(error, self._destination) from error
        finally:
            self._close_hash()
            self._part.close()
            self._tools.disk.release(self._claim)

    def _already_there(self) -> bool:
        """Whether nothing is left to do: it was downloaded before, or put there by the person.

        Raises DownloadError when another file is in the place.
        """
        file = self._file
        if not self._destination.exists():
            return False
        manifest = self._tools.manifests.read(self._destination)
        same_size = self._destination.is_file() and self._destination.stat().st_size == file.size
        if same_size and manifest is not None and manifest.sha256 == file.sha256:
            return True
        if same_size:
            # A file without a manifest, or one that was replaced just before we were killed
            self._report("checking", file.size, None)
            sha256, git = hash_file(self._destination, self._stop, git=file.sha256 is None)
            if (file.sha256 or file.etag) == (git or sha256):
                self._tools.manifests.write(self._destination, manifest_of(file, self._destination, sha256))
                return True
        if manifest is not None and manifest.is_of(file):
            return False  # an older revision, to be replaced
        raise DownloadError(
            "occupied",
            f"{self._destination} is there already and is another file: move it away, then resume.",
        )

    def _try_until_whole(self) -> None:
        """Raises DownloadError, HubError, DiskFullError, OSError and Stopped."""
        if constants.HF_HUB_OFFLINE:
            raise self._tools.hub.offline()
        policy = self._tools.policy
        failures = mismatches = 0
        furthest = self._part.size
        while True:
            self._stop.check()
            try:
                if self._part.size < self._file.size:
                    self._fetch()
                self._finish()
                return
            except _MismatchError:
                mismatches += 1
                self._close_hash()
                self._part.quarantine()
                if mismatches > 1:
                    raise DownloadError(
                        "mismatch",
                        f"{self._file.name} arrived damaged twice: something on the way changes it. "
                        "Try again later, or from another network.",
                    ) from None
                self._part.open(self._file)
                furthest = 0
                self._report("retrying", 0, "what arrived was damaged, so it is downloaded again")
            except HubError as error:
                failures = 1 if self._part.size > furthest else failures + 1
                furthest = max(furthest, self._part.size)
                if error.kind not in PASSING or failures >= policy.tries:
                    raise
                self._report("retrying", self._part.size, error.message)
                self._stop.wait(policy.wait(failures, error.retry_after))

    def _fetch(self) -> None:
        """Ask for what is missing and keep what comes, all or some of it.

        Raises HubError when it is not all, _MismatchError when it is too much, and the rest.
        """
        part, file = self._part, self._file
        self._make_room()
        self._report("downloading", part.size, None)
        headers = self._tools.hub.headers() | {"Accept-Encoding": "identity"}
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
            # The Hub's content network names no ETag. The revision is a commit, whose content cannot
            # change, and the hash is compared in the end.
            if part.etag is not None:
                headers["If-Range"] = part.etag
        try:
            with self._tools.client.stream(
                "GET",
                self._tools.hub.url(file),
                headers=headers,
                extensions={"trace": self._stop.trace},
            ) as response:
                self._accept(response)
                self._keep(response)
        except (httpx.TransportError, httpx.TooManyRedirects) as error:
            self._stop.check()
            raise self._tools.hub.error(error, file.repo) from error
        finally:
            self._stop.forget_connection()
        self._stop.check()
        if part.size < file.size:
            raise HubError("server", "The connection was closed too early.")

    def _accept(self, response: httpx.Response) -> None:
        """Take the response only if it goes on where the part ends, or starts anew.

        Raises HubError; the part then is as it was, or empty.
        """
        part, file = self._part, self._file
        host = response.url.host
        from_hub = host == urlsplit(self._tools.hub.endpoint).hostname
        if response.status_code == 416:
            raise self._refused_range(host, response.headers.get("content-range", ""))
        self._range_refused = False
        if response.status_code >= 400 and not from_hub and response.status_code not in (408, 429):
            # A content network takes no token; its links just grow old.
            raise HubError("server", f"{host} refused (status {response.status_code}).")
        try:
            hf_raise_for_status(response)
        except Exception as error:
            raise self._tools.hub.error(error, file.repo) from error
        if names_other(response, file):
            raise DownloadError(
                "changed", f"{file.name} has changed on the Hub: look up {file.repo} again and choose anew."
            )
        length = response.headers.get("content-length", "")
        etag = response.headers.get("etag")
        etag = None if etag is None or etag.startswith("W/") else etag
        if response.status_code == 206:
            there = _PART.fullmatch(response.headers.get("content-range", ""))
            if there is None or [int(number) for number in there.groups()] != [
                part.size,
                file.size - 1,
                file.size,
            ]:
                raise HubError("server", f"{host} sent another part than the one asked for.")
            if None not in (part.etag, etag) and etag != part.etag:
                self._restart(None)
                raise HubError("server", f"{host} has another file now, so it is downloaded again.")
            if length and int(length) != file.size - part.size:
                raise HubError("server", f"{host} contradicts itself about the length.")
        elif response.status_code == 200:
            if "html" in response.headers.get("content-type", ""):
                raise page_error(urlsplit(self._tools.hub.endpoint).netloc)
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity" or (length and int(length) != file.size):
                raise HubError("server", f"{host} sent something else than the file.")
            self._restart(etag)
        else:
            raise HubError("server", f"{host} gave an answer nobody asked for ({response.status_code}).")

    def _refused_range(self, host: str, content_range: str) -> HubError:
        """What to do when the server says that there is nothing behind what we have."""
        # The Hub's content network says so too when it has trouble of its own: that should cost a try,
        # not all that has come.
        if self._range_refused or content_range != f"bytes */{self._file.size}":
            self._restart(None)
        self._range_refused = True
        return HubError("server", f"{host} did not find the rest of it.")

    def _keep(self, response: httpx.Response) -> None:
        """Write what comes. Raises _MismatchError, DiskFullError, OSError, Stopped and httpx errors."""
        part, file, stop, report = self._part, self._file, self._stop, self._report
        following = self._following()
        watch_at = part.size + _WATCH_EVERY
        for piece in response.iter_raw():
            if stop.stopped:
                stop.check()
            if part.size + len(piece) > file.size:
                raise _MismatchError
            part.write(piece)
            following.advance(part.size)
            report("downloading", part.size, None)
            if part.size >= watch_at:
                watch_at = part.size + _WATCH_EVERY
                self._tools.disk.watch(self._claim, file.size - part.size)

    def _finish(self) -> None:
        """Compare the content, and put the file in its place. Raises _MismatchError, OSError, Stopped."""
        part, file = self._part, self._file
        self._report("checking", part.size, None)
        sha256, git = self._following().result(self._stop)
        if (file.sha256 or file.etag) != (git or sha256):
            raise _MismatchError
        self._close_hash()
        self._stop.check()
        part.finish(self._destination)
        self._tools.manifests.write(self._destination, manifest_of(file, self._destination, sha256))

    def _following(self) -> FollowingHash:
        if self._hash is None:
            self._hash = FollowingHash(self._part.path, self._file.size, git=self._file.sha256 is None)
        self._hash.advance(self._part.size)
        return self._hash

    def _close_hash(self) -> None:
        if self._hash is not None:
            self._hash.close()
            self._hash = None

    def _restart(self, etag: str | None) -> None:
        self._close_hash()
        self._part.restart(etag)

    def _make_room(self) -> None:
        """Raises DiskFullError and OSError."""
        missing = self._file.size - self._part.size
        try:
            self._tools.disk.claim(self._claim, missing)
        except DiskFullError:
            if not self._part.discard_quarantined():
                raise
            self._tools.disk.claim(self._claim, missing)


def disk_error(error: OSError, destination: Path) -> DownloadError:
    """What the system's refusal to write means."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DownloadError("disk_full", "The disk is full: delete something, then resume.")
    if error.errno == errno.ENAMETOOLONG or getattr(error, "winerror", None) == 206:
        return DownloadError(
            "disk",
            f"The path {destination} is too long for this system: choose a models folder nearer the top.",
        )
    reason = (error.strerror or type(error).__name__).lower()
    return DownloadError("disk", f"{destination} cannot be written: {reason}.")
