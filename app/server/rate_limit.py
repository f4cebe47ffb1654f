"""How many requests a minute each client may make: token buckets, as in ATM's and nginx's limits."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_CLIENTS = 4096
_MINUTE_S = 60.0
LOOPBACK = "this machine"  # all of its programs are one client, whichever of its addresses they call from


@dataclass
class _Bucket:
    """``level`` requests could be made at ``at`` (seconds)."""

    level: float
    at: float


class RateLimit:
    """A client that was quiet for a minute may make a minute's requests at once; then they come back evenly.

    It has no clock of its own, and the limit may change between requests.
    """

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def take(self, client: str, per_minute: int, now: float) -> float:
        """Count a request at ``now`` (seconds). 0.0: it may be made; else it is not counted, and one could be
        made after so many seconds. ``per_minute`` 0 limits nothing."""
        if not per_minute:
            self._buckets.clear()
            return 0.0
        each = _MINUTE_S / per_minute
        bucket = self._buckets.pop(client, None)
        if bucket is None:
            bucket = _Bucket(per_minute, now)
        bucket.level = min(per_minute, bucket.level + max(0.0, now - bucket.at) / each)
        bucket.at = now
        self._buckets[client] = bucket  # the last one now: those before it were asked for longer ago
        self._forget_full(now)
        # A hair less than one: what floats lose must not make a wait that was kept a second one.
        if bucket.level < 1.0 - 1e-9:
            return (1.0 - bucket.level) * each
        bucket.level = max(0.0, bucket.level - 1.0)
        return 0.0

    def _forget_full(self, now: float) -> None:
        """Those of clients that were quiet for a minute; and of all others, never too many."""
        while self._buckets:
            client = next(iter(self._buckets))
            if now - self._buckets[client].at < _MINUTE_S and len(self._buckets) <= _MOST_CLIENTS:
                return
            del self._buckets[client]


def client_of(address: str | None) -> str:
    """Whose requests those from ``address`` are."""
    if address is None or address == "::1" or address.startswith("127."):
        return LOOPBACK
    return address
