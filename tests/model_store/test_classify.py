"""Kinds come from metadata, whatever the files are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.check import ModelFileError, check_model_file
from model_store.classify import Kind, classify
from model_store.gguf_header import read_header
from model_store.starter import starter_path
from tests.model_store.raw_gguf import CHAT, TENSORS, Raw, RawTensor, gguf, text, u32

NEXT_N = (RawTensor("blk.28.nextn.eh_proj.weight"), RawTensor("blk.28.attn_q.weight"))


def arch(name: str, **more: Raw) -> dict[str, Raw]:
    return {**CHAT, "general.architecture": text(name), **more}


FILES: dict[str, tuple[Kind, bytes]] = {
    "plain model": ("chat", gguf()),
    "model with MTP heads inside": (
        "chat",
        gguf(arch("qwen3", **{"qwen3.nextn_predict_layers": u32(1)}), (*TENSORS, *NEXT_N)),
    ),
    "decoder that names no pooling": ("chat", gguf(arch("qwen3", **{"qwen3.pooling_type": u32(0)}))),
    "chat model with embedded in its name": ("chat", gguf(arch("pangu-embedded"))),
    "first part without tensors": ("chat", gguf({**CHAT, "split.count": u32(3)}, ())),
    "EAGLE-3 head": ("drafter", gguf(arch("eagle3"))),
    "DFlash": ("drafter", gguf(arch("dflash"))),
    "MTP head of Gemma": ("drafter", gguf(arch("gemma4-assistant"))),
    "MTP head file": ("drafter", gguf(arch("qwen3"), (RawTensor("token_embd.weight"), *NEXT_N))),
    "projector": ("projector", gguf({"general.architecture": text("clip")})),
    "embedding by arch": ("embedding", gguf(arch("bert"))),
    "embedding by pooling": ("embedding", gguf(arch("qwen3", **{"qwen3.pooling_type": u32(3)}))),
    "LoRA": ("adapter", gguf({**CHAT, "general.type": text("adapter")})),
    "control vector": ("adapter", gguf({"general.architecture": text("controlvector")})),
    "importance matrix": ("other", gguf({"general.type": text("imatrix")})),
    "vocabulary": ("other", gguf(CHAT, ())),
    "picture model": ("other", gguf({"general.architecture": text("flux")})),
    "nothing said": ("other", gguf({})),
    "encoder-decoder": ("other", gguf(arch("t5"))),
    "text diffusion": ("other", gguf(arch("llada"))),
}


@pytest.mark.parametrize("name", FILES)
def test_kind_is_read_from_metadata(tmp_path: Path, name: str) -> None:
    expected, data = FILES[name]
    path = tmp_path / "chat.gguf"
    path.write_bytes(data)
    assert classify(read_header(path)).kind == expected


@pytest.mark.parametrize("name", [name for name, (kind, _) in FILES.items() if kind != "chat"])
def test_only_chat_models_are_let_through(tmp_path: Path, name: str) -> None:
    path = tmp_path / "chat.gguf"
    path.write_bytes(FILES[name][1])
    for use in ("chat", "draft"):
        with pytest.raises(ModelFileError) as caught:
            check_model_file(path, use)
        assert str(caught.value).startswith(f"chat.gguf cannot be used as a {use} model: it is ")


def test_refusals_say_what_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for name, use, words in (
        ("EAGLE-3 head", "chat", "an EAGLE-3 head, which only drafts for another model"),
        ("DFlash", "draft", "a DFlash drafter, which needs hidden states of its target"),
        ("projector", "chat", "a projector for pictures or sound"),
        ("embedding by pooling", "chat", "an embedding model"),
        ("LoRA", "draft", "an adapter for another model"),
        ("vocabulary", "chat", "a vocabulary without a model"),
    ):
        path.write_bytes(FILES[name][1])
        with pytest.raises(ModelFileError, match=words):
            check_model_file(path, "chat" if use == "chat" else "draft")


def test_starter_passes_for_both_uses() -> None:
    path = starter_path()
    assert path is not None
    assert check_model_file(path, "chat").architecture == "llama"
    assert check_model_file(path, "draft").tensor_count == 272
