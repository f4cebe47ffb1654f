"""How long something still takes, in words."""

from __future__ import annotations


def time_left(seconds: float) -> str:
    """Such as "5 min left"."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h left"
    return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"
