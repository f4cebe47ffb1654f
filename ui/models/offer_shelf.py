"""What groups of models on the Hub have in common: looking up, choosing, getting."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from ui.models import offer_options
from ui.models.card_group import CardGroup
from ui.models.card_view import CardView
from ui.models.downloads import Wish
from ui.models.model_card import ModelCard
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.offer import Offer
    from model_store.stop_signal import StopSignal


class OfferShelf(QObject):
    """Keeps offers by the keys of cards. ``chat_asked`` carries the path of a model that has come."""

    chat_asked = Signal(str)
    token_asked = Signal()

    def __init__(
        self,
        theme: Theme,
        session: Session,
        title: str,
        view_of: Callable[[str], CardView],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._downloads = session.downloads
        self.offers: dict[str, Offer] = {}
        self.problems: dict[str, StoreProblem] = {}
        self._wishes: dict[str, Wish] = {}
        self._looking: dict[str, StopSignal] = {}
        self.group = CardGroup(theme, title, view_of)
        self.group.made.connect(self._made)
        self._downloads.changed.connect(self.group.refresh)

    def wish(self, key: str) -> Wish:
        """What is asked for when nothing was chosen yet."""
        raise NotImplementedError

    def repo(self, key: str) -> str:
        """The repository that the card is about."""
        raise NotImplementedError

    def is_looking(self, key: str) -> bool:
        return key in self._looking

    def look_up(self, key: str, wish: Wish | None = None) -> None:
        """Ask the Hub what there is."""
        self.stop_looking(key)
        self.problems.pop(key, None)
        wish = wish or self._wishes.get(key) or self.wish(key)
        self._wishes[key] = wish
        self._looking[key] = self._downloads.look_up(
            wish, lambda offer: self._offered(key, offer), lambda problem: self._refused(key, problem)
        )
        self.group.refresh(key)

    def stop_looking(self, key: str) -> None:
        stop = self._looking.pop(key, None)
        if stop is not None:
            stop.stop()

    def _offered(self, key: str, offer: Offer) -> None:
        self._looking.pop(key, None)
        self.offers[key] = offer
        self._show_options(key)
        self.group.refresh(key)

    def _refused(self, key: str, problem: StoreProblem) -> None:
        self._looking.pop(key, None)
        self.problems[key] = problem
        card = self.group.cards.get(key)
        if card is not None and card.panel is not None:
            card.panel.say(problem.message)
        self.group.refresh(key)

    # ---- what a person does

    def _made(self, card: ModelCard) -> None:
        key = card.view.key
        card.acted.connect(lambda action: self._act(key, action))
        card.picked.connect(lambda _: self._open_page(key))
        card.options_opened.connect(lambda: self._open_options(key))
        card.options_chosen.connect(lambda label, drafter: self._choose(key, label, drafter))
        card.token_asked.connect(self.token_asked)

    def _act(self, key: str, action: str) -> None:
        getting = self._downloads.getting(key)
        job = getting.job if getting is not None else None
        match action:
            case "get":
                offer, wish = self.offers.get(key), self._wishes.get(key) or self.wish(key)
                if offer is not None and key not in self._looking:
                    self._downloads.take(key, wish, offer)
                else:
                    self.stop_looking(key)
                    self._downloads.get(key, wish)
            case "look_up":
                self.look_up(key)
            case "stop_looking":
                self.stop_looking(key)
                self._downloads.forget(key)
                self.group.refresh(key)
            case "pause" if job is not None:
                self._downloads.pause(job.id)
            case "resume" if job is not None:
                self._downloads.resume(job.id)
            case "retry" if getting is not None:
                self._downloads.again(key)
            case "retry":
                self.look_up(key)
            case "chat" if job is not None:
                self.chat_asked.emit(str(job.files[0].path))

    def _open_page(self, key: str) -> None:
        offer = self.offers.get(key)
        endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        QDesktopServices.openUrl(QUrl(offer.page if offer is not None else f"{endpoint}/{self.repo(key)}"))

    def _open_options(self, key: str) -> None:
        if key in self.offers:
            self._show_options(key)
        elif key not in self._looking:
            self.look_up(key)

    def _choose(self, key: str, label: str, drafter: str) -> None:
        offer = self.offers.get(key)
        if offer is None:
            return
        # Another quantisation asks for the best drafter again, unless one was chosen.
        old = self._wishes.get(key)
        chosen = drafter != offer_options.drafter_value(offer.drafter) or (old and old.drafter != "auto")
        wish = Wish(self.wish(key).text, label or None, drafter if chosen else "auto")
        card = self.group.cards.get(key)
        if card is not None and card.panel is not None:
            card.panel.say("Looking…")
        self.look_up(key, wish)

    def _show_options(self, key: str) -> None:
        card, offer = self.group.cards.get(key), self.offers.get(key)
        if card is None or card.panel is None or offer is None:
            return
        card.panel.show_choices(
            offer_options.quantisations(offer),
            offer.target.label,
            offer_options.drafters(offer),
            offer_options.drafter_value(offer.drafter),
            "\n".join((offer.why, offer.fit.words, *offer.notices)),
        )
