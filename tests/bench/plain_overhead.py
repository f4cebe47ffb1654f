"""What the worker costs: plain decoding through it against a bare llama_decode + argmax loop.

    python -m tests.bench.plain_overhead [MODEL] [--runs N] [--tokens N]

Both run in turn on the same prompt, tokens and threads, so that machine noise hits both alike; the
figure is the median of the pairs' ratios (worker / bare, 1.0 is no cost at all).
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from pathlib import Path

from app.chat_template import ChatTemplate, builtin_source
from app.protocol import ChatMessage, EngineOptions
from app.worker.prompt import PromptBuilder
from model_store.starter import starter_path
from native.context import Context, ContextOptions
from native.model import Model
from tests.session import Session

PROMPT = "Write a long story about a lighthouse keeper and the sea."


def bare(context: Context, prompt: list[int], n_tokens: int) -> float:
    """Tokens per second of the simplest loop there is, prefill apart."""
    context.forget(0)
    context.decode([(0, t, i, i == len(prompt) - 1) for i, t in enumerate(prompt)])
    token = int(context.logits()[0].argmax())
    began = time.perf_counter()
    for i in range(n_tokens - 1):
        context.decode([(0, token, len(prompt) + i, True)])
        token = int(context.logits()[0].argmax())
    return (n_tokens - 1) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, default=starter_path())
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    with Session() as session, Model(options.model) as model:
        report = session.load(options.model, options=EngineOptions(n_ctx=2048))
        threads = report.n_threads
        context = Context(model, ContextOptions(n_ctx=2048, n_outputs=1, n_threads=threads))
        builder = PromptBuilder(model, ChatTemplate(model.chat_template or builtin_source("chatml")))
        prompt = builder.build([ChatMessage("user", PROMPT)], datetime.datetime.now()).tokens
        ratios = []
        for run in range(options.runs + 1):
            done = session.ask(PROMPT, max_tokens=options.tokens)
            through = done.stats.tokens_per_second
            assert through is not None
            alone = bare(context, prompt, done.stats.completion_tokens)
            if run > 0:  # the first pair warms up
                ratios.append(through / alone)
                print(f"worker {through:7.1f} tokens/s   bare {alone:7.1f}   ratio {ratios[-1]:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f} over {len(ratios)} pairs")


if __name__ == "__main__":
    main()
