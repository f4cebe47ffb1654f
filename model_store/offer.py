"""What Get would download: the quantisation for this machine and the drafter that fits it best.

All of it is found out from the listing and from headers, before anything is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from model_store.catalog import Catalog, CatalogEntry, CatalogTarget, matches
from model_store.check import check_use
from model_store.drafter_choice import DrafterChoice, Drafters
from model_store.fingerprint import tokenizer_fingerprint
from model_store.fit import Fit, FreeMemory, Loading, MemoryNeed, fit, target_need
from model_store.hub import Hub, HubFile, RepoLink, parse_repo
from model_store.offer_lookup import Lookup, OfferError
from model_store.quantisation import rank
from model_store.remote_header import RemoteHeaders
from model_store.repository_files import FileGroup, RepositoryFiles, Variant


class TargetChoice(Struct, frozen=True, kw_only=True):
    """One quantisation. ``need`` is what it takes in memory without a drafter of its own; so is ``fit``."""

    label: str
    files: tuple[HubFile, ...]
    size: int
    need: MemoryNeed
    fit: Fit

    @property
    def needed(self) -> int:
        """Bytes of memory."""
        return self.need.total


class Offer(Struct, frozen=True, kw_only=True):
    """One job: the files of ``target``, then those of ``drafter``.

    ``targets`` and ``drafters`` are all there are to choose from, those chosen included. ``fit`` is for both
    together. ``why`` says why this drafter, or why none. ``fingerprint`` is the target's tokenizer's.
    """

    title: str
    repo: str
    revision: str
    licence: str | None
    gated: bool
    page: str
    target: TargetChoice
    targets: tuple[TargetChoice, ...]
    drafter: DrafterChoice | None
    drafters: tuple[DrafterChoice, ...]
    fit: Fit
    why: str
    fingerprint: str | None
    notices: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[HubFile, ...]:
        return self.target.files + (self.drafter.files if self.drafter is not None else ())

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.files)


class Offers:
    """Makes offers from the catalogue and the Hub; may be used from several threads."""

    def __init__(self, hub: Hub, catalog: Catalog, headers: RemoteHeaders) -> None:
        self._hub = hub
        self._catalog = catalog
        self._headers = headers

    def offer(
        self,
        text: str,
        *,
        quantisation: str | None = None,
        drafter: str = "auto",
        loading: Loading = Loading(),
        free: FreeMemory,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Offer:
        """``text`` is an id or title of the catalogue, a repository, or a link to one or to a file in it.

        ``quantisation`` names one of the model's. ``drafter`` is "auto", "none", the path or name of a file
        in the same repository, a link to one elsewhere, "inside" for MTP heads in the target, or a kind.
        Raises OfferError, HubError and ModelFileError, all in words for a person.
        """
        lookup = Lookup(self._hub, self._headers, loading, free, cancelled)
        entry = self._catalog.find(text)
        link = self._link(text, entry)
        repository, files = lookup.listing(link)
        named = entry.target if entry is not None else None
        meant = _meant(files, named, link)
        targets = _targets(meant.group, named, lookup)
        target = _target(meant, targets, quantisation or link.quantisation)
        lookup.go_on()
        gguf = self._headers.gguf(target.files[0])
        check_use(gguf.name, gguf.header, "chat")
        drafters = Drafters(lookup, gguf, target.size, target.needed)
        drafters.add_named(entry.drafters if entry is not None else (), files)
        drafters.add_beside(files)
        pick = drafters.pick(drafter)
        return Offer(
            title=entry.title if entry is not None else meant.group.name,
            repo=repository.repo,
            revision=repository.revision,
            licence=repository.licence or (entry.licence if entry is not None else None),
            gated=repository.gated,
            page=self._hub.page(repository.repo),
            target=target,
            targets=targets,
            drafter=pick.chosen,
            drafters=pick.all,
            fit=fit(target.needed + (pick.chosen.needed if pick.chosen is not None else 0), free),
            why=pick.why,
            fingerprint=tokenizer_fingerprint(gguf.header),
            notices=(*_notices(meant, files, named, target), *drafters.notices),
        )

    def _link(self, text: str, entry: CatalogEntry | None) -> RepoLink:
        if entry is not None:
            if entry.target is None:
                raise OfferError(
                    "no_model", f"{entry.title} comes with the program: there is nothing to get."
                )
            return RepoLink(entry.target.repo)
        link = parse_repo(text, self._hub.endpoint)
        if link is None:
            raise OfferError(
                "unknown",
                f"Nothing in the catalogue is called {text!r}, and it names no repository: search for it.",
            )
        return link


def _targets(group: FileGroup, named: CatalogTarget | None, lookup: Lookup) -> tuple[TargetChoice, ...]:
    """Its quantisations, the smallest first. Raises HubError and ModelFileError."""
    pattern = named.others if named is not None else "*"
    choices = []
    for variant in [each for each in group.variants if matches(each.first.path, pattern)] or group.variants:
        header = lookup.headers.outline(variant.first)
        need = target_need(header, lookup.loading, variant.size, heads=group.heads > 0)
        choices.append(
            TargetChoice(
                label=variant.label,
                files=variant.files,
                size=variant.size,
                need=need,
                fit=fit(need.total, lookup.free),
            )
        )
    return tuple(choices)


class _Meant(NamedTuple):
    """A model, and of its quantisations the one that was linked to or that the catalogue recommends."""

    group: FileGroup
    linked: Variant | None = None
    recommended: Variant | None = None


def _meant(files: RepositoryFiles, named: CatalogTarget | None, link: RepoLink) -> _Meant:
    """Raises OfferError where no model is."""
    if link.path is not None and link.path.lower().endswith(".gguf"):
        return _linked(files, link.path)
    models = files.of("chat")
    if not models:
        raise OfferError("no_model", f"There is no chat model in {files.repo} that can be used here.")
    for pattern in (named.file, named.others) if named is not None else ():
        for group in models:
            meant = [each for each in group.variants if matches(each.first.path, pattern)]
            if meant:
                best = min(meant, key=lambda each: (rank(each.label), each.size))
                return _Meant(group, recommended=best)
    # The one in most quantisations is what the repository is for.
    return _Meant(max(models, key=lambda each: (len(each.variants), each.variants[-1].size)))


def _linked(files: RepositoryFiles, path: str) -> _Meant:
    group = files.group_of(path)
    if group is None:
        raise OfferError("no_model", f"{path} is gone from {files.repo}.")
    if group.problem is not None:
        raise OfferError("no_model", group.problem)
    if group.kind != "chat":
        raise OfferError("no_model", f"{path} is {group.noun}: choose a chat model.")
    linked = next(each for each in group.variants if path in [file.path for file in each.files])
    return _Meant(group, linked=linked)


def _target(meant: _Meant, targets: Sequence[TargetChoice], wanted: str | None) -> TargetChoice:
    """The quantisation called ``wanted``, else the one linked to, else the best that fits, else the smallest.

    Raises OfferError.
    """
    if wanted is not None:
        for choice in targets:
            if choice.label.casefold() == wanted.casefold():
                return choice
        labels = ", ".join(choice.label for choice in targets if choice.label)
        raise OfferError(
            "no_quantisation", f"There is no {wanted} of {meant.group.name}; there are {labels}."
        )
    if meant.linked is not None:
        return next(choice for choice in targets if choice.files == meant.linked.files)
    fitting = [choice for choice in targets if choice.fit.verdict == "fits"]
    for choice in fitting:
        if meant.recommended is not None and choice.files == meant.recommended.files:
            return choice
    return min(fitting, key=lambda each: (rank(each.label), each.size), default=targets[0])


def _notices(
    meant: _Meant, files: RepositoryFiles, named: CatalogTarget | None, target: TargetChoice
) -> list[str]:
    if named is not None and not any(matches(each.first.path, named.file) for each in meant.group.variants):
        return [f"{named.file} is gone from {files.repo}: {target.files[0].name} is offered instead."]
    others = [group.name for group in files.of("chat") if group is not meant.group]
    if named is None and meant.linked is None and others:
        return [f"{files.repo} also has {', '.join(others)}: link to a file to get another model."]
    return []
