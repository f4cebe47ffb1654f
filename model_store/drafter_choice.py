"""Which drafter to get with a model: of those there are, the likeliest to pay that is seen to fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from model_store.catalog import CatalogDrafter, matches
from model_store.check import ModelFileError
from model_store.drafting_kind import NOUNS, DraftKind, heads_inside
from model_store.fit import MemoryNeed, drafter_need, fit
from model_store.hub import HubError, HubFile, RepoLink, parse_repo
from model_store.offer_lookup import Lookup, OfferError
from model_store.pairing import check_pair
from model_store.remote_header import RemoteGguf
from model_store.repository_files import FileGroup, RepositoryFiles, Variant

_KINDS: tuple[DraftKind, ...] = ("mtp", "eagle3", "dspark", "dflash")
# A head loses more by being quantised than a model does, and is small beside it.
_LABELS = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "BF16", "F16")
_LARGEST_SHARE = 0.25  # of its target's size
_VERDICTS = ("fits", "tight", "too_large")
_NGRAM = "n-gram drafting works without one"


class DrafterChoice(Struct, frozen=True, kw_only=True):
    """A drafter. ``inside``: the target brings it, so that there are no files.

    ``problem`` says why it cannot be used with the target, once that is ``checked``. ``need`` is what it
    takes in memory beside the target, known once it was checked.
    """

    kind: DraftKind
    name: str
    label: str = ""
    files: tuple[HubFile, ...] = ()
    size: int = 0
    need: MemoryNeed | None = None
    inside: bool = False
    checked: bool = False
    problem: str | None = None

    @property
    def needed(self) -> int:
        """Bytes of memory; for one that was not checked, its size."""
        return self.need.total if self.need is not None else self.size


class DrafterPick(Struct, frozen=True, kw_only=True):
    """The drafter to get, None for none; all there are; and why this one."""

    chosen: DrafterChoice | None
    all: tuple[DrafterChoice, ...]
    why: str


class Drafters:
    """Those for one target on the Hub."""

    def __init__(self, lookup: Lookup, target: RemoteGguf, size: int, needed: int) -> None:
        """``size`` and ``needed`` are the target's bytes, on disk and in memory."""
        self._lookup = lookup
        self._target = target
        self._size = size
        self._needed = needed
        self._found: list[DrafterChoice] = []
        self.notices: list[str] = []
        if heads_inside(target.header):
            self._found.append(DrafterChoice(kind="mtp", name=target.name, inside=True, checked=True))

    def add_named(self, drafters: Sequence[CatalogDrafter], beside: RepositoryFiles) -> None:
        """Those that the catalogue names, in its order; ``beside`` are the files of the target's repository.

        One that is gone only makes a notice. Raises OfferError when cancelled.
        """
        for named in drafters:
            try:
                files = beside if named.repo == beside.repo else self._lookup.listing(RepoLink(named.repo))[1]
            except HubError as error:
                self.notices.append(f"The drafter in {named.repo} could not be looked up: {error.message}")
                continue
            for group in files.groups:
                meant = [each for each in group.variants if matches(each.first.path, named.file)]
                if self._add(group, meant):
                    break
            else:
                self.notices.append(f"The drafter {named.file} is gone from {named.repo}.")

    def add_beside(self, files: RepositoryFiles) -> None:
        """Those in the target's own repository."""
        order = {kind: number for number, kind in enumerate(_KINDS)}
        groups = [group for group in files.of("drafter") if group.draft_kind in order]
        for group in sorted(groups, key=lambda group: order[group.draft_kind or "mtp"]):
            self._add(group, group.variants)

    def pick(self, wanted: str) -> DrafterPick:
        """The first that fits for "auto", none for "none", else the one that is called ``wanted``.

        Raises OfferError for one that does not fit or is not there, and HubError.
        """
        if wanted == "none":
            return DrafterPick(chosen=None, all=tuple(self._found), why="No drafter was asked for.")
        if wanted != "auto":
            number = self._number(wanted)
            checked = self._found[number] = self._check(self._found[number])
            if checked.problem is not None:
                raise OfferError("no_drafter", checked.problem)
            return self._picked(checked)
        problems: list[str] = []
        for number, candidate in enumerate(self._found):
            checked = self._found[number] = self._check(candidate)
            problem = checked.problem or self._lack_of_memory(checked)
            if problem is None:
                return self._picked(checked)
            problems.append(problem)
        why = problems[0].rstrip(".") if problems else "No drafter for this model is known"
        return DrafterPick(chosen=None, all=tuple(self._found), why=f"{why}; {_NGRAM}.")

    def _picked(self, drafter: DrafterChoice) -> DrafterPick:
        why = f"{drafter.name} is {NOUNS[drafter.kind]} that fits it: their headers were compared."
        if drafter.inside:
            why = "Its own MTP heads draft for it."
        return DrafterPick(chosen=drafter, all=tuple(self._found), why=why)

    def _lack_of_memory(self, drafter: DrafterChoice) -> str | None:
        free = self._lookup.free
        alone, together = fit(self._needed, free), fit(self._needed + drafter.needed, free)
        if _VERDICTS.index(together.verdict) <= _VERDICTS.index(alone.verdict):
            return None
        return f"There is too little memory for {drafter.name} beside the model"

    def _add(self, group: FileGroup, variants: Sequence[Variant]) -> bool:
        """Put one of them on the list, if it is not there; False where there is none to put."""
        variant = precise_but_small(variants, self._size)
        if variant is None:
            return False
        if all(choice.files != variant.files for choice in self._found):
            self._found.append(
                DrafterChoice(
                    kind=group.draft_kind or "draft",
                    name=variant.first.name,
                    label=variant.label,
                    files=variant.files,
                    size=variant.size,
                )
            )
        return True

    def _check(self, candidate: DrafterChoice) -> DrafterChoice:
        """The same with what its header says. Raises HubError, and OfferError when cancelled."""
        if candidate.checked:
            return candidate
        self._lookup.go_on()
        try:
            drafter = self._lookup.headers.gguf(candidate.files[0])
            kind = check_pair(self._target, drafter)
        except ModelFileError as error:
            return replace(candidate, checked=True, problem=str(error))
        need = drafter_need(drafter.header, self._target.header, self._lookup.loading, candidate.size)
        return replace(candidate, kind=kind, need=need, checked=True)

    def _number(self, wanted: str) -> int:
        """Where the drafter that a person named is on the list. Raises OfferError and HubError."""
        for number, choice in enumerate(self._found):
            if wanted in _names(choice):
                return number
        link = parse_repo(wanted, self._lookup.hub.endpoint)
        files = self._lookup.listing(link)[1] if link is not None else None
        for group in files.groups if files is not None else ():
            if link is None or group.kind not in ("drafter", "chat"):
                continue
            meant = [
                each
                for each in group.variants
                if (link.path is None or link.path in [file.path for file in each.files])
                and (link.quantisation is None or link.quantisation.casefold() == each.label.casefold())
            ]
            if self._add(group, meant):
                return len(self._found) - 1
        raise OfferError("no_drafter", f"There is no drafter called {wanted}.")


def _names(choice: DrafterChoice) -> set[str]:
    """What a person may call it."""
    names: set[str] = {choice.kind}
    if choice.inside:
        names.add("inside")
    for file in choice.files:
        names |= {file.path, file.name, f"{file.repo}/{file.path}"}
    return names


def precise_but_small(variants: Sequence[Variant], target_size: int) -> Variant | None:
    """The quantisation of a drafter to get beside a target of that size."""
    whole = [variant for variant in variants if not variant.missing]
    small = [variant for variant in whole if variant.size <= _LARGEST_SHARE * target_size]
    for label in _LABELS:
        for variant in small:
            if variant.label == label:
                return variant
    return min(small or whole, key=lambda variant: variant.size, default=None)
