"""Writes tiny seeded GGUFs: llama architecture, random F32 weights, a 512-token byte-level BPE."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

BOS, EOS, IM_START, IM_END = range(4)
_CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
_FIRST_BYTE = len(_CONTROL)

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}"
)


def _byte_letters() -> list[str]:
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in letters)
    letters |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


_BYTES = _byte_letters()
_PAIRS = [(a, b) for a in "etaoinshrdlucm" for b in "etaoinshrdlucmpgy"]


@dataclass(frozen=True)
class Tiny:
    """Sizes of a tiny model. ``control`` types ids 0 to 3; tests mistype them on purpose."""

    n_layer: int = 2
    n_embd: int = 64
    n_head: int = 4
    n_head_kv: int = 2
    n_ff: int = 128
    n_vocab: int = 512
    n_ctx_train: int = 2048
    seed: int = 0
    template: str | None = CHATML
    im_end_type: int = int(gguf.TokenType.CONTROL)
    swap: tuple[int, int] | None = None  # two ids whose texts change places
    tokenizer: str = "gpt2"
    pre: str = "gpt-2"
    eos: int = EOS
    add_bos: bool = False
    extra: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # the last tokens before id 512, each for a text of its own


def vocabulary(tiny: Tiny) -> tuple[list[str], list[int], list[str]]:
    """Token texts, their types, and the merges that build the two-letter tokens."""
    pairs = _PAIRS[: 512 - _FIRST_BYTE - 256]
    tokens = [*_CONTROL, *_BYTES, *(a + b for a, b in pairs)]
    tokens += [f"<filler_{i}>" for i in range(512 - len(tokens) - len(tiny.words))] + [*tiny.words]
    tokens += [f"<pad_{i}>" for i in range(tiny.n_vocab - 512)]
    control, normal = int(gguf.TokenType.CONTROL), int(gguf.TokenType.NORMAL)
    types = [control, control, control, tiny.im_end_type] + [normal] * (tiny.n_vocab - 4)
    for i in range(512 - len(tiny.words), 512):
        types[i] = int(gguf.TokenType.USER_DEFINED)
    if tiny.swap is not None:
        a, b = tiny.swap
        tokens[a], tokens[b] = tokens[b], tokens[a]
    return tokens, types, [f"{a} {b}" for a, b in pairs]


def add_tokenizer(writer: gguf.GGUFWriter, tiny: Tiny) -> None:
    """The vocabulary and what belongs to it: special ids, chat template, further keys."""
    tokens, types, merges = vocabulary(tiny)
    writer.add_tokenizer_model(tiny.tokenizer)
    writer.add_tokenizer_pre(tiny.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(tiny.eos)
    writer.add_add_bos_token(tiny.add_bos)
    if tiny.template is not None:
        writer.add_chat_template(tiny.template)
    for key, value in tiny.extra.items():
        writer.add_string(key, value)


def write_llama(path: Path, tiny: Tiny = Tiny()) -> Path:
    """Write a model of the llama architecture; the same ``tiny`` gives the same bytes."""
    rng = np.random.default_rng(tiny.seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(path.stem)
    writer.add_context_length(tiny.n_ctx_train)
    writer.add_embedding_length(tiny.n_embd)
    writer.add_block_count(tiny.n_layer)
    writer.add_feed_forward_length(tiny.n_ff)
    writer.add_head_count(tiny.n_head)
    writer.add_head_count_kv(tiny.n_head_kv)
    writer.add_rope_dimension_count(tiny.n_embd // tiny.n_head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(tiny.n_vocab)
    add_tokenizer(writer, tiny)

    def weight(name: str, *shape: int, scale: float = 1.0) -> None:
        values = rng.standard_normal(shape) * scale / np.sqrt(shape[-1])
        writer.add_tensor(name, values.astype(np.float32))

    def norm(name: str) -> None:
        writer.add_tensor(name, np.ones(tiny.n_embd, dtype=np.float32))

    kv = tiny.n_embd * tiny.n_head_kv // tiny.n_head
    weight("token_embd.weight", tiny.n_vocab, tiny.n_embd, scale=8.0)
    norm("output_norm.weight")
    weight("output.weight", tiny.n_vocab, tiny.n_embd, scale=3.0)
    for layer in range(tiny.n_layer):
        at = f"blk.{layer}."
        norm(at + "attn_norm.weight")
        weight(at + "attn_q.weight", tiny.n_embd, tiny.n_embd)
        weight(at + "attn_k.weight", kv, tiny.n_embd)
        weight(at + "attn_v.weight", kv, tiny.n_embd)
        weight(at + "attn_output.weight", tiny.n_embd, tiny.n_embd)
        norm(at + "ffn_norm.weight")
        weight(at + "ffn_gate.weight", tiny.n_ff, tiny.n_embd)
        weight(at + "ffn_up.weight", tiny.n_ff, tiny.n_embd)
        weight(at + "ffn_down.weight", tiny.n_embd, tiny.n_ff)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
