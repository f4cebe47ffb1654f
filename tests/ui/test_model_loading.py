"""When a model is loaded, again or not at all: no answer waits in vain, and none is interrupted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.engine_client import WorkerLost
from app.process_exit import ProcessExit
from app.protocol import Failed, Loaded, LoadProgress
from app.settings import Settings
from tests.ui.test_controller import Bench
from tests.ui.test_live_numbers import report

OTHER = Settings(n_ctx=512)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def loads(bench: Bench) -> list[int]:
    """The contexts of the models that were asked for."""
    return [options.n_ctx for _, _, _, options in bench.engine.loads]


def loaded(bench: Bench) -> None:
    bench.controller.handle([Loaded(bench.engine.loads[-1][0], report())])


def test_what_needs_a_reload_is_loaded_at_once_unless_it_may_be_later(bench: Bench) -> None:
    bench.controller.apply(OTHER, later=True)
    assert bench.controller.needs_reload and loads(bench) == [4096]
    bench.controller.apply(replace(OTHER, temperature=0.1))
    assert loads(bench) == [4096, 512] and not bench.controller.needs_reload


def test_a_message_after_such_a_change_waits_for_the_model(bench: Bench) -> None:
    bench.controller.apply(OTHER, later=True)
    assert bench.controller.send("hi")
    assert loads(bench) == [4096, 512] and not bench.engine.generated
    loaded(bench)
    assert len(bench.engine.generated) == 1
    assert not bench.controller.needs_reload


def test_a_change_during_a_load_is_loaded_before_what_waits_is_answered(bench: Bench) -> None:
    bench.controller.choose_model("/m/toy.gguf")
    bench.controller.send("hi")
    bench.controller.apply(OTHER, later=True)
    loaded(bench)
    assert loads(bench) == [4096, 4096, 512] and not bench.engine.generated
    loaded(bench)
    assert len(bench.engine.generated) == 1


@pytest.mark.parametrize("later", [False, True])
def test_an_answer_ends_before_the_model_is_loaded_again(bench: Bench, later: bool) -> None:
    bench.controller.send("hi")
    bench.controller.handle([bench.started(), bench.chunk("a")])
    bench.controller.apply(OTHER, later=later)
    if later:
        bench.controller.reload()  # a person does not want to wait for the next message
    assert bench.controller.reload_is_due and loads(bench) == [4096]
    assert bench.controller.state.phase == "ready" and not bench.engine.cancelled
    bench.controller.handle([bench.done("a")])
    assert loads(bench) == [4096, 512] and not bench.controller.reload_is_due
    assert bench.controller.conversation.messages[-1].state == "done"


def test_a_reload_that_is_not_needed_any_more_does_not_come(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.apply(OTHER)
    bench.controller.apply(Settings())
    bench.controller.handle([bench.started(), bench.done("a")])
    assert loads(bench) == [4096]


def test_a_failed_answer_lets_the_reload_come_too(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.apply(OTHER)
    bench.controller.handle([bench.failed("internal")])
    assert loads(bench) == [4096, 512]


def test_a_refused_message_lets_the_reload_come_too(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.apply(OTHER)
    bench.controller.handle([bench.failed("bad_input")])
    assert loads(bench) == [4096, 512]


def test_unloaded_the_model_is_still_the_one_that_answers(bench: Bench) -> None:
    bench.controller.unload()
    assert bench.engine.unloads == 1
    assert (bench.controller.state.phase, bench.controller.state.wanted) == ("no_model", "/m/toy.gguf")
    assert bench.controller.state.label == "toy (not in memory)"
    bench.controller.unload()
    assert bench.engine.unloads == 1
    assert bench.controller.send("hi")
    assert loads(bench) == [4096, 4096]
    loaded(bench)
    assert len(bench.engine.generated) == 1


def test_nothing_is_unloaded_while_an_answer_is_written(bench: Bench) -> None:
    bench.controller.send("hi")
    bench.controller.unload()
    assert bench.engine.unloads == 0 and bench.controller.state.phase == "ready"


def test_a_load_can_be_stopped_and_its_end_is_not_heard(bench: Bench) -> None:
    bench.controller.choose_model("/m/other.gguf")
    number = bench.engine.loads[-1][0]
    bench.controller.unload()
    assert bench.engine.cancelled == [number]
    bench.controller.handle(
        [LoadProgress(number, 0.9), Failed(number, "cancelled", "The load was cancelled.")]
    )
    assert bench.controller.state.phase == "no_model" and bench.view.card is None
    bench.controller.handle([Loaded(number, report())])  # it was too late to stop it
    assert bench.controller.state.phase == "no_model"


def test_a_worker_that_ends_without_a_model_is_no_problem(bench: Bench) -> None:
    bench.controller.unload()
    bench.controller.handle([WorkerLost(ProcessExit(-9), "The engine stopped.", True, False)])
    assert bench.controller.state.phase == "no_model" and bench.view.card is None
    assert bench.controller.send("hi")
    loaded(bench)
    assert len(bench.engine.generated) == 1


def test_without_any_model_a_message_is_not_taken() -> None:
    bench = Bench(loaded=False)
    assert not bench.controller.send("hi")
    assert bench.view.card is not None and bench.view.card.actions == ("choose",)
    assert not bench.controller.needs_reload
    bench.controller.unload()
    assert bench.engine.unloads == 0
