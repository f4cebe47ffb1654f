"""A person's wish that nothing be asked of the Hub, beside huggingface_hub's own HF_HUB_OFFLINE."""

from __future__ import annotations

import os
import sys
from typing import Any

_VARIABLE = "HF_HUB_OFFLINE"
# Whoever starts the program with it means it: no switch turns that off.
_asked = os.environ.get(_VARIABLE)


def set_offline(offline: bool) -> None:
    """Holds for every request from now on, of this process and of those that it starts."""
    if offline:
        os.environ[_VARIABLE] = "1"
    elif _asked is None:
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = _asked
    # It reads the variable once; importing it only to tell it so would cost the window's start.
    constants: Any = sys.modules.get("huggingface_hub.constants")
    if constants is not None:
        constants.HF_HUB_OFFLINE = offline or (_asked or "").upper() in constants.ENV_VARS_TRUE_VALUES
