"""Names from a server: none leaves the models folder, and each can be held by every system."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_store.local_path import UnsafePathError, local_path, renamed, same_place
from model_store.split import split_name

REPO = "owner/model-GGUF"


def name(path: str) -> str:
    return local_path(REPO, path).name


@pytest.mark.parametrize(
    "path",
    [
        "../../x.gguf",
        "a/b/../../../x",
        "..",
        "a/./x",
        "/etc/x.gguf",
        "a//x.gguf",
        "C:\\x.gguf",
        "C:/x.gguf",
        "c:x.gguf",
        "\\\\host\\share\\x.gguf",
        "a\\..\\x.gguf",
        "",
        "a/b/c/d/e/x.gguf",
    ],
)
def test_path_that_leads_elsewhere_is_refused(path: str) -> None:
    """G11"""
    with pytest.raises(UnsafePathError, match="not downloaded"):
        local_path(REPO, path)


@pytest.mark.parametrize(
    "path",
    ["model-Q4_K_M.gguf", "MTP/mtp model.gguf", "Žofie/模型　倉庫.gguf", "a#b%20c's.gguf", "e\u0301.gguf"],
)
def test_ordinary_name_is_kept(path: str) -> None:
    """F06"""
    assert local_path(REPO, path) == PurePosixPath(REPO, path)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("CON.gguf", r"_CON-[0-9a-f]{8}\.gguf"),
        ("com1", r"_com1-[0-9a-f]{8}"),
        ("LPT².x.gguf", r"_LPT²\.x-[0-9a-f]{8}\.gguf"),
        ("x.gguf:ads", r"x-[0-9a-f]{8}\.gguf_ads"),
        ("x?.gguf", r"x_-[0-9a-f]{8}\.gguf"),
        ("x.gguf. ", r"x-[0-9a-f]{8}\.gguf"),
        (".slipstream", r"_slipstream-[0-9a-f]{8}"),
        (" x.gguf", r"_x-[0-9a-f]{8}\.gguf"),
        ("x\x00\u202e\ud800.gguf", r"x___-[0-9a-f]{8}\.gguf"),
    ],
)
def test_name_that_some_system_cannot_hold_is_changed(path: str, form: str) -> None:
    """G11"""
    assert re.fullmatch(form, name(path)), name(path)


def test_long_name_is_cut_but_stays_its_own() -> None:
    """G11: 240 characters."""
    first, second = name("x" * 235 + ".gguf"), name("x" * 234 + "y.gguf")
    assert first != second
    for cut in (first, second, name("模" * 240 + ".gguf")):
        assert len(cut.encode()) <= 180
        assert cut.endswith(".gguf")


def test_parts_of_a_long_split_model_stay_together(tmp_path: Path) -> None:
    names = [name(f"{'x' * 235}-0000{number}-of-00003.gguf") for number in (1, 2, 3)]
    split = split_name(tmp_path / names[0])
    assert split is not None
    assert [part.name for part in split.parts] == names


def test_names_that_differ_by_case_or_composition_are_one_place() -> None:
    """G11"""
    small, large = local_path(REPO, "model.gguf"), local_path(REPO, "Model.GGUF")
    assert small != large
    assert same_place(small) == same_place(large)
    assert same_place(local_path(REPO, "e\u0301.gguf")) == same_place(local_path(REPO, "\u00e9.gguf"))
    assert same_place(renamed(large, "o/m/Model.GGUF")) != same_place(small)
    assert renamed(large, "a") != renamed(large, "b")


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=60))
def test_whatever_a_server_says(path: str, repo: str) -> None:
    try:
        place = local_path(repo, path)
    except UnsafePathError:
        return
    assert not place.is_absolute()
    windows = PureWindowsPath(*place.parts)
    assert windows.drive == "" and not windows.is_absolute()
    for part in place.parts:
        assert part not in ("", ".", "..") and not part.startswith(".")
        assert not part.endswith((".", " ")) and not set(part) & set('\\<>:"|?*\x00')
        assert len(part.encode()) <= 180
        assert not PureWindowsPath(part).is_reserved()
