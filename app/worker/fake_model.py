"""The scripted fake engine: the real loop, chain and answer over a target that knows its lines.

For tests of window, pipe and faults. Tokens are pieces of text; nothing is computed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from app.protocol import (
    DRAFTERS,
    NEURAL,
    DrafterReport,
    DraftingParams,
    Generate,
    Load,
    ModelReport,
    SamplingParams,
)
from app.worker.engine import Engine
from app.worker.fake_script import Crash, FakeReply, FakeScript
from app.worker.loaded_model import EngineError, Prepared
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.distribution import Distribution
from drafting.drafter import NO_DRAFT, Draft, Drafter, Draw, Interrupted
from drafting.exact import ExactRows
from drafting.target import Row, SavedState, TokenChance

_END = 0
_WRONG = 1  # a token that is never the right one
_PIECE = re.compile(r"\s*\S{1,4}|\s+", re.DOTALL)
_N_VOCAB = 1 << 24


class Part:
    """A scripted answer behind its prompt: the token source of one request."""

    def __init__(self, model: FakeModel, reply: FakeReply, lines: Sequence[int], n_prompt: int) -> None:
        self.reply = reply
        self.n_prompt = n_prompt
        self._model = model
        self._lines = lines

    def line(self, position: int) -> int:
        """The scripted token at an absolute position."""
        at = position - self.n_prompt
        return self._lines[at] if 0 <= at < len(self._lines) else _END

    def at(self, output: int, last: int | None) -> Distribution:
        return Distribution.certain(self.line(self._model.outputs[output] + 1))

    def chance(self, output: int, token: int, top: int) -> TokenChance:
        """It is sure of each token."""
        return TokenChance(token, 0.0, ((token, 0.0),) if top else ())

    def close(self) -> None:
        """Nothing is held."""


class FakeModel:
    """A LoadedModel, and its target as well."""

    n_vocab = _N_VOCAB
    n_batch = 512
    n_outputs = 65
    controller: Controller | None = None  # the script says what is drafted
    threads = None
    saves_all = True

    def __init__(self, script: FakeScript, request: Load, progress: Callable[[float], bool]) -> None:
        self.n_ctx = script.n_ctx
        self._options = request.options
        self._replies: Iterator[FakeReply] = itertools.cycle(script.replies)
        self._by_prompt = script.asked
        self._stop = threading.Event()
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._next = Part(self, FakeReply(), (), 0)  # of the request that is being prepared
        self._playing: dict[int, Part] = {}  # by slot
        self.n_slots = request.options.n_parallel
        self.outputs: list[int] = []  # positions of the last pass that asked for logits
        self._name = Path(request.model_path).stem
        self._load(script, progress)
        plain = script.plain_tokens_per_second
        self._costs = _PlainCost({1: 1 / plain}) if plain is not None else None
        draft = request.draft_model_path
        self.report = ModelReport(
            path=request.model_path,
            name=self._name,
            architecture="fake",
            description="scripted",
            size_bytes=1,
            kv_bytes=0,
            n_vocab=_N_VOCAB,
            n_ctx=min(self.n_ctx, request.options.n_ctx or self.n_ctx),
            n_ctx_train=self.n_ctx,
            max_draft=self.n_outputs - self.n_slots,
            n_threads=request.options.n_threads or 1,
            recurrent=False,
            hybrid=False,
            swa=False,
            draft_model_path=draft,
            drafters=tuple(
                DrafterReport(n, "no draft model chosen" if n in (NEURAL[1:] if draft else NEURAL) else None)
                for n in DRAFTERS
            ),
        )
        self.n_ctx = self.report.n_ctx

    def _load(self, script: FakeScript, progress: Callable[[float], bool]) -> None:
        for tenth in range(11):
            if not progress(tenth / 10):
                raise EngineError("cancelled", "loading was cancelled")
            self._stop.wait(script.load_s / 11)
            if tenth == 5:
                if script.load_crash is not None:
                    crash(script.load_crash)
                if script.load_fail is not None and self._name == (script.fails or self._name):
                    raise EngineError("bad_model", script.load_fail)

    # ---- LoadedModel

    @property
    def target(self) -> FakeModel:
        return self

    def prepare(self, request: Generate) -> Prepared:
        prompt = request.messages[-1].content if request.prompt is None else request.prompt
        reply = self._by_prompt.get(prompt) or next(self._replies)
        said = self._said(reply.text, request).replace("{prompt}", prompt)
        pieces = reply.pieces or (split(said) if reply.bytewise else cut(said))
        lines = [self._id(piece) for piece in pieces] + [_END]
        turns = [f"<{m.role}>{m.content}</>" for m in request.messages] or [prompt]
        tokens = [self._id(piece) for text in turns for piece in cut(text)]
        if (begun := request.begun) is not None:
            tokens += [self._id(piece) for piece in cut(f"<assistant>{begun.reasoning}{begun.text}")]
        self._next = Part(self, reply, lines, len(tokens))
        return Prepared(tokens=tokens, end_tokens=frozenset([_END]), stops=request.stop)

    def _said(self, text: str, request: Generate) -> str:
        """A reply's text; in it stands, where it is asked for, what the worker was told."""
        text = text.replace("{model}", self._name)
        asked = {"{sampling}": request.sampling, "{drafting}": request.drafting, "{options}": self._options}
        for place, told in asked.items():
            if place in text:
                text = text.replace(place, msgspec.json.encode(told).decode())
        return text

    def source(self, sampling: SamplingParams, prepared: Prepared) -> Part:
        return self._next

    def history(self, slot: int) -> None:
        return None

    def links(self, slot: int, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        part = self.play(slot)
        return [_Prompter(part)] if drafting.links else []

    def play(self, slot: int) -> Part:
        """The slot is for the request that was prepared last."""
        self._playing[slot] = self._next
        return self._next

    @property
    def costs(self) -> CostCurve | None:
        return self._costs if self.controller is None else self.controller.costs

    def exact_rows(self) -> ExactRows:
        return ExactRows(1, self.n_outputs)

    def token_bytes(self, token: int) -> bytes:
        return self._texts[token].encode("utf-8", "surrogateescape")

    def answered(self, text: str, tokens: Sequence[int]) -> None:
        """The script needs no memory of its answers."""

    def learn(self, tokens: Sequence[int]) -> None:
        """It knows what comes."""

    def settle(self) -> bool:
        return False

    def abort(self) -> None:
        self._stop.set()

    def allow(self) -> None:
        self._stop.clear()

    def close(self) -> None:
        """Nothing is held."""

    # ---- Target

    def decode(self, rows: Sequence[Row]) -> None:
        self.outputs = [row.pos for row in rows if row.output]
        slots = itertools.groupby(rows, key=lambda row: row.seq)
        self._wait(max(self._play(self._playing[slot], list(own)) for slot, own in slots))

    def _play(self, part: Part, rows: Sequence[Row]) -> float:
        """Seconds that these rows of one answer take."""
        reply = part.reply
        outputs = [row.pos for row in rows if row.output]
        if not outputs or outputs[0] < part.n_prompt:
            return reply.prefill_s * len(rows) / part.n_prompt
        said = outputs[0] - part.n_prompt + 1
        if reply.crash is not None and said >= reply.at:
            crash(reply.crash)
        if reply.fail is not None and said >= reply.at:
            raise EngineError("internal", reply.fail)
        right = sum(1 for row in rows if row.token != _WRONG)
        return right / reply.tokens_per_second

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Interrupted("the pass was aborted")

    def rewind(self, seq: int, length: int) -> int:
        return length

    def forget(self, seq: int) -> None:
        """Nothing is kept."""

    def save(self, seq: int, most_bytes: int) -> SavedState | None:
        """There is nothing to save."""
        return None

    def restore(self, seq: int, saved: SavedState) -> int:
        raise AssertionError("nothing was saved")

    # ---- inside

    def _id(self, piece: str) -> int:
        token = self._ids.setdefault(piece, len(self._ids) + 2)
        self._texts[token] = piece
        return token


class _PlainCost(CostCurve):
    """Keeps to the script, however long the passes take."""

    def observe(self, rows: int, seconds: float) -> None:
        pass


class _Prompter:
    """Plays all drafters: it whispers so many of the next lines, and so many wrong ones after."""

    def __init__(self, part: Part) -> None:
        reply = part.reply
        self._part = part
        self._drafts = itertools.cycle(reply.drafts)
        self._names = itertools.cycle(reply.drafters)
        self._error = reply.link_fail
        self._calls = 0
        self._length = 0
        self.name = reply.drafters[0]

    def begin(self, tokens: Sequence[int]) -> None:
        self._length = len(tokens)

    def commit(self, tokens: Sequence[int]) -> None:
        self._length += len(tokens)

    def judged(self, drafted: int, accepted: int) -> None:
        """It knew before."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        self._calls += 1
        if self._error is not None and self._calls >= 3:
            raise RuntimeError(self._error)
        drafted, accepted = next(self._drafts)
        if drafted == 0:
            return NO_DRAFT
        self.name = next(self._names)
        right = [self._part.line(self._length + i) for i in range(accepted)]
        return Draft([*right, *[_WRONG] * (drafted - accepted)])


def cut(text: str) -> list[str]:
    """Text as tokens of about four characters, each with the white space before it."""
    return _PIECE.findall(text)


def split(text: str) -> list[str]:
    """Text as tokens of one byte, which is half a character at times."""
    return [bytes([byte]).decode("utf-8", "surrogateescape") for byte in text.encode()]


def crash(how: Crash) -> None:
    """End this process the way an engine dies."""
    if how == "abort":
        os.abort()
    elif how == "exit137":
        os._exit(137)
    elif how == "segfault":
        ctypes.string_at(0)
    else:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def fake_engine(script_path: Path) -> Engine:
    """An engine that plays the script in a JSON file. Raises OSError or msgspec.DecodeError."""
    script = msgspec.json.decode(script_path.read_bytes(), type=FakeScript)
    if script.noise_bytes:
        # As C code would: straight to the descriptors, whatever Python thinks stdout is.
        noise = b"noise " * (script.noise_bytes // 6) + b"\n"
        for descriptor in (1, 2):
            for start in range(0, len(noise), 4096):
                os.write(descriptor, noise[start : start + 4096])
        sys.stderr.flush()
    return Engine(lambda request, progress: FakeModel(script, request, progress), "fake", script.devices)
