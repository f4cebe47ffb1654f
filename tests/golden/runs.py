"""Answers through the real worker, kept in a file so that a long series can be stopped and continued."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from app.protocol import (
    DRAFTERS,
    NEURAL,
    Chunk,
    DrafterName,
    DraftMode,
    EngineOptions,
    SamplingParams,
    Started,
)
from drafting.parameters import LinkParameters, NeuralParameters
from native.quantize import WeightType
from tests.golden import steady_worker
from tests.golden.models import DRAFT, starter_as
from tests.session import Session

N_CTX = 2048
FOREVER = 24 * 3600.0  # seconds for one answer: the process may be stopped in the middle of it
NGRAMS: tuple[DrafterName, ...] = tuple(name for name in DRAFTERS if name not in NEURAL)


class Mode(Struct, frozen=True):
    """A way of drafting, under the name it has in reports."""

    name: str
    links: tuple[DrafterName, ...] = ()
    mode: DraftMode = "manual"
    parameters: LinkParameters = LinkParameters()

    @property
    def neural(self) -> DrafterName | None:
        """Which drafter must be loaded for it."""
        return next((link for link in self.links if link in NEURAL), None)


_NO_OTHER_LIMIT = NeuralParameters(n_max=64)  # than the run's own
OFF = Mode("off")
CHAIN = Mode("chain", NGRAMS)
AUTO = Mode("auto", NGRAMS, "auto")
LINKS: tuple[Mode, ...] = tuple(Mode(name, (name,)) for name in NGRAMS)
DRAFT_MODEL = Mode("draft", ("draft",), parameters=LinkParameters(draft=_NO_OTHER_LIMIT))
EAGLE3 = Mode("eagle3", ("eagle3",), parameters=LinkParameters(eagle3=_NO_OTHER_LIMIT))
ALONE: dict[str, Mode] = {mode.name: mode for mode in (*LINKS, DRAFT_MODEL, EAGLE3)}


class Run(Struct, frozen=True, kw_only=True):
    """What is asked: everything an answer may depend on, and what it must not depend on.

    ``seed`` None is greedy at temperature 0. ``repeat`` tells equal runs apart.
    """

    model: WeightType
    prompt: str  # its name
    mode: str
    max_draft: int
    max_tokens: int
    exact: bool = True
    temperature: float = 0.0
    seed: int | None = None
    repeat: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """What came back. ``passes``: for each one after the prompt was read, tokens drafted and said."""

    ids: tuple[int, ...]
    stopped: bool  # an end token was said; it is not in ``ids``
    prompt_tokens: int
    drafted: dict[str, int]
    accepted: int
    passes: tuple[tuple[int, int], ...]


class _Line(Struct, frozen=True):
    run: Run
    answer: Answer


class Runs:
    """Asks what has not been asked before. Use it in a ``with`` statement."""

    def __init__(self, folder: Path, results: Path | None, threads: int) -> None:
        """``results``: a file of JSON lines that is read, then added to; None keeps nothing."""
        self.folder = folder
        self._results = results
        self.threads = threads
        self._known: dict[Run, Answer] = {}
        self._weights: WeightType | None = None  # that are loaded
        self._neural: DrafterName = "draft"
        self.computed = 0  # tokens said by this process's worker
        if results is not None and results.exists():
            for line in results.read_bytes().splitlines():
                one = msgspec.json.decode(line, type=_Line)
                self._known[one.run] = one.answer

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._session = Session(steady_worker.COMMAND, log_path=self.folder / "worker.log")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.client.close()

    def answer(self, run: Run, mode: Mode, text: str) -> Answer:
        """The answer to ``text``, from the file if it is there."""
        if run not in self._known:
            answer = self._known[run] = self.ask(run, mode, text)
            if self._results is not None:
                self._results.parent.mkdir(parents=True, exist_ok=True)
                with self._results.open("ab") as file:
                    file.write(msgspec.json.encode(_Line(run, answer)) + b"\n")
        return self._known[run]

    def ask(self, run: Run, mode: Mode, text: str) -> Answer:
        """The answer to ``text``, asked for now whether it is known or not."""
        self._load(run.model, mode.neural)
        seen = self._session.seen
        seen.clear()
        done = self._session.ask(
            text,
            links=mode.links,
            mode=mode.mode,
            parameters=mode.parameters,
            max_draft=run.max_draft,
            sampling=SamplingParams(temperature=run.temperature),
            max_tokens=run.max_tokens,
            seed=run.seed,
            exact=run.exact,
            timeout=FOREVER,
        )
        notices = [notice for event in seen if isinstance(event, Started) for notice in event.notices]
        if without := [notice for notice in notices if notice.startswith("Exact mode")]:
            raise RuntimeError(f"{run.model}: {without[0]}")
        self.computed += len(done.token_ids)
        chunks = [event for event in seen if isinstance(event, Chunk) and event.tokens]
        return Answer(
            ids=done.token_ids,
            stopped=done.finish_reason == "stop",
            prompt_tokens=done.stats.prompt_tokens,
            drafted={name: counts.drafted for name, counts in done.stats.by_drafter.items()},
            accepted=done.stats.accepted,
            passes=tuple((chunk.drafted, chunk.tokens) for chunk in chunks),
        )

    def _load(self, weights: WeightType, neural: DrafterName | None) -> None:
        """With a smaller copy for a draft model, or with the head that the starter brings along."""
        if self._weights == weights and neural in (None, self._neural):
            return
        self._weights, self._neural = weights, neural or "draft"
        draft = starter_as(DRAFT, self.folder) if self._neural == "draft" else None
        options = EngineOptions(n_ctx=N_CTX, n_threads=self.threads)
        report = self._session.load(starter_as(weights, self.folder), draft, options)
        if reason := {drafter.name: drafter.reason for drafter in report.drafters}[self._neural]:
            raise RuntimeError(f"{weights}: {self._neural} cannot draft: {reason}")


class Difference(Exception):
    """Two answers that should be the same."""


def compare(run: Run, answer: Answer, plain: Answer) -> None:
    """Raises Difference, with the place and both tokens, where ``answer`` is not ``plain``."""
    at = first_difference(answer, plain)
    if at is not None:
        tokens = [str(a.ids[at]) if at < len(a.ids) else "the end" for a in (plain, answer)]
        raise Difference(
            f"{run.model}, {run.prompt}, {run.mode} with drafts up to {run.max_draft}, seed {run.seed}: "
            f"token {at} of the answer is {tokens[0]} without drafts and {tokens[1]} with them"
        )


def first_difference(a: Answer, b: Answer) -> int | None:
    """The first token that differs, an end token included; None where the answers are the same."""
    for i, (mine, yours) in enumerate(zip(a.ids, b.ids, strict=False)):
        if mine != yours:
            return i
    same = len(a.ids) == len(b.ids) and a.stopped == b.stopped
    return None if same else min(len(a.ids), len(b.ids))
