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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from app import paths
from drafting.auto_chain import AutoChain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import NO_DRAFT, Draft, Draw
from drafting.history import History
from drafting.replay import CURVES, Outcome, Recording, Trace, play, replay
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


def judged_rows(
    recordings: Sequence[Recording], mode: str, start: str, run: Callable[[Trace, str], Outcome]
) -> Iterator[Row]:
    """Where the curve matters for what is drafted: each one on its own."""
    for curve in CURVES:
        row = Row(curve, start, mode)
        for recording in recordings:
            for trace in recording.traces:
                row.add(trace, run(trace, curve))
        yield row


def suffix_alone(trace: Trace, curve: str) -> Outcome:
    history = History()
    costs = CostCurve(CURVES[curve])
    chain = AutoChain([Suffix(history)], Controller(costs), lambda: 0.0, history)
    return play(trace, chain, costs, LONGEST)


def measure(arctic: Arctic, recordings: Sequence[Recording]) -> list[Row]:
    """All rows, the peer's settings that are fastest on each curve beside its defaults."""
    rows: list[Row] = []
    for start in ("cold", "warm"):
        rows += fixed_rows(arctic, recordings, DEFAULTS, start)
        grid = [fixed_rows(arctic, recordings, settings, start) for settings in GRID]
        for by_setting in zip(*grid, strict=True):
            rows.append(max(by_setting, key=lambda row: row.speed))
            rows.append(max(by_setting, key=lambda row: row.tokens / row.passes))

    for settings in (DEFAULTS, ALL_OUT):

        def in_our_hands(trace: Trace, curve: str, settings: Settings = settings) -> Outcome:
            arctic.forget(settings)
            costs = CostCurve(CURVES[curve])
            return play(trace, AutoChain([arctic], Controller(costs), lambda: 0.0), costs, LONGEST)

        rows += judged_rows(recordings, f"arctic {settings}, our controller", "cold", in_our_hands)
    rows += judged_rows(recordings, "suffix", "cold", lambda t, c: replay(t, "suffix", CURVES[c], LONGEST))
    rows += judged_rows(recordings, "suffix, our controller", "cold", suffix_alone)
    rows += judged_rows(recordings, "auto", "cold", lambda t, c: replay(t, "auto", CURVES[c], LONGEST))
    order = list(CURVES)
    return sorted(rows, key=lambda row: (order.index(row.curve), row.start, row.speed))


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
