"""Layout items that Python has objects for; see ui/widgets/layouts.py for why there may be none."""

from __future__ import annotations

import gc
from collections import Counter

import shiboken6
from PySide6.QtWidgets import QLayout, QLayoutItem


def known_items() -> Counter[str]:
    """By kind, those that Qt made itself: of the ones made in Python their end is noticed."""
    return Counter(
        type(each).__name__
        for each in gc.get_objects()
        if isinstance(each, QLayoutItem)
        and not isinstance(each, QLayout)
        and not shiboken6.createdByPython(each)
    )
