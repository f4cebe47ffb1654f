"""The group of what the Hub found: repositories, and in each its quantisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from model_store.repo_link import parse_repo
from ui.models.card_view import CardView, hit_view, hub_key
from ui.models.downloads import Wish
from ui.models.offer_shelf import OfferShelf
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.hub import HubHit
    from model_store.stop_signal import StopSignal
    from model_store.store import Store

PAUSE_MS = 400
_LEAST = 2  # letters


class SearchShelf(OfferShelf):
    """``search`` waits for a pause in typing; another text ends the search before."""

    def __init__(self, theme: Theme, session: Session, parent: QObject | None = None) -> None:
        super().__init__(theme, session, "Search results", self._view, parent)
        self._text = ""
        self._hits: dict[str, HubHit] = {}
        self._links: dict[str, str] = {}
        self._searching: StopSignal | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.search_now)
        self.group.asked_again.connect(self.search_now)
        self.group.hide()

    def search(self, text: str) -> None:
        """Search for ``text`` unless more is typed at once."""
        if text.strip() == self._text:
            return
        self._end_search()
        self._text = text.strip()
        self.group.setVisible(len(self._text) >= _LEAST)
        if len(self._text) < _LEAST:
            self._show({})
            return
        self.group.say("Searching…")
        self._timer.start()

    def search_now(self) -> None:
        """Without waiting for a pause."""
        self._end_search()
        text = self._text
        if len(text) < _LEAST:
            return
        self.group.say("Searching…")

        def ask(store: Store, stop: StopSignal) -> list[HubHit]:
            from model_store.hub import HubHit

            link = parse_repo(text, store.hub.endpoint)
            if link is not None:
                return [HubHit(link.repo, 0, 0, None, False)]
            return store.search(text)

        self._searching = self._session.models.ask(
            ask, lambda hits: self._take(text, hits), self._search_failed
        )

    def wish(self, key: str) -> Wish:
        return Wish(self._links.get(key) or self._hits[key].repo)

    def repo(self, key: str) -> str:
        return self._hits[key].repo

    def _end_search(self) -> None:
        self._timer.stop()
        if self._searching is not None:
            self._searching.stop()
            self._searching = None

    def _take(self, text: str, hits: list[HubHit]) -> None:
        self._searching = None
        found = {hub_key(hit.repo): hit for hit in hits}
        link = "/" in text and len(hits) == 1 and hits[0].updated is None and not hits[0].downloads
        self._links = dict.fromkeys(found, text) if link else {}
        self._show(found)
        self.group.say("" if hits else "The Hub has no GGUF models of such a name.")
        if link:  # that is what was asked for
            for key in found:
                self.look_up(key, self.wish(key))

    def _search_failed(self, problem: StoreProblem) -> None:
        self._searching = None
        self._show({})
        self.group.say(problem.message, again=True)

    def _show(self, hits: dict[str, HubHit]) -> None:
        for key in [key for key in self._looking if key not in hits]:
            self.stop_looking(key)
        self._hits = hits
        for key in [key for key in self.offers if key not in hits]:
            del self.offers[key]
        self._wishes = {key: wish for key, wish in self._wishes.items() if key in hits}
        self.problems.clear()
        self.group.show_keys(list(hits))

    def _view(self, key: str) -> CardView:
        return hit_view(
            self._hits[key],
            self.offers.get(key),
            self._downloads.getting(key),
            self.problems.get(key),
            self.is_looking(key),
        )
