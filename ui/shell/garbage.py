"""Looks for circles of garbage on the GUI thread only.

Python does so on whatever thread happens to allocate. There it may free the Python side of a widget just
while the GUI thread deletes its C++ side, which looked it up before it had the lock that both need: a crash.
"""

from __future__ import annotations

import gc
import sys

from PySide6.QtCore import QObject, QTimer

_INTERVAL_MS = 500


class GarbageCollector(QObject):
    """Python's own is off as long as this one is on. Call it from the GUI thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.collect_due)

    def start(self) -> None:
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.enable()

    @staticmethod
    def collect_due() -> None:
        """The oldest generation that has reached its threshold, as Python would."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if thresholds[generation] and counts[generation] > thresholds[generation]:
                gc.collect(generation)
                if generation == 2:
                    give_back()
                return


def give_back() -> bool:
    """Free memory goes back to the system, where malloc keeps it for itself otherwise; says whether any
    did. glibc gives back only what lies at the end of its heaps, and a chat that was left seldom does."""
    if sys.platform != "linux":
        return False
    import ctypes  # which the start of the window does without

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    return trim is not None and bool(trim(0))
