"""Versions, drafts, many chats and their store, as the controller does them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.chats.sampling import Preset, SamplingChoice
from app.chats.store import ChatStore
from app.protocol import Begun, Chunk, Done, Failed, Loaded, Piece, Started
from app.settings import Settings
from drafting.statistics import Statistics
from tests.ui.test_controller import Bench, Engine, View
from tests.ui.test_live_numbers import report
from ui.chat.controller import Controller


@pytest.fixture
def bench() -> Bench:
    return Bench()


class Kept(Bench):
    """A controller over chats in a file, as after the start of the program."""

    def __init__(self, path: Path) -> None:
        self.engine, self.view = Engine(), View()
        self.store = ChatStore(path)
        self.controller = self.view.controller = Controller(
            self.engine, Settings(), self.view, store=self.store
        )
        self.controller.chats.start()
        self.controller.choose_model("/m/toy.gguf")
        self.controller.handle([Loaded(self.engine.ids, report())])

    def close(self) -> None:
        self.controller.close()
        assert self.store.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    bench = Kept(tmp_path / "chats.db")
    yield bench
    bench.close()


def exchange(bench: Bench, question: str, answer: str) -> None:
    assert bench.controller.send(question)
    bench.controller.handle([bench.started(), bench.chunk(answer), bench.done(answer)])


def said(bench: Bench) -> list[str]:
    """What is shown, which is what the chat says it shows."""
    texts = [message.text for message in bench.controller.conversation.messages]
    assert [message.text for message in bench.view.shown] == texts
    return texts


def asked(bench: Bench) -> list[str]:
    return [message.content for message in bench.engine.generated[-1][1]]


# ---- versions


def test_another_answer_stands_beside_the_first(bench: Bench) -> None:
    exchange(bench, "q", "one")
    assert bench.controller.regenerate()
    assert asked(bench) == ["q"]
    bench.controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    assert said(bench) == ["q", "two"]
    answer = bench.controller.conversation.messages[-1]
    assert bench.controller.versions(answer) == (1, 2)
    assert bench.controller.switch(answer, -1)
    assert said(bench) == ["q", "one"]
    assert not bench.controller.switch(bench.controller.conversation.messages[-1], -1)


def test_an_early_answer_can_be_given_again_and_what_followed_is_kept(bench: Bench) -> None:
    exchange(bench, "q", "one")
    exchange(bench, "then?", "so on")
    first = bench.controller.conversation.messages[1]
    assert bench.controller.regenerate(first)
    assert asked(bench) == ["q"]
    bench.controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    assert said(bench) == ["q", "two"]
    bench.controller.switch_to(first)
    assert said(bench) == ["q", "one", "then?", "so on"]


def test_a_question_is_answered_again_by_regenerating_it(bench: Bench) -> None:
    exchange(bench, "q", "one")
    exchange(bench, "then?", "so on")
    assert bench.controller.regenerate(bench.controller.conversation.messages[2])
    assert asked(bench) == ["q", "one", "then?"]
    assert bench.controller.versions(bench.controller.conversation.messages[-1]) == (1, 2)


def test_an_answer_that_says_nothing_is_no_version(bench: Bench) -> None:
    exchange(bench, "q", "one")
    bench.controller.regenerate()
    bench.controller.handle([bench.started(), bench.failed("internal")])
    assert said(bench) == ["q", ""]
    assert bench.controller.regenerate()
    assert asked(bench) == ["q"]
    bench.controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    assert said(bench) == ["q", "two"]
    assert bench.controller.versions(bench.controller.conversation.messages[-1]) == (1, 2)


def test_stopping_another_answer_before_it_begins_shows_the_first_again(bench: Bench) -> None:
    exchange(bench, "q", "one")
    bench.controller.regenerate()
    bench.controller.handle([bench.started()])
    bench.controller.stop()
    bench.controller.handle([bench.done("", "cancelled")])
    assert said(bench) == ["q", "one"]


def test_a_refused_answer_again_shows_the_first_and_gives_nothing_back(bench: Bench) -> None:
    exchange(bench, "q", "one")
    bench.controller.regenerate()
    bench.controller.handle([bench.failed("bad_input", "The prompt is longer than the context.")])
    assert said(bench) == ["q", "one"]
    assert not bench.view.given_back
    assert bench.view.card is not None and bench.view.card.kept == "Your chat is kept."


def test_an_edited_question_is_answered_and_the_old_one_kept(bench: Bench) -> None:
    exchange(bench, "q", "one")
    question = bench.controller.conversation.messages[0]
    assert bench.controller.edit(question, "better q")
    assert asked(bench) == ["better q"]
    bench.controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    assert said(bench) == ["better q", "two"]
    bench.controller.switch(bench.controller.conversation.messages[0], -1)
    assert said(bench) == ["q", "one"]


def test_a_refused_edit_goes_back_to_the_box_and_shows_what_was(bench: Bench) -> None:
    exchange(bench, "q", "one")
    bench.controller.edit_last()
    bench.controller.send("far too long")
    bench.controller.handle([bench.failed("bad_input", "The prompt is longer than the context.")])
    assert said(bench) == ["q", "one"]
    assert bench.view.given_back == ["far too long"]


def test_an_edited_answer_is_what_the_next_question_builds_on(bench: Bench) -> None:
    exchange(bench, "q", "one")
    answer = bench.controller.conversation.messages[1]
    count = len(bench.engine.generated)
    assert bench.controller.edit(answer, "changed")
    assert len(bench.engine.generated) == count
    assert said(bench) == ["q", "changed"]
    assert bench.controller.conversation.messages[1].edited and not answer.edited
    bench.controller.send("next")
    assert asked(bench) == ["q", "changed", "next"]


def test_nothing_moves_under_an_answer_that_is_being_written(bench: Bench) -> None:
    exchange(bench, "q", "one")
    controller, (question, answer) = bench.controller, bench.controller.conversation.messages
    controller.send("more")
    refused = (
        controller.send("x"),
        controller.regenerate(answer),
        controller.edit(question, "x"),
        controller.edit(answer, "x"),
        controller.continue_answer(),
        controller.switch_to(answer),
        controller.remove_message(answer),
        controller.edit_last(),
    )
    assert not any(refused)
    assert said(bench) == ["q", "one", "more", ""]


def test_the_branch_that_was_shown_is_shown_again(kept: Kept, tmp_path: Path) -> None:
    exchange(kept, "q", "one")
    kept.controller.regenerate()
    kept.controller.handle([kept.started(), kept.chunk("two"), kept.done("two")])
    assert kept.controller.switch(kept.controller.conversation.messages[-1], -1)
    kept.close()
    again = Kept(tmp_path / "chats.db")
    assert said(again) == ["q", "one"]
    again.close()


def test_a_removed_version_is_gone_for_good(kept: Kept, tmp_path: Path) -> None:
    exchange(kept, "q", "one")
    kept.controller.regenerate()
    kept.controller.handle([kept.started(), kept.chunk("two"), kept.done("two")])
    assert kept.controller.remove_message(kept.controller.conversation.messages[-1])
    assert said(kept) == ["q", "one"]
    kept.close()
    again = Kept(tmp_path / "chats.db")
    assert len(again.controller.conversation) == 2
    again.close()


# ---- going on


def test_a_stopped_answer_goes_on_from_its_end(bench: Bench) -> None:
    controller = bench.controller
    controller.send("hi")
    thoughts = Chunk(request_id=bench.request, pieces=(Piece("hm", None, True),), tokens=1)
    controller.handle(
        [bench.started(), thoughts, bench.chunk("One, "), bench.done("One, ", "cancelled", reasoning="hm")]
    )
    answer = controller.conversation.messages[-1]
    assert answer.incomplete and controller.can_continue(answer)
    assert controller.continue_answer()
    assert bench.engine.generated[-1][2]["begun"] == Begun(text="One, ", reasoning="hm")
    assert asked(bench) == ["hi"]
    controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    assert (answer.text, answer.reasoning, answer.state) == ("One, two", "hm", "done")
    assert said(bench) == ["hi", "One, two"]
    assert not answer.incomplete


def test_the_rest_is_the_workers_word_and_the_beginning_stays(bench: Bench) -> None:
    controller = bench.controller
    controller.send("hi")
    controller.handle([bench.started(), bench.chunk("One", drafter="cache"), bench.done("One", "length")])
    answer = controller.conversation.messages[-1]
    before = list(answer.pieces)
    assert answer.cut_by_length
    controller.continue_answer(answer)
    controller.handle([bench.started(), bench.chunk(" two \ufffd"), bench.done(" two")])
    assert answer.pieces == [*before, Piece(" two")]


def test_stopping_the_rest_before_it_begins_keeps_the_answer(bench: Bench) -> None:
    exchange(bench, "hi", "One")
    bench.controller.continue_answer()
    bench.controller.handle([bench.started(), bench.done("", "cancelled")])
    assert said(bench) == ["hi", "One"]


def test_a_refused_rest_keeps_the_answer_and_says_why(bench: Bench) -> None:
    exchange(bench, "hi", "One")
    bench.controller.continue_answer()
    bench.controller.handle([bench.failed("bad_input", "Too long.")])
    assert said(bench) == ["hi", "One"]
    assert bench.controller.conversation.messages[-1].problem == "Too long."


def test_only_the_last_answer_goes_on(bench: Bench) -> None:
    exchange(bench, "q", "one")
    first = bench.controller.conversation.messages[1]
    exchange(bench, "then?", "so on")
    assert not bench.controller.continue_answer(first)
    assert not bench.controller.can_continue(bench.controller.conversation.messages[2])


# ---- chats


def test_a_chat_is_in_the_list_from_its_first_message_on_with_its_title(bench: Bench) -> None:
    assert not bench.controller.store.chats()
    exchange(bench, "# Plan *my* trip\nto Lisbon", "Sure")
    [chat] = bench.controller.store.chats()
    assert chat is bench.controller.chat and chat.label == "Plan my trip"
    bench.controller.chats.rename(chat.id, "  Lisbon\n\u202e ")
    assert (chat.title, chat.title_given) == ("Lisbon ⟨U+202E⟩", True)
    bench.controller.chats.rename(chat.id, " ")
    assert (chat.title, chat.title_given) == ("Plan my trip", False)


def test_what_is_typed_stays_with_its_chat(kept: Kept, tmp_path: Path) -> None:
    controller = kept.controller
    exchange(kept, "first", "a")
    first = controller.chat
    controller.chats.set_draft("half a thought")
    controller.new_chat()
    assert controller.chat.draft == ""
    controller.chats.set_draft("a new chat's draft")
    controller.chats.open(first.id)
    assert controller.chat.draft == "half a thought"
    assert sorted(chat.label for chat in controller.store.chats()) == ["a new chat's draft", "first"]
    controller.new_chat()
    controller.chats.set_draft("not in the list yet")
    kept.close()
    again = Kept(tmp_path / "chats.db")
    assert again.controller.chat.draft == "not in the list yet"
    assert len(again.controller.store.chats()) == 2
    again.close()


def test_sending_empties_the_draft(bench: Bench) -> None:
    bench.controller.chats.set_draft("hi")
    exchange(bench, "hi", "hello")
    assert bench.controller.chat.draft == ""


def test_the_last_chat_is_shown_at_the_next_start(kept: Kept, tmp_path: Path) -> None:
    exchange(kept, "first", "a")
    kept.controller.new_chat()
    exchange(kept, "second", "b")
    kept.controller.chats.open(kept.controller.store.chats()[1].id)
    kept.close()
    again = Kept(tmp_path / "chats.db")
    assert said(again) == ["first", "a"]
    again.close()


def test_closing_keeps_what_was_written_of_an_answer(kept: Kept, tmp_path: Path) -> None:
    kept.controller.send("hi")
    kept.controller.handle([kept.started(), kept.chunk("as far as")])
    kept.close()
    again = Kept(tmp_path / "chats.db")
    assert said(again) == ["hi", "as far as"]
    answer = again.controller.conversation.messages[-1]
    assert answer.state == "interrupted" and answer.incomplete
    assert again.controller.continue_answer()
    assert again.engine.generated[-1][2]["begun"] == Begun(text="as far as")
    again.close()


def test_what_answered_and_how_is_kept_with_the_answer(bench: Bench) -> None:
    controller = bench.controller
    controller.apply(Settings(temperature=0.3, max_tokens=50, verification="reproducible"))
    exchange(bench, "hi", "hello")
    answer = controller.conversation.messages[-1]
    assert (answer.model, answer.seed) == ("toy", 7)
    assert answer.request is not None
    assert answer.request.sampling.temperature == 0.3
    assert (answer.request.max_tokens, answer.request.verification) == (50, "reproducible")


def test_a_chats_own_instructions_and_sampling_hold_for_it_alone(bench: Bench) -> None:
    controller = bench.controller
    controller.apply(Settings(system_prompt="Be kind.", temperature=0.5))
    controller.chats.set_system_prompt("Be brief.")
    controller.chats.set_sampling(SamplingChoice(temperature=0.0))
    exchange(bench, "hi", "hello")
    assert asked(bench) == ["Be brief.", "hi"]
    assert bench.engine.generated[-1][2]["sampling"].temperature == 0.0
    preset = Preset(name="Mine", sampling=SamplingChoice(top_k=3), system_prompt="")
    controller.chats.use_preset(preset)
    exchange(bench, "more", "yes")
    assert asked(bench) == ["hi", "hello", "more"]
    sampling = bench.engine.generated[-1][2]["sampling"]
    assert (sampling.temperature, sampling.top_k, controller.chat.preset) == (0.5, 3, "Mine")
    controller.new_chat()
    exchange(bench, "hi", "hello")
    assert asked(bench) == ["Be kind.", "hi"]


def test_deleting_stops_the_answer_and_can_be_undone(bench: Bench) -> None:
    controller = bench.controller
    controller.send("hi")
    controller.handle([bench.started(), bench.chunk("part")])
    chat = controller.chat
    controller.chats.delete(chat.id)
    assert bench.engine.cancelled == [bench.request]
    assert not controller.store.chats() and controller.chat is not chat and not said(bench)
    controller.handle([bench.done("part", "cancelled")])
    assert controller.chats.restore(chat.id) is chat
    assert controller.chats.open(chat.id)
    assert said(bench) == ["hi", "part"]


def test_a_refused_message_of_another_chat_is_its_draft(bench: Bench) -> None:
    controller = bench.controller
    exchange(bench, "first", "a")
    controller.send("far too long")
    chat = controller.chat
    controller.new_chat()
    controller.handle([bench.failed("bad_input", "Too long.")])
    assert chat.draft == "far too long"
    assert not bench.view.given_back and bench.view.card is None
    controller.chats.open(chat.id)
    assert said(bench) == ["first", "a"]


def test_a_found_message_is_shown_on_its_branch(bench: Bench) -> None:
    controller = bench.controller
    exchange(bench, "q", "one needle")
    controller.regenerate()
    controller.handle([bench.started(), bench.chunk("two"), bench.done("two")])
    [place] = controller.store.search("needle")
    controller.new_chat()
    assert controller.chats.open(place.chat, place.message)
    assert said(bench) == ["q", "one needle"]
    assert not controller.chats.open(12345)


def test_chats_go_out_and_come_in(bench: Bench, tmp_path: Path) -> None:
    controller = bench.controller
    exchange(bench, "q", "one")
    assert controller.chats.export(controller.chat.id, tmp_path / "x.json", "json")
    assert json.loads((tmp_path / "x.json").read_bytes())["chats"][0]["chat"]["title"] == "q"
    assert controller.chats.import_file(tmp_path / "x.json") == 1
    assert said(bench) == ["q", "one"]
    assert len(controller.store.chats()) == 2
    (tmp_path / "bad.json").write_text("{")
    assert controller.chats.import_file(tmp_path / "bad.json") == 0
    assert bench.view.card is not None and "cannot be imported" in bench.view.card.what
    assert not controller.chats.export(controller.chat.id, tmp_path / "no" / "x.md", "markdown")
    assert "could not be exported" in bench.view.card.what


def test_long_moves_are_told_as_one(bench: Bench) -> None:
    for i in range(30):
        exchange(bench, f"q{i}", f"a{i}")
    first = bench.controller.conversation.messages[0]
    bench.controller.edit(first, "other")
    bench.controller.handle([bench.started(), bench.chunk("b"), bench.done("b")])
    assert said(bench) == ["other", "b"]
    bench.controller.switch(bench.controller.conversation.messages[0], -1)
    assert len(said(bench)) == 60


# ---- whatever is done, the window shows what is so, and the file has it


ACTIONS = ("again", "edit", "switch", "remove", "continue", "draft")
CHAT_ACTIONS = ("open", "delete", "restore", "copy", "pin", "new", "stop")


class ControllerMachine(RuleBasedStateMachine):
    """Random actions of a person, and an engine that answers, fails and dies."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "chats.db"
        self.bench = Kept(self.path)
        self.served = 0

    def teardown(self) -> None:
        self.bench.close()
        self.folder.cleanup()

    @rule(text=st.sampled_from(["hi", "tell me more", " ", "\ud800"]))
    def send(self, text: str) -> None:
        self.bench.controller.send(text)

    @rule(
        at=st.integers(0, 20),
        action=st.sampled_from(["again", "edit", "switch", "remove", "continue", "draft"]),
    )
    def act(self, at: int, action: str) -> None:
        controller = self.bench.controller
        everything = controller.conversation.everything
        if not everything:
            return
        message = everything[at % len(everything)]
        match action:
            case "again":
                controller.regenerate(message)
            case "edit":
                controller.edit(message, f"edited {at}")
            case "switch":
                controller.switch_to(message)
            case "remove":
                controller.remove_message(message)
            case "continue":
                controller.continue_answer()
            case "draft":
                controller.chats.set_draft(f"draft {at}")

    @rule(
        at=st.integers(0, 20),
        action=st.sampled_from(["open", "delete", "restore", "copy", "pin", "new", "stop"]),
    )
    def chats(self, at: int, action: str) -> None:
        controller = self.bench.controller
        listed = controller.store.chats()
        chat = listed[at % len(listed)] if listed else controller.chat
        match action:
            case "open":
                controller.chats.open(chat.id)
            case "delete":
                controller.chats.delete(chat.id)
            case "restore":
                for deleted in list(controller.store._deleted):
                    controller.chats.restore(deleted)
            case "copy":
                controller.chats.duplicate(chat.id)
            case "pin":
                controller.chats.pin(chat.id, not chat.pinned)
            case "new":
                controller.new_chat()
            case "stop":
                controller.stop()

    @rule(how=st.sampled_from(["done", "cut", "other", "refused", "failed", "part"]))
    def answer(self, how: str) -> None:
        """The engine serves the oldest request that has not ended."""
        waiting = [id for id, _, _ in self.bench.engine.generated if id > self.served]
        if not waiting:
            return
        request = waiting[0]
        stopped = request in self.bench.engine.cancelled
        begin = [
            Started(request_id=request, prompt_tokens=1, reused_tokens=0, seed=1),
            Chunk(request_id=request, pieces=(Piece("so "), Piece("it is", "cache")), tokens=2),
        ]
        if how == "part":
            self.bench.controller.handle(begin)
            return
        self.served = request
        match how:
            case "refused":
                self.bench.controller.handle([Failed(request, "bad_input", "Too long.")])
            case "failed":
                self.bench.controller.handle([*begin, Failed(request, "internal", "Broken.")])
            case _:
                reason = "cancelled" if stopped else "length" if how == "cut" else "stop"
                done = Done(
                    request_id=request,
                    finish_reason=reason,  # type: ignore[arg-type]
                    text="so it was" if how == "other" else "so it is",
                    reasoning="",
                    cut_in_reasoning=False,
                    token_ids=(),
                    seed=1,
                    stats=Statistics(completion_tokens=2),
                )
                self.bench.controller.handle([*begin, done])

    @rule()
    def restart(self) -> None:
        self.bench.controller.new_chat()  # a draft becomes a chat of the list
        before = self.state()
        self.bench.close()
        self.bench = Kept(self.path)
        self.served = 0
        assert self.state() == before
        assert not self.bench.store.take_news()  # nothing was found interrupted or damaged

    def state(self) -> object:
        store = self.bench.store
        return [
            (
                chat.id,
                chat.label,
                chat.draft,
                [message.id for message in store.conversation(chat).messages],
                [
                    (m.id, m.parent, m.text, "interrupted" if m.in_progress else m.state)
                    for m in store.conversation(chat).everything
                ],
            )
            for chat in store.chats()
        ]

    @invariant()
    def the_view_shows_the_path(self) -> None:
        said(self.bench)
        controller = self.bench.controller
        for message in controller.conversation.everything:
            assert not message.in_progress or controller.busy
        assert controller.busy == (controller.chat.id in controller.busy_chats)


TestControllerMachine = ControllerMachine.TestCase
TestControllerMachine.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
