"""Which drafter fits which target, and the words for what does not: cases C01, C02, C04 and C06."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from model_store import pairing
from model_store.check import ModelFileError, check_model_file
from model_store.drafting_kind import DraftKind
from model_store.pairing import check_drafter
from model_store.starter import starter_path
from native.quantize import quantize
from tests.model_store.raw_gguf import CHAT, RawTensor, gguf, text
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import write_gemma3
from tests.models.gguf_file import GgufFile
from tests.models.lfm2 import write_lfm2
from tests.models.qwen3 import write_qwen3
from tests.models.qwen35 import write_qwen35
from tests.tiny_gguf import Tiny, write_llama

FOUR_LAYERS = Tiny(n_layer=4)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "target.gguf", FOUR_LAYERS)


def refusal(target: Path, drafter: Path, use: DraftKind | None = None) -> str:
    with pytest.raises(ModelFileError) as caught:
        check_drafter(target, drafter, use)
    return str(caught.value)


def draft(tmp_path: Path, **changes: object) -> Path:
    return write_llama(tmp_path / "draft.gguf", Tiny(n_layer=1, seed=5, **changes))  # type: ignore[arg-type]


# ---- C01


@pytest.mark.parametrize("n_vocab", [512, 513, 640])
def test_padding_up_to_128_tokens_fits(tmp_path: Path, target: Path, n_vocab: int) -> None:
    assert check_drafter(target, draft(tmp_path, n_vocab=n_vocab)) == "draft"


def test_a_padded_target_takes_a_smaller_drafter(tmp_path: Path) -> None:
    padded = write_llama(tmp_path / "padded.gguf", Tiny(n_vocab=640))
    assert check_drafter(padded, draft(tmp_path)) == "draft"


def test_more_than_padding_names_both_sizes(tmp_path: Path, target: Path) -> None:
    words = "its vocabulary has 641 tokens, the target's 512, and more than 128 of difference"
    text = refusal(target, draft(tmp_path, n_vocab=641))
    assert text == f"draft.gguf does not fit target.gguf: {words} cannot be padding."


# ---- C02


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"swap": (139, 300)}, "token 139: `as` vs `ĩ` in the target"),
        ({"swap": (139, 300), "n_vocab": 600}, "token 139: `as` vs `ĩ` in the target"),
        ({"pre": "qwen2"}, "its pre-tokenizer is `qwen2`, the target's `gpt-2`"),
        ({"tokenizer": "llama"}, "its tokenizer is `llama`, the target's `gpt2`"),
        ({"eos": 3}, "its eos token is 3, the target's 1"),
        ({"add_bos": True}, "it adds a first token to a text, the target does not"),
        ({"words": ("hello",)}, "token 511: `hello` vs `<filler_13>` in the target"),
    ],
)
def test_the_first_difference_of_two_tokenizers_is_named(
    tmp_path: Path, target: Path, changes: dict[str, object], words: str
) -> None:
    assert refusal(target, draft(tmp_path, **changes)) == f"draft.gguf does not fit target.gguf: {words}."


def test_special_tokens_may_be_written_differently(tmp_path: Path, target: Path) -> None:
    """Their texts vary between conversions of one model; their ids do not."""
    assert check_drafter(target, draft(tmp_path, swap=(0, 4))) == "draft"


def test_a_file_that_leaves_a_setting_out_fits(tmp_path: Path, target: Path) -> None:
    """Conversions differ in what they name: only what both say can contradict."""
    path = tmp_path / "terse.gguf"
    data = draft(tmp_path).read_bytes()
    path.write_bytes(data.replace(b"tokenizer.ggml.add_bos_token", b"tokenizer.ggml.add_xxx_token"))
    assert check_drafter(target, path) == "draft"


# ---- C04

HEADS = {"eagle3": write_eagle3, "dflash": write_dflash}


def test_each_head_fits_the_target_it_was_made_for(tmp_path: Path, target: Path) -> None:
    assert check_drafter(target, write_eagle3(tmp_path / "a.gguf")) == "eagle3"
    assert check_drafter(target, write_eagle3(tmp_path / "b.gguf", reduced=False)) == "eagle3"
    assert check_drafter(target, write_dflash(tmp_path / "c.gguf")) == "dflash"
    assert check_drafter(target, write_dflash(tmp_path / "d.gguf", markov=True)) == "dspark"
    hybrid = write_qwen35(tmp_path / "hybrid.gguf", Tiny(n_layer=4))
    assert check_drafter(hybrid, write_qwen35(tmp_path / "e.gguf", Tiny(n_layer=4), trunk=False)) == "mtp"


def test_wrong_kinds_are_refused_in_words(tmp_path: Path, target: Path) -> None:
    eagle3 = write_eagle3(tmp_path / "eagle3.gguf")
    dflash = write_dflash(tmp_path / "dflash.gguf")
    dspark = write_dflash(tmp_path / "dspark.gguf", markov=True)
    mtp = write_qwen35(tmp_path / "mtp.gguf", trunk=False)
    plain = draft(tmp_path)
    projector = tmp_path / "chat.gguf"
    projector.write_bytes(gguf({"general.architecture": text("clip")}))
    wrong: Sequence[tuple[Path, DraftKind | None, str]] = (
        (eagle3, "draft", "eagle3.gguf cannot be used as a draft model: it is an EAGLE-3 head."),
        (eagle3, "mtp", "eagle3.gguf cannot be used as an MTP head: it is an EAGLE-3 head."),
        (dflash, "dspark", "dflash.gguf cannot be used as a DSpark drafter: it is a DFlash drafter."),
        (dspark, "dflash", "dspark.gguf cannot be used as a DFlash drafter: it is a DSpark drafter."),
        (mtp, "eagle3", "mtp.gguf cannot be used as an EAGLE-3 head: it is an MTP head."),
        (plain, "eagle3", "draft.gguf cannot be used as an EAGLE-3 head: it is a chat model."),
        (
            projector,
            None,
            "chat.gguf cannot be used as a drafter: it is a projector for pictures or sound.",
        ),
    )
    for path, use, words in wrong:
        assert refusal(target, path, use) == words
    for head in (eagle3, dflash, dspark, mtp):
        with pytest.raises(ModelFileError, match="which only drafts for another model"):
            check_model_file(head, "chat")
        with pytest.raises(ModelFileError, match=r"cannot be used as a chat model: it is an?"):
            check_drafter(head, plain)


@pytest.mark.parametrize(
    ("drafter", "words"),
    [
        ("eagle3", "it reads hidden states of 128 values, the target's have 64"),
        ("dflash", "it reads hidden states of 128 values, the target's have 64"),
    ],
)
def test_another_hidden_size_names_both(tmp_path: Path, target: Path, drafter: str, words: str) -> None:
    head = HEADS[drafter](tmp_path / "head.gguf", Tiny(n_embd=128, n_layer=1))
    assert refusal(target, head) == f"head.gguf does not fit target.gguf: {words}."


def test_layers_that_the_target_has_not(tmp_path: Path, target: Path) -> None:
    """The input of the layer behind the last one exists in few architectures."""
    for layers, missing in (((1, 2, 4), 4), ((1, 2, 30), 30)):
        head = write_eagle3(tmp_path / "head.gguf", target_layers=layers)
        assert f"it reads layer {missing}, and the target has layers 0 to 3" in refusal(target, head)


def test_an_mtp_layer_is_no_layer_to_read(tmp_path: Path) -> None:
    """Some hand out what the last layer said, one place behind it; MTP layers are not counted."""
    hybrid = write_qwen35(tmp_path / "hybrid.gguf", Tiny(n_layer=2))
    head = write_eagle3(tmp_path / "head.gguf", target_layers=(0, 1, 2))
    assert check_drafter(hybrid, head) == "eagle3"
    head = write_eagle3(tmp_path / "head.gguf", target_layers=(0, 1, 3))
    assert "it reads layer 3, and the target has layers 0 to 2" in refusal(hybrid, head)
    block = write_dflash(tmp_path / "block.gguf", target_layers=(0, 1, 2))
    assert "it reads layer 2, and the target has layers 0 to 1" in refusal(hybrid, block)


def test_a_target_whose_layers_llama_cpp_keeps_to_itself(tmp_path: Path) -> None:
    gemma = write_gemma3(tmp_path / "gemma.gguf", FOUR_LAYERS)
    words = "it reads hidden states, which llama.cpp does not give out for the gemma3 architecture"
    assert words in refusal(gemma, write_eagle3(tmp_path / "head.gguf"))


def test_an_mtp_head_of_another_architecture(tmp_path: Path) -> None:
    head = write_qwen35(tmp_path / "head.gguf", trunk=False)
    other = write_qwen3(tmp_path / "other.gguf")
    assert "it is made for qwen35 models, and this one is qwen3" in refusal(other, head)


def test_a_head_that_borrows_must_have_the_targets_sizes(tmp_path: Path, target: Path) -> None:
    narrow = write_eagle3(tmp_path / "narrow.gguf", Tiny(n_embd=32), target_hidden_size=64)
    words = "it shares the target's token embeddings of 64 values, and its own have 32"
    assert words in refusal(target, narrow)
    padded = write_eagle3(tmp_path / "padded.gguf", Tiny(n_vocab=600), reduced=False)
    words = "its vocabulary has 600 tokens, the target's 512, and it shares the token embeddings"
    assert words in refusal(target, padded)
    free = write_eagle3(tmp_path / "free.gguf", Tiny(n_vocab=600, n_embd=32), target_hidden_size=64)
    assert "shares" in refusal(target, free)
    own = Tiny(n_vocab=600, n_embd=32)
    own_path = write_eagle3(tmp_path / "own.gguf", own, target_hidden_size=64, own_embeddings=True)
    assert check_drafter(target, own_path) == "eagle3"


def test_heads_that_llama_cpp_would_stop_at(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "head.gguf"
    assert "does not name three layers" in refusal(target, write_eagle3(path, target_layers=(1, 2)))
    data = write_eagle3(path).read_bytes()
    outside = np.int64(510).tobytes()
    path.write_bytes(data.replace(outside, np.int64(512).tobytes()))
    assert "it drafts token 512, and its vocabulary has 512" in refusal(target, path)
    path.write_bytes(write_dflash(path).read_bytes().replace(b".mask_token_id", b".xask_token_id"))
    assert "it names no mask token" in refusal(target, path)
    with GgufFile(path, "eagle3", 0) as file:
        file.transformer(Tiny(n_layer=2))
        file.numbers(target_layers=[1, 2, 3], target_hidden_size=64)
        file.tokenizer(Tiny())
        file.norm("output_norm.weight", Tiny())
    assert "it has 2 layers instead of one" in refusal(target, path)
    uneven = write_eagle3(path).read_bytes()
    at = uneven.index(key := b"eagle3.attention.value_length") + len(key) + 4
    path.write_bytes(uneven[:at] + (32).to_bytes(4, "little") + uneven[at + 4 :])
    assert "its keys have 16 values and its values 32" in refusal(target, path)
    path.write_bytes(write_dflash(path, markov=True, block_size=0).read_bytes())
    assert "it has no block size" in refusal(target, path)


def test_a_drafter_without_a_vocabulary(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "bare.gguf"
    path.write_bytes(gguf(CHAT, (RawTensor("token_embd.weight"),)))
    assert refusal(target, path) == "bare.gguf does not fit target.gguf: it has no vocabulary."


def test_missing_and_damaged_drafters(tmp_path: Path, target: Path) -> None:
    assert refusal(target, tmp_path / "gone.gguf") == f"gone.gguf was not found in {tmp_path}."
    half = tmp_path / "half.gguf"
    half.write_bytes(draft(tmp_path).read_bytes()[:-1000])
    assert "half.gguf cannot be used: incomplete" in refusal(target, half)


def test_the_starter_drafts_for_itself() -> None:
    starter = starter_path()
    assert starter is not None
    assert check_drafter(starter, starter) == "draft"


def test_a_quantised_drafter_fits_as_its_source_does(tmp_path: Path, target: Path) -> None:
    quantize(draft(tmp_path), tmp_path / "q8.gguf", "Q8_0")
    assert check_drafter(target, tmp_path / "q8.gguf") == "draft"


def test_what_this_program_cannot_run_is_refused_before_it_is_loaded(tmp_path: Path, target: Path) -> None:
    recurrent = write_lfm2(tmp_path / "draft.gguf")
    words = "cannot be used as a draft model: its memory cannot drop rejected tokens."
    assert refusal(target, recurrent) == f"draft.gguf {words}"
    second = write_dflash(tmp_path / "second.gguf", FOUR_LAYERS, selector=True)
    assert "it is a DFlash 2 drafter, which this version cannot run" in refusal(target, second)


# ---- C06


def test_a_verdict_is_kept_while_both_files_stay(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Path] = []
    judge = pairing._judge_files
    monkeypatch.setattr(pairing, "_judge_files", lambda t, d: judged.append(d) or judge(t, d))
    path = draft(tmp_path, swap=(139, 300))
    first = refusal(target, path)
    assert refusal(target, path, "draft") == first
    assert judged == [path]


def test_a_verdict_is_renewed_when_a_file_was_replaced_by_one_of_the_same_size_and_time(
    tmp_path: Path, target: Path
) -> None:
    path = draft(tmp_path, swap=(139, 140))
    before = path.stat()
    assert "token 139" in refusal(target, path)
    draft(tmp_path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert check_drafter(target, path) == "draft"
    # and the same for the target
    write_llama(target, Tiny(n_layer=4, swap=(139, 140)))
    assert "token 139" in refusal(target, path)
