"""Which devices models run on, what is free there, and how many layers go to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.devices import ask_devices, graphics, usable_memory
from app.protocol import Device, EngineOptions, Load
from app.worker.fake_script import FakeScript
from app.worker.gpu_layers import gpu_layers, known_devices
from app.worker.llama_model import LlamaModel
from app.worker.weights import load_weights
from model_store.check import read_model_file
from model_store.starter import starter_path
from native.model import Model
from tests.models.eagle3 import write_eagle3
from tests.session import fake_command
from tests.tiny_gguf import Tiny, write_llama

GIB = 1 << 30
MIB = 1 << 20
SPARE = 512 * MIB
CPU = Device("CPU", "A processor", "cpu", 16 * GIB, 16 * GIB)
BLAS = Device("BLAS", "A library", "accelerator", 0, 0)
CARD = Device("CUDA0", "A card", "gpu", 5 * GIB, 8 * GIB)
SECOND = Device("CUDA1", "Another card", "gpu", 2 * GIB, 4 * GIB)
INSIDE = Device("Vulkan0", "Graphics inside", "igpu", 3 * GIB, 6 * GIB)


@pytest.mark.parametrize(
    ("devices", "used"),
    [
        ((), ()),
        ((CPU, BLAS), ()),
        ((CARD, SECOND, INSIDE, CPU), (CARD, SECOND)),
        ((INSIDE, INSIDE, CPU), (INSIDE,)),
    ],
)
def test_integrated_graphics_are_used_where_there_are_no_others(
    devices: tuple[Device, ...], used: tuple[Device, ...]
) -> None:
    assert graphics(devices) == used


def test_memory_of_cards_adds_to_that_of_the_machine_and_that_inside_is_part_of_it() -> None:
    assert usable_memory([CPU]).graphics is None
    cards = usable_memory([CARD, SECOND, CPU])
    assert (cards.graphics, cards.shared) == (7 * GIB, False)
    assert cards.all == cards.ram + 7 * GIB
    inside = usable_memory([INSIDE, CPU])
    assert (inside.graphics, inside.shared) == (3 * GIB, True)
    assert inside.all == inside.ram
    silent = Device("Vulkan0", "It tells nothing", "igpu", 0, 0)
    assert usable_memory([silent, CPU]).graphics is None


def test_what_the_present_model_gives_back_counts_as_free() -> None:
    total = psutil.virtual_memory().total
    assert usable_memory([CPU], loaded=total).ram == usable_memory([INSIDE], loaded=total).ram == total
    assert usable_memory([CARD], loaded=total).ram < total  # it lies on the card


def test_a_worker_tells_its_devices(tmp_path: Path) -> None:
    command = fake_command(FakeScript(devices=(CARD, CPU)), tmp_path)
    assert ask_devices(command) == (CARD, CPU)
    (tmp_path / "script.json").unlink()
    assert ask_devices(command) == (CARD, CPU)  # it is asked once


def test_no_worker_means_no_devices(tmp_path: Path) -> None:
    assert ask_devices((sys.executable, "-c", "pass")) == ()
    assert ask_devices((str(tmp_path / "nothing"),)) == ()


def test_this_build_knows_its_processor() -> None:
    devices = ask_devices()
    assert [device.kind for device in devices].count("cpu") == 1
    assert [device.name for device in devices] == [device.name for device in known_devices()]


# ---- layers


def layers(
    path: Path, *devices: Device, drafter: Path | None = None, options: EngineOptions = EngineOptions()
) -> tuple[int, str | None]:
    return gpu_layers(path, read_model_file(path), drafter, options, 64, devices)


def card(free: int) -> Device:
    return Device("CUDA0", "A card", "gpu", free, 8 * GIB)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "m.gguf", Tiny(n_layer=4))


def test_all_layers_go_where_there_is_room_or_none_to_judge(model: Path) -> None:
    assert layers(model) == (-1, None)
    assert layers(model, CPU, BLAS) == (-1, None)
    assert layers(model, card(2 * GIB), CPU) == (-1, None)
    assert layers(model, Device("Vulkan0", "It tells nothing", "gpu", 0, 0), CPU) == (-1, None)


def test_a_person_hears_of_layers_without_room(model: Path) -> None:
    count, notice = layers(model, card(SPARE), CPU)
    assert count == 0
    assert notice == (
        "There is room for 0 of 5 layers on A card; the processor computes the rest, which is slower."
    )
    some = {layers(model, card(SPARE + kib * 1024), CPU)[0] for kib in range(0, 16384, 100)}
    assert some == {0, 1, 2, 3, 4, -1}


def test_a_model_is_loaded_with_as_many(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def load(path: Path, options: EngineOptions, *args: Any, **named: Any) -> Model:
        asked.append(options.n_gpu_layers)
        return load_weights(path, options, *args, **named)

    monkeypatch.setattr("app.worker.llama_model.known_devices", lambda: (card(SPARE),))
    monkeypatch.setattr("app.worker.llama_model.load_weights", load)
    loaded = LlamaModel(Load(request_id=1, model_path=str(model)), lambda fraction: True)
    try:
        assert asked == [0]
        assert "There is room for 0 of 5 layers on A card" in loaded.report.notices[0]
    finally:
        loaded.close()


def test_what_was_asked_for_is_done(model: Path) -> None:
    assert layers(model, card(SPARE), options=EngineOptions(n_gpu_layers=3)) == (3, None)


def test_room_is_kept_for_the_drafter(model: Path, tmp_path: Path) -> None:
    head = write_eagle3(tmp_path / "head.gguf", Tiny(n_layer=4))
    enough = next(
        free for free in range(SPARE, SPARE + 64 * MIB, MIB // 8) if layers(model, card(free)) == (-1, None)
    )
    count, notice = layers(model, card(enough), drafter=head)
    assert 0 <= count < 5
    assert notice is not None
    assert layers(model, card(enough), drafter=tmp_path / "gone.gguf") == (-1, None)


def test_a_card_that_is_almost_full_takes_some_of_the_starter() -> None:
    starter = starter_path()
    assert starter is not None
    assert layers(starter, card(2 * GIB)) == (-1, None)
    count, _ = layers(starter, card(SPARE + 80 * MIB))
    assert 0 < count < 31
