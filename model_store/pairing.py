"""Whether a drafter fits a target, told from their metadata before either is loaded.

llama.cpp ends the process where it is asked to join what does not fit, so everything that it would
assert on is looked at here.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from model_store.check import (
    ModelFileError,
    check_model_file,
    check_use,
    describe_os_error,
    impossible,
    read_model_file,
    shown_name,
)
from model_store.classify import SELECTOR, classify
from model_store.drafting_kind import (
    NOUNS,
    DraftKind,
    Needs,
    drafting_kind,
    has_next_token_layers,
    heads_inside,
    needs,
)
from model_store.file_key import file_key
from model_store.fingerprint import vocabulary_size
from model_store.gguf_header import GgufError, GgufHeader, TruncatedGguf
from model_store.gguf_source import GgufSource, LocalGguf
from model_store.memory_shape import memory_shape
from model_store.tokenizer_difference import tokenizer_difference
from native.architectures import LAST_OUTPUT, LAYER_INPUTS, MTP, NEXT_N_OUTPUT, SEVERAL_HEADS

_MAX_CACHED = 1000


class _FileState(NamedTuple):
    """A file as it lies there now; ``key`` is a hash of its header and its end."""

    path: str
    size: int
    mtime_ns: int
    key: str


class _Verdict(NamedTuple):
    kind: DraftKind | None  # None: it cannot draft at all
    noun: str  # what the file is, to follow "it is"
    problem: str | None  # a sentence for the person


_cache: dict[tuple[_FileState, _FileState], _Verdict] = {}
_cache_lock = threading.Lock()


def check_drafter(target: Path, drafter: Path, use: DraftKind | None = None) -> DraftKind:
    """How the file ``drafter`` can draft for the model ``target``.

    ``use`` is what the person wants it for; None takes it for whatever it is. The verdict is kept for
    as long as both files stay as they are. Raises ModelFileError, whose text says why not.
    """
    return _kind(_verdict(target, drafter), shown_name(drafter), use)


def check_pair(target: GgufSource, drafter: GgufSource, use: DraftKind | None = None) -> DraftKind:
    """The same for files that need not lie here; the verdict is not kept.

    Of a split model the source is its first part. Raises ModelFileError.
    """
    check_use(target.name, target.header, "chat")
    return _kind(_judge(target, drafter), drafter.name, use)


def _kind(verdict: _Verdict, name: str, use: DraftKind | None) -> DraftKind:
    if verdict.kind is None or (use is not None and use != verdict.kind):
        wanted = "a drafter" if use is None else NOUNS[use]
        raise ModelFileError(f"{name} cannot be used as {wanted}: it is {verdict.noun}.")
    if verdict.problem is not None:
        raise ModelFileError(verdict.problem)
    return verdict.kind


def check_heads_inside(target: GgufHeader) -> None:
    """Raises ModelFileError when ``target`` has no MTP heads that could draft for it."""
    if heads_inside(target):
        return
    named = target.number("{arch}.nextn_predict_layers") or 0
    if not named:
        raise ModelFileError("This model has no MTP heads.")
    if not has_next_token_layers(target):
        raise ModelFileError("This model's MTP heads were left out of its file.")
    raise ModelFileError(
        f"llama.cpp cannot draft with {_heads(named)} of the {target.architecture} architecture."
    )


def _verdict(target: Path, drafter: Path) -> _Verdict:
    try:
        states = _state(target), _state(drafter)
    except (OSError, ValueError):
        # Reading it says what is wrong with it, in words.
        return _judge_files(target, drafter)
    with _cache_lock:
        known = _cache.get(states)
    if known is not None:
        return known
    verdict = _judge_files(target, drafter)
    with _cache_lock:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[states] = verdict
    return verdict


def _state(path: Path) -> _FileState:
    status = path.stat()
    return _FileState(str(path), status.st_size, status.st_mtime_ns, file_key(path))


def _judge_files(target: Path, drafter: Path) -> _Verdict:
    """Raises ModelFileError where one of the files cannot be read at all."""
    ours, theirs = read_model_file(drafter), check_model_file(target, "chat")
    return _judge(LocalGguf(target, theirs), LocalGguf(drafter, ours))


def _judge(target: GgufSource, drafter: GgufSource) -> _Verdict:
    """Raises ModelFileError where one of the files cannot be read any more."""
    ours, theirs = drafter.header, target.header
    kind, noun = drafting_kind(ours), classify(ours).noun
    if kind is None:
        return _Verdict(None, noun, None)
    name = drafter.name
    try:
        damage = impossible(ours) or _damage(ours, kind) or _bad_mapping(drafter)
        if damage is not None:
            return _Verdict(kind, noun, f"{name} cannot be used as {NOUNS[kind]}: {damage}.")
        problem = misfit(ours, theirs) or tokenizer_difference(target, drafter)
    except GgufError as error:  # it changed while it was looked at
        raise ModelFileError(f"{name} cannot be used: {error}.") from error
    except OSError as error:
        raise ModelFileError(f"{name} {describe_os_error(error)}.") from error
    problem = problem or _shared_vocabulary(ours, theirs)
    if problem is not None:
        return _Verdict(kind, noun, f"{name} does not fit {target.name}: {problem}.")
    return _Verdict(kind, noun, None)


def misfit(drafter: GgufHeader, target: GgufHeader) -> str | None:
    """What a target lacks of what its drafter reads, to follow their names; None when it has it all.

    Tokenizers apart. Both headers must be read with ``keep_arrays=TO_KEEP``.
    """
    asked = needs(drafter)
    if asked.architecture is not None and asked.architecture != target.architecture:
        return f"it is made for {asked.architecture} models, and this one is {target.architecture}"
    hidden_size = target.number("{arch}.embedding_length")
    if asked.hidden_size is not None and asked.hidden_size != hidden_size:
        return f"it reads hidden states of {asked.hidden_size:,} values, the target's have {hidden_size:,}"
    if asked.target_layers:
        behind = NEXT_N_OUTPUT if drafter.architecture == "eagle3" else LAST_OUTPUT
        problem = _layers_misfit(asked.target_layers, target, behind)
        return problem or _shared_misfit(asked, drafter, target)
    return _shared_misfit(asked, drafter, target)


def _layers_misfit(asked: Sequence[int], target: GgufHeader, behind: frozenset[str]) -> str | None:
    """``behind``: architectures with a layer more to read, the last one's output."""
    arch = target.architecture
    if arch not in LAYER_INPUTS:
        return f"it reads hidden states, which llama.cpp does not give out for the {arch} architecture"
    layers = (target.number("{arch}.block_count") or 0) - (target.number("{arch}.nextn_predict_layers") or 0)
    last = layers if arch in behind else layers - 1
    missing = [layer for layer in asked if not 0 <= layer <= last]
    if missing:
        return f"it reads layer {missing[0]}, and the target has layers 0 to {last}"
    return None


def _shared_misfit(asked: Needs, drafter: GgufHeader, target: GgufHeader) -> str | None:
    """What it borrows must have the length of its own hidden states, which may differ from those it reads."""
    own = drafter.number("{arch}.embedding_length")
    theirs = target.number("{arch}.embedding_length")
    if asked.shared and own != theirs:
        return f"it shares the target's {asked.shared[0]} of {theirs:,} values, and its own have {own:,}"
    return None


def _shared_vocabulary(drafter: GgufHeader, target: GgufHeader) -> str | None:
    """Rows of a shared matrix belong to the target's tokens: padding has no row there."""
    shared = needs(drafter).shared
    ours, theirs = vocabulary_size(drafter), vocabulary_size(target)
    if shared and ours != theirs:
        return f"its vocabulary has {ours:,} tokens, the target's {theirs:,}, and it shares the {shared[0]}"
    return None


def _damage(header: GgufHeader, kind: DraftKind) -> str | None:
    """What llama.cpp would stop at in the drafter's own file, or this program."""
    if kind == "eagle3":
        if header.number("{arch}.block_count") != 1:
            return f"it has {header.number('{arch}.block_count')} layers instead of one"
        if len(header.numbers("{arch}.target_layers")) != 3:
            return "it does not name three layers of its target"
    if kind in ("eagle3", "dflash", "dspark"):
        lengths = [header.number(f"{{arch}}.attention.{key}_length") for key in ("key", "value")]
        if None not in lengths and lengths[0] != lengths[1]:
            return f"its keys have {lengths[0]} values and its values {lengths[1]}"
    if kind in ("dflash", "dspark"):
        if not header.numbers("{arch}.target_layers"):
            return "it names no layers of its target"
        mask = header.number("tokenizer.ggml.mask_token_id")
        if mask is None or not 0 <= mask < (vocabulary_size(header) or 0):
            return "it names no mask token"
        # Only the Markov head insists on one; without it llama.cpp takes 16.
        if kind == "dspark" and (header.number("{arch}.block_size") or 0) < 1:
            return "it has no block size"
    if kind == "dflash" and header.tensor(SELECTOR) is not None:
        return "it is a DFlash 2 drafter, which this version cannot run"
    if kind == "draft" and memory_shape(header).state:
        return "its memory cannot drop rejected tokens"
    if kind == "mtp":
        heads = header.number("{arch}.nextn_predict_layers") or 0
        arch = header.architecture
        if arch in MTP and heads > 1 and arch not in SEVERAL_HEADS:
            return f"llama.cpp cannot draft with {_heads(heads)} of the {arch} architecture"
        if arch not in MTP and needs(header).architecture == arch:
            return f"llama.cpp cannot draft with heads of the {arch} architecture"
    return None


def _bad_mapping(drafter: GgufSource) -> str | None:
    """A reduced vocabulary that names tokens which do not exist; llama.cpp would write out of bounds.

    Raises OSError.
    """
    header = drafter.header
    tensor = header.tensor("d2t")
    if tensor is None:
        return None
    if tensor.type != "I64":
        return "its map to the target's tokens (d2t) is not of whole numbers"
    if header.tensor("output.weight") is None:
        return "it has a vocabulary of its own without an output layer for it"
    size = vocabulary_size(header) or 0
    ids = array("q")
    if tensor.size > size * ids.itemsize:
        return "its map to the target's tokens (d2t) is longer than its vocabulary"
    data = drafter.read(header.data_offset + tensor.offset, tensor.size)
    if len(data) < tensor.size:
        raise TruncatedGguf(len(data), None)
    ids.frombytes(data)
    wrong = next((token for token in ids if not 0 <= token < size), None)
    return None if wrong is None else f"it drafts token {wrong}, and its vocabulary has {size:,}"


def _heads(count: int) -> str:
    return "the MTP head" if count == 1 else f"{count} MTP heads"
