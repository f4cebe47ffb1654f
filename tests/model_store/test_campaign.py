"""A short fault campaign; the long one is run by hand: see campaign.py."""

from __future__ import annotations

from tests.model_store.campaign import run


def test_nothing_wrong_is_seen_and_all_ends_complete() -> None:
    outcome = run(32, seed=7)
    assert outcome.violations == []
    assert outcome.complete == 32
    assert outcome.faults.total() > 30
    assert outcome.killed >= 1
    assert outcome.looks > 10
