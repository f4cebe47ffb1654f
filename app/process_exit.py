"""How a process ended, as data that can say in words what it means."""

from __future__ import annotations

import signal

from msgspec import Struct

# Windows reports an unhandled exception as a negative 32-bit NTSTATUS.
_WINDOWS = {
    0xC0000005: "it read or wrote memory it does not own",
    0xC000001D: "this processor lacks an instruction the engine was built with",
    0xC0000017: "there was not enough memory",
    0xC00000FD: "it ran out of stack",
    0xC0000409: "it stopped itself after an internal check failed",
}

_SIGNALS = {
    "SIGKILL": "it was killed, most likely by the system because memory ran out",
    "SIGSEGV": "it read or wrote memory it does not own",
    "SIGBUS": "it could not read the model file; the file may have changed or the disk failed",
    "SIGILL": "this processor lacks an instruction the engine was built with",
    "SIGABRT": "the engine stopped itself after an internal check failed",
    "SIGFPE": "an arithmetic error inside the engine",
    "SIGTERM": "it was asked to stop",
}


class ProcessExit(Struct, frozen=True):
    """``code`` as subprocess reports it: negative for a signal on POSIX."""

    code: int

    @property
    def clean(self) -> bool:
        return self.code == 0

    @property
    def out_of_memory(self) -> bool:
        """The usual marks of the system's out-of-memory killer (also inside a container)."""
        return self.code in (-9, 137) or self.code & 0xFFFFFFFF == 0xC0000017

    def describe(self) -> str:
        """One clause such as "exit code 3" with its meaning, where it has one."""
        if self.clean:
            return "it ended by itself"
        number = -self.code if self.code < 0 else self.code - 128
        windows = _WINDOWS.get(self.code & 0xFFFFFFFF)
        if windows:
            return f"{windows} (0x{self.code & 0xFFFFFFFF:08X})"
        try:
            name = signal.Signals(number).name
        except ValueError:
            return f"it ended with exit code {self.code}"
        return f"{_SIGNALS.get(name, 'it was ended by a signal')} ({name})"
