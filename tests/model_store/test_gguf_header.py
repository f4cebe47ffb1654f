"""The header scanner: what whole files say, and how it refuses truncated and hostile ones."""

from __future__ import annotations

import ctypes
import io
import os
import struct
import time
import tracemalloc
from pathlib import Path

import gguf as gguf_package
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model_store.ggml_types import GGML_TYPES
from model_store.gguf_header import GgufError, Skipped, TruncatedGguf, read_header, read_header_from
from model_store.gguf_strings import strings_at_once
from model_store.starter import starter_path
from tests.model_store.fuzz_header import MOST_BYTES, MOST_SECONDS, fuzz
from tests.model_store.raw_gguf import (
    ARRAY,
    BOOL,
    CHAT,
    F32,
    STRING,
    TENSORS,
    U8,
    U32,
    U64,
    Raw,
    RawTensor,
    floats,
    gguf,
    string,
    strings,
    text,
    u32,
)

Q = struct.Struct("<Q")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def test_reads_metadata_and_tensors(file: Path) -> None:
    pairs = {
        **CHAT,
        "a.bool": Raw(BOOL, b"\x01"),
        "a.u8": Raw(U8, b"\xff"),
        "a.f32": Raw(F32, struct.pack("<f", 0.5)),
        "a.u64": Raw(U64, Q.pack(2**40)),
        "a.words": strings(["one", "", "three"]),
        "a.floats": floats([1.0, 2.0]),
        "llama.context_length": u32(8192),
    }
    file.write_bytes(gguf(pairs, (*TENSORS, RawTensor("output.weight", (32, 3), 3, bytes=60))))
    header = read_header(file)
    assert header.version == 3
    assert header.architecture == "llama"
    assert dict(header.metadata) == {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "a.bool": True,
        "a.u8": 255,
        "a.f32": 0.5,
        "a.u64": 2**40,
        "a.words": Skipped("string", 3),
        "a.floats": Skipped("float32", 2),
        "llama.context_length": 8192,
    }
    assert header.number("{arch}.context_length") == 8192
    assert header.number("a.bool") is None
    assert [
        (tensor.name, tensor.dims, tensor.type, tensor.offset, tensor.size) for tensor in header.tensors
    ] == [
        ("token_embd.weight", (32,), "F32", 0, 128),
        ("blk.0.attn_q.weight", (32,), "F32", 128, 128),
        ("output.weight", (32, 3), "Q4_1", 256, 60),
    ]
    assert header.data_offset % 32 == 0
    assert header.data_end == header.data_offset + 316 == header.file_size == file.stat().st_size


def test_keeps_small_arrays_that_are_asked_for(file: Path) -> None:
    pairs = {**CHAT, "a.layers": strings(["x", "y"]), "a.long": floats([0.0] * 5000)}
    file.write_bytes(gguf(pairs))
    header = read_header(file, keep_arrays=("a.layers", "a.long"))
    assert header.metadata["a.layers"] == ("x", "y")
    assert header.metadata["a.long"] == Skipped("float32", 5000)


def test_keeps_arrays_of_whatever_architecture_it_is(file: Path) -> None:
    heads = Raw(ARRAY, struct.pack("<IQ2I", U32, 2, 8, 4))
    after = {**CHAT, "llama.attention.head_count_kv": heads, "llamas.attention.head_count_kv": heads}
    file.write_bytes(gguf(after))
    header = read_header(file, keep_arrays=("{arch}.attention.head_count_kv",))
    assert header.numbers("{arch}.attention.head_count_kv") == (8, 4)
    assert header.metadata["llamas.attention.head_count_kv"] == Skipped("uint32", 2)
    before = {"llama.attention.head_count_kv": heads, **CHAT}
    file.write_bytes(gguf(before))
    assert (
        read_header(file, keep_arrays=("{arch}.attention.head_count_kv",)).numbers(
            "{arch}.attention.head_count_kv"
        )
        == ()
    )


def test_version_2_and_another_alignment(file: Path) -> None:
    pairs = {**CHAT, "general.alignment": u32(64)}
    file.write_bytes(gguf(pairs, version=struct.pack("<I", 2), alignment=64))
    header = read_header(file)
    assert (header.version, header.alignment, header.data_offset % 64) == (2, 64, 0)


def test_long_string_is_skipped_not_kept(file: Path) -> None:
    file.write_bytes(gguf({**CHAT, "tokenizer.chat_template": text("x" * 2**21)}))
    header = read_header(file)
    assert header.metadata["tokenizer.chat_template"] == Skipped("string", 2**21)
    assert header.text("tokenizer.chat_template") == ""
    assert header.data_end == header.file_size


def test_strings_are_skipped_across_read_windows(file: Path) -> None:
    words = [f"token {number}" * (number % 50) for number in range(20_000)]
    file.write_bytes(gguf({**CHAT, "t": strings(words), "after": text("it")}))
    assert file.stat().st_size > 2**21
    header = read_header(file)
    assert header.text("after") == "it"
    assert header.data_end == header.file_size


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    words=st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.integers(0, 300).map(bytes),
            st.sampled_from([b"\5" + bytes(7), b"x" * 255, b"x" * 256, b""]),
        ),
        max_size=40,
    ),
    before=st.binary(max_size=9),
    behind=st.binary(max_size=20),
    count=st.integers(1, 50),
)
def test_strings_found_at_once_are_those_that_are_there(
    words: list[bytes], before: bytes, behind: bytes, count: int
) -> None:
    data = before + b"".join(map(string, words)) + behind
    assume(len(data) >= len(before) + 8)
    passed, position = strings_at_once(data, len(before), count)
    starts = [len(before)]
    while starts[-1] + 8 <= len(data):
        starts.append(starts[-1] + 8 + Q.unpack_from(data, starts[-1])[0])
    assert passed <= count
    assert position == starts[passed]
    if all(0 < len(word) < 256 and bytes(7) not in word for word in words):
        assert passed >= min(count, len(words))


def test_agrees_with_the_gguf_package_on_the_starter() -> None:
    path = starter_path()
    assert path is not None
    theirs = gguf_package.GGUFReader(path)
    ours = read_header(path, keep_arrays=("general.languages",))
    scalars = {
        name: field.contents()
        for name, field in theirs.fields.items()
        if not name.startswith("GGUF.") and field.types[0] != gguf_package.GGUFValueType.ARRAY
    }
    assert {name: value for name, value in ours.metadata.items() if name in scalars} == scalars
    assert ours.metadata["general.languages"] == ("en",)
    assert ours.metadata["tokenizer.ggml.tokens"] == Skipped("string", 49152)
    assert ours.data_offset == theirs.data_offset
    assert ours.data_end == path.stat().st_size
    assert [(t.name, t.type, t.offset + ours.data_offset, t.size) for t in ours.tensors] == [
        (t.name, t.tensor_type.name, t.data_offset, t.n_bytes) for t in theirs.tensors
    ]
    assert [t.dims for t in ours.tensors] == [tuple(t.shape.tolist()) for t in theirs.tensors]


def test_type_table_is_that_of_libggml() -> None:
    import llama_cpp

    folder = Path(llama_cpp.__file__).parent / "lib"
    library = ctypes.CDLL(str(next(folder.glob("libggml-base.*"))))
    library.ggml_type_name.restype = ctypes.c_char_p
    library.ggml_type_size.restype = ctypes.c_size_t
    library.ggml_blck_size.restype = ctypes.c_int64
    theirs = {
        number: (library.ggml_type_name(number).decode().upper(), library.ggml_blck_size(number), size)
        for number in range(max(GGML_TYPES) + 1)
        if (size := library.ggml_type_size(number)) and library.ggml_blck_size(number)
    }
    assert {number: (t.name, t.block, t.block_bytes) for number, t in GGML_TYPES.items()} == theirs


# F01


def test_truncated_where_the_size_is_not_known_yet(file: Path) -> None:
    whole = gguf()
    for cut in (5, 10, 20, 30, 60, 100, 150):
        file.write_bytes(whole[:cut])
        with pytest.raises(TruncatedGguf) as caught:
            read_header(file)
        assert (caught.value.actual, caught.value.needed) == (cut, None), cut


def test_truncated_in_its_data(file: Path) -> None:
    whole = gguf()
    for cut in (len(whole) - 256, len(whole) - 128, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises(TruncatedGguf) as caught:
            read_header(file)
        assert (caught.value.actual, caught.value.needed) == (cut, len(whole))
        assert str(caught.value) == f"incomplete ({cut:,} of {len(whole):,} bytes)"


def test_every_cut_of_a_file_is_noticed(file: Path) -> None:
    whole = gguf({**CHAT, "t": strings(["a", "bc"]), "f": floats([1.0])})
    for cut in range(4, len(whole)):
        file.write_bytes(whole[:cut])
        with pytest.raises(TruncatedGguf):
            read_header(file)


# F02

ONE_TENSOR = {"general.architecture": text("llama")}
HOSTILE = {
    "pair count": gguf({}, (), pair_count=500_000_000),
    "pair count 2^64-1": gguf({}, (), pair_count=2**64 - 1),
    "tensor count": gguf({}, (), tensor_count=2**62),
    "key length 2^48-1": gguf({}, (), pair_count=1) + Q.pack(2**48 - 1) + b"key",
    "empty key": gguf([("", u32(1))], ()),
    "key is not text": gguf({}, (), pair_count=1) + string(b"\xff\xfe") + u32(1).data,
    "string length 2^63": gguf({"k": Raw(STRING, Q.pack(2**63) + b"abc")}, ()),
    "string length 2^64-1": gguf({"k": Raw(STRING, Q.pack(2**64 - 1))}, ()),
    "type 99": gguf({"k": Raw(99, b"")}, ()),
    "array of type 99": gguf({"k": Raw(ARRAY, struct.pack("<IQ", 99, 1))}, ()),
    "array of arrays": gguf({"k": Raw(ARRAY, struct.pack("<IQ", ARRAY, 1))}, ()),
    "array of 2^61 strings": gguf({"k": Raw(ARRAY, struct.pack("<IQ", STRING, 2**61))}, ()),
    "array of 2^63 floats": gguf({"k": Raw(ARRAY, struct.pack("<IQ", F32, 2**63))}, ()),
    "string in array 2^63": gguf({"k": Raw(ARRAY, struct.pack("<IQQ", STRING, 1, 2**63))}, ()),
    "5 dimensions": gguf(ONE_TENSOR, (RawTensor("t", (1, 1, 1, 1, 1)),)),
    "2^32-1 dimensions": gguf({}, (), tensor_count=1) + string("t") + struct.pack("<I", 2**32 - 1),
    "dimension 0": gguf(ONE_TENSOR, (RawTensor("t", (32, 0)),)),
    "dimensions overflow": gguf(ONE_TENSOR, (RawTensor("t", (2**32, 2**32)),)),
    "size overflows": gguf(ONE_TENSOR, (RawTensor("t", (2**62,)),)),
    "half a block": gguf(ONE_TENSOR, (RawTensor("t", (33,), 3),)),
    "tensor type 99": gguf(ONE_TENSOR, (RawTensor("t", (32,), 99),)),
    "removed tensor type": gguf(ONE_TENSOR, (RawTensor("t", (32,), 4),)),
    "alignment 0": gguf({"general.alignment": u32(0)}),
    "alignment 3": gguf({"general.alignment": u32(3)}),
    "alignment is a string": gguf({"general.alignment": text("32")}),
    "offset past the end": gguf(ONE_TENSOR, (RawTensor("t", offset=2**40),)),
    "offset not aligned": gguf(ONE_TENSOR, (RawTensor("t"), RawTensor("u", offset=129))),
    "tensors overlap": gguf(ONE_TENSOR, (RawTensor("t"), RawTensor("u", offset=0))),
    "version 0": gguf(version=struct.pack("<I", 0)),
    "version 1": gguf(version=struct.pack("<I", 1)),
    "version 2^32-1": gguf(version=struct.pack("<I", 2**32 - 1)),
    "big-endian version": gguf(version=struct.pack(">I", 3)),
    "big-endian magic": gguf(magic=b"FUGG"),
    "same key twice": gguf([("k", u32(1)), ("k", u32(2))], ()),
    "same tensor twice": gguf(ONE_TENSOR, (RawTensor("t"), RawTensor("t"))),
    "tensor name of 64 bytes": gguf(ONE_TENSOR, (RawTensor("t" * 64),)),
    "architecture is a number": gguf({"general.architecture": u32(1)}),
    "architecture is two lines": gguf({"general.architecture": text("llama\nis fine")}),
    "architecture is a novel": gguf({"general.architecture": text("x" * 10_000)}),
    "empty": b"",
    "one byte": b"G",
    "a web page": b"<!DOCTYPE html><html></html>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_header_is_refused_quickly_in_one_line(file: Path, name: str) -> None:
    file.write_bytes(HOSTILE[name])
    tracemalloc.start()
    started = time.thread_time()
    try:
        with pytest.raises(GgufError) as caught:
            read_header(file)
        elapsed = time.thread_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not isinstance(caught.value, TruncatedGguf), str(caught.value)
    reason = str(caught.value)
    assert reason
    assert len(reason) < 200
    assert reason.isprintable()
    assert elapsed < 0.05
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("big-endian version", "big-endian"),
        ("big-endian magic", "big-endian"),
        ("version 0", "version 0"),
        ("same key twice", "twice"),
        ("array of arrays", "array of arrays"),
        ("dimension 0", "dimensions"),
        ("alignment 3", "alignment"),
        ("a web page", "not a GGUF file"),
        ("empty", "empty"),
    ],
)
def test_reason_names_what_is_wrong(file: Path, name: str, reason: str) -> None:
    file.write_bytes(HOSTILE[name])
    with pytest.raises(GgufError, match=reason):
        read_header(file)


def test_reason_with_a_hostile_name_stays_in_one_line(file: Path) -> None:
    file.write_bytes(gguf({"evil\n\x1b[31m" + "x" * 1000: Raw(99, b"")}, ()))
    with pytest.raises(GgufError) as caught:
        read_header(file)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 150


def test_numbers_that_a_larger_file_would_bear_out_count_as_truncation(file: Path) -> None:
    file.write_bytes(gguf({"k": Raw(ARRAY, struct.pack("<IQ", STRING, 250_000))}, ()))
    with pytest.raises(TruncatedGguf):
        read_header(file)


def test_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    with pytest.raises(GgufError, match="not a regular file"):
        read_header(path)


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "absent.gguf")


def test_mutated_headers_are_read_or_refused_quickly_and_in_little_memory() -> None:
    seen = fuzz(1000, seed=7)
    assert seen.slowest < MOST_SECONDS
    assert seen.largest < MOST_BYTES
    # were all refused at once, nothing would have been tried
    assert all(seen.outcomes[outcome] > 10 for outcome in ("read", "read in part", "TruncatedGguf"))
    assert seen.outcomes["GgufError"] > 300


@pytest.mark.parametrize(
    ("pairs", "tensors"),
    [
        ({f"{number:04}" + "k" * 65_000: u32(1) for number in range(100)}, ()),
        ({f"key.{number}": text("🦙" * 50_000) for number in range(100)}, ()),
        ({f"key.{number}": u32(number) for number in range(8192)}, ()),
        ({}, [RawTensor(f"{number:063}", (1, 1, 1, 1), bytes=4) for number in range(16_384)]),
    ],
    ids=["keys", "strings", "pairs", "tensors"],
)
def test_what_is_kept_of_one_file_is_bounded(
    file: Path, pairs: dict[str, Raw], tensors: list[RawTensor]
) -> None:
    file.write_bytes(gguf({"general.architecture": text("llama"), **pairs}, tensors))
    tracemalloc.start()
    try:
        read_header(file)
    except GgufError as error:
        assert not isinstance(error, TruncatedGguf)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


class Trickle(io.BytesIO):
    """A file that gives less than it was asked for, as a connection does."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        return super().read(min(size, 7))


def test_header_is_read_from_any_file_object(file: Path) -> None:
    pairs = {**CHAT, "t": strings(["a", "bc"] * 100), "f": floats([1.0] * 10_000)}
    data = gguf(pairs)
    file.write_bytes(data)
    assert read_header_from(Trickle(data), len(data)) == read_header(file)
    with pytest.raises(TruncatedGguf):
        read_header_from(Trickle(data[:-200]), len(data) - 200)
    with pytest.raises(TruncatedGguf):  # shorter than was said
        read_header_from(Trickle(data[:150]), len(data))


def test_reading_can_end_before_the_vocabulary() -> None:
    words = strings(["word"] * 100_000)
    data = gguf({**CHAT, "tokenizer.ggml.tokens": words, "after": text("it")})
    file = io.BytesIO(data[: 2**18])  # nothing of what lies behind is read
    header = read_header_from(file, len(data), stop_at="tokenizer.ggml.tokens")
    assert dict(header.metadata) == {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": Skipped("string", 100_000),
    }
    assert (header.complete, header.tensors, header.tensor_count) == (False, (), len(TENSORS))
    whole = read_header_from(io.BytesIO(data), len(data), stop_at="absent")
    assert (whole.complete, len(whole.tensors), whole.tensor_count) == (True, 2, 2)


@pytest.mark.parametrize("kept", [["x" * 2**20 for _ in range(17)], ["x" * (2**20 + 1), "y"]])
def test_kept_array_whose_strings_are_too_long_is_skipped(file: Path, kept: list[str]) -> None:
    file.write_bytes(gguf({**CHAT, "words": strings(kept), "after": text("it")}))
    header = read_header(file, keep_arrays=("words",))
    assert header.metadata["words"] == Skipped("string", len(kept))
    assert header.text("after") == "it"


def test_vocabulary_of_250_000_tokens_is_passed_over_quickly(file: Path) -> None:
    words = strings([f"tok{number}" for number in range(250_000)])
    file.write_bytes(
        gguf({**CHAT, "tokenizer.ggml.tokens": words, "tokenizer.ggml.scores": floats([0.0] * 250_000)})
    )
    started = time.process_time()
    header = read_header(file)
    assert time.process_time() - started < 0.5  # 0.03 s here; building 250,000 strings takes longer
    assert header.metadata["tokenizer.ggml.tokens"] == Skipped("string", 250_000)
