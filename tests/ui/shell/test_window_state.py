"""Where the window comes back, on whatever screens there are now."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.shell.window_state import Area, WindowState, WindowStateFile, placed

ONE = (Area(0, 24, 1920, 1056),)
TWO = (*ONE, Area(1920, 0, 1280, 1024))
LEAST = (360, 360)


def test_it_comes_back_where_it_was() -> None:
    assert placed(Area(100, 100, 1000, 700), ONE, LEAST) == Area(100, 100, 1000, 700)
    assert placed(Area(2000, 50, 1000, 700), TWO, LEAST) == Area(2000, 50, 1000, 700)
    # partly off a screen is how a person left it
    assert placed(Area(1700, 500, 1000, 500), ONE, LEAST).x == 1700


@pytest.mark.parametrize(
    "area",
    [
        Area(2000, 50, 1000, 700),  # on a screen that is gone
        Area(100, -500, 1000, 700),  # its title is above the screen
        Area(-990, 100, 1000, 700),
        Area(100, 1075, 1000, 700),
        Area(99_000, 99_000, 10, 10),
    ],
)
def test_out_of_reach_it_is_put_in_the_middle(area: Area) -> None:
    found = placed(area, ONE, LEAST)
    assert abs(found.x - (1920 - found.width) // 2) <= 1
    assert abs(found.y - 24 - (1056 - found.height) // 2) <= 1


def test_a_window_of_a_larger_screen_is_made_to_fit() -> None:
    small = Area(0, 0, 1024, 600)
    assert placed(Area(0, 0, 3000, 2000), (small,), LEAST) == small
    assert placed(None, (small,), LEAST) == small


@given(
    st.builds(
        Area,
        st.integers(-5000, 5000),
        st.integers(-5000, 5000),
        st.integers(0, 5000),
        st.integers(0, 5000),
    )
)
def test_its_title_can_always_be_reached(area: Area) -> None:
    found = placed(area, TWO, LEAST)
    assert any(
        screen.y <= found.y <= screen.y + screen.height - 64
        and min(found.x + found.width, screen.x + screen.width) - max(found.x, screen.x) >= 64
        for screen in TWO
    )
    assert found.width >= 360 and found.height >= 360
    assert placed(found, TWO, LEAST) == found


def test_it_is_kept(tmp_path: Path) -> None:
    file = WindowStateFile(tmp_path / "window.json")
    assert file.load() == WindowState()
    state = WindowState(
        area=Area(1, 2, 800, 600), maximised=True, page="Speed", splitters={"speed": (300, 200)}
    )
    file.save(state)
    assert file.load() == state


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b'{"area": [1, 2]}', b'{"area": {"x": 1e99}, "page": 3}']
)
def test_a_damaged_file_is_no_reason_not_to_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "window.json"
    path.write_bytes(content)
    assert WindowStateFile(path).load() == WindowState()


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_end(tmp_path: Path) -> None:
    WindowStateFile(tmp_path / "gone" / "window.json").save(WindowState())
