"""Keys of the window's actions."""

from __future__ import annotations

from app.shortcuts import ACTIONS, chosen_keys, conflict, with_keys


def test_no_two_actions_have_the_same_keys_by_default() -> None:
    keys = [action.keys.lower() for action in ACTIONS if action.keys]
    assert len(set(keys)) == len(keys)
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


def test_own_keys_go_before_the_usual_ones() -> None:
    own = {"new_chat": "Ctrl+T", "settings": "", "gone": "Ctrl+9"}
    keys = chosen_keys(own)
    assert (keys["new_chat"], keys["settings"], keys["palette"]) == ("Ctrl+T", "", "Ctrl+K")
    assert "gone" not in keys


def test_keys_that_another_action_has_are_a_conflict() -> None:
    taken = conflict({}, "new_chat", "ctrl+k")
    assert taken is not None and taken.name == "palette"
    assert conflict({}, "palette", "Ctrl+K") is None  # its own
    assert conflict({"palette": "Ctrl+P"}, "new_chat", "Ctrl+K") is None  # free now
    assert conflict({}, "new_chat", "") is None


def test_what_is_as_usual_is_not_kept() -> None:
    own = with_keys({}, "new_chat", "Ctrl+T")
    assert own == {"new_chat": "Ctrl+T"}
    assert with_keys(own, "new_chat", "Ctrl+N") == {}
    assert with_keys(own, "quit", "") == {"new_chat": "Ctrl+T", "quit": ""}
