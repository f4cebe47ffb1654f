"""A group of models that are here: how each will run, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from model_store.fit import shown_bytes
from model_store.library import ModelEntry
from model_store.readiness import Candidate, Readiness, drafter_candidates
from model_store.split import parts_of
from ui.bidi import visible
from ui.models.card_group import CardGroup
from ui.models.card_view import CardView, Trouble, ready_view, trouble
from ui.models.model_card import ModelCard
from ui.models.options_panel import Option
from ui.models.words import KIND_WORDS
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.removal import Removed
    from model_store.stop_signal import StopSignal
    from model_store.store import Store
    from model_store.verification import FileCheck

_NO_DRAFTER = "none"
_GOOD = ("verified", "unknown")


@dataclass(slots=True)
class _State:
    """What is known of one model beside its entry."""

    ready: Readiness | None = None
    asked: bool = False
    paired_anew: bool = False
    checking: StopSignal | None = None
    news: str = ""
    trouble: Trouble | None = None


class ReadyShelf(QObject):
    """``chat_asked`` carries the path of a model; ``changed``: files or pairs are others than before."""

    chat_asked = Signal(str)
    noticed = Signal(str)
    changed = Signal()
    token_asked = Signal()

    def __init__(
        self,
        theme: Theme,
        session: Session,
        title: str,
        entries: Callable[[], list[ModelEntry]],
        empty: str,
        parent: QObject | None = None,
    ) -> None:
        """``entries`` of the library are shown, and the words ``empty`` where there are none; without such
        words, nothing."""
        super().__init__(parent)
        self._session = session
        self._all = entries
        self._empty = empty
        self._folder = session.models_folder()
        self._entries: dict[str, ModelEntry] = {}
        self._states: dict[str, _State] = {}
        self._filter = ""
        self._reading: str | None = None
        self.group = CardGroup(theme, title, self._view)
        self.group.made.connect(self._made)
        self.group.shown_changed.connect(self._read_next)
        session.library.changed.connect(self.fill)
        session.engine_changed.connect(self._engine_changed)
        self._used: str | None = None
        self.fill()

    # ---- what is shown

    def filter(self, text: str) -> None:
        """Show only models of whose name and description all words of ``text`` are a part."""
        self._filter = text
        self.fill()

    def fill(self) -> None:
        """Take what the library has."""
        self._folder = self._session.models_folder()
        entries = {f"file:{entry.path}": entry for entry in self._all()}
        for key in [key for key in self._states if entries.get(key) != self._entries.get(key)]:
            self._stop_checking(self._states.pop(key))
        if entries != self._entries:  # a drafter may have come or gone
            for state in self._states.values():
                state.asked = False
        self._entries = entries
        words = self._filter.casefold().split()
        keys = [
            key
            for key, entry in entries.items()
            if all(word in f"{entry.name} {entry.description}".casefold() for word in words)
        ]
        used = self._used_key()
        keys.sort(key=lambda key: key != used)
        self.group.say("" if keys else "Nothing here matches." if words else self._empty)
        self.group.setVisible(bool(keys) or bool(self._empty))
        self.group.show_keys(keys)
        self._read_next()

    def forget_readiness(self) -> None:
        """How models will run is to be found out anew: pairs, settings or free memory have changed."""
        for state in self._states.values():
            state.asked = False
        self._read_next()

    def take_new_pairing(self, path: str) -> bool:
        """Whether another drafter was chosen for that model since it was asked about last."""
        state = self._states.get(f"file:{path}")
        if state is None or not state.paired_anew:
            return False
        state.paired_anew = False
        state.news = ""
        self.group.refresh(f"file:{path}")
        return True

    def _view(self, key: str) -> CardView:
        entry, state = self._entries[key], self._states.get(key) or _State()
        return ready_view(
            entry,
            state.ready,
            is_starter=entry.path == self._session.library.starter,
            in_use=key == self._used_key(),
            inside_folder=entry.path.is_relative_to(self._folder),
            checking=state.checking is not None,
            news=state.news,
            problem=state.trouble,
        )

    def _state(self, key: str) -> _State:
        return self._states.setdefault(key, _State())

    def _used_key(self) -> str | None:
        report = self._session.controller.state.report
        return f"file:{report.path}" if report is not None else None

    def _engine_changed(self) -> None:
        used = self._used_key()
        if used != self._used:
            self._used = used
            self.group.refresh()

    # ---- reading headers, one model after another, of those that are seen

    def _read_next(self) -> None:
        if self._reading is not None:
            return
        for key in self.group.shown:
            entry = self._entries[key]
            if entry.problem is None and entry.kind == "chat" and not self._state(key).asked:
                self._state(key).asked = True
                self._reading = key
                self._session.models.work_out(
                    partial(self._session.readiness, entry), self._read, self._not_read
                )
                return

    def _read(self, ready: Readiness) -> None:
        key, self._reading = self._reading, None
        if key is not None and key in self._entries:
            self._state(key).ready = ready
            self.group.refresh(key)
        self._read_next()

    def _not_read(self, problem: StoreProblem) -> None:
        key, self._reading = self._reading, None
        if key is not None and key in self._entries:
            self._state(key).trouble = trouble(problem)
            self.group.refresh(key)
        self._read_next()

    # ---- what a person does

    def _made(self, card: ModelCard) -> None:
        key = card.view.key
        card.acted.connect(lambda _: self.chat_asked.emit(str(self._entries[key].path)))
        card.picked.connect(lambda item: self._picked(key, item))
        card.confirmed.connect(lambda drafter: self._delete(key, drafter))
        card.options_opened.connect(lambda: self._find_drafters(key))
        card.options_chosen.connect(lambda _, drafter: self._pair(key, drafter))
        card.token_asked.connect(self.token_asked)

    def _picked(self, key: str, item: str) -> None:
        entry = self._entries[key]
        match item:
            case "verify":
                self._verify(key)
            case "stop_verifying":
                self._stop_checking(self._state(key))
                self.group.refresh(key)
            case "show":
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(entry.path.parent)))
            case "unpair":
                self._pair(key, _NO_DRAFTER)
            case "delete":
                self._ask_to_delete(key)
            case "unlist":
                self._remove([entry])

    def _verify(self, key: str) -> None:
        state, entry = self._state(key), self._entries[key]
        state.news, state.trouble = "", None
        state.checking = self._session.models.ask(
            lambda store, stop: store.verify(entry, stop),
            lambda checks: self._verified(key, checks),
            lambda problem: self._failed(key, problem),
        )
        self.group.refresh(key)

    def _verified(self, key: str, checks: list[FileCheck]) -> None:
        if key not in self._entries:
            return
        state = self._state(key)
        state.checking = None
        bad = [check for check in checks if check.outcome not in _GOOD]
        if bad:
            words = "; ".join(f"{visible(check.path.name)}: {check.outcome}, {check.reason}" for check in bad)
            state.trouble = Trouble(words, "Delete it and get it again.")
        elif any(check.outcome == "unknown" for check in checks):
            state.news = f"Its header is in order; {checks[0].reason.partition(';')[0]}."
        else:
            state.news = "Verified: its content is what the Hub has said."
        self.group.refresh(key)

    def _stop_checking(self, state: _State) -> None:
        if state.checking is not None:
            state.checking.stop()
            state.checking = None

    def _failed(self, key: str, problem: StoreProblem) -> None:
        if key in self._entries:
            state = self._state(key)
            state.checking, state.trouble = None, trouble(problem)
            self.group.refresh(key)

    def _ask_to_delete(self, key: str) -> None:
        card, entry, ready = self.group.cards.get(key), self._entries[key], self._state(key).ready
        if card is None:
            return
        words = f"Delete {visible(entry.name)}? That frees {shown_bytes(entry.size_bytes)}, for good."
        drafter = self._own_drafter(key)
        also = ""
        if drafter is not None and ready is not None:
            also = f"Its drafter {visible(drafter.name)} as well ({shown_bytes(ready.drafter_bytes)})"
        card.ask_to_delete(words, also)

    def _own_drafter(self, key: str) -> ModelEntry | None:
        """The drafter that only this model is paired with, if it can be deleted along."""
        state = self._states.get(key)
        drafter = state.ready.drafter if state is not None and state.ready is not None else None
        if drafter is None:
            return None
        others = [each.ready for other, each in self._states.items() if other != key]
        if any(ready is not None and ready.drafter == drafter for ready in others):
            return None
        entries = self._session.library.entries
        entry = next((each for each in entries if each.path == drafter), None)
        return entry if entry is not None and entry.program is None and entry.kind == "drafter" else None

    def _delete(self, key: str, with_drafter: bool) -> None:
        drafter = self._own_drafter(key) if with_drafter else None
        self._remove([self._entries[key], *([drafter] if drafter is not None else [])])

    def _remove(self, entries: list[ModelEntry]) -> None:
        used = self._files_in_use()

        def remove(store: Store, stop: StopSignal) -> list[Removed]:
            return [store.remove(entry, lambda path: used.get(path)) for entry in entries]

        key = f"file:{entries[0].path}"
        self._session.models.order(
            remove,
            lambda removed: self._removed(entries[0], removed),
            lambda problem: self._failed(key, problem),
        )

    def _files_in_use(self) -> dict[Path, str]:
        state = self._session.controller.state
        paths_used = [state.report.path, state.report.draft_model_path] if state.report is not None else []
        if state.phase == "loading":
            paths_used.append(state.wanted)
        return {
            part: "it is loaded; choose another model first"
            for path in paths_used
            if path is not None
            for part in parts_of(Path(path))
        }

    def _removed(self, entry: ModelEntry, removed: list[Removed]) -> None:
        name = visible(entry.name)
        if any(each.paths for each in removed):
            freed = sum(each.bytes_freed for each in removed)
            self.noticed.emit(f"{name} is deleted; {freed:,} bytes are free again.")
        else:
            self.noticed.emit(f"{name} is off the list; its file stays where it is.")
        self.changed.emit()

    # ---- drafters

    def _find_drafters(self, key: str) -> None:
        entry, entries = self._entries[key], list(self._session.library.entries)
        self._session.models.ask(
            lambda store, stop: drafter_candidates(entry, entries),
            lambda found: self._show_drafters(key, found),
            lambda problem: self._failed(key, problem),
        )

    def _show_drafters(self, key: str, found: list[Candidate]) -> None:
        card = self.group.cards.get(key)
        if card is None or card.panel is None:
            return
        ready = self._state(key).ready
        without = "MTP heads inside" if ready is not None and ready.inside else "None: n-gram look-ups"
        options = [Option(_NO_DRAFTER, without, "Loads no drafter of its own with it")]
        for each in found:
            size = shown_bytes(each.entry.size_bytes)
            if each.kind is None:
                text = f"{visible(each.entry.name)} · does not fit"
            else:
                text = f"{visible(each.entry.name)} · {KIND_WORDS[each.kind]} · {size} · fits"
            value = str(each.entry.path)
            outside = None
            if not each.entry.path.is_relative_to(self._session.models_folder()):
                outside = "It lies outside the models folder, and can be chosen in the settings only."
            options.append(Option(value, text, value, problem=each.problem or outside))
        reasons = [f"{visible(each.entry.name)}: {each.problem}" for each in found if each.problem]
        words = "There is no drafter for it in the models folder." if not found else "\n".join(reasons[:3])
        chosen = str(ready.drafter) if ready is not None and ready.drafter is not None else _NO_DRAFTER
        card.panel.show_choices((), "", options, chosen, words)

    def _pair(self, key: str, drafter: str) -> None:
        entry = self._entries[key]
        path = Path(drafter) if drafter != _NO_DRAFTER else None
        self._session.models.order(
            lambda store, stop: store.pairs.pair(entry.path, path),
            lambda _: self._paired(key),
            lambda problem: self._failed(key, problem),
        )

    def _paired(self, key: str) -> None:
        state = self._state(key)
        state.asked, state.paired_anew, state.trouble = False, True, None
        state.news = ""
        if key == self._used_key():
            state.news = "It is loaded: Chat loads it again with this choice."
        self.changed.emit()
        self._read_next()
        self.group.refresh(key)
