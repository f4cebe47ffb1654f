"""The tokenizer fingerprint: the same for one vocabulary, another for any difference that matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.check import check_model_file
from model_store.fingerprint import FIRST_TOKEN, TO_HASH, tokenizer_fingerprint
from model_store.gguf_header import GgufError, read_header
from native.quantize import quantize
from tests.model_store.raw_gguf import BOOL, CHAT, Raw, gguf, string, strings, text, u32
from tests.tiny_gguf import Tiny, write_llama

TOKENS = [f"token {i}" for i in range(40_000)]  # longer than the reader's window
BASE = {
    **CHAT,
    "tokenizer.ggml.pre": text("gpt-2"),
    "tokenizer.ggml.tokens": strings(TOKENS),
    "tokenizer.ggml.bos_token_id": u32(1),
    "tokenizer.ggml.add_bos_token": Raw(BOOL, b"\x01"),
}


def fingerprint(path: Path, pairs: dict[str, Raw]) -> str | None:
    path.write_bytes(gguf(pairs))
    return tokenizer_fingerprint(read_header(path, hash_arrays=TO_HASH))


def changed(token: int, to: str) -> Raw:
    return strings([*TOKENS[:token], to, *TOKENS[token + 1 :]])


@pytest.mark.parametrize(
    "other",
    [
        {"tokenizer.ggml.model": text("llama")},
        {"tokenizer.ggml.pre": text("qwen2")},
        {"tokenizer.ggml.bos_token_id": u32(2)},
        {"tokenizer.ggml.eot_token_id": u32(3)},
        {"tokenizer.ggml.fim_pre_token_id": u32(3)},
        {"tokenizer.ggml.add_bos_token": Raw(BOOL, b"\x00")},
        {"tokenizer.ggml.add_eos_token": Raw(BOOL, b"\x00")},
        {"tokenizer.ggml.tokens": changed(FIRST_TOKEN, "other")},
        {"tokenizer.ggml.tokens": changed(30_000, "other")},
        {"tokenizer.ggml.tokens": strings([*TOKENS, "one more"])},
        # the same bytes, cut elsewhere
        {"tokenizer.ggml.tokens": strings([*TOKENS[:-2], TOKENS[-2] + TOKENS[-1][0], TOKENS[-1][1:]])},
    ],
)
def test_what_matters_changes_it(tmp_path: Path, other: dict[str, Raw]) -> None:
    path = tmp_path / "m.gguf"
    base = fingerprint(path, BASE)
    assert base is not None and len(base) == 32
    assert fingerprint(path, {**BASE, **other}) != base
    assert fingerprint(path, BASE) == base


@pytest.mark.parametrize(
    "other",
    [
        {"tokenizer.ggml.tokens": changed(FIRST_TOKEN - 1, "<|special|>")},
        {"general.name": text("another name")},
        {"tokenizer.chat_template": text("another template")},
    ],
)
def test_what_does_not_matter_leaves_it(tmp_path: Path, other: dict[str, Raw]) -> None:
    path = tmp_path / "m.gguf"
    assert fingerprint(path, {**BASE, **other}) == fingerprint(path, BASE)


def test_one_tokenizer_in_other_weights_and_quantisations(tmp_path: Path) -> None:
    first = write_llama(tmp_path / "first.gguf")
    second = write_llama(tmp_path / "second.gguf", Tiny(seed=5, n_layer=1))
    swapped = write_llama(tmp_path / "swapped.gguf", Tiny(swap=(300, 301)))
    quantize(first, tmp_path / "q8.gguf", "Q8_0")
    names = [
        tokenizer_fingerprint(check_model_file(path, "chat"))
        for path in (first, second, tmp_path / "q8.gguf", swapped)
    ]
    assert names[0] is not None
    assert names[0] == names[1] == names[2] != names[3]


def test_without_a_vocabulary_or_unasked_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    assert fingerprint(path, CHAT) is None
    assert fingerprint(path, {**CHAT, "tokenizer.ggml.tokens": u32(7)}) is None
    fingerprint(path, BASE)
    assert tokenizer_fingerprint(read_header(path)) is None


def test_fewer_tokens_than_are_left_out(tmp_path: Path) -> None:
    few = {**CHAT, "tokenizer.ggml.tokens": strings(["a", "b"])}
    assert fingerprint(tmp_path / "m.gguf", few) is not None


def test_a_cut_vocabulary_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    data = gguf(BASE)
    path.write_bytes(data[: data.index(string(TOKENS[-1])) + 4])
    with pytest.raises(GgufError, match="incomplete"):
        read_header(path, hash_arrays=TO_HASH)
