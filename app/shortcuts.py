"""The window's actions and the keys for them. Keys are text as Qt writes it, such as "Ctrl+Shift+N"."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Action(Struct, frozen=True):
    """``keys`` by default; "" has none. On a Mac, Qt shows and takes Ctrl as Command."""

    name: str
    title: str
    keys: str = ""


ACTIONS: tuple[Action, ...] = (
    Action("palette", "Command palette", "Ctrl+K"),
    Action("new_chat", "New chat", "Ctrl+N"),
    Action("search_chats", "Search chats", "Ctrl+Shift+F"),
    Action("sidebar", "Show or hide the list of chats", "Ctrl+B"),
    Action("speed_panel", "Show or hide the Speed panel", "Ctrl+Shift+B"),
    Action("rename_chat", "Rename this chat"),
    Action("pin_chat", "Pin or unpin this chat"),
    Action("duplicate_chat", "Duplicate this chat"),
    Action("delete_chat", "Delete this chat"),
    Action("chat_options", "Instructions and sampling of this chat"),
    Action("drafted_text", "Show or hide who drafted what", "Ctrl+Shift+D"),
    Action("regenerate", "Answer again", "Ctrl+R"),
    Action("copy_answer", "Copy the last answer", "Ctrl+Shift+C"),
    Action("import_chats", "Import chats"),
    Action("export_chats", "Export all chats as JSON"),
    Action("export_chats_markdown", "Export all chats as Markdown"),
    Action("stop", "Stop the answer, or back to the chat", "Esc"),
    Action("chats", "Chats", "Ctrl+1"),
    Action("models", "Models", "Ctrl+2"),
    Action("speed", "Speed", "Ctrl+3"),
    Action("settings", "Settings", "Ctrl+,"),
    Action("find", "Search on this page", "Ctrl+F"),
    Action("find_next", "Next match in this chat", "F3"),
    Action("find_previous", "Match before in this chat", "Shift+F3"),
    Action("zoom_in", "Larger text", "Ctrl++"),
    Action("zoom_out", "Smaller text", "Ctrl+-"),
    Action("zoom_reset", "Text as large as usual", "Ctrl+0"),
    Action("next_region", "Next part of the window", "F6"),
    Action("previous_region", "Part of the window before", "Shift+F6"),
    Action("reload_model", "Load the model again"),
    Action("unload_model", "Take the model out of memory"),
    Action("logs", "Show logs"),
    Action("report", "Copy diagnostic report"),
    Action("about", "About Slipstream"),
    Action("quit", "Quit", "Ctrl+Q"),
)


def chosen_keys(own: Mapping[str, str]) -> dict[str, str]:
    """The keys of every action by name; ``own`` are those that a person chose."""
    return {action.name: own.get(action.name, action.keys) for action in ACTIONS}


def conflict(own: Mapping[str, str], name: str, keys: str) -> Action | None:
    """The other action that has these keys already."""
    if not keys:
        return None
    taken = chosen_keys(own)
    return next(
        (action for action in ACTIONS if action.name != name and taken[action.name].lower() == keys.lower()),
        None,
    )


def with_keys(own: Mapping[str, str], name: str, keys: str) -> dict[str, str]:
    """``own`` with other keys for one action; what is as by default is not kept."""
    default = next(action.keys for action in ACTIONS if action.name == name)
    rest = {other: chosen for other, chosen in own.items() if other != name}
    return rest if keys == default else {**rest, name: keys}
