"""``slipstream forget``: deletes what drafting has learned from answers."""

from __future__ import annotations

import sys

from app import paths
from app.answers_folder import forget_answers


def run_forget() -> int:
    try:
        files = forget_answers(paths.answers_dir())
    except OSError as error:
        print(f"slipstream: what was learned could not be deleted: {error}", file=sys.stderr)
        return 1
    print("What drafting had learned is deleted." if files else "Drafting has learned nothing yet.")
    return 0
