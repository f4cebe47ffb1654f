"""The Hugging Face Hub: which repositories there are, what files they hold, and where to get them."""

from __future__ import annotations

import difflib
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

# Without it, each request would first look up which coding agent runs us, for up to 3 s.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from huggingface_hub import constants, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers, validate_repo_id  # type: ignore[attr-defined]

from model_store.http_library import httpx
from model_store.hub_error import HubError, hub_error, page_error
from model_store.repo_link import RepoLink, parse_repo

__all__ = ["Hub", "HubError", "HubFile", "HubHit", "HubRepository", "RepoLink", "parse_repo"]

_WITHIN_S: Final = 5.0  # a person waits for the answer
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file at one commit. ``revision`` is the commit's hash, so this never means other bytes.

    ``sha256`` is None for a small file kept in git itself; ``etag`` is then its git blob id (SHA-1),
    else the same as ``sha256``.
    """

    repo: str
    revision: str
    path: str
    size: int
    sha256: str | None
    etag: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class HubRepository:
    """A repository at one commit. ``renamed_from`` is the name that was asked for, where the Hub knows
    the repository by another one now."""

    repo: str
    revision: str
    gated: bool
    licence: str | None
    files: tuple[HubFile, ...]
    renamed_from: str | None = None

    def file(self, path: str) -> HubFile:
        """The file at ``path``. Raises HubError (not_found), which names similar ones."""
        for file in self.files:
            if file.path == path:
                return file
        names = [file.path for file in self.files if file.path.endswith(".gguf")]
        similar = difflib.get_close_matches(path, names, n=3)
        hint = f"similar: {', '.join(similar)}" if similar else "choose another file"
        raise HubError("not_found", f"{path} is gone from {self.repo}; {hint}.")


@dataclass(frozen=True, slots=True)
class HubHit:
    """One result of a search. ``updated`` is None where the Hub does not say."""

    repo: str
    downloads: int
    likes: int
    updated: datetime | None
    gated: bool


class _Lfs(msgspec.Struct):
    sha256: str
    size: int


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    blob_id: str | None = msgspec.field(default=None, name="blobId")
    lfs: _Lfs | None = None


class _Info(msgspec.Struct):
    """What we read of the Hub's answer about a model; it has more fields."""

    id: str
    sha: str
    siblings: list[_Sibling] = []
    gated: bool | str = False
    tags: list[str] = []
    card: Any = msgspec.field(default=None, name="cardData")


class _Hit(msgspec.Struct):
    id: str
    downloads: int = 0
    likes: int = 0
    updated: datetime | None = msgspec.field(default=None, name="lastModified")
    gated: bool | str = False


class Hub:
    """huggingface_hub behind our names: HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HTTPS_PROXY and
    SSL_CERT_FILE mean what they mean there. Every method may be called from any thread.

    Its HfApi is not used: it retries a search for 20 s, and nothing bounds how long a look-up takes.
    """

    def __init__(
        self, endpoint: str | None = None, token: str | None = None, *, within: float = _WITHIN_S
    ) -> None:
        """``token``: None means that of HF_TOKEN or of ``hf auth login``. ``within``: seconds after which
        a look-up gives up."""
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        self.token = token
        self._within = within

    def repository(self, repo: str, revision: str | None = None) -> HubRepository:
        """The repository's files at a branch, tag or commit; the main branch by default.

        A renamed repository is found by its old name too. Raises HubError.
        """

        def look_up() -> _Info:
            validate_repo_id(repo)
            url = f"{self.endpoint}/api/models/{repo}"
            if revision is not None:
                url += f"/revision/{quote(revision, safe='')}"
            return msgspec.json.decode(self._get(url, {"blobs": "true"}), type=_Info)

        info = self._asked(look_up, repo)
        return HubRepository(
            repo=info.id,
            revision=info.sha,
            gated=bool(info.gated),
            licence=_licence(info),
            files=tuple(_file(info, sibling) for sibling in info.siblings),
            renamed_from=repo if info.id != repo else None,
        )

    def search(self, text: str, limit: int = 20) -> list[HubHit]:
        """GGUF repositories whose name holds ``text``, the most downloaded first. Raises HubError."""
        parameters = {
            "search": text.strip(),
            "filter": "gguf",
            "sort": "downloads",
            "limit": str(limit),
            "expand": ["downloads", "likes", "lastModified", "gated"],
        }

        def look_up() -> list[_Hit]:
            return msgspec.json.decode(self._get(f"{self.endpoint}/api/models", parameters), type=list[_Hit])

        return [
            HubHit(hit.id, hit.downloads, hit.likes, hit.updated, bool(hit.gated))
            for hit in self._asked(look_up, text)[:limit]
        ]

    def url(self, file: HubFile) -> str:
        """Where ``file`` can be got; it redirects to a content network."""
        path = urlsplit(hf_hub_url(file.repo, file.path, revision=file.revision)).path
        return self.endpoint + path

    def read(self, file: HubFile, offset: int, length: int) -> bytes:
        """``length`` bytes of ``file`` from ``offset`` on, as far as there are any. Raises HubError."""
        end = min(offset + length, file.size)
        if offset >= end:
            return b""
        headers = self.headers() | {"Range": f"bytes={offset}-{end - 1}", "Accept-Encoding": "identity"}
        try:
            with get_session().stream(
                "GET", self.url(file), headers=headers, timeout=self._within, follow_redirects=True
            ) as response:
                hf_raise_for_status(response)
                if response.headers.get("content-range") != f"bytes {offset}-{end - 1}/{file.size}":
                    raise self._no_part(file, response.headers.get("content-type", ""))
                if names_other(response, file):
                    raise HubError("not_found", f"{file.path} has changed: look {file.repo} up again.")
                data = bytearray()
                for chunk in response.iter_raw():
                    data += chunk
                    if len(data) > end - offset:
                        raise self._no_part(file, "")
        except Exception as error:
            raise self.error(error, file.repo) from error
        return bytes(data)

    def _no_part(self, file: HubFile, content_type: str) -> HubError:
        host = urlsplit(self.endpoint).netloc
        if "html" in content_type:
            return page_error(host)
        return HubError("server", f"{host} sent something else than the part of {file.path} asked for.")

    def page(self, repo: str) -> str:
        """The repository's page for a person, where its licence is."""
        return f"{self.endpoint}/{repo}"

    def headers(self, token: str | None = None) -> dict[str, str]:
        """Headers of a request to the Hub, with the access token where there is one."""
        return build_hf_headers(token=token or self.token, library_name="slipstream", library_version="0.1.0")

    def offline(self) -> HubError:
        """Why nothing is asked while huggingface_hub's offline mode is on."""
        return self.error(OfflineModeIsEnabled(), "")

    def error(self, error: Exception, repo: str) -> HubError:
        """What an exception of a request to this Hub means; one that is no such is raised again."""
        return hub_error(error, repo=repo, endpoint=self.endpoint, now=time.time())

    def _get(self, url: str, parameters: dict[str, Any]) -> bytes:
        """The body of a JSON answer. Raises HubError and what huggingface_hub raises."""
        response = get_session().get(
            url, params=parameters, headers=self.headers(), timeout=self._within, follow_redirects=True
        )
        hf_raise_for_status(response)
        if "json" not in response.headers.get("content-type", ""):
            raise page_error(urlsplit(self.endpoint).netloc)
        return response.content

    def _asked(self, look_up: Callable[[], _T], repo: str) -> _T:
        """The outcome of ``look_up``, waited for no longer than we promise. Raises HubError."""
        # In a thread of its own, as no timeout bounds how long a name server may take.
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(look_up())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="hub look-up", daemon=True).start()
        try:
            return future.result(self._within)
        except TimeoutError:
            host = urlsplit(self.endpoint).netloc
            raise HubError(
                "timeout", f"{host} does not answer: check that this computer is online."
            ) from None
        except Exception as error:
            raise self.error(error, repo) from error


def names_other(response: httpx.Response, file: HubFile) -> bool:
    """Whether the Hub said, before it redirected to a content network, that the file's content is another."""
    for step in (*response.history, response):
        etag = step.headers.get(constants.HUGGINGFACE_HEADER_X_LINKED_ETAG, "").strip('"')
        if re.fullmatch("[0-9a-f]{64}", etag):
            return file.sha256 is not None and etag != file.sha256
    return False


def _file(info: _Info, sibling: _Sibling) -> HubFile:
    size = sibling.lfs.size if sibling.lfs else sibling.size
    sha256 = sibling.lfs.sha256 if sibling.lfs else None
    return HubFile(
        info.id, info.sha, sibling.rfilename, max(0, size or 0), sha256, sha256 or sibling.blob_id or ""
    )


def _licence(info: _Info) -> str | None:
    """The licence's short name, such as "apache-2.0"; None where the repository names none."""
    card = info.card if isinstance(info.card, dict) else {}
    name = card.get("license")
    if name == "other":
        name = card.get("license_name") or name
    if not isinstance(name, str):
        name = next((tag.partition(":")[2] for tag in info.tags if tag.startswith("license:")), None)
    return name
