"""The devices that models are computed on here. Only a worker knows them: it alone loads llama.cpp."""

from __future__ import annotations

import logging
import queue
from collections.abc import Sequence
from functools import cache

from app.engine_client import WORKER_COMMAND, EngineClient, Event, WorkerLost
from app.protocol import Device, Hello
from model_store.fit import FreeMemory, free_memory

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0


def graphics(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Those of ``devices`` that llama.cpp puts layers on; none where the processor does it all.

    It takes an integrated one only where there is no other, and then one.
    """
    cards = tuple(device for device in devices if device.kind == "gpu")
    return cards or tuple(device for device in devices if device.kind == "igpu")[:1]


def usable_memory(devices: Sequence[Device], loaded: int = 0) -> FreeMemory:
    """What a model may take: of RAM what is free now, of graphics memory what was when ``devices`` were
    asked, before a model was loaded. ``loaded`` are bytes that the present model will give back: of RAM,
    where no card has it."""
    # One that tells nothing of its memory may have any.
    used = [device for device in graphics(devices) if device.total]
    if not used:
        return free_memory(loaded=loaded)
    shared = used[0].kind == "igpu"
    return free_memory(sum(device.free for device in used), shared=shared, loaded=loaded if shared else 0)


@cache
def ask_devices(command: Sequence[str] = WORKER_COMMAND) -> tuple[Device, ...]:
    """For a program without a worker: start one, hear its first words, and end it.

    None when it does not answer; a model will not load then either.
    """
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    client = EngineClient(events.put, command=command)
    try:
        client.start()
        event = events.get(timeout=_PATIENCE_S)
    except (OSError, queue.Empty) as error:
        log.warning("no worker says which devices there are: %s", error or "it is silent")
        return ()
    finally:
        client.close()
    if isinstance(event, WorkerLost):
        log.warning("no worker says which devices there are: %s", event.message)
    return event.devices if isinstance(event, Hello) else ()
