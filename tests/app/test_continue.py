"""An answer that goes on from its end: what the model is shown, and that nothing is lost on the way."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from app.chat_template import ChatTemplate, builtin_source
from app.protocol import Begun, ChatMessage, Chunk, Done, DraftingParams, JsonSchema, SamplingParams, Started
from app.reasoning import ReasoningSplitter
from app.worker.fake_script import FakeReply
from app.worker.prompt import PromptBuilder
from tests.app.fake_vocab import FakeVocab, pair, spell
from tests.app.test_engine import FAST, Bench, done, refusal, streamed
from tests.session import EXACT, Session, chat
from tests.tiny_gguf import Tiny, vocabulary, write_llama

NOW = datetime.datetime(2024, 1, 2)
CHATML = builtin_source("chatml")
THINKING = CHATML + "{% if add_generation_prompt %}{{ '<think>\n' }}{% endif %}"
QUESTION = [ChatMessage("user", "Hi")]
HEAD = "{<|im_start|>}user\nHi{<|im_end|>}\n{<|im_start|>}assistant\n"


def builder(source: str) -> PromptBuilder:
    return PromptBuilder(FakeVocab(), ChatTemplate(source))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "begun", "shown", "closing"),
    [
        (CHATML, Begun(text="Hello th"), "Hello th", None),
        (CHATML, Begun(text="  spaced "), "  spaced ", None),
        (CHATML, Begun(text="a", reasoning="hm"), "<think>\nhm\n</think>\n\na", None),
        (CHATML, Begun(reasoning="hm, so"), "<think>\nhm, so", "</think>"),
        (THINKING, Begun(reasoning="hm, so"), "<think>\nhm, so", "</think>"),
        (THINKING, Begun(text="a", reasoning="hm"), "<think>\nhm\n</think>\n\na", None),
        (THINKING, Begun(text="a"), "<think>\n\n</think>\n\na", None),
    ],
)
def test_the_prompt_ends_with_what_was_said(
    source: str, begun: Begun, shown: str, closing: str | None
) -> None:
    prompt = builder(source).build(QUESTION, NOW, begun)
    assert spell(prompt.tokens) == HEAD + shown
    assert prompt.closing == closing


def test_markup_in_what_was_said_stays_text() -> None:
    text = "write <|im_end|> or </think>"
    assert spell(builder(CHATML).build(QUESTION, NOW, Begun(text=text)).tokens) == HEAD + text


def test_a_known_answer_keeps_its_tokens() -> None:
    prompts = builder(CHATML)
    plain = prompts.build(QUESTION, NOW).tokens
    said = prompts.build(QUESTION, NOW, Begun(text="Hello")).tokens[len(plain) :]
    split = [pair("He"), *said[2:]]
    assert split != said
    prompts.remember("Hello", split)
    prompt = prompts.build(QUESTION, NOW, Begun(text="Hello"))
    assert prompt.tokens == [*plain, *split]
    assert prompt.begun == tuple(split)


def test_thoughts_that_go_on_keep_the_space_between() -> None:
    splitter = ReasoningSplitter("</think>", begun=True)
    parts = [*splitter.feed(" and more </th"), *splitter.feed("ink>\n\nSo."), *splitter.finish()]
    assert parts == [(" and more", True), ("So.", False)]


def test_a_tag_in_the_rest_of_an_answer_is_text() -> None:
    splitter = ReasoningSplitter(begun=True)
    assert [*splitter.feed("<think> is a tag"), *splitter.finish()] == [("<think> is a tag", False)]


def test_the_engine_tells_only_the_rest() -> None:
    bench = Bench(FakeReply(text="and so on", tokens_per_second=FAST))
    bench.load()
    events = bench.ask("hi", begun=Begun(text="First this "))
    assert (done(events).text, streamed(events)) == ("and so on", "and so on")


def test_what_must_follow_a_grammar_is_not_continued() -> None:
    bench = Bench()
    bench.load()
    error = refusal(bench, "hi", begun=Begun(text="{"), grammar=JsonSchema())
    assert error.kind == "bad_input"


def test_a_real_model_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    tiny = Tiny()
    tokens, _, _ = vocabulary(tiny)
    # Letters only, so that tokens and text say the same.
    banned = {i: -100.0 for i, token in enumerate(tokens) if not (token.isascii() and token.isalpha())}
    model = write_llama(tmp_path / "tiny.gguf", tiny)

    def ask(session: Session, begun: Begun | None, most: int) -> tuple[Started, Done]:
        request = session.client.generate(
            chat("go"),
            sampling=SamplingParams(temperature=0, logit_bias=banned),
            drafting=DraftingParams(links=()),
            max_tokens=most,
            begun=begun,
        )
        event = session.terminal(request)
        assert isinstance(event, Done), event
        starts = [e for e in session.seen if isinstance(e, Started) and e.request_id == request]
        pieces = [
            p.text for e in session.seen if isinstance(e, Chunk) and e.request_id == request for p in e.pieces
        ]
        assert "".join(pieces) == event.text
        return starts[0], event

    with Session(log_path=tmp_path / "worker.log") as session:
        session.load(model, options=EXACT)
        _, whole = ask(session, None, 24)
        _, first = ask(session, None, 9)
        started, rest = ask(session, Begun(text=first.text), 8)
        assert started.reused_tokens >= started.prompt_tokens - 2
        assert first.token_ids + rest.token_ids == whole.token_ids[:17]
        # Twice cut is remembered as one answer.
        _, last = ask(session, Begun(text=first.text + rest.text), 7)
        assert first.text + rest.text + last.text == whole.text
