"""How a recurrent or hybrid memory forgets its last tokens: by states that were kept on the way.

A recurrent state is what is left of a whole text; it cannot be cut. Some architectures keep a snapshot
after each of the last tokens of a pass (``n_rs_seq``), and any state can be copied out and put back.
llama.cpp grants a rewind to a snapshot that the last pass did not write, so its word is not enough.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from llama_cpp import llama_cpp as lib

# A hybrid's attention is cut as usual: only its recurrent part is copied.
_FLAGS = lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
_KEPT_BYTES = 256 << 20  # of states, for each sequence
_MOST_KEPT = 8

_Row = tuple[int, int, int, bool]


class Kept(NamedTuple):
    """The state after the first ``length`` tokens."""

    length: int
    data: Any


class _Run(NamedTuple):
    """The rows of a pass that belong to one sequence."""

    seq: int
    first: int  # position
    n: int  # rows
    reads: bool  # a prompt: not each row's logits are wanted


class RecurrentState:
    """Belongs to a Context, which says what it does before and after every pass.

    Passes that read a prompt leave states at their beginnings, so that an edited message or another
    answer to the same one need not begin at the first token.
    """

    def __init__(self, context: Any) -> None:
        """``context``: a ``llama_context``."""
        self._context = context
        self._memory: Any = lib.llama_get_memory(context)
        self.n_snapshots = int(lib.llama_n_rs_seq(context))
        self._droppable: dict[int, int] = {}  # last tokens that snapshots of the last pass can drop
        self._draft: dict[int, Kept] = {}  # before the last pass that may have carried a draft
        self._kept: dict[int, list[Kept]] = {}  # before passes that read prompts

    def before(self, rows: Sequence[_Row]) -> None:
        """Keep what this pass may have to be undone to."""
        for run in _runs(rows):
            if run.first == 0 or run.n == 1 or (not run.reads and run.n <= self.n_snapshots + 1):
                continue
            if any(saved.length == run.first for saved in self._states(run.seq)):
                continue
            saved = self._save(run.seq, run.first)
            if saved is None:
                continue
            if run.reads:
                self._keep(run.seq, saved)
            else:
                self._draft[run.seq] = saved

    def after(self, rows: Sequence[_Row]) -> None:
        """The pass went well."""
        for run in _runs(rows):
            # the state before the pass has no snapshot
            self._droppable[run.seq] = min(self.n_snapshots, run.n - 1)

    def restore(self, seq: int, length: int) -> int:
        """Go back to the last kept state of at most ``length`` tokens; its length, 0 for none at all."""
        for saved in sorted(self._states(seq), key=lambda saved: -saved.length):
            if saved.length <= length and self._load(seq, saved):
                self._cut(seq, saved.length)
                return saved.length
        self.forget(seq)
        return 0

    def rewind(self, seq: int, length: int) -> int:
        """Keep at most the first ``length`` tokens; how many are left."""
        now = int(lib.llama_memory_seq_pos_max(self._memory, seq)) + 1
        if length >= now:
            return now
        has_snapshot = length > 0 and now - length <= self._droppable.get(seq, 0)
        if has_snapshot and lib.llama_memory_seq_rm(self._memory, seq, length, -1):
            self._cut(seq, length)
            return length
        return self.restore(seq, length)

    def forget(self, seq: int) -> None:
        lib.llama_memory_seq_rm(self._memory, seq, -1, -1)
        self._cut(seq, 0)

    def kept(self, seq: int) -> tuple[Kept, ...]:
        """The states that an edited text could go back to."""
        return tuple(self._kept.get(seq, ()))

    def take_over(self, seq: int, kept: Sequence[Kept]) -> None:
        """The sequence was put in from elsewhere, with what ``kept`` told of it there."""
        self._cut(seq, 0)
        self._kept[seq] = list(kept)

    def _cut(self, seq: int, length: int) -> None:
        """States of what comes behind are of another text from now on."""
        self._droppable[seq] = 0  # a snapshot can be gone back to once
        if seq in self._draft and self._draft[seq].length > length:
            del self._draft[seq]
        if seq in self._kept:
            self._kept[seq] = [saved for saved in self._kept[seq] if saved.length <= length]

    def _states(self, seq: int) -> list[Kept]:
        draft = self._draft.get(seq)
        return self._kept.get(seq, []) + ([draft] if draft is not None else [])

    def _keep(self, seq: int, saved: Kept) -> None:
        """The oldest but one goes when there are too many: the first message is edited most seldom,
        but then it saves most."""
        kept = self._kept.setdefault(seq, [])
        kept.append(saved)
        most = max(1, min(_MOST_KEPT, _KEPT_BYTES // max(1, len(saved.data))))
        while len(kept) > most:
            del kept[1 if most > 1 else 0]

    def _save(self, seq: int, length: int) -> Kept | None:
        size = int(lib.llama_state_seq_get_size_ext(self._context, seq, _FLAGS))
        draft = self._draft.pop(seq, None)  # of no more use: its memory is taken over
        data = draft.data if draft is not None and len(draft.data) == size else (ctypes.c_uint8 * size)()
        written = int(lib.llama_state_seq_get_data_ext(self._context, data, size, seq, _FLAGS))
        return Kept(length, data) if size and written == size else None

    def _load(self, seq: int, saved: Kept) -> bool:
        size = len(saved.data)
        read = int(lib.llama_state_seq_set_data_ext(self._context, saved.data, size, seq, _FLAGS))
        return read == size and bool(lib.llama_memory_seq_rm(self._memory, seq, saved.length, -1))


def kept_bytes(kept: Sequence[Kept]) -> int:
    return sum(len(each.data) for each in kept)


def _runs(rows: Sequence[_Row]) -> Iterator[_Run]:
    """A pass's rows by sequence; those of one sequence follow each other."""
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end][0] != rows[start][0]:
            reads = not all(row[3] for row in rows[start:end])
            yield _Run(rows[start][0], rows[start][2], end - start, reads)
            start = end
