"""Arctic Inference's suffix decoding as a peer in the replay: its drafts for our recorded answers.

    python -m tests.bench.arctic --python PATH/TO/ITS/python [TRACE…] [--json]

The interpreter must be able to import ``arctic_inference.suffix_decoding``. PyPI's arctic-inference
wants torch for parts that are not needed here; in a virtual environment of its own this is enough:

    pip install numpy nanobind==2.9.2
    cmake -S csrc/suffix_decoding -B build -DPython_EXECUTABLE=$(which python) && cmake --build build
    cp build/_C*.so arctic_inference/suffix_decoding/

in the unpacked source archive, which then goes on PYTHONPATH.

Cold: an answer's drafts come from its prompt and itself. Warm: also from the earlier answers of the
same recording, in their order.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from app import paths
from drafting.auto_chain import AutoChain
from drafting.chain import Chain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import NO_DRAFT, Draft, Draw
from drafting.history import History
from drafting.parameters import SuffixParameters
from drafting.past_answers import PastAnswers
from drafting.replay import CURVES, LINKS, Outcome, Recording, Trace, play
from drafting.suffix import Suffix

DEPTH = 64
LONGEST = 48


class Settings(Struct, frozen=True):
    """Its own names and defaults. A draft is at most factor times the match plus offset tokens long."""

    max_spec_factor: float = 1.0
    max_spec_offset: float = 0.0
    min_token_prob: float = 0.1
    use_tree_spec: bool = False

    def __str__(self) -> str:
        shape = "tree" if self.use_tree_spec else "path"
        return f"{shape} {self.max_spec_factor:g}n{self.max_spec_offset:+g} p {self.min_token_prob:g}"


DEFAULTS = Settings()
ALL_OUT = Settings(64.0)
GRID = [
    *(
        Settings(*chosen)
        for chosen in itertools.product((1.0, 2.0, 4.0), (-1.0, 0.0, 4.0), (0.1, 0.5), (False, True))
    ),
    ALL_OUT,
    Settings(64.0, use_tree_spec=True),
]
P_MIN = (0.0, 0.1, 0.3, 0.5, 0.7)
# A count of one out of one is not certainty; so sure are our own drafters at most.
SUREST = 0.98


class Tree(Struct, frozen=True):
    """Drafted tokens, the index of each one's predecessor (-1: the text's end), and the probability
    of the whole way to it."""

    tokens: list[int]
    parents: list[int]
    probs: list[float]

    def right(self, said: Sequence[int]) -> int:
        """How many tokens of ``said`` the tree holds as one path from its root."""
        node = -1
        for n, token in enumerate(said):
            node = next(
                (i for i, p in enumerate(self.parents) if p == node and self.tokens[i] == token), None
            )
            if node is None:
                return n
        return len(said)


class Arctic:
    """The peer's process; also a drafter of ours, so that our controller can judge its drafts."""

    name = "arctic"

    def __init__(self, python: Path) -> None:
        script = Path(__file__).with_name("arctic_peer.py")
        self._process = subprocess.Popen(
            [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def forget(self, settings: Settings) -> None:
        """A new cache, used with these settings."""
        self._send("cache", DEPTH, msgspec.structs.asdict(settings))

    def tree(self, limit: int) -> Tree:
        self._send("propose", limit)
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer ended with status {self._process.wait()}")
        return Tree(*json.loads(line))

    def _send(self, *message: object) -> None:
        self._process.stdin.write(json.dumps(message) + "\n")

    # ---- Drafter

    def begin(self, tokens: Sequence[int]) -> None:
        self._send("begin", list(tokens))

    def commit(self, tokens: Sequence[int]) -> None:
        self._send("commit", list(tokens))

    def propose(self, limit: int, draw: Draw) -> Draft:
        """A path's tokens; its confidence is the share of counts, given the tokens before."""
        tree = self.tree(limit)
        before = [1.0, *tree.probs]
        shares = [min(p / q, SUREST) for p, q in zip(tree.probs, before, strict=False)]
        return Draft(tree.tokens, confidence=shares) if tree.tokens else NO_DRAFT

    def judged(self, drafted: int, accepted: int) -> None:
        pass


class Row(Struct):
    """One way of drafting over all traces on one machine; time in plain passes."""

    curve: str
    start: str
    mode: str
    tokens: int = 0
    passes: int = 0
    wasted: int = 0
    time: float = 0.0

    def add(self, trace: Trace, outcome: Outcome) -> None:
        self.tokens += len(trace.answer)
        self.passes += outcome.passes
        self.wasted += outcome.drafted - outcome.accepted
        self.time += outcome.time

    @property
    def speed(self) -> float:
        return self.tokens / self.time

    def as_report(self) -> dict[str, object]:
        return {
            "curve": self.curve,
            "start": self.start,
            "mode": self.mode,
            "tokens_per_pass": self.tokens / self.passes,
            "wasted": self.wasted,
            "time_ratio": self.speed,
        }


def fixed(arctic: Arctic, trace: Trace) -> list[tuple[int, int]]:
    """Drafted and accepted tokens, pass by pass, as the peer itself decides on the length."""
    answer, at, passes = trace.answer, 0, []
    arctic.begin(trace.prompt)
    while at < len(answer):
        limit = min(LONGEST, len(answer) - at - 1)
        tree = arctic.tree(limit) if limit else Tree([], [], [])
        right = tree.right(answer[at : at + limit])
        passes.append((len(tree.tokens), right))
        arctic.commit(answer[at : at + right + 1])
        at += right + 1
    return passes


def priced(passes: Sequence[tuple[int, int]], curve: Mapping[int, float]) -> Outcome:
    costs = CostCurve(curve)
    return Outcome(
        passes=len(passes),
        drafted=sum(drafted for drafted, _ in passes),
        accepted=sum(accepted for _, accepted in passes),
        time=sum(costs.relative(1 + drafted) for drafted, _ in passes),
    )


def fixed_rows(arctic: Arctic, recordings: Sequence[Recording], settings: Settings, start: str) -> list[Row]:
    rows = {curve: Row(curve, start, f"arctic {settings}") for curve in CURVES}
    for recording in recordings:
        arctic.forget(settings)
        for trace in recording.traces:
            if start == "cold":
                arctic.forget(settings)
            passes = fixed(arctic, trace)
            for curve, row in rows.items():
                row.add(trace, priced(passes, CURVES[curve]))
    return list(rows.values())


class Ours:
    """Links of ours over a recording; warm, they look things up in its earlier answers as well."""

    def __init__(self, mode: str, names: Sequence[str], p_min: float | None = None) -> None:
        """``p_min`` None: the controller chooses the length."""
        self.mode = mode
        self._names = names
        self._p_min = p_min

    def rows(self, recordings: Sequence[Recording], start: str) -> list[Row]:
        rows = {curve: Row(curve, start, self.mode) for curve in CURVES}
        for recording in recordings:
            past, said = PastAnswers(), []
            for trace in recording.traces:
                for curve, row in rows.items():
                    costs = CostCurve(CURVES[curve])
                    row.add(trace, play(trace, self._chain(past, costs), costs, LONGEST))
                if start == "warm":
                    said.append(np.array(trace.answer, np.int32))
                    past.hold(said)
        return list(rows.values())

    def _chain(self, past: PastAnswers, costs: CostCurve) -> Chain:
        history = History()
        suffix = Suffix(history, past=past)
        links = [suffix if name == "suffix" else LINKS[name](history) for name in self._names]
        if self._p_min is None:
            return AutoChain(links, Controller(costs), lambda: 0.0, history)
        suffix.configure(SuffixParameters(p_min=self._p_min))
        return Chain(links, history)


def judged_rows(arctic: Arctic, recordings: Sequence[Recording], settings: Settings, start: str) -> list[Row]:
    """The peer's drafts cut by our controller, which the curve decides on: each one on its own."""
    rows = []
    for curve, relative in CURVES.items():
        row = Row(curve, start, f"arctic {settings}, our controller")
        for recording in recordings:
            arctic.forget(settings)
            for trace in recording.traces:
                if start == "cold":
                    arctic.forget(settings)
                costs = CostCurve(relative)
                chain = AutoChain([arctic], Controller(costs), lambda: 0.0)
                row.add(trace, play(trace, chain, costs, LONGEST))
        rows.append(row)
    return rows


def best(by_setting: Sequence[Sequence[Row]]) -> list[Row]:
    """Of each curve the fastest setting, and the one with the most tokens per pass."""
    chosen = []
    for rows in zip(*by_setting, strict=True):
        chosen.append(max(rows, key=lambda row: row.speed))
        chosen.append(max(rows, key=lambda row: row.tokens / row.passes))
    return chosen


def measure(arctic: Arctic, recordings: Sequence[Recording]) -> list[Row]:
    """Either side with its defaults, with its best settings, and under our controller."""
    rows: list[Row] = []
    default = SuffixParameters().p_min
    for start in ("cold", "warm"):
        rows += fixed_rows(arctic, recordings, DEFAULTS, start)
        rows += best([fixed_rows(arctic, recordings, settings, start) for settings in GRID])
        for settings in (DEFAULTS, ALL_OUT):
            rows += judged_rows(arctic, recordings, settings, start)
        fixed = {p_min: Ours(f"suffix p_min {p_min:g}", ["suffix"], p_min) for p_min in (default, *P_MIN)}
        rows += fixed[default].rows(recordings, start)
        rows += best([ours.rows(recordings, start) for ours in fixed.values()])
        rows += Ours("suffix, our controller", ["suffix"]).rows(recordings, start)
        rows += Ours("auto", list(LINKS)).rows(recordings, start)
    order = list(CURVES)
    unique = {(row.curve, row.start, row.mode): row for row in rows}
    return sorted(unique.values(), key=lambda row: (order.index(row.curve), row.start, row.speed))


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'curve':7}{'start':7}{'mode':42}{'speed':>8}{'tokens/pass':>13}{'wasted':>9}"]
    for row in rows:
        lines.append(
            f"{row.curve:7}{row.start:7}{row.mode:42}{row.speed:7.3f}x"
            f"{row.tokens / row.passes:13.2f}{row.wasted:9,}"
        )
    return "\n".join(lines)


def read(files: Sequence[Path]) -> list[Recording]:
    recordings = [msgspec.json.decode(file.read_bytes(), type=Recording) for file in files]
    return [Recording(r.model, [trace for trace in r.traces if trace.answer]) for r in recordings]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    files = options.traces or sorted((paths.assets_dir() / "replay").glob("*.json"))
    arctic = Arctic(options.python)
    try:
        rows = measure(arctic, read(files))
    finally:
        arctic.close()
    print(json.dumps({"rows": [row.as_report() for row in rows]}) if options.json else table(rows))


if __name__ == "__main__":
    main()
