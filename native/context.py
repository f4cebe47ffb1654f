"""A context: decoding passes, their logits, and the KV cache behind them."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native import staging
from native.architectures import LAYER_INPUTS, NEXT_N_STATES
from native.errors import ContextError, DecodeAborted, DecodeError, NativeError, NoKvSlot
from native.log import lines_since, mark, problems_since
from native.model import Model
from native.owned import Owned
from native.recurrent_state import RecurrentState
from native.saved_sequence import SavedSequence, copy_in, copy_out

Floats = npt.NDArray[np.float32]
Logits = Floats

_KV_TYPES = {"f16": lib.GGML_TYPE_F16, "f32": lib.GGML_TYPE_F32, "q8_0": lib.GGML_TYPE_Q8_0}
_FLASH_ATTENTION = {
    "auto": lib.LLAMA_FLASH_ATTN_TYPE_AUTO,
    "on": lib.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": lib.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}
_BUFFER_SIZE = re.compile(r"(KV|RS|compute|output) buffer size\s*=\s*([\d.]+) MiB")


def _abort_function() -> Any:
    """The C function llama.cpp asks between graph nodes whether to stop.

    A Python callback would take the GIL a thousand times a pass. C's own strlen does the job
    without a line of Python: given a two-byte buffer it returns 0 while the first byte is 0 and 1
    once that byte is set.
    """
    if sys.platform == "win32":
        strlen = ctypes.cdll.msvcrt.strlen
    else:
        strlen = ctypes.CDLL(None).strlen
    return ctypes.cast(strlen, lib.ggml_abort_callback)


_ABORT_FUNCTION = _abort_function()

# The package's own binding wraps the address in a pointer object each time.
_get_logits = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("llama_get_logits", lib._lib))


Row = tuple[int, int, int, bool]
"""One token of a pass: sequence, token id, position in the sequence, whether its logits are wanted."""


@dataclass(frozen=True)
class ContextOptions:
    """Sizes in tokens, ``n_ctx`` for each of ``n_seq_max`` sequences. ``n_outputs`` bounds the logits
    rows of one pass; 0 allows n_batch.

    ``n_snapshots`` states of a recurrent memory are kept to rewind to, where its architecture can.
    ``swa_full`` keeps all tokens of layers with a sliding window, so that any rewind is granted.
    ``mtp`` runs a model's next-n layers in the place of its others, with a KV cache for them alone.
    """

    n_ctx: int = 4096
    n_batch: int = 512
    n_seq_max: int = 1
    n_outputs: int = 0
    n_threads: int = 1
    kv_type: Literal["f16", "f32", "q8_0"] = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    n_snapshots: int = 0
    swa_full: bool = True
    mtp: bool = False


@dataclass
class Memory:
    """Bytes a context holds beside the model's weights; of ``kv``, ``recurrent`` are recurrent states."""

    kv: int = 0
    recurrent: int = 0
    compute: int = 0
    lines: list[str] = field(default_factory=list)


class Context(Owned):
    """Owns a ``llama_context``. Not thread-safe, but for ``abort``."""

    def __init__(self, model: Model, options: ContextOptions, target: Context | None = None) -> None:
        """``target``: the context whose model lends a drafter head its token embeddings and output
        layer; close it after this one.

        Raises ContextError when llama.cpp cannot make one, most often for lack of memory.
        """
        self.model = model
        self.options = options
        self._handle: Any = None
        self._batch: Any = None
        self._abort_flag = ctypes.create_string_buffer(2)
        params = lib.llama_context_default_params()
        params.n_ctx = options.n_ctx * options.n_seq_max
        # One buffer: sequences with passes of different lengths are then computed together.
        params.kv_unified = options.n_seq_max > 1
        params.n_batch = params.n_ubatch = options.n_batch
        params.n_seq_max = options.n_seq_max
        # Room for logits is reserved per row: a 262k vocabulary times 512 rows would be 0.5 GB.
        # llama.cpp ends the process where sequences outnumber them.
        least = options.n_seq_max if options.n_outputs else 0
        params.n_outputs_max = min(max(options.n_outputs, least), options.n_batch)
        params.n_outputs_max_per_seq = params.n_outputs_max
        params.n_threads = params.n_threads_batch = options.n_threads
        params.type_k = params.type_v = _KV_TYPES[options.kv_type]
        params.flash_attn_type = _FLASH_ATTENTION[options.flash_attention]
        # llama.cpp ends the process where a pass has no room for all snapshots and one row more.
        params.n_rs_seq = max(0, min(options.n_snapshots, options.n_batch - 2))
        params.swa_full = options.swa_full
        if options.mtp:
            params.ctx_type = lib.LLAMA_CONTEXT_TYPE_MTP
        if target is not None:
            params.ctx_other = target.handle
        self._target = target
        params.no_perf = True
        params.abort_callback = _ABORT_FUNCTION
        params.abort_callback_data = ctypes.cast(self._abort_flag, ctypes.c_void_p)
        before = mark()
        self._handle = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            raise ContextError(f"no context of {options.n_ctx} tokens could be made", problems_since(before))
        self.memory = _memory(lines_since(before))
        self._memory_handle: Any = lib.llama_get_memory(self._handle)
        self._n_vocab = model.n_vocab
        # llama.cpp rounds n_ctx up; a person who asked for fewer tokens gets fewer.
        self.n_ctx = min(options.n_ctx, int(lib.llama_n_ctx(self._handle)) // options.n_seq_max)
        self.n_batch = min(int(lib.llama_n_batch(self._handle)), int(lib.llama_n_ubatch(self._handle)))
        self.n_outputs = min(options.n_outputs, self.n_batch) or self.n_batch
        self._batch = lib.llama_batch_init(self.n_batch, 0, 1)
        batch = self._batch
        # Pointers, fetched once: each look at a ctypes field makes a new one.
        self._columns = (batch.token, batch.pos, batch.seq_id, batch.logits)
        for i in range(self.n_batch):
            batch.n_seq_id[i] = 1
        self._output_rows = 0
        self._view: Logits | None = None
        self._view_key = (0, 0)
        self._hidden: list[_Hidden] = []
        self._layer_inputs = model.n_layer  # hidden states of layers from here on are for next-n layers
        self._rows = 0  # of the last pass
        is_recurrent = (model.is_recurrent or model.is_hybrid) and not options.mtp
        self._recurrent = RecurrentState(self._handle) if is_recurrent else None
        self._is_abortable = True
        model.adopt(self)

    # ---- life

    @property
    def handle(self) -> Any:
        """The ``llama_context`` pointer. Raises NativeError once closed."""
        if not self._handle:
            raise NativeError("the context is closed")
        return self._handle

    def close(self) -> None:
        """Free the context; harmless when called again. Logits views become invalid."""
        handle, self._handle = self._handle, None
        if handle:
            self.model.disown(self)
            lib.llama_free(handle)
        batch, self._batch = self._batch, None
        if batch is not None:
            lib.llama_batch_free(batch)

    # ---- passes

    def use_threads(self, count: int) -> None:
        """For the passes to come."""
        lib.llama_set_n_threads(self.handle, count, count)

    def decode(self, rows: Sequence[Row]) -> None:
        """Run one pass over ``rows`` (at most n_batch, at most n_outputs of them with logits).

        Raises DecodeAborted after ``abort``, NoKvSlot when the rows do not fit any more, DecodeError
        for anything else. In each case the KV cache is cut back to what it held before; a recurrent state
        may have gone back further, which ``length`` tells.
        """
        handle = self.handle
        n = len(rows)
        if not 0 < n <= self.n_batch:
            raise DecodeError(f"a pass of {n} tokens, where 1 to {self.n_batch} fit")
        outputs = sum(row[3] for row in rows)
        if outputs > self.n_outputs:
            raise DecodeError(f"a pass with {outputs} logits rows, where {self.n_outputs} fit")
        tokens, positions, seq_ids, wanted = self._columns
        for i, (seq, token, pos, output) in enumerate(rows):
            tokens[i] = token
            positions[i] = pos
            seq_ids[i][0] = seq
            wanted[i] = output
        self._batch.n_tokens = n
        self._run(lambda: lib.llama_decode(handle, self._batch), rows, outputs)

    def _run(self, process: Callable[[], int], rows: Sequence[Row], outputs: int) -> None:
        """Run the pass over ``rows`` that was made ready, and see to it that it ends as ``decode`` says."""
        n = len(rows)
        self._output_rows = self._rows = 0
        if self._recurrent is not None:
            self._recurrent.before(rows)
            self._let_abort(n > self.n_outputs)
        before = mark()
        status = process()
        if status == 0:
            self._output_rows, self._rows = outputs, n
            if self._recurrent is not None:
                self._recurrent.after(rows)
            return
        self._undo(rows, status)
        if status == 2:
            raise DecodeAborted("the pass was aborted")
        if status == 1:
            raise NoKvSlot(f"no room in the context for {n} more tokens", problems_since(before))
        raise DecodeError(f"llama.cpp could not decode a pass (code {status})", problems_since(before))

    def _undo(self, rows: Sequence[Row], status: int) -> None:
        """Cut every sequence of a failed pass back to where it stood, or clear it whole."""
        first: dict[int, int] = {}
        for seq, _, pos, _ in rows:
            first[seq] = min(first.get(seq, pos), pos)
        for seq, pos in first.items():
            if self._recurrent is None:
                self.rewind(seq, pos)
            elif status not in (1, -1) or self.length(seq) != pos:  # no room, wrong rows: nothing happened
                self._recurrent.restore(seq, pos)

    def _let_abort(self, wanted: bool) -> None:
        """An aborted pass leaves a recurrent state in the middle of nowhere, so that short ones, of which
        no state before them may have been kept, are let to end."""
        if wanted != self._is_abortable:
            self._is_abortable = wanted
            flag = ctypes.cast(self._abort_flag, ctypes.c_void_p) if wanted else None
            function = _ABORT_FUNCTION if wanted else lib.ggml_abort_callback()
            lib.llama_set_abort_callback(self.handle, function, flag)

    def logits(self) -> Logits:
        """The last pass's logits, shape (rows with ``output``, n_vocab), in batch order.

        A view into llama.cpp's memory, not a copy: valid until the next pass or close.
        """
        address = _get_logits(self.handle)
        if not self._output_rows or not address:
            raise NativeError("the last pass left no logits")
        key = (address, self._output_rows)
        if self._view is None or self._view_key != key:
            self._view = floats_at(address, self._output_rows, self._n_vocab)
            self._view_key = key
        return self._view

    # ---- hidden states

    def keep_hidden(self, layers: Sequence[int], *, last_as_input: bool = False) -> None:
        """Let passes hand out what these layers read (0 to n_layer - 1), and for n_layer what the last
        one wrote: what next-n layers read, or with ``last_as_input`` what a layer behind it would.
        Raises NativeError where this build cannot, or the model has no such layers.
        """
        last = self.model.n_layer
        known = NEXT_N_STATES if all(layer == last for layer in layers) else LAYER_INPUTS
        if self.model.architecture not in known:
            # It would end the process.
            raise NativeError(f"llama.cpp gives out no hidden states of {self.model.architecture} models")
        if any(not 0 <= layer <= last for layer in layers):
            raise NativeError(f"there are no layers {list(layers)} in a model of {last}")
        self._layer_inputs = last + 1 if last_as_input else last
        for layer in layers:
            if layer < self._layer_inputs:
                staging.function("set_embeddings_layer_inp")(self.handle, layer, True)
            else:
                staging.function("set_embeddings_nextn")(self.handle, True, False)
        self._hidden = [self._hidden_of(layer) for layer in layers]

    def hidden_width(self, layer: int) -> int:
        """Floats that ``hidden`` gives of a layer for each row."""
        return self.model.n_embd if layer < self._layer_inputs else self.model.n_embd_out

    def hidden(self) -> list[Floats]:
        """What ``keep_hidden`` asked for, for every row of the last pass: a (rows, width) array a layer.

        Views into llama.cpp's memory, not copies: valid until the next pass or close.
        """
        self.handle  # noqa: B018  raises when closed
        return [hidden.view(self._rows) for hidden in self._hidden]

    def _hidden_of(self, layer: int) -> _Hidden:
        if layer < self._layer_inputs:
            address = partial(staging.function("get_embeddings_layer_inp"), self.handle, layer)
        else:
            address = partial(staging.function("get_embeddings_nextn"), self.handle)
        return _Hidden(address, self.hidden_width(layer))

    def abort(self) -> None:
        """End the running pass early; until ``allow`` every further pass ends at once too.

        The one method that another thread may call.
        """
        self._abort_flag[0] = b"\x01"

    def allow(self) -> None:
        """Let passes run again after ``abort``."""
        self._abort_flag[0] = b"\x00"

    # ---- KV cache

    @property
    def n_snapshots(self) -> int:
        """Tokens that a recurrent memory can drop at the end of a pass; 0 for any other memory too."""
        return self._recurrent.n_snapshots if self._recurrent is not None else 0

    def rewind(self, seq: int, length: int) -> int:
        """Keep at most the first ``length`` tokens of a sequence; how many it has now.

        Fewer than ``length`` where its memory could not be cut there: a recurrent one goes back to the
        last state that was kept, and one with a sliding window begins anew when the window before
        ``length`` is gone. What is missing must be decoded again.
        """
        memory = self._memory_of()
        if self._recurrent is not None:
            return self._recurrent.rewind(seq, length)
        now = self.length(seq)
        if length >= now:
            return now
        window = self.model.n_swa
        # Cells that the window has left are written over, the oldest first.
        is_there = not window or lib.llama_memory_seq_pos_min(memory, seq) <= max(0, length - window)
        if is_there and lib.llama_memory_seq_rm(memory, seq, length, -1):
            return length
        self.forget(seq)
        return 0

    def forget(self, seq: int) -> None:
        """Drop a whole sequence; this never fails."""
        memory = self._memory_of()
        if self._recurrent is not None:
            self._recurrent.forget(seq)
        else:
            lib.llama_memory_seq_rm(memory, seq, -1, -1)

    def save(self, seq: int, most_bytes: int) -> SavedSequence | None:
        """A copy of a sequence, to be put back by ``restore`` when its place was needed meanwhile; None where
        it takes more than ``most_bytes``."""
        data = copy_out(self.handle, seq, most_bytes)
        if data is None:
            return None
        kept = self._recurrent.kept(seq) if self._recurrent is not None else ()
        # Of layers with a sliding window llama.cpp saves the window alone.
        can_cut = self._recurrent is None and not self.model.n_swa
        return SavedSequence(self.length(seq), data, can_cut, kept)

    def restore(self, seq: int, saved: SavedSequence) -> int:
        """Put a copy into a sequence of this context, in the place of what that held; how many tokens it has
        now, 0 where there was no room for them."""
        self.forget(seq)
        if not copy_in(self.handle, seq, saved.data) or self.length(seq) != saved.length:
            self.forget(seq)
            return 0
        if self._recurrent is not None:
            self._recurrent.take_over(seq, saved.kept)
        return saved.length

    def length(self, seq: int) -> int:
        """Tokens a sequence has in the KV cache."""
        return int(lib.llama_memory_seq_pos_max(self._memory_of(), seq)) + 1

    def _memory_of(self) -> Any:
        self.handle  # noqa: B018  raises when closed
        return self._memory_handle


class _Hidden:
    """One layer's hidden states of the last pass. Most are found where those of the pass before were."""

    def __init__(self, address: Callable[[], int | None], width: int) -> None:
        self._address = address
        self._width = width
        self._found: tuple[int | None, int] = (None, 0)
        self._view: Floats | None = None

    def view(self, rows: int) -> Floats:
        found = (self._address(), rows)
        if self._view is None or found != self._found:
            self._view = floats_at(*found, self._width)
            self._found = found
        return self._view


def floats_at(address: int | None, rows: int, width: int) -> Floats:
    """A (rows, width) view of llama.cpp's floats at ``address``. Raises NativeError where there are none."""
    if not address or not rows:
        raise NativeError("the last pass left nothing to read")
    memory: Any = (ctypes.c_float * (rows * width)).from_address(address)
    return np.ndarray((rows, width), dtype=np.float32, buffer=memory)


def _memory(lines: Sequence[str]) -> Memory:
    """Buffer sizes as llama.cpp logs them: its API has no call that tells."""
    memory = Memory(lines=list(lines))
    for line in lines:
        if match := _BUFFER_SIZE.search(line):
            size = int(float(match[2]) * 1024 * 1024)
            if match[1] in ("KV", "RS"):
                memory.kv += size
                memory.recurrent += size if match[1] == "RS" else 0
            else:
                memory.compute += size
    return memory
