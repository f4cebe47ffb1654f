"""What a loaded model drafts with: drafters of its own for each slot, and what all slots share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.protocol import DRAFTERS, NEURAL, DrafterName, DrafterReport, EngineOptions, LoadedFile
from app.worker.loaded_model import EngineError
from app.worker.neural import draft_cost, mtp_drafter, neural_drafter
from app.worker.weights import load_weights, loaded_file
from drafting.draft_cost import DraftCost
from drafting.drafter import ConfigurableDrafter
from drafting.follower_counts import FollowerCounts
from drafting.history import History
from drafting.llama_target import LlamaTarget
from drafting.neural import NeuralDrafter
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.past_answers import PastAnswers
from drafting.suffix import Suffix
from model_store.check import ModelFileError, read_model_file, shown_name
from model_store.pairing import check_drafter
from native.context import Context
from native.errors import NativeError
from native.model import Model

log = logging.getLogger(__name__)

HEADS_OFF = "The model's own MTP heads are not used"


@dataclass
class _Desk:
    """What one slot drafts with; ``history`` is what its look-ups share."""

    history: History
    drafters: dict[DrafterName, ConfigurableDrafter]
    neural: NeuralDrafter | None = None


class Drafters:
    """The drafters of a model by slot, and for each name whether and why not it can draft.

    Slots share weights, earlier answers, the mod table and what drafts cost. A slot's own are made before
    anything is computed: an assistant's context shares the target's KV cache, and making it empties that.
    """

    def __init__(
        self,
        model: Model,
        target: LlamaTarget,
        options: EngineOptions,
        past: PastAnswers | None,
        static: FollowerCounts | None,
    ) -> None:
        """``past`` and ``static`` are further tiers of the drafters cache and suffix."""
        self._model = model
        self._target = target
        self._options = options
        self._past = past
        self._static = static
        self._mod = ModTable()
        self.draft_model: Model | None = None  # None for heads in the model's own file, too
        self.draft_file: LoadedFile | None = None
        self.costs: dict[str, DraftCost] = {}
        self._desks = [self._desk() for _ in range(target.n_slots)]
        self._reasons: dict[DrafterName, str] = dict.fromkeys(NEURAL, "no draft model chosen")

    def load_neural(self, path: Path | None, no_heads: str | None) -> str | None:
        """Put the drafter in the file at ``path`` into memory, or without one the target's own heads
        unless ``no_heads`` says why not. Returns a line for the person where that failed; the chat goes on.
        """
        if path is None and no_heads is not None:
            self._reasons["mtp"] = no_heads
            return None
        try:
            name = self._load_neural(path)
        except (ModelFileError, NativeError, EngineError) as error:
            what = "The draft model is not used" if path is not None else HEADS_OFF
            log.warning("%s: %s", what, error)
            self._reasons |= dict.fromkeys(NEURAL if path is not None else ("mtp",), str(error))
            return f"{what}: {str(error).rstrip('.')}."
        if path is not None:
            self._reasons = {name: f"{shown_name(path)} is of another kind" for name in NEURAL}
        del self._reasons[name]
        return None

    def reports(self) -> tuple[DrafterReport, ...]:
        return tuple(DrafterReport(name, self._reasons.get(name)) for name in DRAFTERS)

    def of(self, slot: int) -> dict[DrafterName, ConfigurableDrafter]:
        return self._desks[slot].drafters

    def history(self, slot: int) -> History:
        return self._desks[slot].history

    def contexts(self) -> list[Context]:
        """Those that drafts are computed in."""
        return [desk.neural.context for desk in self._desks if desk.neural is not None]

    def close(self) -> None:
        if self.draft_model is not None:
            self.draft_model.close()

    # ---- inside

    def _load_neural(self, path: Path | None) -> DrafterName:
        """Raises ModelFileError, EngineError or NativeError, in words for a person."""
        if path is None:
            return self._add_neural(lambda slot: mtp_drafter(self._model, self._target, slot))
        kind = check_drafter(self._model.path, path)
        model = load_weights(path, self._options, lambda _: True, heads=kind == "mtp")
        try:
            self.draft_file = loaded_file(path, read_model_file(path))
            name = self._add_neural(
                lambda slot: neural_drafter(kind, model, self._target, self._options, slot)
            )
        except BaseException:
            self.draft_file = None
            model.close()
            raise
        self.draft_model = model
        return name

    def _add_neural(self, make: Callable[[int], NeuralDrafter]) -> DrafterName:
        """One for each slot. Raises EngineError or NativeError."""
        made = [make(slot) for slot in range(len(self._desks))]
        name = made[0].name
        self.costs[name] = draft_cost(made[0])
        for desk, drafter in zip(self._desks, made, strict=True):
            desk.neural = desk.drafters[name] = drafter
        return name

    def _desk(self) -> _Desk:
        history = History()
        return _Desk(
            history,
            {
                "cache": NgramCache(history, self._past, self._static),
                "simple": NgramSimple(history),
                "map-k": NgramMap(history),
                "map-k4v": NgramMapK4V(history),
                "mod": NgramMod(self._mod),
                "suffix": Suffix(history, past=self._past),
            },
        )
