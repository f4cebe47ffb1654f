"""After a rewind, whatever the memory, a context computes what a fresh one computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from llama_cpp import llama_cpp as lib

from native.context import Context, ContextOptions, Row
from native.errors import DecodeAborted
from native.model import Model
from tests.models.gemma3 import WINDOW, write_gemma3
from tests.models.lfm2 import write_lfm2
from tests.models.mamba import write_mamba
from tests.models.qwen35 import write_qwen35
from tests.tiny_gguf import write_llama

OPTIONS = ContextOptions(n_ctx=512, n_batch=64, n_outputs=8, kv_type="f32", flash_attention="off")
SNAPSHOTS = 5
KINDS: dict[str, tuple[Callable[[Path], Path], ContextOptions]] = {
    "attention": (write_llama, OPTIONS),
    "sliding window": (write_gemma3, OPTIONS),
    "sliding window alone": (write_gemma3, replace(OPTIONS, swa_full=False)),
    "hybrid with snapshots": (write_qwen35, replace(OPTIONS, n_snapshots=SNAPSHOTS)),
    "hybrid of convolutions": (write_lfm2, replace(OPTIONS, n_snapshots=SNAPSHOTS)),
    "hybrid with copies": (write_qwen35, OPTIONS),
    "recurrent": (write_mamba, replace(OPTIONS, n_snapshots=SNAPSHOTS)),  # it has none
}
SNAPSHOT_KINDS = ("hybrid with snapshots", "hybrid of convolutions")
RECURRENT = (*SNAPSHOT_KINDS, "hybrid with copies", "recurrent")
TEXT = [int(token) for token in np.random.default_rng(0).integers(5, 500, 460)]
OTHER = [int(token) for token in np.random.default_rng(1).integers(5, 500, 460)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def context(kind: str, tmp_path: Path) -> Iterator[Context]:
    write, options = KINDS[kind]
    with Model(write(tmp_path / "tiny.gguf")) as model:
        yield Context(model, options)


def rows(tokens: list[int], start: int, wanted: bool = False) -> list[Row]:
    """A pass; logits of the last row, or of all if ``wanted``."""
    last = len(tokens) - 1
    return [(0, token, start + i, wanted or i == last) for i, token in enumerate(tokens)]


def read(context: Context, tokens: list[int], start: int = 0) -> None:
    """What a prompt does: in passes of n_batch."""
    for at in range(start, len(tokens), context.n_batch):
        context.decode(rows(tokens[at : at + context.n_batch], at))


def expect(context: Context, tokens: list[int]) -> None:
    """The context has read ``tokens``, and says next what a fresh one would."""
    said = context.logits()[-1].copy()
    with Context(context.model, context.options) as fresh:
        read(fresh, tokens)
        np.testing.assert_allclose(said, fresh.logits()[-1], atol=2e-4)


def go_on(context: Context, tokens: list[int], length: int) -> int:
    """Rewind to the first ``length`` of the tokens and read the rest again; how many were left."""
    left = context.rewind(0, length)
    assert left == context.length(0) <= length
    read(context, tokens, left)
    expect(context, tokens)
    return left


@pytest.mark.parametrize("accepted", range(5))
def test_a_draft_that_is_accepted_in_part(context: Context, kind: str, accepted: int) -> None:
    """The last token and four drafted ones, of which so many were right; twice, and deep in the text."""
    read(context, TEXT[:40])
    text = TEXT[:40]
    for start in (40, 60):
        text = TEXT[:start]
        read(context, text, context.length(0))
        right = TEXT[start : start + 1 + accepted]
        context.decode(rows([*right, *OTHER[: 4 - accepted]], start, wanted=True))
        kept = start + 1 + accepted
        left = context.rewind(0, kept)
        assert left == context.length(0)
        if accepted == 4 or kind not in ("hybrid with copies", "recurrent"):
            assert left == kept
        else:
            assert left == start  # the copy from before the pass
        text = TEXT[: kept + 1]
        context.decode(rows(text[left:], left))
        expect(context, text)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 128, 300, 400, 449])
def test_an_edited_message(context: Context, kind: str, length: int) -> None:
    """The text goes on differently from somewhere before, which may be far behind the window."""
    assert len(TEXT) > 10 * WINDOW
    read(context, TEXT[:450])
    left = go_on(context, [*TEXT[:length], *OTHER[:30]], length)
    if kind in ("attention", "sliding window"):
        assert left == length
    elif kind == "sliding window alone":
        # llama.cpp keeps 256 cells here
        assert left == (length if length >= 300 else 0)
    elif kind in SNAPSHOT_KINDS and length == 449:
        assert left == length
    else:
        assert left == length // 64 * 64  # where a pass over the prompt began


def test_a_window_that_is_gone_is_read_again(tmp_path: Path) -> None:
    write, options = KINDS["sliding window alone"]
    with Model(write(tmp_path / "tiny.gguf")) as model, Context(model, options) as context:
        read(context, TEXT[:450])
        assert go_on(context, [*TEXT[:40], *OTHER[:30]], 40) == 0
        assert context.rewind(0, 0) == 0
        read(context, TEXT[:450])
        assert go_on(context, [*TEXT[:446], *OTHER[:30]], 446) == 446


def test_no_token_of_a_window_is_missing_after_a_rewind(tmp_path: Path) -> None:
    """Beside a context that keeps all: the window's tokens are counted by the size of their state."""
    write, options = KINDS["sliding window alone"]
    generator = random.Random(0)
    with Model(write(tmp_path / "tiny.gguf")) as model:
        contexts = [Context(model, replace(options, swa_full=full)) for full in (False, True)]
        length = granted = refused = 0
        for _ in range(400):
            if length > options.n_ctx - 64:
                length = 0
                for context in contexts:
                    context.forget(0)
            tokens = [generator.randrange(5, 500) for _ in range(generator.choice((1, 2, 8, 64)))]
            for context in contexts:
                context.decode(rows(tokens, length))
            length += len(tokens)
            wanted = max(0, length - generator.choice((0, 1, 5, 60, 250)))
            left = contexts[0].rewind(0, wanted)
            contexts[1].rewind(0, left)
            granted += left == wanted < length
            refused += left < wanted
            length = left
            sizes = {
                lib.llama_state_seq_get_size_ext(context.handle, 0, lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)
                for context in contexts
            }
            assert len(sizes) == 1
        assert granted > 200 and refused > 0


def test_more_snapshots_than_a_pass_has_rows_for(tmp_path: Path) -> None:
    """llama.cpp would end the process."""
    with Model(write_qwen35(tmp_path / "tiny.gguf")) as model:
        for n_batch in range(1, 5):
            options = replace(OPTIONS, n_batch=n_batch, n_outputs=n_batch, n_snapshots=8)
            with Context(model, options) as context:
                assert context.n_snapshots == max(0, n_batch - 2)
                read(context, TEXT[:20])
                expect(context, TEXT[:20])


def test_llama_cpp_grants_a_snapshot_that_is_not_there(tmp_path: Path) -> None:
    """Its word alone would be wrong: a pass of one token leaves no snapshot of the tokens before it."""
    write, options = KINDS["hybrid with snapshots"]
    with Model(write(tmp_path / "tiny.gguf")) as model, Context(model, options) as context:
        assert context.n_snapshots == SNAPSHOTS
        read(context, TEXT[:40])
        for at in range(40, 46):
            context.decode(rows(TEXT[at : at + 1], at))
        wrong = lib.llama_memory_seq_rm(lib.llama_get_memory(context.handle), 0, 43, -1)
        assert wrong
        context.decode(rows(TEXT[43:46], 43))
        with pytest.raises(AssertionError):
            expect(context, TEXT[:46])
        context.forget(0)
        read(context, TEXT[:40])
        for at in range(40, 46):
            context.decode(rows(TEXT[at : at + 1], at))
        assert go_on(context, [*TEXT[:43], *OTHER[:9]], 43) == 0


def test_a_snapshot_serves_once(tmp_path: Path) -> None:
    write, options = KINDS["hybrid with snapshots"]
    with Model(write(tmp_path / "tiny.gguf")) as model, Context(model, options) as context:
        read(context, TEXT[:64])
        read(context, TEXT[:100], 64)
        context.decode(rows(TEXT[100:104], 100, wanted=True))
        assert context.rewind(0, 103) == 103
        assert go_on(context, [*TEXT[:102], *OTHER[:9]], 102) == 64


def test_a_refused_rewind_leaves_nothing_behind(
    context: Context, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(context, TEXT[:60])
    context.decode(rows(TEXT[60:64], 60, wanted=True))
    really = lib.llama_memory_seq_rm
    monkeypatch.setattr(lib, "llama_memory_seq_rm", lambda m, s, p0, p1: p0 < 0 and really(m, s, p0, p1))
    assert context.rewind(0, 62) == 0
    assert context.length(0) == 0
    monkeypatch.undo()
    read(context, TEXT[:70])
    expect(context, TEXT[:70])


def test_a_stopped_pass_leaves_what_was_there(context: Context, kind: str) -> None:
    read(context, TEXT[:128])
    context.abort()
    with pytest.raises(DecodeAborted):
        context.decode(rows(TEXT[128:192], 128))
    assert context.length(0) == 128
    context.allow()
    context.decode(rows(TEXT[128:150], 128))
    expect(context, TEXT[:150])


def test_a_recurrent_state_is_not_left_in_the_middle_of_a_token(context: Context, kind: str) -> None:
    read(context, TEXT[:40])
    context.abort()
    if kind not in RECURRENT:
        with pytest.raises(DecodeAborted):
            context.decode(rows(TEXT[40:41], 40))
        assert context.length(0) == 40
        return
    context.decode(rows(TEXT[40:41], 40))
    context.allow()
    context.decode(rows(TEXT[41:42], 41))
    expect(context, TEXT[:42])


def test_two_sequences_are_rewound_apart(context: Context, kind: str) -> None:
    options = replace(context.options, n_seq_max=2)
    with Context(context.model, options) as both:
        for seq, text in ((0, TEXT), (1, OTHER)):
            both.decode([(seq, token, i, i == 29) for i, token in enumerate(text[:30])])
        draft = [(seq, token, 30 + i, True) for seq in (0, 1) for i, token in enumerate(TEXT[100:104])]
        both.decode(draft)
        lengths = [both.rewind(0, 31), both.rewind(1, 33)]
        assert lengths == [both.length(0), both.length(1)]
        texts = [[*TEXT[:30], TEXT[100], 9], [*OTHER[:30], *TEXT[100:103], 9]]
        for seq, text in enumerate(texts):
            left = lengths[seq]
            both.decode([(seq, t, left + i, left + i == len(text) - 1) for i, t in enumerate(text[left:])])
            said = both.logits()[-1].copy()
            with Context(context.model, context.options) as fresh:
                read(fresh, text)
                np.testing.assert_allclose(said, fresh.logits()[-1], atol=2e-4)


def test_kept_states_are_bounded(tmp_path: Path) -> None:
    """The first and the newest stay."""
    options = replace(OPTIONS, n_batch=16)
    with Model(write_mamba(tmp_path / "tiny.gguf")) as model, Context(model, options) as context:
        read(context, TEXT[:300])
        recurrent = context._recurrent
        assert recurrent is not None
        assert [saved.length for saved in recurrent._kept[0]] == [16, 192, 208, 224, 240, 256, 272, 288]
        context.rewind(0, 250)
        assert context.length(0) == 240
        assert max(saved.length for saved in recurrent._kept[0]) == 240
        context.forget(0)
        assert not recurrent._kept[0]
