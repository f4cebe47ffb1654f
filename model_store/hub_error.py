"""What can go wrong between this computer and the Hugging Face Hub, in words that say what to do."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from huggingface_hub import constants
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from model_store.http_library import httpx

HubErrorKind = Literal[
    "gated",
    "unauthorised",
    "not_found",
    "moved",
    "offline",
    "proxy",
    "certificate",
    "rate_limited",
    "server",
    "timeout",
]

PASSING: frozenset[HubErrorKind] = frozenset({"offline", "rate_limited", "server", "timeout", "moved"})
"""Kinds that may be gone at the next try."""

_TOKEN = "put an access token (huggingface.co/settings/tokens) into the token field"


class HubError(Exception):
    """``kind`` for the program, ``message`` for the person: what happened and what to do.

    ``retry_after`` is how many seconds the server asked us to wait, ``link`` a page that helps.
    """

    def __init__(
        self,
        kind: HubErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        link: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.link = link


def hub_error(error: Exception, *, repo: str, endpoint: str, now: float = 0.0) -> HubError:
    """What ``error``, raised while asking ``endpoint`` about ``repo``, means.

    ``now``: seconds since 1970, for a Retry-After that is a date. Errors that are nobody's but ours are
    raised again.
    """
    if isinstance(error, HubError):
        return error
    host = urlsplit(endpoint).netloc or endpoint
    if isinstance(error, OfflineModeIsEnabled):
        return HubError(
            "offline",
            "Offline mode is on, so the Hub is not asked: turn it off in the settings, and unset "
            "HF_HUB_OFFLINE where that is set. Models on this computer work without it.",
        )
    if isinstance(error, HfHubHTTPError):
        return _status_error(error, repo, endpoint, now)
    if isinstance(error, HFValidationError):
        return HubError("not_found", f'"{repo}" is not the name of a repository: it should be owner/name.')
    if isinstance(error, httpx.TransportError | httpx.TooManyRedirects):
        return _transport_error(error, repo, host, endpoint)
    if isinstance(error, msgspec.DecodeError | httpx.DecodingError):
        return page_error(host)
    raise error


def page_error(host: str) -> HubError:
    """Something between us and the Hub answered in its place."""
    return HubError(
        "offline",
        f"What answered in place of {host} is not the Hub, perhaps this network's sign-in page: "
        "open a browser, sign in, and try again.",
    )


def retry_after(headers: httpx.Headers, now: float) -> float | None:
    """Seconds that a response asks to wait: its Retry-After (a number or a date), or the Hub's ratelimit
    header when nothing remains."""
    value = headers.get("retry-after", "").strip()
    if value.isdigit():
        return float(value)
    if value:
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except ValueError:
            pass
    fields = dict(
        part.strip().split("=", 1) for part in headers.get("ratelimit", "").split(";") if "=" in part
    )
    if fields.get("r") == "0" and fields.get("t", "").isdigit():
        return float(fields["t"])
    return None


def _status_error(error: HfHubHTTPError, repo: str, endpoint: str, now: float) -> HubError:
    """Of a response whose status says that it failed."""
    response = error.response
    status = response.status_code
    link = f"{endpoint}/{repo}"
    sent_token = "authorization" in response.request.headers
    if isinstance(error, GatedRepoError):
        if sent_token and status == 403:
            what = f"ask for access at {link}; the account of your token does not have it yet"
        else:
            what = f"accept it at {link}, then {_TOKEN}"
        return HubError("gated", f"{repo} has a licence to accept first: {what}.", link=link)
    if isinstance(error, RevisionNotFoundError):
        return HubError(
            "not_found", f"{repo} no longer has this revision: look the repository up again.", link=link
        )
    if isinstance(error, EntryNotFoundError):
        return HubError("not_found", f"{repo} no longer has this file: choose another one.", link=link)
    if isinstance(error, DisabledRepoError):
        return HubError("not_found", f"The Hub has disabled {repo}: choose another repository.", link=link)
    if isinstance(error, RepositoryNotFoundError):
        what = "or your token may not see it" if sent_token else f"or it is private: then {_TOKEN}"
        return HubError("not_found", f"There is no repository {repo}: check its name, {what}.")
    if status == 401:
        return HubError(
            "unauthorised",
            "The Hub does not accept your access token, which may have expired: make a new one at "
            "huggingface.co/settings/tokens and put it into the token field."
            if sent_token
            else f"The Hub wants to know who asks for {repo}: {_TOKEN}.",
            link=f"{constants._HF_DEFAULT_ENDPOINT}/settings/tokens",
        )
    if status == 403:
        return HubError(
            "unauthorised",
            f"Your access token may not read {repo}: make one that may at "
            "huggingface.co/settings/tokens and put it into the token field.",
            link=link,
        )
    if status == 404:
        return HubError("not_found", f"{repo} was not found: check its name.", link=link)
    if status == 407:
        return HubError("proxy", "The proxy wants a user name and password: add them to HTTPS_PROXY.")
    wait = retry_after(response.headers, now)
    if status == 429:
        when = f"in {wait:.0f} seconds" if wait is not None else "in a few minutes"
        return HubError(
            "rate_limited",
            f"The Hub is asked too often from here: try again {when}; an access token allows more.",
            retry_after=wait,
        )
    return HubError(
        "server", f"The Hub has a problem (status {status}): try again later.", retry_after=wait, link=link
    )


def _transport_error(error: httpx.HTTPError, repo: str, host: str, endpoint: str) -> HubError:
    """Of a request that has no whole response."""
    if isinstance(error, httpx.TooManyRedirects):
        return HubError(
            "moved", f"{repo} sends us round in circles: look it up on {host} under its new name."
        )
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return HubError(
            "certificate",
            f"The certificate of {host} is not trusted. Where the network inspects traffic, name its "
            "certificate authority's file in SSL_CERT_FILE.",
        )
    proxy = proxy_for(endpoint)
    if isinstance(error, httpx.ProxyError) or (proxy is not None and isinstance(error, httpx.ConnectError)):
        return HubError(
            "proxy", f"The proxy {proxy or 'of this network'} cannot be reached: check HTTPS_PROXY."
        )
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return HubError("timeout", f"{host} does not answer: try again later.")
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
        return HubError("server", f"{host} broke off: try again.")
    return HubError("offline", f"{host} cannot be reached: check that this computer is online.")


def proxy_for(url: str) -> str | None:
    """The proxy from the environment through which ``url`` is asked, without its password."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return proxy.rpartition("@")[2]


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
