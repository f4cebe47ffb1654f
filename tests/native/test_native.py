"""The llama.cpp wrappers on a tiny model: ownership, errors in its own words, rewind, abort, views."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from native.context import Context, ContextOptions
from native.errors import (
    ContextError,
    DecodeAborted,
    DecodeError,
    LoadCancelled,
    ModelLoadError,
    NativeError,
    NoKvSlot,
)
from native.log import lines_since, mark
from native.model import Model
from native.quantize import quantize
from tests.tiny_gguf import BOS, EOS, IM_END, IM_START, Tiny, write_llama

OPTIONS = ContextOptions(
    n_ctx=256, n_batch=64, n_outputs=8, n_threads=1, kv_type="f32", flash_attention="off"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("native") / "t0.gguf")


@pytest.fixture
def model(path: Path) -> Iterator[Model]:
    with Model(path) as model:
        yield model


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    with Context(model, OPTIONS) as context:
        yield context


def _rows(tokens: list[int], start: int = 0, seq: int = 0) -> list[tuple[int, int, int, bool]]:
    last = len(tokens) - 1
    return [(seq, token, start + i, i == last) for i, token in enumerate(tokens)]


def test_a_models_facts(model: Model) -> None:
    assert (model.n_vocab, model.n_layer, model.n_embd) == (512, 2, 64)
    assert (model.bos, model.eos, model.adds_bos) == (BOS, EOS, False)
    assert model.architecture == "llama" and model.metadata["llama.context_length"] == "2048"
    assert model.special_tokens == {"<s>": 0, "</s>": 1, "<|im_start|>": 2, "<|im_end|>": 3}
    assert model.end_of_generation == {EOS, IM_END}
    assert model.vocab_type == "BPE"
    assert not (model.is_recurrent or model.is_hybrid or model.n_swa or model.n_layer_nextn)
    assert model.has_decoder and not model.has_encoder


@pytest.mark.parametrize("text", ["hello there", "👩‍💻漢字é", "", "a\x00b", "<|im_end|>", " x\n\n"])
def test_tokens_spell_the_text_again(model: Model, text: str) -> None:
    tokens = model.tokenize(text, parse_special=False)
    assert b"".join(map(model.token_bytes, tokens)).decode() == text
    assert IM_END not in tokens


def test_special_parsing_and_text_of_control_tokens(model: Model) -> None:
    assert model.tokenize("<|im_start|><|im_end|>", parse_special=True) == [IM_START, IM_END]
    assert model.token_bytes(IM_END) == b""
    assert model.token_bytes(IM_END, special=True) == b"<|im_end|>"
    with pytest.raises(NativeError):
        model.token_text(512)


def test_load_reports_progress_and_can_be_cancelled(path: Path) -> None:
    seen: list[float] = []
    Model(path, progress=lambda f: seen.append(f) is None).close()
    assert seen and seen == sorted(seen) and seen[-1] == 1.0
    with pytest.raises(LoadCancelled):
        Model(path, progress=lambda _: False)


def test_a_bad_file_fails_with_llama_cpps_words(path: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ModelLoadError) as error:
        Model(bad)
    assert "bad.gguf" in str(error.value) and error.value.log_lines


def test_closed_things_raise_and_close_twice_is_fine(path: Path) -> None:
    model = Model(path)
    context = Context(model, OPTIONS)
    model.close()
    model.close()
    for action in (
        lambda: context.decode(_rows([5])),
        context.logits,
        lambda: context.rewind(0, 0),
        lambda: model.tokenize("x", parse_special=True),
        lambda: Context(model, OPTIONS),
    ):
        with pytest.raises(NativeError):
            action()
    context.close()


def test_logits_are_a_view_of_the_wanted_rows_in_order(context: Context) -> None:
    tokens = [10, 11, 12, 13]
    context.decode([(0, t, i, i in (1, 3)) for i, t in enumerate(tokens)])
    rows = context.logits()
    assert rows.shape == (2, 512) and rows.dtype == np.float32 and not rows.flags.owndata
    both = rows.copy()
    for row, n in enumerate((2, 4)):
        context.forget(0)
        context.decode(_rows(tokens[:n]))
        np.testing.assert_allclose(context.logits()[0], both[row], atol=1e-4)


def test_the_number_of_threads_may_change_between_passes(context: Context) -> None:
    rows = [(0, 40 + i, i, i == 7) for i in range(8)]
    context.decode(rows)
    before = context.logits().copy()
    context.use_threads(3)
    context.rewind(0, 0)
    context.decode(rows)
    np.testing.assert_allclose(context.logits(), before, atol=1e-4)


def test_rewind_makes_the_cache_as_if_it_had_never_been(context: Context) -> None:
    context.decode(_rows([10, 11, 12]))
    fresh = context.logits()[0].copy()
    context.decode(_rows([200, 201], start=3))
    assert context.length(0) == 5
    assert context.rewind(0, 2)
    assert context.length(0) == 2
    context.decode(_rows([12], start=2))
    np.testing.assert_allclose(context.logits()[0], fresh, atol=1e-4)
    context.forget(0)
    assert context.length(0) == 0


def test_two_sequences_do_not_see_each_other(model: Model) -> None:
    options = ContextOptions(
        n_ctx=256, n_batch=64, n_outputs=8, n_seq_max=2, kv_type="f32", flash_attention="off"
    )
    with Context(model, options) as context:
        context.decode(_rows([10, 11, 12], seq=0))
        alone = context.logits()[0].copy()
        context.forget(0)
        context.decode([*_rows([10, 11, 12], seq=0), *_rows([300, 301], seq=1)])
        np.testing.assert_allclose(context.logits()[0], alone, atol=1e-4)


def test_passes_that_do_not_fit_are_refused_before_llama_cpp(context: Context) -> None:
    with pytest.raises(DecodeError):
        context.decode([])
    with pytest.raises(DecodeError):
        context.decode(_rows(list(range(65))))
    with pytest.raises(DecodeError):
        context.decode([(0, 5, i, True) for i in range(9)])
    with pytest.raises(NativeError):
        context.logits()


def test_a_full_context_and_a_wrong_token_leave_the_cache_as_it_was(context: Context) -> None:
    for start in range(0, 256, 64):
        context.decode(_rows([9] * 64, start=start))
    with pytest.raises(NoKvSlot):
        context.decode(_rows([9], start=256))
    assert context.length(0) == 256
    assert context.rewind(0, 10)
    with pytest.raises(DecodeError):
        context.decode(_rows([100_000], start=10))
    assert context.length(0) == 10
    context.decode(_rows([9], start=10))


def test_abort_from_another_thread_ends_a_pass_and_allow_lets_them_run(path: Path) -> None:
    big = Tiny(n_layer=2, n_ctx_train=65536)
    with Model(write_llama(path.parent / "long.gguf", big)) as model:
        context = Context(
            model,
            ContextOptions(n_ctx=32768, n_batch=2048, n_outputs=1, kv_type="f32", flash_attention="off"),
        )
        started = threading.Event()

        def stop() -> None:
            started.wait()
            context.abort()

        thread = threading.Thread(target=stop)
        thread.start()
        passes = 0
        with pytest.raises(DecodeAborted):
            while True:  # the abort may come between two passes: the next one ends at once then
                context.decode(_rows([9] * 2048, start=2048 * passes))
                passes += 1
                started.set()
        thread.join()
        assert context.length(0) == 2048 * passes
        with pytest.raises(DecodeAborted):
            context.decode(_rows([9], start=2048 * passes))
        context.allow()
        context.decode(_rows([9], start=2048 * passes))


def test_no_context_without_memory(model: Model) -> None:
    """Its compute buffer is the largest part: 20 TB, refused before a page of it is touched."""
    huge = ContextOptions(n_ctx=2**20, n_batch=2**20, n_outputs=1, flash_attention="off")
    with pytest.raises(ContextError, match="insufficient memory"):
        Context(model, huge)


def test_memory_is_told(context: Context) -> None:
    # 2 layers, 256 cells, 2 KV heads of 16 values, K and V, 4 bytes each
    exact = 2 * 256 * 32 * 2 * 4
    assert context.memory.kv == pytest.approx(exact, abs=0.01 * 2**20)  # it is logged to 0.01 MiB
    assert context.memory.compute > 0


def test_quantising_changes_the_weights_and_leaves_nothing_behind_when_it_fails(
    path: Path, tmp_path: Path
) -> None:
    smaller = tmp_path / "q8.gguf"
    quantize(path, smaller, "Q8_0")
    assert smaller.stat().st_size < path.stat().st_size / 2
    with Model(smaller) as model:
        assert model.n_vocab == 512
    with pytest.raises(NativeError):
        quantize(tmp_path / "missing.gguf", tmp_path / "out.gguf", "Q8_0")
    assert not (tmp_path / "out.gguf").exists()


def test_the_log_can_be_asked_what_came_after_a_place(path: Path) -> None:
    before = mark()
    Model(path).close()
    between = mark()
    n = len(lines_since(before))
    assert n > 10 and not lines_since(between)
    Model(path).close()
    assert len(lines_since(before)) == n + len(lines_since(between))
