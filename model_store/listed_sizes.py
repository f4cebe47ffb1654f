"""How large a model of the catalogue and its drafter are, for the price of the Hub's listings alone."""

from __future__ import annotations

from msgspec import Struct

from model_store.catalog import CatalogEntry, matches
from model_store.drafter_choice import precise_but_small
from model_store.hub import Hub, HubError
from model_store.quantisation import rank
from model_store.repository_files import RepositoryFiles, Variant, group_by_name


class ListedSizes(Struct, frozen=True):
    """Bytes on disk of the recommended quantisation ``label``, and of the drafter that is named first, 0 for
    none. What Get takes in the end depends on the machine, and on headers."""

    label: str
    target: int
    drafter: int


def listed_sizes(hub: Hub, entry: CatalogEntry) -> ListedSizes | None:
    """None where the repository has nothing of that name any more. Raises HubError."""
    if entry.target is None:
        return None
    files = group_by_name(hub.repository(entry.target.repo))
    for pattern in (entry.target.file, entry.target.others):
        targets = _matching(files, pattern)
        if targets:
            best = min(targets, key=lambda each: (rank(each.label), each.size))
            return ListedSizes(best.label, best.size, _drafter_size(hub, entry, files, best.size))
    return None


def _drafter_size(hub: Hub, entry: CatalogEntry, beside: RepositoryFiles, target_size: int) -> int:
    for drafter in entry.drafters[:1]:
        try:
            files = beside if drafter.repo == beside.repo else group_by_name(hub.repository(drafter.repo))
        except HubError as error:
            if error.kind != "not_found":
                raise
            return 0
        chosen = precise_but_small(_matching(files, drafter.file), target_size)
        return chosen.size if chosen is not None else 0
    return 0


def _matching(files: RepositoryFiles, pattern: str) -> list[Variant]:
    return [each for group in files.groups for each in group.variants if matches(each.first.path, pattern)]
