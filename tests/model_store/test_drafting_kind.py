"""How a file can draft, and what it asks of its target, from its metadata alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from model_store.check import ModelFileError, read_model_file
from model_store.drafting_kind import Needs, drafting_kind, heads_inside, needs
from model_store.gguf_header import GgufHeader
from model_store.pairing import check_heads_inside
from native.architectures import MTP, SEVERAL_HEADS
from tests.model_store.raw_gguf import CHAT, TENSORS, RawTensor, gguf, text, u32
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import write_gemma3
from tests.models.mamba import write_mamba
from tests.models.qwen35 import write_qwen35
from tests.models.split import write_split
from tests.tiny_gguf import write_llama

BOTH = ("token embeddings", "output layer")
FILES: dict[str, tuple[Callable[[Path], Path], str, Needs]] = {
    "chat.gguf": (write_llama, "draft", Needs()),
    "swa.gguf": (write_gemma3, "draft", Needs()),
    "recurrent.gguf": (write_mamba, "draft", Needs()),
    "split.gguf": (write_split, "draft", Needs()),
    "inside.gguf": (write_qwen35, "draft", Needs()),
    "eagle3.gguf": (write_eagle3, "eagle3", Needs(64, (1, 2, 3), shared=("token embeddings",))),
    "eagle3 full.gguf": (
        lambda path: write_eagle3(path, reduced=False, target_layers=(0, 1, 3)),
        "eagle3",
        Needs(64, (0, 1, 3), shared=BOTH),
    ),
    "eagle3 own.gguf": (
        lambda path: write_eagle3(path, own_embeddings=True, target_hidden_size=128),
        "eagle3",
        Needs(128, (1, 2, 3)),
    ),
    "dflash.gguf": (write_dflash, "dflash", Needs(64, (1, 2, 3), shared=BOTH)),
    "dspark.gguf": (
        lambda path: write_dflash(path, markov=True),
        "dspark",
        Needs(64, (1, 2, 3), shared=BOTH),
    ),
    "mtp.gguf": (
        lambda path: write_qwen35(path, trunk=False),
        "mtp",
        Needs(64, architecture="qwen35"),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_kind_and_needs(tmp_path: Path, name: str) -> None:
    write, kind, asked = FILES[name]
    header = read_model_file(write(tmp_path / name))
    assert drafting_kind(header) == kind
    assert needs(header) == asked


def test_a_gemma_assistant_is_an_mtp_head_for_gemma(tmp_path: Path) -> None:
    path = tmp_path / "assistant.gguf"
    name = "gemma4-assistant"
    path.write_bytes(
        gguf(
            {
                **CHAT,
                "general.architecture": text(name),
                f"{name}.embedding_length": u32(32),
                f"{name}.embedding_length_out": u32(64),
            }
        )
    )
    header = read_model_file(path)
    assert drafting_kind(header) == "mtp"
    assert needs(header) == Needs(64, architecture="gemma4")


def test_a_projector_cannot_draft(tmp_path: Path) -> None:
    path = tmp_path / "mmproj.gguf"
    path.write_bytes(gguf({"general.architecture": text("clip")}))
    assert drafting_kind(read_model_file(path)) is None


def _heads(tmp_path: Path, arch: str, count: int, *tensors: RawTensor) -> GgufHeader:
    pairs = {**CHAT, "general.architecture": text(arch), f"{arch}.nextn_predict_layers": u32(count)}
    (tmp_path / "m.gguf").write_bytes(gguf(pairs, (*TENSORS, *tensors)))
    return read_model_file(tmp_path / "m.gguf")


def test_heads_in_another_part_of_a_split_model(tmp_path: Path) -> None:
    pairs = {**CHAT, "general.architecture": text("qwen35"), "qwen35.nextn_predict_layers": u32(1)}
    for number in (1, 2):
        part = tmp_path / f"m-0000{number}-of-00002.gguf"
        part.write_bytes(gguf({**pairs, "split.count": u32(2)}))
    assert heads_inside(read_model_file(tmp_path / "m-00001-of-00002.gguf")) == 1


def test_heads_inside_a_target(tmp_path: Path) -> None:
    head = RawTensor("blk.9.nextn.eh_proj.weight")
    header = read_model_file(write_qwen35(tmp_path / "q.gguf"))
    assert heads_inside(header) == 1
    check_heads_inside(header)
    assert SEVERAL_HEADS < MTP
    assert heads_inside(_heads(tmp_path, "mimo2", 3, head)) == 3
    for header, words in (
        (read_model_file(write_llama(tmp_path / "l.gguf")), "has no MTP heads"),
        (_heads(tmp_path, "qwen35", 1), "left out of its file"),
        # llama.cpp asserts that there is one
        (_heads(tmp_path, "qwen35", 2, head), "2 MTP heads of the qwen35 architecture"),
        (_heads(tmp_path, "llama", 1, head), "the MTP head of the llama architecture"),
    ):
        assert heads_inside(header) == 0
        with pytest.raises(ModelFileError, match=words):
            check_heads_inside(header)
