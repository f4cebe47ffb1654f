"""The catalogue: what we ship holds to its schema, and a person's own entries survive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from app import paths
from model_store.bundled import bundled_drafter
from model_store.catalog import (
    Catalog,
    CatalogDrafter,
    CatalogEntry,
    CatalogError,
    CatalogTarget,
    add_entry,
    load_catalog,
    matches,
    remove_entry,
)
from model_store.starter import starter_path

BUILTIN = paths.assets_dir() / "catalog.json"
OWN_ENTRY = CatalogEntry(
    id="my-model",
    title="My Model",
    description="Trained at home.",
    size_class="small",
    min_memory=10**9,
    target=CatalogTarget(repo="me/My-Model-GGUF", file="My-Model-Q4_0.gguf"),
    drafters=(CatalogDrafter(kind="eagle3", repo="me/My-Head-GGUF", file="eagle3-*.gguf"),),
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "data" / "catalog.json"


@pytest.fixture
def builtin() -> Catalog:
    return load_catalog(BUILTIN)


# ---- ours


def test_all_that_we_ship_can_be_used(builtin: Catalog) -> None:
    assert not builtin.notices
    assert len(builtin.entries) > 20
    assert len({entry.id for entry in builtin.entries}) == len({entry.title for entry in builtin.entries})
    assert {entry.size_class for entry in builtin.entries} == {"starter", "small", "mid", "large"}
    assert {drafter.kind for entry in builtin.entries for drafter in entry.drafters} == {
        "draft",
        "dflash",
        "eagle3",
        "mtp",
    }
    for entry in builtin.entries:
        assert entry.description.endswith("."), entry.id
        assert entry.target is None or entry.drafters or entry.heads_inside, f"nothing drafts for {entry.id}"
        assert entry.target is None or matches(entry.target.file.replace("*", "x"), entry.target.others)


def test_the_starter_is_in_it_and_ready_at_once(builtin: Catalog) -> None:
    (starter,) = [entry for entry in builtin.entries if entry.size_class == "starter"]
    assert builtin.entries[0] is starter and starter.target is None
    path = starter_path()
    assert path is not None and bundled_drafter(paths.assets_dir(), path) is not None


def test_entries_are_found_by_id_and_title(builtin: Catalog) -> None:
    entry = builtin.find("gpt-oss-20b")
    assert entry is not None and entry.licence == "Apache-2.0"
    assert builtin.find(" GPT-OSS 20b ") is entry
    assert builtin.find("gpt") is None


@pytest.mark.parametrize(
    ("path", "pattern", "meant"),
    [
        ("gpt-oss-20b-mxfp4.gguf", "gpt-oss-20b-MXFP4.gguf", True),
        ("MTP/mtp-x-Q4_0.gguf", "mtp-*.gguf", True),
        ("MTP/mtp-x-Q4_0.gguf", "mtp/*", True),
        ("mtp-gemma-4-E2B-it-Q4_0.gguf", "gemma-4-E2B-it-*.gguf", False),
    ],
)
def test_patterns(path: str, pattern: str, meant: bool) -> None:
    assert matches(path, pattern) is meant


# ---- a person's own


def test_own_entries_survive_and_replace_ours(own: Path, builtin: Catalog) -> None:
    add_entry(own, OWN_ENTRY)
    changed = replace(builtin.entries[1], title="Mine now")
    add_entry(own, changed)
    loaded = load_catalog(BUILTIN, own)
    assert loaded.find("my-model") == OWN_ENTRY
    assert loaded.find(changed.id) == changed
    assert len(loaded.entries) == len(builtin.entries) + 1
    assert loaded.own == {"my-model", changed.id}
    remove_entry(own, changed.id)
    assert load_catalog(BUILTIN, own).find(changed.id) == builtin.entries[1]
    # an update brings another catalogue of ours
    assert load_catalog(own, own).entries == (OWN_ENTRY,)


def test_adding_an_entry_again_replaces_it(own: Path) -> None:
    add_entry(own, OWN_ENTRY)
    add_entry(own, replace(OWN_ENTRY, title="Renamed"))
    assert [entry.title for entry in load_catalog(own).entries] == ["Renamed"]


def test_an_entry_that_breaks_the_schema_is_not_written(own: Path) -> None:
    with pytest.raises(CatalogError, match="My Model cannot be added: "):
        add_entry(own, replace(OWN_ENTRY, id="Not an id"))
    assert not own.exists()
    remove_entry(own, "my-model")
    assert not own.exists()


# ---- what is wrong with a file


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "The catalogue catalog.json is damaged: "),
        (b"{", "The catalogue catalog.json is damaged: "),
        (b"[1, 2]", "The catalogue catalog.json is damaged: "),
        (b"\xff\xfe", "The catalogue catalog.json is damaged: "),
        (b"[" * 100_000, "The catalogue catalog.json is damaged: "),
        (b" " * (5 << 20), "The catalogue catalog.json is not used: it is too large."),
        (b'{"entries": []}', "The catalogue catalog.json is damaged: "),
        (b'{"version": 2, "entries": [{"new": 1}]}', "The catalogue catalog.json is of a newer version"),
    ],
)
def test_a_damaged_or_newer_file_is_said_in_words(own: Path, content: bytes, words: str) -> None:
    own.parent.mkdir()
    own.write_bytes(content)
    loaded = load_catalog(BUILTIN, own)
    assert len(loaded.entries) > 20 and not loaded.own
    (notice,) = loaded.notices
    assert notice.startswith(words) and notice.endswith(".")


def test_one_bad_entry_does_not_take_the_others_along(own: Path) -> None:
    good = json.loads(BUILTIN.read_bytes())["entries"][:2]
    own.parent.mkdir()
    bad = good[1] | {"id": "bad", "min_memory": "much"}
    own.write_text(json.dumps({"version": 1, "entries": [good[0], bad, 17, good[1]]}))
    loaded = load_catalog(own)
    assert [entry.id for entry in loaded.entries] == [entry["id"] for entry in good]
    assert [notice.partition(":")[0] for notice in loaded.notices] == [
        "Entry 2 of the catalogue catalog.json is left out",
        "Entry 3 of the catalogue catalog.json is left out",
    ]


def test_what_a_later_version_adds_to_an_entry_is_passed_over(own: Path) -> None:
    entry = json.loads(BUILTIN.read_bytes())["entries"][1]
    own.parent.mkdir()
    own.write_text(json.dumps({"version": 1, "entries": [entry | {"colour": "green"}], "more": 1}))
    loaded = load_catalog(own)
    assert len(loaded.entries) == 1 and not loaded.notices


def test_a_damaged_file_is_set_aside_before_it_is_written_anew(own: Path) -> None:
    own.parent.mkdir()
    own.write_bytes(b"half of it")
    add_entry(own, OWN_ENTRY)
    assert load_catalog(own).entries == (OWN_ENTRY,)
    assert own.with_name("catalog.json.damaged").read_bytes() == b"half of it"


def test_a_newer_file_stays_as_it_is(own: Path) -> None:
    own.parent.mkdir()
    own.write_text('{"version": 9}')
    with pytest.raises(CatalogError, match="newer version"):
        add_entry(own, OWN_ENTRY)
    assert own.read_text() == '{"version": 9}'


def test_a_missing_file_is_said_in_words(tmp_path: Path) -> None:
    loaded = load_catalog(tmp_path / "gone.json")
    assert loaded.notices == ("The catalogue gone.json cannot be read: no such file or directory.",)


def test_search_finds_words_in_any_order_and_case() -> None:
    catalog = load_catalog(paths.assets_dir() / "catalog.json")
    found = catalog.search("gemma E2B")
    assert found and all("e2b" in entry.id for entry in found)
    assert catalog.search("E2B gemma") == found
    assert catalog.search("no such model") == []
