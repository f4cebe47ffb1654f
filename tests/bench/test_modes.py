"""The names of the modes and what each of them asks for."""

from __future__ import annotations

import pytest

from app.bench.modes import drafting_of, mode_names
from app.protocol import DRAFTERS, NEURAL


def test_every_drafter_is_a_mode_of_its_own_between_off_and_the_chain() -> None:
    assert mode_names(NEURAL) == ("off", *DRAFTERS, "chain", "auto")
    assert set(NEURAL) & set(mode_names(("eagle3",))) == {"eagle3"}
    assert not set(NEURAL) & set(mode_names())


def test_what_a_mode_asks_for() -> None:
    assert drafting_of("off").links == ()
    assert drafting_of("chain").links == DRAFTERS
    for name in DRAFTERS:
        assert drafting_of(name).links == (name,)
    assert drafting_of("auto").links == DRAFTERS
    # Alone and in the chain, drafters speak without the controller: that is what auto is compared with.
    assert {name: drafting_of(name).mode for name in ("auto", "chain", "mod", "off")} == {
        "auto": "auto",
        "chain": "manual",
        "mod": "manual",
        "off": "manual",
    }
    with pytest.raises(KeyError):
        drafting_of("magic")


def test_a_longest_draft_holds_for_every_drafter() -> None:
    for name in mode_names(NEURAL):
        drafting = drafting_of(name, 5)
        assert drafting.max_draft == 5 and drafting.links == drafting_of(name).links
        # which is more than a neural drafter drafts when nothing is said
        assert [drafting.parameters.of(kind).n_max for kind in NEURAL] == [5] * len(NEURAL)
