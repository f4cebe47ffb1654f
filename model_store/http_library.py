"""The HTTP library that huggingface_hub is built on: httpx in its version 1, httpx2 in version 2."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from huggingface_hub.errors import HfHubHTTPError

__all__ = ["httpx"]

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    httpx = importlib.import_module(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])

# Its parts read 64 KiB at a time, which makes a fast download a quarter slower. There is no setting for it.
_core = importlib.import_module(httpx.__name__.replace("httpx", "httpcore"))
_core.HTTP11Connection.READ_NUM_BYTES = 1 << 18
