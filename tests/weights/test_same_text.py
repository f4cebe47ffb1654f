"""Drafting never changes what the model says: token ids with and without it, on real weights."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.protocol import DRAFTERS, NEURAL, ChatMessage, DrafterName, SamplingParams
from tests.session import EXACT, EXACT_ON_ALL_CORES, Session

pytestmark = pytest.mark.all_cores

# Those that can draft with a draft model at hand; test_neural.py is about the heads.
LINKS: tuple[DrafterName, ...] = tuple(name for name in DRAFTERS if name == "draft" or name not in NEURAL)
CHAINS: list[tuple[DrafterName, ...]] = [*((link,) for link in LINKS), LINKS]

PASSAGE = (
    "The harbour was quiet in the morning. Small boats lay along the wall, and the gulls sat on their "
    "masts. An old man mended a net. Small boats lay along the wall, and nobody spoke."
)
PROMPTS = [
    f"Repeat the following text exactly: {PASSAGE}",
    "List the numbers 1 to 60, one per line, then explain the last one.",
    "Write a Python function that adds two numbers, then the same function with type hints.",
    "Answer with a JSON list of five fruits, each an object with name and colour.",
    "Tell me a short story about a fox and a crow.",
    f"Summarise: {PASSAGE}",
    "Wie heißen die sieben Tage der Woche? Antworte auf Deutsch.",
    "Rename `rows` to `records`: for row in rows: print(row); total = len(rows); rows.clear()",
    "Write the word echo twenty times.",
    "Describe a red balloon 🎈 over the sea.",
]


@pytest.mark.timeout(1200)  # 60 answers of a 540 MB model, on a machine that may be busy
def test_same_ids_on_the_starter_in_f32(session: Session, starter_f32: Path, starter_q2: Path) -> None:
    session.load(starter_f32, starter_q2, EXACT_ON_ALL_CORES)
    drafted = dict.fromkeys(LINKS, 0)
    for prompt in PROMPTS:
        plain = session.ask(prompt, max_tokens=64)
        assert plain.stats.drafted == 0
        for links in CHAINS:
            done = session.ask(prompt, links=links, max_tokens=64)
            assert done.token_ids == plain.token_ids, (links, prompt)
            for name, counts in done.stats.by_drafter.items():
                drafted[name] += counts.drafted
        auto = session.ask(prompt, links=LINKS, mode="auto", max_draft=48, max_tokens=64)
        assert auto.token_ids == plain.token_ids, ("auto", prompt)
    # A chain that never drafts would pass the above as well.
    assert all(drafted[name] for name in ("cache", "simple", "map-k", "suffix", "draft")), drafted


@pytest.mark.parametrize("max_draft", [1, 2, 3, 8, 16, 47])
def test_same_ids_on_a_tiny_model_at_every_draft_length(
    session: Session, t0: Path, d0: Path, max_draft: int
) -> None:
    session.load(t0, d0, EXACT)
    plain = session.ask(PROMPTS[1], max_tokens=256)
    accepted = 0
    for links in CHAINS:
        done = session.ask(PROMPTS[1], links=links, max_tokens=256, max_draft=max_draft)
        assert done.token_ids == plain.token_ids, links
        accepted += done.stats.accepted
    assert accepted > 50
    auto = session.ask(PROMPTS[1], links=LINKS, mode="auto", max_tokens=256, max_draft=max_draft)
    assert auto.token_ids == plain.token_ids


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_a_named_seed_gives_one_text_whoever_drafts(session: Session, t0: Path, d0: Path, seed: int) -> None:
    session.load(t0, d0, EXACT)
    sampling = SamplingParams(temperature=0.9, top_p=0.95, top_k=0, min_p=0.0)
    texts = {
        session.ask("hello", links=links, sampling=sampling, seed=seed, max_tokens=200).token_ids
        for links in [(), (), *CHAINS]
    }
    assert len(texts) == 1


def test_different_seeds_give_different_texts(session: Session, t0: Path) -> None:
    session.load(t0, options=EXACT)
    sampling = SamplingParams(temperature=0.9)
    texts = {session.ask("hello", sampling=sampling, seed=s).token_ids for s in (0, 1, 42)}
    assert len(texts) == 3


def test_without_a_seed_two_loads_answer_differently(session: Session, t0: Path) -> None:
    sampling = SamplingParams(temperature=0.8)
    answers = []
    for _ in range(2):
        session.load(t0, options=EXACT)
        answers.append(session.ask("Tell me a story", sampling=sampling))
    assert answers[0].seed != answers[1].seed
    assert answers[0].token_ids != answers[1].token_ids


def test_the_reported_seed_gives_the_text_again(session: Session, t0: Path) -> None:
    session.load(t0, options=EXACT)
    sampling = SamplingParams(temperature=0.8)
    first = session.ask("Tell me a story", sampling=sampling, links=("cache", "map-k"))
    again = session.ask("Tell me a story", sampling=sampling, seed=first.seed)
    assert again.token_ids == first.token_ids


def test_chats_in_turn_and_an_edited_message_answer_as_fresh_ones(
    session: Session, t0: Path, d0: Path
) -> None:
    """State of one chat must not reach into another: long chat, short chat, back, then an edit."""

    def chat(*texts: str) -> list[ChatMessage]:
        roles = ("user", "assistant")
        return [ChatMessage(roles[i % 2], text) for i, text in enumerate(texts)]  # type: ignore[arg-type]

    long = "count and count again " * 60
    chats = [
        chat(long, "yes", "more"),
        chat("hi"),
        chat(long, "yes", "more"),
        chat(long, "no", "more"),
    ]
    session.load(t0, d0, EXACT)
    warm = [session.ask(messages, links=LINKS, max_tokens=60).token_ids for messages in chats]
    fresh = []
    for messages in chats:
        session.load(t0, None, EXACT)
        fresh.append(session.ask(messages, max_tokens=60).token_ids)
    assert warm == fresh


@pytest.mark.parametrize("n_prompt", [50, 62, 63])
def test_the_context_is_used_to_its_last_token_and_no_further(
    session: Session, t0: Path, n_prompt: int
) -> None:
    session.load(t0, options=msgspec.structs.replace(EXACT, n_ctx=64))
    frame = session.ask("!", max_tokens=1).stats.prompt_tokens - 1  # each "!" is one token
    prompt = "!" * (n_prompt - frame)
    plain = session.ask(prompt, max_tokens=None)
    drafted = session.ask(prompt, links=LINKS, max_draft=10, max_tokens=None)
    for done in (plain, drafted):
        assert done.finish_reason == "length"
        assert done.stats.prompt_tokens == n_prompt
        assert n_prompt + done.stats.completion_tokens == 64
    assert drafted.token_ids == plain.token_ids
    assert session.ask("hi", max_tokens=4).stats.completion_tokens == 4
