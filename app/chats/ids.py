"""Numbers for chats and messages: later ones are larger, and no two programs draw the same."""

from __future__ import annotations

import secrets
import threading
import time

_RANDOM_BITS = 20  # with milliseconds since 1970 above them: fits SQLite's 63 bits for centuries
_lock = threading.Lock()
_last = 0


def new_id() -> int:
    """Larger than all that this process drew before."""
    global _last
    with _lock:
        drawn = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        _last = max(drawn, _last + 1)
        return _last
