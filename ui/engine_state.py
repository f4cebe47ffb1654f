"""What the engine is doing about its model, as data that can say itself in words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from app.protocol import ModelReport
from ui.bidi import visible

Phase = Literal["no_model", "loading", "ready", "failed", "lost"]

# Heads are made for one model: that there is one, and of which kind, says all.
_HEADS = {"eagle3": "EAGLE-3", "mtp": "MTP", "dflash": "DFlash", "dspark": "DSpark"}


class EngineState(Struct, frozen=True, kw_only=True):
    """``wanted`` is the file that answers, or would, ``report`` what the worker says is in memory."""

    phase: Phase = "no_model"
    wanted: str | None = None
    fraction: float = 0.0
    report: ModelReport | None = None
    problem: str | None = None

    @property
    def label(self) -> str:
        """The model's name for the header: the worker's word where there is one."""
        if self.report is not None:
            return visible(self.report.name)
        if self.phase == "loading" and self.wanted:
            return f"Loading {visible(Path(self.wanted).stem)}"
        if self.phase == "failed" and self.wanted:
            return f"{visible(Path(self.wanted).stem)} could not be loaded"
        if self.phase == "no_model" and self.wanted:
            return f"{visible(Path(self.wanted).stem)} (not in memory)"
        return "Engine stopped" if self.phase == "lost" else "Choose a model"

    @property
    def draft_label(self) -> str | None:
        """What drafts beside the look-ups: the kind of a head, a draft model's name, None for nothing."""
        if self.report is None:
            return None
        for link in self.report.drafters:
            if link.reason is None and link.name in _HEADS:
                return _HEADS[link.name]
        if self.report.draft_model_path is None:
            return None
        return visible(Path(self.report.draft_model_path).stem)
