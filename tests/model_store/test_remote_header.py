"""A header on the Hub tells what the file on disk would, for few bytes: cases C02, C04 and F02."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from model_store import remote_header
from model_store.check import ModelFileError, check_use, read_model_file
from model_store.classify import classify
from model_store.drafting_kind import drafting_kind, heads_inside
from model_store.fingerprint import tokenizer_fingerprint
from model_store.hub import Hub, HubError, HubFile
from model_store.pairing import check_drafter, check_pair
from model_store.remote_header import BLOCK, BlockFile, RemoteHeaders
from model_store.starter import starter_path
from tests.model_store.local_hub import Fault, LocalHub
from tests.model_store.raw_gguf import (
    ARRAY,
    CHAT,
    F32,
    TENSORS,
    Raw,
    RawTensor,
    floats,
    gguf,
    strings,
    text,
    u32,
)
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import write_gemma3
from tests.models.gemma4 import write_gemma4, write_gemma4_assistant
from tests.models.qwen35 import write_qwen35
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/models-GGUF"
SIZES = Tiny(n_layer=4)


@pytest.fixture
def server() -> Iterator[LocalHub]:
    with LocalHub() as server:
        yield server


@pytest.fixture
def headers(server: LocalHub) -> RemoteHeaders:
    return RemoteHeaders(Hub(server.url))


def put(server: LocalHub, content: bytes | Path, name: str = "model.gguf") -> HubFile:
    server.add(REPO, {name: content})
    return Hub(server.url).repository(REPO).file(name)


# ---- the same as on disk


def mtp_only(path: Path) -> Path:
    return write_qwen35(path, trunk=False)


def dspark(path: Path) -> Path:
    return write_dflash(path, SIZES, markov=True)


WRITERS: dict[str, Callable[[Path], Path]] = {
    "llama": write_llama,
    "MTP heads inside": write_qwen35,
    "MTP heads alone": mtp_only,
    "an assistant": write_gemma4_assistant,
    "EAGLE-3": write_eagle3,
    "DFlash": write_dflash,
    "DSpark": dspark,
    "sliding window": write_gemma3,
}


@pytest.mark.parametrize("name", WRITERS)
def test_all_that_is_known_of_a_file_here_is_known_of_it_there(
    server: LocalHub, headers: RemoteHeaders, tmp_path: Path, name: str
) -> None:
    path = WRITERS[name](tmp_path / "model.gguf")
    here, there = read_model_file(path), headers.gguf(put(server, path)).header
    assert there == here
    assert classify(there) == classify(here)
    assert drafting_kind(there) == drafting_kind(here)
    assert heads_inside(there) == heads_inside(here)
    assert tokenizer_fingerprint(there) == tokenizer_fingerprint(here) is not None


def eagle3_of_another_size(path: Path) -> Path:
    return write_eagle3(path, Tiny(n_layer=4, n_embd=128))


def swapped_tokens(path: Path) -> Path:
    return write_llama(path, Tiny(swap=(139, 300)))


def other_pre_tokenizer(path: Path) -> Path:
    return write_llama(path, Tiny(pre="qwen2"))


def padded(path: Path) -> Path:
    return write_llama(path, Tiny(n_vocab=600))


def head(path: Path) -> Path:
    return write_eagle3(path, SIZES)


DRAFTERS: dict[str, Callable[[Path], Path]] = {
    "a draft model": write_llama,
    "one with padding": padded,
    "a head": head,
    "a head of another size": eagle3_of_another_size,
    "tokens swapped": swapped_tokens,
    "another pre-tokenizer": other_pre_tokenizer,
    "DFlash": lambda path: write_dflash(path, SIZES),
    "an assistant": write_gemma4_assistant,
    "MTP heads of another architecture": mtp_only,
}


def verdict(check: Callable[[], str]) -> str:
    try:
        return check()
    except ModelFileError as error:
        return str(error)


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_pair_gets_the_same_verdict_before_the_download(
    server: LocalHub, headers: RemoteHeaders, tmp_path: Path, name: str
) -> None:
    target = write_llama(tmp_path / "target.gguf", SIZES)
    drafter = DRAFTERS[name](tmp_path / "drafter.gguf")
    server.add(REPO, {path.name: path for path in (target, drafter)})
    files = Hub(server.url).repository(REPO)
    there = [headers.gguf(files.file(path.name)) for path in (target, drafter)]
    here = verdict(lambda: check_drafter(target, drafter))
    assert verdict(lambda: check_pair(there[0], there[1])) == here
    fits = ("a draft model", "one with padding", "a head", "DFlash")
    assert here.startswith("drafter.gguf ") == (name not in fits)


def test_the_first_difference_of_two_tokenizers_is_named(
    server: LocalHub, headers: RemoteHeaders, tmp_path: Path
) -> None:
    paths = [write_llama(tmp_path / "a.gguf"), swapped_tokens(tmp_path / "b.gguf")]
    server.add(REPO, {path.name: path for path in paths})
    files = Hub(server.url).repository(REPO)
    target, drafter = (headers.gguf(files.file(path.name)) for path in paths)
    with pytest.raises(ModelFileError, match="token 139: `as` vs `ĩ` in the target"):
        check_pair(target, drafter)


def test_a_target_must_be_a_chat_model(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    there = headers.gguf(put(server, head(tmp_path / "head.gguf"), "head.gguf"))
    with pytest.raises(ModelFileError, match="cannot be used as a chat model: it is an EAGLE-3"):
        check_pair(there, there)


# ---- few bytes


def test_an_outline_of_the_starter_takes_one_block(server: LocalHub, headers: RemoteHeaders) -> None:
    starter = starter_path()
    assert starter is not None
    file = put(server, starter, "starter.gguf")
    outline = headers.outline(file)
    assert (outline.architecture, outline.number("{arch}.context_length")) == ("llama", 8192)
    assert not outline.complete and classify(outline).kind == "chat"
    assert headers.fetched == server.sent(REPO, "starter.gguf") == BLOCK


def test_a_header_takes_little_more_than_its_own_length(server: LocalHub, headers: RemoteHeaders) -> None:
    starter = starter_path()
    assert starter is not None
    file = put(server, starter, "starter.gguf")
    header = headers.gguf(file).header
    assert header == read_model_file(starter)
    assert headers.fetched == server.sent(REPO, "starter.gguf") <= header.data_offset + 8 * BLOCK
    assert len(server.requests(server.file(REPO, "starter.gguf").sha256)) <= 9


def test_a_vocabulary_of_262144_tokens(server: LocalHub, headers: RemoteHeaders) -> None:
    words = strings([f"token number {number}" for number in range(262_144)])
    scores = Raw(ARRAY, F32.to_bytes(4, "little") + (1 << 20).to_bytes(8, "little") + bytes(1 << 22))
    pairs = {**CHAT, "tokenizer.ggml.tokens": words, "tokenizer.ggml.scores": scores}
    big = RawTensor("token_embd.weight", (1024, 2048), bytes=1 << 23)
    content = gguf({**pairs, "tokenizer.ggml.eos_token_id": u32(3)}, (big,))
    header = headers.gguf(put(server, content)).header
    assert tokenizer_fingerprint(header) is not None and header.number("tokenizer.ggml.eos_token_id") == 3
    tokens = len(content) - (1 << 23) - (1 << 22)
    assert headers.fetched < tokens + 24 * BLOCK, "neither all scores nor the weights"


def test_what_is_known_is_not_fetched_again(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    file = put(server, write_llama(tmp_path / "model.gguf"))
    headers.gguf(file)
    fetched = headers.fetched
    assert headers.gguf(file).header is headers.outline(file)
    assert headers.fetched == fetched


def test_a_new_commit_is_looked_at_anew(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    """Case C06."""
    target = headers.gguf(put(server, write_llama(tmp_path / "target.gguf", SIZES)))
    before = put(server, swapped_tokens(tmp_path / "drafter.gguf"))
    with pytest.raises(ModelFileError, match="token 139"):
        check_pair(target, headers.gguf(before))
    after = put(server, write_llama(tmp_path / "drafter.gguf"))
    assert (after.path, after.size) == (before.path, before.size)
    assert check_pair(target, headers.gguf(after)) == "draft"


def test_a_header_in_an_unusual_order_is_read_to_its_end(server: LocalHub, headers: RemoteHeaders) -> None:
    words = strings(["one", "two"])
    pairs = {"tokenizer.ggml.tokens": words, "general.architecture": text("llama"), **CHAT}
    outline = headers.outline(put(server, gguf(pairs)))
    assert outline.complete and outline.architecture == "llama"


def test_several_threads_may_ask(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    file = put(server, write_llama(tmp_path / "model.gguf"))
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(headers.gguf(file).header.architecture))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["llama"] * 8


# ---- what is wrong


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a model, whatever its name says", "not a GGUF file"),
        (gguf(pair_count=500_000_000), "it claims 500,000,000 metadata entries"),
        (gguf(tensors=(RawTensor("token_embd.weight", (1 << 40,)),)), "incomplete"),
        (gguf()[:40], "incomplete"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_words(
    server: LocalHub, headers: RemoteHeaders, content: bytes, words: str
) -> None:
    with pytest.raises(ModelFileError, match=f"model.gguf cannot be used: .*{words}"):
        headers.gguf(put(server, content))


def test_a_header_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_header, "_MOST_FETCHED", 16 * BLOCK)
    start = gguf({"tokenizer.ggml.tokens": Raw(ARRAY, b"\x08\0\0\0" + (1 << 20).to_bytes(8, "little"))}, ())
    size = 1 << 40
    blocks = BlockFile(lambda offset, length: (start if offset == 0 else b"").ljust(length, b"\0"), size)

    class Endless(Hub):
        def read(self, file: HubFile, offset: int, length: int) -> bytes:
            return blocks.read_all(offset, length)

    file = HubFile(REPO, "1" * 40, "model.gguf", size, None, "")
    with pytest.raises(ModelFileError, match="its header is longer than 1,048,576 bytes"):
        RemoteHeaders(Endless()).gguf(file)
    assert blocks.fetched <= 16 * BLOCK


def test_one_request_may_go_wrong(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    file = put(server, write_llama(tmp_path / "model.gguf"))
    server.script(REPO, file.path, Fault("status_503"))
    assert headers.outline(file).architecture == "llama"
    other = put(server, write_llama(tmp_path / "model.gguf", Tiny(seed=1)))
    server.script(REPO, other.path, Fault("status_503"), Fault("status_503"))
    with pytest.raises(HubError) as caught:
        headers.outline(other)
    assert caught.value.kind == "server"


def test_a_part_that_is_too_short_is_not_taken_for_the_header(
    server: LocalHub, headers: RemoteHeaders, tmp_path: Path
) -> None:
    path = write_llama(tmp_path / "model.gguf")
    file = put(server, path)
    server.script(REPO, file.path, Fault("short_without_length"))
    assert headers.gguf(file).header == read_model_file(path)
    other = put(server, write_llama(tmp_path / "model.gguf", Tiny(seed=1)))
    server.script(REPO, other.path, *[Fault("short_without_length")] * 2)
    with pytest.raises(HubError, match="Only a part of the header"):
        headers.outline(other)


def test_a_file_that_is_gone_or_gated_says_so(
    server: LocalHub, headers: RemoteHeaders, tmp_path: Path
) -> None:
    path = write_llama(tmp_path / "model.gguf")
    gone = put(server, path)
    server.repositories.pop(REPO)
    with pytest.raises(HubError) as caught:
        headers.outline(gone)
    assert caught.value.kind == "not_found"
    gated = put(server, path)
    server.repositories[REPO].gated = frozenset()
    with pytest.raises(HubError) as caught:
        headers.outline(gated)
    assert caught.value.kind == "gated"
    server.repositories[REPO].gated = None


def test_an_embedding_model_is_no_target(server: LocalHub, headers: RemoteHeaders) -> None:
    file = put(server, gguf({**CHAT, "llama.pooling_type": u32(2)}, TENSORS), "chat.gguf")
    with pytest.raises(ModelFileError, match="cannot be used as a chat model: it is an embedding"):
        check_use(file.name, headers.outline(file), "chat")


def test_arrays_of_numbers_do_not_count_as_tokens(server: LocalHub, headers: RemoteHeaders) -> None:
    file = put(server, gguf({**CHAT, "tokenizer.ggml.tokens": floats([1.0, 2.0])}))
    assert tokenizer_fingerprint(headers.gguf(file).header) is None


def test_gemma4_and_its_assistant(server: LocalHub, headers: RemoteHeaders, tmp_path: Path) -> None:
    paths = [write_gemma4(tmp_path / "t.gguf"), write_gemma4_assistant(tmp_path / "mtp-t.gguf")]
    server.add(REPO, {path.name: path for path in paths})
    files = Hub(server.url).repository(REPO)
    target, drafter = (headers.gguf(files.file(path.name)) for path in paths)
    assert check_pair(target, drafter) == "mtp"
