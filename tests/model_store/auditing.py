"""Hears what Python opens: an audit hook cannot be taken away again, so one serves all tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_Hook = Callable[[str, tuple[object, ...]], None]
_listeners: list[_Hook] = []
_installed: list[bool] = []


@contextmanager
def auditing(hook: _Hook) -> Iterator[None]:
    """Call ``hook`` with each audit event until the block ends."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_tell)
    _listeners.append(hook)
    try:
        yield
    finally:
        _listeners.remove(hook)


def _tell(event: str, arguments: tuple[object, ...]) -> None:
    for listener in _listeners:
        listener(event, arguments)
