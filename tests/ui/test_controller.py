"""What the window does with the engine's events, without a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from app.chats.chat import Chat
from app.chats.message import Message
from app.engine_client import Event, WorkerLost
from app.process_exit import ProcessExit
from app.protocol import (
    ChatMessage,
    Chunk,
    Done,
    EngineOptions,
    Failed,
    FailureKind,
    FinishReason,
    Loaded,
    LoadProgress,
    ModelReport,
    Piece,
    Started,
)
from app.settings import Settings, Verification
from drafting.statistics import Statistics
from tests.ui.test_live_numbers import report
from ui.chat.controller import Controller
from ui.chat.view import Problem


class Engine:
    """Takes down what it is asked."""

    def __init__(self) -> None:
        self.ids = 0
        self.loads: list[tuple[int, str, str | None, EngineOptions]] = []
        self.generated: list[tuple[int, tuple[ChatMessage, ...], dict[str, Any]]] = []
        self.cancelled: list[int] = []
        self.restarts = 0
        self.unloads = 0

    def _next(self) -> int:
        self.ids += 1
        return self.ids

    def load(self, model_path: str, draft_model_path: str | None, options: EngineOptions) -> int:
        self.loads.append((self._next(), model_path, draft_model_path, options))
        return self.ids

    def generate(self, messages: Sequence[ChatMessage], **options: Any) -> int:
        self.generated.append((self._next(), tuple(messages), options))
        return self.ids

    def cancel(self, request_id: int) -> None:
        self.cancelled.append(request_id)

    def unload(self) -> int:
        self.unloads += 1
        return self._next()

    def restart(self) -> None:
        self.restarts += 1


class View:
    def __init__(self) -> None:
        self.shown: list[Message] = []
        self.grown = ""
        self.growths = 0
        self.notices: list[str] = []
        self.card: Problem | None = None
        self.given_back: list[str] = []
        self.numbers = 0
        self.lists = 0
        self.chats: list[int] = []
        self.controller: Controller

    def message_added(self, message: Message) -> None:
        self.shown.append(message)

    def message_removed(self, message: Message) -> None:
        self.shown.remove(message)

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        assert message in self.shown
        self.growths += 1
        self.grown += "".join(piece.text for piece in pieces)

    def message_changed(self, message: Message) -> None:
        assert message in self.shown

    def conversation_replaced(self) -> None:
        self.shown = list(self.controller.conversation.messages)

    def chats_changed(self) -> None:
        self.lists += 1

    def chat_changed(self, chat: Chat) -> None:
        self.chats.append(chat.id)

    def engine_changed(self) -> None:
        pass

    def numbers_changed(self) -> None:
        self.numbers += 1

    def notice(self, text: str, action: str = "") -> None:
        self.notices.append(text)

    def problem(self, problem: Problem | None) -> None:
        self.card = problem

    def give_back(self, text: str) -> None:
        self.given_back.append(text)


class Bench:
    """A controller with a model in memory."""

    def __init__(self, settings: Settings | None = None, loaded: bool = True) -> None:
        self.engine, self.view = Engine(), View()
        self.controller = self.view.controller = Controller(self.engine, settings or Settings(), self.view)
        if loaded:
            self.controller.choose_model("/m/toy.gguf")
            self.controller.handle([Loaded(self.engine.ids, report())])

    @property
    def request(self) -> int:
        return self.engine.generated[-1][0]

    def started(self, **values: Any) -> Started:
        return Started(request_id=self.request, prompt_tokens=5, reused_tokens=0, seed=7, **values)

    def chunk(self, text: str, **values: Any) -> Chunk:
        return Chunk(request_id=self.request, pieces=(Piece(text),), tokens=1, **values)

    def done(self, text: str, reason: FinishReason = "stop", **values: Any) -> Done:
        return Done(
            request_id=self.request,
            finish_reason=reason,
            text=text,
            reasoning=values.pop("reasoning", ""),
            cut_in_reasoning=values.pop("cut_in_reasoning", False),
            token_ids=(),
            seed=7,
            stats=Statistics(completion_tokens=1),
        )

    def failed(self, kind: FailureKind, message: str = "Because.") -> Failed:
        return Failed(self.request, kind, message)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def lost(restarted: bool = True, reloading: bool = True) -> WorkerLost:
    return WorkerLost(ProcessExit(-9), "The engine process stopped: killed.", restarted, reloading)


def test_an_answer_from_start_to_end(bench: Bench) -> None:
    assert bench.controller.send("hi")
    assert bench.controller.busy
    bench.controller.handle([bench.started(), bench.chunk("Hel"), bench.chunk("lo")])
    assert (bench.view.grown, bench.view.growths) == ("Hello", 1)
    bench.controller.handle([bench.done("Hello")])
    assert not bench.controller.busy
    question, answer = bench.controller.conversation.messages
    assert (question.text, answer.text, answer.state) == ("hi", "Hello", "done")


def test_the_second_turn_sends_the_first(bench: Bench) -> None:
    bench.controller.send("one")
    bench.controller.handle([bench.started(), bench.chunk("first"), bench.done("first")])
    bench.controller.send("two")
    assert [message.content for message in bench.engine.generated[-1][1]] == ["one", "first", "two"]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_message_is_not_sent(bench: Bench, text: str) -> None:
    assert not bench.controller.send(text)
    assert not bench.engine.generated
    assert not bench.view.shown


def test_a_message_waits_for_the_model() -> None:
    bench = Bench(loaded=False)
    bench.controller.choose_model("/m/toy.gguf")
    assert bench.controller.send("hi")
    assert not bench.engine.generated
    bench.controller.handle([LoadProgress(1, 0.5)])
    assert bench.controller.state.fraction == 0.5
    bench.controller.handle([Loaded(1, report())])
    assert [message.content for message in bench.engine.generated[-1][1]] == ["hi"]


def test_without_a_model_the_text_stays_and_a_card_offers_to_choose() -> None:
    bench = Bench(loaded=False)
    assert not bench.controller.send("hi")
    assert bench.view.card is not None
    assert "choose" in bench.view.card.actions


def test_a_load_that_fails_gives_the_waiting_message_its_reason_and_retry_loads_again() -> None:
    bench = Bench(loaded=False)
    bench.controller.choose_model("/m/bad.gguf")
    bench.controller.send("hi")
    bench.controller.handle([Failed(1, "bad_model", "Not a GGUF file.")])
    assert bench.controller.conversation.messages[-1].problem == "Not a GGUF file."
    assert bench.view.card is None  # said once
    assert "could not be loaded" in bench.controller.state.label
    bench.controller.regenerate()
    assert [load[1] for load in bench.engine.loads] == ["/m/bad.gguf"] * 2
    bench.controller.handle([Loaded(bench.engine.ids, report())])
    assert len(bench.engine.generated) == 1


def test_a_load_that_fails_with_nobody_waiting_is_a_card_of_its_own() -> None:
    bench = Bench(loaded=False)
    bench.controller.choose_model("/m/bad.gguf")
    bench.controller.handle([Failed(1, "bad_model", "Not a GGUF file.")])
    assert bench.view.card is not None
    assert bench.view.card.actions == ("reload", "choose")


def test_only_the_last_chosen_model_counts() -> None:
    bench = Bench(loaded=False)
    bench.controller.choose_model("/m/a.gguf")
    bench.controller.choose_model("/m/b.gguf")
    bench.controller.handle([Loaded(1, report())])
    assert bench.controller.state.phase == "loading"
    bench.controller.handle([Failed(1, "cancelled", "x"), Loaded(2, report())])
    assert bench.controller.state.phase == "ready"


def test_a_refused_message_goes_back_to_the_box(bench: Bench) -> None:
    bench.controller.send("far too long")
    bench.controller.handle([bench.failed("bad_input", "The prompt is longer than the context.")])
    assert bench.view.given_back == ["far too long"]
    assert bench.view.card is not None and "longer" in bench.view.card.what
    assert not bench.view.shown and not bench.controller.conversation.messages
    assert bench.controller.send("short")


def test_a_lost_worker_keeps_what_was_written_and_is_told_once(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(), bench.chunk("part")])
    loss = lost()
    bench.controller.handle([bench.failed("worker_lost", loss.message), loss])
    answer = bench.controller.conversation.messages[-1]
    assert (answer.text, answer.state, answer.problem) == ("part", "failed", loss.message)
    assert not bench.view.notices
    assert bench.controller.state.phase == "loading"
    bench.controller.handle([Loaded(99, report())])
    assert bench.controller.state.phase == "ready"
    bench.controller.regenerate()
    assert [message.content for message in bench.engine.generated[-1][1]] == ["hi"]


def test_an_idle_loss_is_a_notice(bench: Bench) -> None:
    bench.controller.handle([lost()])
    assert len(bench.view.notices) == 1
    assert bench.view.card is None


def test_a_crash_loop_offers_a_restart_and_one_with_drafting_off(bench: Bench) -> None:
    bench.controller.handle([lost(restarted=False, reloading=False)])
    assert bench.view.card is not None
    assert bench.view.card.actions == ("restart", "restart_plain")
    assert bench.controller.send("hi")  # sending starts it again, too
    assert bench.engine.restarts == 1


def test_stop_without_text_leaves_no_empty_answer_and_no_trace_in_the_next_prompt(bench: Bench) -> None:
    bench.controller.send("long prompt")
    bench.controller.handle([bench.started()])
    bench.controller.stop()
    assert bench.engine.cancelled == [bench.request]
    bench.controller.handle([bench.done("", "cancelled")])
    assert [message.role for message in bench.view.shown] == ["user"]
    bench.controller.send("hi")
    assert [message.content for message in bench.engine.generated[-1][1]] == ["hi"]


def test_stop_keeps_and_marks_what_was_written(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(), bench.chunk("part"), bench.done("part", "cancelled")])
    answer = bench.controller.conversation.messages[-1]
    assert (answer.text, answer.state) == ("part", "stopped")


def test_stop_while_waiting_for_the_model() -> None:
    bench = Bench(loaded=False)
    bench.controller.choose_model("/m/toy.gguf")
    bench.controller.send("hi")
    bench.controller.stop()
    assert not bench.controller.busy
    bench.controller.handle([Loaded(1, report())])
    assert not bench.engine.generated


def test_the_workers_text_is_the_last_word(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(), bench.chunk("Hi \ufffd"), bench.done("Hi", reasoning="hm")])
    answer = bench.controller.conversation.messages[-1]
    assert (answer.text, answer.reasoning) == ("Hi", "hm")
    assert bench.view.shown[-1] is answer


def test_an_answer_goes_on_where_it_is_while_another_chat_is_shown(bench: Bench) -> None:
    controller = bench.controller
    controller.send("hi")
    first, events = controller.chat, (bench.started(), bench.chunk("old"))
    controller.new_chat()
    assert not bench.engine.cancelled and not controller.busy
    assert controller.busy_chats == {first.id}
    controller.handle(events)
    assert bench.view.grown == "" and not bench.view.shown
    assert controller.chats.open(first.id)
    assert controller.busy
    assert [message.text for message in bench.view.shown] == ["hi", "old"]
    controller.handle([bench.chunk("er"), bench.done("older")])
    assert bench.view.grown == "er"
    assert not controller.busy_chats and first.id in bench.view.chats


def test_chats_are_answered_in_turn_and_never_mixed(bench: Bench) -> None:
    controller = bench.controller
    controller.send("one")
    first, one = controller.conversation, bench.request
    controller.new_chat()
    controller.send("two")
    second, two = controller.conversation, bench.request
    assert [message.content for message in bench.engine.generated[-1][1]] == ["two"]
    assert len(controller.busy_chats) == 2

    def said(request: int, text: str) -> list[Event]:
        return [
            Started(request_id=request, prompt_tokens=1, reused_tokens=0, seed=request),
            Chunk(request_id=request, pieces=(Piece(text),), tokens=1),
        ]

    controller.handle([*said(one, "first"), *said(two, "second")])
    assert bench.view.grown == "second"
    controller.stop()
    assert bench.engine.cancelled == [two]
    assert [chat.messages[-1].text for chat in (first, second)] == ["first", "second"]


def test_editing_the_last_message_replaces_it_and_its_answer(bench: Bench) -> None:
    bench.controller.send("first try")
    bench.controller.handle([bench.started(), bench.chunk("no"), bench.done("no")])
    assert bench.controller.edit_last() == "first try"
    bench.controller.send("second try")
    assert [message.text for message in bench.view.shown] == ["second try", ""]
    assert [message.content for message in bench.engine.generated[-1][1]] == ["second try"]


def test_an_edit_that_was_given_up_replaces_nothing(bench: Bench) -> None:
    bench.controller.send("one")
    bench.controller.handle([bench.started(), bench.chunk("a"), bench.done("a")])
    bench.controller.edit_last()
    bench.controller.stop_editing()
    bench.controller.send("two")
    assert [message.text for message in bench.view.shown] == ["one", "a", "two", ""]


def test_settings_hold_from_the_next_message_and_only_some_load_again(bench: Bench) -> None:
    bench.controller.apply(Settings(temperature=0.0, links=("cache",), max_tokens=9))
    assert len(bench.engine.loads) == 1
    bench.controller.send("hi")
    options = bench.engine.generated[-1][2]
    assert options["sampling"].temperature == 0.0
    assert options["drafting"].links == ("cache",)
    assert options["max_tokens"] == 9
    bench.controller.handle([bench.done("hello")])
    bench.controller.apply(Settings(n_ctx=512, draft_model="/m/d.gguf"))
    assert bench.engine.loads[-1][2] == "/m/d.gguf"
    assert bench.engine.loads[-1][3].n_ctx == 512


def test_drafting_off_sends_no_links(bench: Bench) -> None:
    bench.controller.apply(Settings(drafting=False))
    bench.controller.send("hi")
    assert bench.engine.generated[-1][2]["drafting"].links == ()


@pytest.mark.parametrize(
    ("verification", "asked"),
    [("automatic", (False, False)), ("reproducible", (True, False)), ("exact", (False, True))],
)
def test_how_drafts_are_verified(bench: Bench, verification: Verification, asked: tuple[bool, bool]) -> None:
    bench.controller.apply(Settings(verification=verification))
    bench.controller.send("hi")
    options = bench.engine.generated[-1][2]
    assert (options["reproducible"], options["exact"]) == asked


def test_what_another_model_has_to_say_is_said_though_it_is_the_same(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(notices=("Exact mode is not to be had.",)), bench.done("a")])
    for path, told in (("/m/toy.gguf", 1), ("/m/other.gguf", 2)):
        bench.controller.choose_model(path)
        bench.controller.handle([Loaded(bench.engine.ids, replace(report(), path=path))])
        bench.controller.send("hi")
        bench.controller.handle([bench.started(notices=("Exact mode is not to be had.",)), bench.done("a")])
        assert bench.view.notices.count("Exact mode is not to be had.") == told


def test_a_notice_is_given_once(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(notices=("System text was merged.",))])
    bench.controller.handle([bench.done("")])
    bench.controller.send("hi")
    bench.controller.handle([bench.started(notices=("System text was merged.",))])
    assert bench.view.notices == ["System text was merged."]


class Counted:
    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []

    def record(self, model: ModelReport, done: Done) -> None:
        self.answers.append((model.name, done.text))


def test_answers_that_ended_are_counted_once(bench: Bench) -> None:
    counted = Counted()
    bench.controller = bench.view.controller = controller = Controller(
        bench.engine, Settings(), bench.view, counted
    )
    controller.choose_model("/m/toy.gguf")
    controller.handle([Loaded(bench.engine.ids, report())])
    for reason in ("stop", "cancelled"):
        controller.send("hi")
        controller.handle([bench.started(), bench.chunk("one"), bench.done("one", reason), bench.done("one")])
    controller.send("hi")
    controller.handle([bench.started(), bench.failed("internal")])
    controller.send("hi")
    controller.new_chat()
    controller.handle([bench.done("in another chat")])
    controller.handle([replace(bench.done("nobody asked"), request_id=999)])
    assert counted.answers == [("toy", "one"), ("toy", "one"), ("toy", "in another chat")]
