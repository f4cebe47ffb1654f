"""What went wrong with models, downloads or the Hub, as one sentence for the person."""

from __future__ import annotations

from msgspec import Struct

from model_store.catalog import CatalogError
from model_store.check import ModelFileError
from model_store.download import DownloadError
from model_store.hub_error import HubError
from model_store.imported import ImportedError
from model_store.offer_lookup import OfferError
from model_store.removal import RemovalError
from model_store.store import StoreError


class StoreProblem(Struct, frozen=True):
    """``kind`` as in the error it comes from, "disk" for the system's; ``link`` is a page that helps."""

    kind: str
    message: str
    link: str | None = None


def store_problem(error: Exception) -> StoreProblem | None:
    """What ``error`` says; None for one that is nobody's fault but the program's."""
    match error:
        case HubError() | DownloadError():
            return StoreProblem(error.kind, error.message, error.link)
        case OfferError() | StoreError() | RemovalError():
            return StoreProblem(error.kind, str(error))
        case ImportedError() | ModelFileError() | CatalogError():
            return StoreProblem("file", str(error))
        case OSError():
            reason = (error.strerror or type(error).__name__).lower()
            return StoreProblem("disk", f"{error.filename or 'The disk'}: {reason}.")
        case _:
            return None
