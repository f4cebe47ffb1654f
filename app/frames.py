"""Length-prefixed frames on a byte stream: four bytes, little-endian, then that many bytes."""

from __future__ import annotations

import struct
import threading
from typing import IO

MAX_FRAME_BYTES = 256 * 1024 * 1024
_LENGTH = struct.Struct("<I")


class FrameError(Exception):
    """The stream is not made of frames: a torn frame, or a length no message has."""


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame's payload, or None at a clean end of the stream.

    ``stream`` must be buffered (its ``read(n)`` returns less than n bytes only at the end).
    Raises FrameError when the stream ends inside a frame or announces an absurd length.
    """
    head = stream.read(_LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise FrameError("the stream ended inside a frame's length")
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_BYTES:
        raise FrameError(f"a frame announces {length} bytes, more than {MAX_FRAME_BYTES}")
    payload = stream.read(length)
    if len(payload) < length:
        raise FrameError(f"the stream ended after {len(payload)} of {length} bytes of a frame")
    return payload


class StreamClosed(Exception):
    """The other side is gone."""


class FrameWriter:
    """Writes whole frames from any thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, *payloads: bytes) -> None:
        """Write one frame for each payload, all at once. Raises StreamClosed."""
        frames = b"".join(part for p in payloads for part in (_LENGTH.pack(len(p)), p))
        try:
            with self._lock:
                self._stream.write(frames)
                self._stream.flush()
        except (OSError, ValueError) as error:  # a broken pipe, or our own end was closed
            raise StreamClosed(str(error)) from error
