"""What is being got: from the click on Get to the model that is here, for all places that show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.settings import Settings
from model_store.local_path import has_unfinished
from ui.models.store_bridge import StoreBridge

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.download_job import JobProgress
    from model_store.offer import Offer
    from model_store.stop_signal import StopSignal
    from model_store.store import Store

ENDED = ("complete", "cancelled")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for, in the words that the store understands."""

    text: str
    quantisation: str | None = None
    drafter: str = "auto"


@dataclass(frozen=True, slots=True)
class Getting:
    """How far a wish is: looked up while there is neither a job nor a problem."""

    wish: Wish
    job: JobProgress | None = None
    problem: StoreProblem | None = None


class Downloads(QObject):
    """Downloads of this program, by job; and wishes, by the key of the card that they were made on."""

    changed = Signal(str)  # the key of a wish
    job_changed = Signal(object)  # JobProgress
    jobs_changed = Signal()  # there is one more or one less
    arrived = Signal(object)  # JobProgress of what is here now

    def __init__(
        self, bridge: StoreBridge, settings: Callable[[], Settings], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._settings = settings
        self.jobs: dict[str, JobProgress] = {}
        self._gettings: dict[str, Getting] = {}
        self._looking: dict[str, StopSignal] = {}
        self._key_of: dict[str, str] = {}
        bridge.job_changed.connect(self._take)

    # ---- what a person does

    def go_on(self, models: Path) -> None:
        """Start if there is something left in that folder; else the store need not be opened."""
        self._bridge.work_out(lambda: has_unfinished(models), lambda some: self.start() if some else None)

    def start(self) -> None:
        """Go on with what earlier programs have left."""
        self._bridge.order(lambda store, stop: store.queue.jobs(), self._take_all)

    def get(self, key: str, wish: Wish) -> None:
        """Look up what was asked for, and download it."""
        self.forget(key)
        self._set(key, Getting(wish))
        self._looking[key] = self.look_up(
            wish, lambda offer: self.take(key, wish, offer), lambda problem: self._failed(key, problem)
        )

    def look_up(
        self, wish: Wish, answered: Callable[[Offer], None], failed: Callable[[StoreProblem], None]
    ) -> StopSignal:
        """What would be downloaded."""
        settings = self._settings()

        def ask(store: Store, stop: StopSignal) -> Offer:
            from app.loading import loading

            return store.offer(
                wish.text,
                quantisation=wish.quantisation,
                drafter=wish.drafter,
                loading=loading(settings),
                cancelled=lambda: stop.stopped,
            )

        return self._bridge.ask(ask, answered, failed)

    def take(self, key: str, wish: Wish, offer: Offer) -> None:
        """Download what was offered."""
        self._set(key, Getting(wish))
        self._looking[key] = self._bridge.order(
            lambda store, stop: store.get(offer),
            lambda job: self._begun(key, job),
            lambda problem: self._failed(key, problem),
        )

    def again(self, key: str) -> None:
        """Try once more what failed."""
        getting = self._gettings.get(key)
        if getting is None:
            return
        if getting.job is not None:
            self.resume(getting.job.id)
        else:
            self.get(key, getting.wish)

    def forget(self, key: str) -> None:
        """Give up looking up, or put away what went wrong."""
        stop = self._looking.pop(key, None)
        if stop is not None:
            stop.stop()
        if self._gettings.pop(key, None) is not None:
            self.changed.emit(key)

    def pause(self, job_id: str) -> None:
        self._bridge.order(lambda store, stop: store.queue.pause(job_id))

    def resume(self, job_id: str) -> None:
        self._bridge.order(lambda store, stop: store.queue.resume(job_id))

    def cancel(self, job_id: str) -> None:
        """Stop it, and delete what has come of it."""
        self._bridge.order(lambda store, stop: store.queue.cancel(job_id))

    def dismiss(self, job_id: str) -> None:
        """Take one that has ended off the list."""
        self._bridge.order(lambda store, stop: store.queue.dismiss(job_id))
        if self.jobs.pop(job_id, None) is not None:
            self.jobs_changed.emit()

    def forget_deleted(self) -> None:
        """What came and was deleted since can be got again."""
        for key, getting in list(self._gettings.items()):
            job = getting.job
            if job is not None and job.state == "complete" and not job.files[0].path.exists():
                self.forget(key)

    # ---- what is known

    def getting(self, key: str) -> Getting | None:
        return self._gettings.get(key)

    def adopt(self, key: str, wish: Wish, title: str) -> Getting | None:
        """The wish of that key; one that an earlier program began is known by its title."""
        known = self._gettings.get(key)
        if known is not None:
            return known
        for job in self.jobs.values():
            if job.title == title and job.state not in ENDED and job.id not in self._key_of:
                self._key_of[job.id] = key
                self._gettings[key] = Getting(wish, job)
                return self._gettings[key]
        return None

    def _begun(self, key: str, job: JobProgress) -> None:
        self._looking.pop(key, None)
        self._key_of[job.id] = key
        # What was told meanwhile is newer.
        latest = self.jobs.get(job.id, job)
        getting = self._gettings.get(key)
        if getting is not None:
            self._set(key, replace(getting, job=latest))
        self._take(latest)

    def _take_all(self, jobs: list[JobProgress]) -> None:
        for job in jobs:
            if job.ours and job.id not in self.jobs:
                self._take(job)

    def _take(self, job: JobProgress) -> None:
        known = self.jobs.get(job.id)
        if job.state == "cancelled":
            if self.jobs.pop(job.id, None) is not None:
                self.jobs_changed.emit()
        else:
            self.jobs[job.id] = job
            if known is None:
                self.jobs_changed.emit()
        self.job_changed.emit(job)
        key = self._key_of.get(job.id)
        getting = self._gettings.get(key) if key is not None else None
        if key is not None and getting is not None:
            if job.state == "cancelled":
                del self._gettings[key], self._key_of[job.id]
                self.changed.emit(key)
            else:
                self._set(key, replace(getting, job=job))
        if job.state == "complete" and (known is None or known.state != "complete"):
            self.arrived.emit(job)

    def _failed(self, key: str, problem: StoreProblem) -> None:
        self._looking.pop(key, None)
        getting = self._gettings.get(key)
        if getting is not None:
            self._set(key, replace(getting, problem=problem))

    def _set(self, key: str, getting: Getting) -> None:
        self._gettings[key] = getting
        self.changed.emit(key)
