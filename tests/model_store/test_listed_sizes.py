"""Sizes of catalogue models from the Hub's listings, without a byte of any file."""

from __future__ import annotations

from msgspec.structs import replace

from model_store.catalog import CatalogDrafter, CatalogEntry, CatalogTarget
from model_store.hub import Hub
from model_store.listed_sizes import ListedSizes, listed_sizes
from tests.model_store.local_hub import LocalHub

ENTRY = CatalogEntry(
    id="m",
    title="M",
    description="A model.",
    size_class="mid",
    min_memory=1,
    target=CatalogTarget(repo="o/M-GGUF", file="M-Q4_K_M.gguf", others="M-*.gguf"),
    drafters=(CatalogDrafter(kind="eagle3", repo="o/Head-GGUF", file="head-*.gguf"),),
)


def test_recommended_file_and_first_drafter(local_hub: LocalHub) -> None:
    files = {"M-Q4_K_M.gguf": bytes(4000), "M-Q8_0.gguf": bytes(8000), "README.md": bytes(70)}
    local_hub.add("o/M-GGUF", files)
    local_hub.add("o/Head-GGUF", {"head-F16.gguf": bytes(800), "head-Q8_0.gguf": bytes(400)})
    assert listed_sizes(Hub(local_hub.url), ENTRY) == ListedSizes("Q4_K_M", 4000, 400)
    assert not [seen for seen in local_hub.seen if "/resolve/" in seen.path]


def test_parts_of_a_split_model_are_added_up(local_hub: LocalHub) -> None:
    parts = {f"M-Q4_K_M-0000{number}-of-00002.gguf": bytes(1000 * number) for number in (1, 2)}
    local_hub.add("o/M-GGUF", parts)
    target = CatalogTarget(repo="o/M-GGUF", file="M-Q4_K_M-00001-of-00002.gguf")
    assert listed_sizes(Hub(local_hub.url), replace(ENTRY, target=target)) == ListedSizes("Q4_K_M", 3000, 0)


def test_what_is_gone_has_other_sizes_or_none(local_hub: LocalHub) -> None:
    local_hub.add("o/M-GGUF", {"M-Q5_K_M.gguf": bytes(5000)})
    found = listed_sizes(Hub(local_hub.url), ENTRY)
    assert found == ListedSizes("Q5_K_M", 5000, 0), "the drafter's repository is gone as well"
    local_hub.add("o/M-GGUF", {"other.gguf": bytes(5000)})
    assert listed_sizes(Hub(local_hub.url), ENTRY) is None
    assert listed_sizes(Hub(local_hub.url), replace(ENTRY, target=None)) is None
