"""What an offer is found out from: the Hub's listings, files' headers, and the memory of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from model_store.fit import FreeMemory, Loading
from model_store.hub import Hub, HubRepository, RepoLink
from model_store.remote_header import RemoteHeaders
from model_store.repository_files import RepositoryFiles, group_by_name, read_groups


class OfferError(Exception):
    """Nothing can be offered; the text is a sentence for the person."""

    def __init__(
        self, kind: Literal["unknown", "no_model", "no_quantisation", "no_drafter", "cancelled"], message: str
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class Lookup:
    """Goes with one offer, and ends when a person cancels it."""

    hub: Hub
    headers: RemoteHeaders
    loading: Loading
    free: FreeMemory
    cancelled: Callable[[], bool]

    def go_on(self) -> None:
        """Raises OfferError once cancelled."""
        if self.cancelled():
            raise OfferError("cancelled", "Looking it up was cancelled.")

    def listing(self, link: RepoLink) -> tuple[HubRepository, RepositoryFiles]:
        """The repository and what its files are. Raises HubError and OfferError."""
        self.go_on()
        repository = self.hub.repository(link.repo, link.revision)
        files = read_groups(group_by_name(repository), self.headers, self.cancelled)
        self.go_on()
        return repository, files
