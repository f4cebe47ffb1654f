"""Reads what a person typed or pasted to name a repository: owner/name, or a link to it or its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com")
_NAME = r"[A-Za-z0-9][\w.-]*"
_REPO = re.compile(rf"({_NAME}/{_NAME})(?::([\w.-]+))?", re.ASCII)
_NOT_OWNERS = {"api", "blog", "collections", "datasets", "docs", "kernels", "models", "papers", "spaces"}
_TO_FILE = {"blame", "blob", "raw", "resolve", "tree"}


@dataclass(frozen=True, slots=True)
class RepoLink:
    """``path`` is a file or folder of the repository, ``quantisation`` what followed a colon
    (owner/name:Q4_K_M)."""

    repo: str
    revision: str | None = None
    path: str | None = None
    quantisation: str | None = None


def parse_repo(text: str, endpoint: str = "https://huggingface.co") -> RepoLink | None:
    """What ``text`` names; None when it is something to search for.

    Understood are owner/name, owner/name:quantisation, hf://owner/name/file, and links to pages of the
    Hub or of ``endpoint``, with or without https.
    """
    text = text.strip()
    if text.startswith("hf://"):
        owner, name, *path = [*text.removeprefix("hf://").split("/"), "", ""]
        name, _, revision = name.partition("@")
        return _link([owner, name], revision or None, [part for part in path if part])
    scheme, _, rest = text.rpartition("://")
    host = rest.partition("/")[0].lower()
    if host in (*_HOSTS, urlsplit(endpoint).netloc.lower()):
        path = [unquote(part) for part in urlsplit(f"https://{rest}").path.split("/") if part]
        if len(path) > 4 and path[2] in _TO_FILE and path[3] == "refs":  # refs/pr/1
            path[3:6] = ["/".join(path[3:6])]
        if len(path) >= 4 and path[2] in _TO_FILE:
            return _link(path[:2], path[3], path[4:])
        return _link(path[:2], None, [])
    return None if scheme else _link(text.split("/"), None, [])


def _link(repo: list[str], revision: str | None, path: list[str]) -> RepoLink | None:
    match = _REPO.fullmatch("/".join(repo))
    if match is None or repo[0] in _NOT_OWNERS or ".." in match[1]:
        return None
    return RepoLink(match[1], revision, "/".join(path) or None, match[2])
