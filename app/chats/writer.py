"""The thread that writes chats to disk, so that nobody waits for one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from app.chats.database import Changes
from app.chats.errors import ChatsError

log = logging.getLogger(__name__)

SOON_S = 1.0  # what may wait is written this long after it was first asked for
_RETRY_S = 10.0


class Writer:
    """Takes changes from any thread, in steps: what came with one ``put`` is written together or not
    at all. What cannot be written stays here and is tried again."""

    def __init__(
        self,
        write: Callable[[Changes], None],
        on_state: Callable[[ChatsError | None], None],
        name: str = "chats-writer",
    ) -> None:
        """``write`` raises ChatsError. ``on_state`` is told, from the thread, of the first failure in a
        row and with None once everything is written after one."""
        self._write = write
        self._on_state = on_state
        self._condition = threading.Condition()
        self._pending = Changes()
        self._jobs: list[Callable[[], None]] = []
        self._soon: dict[int, Callable[[], Changes]] = {}
        self._due = 0.0
        self._busy = False
        self._failing = False
        self._retry_at = 0.0
        self._closing = False
        self._gave_up = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, changes: Changes) -> None:
        """Write this as soon as possible."""
        with self._condition:
            self._pending.add(changes)
            for id in (*changes.messages, *changes.chats):
                self._soon.pop(id, None)
            self._condition.notify_all()

    def put_soon(self, id: int, make: Callable[[], Changes]) -> None:
        """Write what ``make`` gives within ``SOON_S``; asked for again before that, it is written once.
        ``id`` is that of the chat or message; a ``put`` of it makes this needless."""
        with self._condition:
            if not self._soon:
                self._due = time.monotonic() + SOON_S
                self._condition.notify_all()
            self._soon[id] = make

    def run_idle(self, job: Callable[[], None]) -> None:
        """Run ``job`` on the thread when there is nothing to write. It must not raise."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify_all()

    def retry(self) -> None:
        """Try again now what could not be written."""
        with self._condition:
            self._retry_at = 0.0
            self._condition.notify_all()

    @property
    def idle(self) -> bool:
        """Everything that was asked for is written."""
        with self._condition:
            return self._settled()

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, what may wait too; False when that failed or took longer."""
        end = time.monotonic() + timeout
        with self._condition:
            self._due = self._retry_at = 0.0
            self._condition.notify_all()
            while not self._settled():
                left = end - time.monotonic()
                if left <= 0 or not self._thread.is_alive() or (self._failing and self._retry_at):
                    return False
                self._condition.wait(left)
            return True

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is left and end; False when something could not be written."""
        with self._condition:
            self._closing = True
            self._due = self._retry_at = 0.0
            self._condition.notify_all()
        self._thread.join(timeout)
        with self._condition:
            return self._settled()

    # ---- inside

    def _settled(self) -> bool:
        return not (self._pending or self._soon or self._busy)

    def _run(self) -> None:
        while True:
            with self._condition:
                job = self._next()
                if job is None:
                    return
            try:
                job()
            except Exception:
                log.exception("writing chats failed")
            with self._condition:
                self._busy = False
                self._condition.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """What to do now; waits for it. None at the end."""
        while True:
            if self._gave_up:
                return None
            now = time.monotonic()
            due = bool(self._soon) and now >= self._due
            held = self._failing and now < self._retry_at
            if (self._pending or due) and not held:
                changes, self._pending = self._pending, Changes()
                makers, self._soon = (list(self._soon.values()), {}) if due else ([], self._soon)
                self._busy = True
                return lambda: self._write_all(changes, makers)
            if self._closing:
                return None
            if self._jobs and not held:
                self._busy = True
                return self._jobs.pop(0)
            wake = [self._retry_at] if held else [self._due] if self._soon else []
            self._condition.wait(max(0.0, min(wake) - now) if wake else None)

    def _write_all(self, whole: Changes, makers: list[Callable[[], Changes]]) -> None:
        # What could wait was asked for after a ``put`` of the same, or that would have made it needless.
        for make in makers:
            whole.add(make())
        error: ChatsError | None = None
        try:
            self._write(whole)
        except ChatsError as failure:
            error = failure
        except Exception as failure:
            log.exception("writing chats failed")
            error = ChatsError("internal", f"The chats could not be kept: {failure}.")
        with self._condition:
            was_failing, self._failing = self._failing, error is not None
            if error is not None:
                whole.add(self._pending)
                self._pending = whole
                self._retry_at = time.monotonic() + _RETRY_S
                self._gave_up = self._closing
        if error is not None and not was_failing:
            self._on_state(error)
        elif error is None and was_failing:
            self._on_state(None)
