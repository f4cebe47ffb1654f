"""What all owners of llama.cpp memory share: they free it when told, at the end of a ``with``, or last."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Owned(ABC):
    """Frees something native in ``close``."""

    @abstractmethod
    def close(self) -> None:
        """Free it; harmless when called again, or on an object whose construction failed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A net for interpreter exit only; owners call close. Module globals may be gone by then.
        with contextlib.suppress(Exception):
            self.close()
