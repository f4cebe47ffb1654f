"""Exit codes in words (I03)."""

from __future__ import annotations

import sys

import pytest

from app.process_exit import ProcessExit

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


@posix
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "memory"),
        (137, "memory"),
        (-11, "does not own"),
        (139, "does not own"),
        (-4, "lacks an instruction"),
        (132, "lacks an instruction"),
        (-6, "internal check"),
        (134, "internal check"),
        (-7, "model file"),
        (-15, "asked to stop"),
        (-1, "(SIGHUP)"),
    ],
)
def test_signals_say_what_they_mean(code: int, words: str) -> None:
    assert words in ProcessExit(code).describe()


@pytest.mark.parametrize("code", [0xC000001D, 3221225501, 0xC000001D - 2**32])
def test_a_missing_instruction_on_windows(code: int) -> None:
    """As an unsigned and as a signed number."""
    words = ProcessExit(code).describe()
    assert "lacks an instruction" in words
    assert "0xC000001D" in words


@pytest.mark.parametrize("unsigned", [0xC0000005, 0xC0000017, 0xC00000FD, 0xC0000409])
def test_windows_codes_mean_the_same_signed_and_unsigned(unsigned: int) -> None:
    words = ProcessExit(unsigned).describe()
    assert f"0x{unsigned:08X}" in words
    assert ProcessExit(unsigned - 2**32).describe() == words


@pytest.mark.parametrize("code", [1, 2, 3, 100, 127, 255, -1000, 0xC0001234])
def test_other_codes_are_only_named(code: int) -> None:
    assert ProcessExit(code).describe() == f"it ended with exit code {code}"


def test_a_clean_end() -> None:
    assert ProcessExit(0).clean
    assert ProcessExit(0).describe() == "it ended by itself"
    assert not ProcessExit(1).clean


@pytest.mark.parametrize(
    ("code", "memory"),
    [
        (-9, True),
        (137, True),
        (0xC0000017, True),
        (0xC0000017 - 2**32, True),
        (0, False),
        (1, False),
        (-11, False),
    ],
)
def test_what_points_to_memory(code: int, memory: bool) -> None:
    assert ProcessExit(code).out_of_memory is memory
