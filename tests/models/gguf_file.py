"""A GGUF being written: metadata under its architecture's name, and seeded random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import gguf
import numpy as np
import numpy.typing as npt

from tests.tiny_gguf import Tiny, add_tokenizer

Number = int | float | bool


class GgufFile:
    """Use as a context manager: the file is written when the block ends without an error.

    Architectures newer than the gguf package are written by the names that llama.cpp's own source
    has for their keys and tensors.
    """

    def __init__(self, path: Path, architecture: str, seed: int, shard_tensors: int = 0) -> None:
        """``shard_tensors`` above 0 splits the file: so many tensors go into each part."""
        self._writer = gguf.GGUFWriter(path, architecture, split_max_tensors=shard_tensors)
        self._architecture = architecture
        self._rng = np.random.default_rng(seed)
        self._writer.add_name(path.stem)

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._writer.write_header_to_file()
            self._writer.write_kv_data_to_file()
            self._writer.write_tensors_to_file()
        self._writer.close()

    def numbers(self, **values: Number | Sequence[Number]) -> None:
        """Add keys below the architecture's name; ``__`` in a name stands for a dot."""
        for name, value in values.items():
            key = f"{self._architecture}.{name.replace('__', '.')}"
            if isinstance(value, bool):
                self._writer.add_bool(key, value)
            elif isinstance(value, int):
                self._writer.add_uint32(key, value)
            elif isinstance(value, float):
                self._writer.add_float32(key, value)
            else:
                self._writer.add_array(key, list(value))

    def transformer(
        self, tiny: Tiny, *, layers: int | None = None, kv_heads: Sequence[int] | None = None
    ) -> None:
        """The sizes that every architecture with attention asks for; ``kv_heads``: where layers differ."""
        self.numbers(
            context_length=tiny.n_ctx_train,
            embedding_length=tiny.n_embd,
            block_count=tiny.n_layer if layers is None else layers,
            feed_forward_length=tiny.n_ff,
            attention__head_count=tiny.n_head,
            attention__head_count_kv=tiny.n_head_kv if kv_heads is None else kv_heads,
            attention__key_length=tiny.n_embd // tiny.n_head,
            attention__value_length=tiny.n_embd // tiny.n_head,
            rope__dimension_count=tiny.n_embd // tiny.n_head,
            attention__layer_norm_rms_epsilon=1e-5,
            vocab_size=tiny.n_vocab,
        )

    def tokenizer(self, tiny: Tiny, mask: int | None = None, segments: int | None = None) -> None:
        """``segments``: kinds of texts that BERT tells apart."""
        add_tokenizer(self._writer, tiny)
        if segments is not None:
            self._writer.add_token_type_count(segments)
        if mask is not None:
            self._writer.add_mask_token_id(mask)

    def tensor(self, name: str, values: npt.NDArray[np.float32] | npt.NDArray[np.int64]) -> None:
        self._writer.add_tensor(name, values)

    def weight(self, name: str, *shape: int, scale: float = 1.0) -> None:
        """A matrix (outputs, inputs) that keeps the size of what it is given, times ``scale``."""
        values = self._rng.standard_normal(shape) * scale / np.sqrt(shape[-1])
        self.tensor(name, values.astype(np.float32))

    def constant(self, name: str, *shape: int, value: float = 1.0) -> None:
        self.tensor(name, np.full(shape, value, dtype=np.float32))

    def random(self, name: str, *shape: int, low: float, high: float) -> None:
        self.tensor(name, self._rng.uniform(low, high, shape).astype(np.float32))

    def embeddings(self, tiny: Tiny) -> None:
        """What stands around the layers: token embeddings, last norm and output head."""
        self.weight("token_embd.weight", tiny.n_vocab, tiny.n_embd, scale=8.0)
        self.constant("output_norm.weight", tiny.n_embd)
        self.weight("output.weight", tiny.n_vocab, tiny.n_embd, scale=3.0)

    def attention(
        self,
        at: str,
        tiny: Tiny,
        *,
        inputs: int | None = None,
        gated: bool = False,
        head_norms: bool = True,
    ) -> None:
        """Query, key, value and output of one layer; ``gated`` doubles the query (its second half gates)."""
        inputs = tiny.n_embd if inputs is None else inputs
        kv = tiny.n_embd * tiny.n_head_kv // tiny.n_head
        self.weight(at + "attn_q.weight", tiny.n_embd * (2 if gated else 1), inputs)
        self.weight(at + "attn_k.weight", kv, inputs)
        self.weight(at + "attn_v.weight", kv, inputs)
        self.weight(at + "attn_output.weight", tiny.n_embd, tiny.n_embd)
        if head_norms:
            self.constant(at + "attn_q_norm.weight", tiny.n_embd // tiny.n_head)
            self.constant(at + "attn_k_norm.weight", tiny.n_embd // tiny.n_head)

    def feed_forward(self, at: str, tiny: Tiny) -> None:
        self.weight(at + "ffn_gate.weight", tiny.n_ff, tiny.n_embd)
        self.weight(at + "ffn_up.weight", tiny.n_ff, tiny.n_embd)
        self.weight(at + "ffn_down.weight", tiny.n_embd, tiny.n_ff)

    def norm(self, name: str, tiny: Tiny) -> None:
        self.constant(name, tiny.n_embd)
