"""A loaded GGUF: its vocabulary, its metadata and what it is able to do."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_cpp import llama_cpp as lib

from native.errors import LoadCancelled, ModelLoadError, NativeError
from native.log import mark, problems_since
from native.owned import Owned

if TYPE_CHECKING:
    pass

lib.llama_backend_init()

_SPECIAL = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN
_VOCAB_TYPES = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLAMO2"}


class Model(Owned):
    """Owns a ``llama_model``. Close it (or use ``with``); its contexts are closed with it."""

    def __init__(
        self,
        path: Path | str,
        *,
        n_gpu_layers: int = -1,
        vocab_only: bool = False,
        heads: bool = False,
        mapped: bool = True,
        progress: Callable[[float], bool] | None = None,
    ) -> None:
        """Load the file at ``path``; its own next-n layers too if ``heads`` says so.

        ``mapped`` leaves the weights in the file's pages where llama.cpp can do that; otherwise they
        are read into memory of this process, but for a GPU's.
        ``progress`` gets the fraction loaded (0 to 1) and returns False to cancel; it is called
        from inside the load, so it must be quick. Raises ModelLoadError, or LoadCancelled.
        """
        self._handle: Any = None
        self._contexts: list[Owned] = []
        self.path = Path(path)
        cancelled = False

        def report(fraction: float, _user_data: object) -> bool:
            nonlocal cancelled
            cancelled = progress is not None and not progress(fraction)
            return not cancelled

        params = lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        params.vocab_only = vocab_only
        params.load_mtp = heads
        if not mapped and not lib.llama_supports_gpu_offload():
            params.load_mode = lib.LLAMA_LOAD_MODE_NONE
        callback = lib.llama_progress_callback(report)
        params.progress_callback = callback
        before = mark()
        self._handle = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self._handle:
            if cancelled:
                raise LoadCancelled(f"loading {self.path.name} was cancelled")
            raise ModelLoadError(f"llama.cpp could not load {self.path.name}", problems_since(before))
        self.load_log = tuple(problems_since(before))
        self._vocab: Any = lib.llama_model_get_vocab(self._handle)

    # ---- life

    @property
    def handle(self) -> Any:
        """The ``llama_model`` pointer. Raises NativeError once closed."""
        if not self._handle:
            raise NativeError("the model is closed")
        return self._handle

    def close(self) -> None:
        """Free the contexts and the model; harmless when called again."""
        for context in list(self._contexts):
            context.close()
        handle, self._handle = self._handle, None
        if handle:
            lib.llama_model_free(handle)

    def adopt(self, context: Owned) -> None:
        """Called by a new context, so that it never outlives its model."""
        self._contexts.append(context)

    def disown(self, context: Owned) -> None:
        if context in self._contexts:
            self._contexts.remove(context)

    # ---- text and tokens

    def tokenize(self, text: str, *, parse_special: bool, add_special: bool = False) -> list[int]:
        """Token ids of ``text``.

        ``parse_special`` turns the text of control tokens into those tokens; without it such text
        is only text. ``add_special`` adds what the model wants around a text (BOS, EOS).
        """
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * room)()
            n = lib.llama_tokenize(
                self.vocab_handle, data, len(data), buffer, room, add_special, parse_special
            )
            if n >= 0:
                return buffer[:n]
            if n == -(2**31):
                raise NativeError("the text is too long to tokenise")
            room = -n

    def token_bytes(self, token: int, *, special: bool = False) -> bytes:
        """The bytes a token stands for; a control token has none unless ``special``."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            n = lib.llama_token_to_piece(self.vocab_handle, token, buffer, room, 0, special)
            if n >= 0:
                return buffer.raw[:n]
            room = -n

    def token_text(self, token: int) -> str:
        """A token as its vocabulary writes it, such as ``<|im_end|>``."""
        if not 0 <= token < self.n_vocab:
            raise NativeError(f"there is no token {token} in a vocabulary of {self.n_vocab}")
        return bytes(lib.llama_vocab_get_text(self.vocab_handle, token) or b"").decode("utf-8", "replace")

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """Control tokens by their text: what ``parse_special`` would recognise as markup."""
        vocab = self.vocab_handle
        return {
            text: token
            for token in range(self.n_vocab)
            if lib.llama_vocab_get_attr(vocab, token) & _SPECIAL and (text := self.token_text(token))
        }

    @cached_property
    def end_of_generation(self) -> frozenset[int]:
        """Every token that ends an answer, as llama.cpp knows them (eos, eot and their kin)."""
        vocab = self.vocab_handle
        return frozenset(t for t in range(self.n_vocab) if lib.llama_vocab_is_eog(vocab, t))

    @property
    def vocab_handle(self) -> Any:
        """The ``llama_vocab`` pointer. Raises NativeError once closed: it lives inside the model."""
        self.handle  # noqa: B018
        return self._vocab

    @cached_property
    def n_vocab(self) -> int:
        return int(lib.llama_vocab_n_tokens(self.vocab_handle))

    @cached_property
    def bos(self) -> int | None:
        token = int(lib.llama_vocab_bos(self.vocab_handle))
        return token if token >= 0 else None

    @cached_property
    def eos(self) -> int | None:
        token = int(lib.llama_vocab_eos(self.vocab_handle))
        return token if token >= 0 else None

    @cached_property
    def adds_bos(self) -> bool:
        return bool(lib.llama_vocab_get_add_bos(self.vocab_handle))

    @cached_property
    def vocab_type(self) -> str:
        """How it splits text, such as "BPE"; "none" for a file without a vocabulary."""
        number = int(lib.llama_vocab_type(self.vocab_handle))
        return _VOCAB_TYPES.get(number, f"type {number}")

    # ---- metadata and abilities

    @cached_property
    def metadata(self) -> dict[str, str]:
        """Scalar metadata as llama.cpp prints it; arrays are left out."""
        handle = self.handle
        result = {}
        for i in range(lib.llama_model_meta_count(handle)):
            key = _read_string(lib.llama_model_meta_key_by_index, handle, i)
            result[key] = _read_string(lib.llama_model_meta_val_str_by_index, handle, i)
        return result

    @cached_property
    def chat_template(self) -> str | None:
        template = lib.llama_model_chat_template(self.handle, None)
        return template.decode("utf-8", "replace") if template else None

    @cached_property
    def description(self) -> str:
        return _read_string(lib.llama_model_desc, self.handle)

    @cached_property
    def architecture(self) -> str:
        return self.metadata.get("general.architecture", "")

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        return int(lib.llama_model_size(self.handle))

    @cached_property
    def n_params(self) -> int:
        return int(lib.llama_model_n_params(self.handle))

    @cached_property
    def n_ctx_train(self) -> int:
        return int(lib.llama_model_n_ctx_train(self.handle))

    @cached_property
    def n_embd(self) -> int:
        return int(lib.llama_model_n_embd(self.handle))

    @cached_property
    def n_embd_out(self) -> int:
        """Length of the hidden states that the last layer writes for next-n layers."""
        return int(lib.llama_model_n_embd_out(self.handle))

    @cached_property
    def n_layer(self) -> int:
        return int(lib.llama_model_n_layer(self.handle))

    @cached_property
    def n_layer_nextn(self) -> int:
        """Next-n (multi-token prediction) layers inside the file."""
        return int(lib.llama_model_n_layer_nextn(self.handle))

    @cached_property
    def n_swa(self) -> int:
        """Width of the sliding attention window in tokens, 0 when attention is full."""
        return int(lib.llama_model_n_swa(self.handle))

    @cached_property
    def is_recurrent(self) -> bool:
        return bool(lib.llama_model_is_recurrent(self.handle))

    @cached_property
    def is_hybrid(self) -> bool:
        return bool(lib.llama_model_is_hybrid(self.handle))

    @cached_property
    def has_encoder(self) -> bool:
        return bool(lib.llama_model_has_encoder(self.handle))

    @cached_property
    def has_decoder(self) -> bool:
        return bool(lib.llama_model_has_decoder(self.handle))


def _read_string(function: Callable[..., int], *args: Any) -> str:
    """Call a llama.cpp function that fills a buffer the way snprintf does."""
    room = 256
    while True:
        buffer = ctypes.create_string_buffer(room)
        n = function(*args, buffer, room)
        if n < room:
            return buffer.value.decode("utf-8", "replace")
        room = n + 1


def build_info() -> str:
    """Which llama.cpp this is and what it can compute on, in one line."""
    version = lib.llama_version().decode("utf-8", "replace")
    device = "GPU" if lib.llama_supports_gpu_offload() else "CPU"
    return f"llama.cpp {version} ({device})"
