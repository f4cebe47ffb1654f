"""Tells of an answer that took long and ended while the person was elsewhere. Never what it says."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.chats.message import Message

LONG_S = 10.0


class DoneNotice:
    """Hears of every message that is added or changes. ``tell`` gets a title and a sentence."""

    def __init__(
        self,
        tell: Callable[[str, str], None],
        looked_at: Callable[[], bool],
        wanted: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._looked_at = looked_at
        self._wanted = wanted
        self._clock = clock
        self._began: dict[int, float] = {}

    def heard(self, message: Message) -> None:
        """Anything about ``message`` changed."""
        if message.role != "assistant":
            return
        if message.in_progress:
            self._began.setdefault(message.id, self._clock())
            return
        began = self._began.pop(message.id, None)
        if began is None or self._clock() - began < LONG_S or not self._wanted() or self._looked_at():
            return
        if message.state == "done":
            self._tell("The answer is done", "Slipstream has finished writing.")
        elif message.state == "failed":
            self._tell("The answer was not finished", "Slipstream says why, and what was kept.")
