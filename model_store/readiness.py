"""How a model that is here will run: with which drafter, and whether both fit into memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from model_store.check import ModelFileError, read_model_file
from model_store.drafting_kind import DraftKind, heads_inside
from model_store.fit import Fit, FreeMemory, Loading, MemoryNeed, drafter_need, fit, target_need
from model_store.library import ModelEntry
from model_store.pairing import check_drafter
from model_store.split import parts_of

_LARGEST_SHARE = 0.5  # of its target's size, for a chat model to be worth while as its drafter


class Readiness(Struct, frozen=True, kw_only=True):
    """``kind`` is how it drafts beside the look-ups, None for not at all; ``inside``: with its own heads.

    ``problem`` says why ``drafter`` cannot be used. ``target`` and ``beside`` are what each takes in memory.
    """

    drafter: Path | None
    drafter_bytes: int
    kind: DraftKind | None
    inside: bool
    problem: str | None
    target: MemoryNeed
    beside: MemoryNeed | None
    fit: Fit


class Candidate(Struct, frozen=True):
    """A file that could draft for a model; ``problem`` says why it cannot."""

    entry: ModelEntry
    kind: DraftKind | None
    problem: str | None


def readiness(entry: ModelEntry, drafter: Path | None, loading: Loading, free: FreeMemory) -> Readiness:
    """Of ``entry`` with ``drafter``, None for what is inside it. Reads both headers.

    Raises ModelFileError when the model itself cannot be used.
    """
    header = read_model_file(entry.path)
    inside = drafter is None and heads_inside(header) > 0
    kind: DraftKind | None = "mtp" if inside else None
    problem, beside, size = None, None, 0
    if drafter is not None:
        try:
            size = sum(part.stat().st_size for part in parts_of(drafter) if part.exists())
            kind = check_drafter(entry.path, drafter)
            beside = drafter_need(read_model_file(drafter), header, loading, size)
        except ModelFileError as error:
            problem = str(error)
    target = target_need(header, loading, entry.size_bytes, heads=inside)
    needed = target.total + (beside.total if beside is not None else 0)
    return Readiness(
        drafter=drafter,
        drafter_bytes=size,
        kind=kind,
        inside=inside,
        problem=problem,
        target=target,
        beside=beside,
        fit=fit(needed, free),
    )


def drafter_candidates(target: ModelEntry, entries: Iterable[ModelEntry]) -> list[Candidate]:
    """What of ``entries`` could draft for ``target``: drafters first, then small models of its vocabulary;
    those that fit before those that do not."""
    found: list[Candidate] = []
    for entry in entries:
        small = entry.kind == "chat" and entry.size_bytes <= _LARGEST_SHARE * target.size_bytes
        related = entry.fingerprint is not None and entry.fingerprint == target.fingerprint
        if entry.problem is not None or not (entry.kind == "drafter" or (small and related)):
            continue
        try:
            found.append(Candidate(entry, check_drafter(target.path, entry.path), None))
        except ModelFileError as error:
            found.append(Candidate(entry, None, str(error)))
    return sorted(found, key=lambda each: (each.problem is not None, each.entry.kind != "drafter"))
