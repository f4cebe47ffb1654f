"""The devices that this build of llama.cpp can compute on, and their memory.

llama-cpp-python binds none of ggml's functions for it; here are those that are needed.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from llama_cpp import llama_cpp as lib

from native.errors import NativeError

DeviceKind = Literal["cpu", "gpu", "igpu", "accelerator"]

_KINDS: dict[int, DeviceKind] = {0: "cpu", 1: "gpu", 2: "igpu", 3: "accelerator"}
_SIZE = ctypes.POINTER(ctypes.c_size_t)
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "count": (ctypes.c_size_t, ()),
    "get": (ctypes.c_void_p, (ctypes.c_size_t,)),
    "name": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "description": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "type": (ctypes.c_int, (ctypes.c_void_p,)),
    "memory": (None, (ctypes.c_void_p, _SIZE, _SIZE)),
}


class Device(NamedTuple):
    """``free`` and ``total`` are bytes of its memory; both 0 where it has none of its own to report.

    An "igpu" computes in the machine's memory. An "accelerator" only helps the processor. What is
    free of the processor's own memory llama.cpp does not know: it reports all of it.
    """

    name: str
    description: str
    kind: DeviceKind
    free: int
    total: int


def devices() -> tuple[Device, ...]:
    """In llama.cpp's order, as their memory is now. Raises NativeError where this build cannot tell."""
    found = (_device(_function("get")(number)) for number in range(_function("count")()))
    return tuple(device for device in found if device is not None)


def _device(handle: int) -> Device | None:
    kind = _KINDS.get(_function("type")(handle))
    if kind is None:  # one that stands for several others
        return None
    if kind == "gpu" and sys.platform == "darwin" and platform.machine() == "arm64":
        kind = "igpu"  # Apple's processors have one memory, whatever Metal calls it
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _function("memory")(handle, ctypes.byref(free), ctypes.byref(total))
    name, description = (
        (_function(part)(handle) or b"").decode("utf-8", "replace") for part in ("name", "description")
    )
    return Device(name, description, kind, free.value, total.value)


@cache
def _function(name: str) -> Any:
    result, arguments = _FUNCTIONS[name]
    exported = f"ggml_backend_dev_{name}"
    for library in _libraries():
        try:
            return ctypes.CFUNCTYPE(result, *arguments)((exported, library))
        except AttributeError:
            continue
    raise NativeError(f"this build of llama.cpp cannot list its devices: it lacks {exported}")


def _libraries() -> Iterator[ctypes.CDLL]:
    """llama.cpp's own, through which those that it needs are found too, except on Windows."""
    yield lib._lib
    if sys.platform == "win32":
        for name in ("ggml.dll", "ggml-base.dll"):  # both are loaded already
            yield ctypes.CDLL(name, winmode=0)
