"""What can go wrong inside llama.cpp, as typed errors that carry its own words."""

from __future__ import annotations

from collections.abc import Sequence


class NativeError(Exception):
    """``log_lines`` are the warnings and errors llama.cpp printed while it failed."""

    def __init__(self, message: str, log_lines: Sequence[str] = ()) -> None:
        words = "; ".join(dict.fromkeys(line.strip() for line in log_lines if line.strip()))
        super().__init__(f"{message}: {words}" if words else message)
        self.log_lines = tuple(log_lines)


class ModelLoadError(NativeError):
    """llama.cpp would not load the file."""


class LoadCancelled(NativeError):
    """The progress callback asked for the load to end."""


class ContextError(NativeError):
    """No context could be made: most often there is not enough memory for the KV cache."""


class DecodeError(NativeError):
    """A pass failed; the KV cache holds what it held before, as far as rewind could restore it."""


class NoKvSlot(DecodeError):
    """The batch does not fit into what is left of the context."""


class DecodeAborted(DecodeError):
    """The pass was aborted by ``Context.abort``; its tokens are not in the KV cache."""


class GrammarError(NativeError):
    """A grammar that llama.cpp cannot take, or that leaves nothing to say; one line."""
