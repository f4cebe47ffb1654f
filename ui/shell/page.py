"""What the window asks of its pages."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Searchable(Protocol):
    """A page with something to search in it."""

    def start_search(self) -> None:
        """Put the focus where the search is typed."""


@runtime_checkable
class Grouped(Protocol):
    """A page with named groups."""

    def go_to(self, group: str) -> None:
        """Bring a group to the top."""
