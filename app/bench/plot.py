"""Draws speed-up and acceptance as two maps, workload by mode. Needs matplotlib, which is optional."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.bench.measurement import Row

MISSING = "--plot needs matplotlib; install it into this environment with: pip install matplotlib"

_INK, _GREY = "#222222", "#666666"


@dataclass(frozen=True)
class _Map:
    """One column of the figure. Colours run from ``low`` to ``high``; numbers beyond look like those."""

    title: str
    value: Callable[[Row], float | None]
    form: str
    colours: str
    low: float
    high: float
    white_beyond: tuple[float, float]  # where the colour is too dark for dark figures


_MAPS = (
    # white is neither gain nor loss
    _Map("speed-up over plain decoding", lambda r: r.speedup, "{:.2f}", "RdBu", 0.0, 2.0, (0.4, 1.6)),
    _Map("acceptance rate", lambda r: r.acceptance_rate, "{:.0%}", "Blues", 0.0, 1.2, (-1.0, 0.7)),
)


def can_plot() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def draw(rows: Sequence[Row], path: Path, *, note: str) -> None:
    """Write a PNG, a line of maps for each model. Raises OSError when it cannot be written."""
    # The bare figure class: pyplot would look for a screen.
    figure_class = importlib.import_module("matplotlib.figure").Figure
    models = list(dict.fromkeys(row.model for row in rows))
    modes = list(dict.fromkeys(row.mode for row in rows))
    workloads = list(dict.fromkeys(row.workload for row in rows))
    width = 2.6 + 1.35 * max(len(modes), 3)
    height = 0.5 + len(models) * (0.9 + 0.36 * len(workloads))
    figure = figure_class(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.subplots(len(models), len(_MAPS), squeeze=False)
    for line, model in zip(axes, models, strict=True):
        mine = {(row.workload, row.mode): row for row in rows if row.model == model}
        for ax, drawn in zip(line, _MAPS, strict=True):
            _draw_map(ax, drawn, mine, workloads, modes)
            ax.set_title(f"{model}: {drawn.title}", fontsize=10, loc="left", color=_INK)
    figure.supxlabel(note, fontsize=8, color=_GREY)
    figure.savefig(path, dpi=150, format="png")


def _draw_map(
    ax: Any, drawn: _Map, rows: dict[tuple[str, str], Row], workloads: Sequence[str], modes: Sequence[str]
) -> None:
    """Each cell says its number, so that nothing hangs on the colour alone."""
    numbers = np.full((len(workloads), len(modes)), np.nan)
    for y, workload in enumerate(workloads):
        for x, mode in enumerate(modes):
            row = rows.get((workload, mode))
            known = drawn.value(row) if row is not None else None
            text, colour = "–", _GREY
            if known is not None:
                numbers[y, x] = known
                first, last = drawn.white_beyond
                text, colour = drawn.form.format(known), _INK if first <= known <= last else "white"
            ax.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    ax.imshow(numbers, cmap=drawn.colours, vmin=drawn.low, vmax=drawn.high, aspect="auto")
    ax.set_xticks(range(len(modes)), modes, fontsize=9, color=_INK)
    ax.set_yticks(range(len(workloads)), workloads, fontsize=9, color=_INK)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(1, len(modes)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(workloads)) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=2)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
