"""Something that is asked for often and done now and then."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

READABLE_MS = 400  # numbers that change more often cannot be read


class Pace(QObject):
    """``do`` is called at once when it is asked for, then at most every ``interval_ms``; the last wish is
    always met."""

    def __init__(self, do: Callable[[], None], interval_ms: int, parent: QObject) -> None:
        super().__init__(parent)
        self._do = do
        self._due = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._waited)

    @property
    def waiting(self) -> bool:
        """A wish now would not be met at once."""
        return self._timer.isActive()

    def ask(self) -> None:
        if self.waiting:
            self._due = True
        else:
            self.now()

    def now(self) -> None:
        """Whenever it was done last."""
        self._due = False
        self._timer.start()
        self._do()

    def stop(self) -> None:
        """Forget what is due."""
        self._due = False
        self._timer.stop()

    def _waited(self) -> None:
        if self._due:
            self.now()
