"""Frames: whole ones round, torn and absurd ones refused."""

from __future__ import annotations

import io
import os
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import frames
from app.frames import FrameError, FrameWriter, StreamClosed, read_frame


def framed(*payloads: bytes) -> bytes:
    stream = io.BytesIO()
    writer = FrameWriter(stream)
    for payload in payloads:
        writer.write(payload)
    return stream.getvalue()


def read_all(data: bytes) -> list[bytes]:
    stream = io.BytesIO(data)
    return list(iter(lambda: read_frame(stream), None))


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_what_is_written_is_read(payloads: list[bytes]) -> None:
    assert read_all(framed(*payloads)) == payloads


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4), st.data())
def test_a_torn_stream_gives_whole_frames_and_then_an_error(
    payloads: list[bytes], data: st.DataObject
) -> None:
    whole = framed(*payloads)
    ends = [0]
    for payload in payloads:
        ends.append(ends[-1] + 4 + len(payload))
    at = data.draw(st.integers(0, len(whole)))
    stream = io.BytesIO(whole[:at])
    complete = sum(end <= at for end in ends[1:])
    for payload in payloads[:complete]:
        assert read_frame(stream) == payload
    if at in ends:
        assert read_frame(stream) is None
    else:
        with pytest.raises(FrameError, match="ended"):
            read_frame(stream)


def test_an_empty_frame_is_not_the_end() -> None:
    assert read_all(framed(b"", b"x")) == [b"", b"x"]


def test_an_absurd_length_is_refused_before_anything_is_read() -> None:
    class Head(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert size <= 4, "a payload of that size must not be asked for"
            return super().read(size)

    for length in (frames.MAX_FRAME_BYTES + 1, 2**32 - 1, struct.unpack("<I", b"Traceback"[:4])[0]):
        with pytest.raises(FrameError, match="announces"):
            read_frame(Head(struct.pack("<I", length)))


def test_the_length_is_little_endian() -> None:
    assert framed(b"abc") == b"\x03\x00\x00\x00abc"


def test_a_broken_pipe_and_a_closed_stream_are_one_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as stream, pytest.raises(StreamClosed):
        FrameWriter(stream).write(b"x")
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(StreamClosed):
        FrameWriter(closed).write(b"x")


def test_frames_of_several_threads_do_not_mix() -> None:
    stream = io.BytesIO()
    writer = FrameWriter(stream)

    def write(letter: bytes) -> None:
        for length in range(1, 100):
            writer.write(letter * length)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    payloads = read_all(stream.getvalue())
    assert len(payloads) == 3 * 99
    assert all(len(set(payload)) == 1 for payload in payloads)
