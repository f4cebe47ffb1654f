"""The model store off the GUI thread: what is asked of it is done elsewhere, and answered here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from model_store.stop_signal import Stopped, StopSignal

if TYPE_CHECKING:  # at run time only in a thread: they bring huggingface_hub along
    from app.store_problem import StoreProblem
    from model_store.store import Event, Store

log = logging.getLogger(__name__)

_LOOK_UPS = 3  # at a time
_T = TypeVar("_T")

OpenStore = Callable[["Callable[[Event], None]"], "Store"]


def _ignore(problem: StoreProblem) -> None:
    """What went wrong is of no interest."""


class StoreBridge(QObject):
    """Asks one store, which is opened when the first question comes.

    Every question gets a StopSignal: once it is stopped, or the bridge closed, nobody hears the answer.
    """

    job_changed = Signal(object)  # JobProgress
    _answered = Signal(object)
    _event = Signal(object)

    def __init__(self, open_store: OpenStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open_store = open_store
        self._lock = threading.Lock()  # never held for long: the GUI's thread takes it too
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._closed = False
        self._running: set[StopSignal] = set()
        # Orders are carried out one after another, as they were given; questions overtake each other.
        self._orders = ThreadPoolExecutor(1, thread_name_prefix="store-order")
        self._questions = ThreadPoolExecutor(_LOOK_UPS, thread_name_prefix="store-question")
        self._answered.connect(self._hand_over, Qt.ConnectionType.QueuedConnection)
        self._event.connect(self._take_event, Qt.ConnectionType.QueuedConnection)

    def ask(
        self,
        question: Callable[[Store, StopSignal], _T],
        answered: Callable[[_T], None],
        failed: Callable[[StoreProblem], None] = _ignore,
    ) -> StopSignal:
        """Work ``question`` out in a thread; ``answered`` or ``failed`` is called here."""
        return self._submit(self._questions, lambda stop: question(self._opened(), stop), answered, failed)

    def order(
        self,
        order: Callable[[Store, StopSignal], _T],
        answered: Callable[[_T], None] = lambda _: None,
        failed: Callable[[StoreProblem], None] = _ignore,
    ) -> StopSignal:
        """The same for what changes something: it is done after what was ordered before."""
        return self._submit(self._orders, lambda stop: order(self._opened(), stop), answered, failed)

    def work_out(
        self,
        work: Callable[[], _T],
        answered: Callable[[_T], None],
        failed: Callable[[StoreProblem], None] = _ignore,
    ) -> StopSignal:
        """The same for what needs no store."""
        return self._submit(self._questions, lambda stop: work(), answered, failed)

    def reopen(self) -> None:
        """The models are elsewhere now: the store is closed, and opened anew by the next question."""

        def close(stop: StopSignal) -> None:
            with self._opening:
                store, self._store = self._store, None
            if store is not None:
                store.close()

        self._submit(self._orders, close, lambda _: None, _ignore)

    def close(self) -> None:
        """Returns when no thread is left; downloads are kept, and go on when the next store is opened."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for stop in running:
            stop.stop()
        for pool in (self._orders, self._questions):
            pool.shutdown(wait=True, cancel_futures=True)
        with self._opening:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[[StopSignal], _T],
        answered: Callable[[_T], None],
        failed: Callable[[StoreProblem], None],
    ) -> StopSignal:
        stop = StopSignal()
        with self._lock:
            if self._closed:
                stop.stop()
                return stop
            self._running.add(stop)
        pool.submit(self._run, work, stop, answered, failed)
        return stop

    # ---- in a thread

    def _run(
        self,
        work: Callable[[StopSignal], Any],
        stop: StopSignal,
        answered: Callable[[Any], None],
        failed: Callable[[StoreProblem], None],
    ) -> None:
        try:
            stop.check()
            outcome = work(stop)
        except Stopped:
            self._forget(stop)
        except Exception as error:
            self._answered.emit((stop, failed, _problem(error)))
        else:
            self._answered.emit((stop, answered, outcome))

    def _opened(self) -> Store:
        with self._opening:
            if self._closed:
                raise Stopped
            if self._store is None:
                self._store = self._open_store(self._event.emit)
            return self._store

    def _forget(self, stop: StopSignal) -> None:
        with self._lock:
            self._running.discard(stop)

    # ---- in the GUI's thread

    def _hand_over(self, answer: tuple[StopSignal, Callable[[Any], None], Any]) -> None:
        stop, answered, outcome = answer
        self._forget(stop)
        if not stop.stopped and not self._closed:
            answered(outcome)

    def _take_event(self, event: Event) -> None:
        from model_store.download_job import JobProgress

        if isinstance(event, JobProgress) and not self._closed:
            self.job_changed.emit(event)


def _problem(error: Exception) -> StoreProblem:
    from app.store_problem import StoreProblem, store_problem

    problem = store_problem(error)
    if problem is None:
        log.error("the store failed in a way that it should not", exc_info=error)
        return StoreProblem(
            "internal", f"This failed unexpectedly ({type(error).__name__}); the log says more."
        )
    return problem
