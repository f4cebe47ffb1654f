"""The devices of this build, whichever they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import psutil
import pytest
from llama_cpp import llama_cpp as lib

from native import devices as module
from native.devices import devices
from native.errors import NativeError


def test_every_build_has_the_processor() -> None:
    [cpu] = [device for device in devices() if device.kind == "cpu"]
    assert cpu.name
    assert cpu.description
    assert 0 < cpu.free <= cpu.total
    assert cpu.total == psutil.virtual_memory().total


def test_there_are_graphics_only_where_layers_can_be_offloaded() -> None:
    graphics = [device for device in devices() if device.kind in ("gpu", "igpu")]
    if not lib.llama_supports_gpu_offload():
        assert graphics == []
    assert all(device.free <= device.total for device in graphics)


# ---- with devices that this machine does not have


Faked = Callable[..., None]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Faked:
    """Makes ggml's functions tell of (type, name, free, total)."""

    def fake(*listed: tuple[int, bytes, int, int]) -> None:
        def memory(handle: int, free: ctypes.Array[ctypes.c_size_t], total: object) -> None:
            free._obj.value, total._obj.value = listed[handle][2:]  # type: ignore[attr-defined]

        functions = {
            "count": lambda: len(listed),
            "get": lambda number: number,
            "type": lambda handle: listed[handle][0],
            "name": lambda handle: listed[handle][1],
            "description": lambda handle: None,
            "memory": memory,
        }
        monkeypatch.setattr(module, "_function", functions.__getitem__)

    return fake


def test_each_device_says_what_it_is(fake: Faked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "linux")
    fake(
        (1, b"CUDA0", 7, 8), (2, b"Vulkan0", 3, 4), (3, b"BLAS", 0, 0), (4, b"Meta", 0, 0), (0, b"CPU", 9, 9)
    )
    assert [tuple(device) for device in devices()] == [
        ("CUDA0", "", "gpu", 7, 8),
        ("Vulkan0", "", "igpu", 3, 4),
        ("BLAS", "", "accelerator", 0, 0),
        ("CPU", "", "cpu", 9, 9),
    ]


def test_graphics_of_apples_processors_share_the_memory(fake: Faked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    monkeypatch.setattr(module.platform, "machine", lambda: "arm64")
    fake((1, b"MTL0", 5, 6))
    assert [device.kind for device in devices()] == ["igpu"]
    monkeypatch.setattr(module.platform, "machine", lambda: "x86_64")
    assert [device.kind for device in devices()] == ["gpu"]


def test_a_build_without_the_functions_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_libraries", lambda: iter([ctypes.CDLL(None)]))
    with pytest.raises(NativeError, match="lacks ggml_backend_dev_none"):
        monkeypatch.setitem(module._FUNCTIONS, "none", (None, ()))
        module._function("none")
