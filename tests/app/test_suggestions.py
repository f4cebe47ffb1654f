"""Which models of the catalogue are put forward for a machine."""

from __future__ import annotations

import pytest

from app.paths import assets_dir
from app.suggestions import already_here, first_choices, suggestions
from model_store.catalog import CatalogEntry, CatalogTarget, SizeClass, load_catalog
from model_store.fit import FreeMemory

GB = 10**9


def entry(name: str, size: SizeClass, gigabytes: float) -> CatalogEntry:
    return CatalogEntry(
        id=name,
        title=name,
        description="A model.",
        size_class=size,
        min_memory=round(gigabytes * GB),
        target=CatalogTarget(repo=f"o/{name}", file="*.gguf"),
    )


ENTRIES = (
    entry("s1", "small", 1),
    entry("s2", "small", 2),
    entry("m1", "mid", 4),
    entry("m2", "mid", 6),
    entry("l1", "large", 12),
)


def test_those_that_fit_come_first_and_the_largest_of_them_before_the_others() -> None:
    found = suggestions(ENTRIES, FreeMemory(round(5.5 * GB)))
    assert [(each.entry.id, each.fit.verdict) for each in found] == [
        ("m1", "fits"),
        ("s2", "fits"),
        ("s1", "fits"),
        ("m2", "tight"),
        ("l1", "too_large"),
    ]
    assert found[0].fit.words == "Wants about 4.0 GB of free memory; 5.5 GB are free."


def test_what_comes_with_the_program_is_not_suggested() -> None:
    catalog = load_catalog(assets_dir() / "catalog.json")
    found = suggestions(catalog.entries, FreeMemory(64 * GB))
    assert len(found) == len(catalog.entries) - 1


@pytest.mark.parametrize(
    ("free", "names"),
    [
        (64, ["s2", "m2", "l1"]),
        (5, ["s1", "s2", "m1"]),
        (2.1, ["s1", "s2"]),
        (0.9, ["s1"]),
        (0.1, []),
    ],
)
def test_a_few_to_begin_with_are_of_different_sizes(free: float, names: list[str]) -> None:
    found = suggestions(ENTRIES, FreeMemory(round(free * GB)))
    assert [each.entry.id for each in first_choices(found)] == names


def test_graphics_memory_counts() -> None:
    [best, *_] = suggestions(ENTRIES, FreeMemory(2 * GB, 12 * GB))
    assert (best.entry.id, best.fit.verdict) == ("l1", "fits")


def test_a_processor_alone_gets_what_it_computes_briskly_first() -> None:
    large = entry("xl", "large", 20)
    found = suggestions((*ENTRIES, large), FreeMemory(64 * GB))
    assert [each.entry.id for each in found] == ["m2", "m1", "s2", "s1", "l1", "xl"]
    assert "answers may come slowly" in found[-1].fit.words
    assert "slowly" not in found[0].fit.words
    [best, *_] = suggestions((*ENTRIES, large), FreeMemory(64 * GB, 24 * GB))
    assert best.entry.id == "xl"


def test_what_is_here_already_is_known_by_repository_and_name() -> None:
    drafted = CatalogEntry(
        id="d",
        title="d",
        description="A model.",
        size_class="mid",
        min_memory=1,
        target=CatalogTarget(repo="o/d", file="d-Q4_K_M.gguf", others="d-*.gguf"),
    )
    entries = (*ENTRIES, drafted)
    assert already_here(entries, [("o/d", "d-Q8_0.gguf"), ("o/m1", "sub/any.gguf")]) == {"d", "m1"}
    assert already_here(entries, [("o/d", "eagle3.gguf"), ("o/x", "d-Q4_K_M.gguf")]) == set()
