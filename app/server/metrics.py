"""Counts of the server in Prometheus' text format."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from drafting.statistics import Statistics

_HELP = {
    "slipstream_requests_total": ("counter", "Requests by route and status."),
    "slipstream_refused_requests_total": ("counter", "Requests that were one too many, by reason."),
    "slipstream_tokens_total": ("counter", "Tokens by kind: prompt, cached (of the prompt) and completion."),
    "slipstream_drafted_tokens_total": ("counter", "Tokens drafted, by drafter and route."),
    "slipstream_accepted_tokens_total": ("counter", "Drafted tokens accepted, by drafter and route."),
    "slipstream_target_passes_total": ("counter", "Passes of the model."),
    "slipstream_decode_seconds_total": ("counter", "Time spent on answers after their first token."),
    "slipstream_requests_in_progress": ("gauge", "Answers asked for that have not ended."),
    "slipstream_queue_length": ("gauge", "Of these, those that wait."),
    "slipstream_tokens_per_second": ("gauge", "Of the last answer, its first token apart."),
}  # fmt: skip

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._speed: float | None = None

    def request(self, route: str, status: int) -> None:
        self._add("slipstream_requests_total", 1, route=route, status=str(status))

    def refused(self, reason: str) -> None:
        """``reason``: the error's code."""
        self._add("slipstream_refused_requests_total", 1, reason=reason)

    def answer(self, route: str, stats: Statistics) -> None:
        self._add("slipstream_tokens_total", stats.prompt_tokens, kind="prompt")
        self._add("slipstream_tokens_total", stats.reused_tokens, kind="cached")
        self._add("slipstream_tokens_total", stats.completion_tokens, kind="completion")
        self._add("slipstream_target_passes_total", stats.target_passes)
        self._add("slipstream_decode_seconds_total", stats.decode_s)
        for name, counts in stats.by_drafter.items():
            labels = {"drafter": name, "route": route}
            self._add("slipstream_drafted_tokens_total", counts.drafted, **labels)
            self._add("slipstream_accepted_tokens_total", counts.accepted, **labels)
        if stats.tokens_per_second is not None:
            self._speed = stats.tokens_per_second

    def _add(self, name: str, amount: float, **labels: str) -> None:
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += amount  # type: ignore[assignment]

    def text(self, in_progress: int, waiting: int) -> str:
        with self._lock:
            samples = [(name, labels, float(value)) for (name, labels), value in self._counts.items()]
        samples.append(("slipstream_requests_in_progress", (), float(in_progress)))
        samples.append(("slipstream_queue_length", (), float(waiting)))
        if self._speed is not None:
            samples.append(("slipstream_tokens_per_second", (), self._speed))
        lines: list[str] = []
        for name, (kind, help) in _HELP.items():
            of_name = sorted((labels, value) for each, labels, value in samples if each == name)
            if of_name:
                lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
                lines += [f"{name}{_labels(labels)} {value:.10g}" for labels, value in of_name]
        return "\n".join([*lines, ""])


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
