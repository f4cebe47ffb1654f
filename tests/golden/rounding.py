"""Default mode: where an answer differs with drafts, is it a place where rounding may turn a token?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.protocol import ChatMessage, EngineOptions, Generate, Load
from app.worker.llama_model import LlamaModel
from native.context import Context, ContextOptions
from native.quantize import WeightType
from tests.golden.matrix import LONGEST, ROTATED, Covered
from tests.golden.models import starter_as
from tests.golden.prompts import Prompt
from tests.golden.runs import N_CTX, OFF, Answer, Difference, Mode, Run, Runs, first_difference

_SEQ = 0
_ROWS = 65


class Flip(NamedTuple):
    """One answer that left the plain one at ``place`` (a position in the context)."""

    run: Run
    place: int
    gap: float  # logits between the two best tokens of the plain pass
    apart: float  # the most that the two ways of decoding move any two tokens against each other


class Allowed(NamedTuple):
    covered: Covered
    flips: list[Flip]


class Judge:
    """Decodes a place both ways, with nothing but llama.cpp: no drafter, no loop, no verification."""

    def __init__(self, path: Path, threads: int) -> None:
        options = EngineOptions(n_ctx=N_CTX, n_threads=threads)
        self._loaded = LlamaModel(Load(request_id=0, model_path=str(path), options=options), lambda _: True)
        model = self._loaded.target.context.model
        self._context = Context(model, ContextOptions(n_ctx=N_CTX, n_outputs=_ROWS, n_threads=threads))

    def close(self) -> None:
        self._loaded.close()

    def judge(self, run: Run, text: str, plain: Answer, drafted: Answer, at: int) -> Flip:
        """Raises Difference unless both ways say what was said, for no reason but rounding."""
        request = Generate(request_id=0, messages=(ChatMessage("user", text),))
        prepared = self._loaded.prepare(request)
        prompt = prepared.tokens
        said = [*plain.ids[:at]]
        # The last token of the prompt starts the answer in a pass of its own: the rest was there.
        read, block = prompt[:-1], self._context.n_batch
        self._context.forget(_SEQ)
        for start in range(0, len(read), block):
            piece = read[start : start + block]
            self._context.decode([(_SEQ, t, start + i, False) for i, t in enumerate(piece)])
        tokens = [*prompt, *said]
        ways = [self._logits(tokens, len(read), answer.passes) for answer in (plain, drafted)]
        for logits, answer in zip(ways, (plain, drafted), strict=True):
            best = int(logits.argmax())
            expected = answer.ids[at] if at < len(answer.ids) else None
            if best != expected and not (expected is None and best in prepared.end_tokens):
                raise Difference(f"{run}: token {at} is {expected}, where llama.cpp by itself says {best}")
        second, first = np.partition(ways[0], -2)[-2:]
        moved = ways[1].astype(np.float64) - ways[0]
        flip = Flip(run, len(prompt) + at, float(first - second), float(moved.max() - moved.min()))
        if flip.gap >= flip.apart:
            raise Difference(f"{run}: token {at}, gap {flip.gap}, but the ways differ by {flip.apart}")
        return flip

    def _logits(
        self, tokens: list[int], start: int, passes: Sequence[tuple[int, int]]
    ) -> npt.NDArray[np.float32]:
        """The row behind the last of ``tokens``, decoded from ``start`` on in passes of these sizes."""
        context = self._context
        context.rewind(_SEQ, start)
        for drafted, said in passes:
            known = tokens[start : start + drafted + 1]
            # What was drafted wrongly does not matter, only that its rows were there.
            rows = [*known, *([known[-1]] * (drafted + 1 - len(known)))]
            context.decode([(_SEQ, t, start + i, True) for i, t in enumerate(rows)])
            if start + said >= len(tokens):
                row: npt.NDArray[np.float32] = context.logits()[len(tokens) - 1 - start].copy()
                return row
            start += said
            context.rewind(_SEQ, start)
        raise ValueError("the answer ends before this place")


def check_default_mode(
    runs: Runs,
    model: WeightType,
    prompts: Sequence[Prompt],
    max_tokens: int,
    told: Callable[[Covered, Prompt], None] = lambda covered, prompt: None,
) -> Allowed:
    """Three ways of drafting a prompt, in rotation. Raises Difference for what rounding cannot explain."""
    covered, flips = Covered(model), list[Flip]()
    judge = Judge(starter_as(model, runs.folder), runs.threads)
    try:
        for number, prompt in enumerate(prompts):

            def run(
                mode: Mode,
                max_draft: int,
                exact: bool = False,
                tokens: int = max_tokens,
                prompt: Prompt = prompt,
            ) -> tuple[Run, Answer]:
                asked = Run(
                    model=model,
                    prompt=prompt.name,
                    mode=mode.name,
                    max_draft=max_draft,
                    max_tokens=tokens,
                    exact=exact,
                )
                # Never from the file: each run relies on what the one before left in the KV cache.
                return asked, runs.ask(asked, mode, prompt.text)

            run(OFF, 1, exact=True, tokens=1)  # reads the prompt in whole blocks, as the judge does
            _, plain = run(OFF, 1)
            for i in range(3):
                mode = ROTATED[(3 * number + i) % len(ROTATED)]
                asked, answer = run(mode, 1 + (3 * number + i) % LONGEST)
                at = first_difference(answer, plain)
                if at is not None:
                    flips.append(judge.judge(asked, prompt.text, plain, answer, at))
                covered.add(asked, answer)
            covered.end(plain)
            told(covered, prompt)
    finally:
        judge.close()
    return Allowed(covered, flips)
