"""Which models of the catalogue suit this machine, told without asking the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from model_store.catalog import CatalogEntry, SizeClass, matches
from model_store.fit import Fit, FreeMemory, Verdict, shown_bytes

_TIGHT = 0.85  # of what a model wants; with less it will not fit
_BRISK = 6_000_000_000  # bytes that a processor alone reads often enough in a second
_ORDER: tuple[Verdict, ...] = ("fits", "tight", "too_large")
_CLASSES: tuple[SizeClass, ...] = ("small", "mid", "large")


class Suggestion(Struct, frozen=True):
    """A model of the catalogue; ``fit`` rests on what the catalogue says of its need."""

    entry: CatalogEntry
    fit: Fit


def suggestions(entries: Iterable[CatalogEntry], free: FreeMemory) -> list[Suggestion]:
    """All that can be downloaded: those that fit first, and of these the largest that will answer briskly.

    For every token all weights are read, so a model must lie in graphics memory or be small.
    """
    brisk = free.graphics if free.graphics is not None else _BRISK
    found = [Suggestion(entry, _fit(entry, free, brisk)) for entry in entries if entry.target is not None]
    return sorted(found, key=lambda each: (_ORDER.index(each.fit.verdict), _place(each, brisk)))


def first_choices(found: Sequence[Suggestion], count: int = 3) -> list[Suggestion]:
    """A few to begin with, the smallest first: of each size the largest that fits, for a start."""
    usable = [each for each in found if each.fit.verdict == "fits"]
    usable += [each for each in found if each.fit.verdict == "tight"]
    chosen: list[Suggestion] = []
    for size in _CLASSES:
        chosen += [each for each in usable if each.entry.size_class == size][:1]
    chosen = sorted(chosen, key=usable.index)[:count]
    chosen += [each for each in usable if each not in chosen][: count - len(chosen)]
    return sorted(chosen, key=lambda each: each.entry.min_memory)


def already_here(entries: Iterable[CatalogEntry], files: Iterable[tuple[str, str]]) -> set[str]:
    """Ids of the entries whose models are among ``files``, each a repository and a path in it."""
    found = set()
    by_repository: dict[str, list[str]] = {}
    for repo, file in files:
        by_repository.setdefault(repo, []).append(file)
    for entry in entries:
        target = entry.target
        if target is None:
            continue
        for file in by_repository.get(target.repo, ()):
            if matches(file, target.file) or matches(file, target.others):
                found.add(entry.id)
    return found


def _fit(entry: CatalogEntry, free: FreeMemory, brisk: int) -> Fit:
    wanted = entry.min_memory
    verdict: Verdict = "too_large"
    if wanted <= free.all:
        verdict = "fits"
    elif wanted * _TIGHT <= free.all:
        verdict = "tight"
    words = f"Wants about {shown_bytes(wanted)} of free memory; {shown_bytes(free.all)} are free."
    if wanted > brisk and verdict != "too_large":
        words += " Large for the processor: answers may come slowly."
    return Fit(verdict=verdict, needed=wanted, free=free.all, words=words)


def _place(each: Suggestion, brisk: int) -> tuple[bool, int]:
    slow = each.entry.min_memory > brisk
    return slow, each.entry.min_memory if slow else -each.entry.min_memory
