"""What the window calls drafters and verdicts on memory, and the numbers behind a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # not before the first answer is asked for
    from model_store.drafting_kind import DraftKind
    from model_store.fit import Fit, MemoryNeed, Verdict

FIT_WORDS: dict[Verdict, str] = {"fits": "Fits", "tight": "Tight", "too_large": "Too large"}
KIND_WORDS: dict[DraftKind, str] = {
    "draft": "draft model",
    "eagle3": "EAGLE-3",
    "mtp": "MTP",
    "dflash": "DFlash",
    "dspark": "DSpark",
}


def memory_words(target: MemoryNeed, beside: MemoryNeed | None, fit: Fit) -> str:
    """The numbers behind a mark: what takes how much, and what there is."""
    from model_store.fit import shown_bytes

    parts = [
        ("Weights", target.weights),
        ("KV cache", target.cache),
        ("States of recurrent layers", target.states),
        ("Compute buffers", target.compute),
        ("Vocabulary and tables", target.tables),
        ("Drafter", beside.total if beside is not None else 0),
    ]
    lines = [f"{name}: {shown_bytes(size)}" for name, size in parts if size]
    return "\n".join((fit.words, *lines))
