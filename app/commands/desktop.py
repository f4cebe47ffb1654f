"""``slipstream desktop-entry``: Slipstream in the desktop's menu."""

from __future__ import annotations

import argparse
import sys

from app.cli import UsageError
from app.desktop_entry import entry_path, entry_state, has_menu, install_entry, remove_entry

_WORDS = {
    "none": "Slipstream is not in the menu; --install puts it there.",
    "ours": "Slipstream is in the menu: {path}",
    "other": "The menu starts a Slipstream in another place; --install makes it this one: {path}",
}


def run_desktop_entry(options: argparse.Namespace) -> int:
    if not has_menu():
        raise UsageError("only desktops of Linux and BSD have menu entries")
    path = entry_path()
    try:
        if options.install:
            install_entry()
            print(f"Slipstream is in the menu: {path}")
        elif options.remove:
            print("Slipstream is not in the menu any more." if remove_entry() else _WORDS["none"])
        else:
            print(_WORDS[entry_state()].format(path=path))
    except OSError as error:
        print(f"slipstream: the menu entry could not be changed: {error}", file=sys.stderr)
        return 1
    return 0
