"""What the figures were measured on."""

from __future__ import annotations

import platform
from pathlib import Path

import psutil
from msgspec import Struct


class Machine(Struct, frozen=True, kw_only=True):
    """``cores`` are physical ones where the system tells; ``threads`` is how many computed."""

    cpu: str
    cores: int
    memory_bytes: int
    os: str
    engine: str
    threads: int


def this_machine(engine: str, threads: int) -> Machine:
    return Machine(
        cpu=_cpu_name(),
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        os=platform.platform(),
        engine=engine,
        threads=threads,
    )


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
