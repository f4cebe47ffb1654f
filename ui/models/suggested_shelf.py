"""The group of catalogue models that suit this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject

from app.suggestions import Suggestion, already_here, suggestions
from ui.models.card_view import CardView, catalog_key, suggested_view
from ui.models.downloads import Wish
from ui.models.offer_shelf import OfferShelf
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.catalog import CatalogEntry
    from model_store.listed_sizes import ListedSizes
    from model_store.stop_signal import StopSignal
    from model_store.store import Store

_AT_FIRST = 6


class _Answer(NamedTuple):
    """``here`` are ids of models that are on this machine."""

    found: list[Suggestion]
    here: set[str]
    notices: tuple[str, ...]


class SuggestedShelf(OfferShelf):
    """Of the models that are seen the Hub is asked for listings, one after another: headers, from which an
    offer is made, take megabytes, and are read only for what a person wants."""

    def __init__(self, theme: Theme, session: Session, parent: QObject | None = None) -> None:
        super().__init__(theme, session, "Recommended for this machine", self._view, parent)
        self._found: dict[str, Suggestion] = {}
        self._filter = ""
        self.offline = False  # the Hub could not be reached
        self._sizes: dict[str, ListedSizes | None] = {}
        self._asking = False
        self.group.begin_with(_AT_FIRST)
        self.group.shown_changed.connect(self._ask_next)
        self.group.asked_again.connect(self.ask_again)
        session.downloads.jobs_changed.connect(self._adopt)

    def fill(self) -> None:
        """Read the catalogue, and how much memory is free."""

        def read(store: Store, stop: StopSignal) -> _Answer:
            catalog = store.catalog()
            entries = catalog.entries
            files = [
                (manifest.repository, manifest.file)
                for path, manifest in store.manifests.all().items()
                if path.exists()
            ]
            return _Answer(
                suggestions(entries, store.free_memory()), already_here(entries, files), catalog.notices
            )

        self._session.models.ask(read, self._take)

    def filter(self, text: str) -> None:
        """Show only models of whose title and description all words of ``text`` are a part."""
        self._filter = text
        self._show()

    def ask_again(self) -> None:
        """Ask the Hub again, after it could not be reached."""
        self.offline = False
        self._sizes = {key: sizes for key, sizes in self._sizes.items() if sizes is not None}
        self.group.say("")
        self._ask_next()

    def wish(self, key: str) -> Wish:
        return Wish(self._found[key].entry.id)

    def repo(self, key: str) -> str:
        target = self._found[key].entry.target
        return target.repo if target is not None else ""

    def _take(self, answer: _Answer) -> None:
        before = self._found
        found = {catalog_key(each.entry): each for each in answer.found}
        # How much memory is free changes all the time: cards that are there do not move for it.
        order = {key: number for number, key in enumerate(before)}
        self._found = dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))
        for key in list(self._found):
            # What has just come stays where it was until the page is made anew.
            if self._found[key].entry.id in answer.here and self._downloads.getting(key) is None:
                del self._found[key]
        if answer.notices and not self.offline:
            self.group.say(" ".join(answer.notices))
        if before.keys() != self._found.keys():
            self._adopt()
        self._show()

    def _show(self) -> None:
        words = self._filter.casefold().split()
        self.group.show_keys(
            [
                key
                for key, each in self._found.items()
                if all(w in f"{each.entry.title} {each.entry.description}".casefold() for w in words)
            ]
        )
        self.group.setVisible(bool(self.group.shown) or not words)

    def _adopt(self) -> None:
        """Downloads that an earlier program began belong to their cards."""
        for key, each in self._found.items():
            if self._downloads.adopt(key, Wish(each.entry.id), each.entry.title) is not None:
                self.group.refresh(key)

    def _view(self, key: str) -> CardView:
        return suggested_view(
            self._found[key],
            self._downloads.getting(key),
            sizes=self._sizes.get(key),
            offer=self.offers.get(key),
        )

    @property
    def settled(self) -> bool:
        """Nothing is being asked about the models that are seen."""
        return self.offline or (not self._asking and all(key in self._sizes for key in self.group.shown))

    def _ask_next(self) -> None:
        if self.offline or self._asking:
            return
        for key in self.group.shown:
            if key not in self._sizes:
                self._asking = True
                self._ask_sizes(key, self._found[key].entry)
                return

    def _ask_sizes(self, key: str, entry: CatalogEntry) -> None:
        self._session.models.ask(
            lambda store, stop: store.listed_sizes(entry),
            lambda sizes: self._told(key, sizes),
            lambda problem: self._not_told(key, problem),
        )

    def _told(self, key: str, sizes: ListedSizes | None) -> None:
        self._asking = False
        self._sizes[key] = sizes
        self.group.refresh(key)
        self._ask_next()

    def _not_told(self, key: str, problem: StoreProblem) -> None:
        self._asking = False
        if problem.kind == "not_found":
            self._sizes[key] = None
        else:
            self.offline = True
            words = f"{problem.message} What models take on disk is not known until then."
            self.group.say(words, again=True)
        self._ask_next()
