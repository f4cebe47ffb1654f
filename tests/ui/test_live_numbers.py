"""Acceptance, tokens per pass and the words around them (case B02)."""

import pytest
from msgspec.structs import replace

from app.protocol import NEURAL, Chunk, DrafterReport, ModelReport, Started
from app.settings import Settings
from drafting.statistics import Statistics
from ui.engine_state import EngineState
from ui.speed import numbers
from ui.speed.live_numbers import LiveNumbers
from ui.speed.status_strip import drafting_words


def chunk(tokens: int, drafted: int = 0, accepted: int = 0, at: float = 0.0) -> Chunk:
    return Chunk(
        request_id=1,
        pieces=(),
        tokens=tokens,
        drafter="cache" if drafted else None,
        drafted=drafted,
        accepted=accepted,
        elapsed_s=at,
    )


def started() -> Started:
    return Started(request_id=1, prompt_tokens=9, reused_tokens=0, seed=1)


def report(*drafters: DrafterReport) -> ModelReport:
    return ModelReport(
        path="/m/toy.gguf",
        name="toy",
        architecture="llama",
        description="toy",
        size_bytes=1,
        kv_bytes=1,
        n_vocab=1,
        n_ctx=1,
        n_ctx_train=1,
        max_draft=8,
        n_threads=1,
        recurrent=False,
        hybrid=False,
        swa=False,
        draft_model_path=None,
        drafters=drafters,
    )


def test_steps_of_case_b02() -> None:
    live = LiveNumbers()
    live.started(started())
    for tokens, drafted, accepted in ((3, 4, 2), (1, 0, 0), (5, 4, 4), (1, 3, 1)):
        live.chunk(chunk(tokens, drafted, accepted))
    assert (live.drafted, live.accepted) == (11, 7)
    assert numbers.percent(live.acceptance_rate) == "64 %"
    assert live.tokens_per_pass == pytest.approx(10 / 4)


def test_nothing_drafted_is_a_dash_and_no_division_by_zero() -> None:
    live = LiveNumbers()
    live.started(started())
    live.chunk(chunk(1))
    assert live.acceptance_rate is None
    assert numbers.percent(live.acceptance_rate) == "—"


def test_numbers_start_over_with_each_message() -> None:
    live = LiveNumbers()
    live.chunk(chunk(3, 4, 2, 0.1))
    live.chunk(chunk(3, 4, 2, 0.2))
    live.started(started())
    assert (live.drafted, live.accepted, live.tokens, live.passes, live.speed) == (0, 0, 0, 0, None)


def test_the_end_takes_the_workers_sums() -> None:
    live = LiveNumbers()
    live.chunk(chunk(3, 4, 2, 0.1))
    stats = Statistics(completion_tokens=21, first_pass_tokens=1, target_passes=10, decode_s=2.0)
    stats.record_draft("cache", 20, 11)
    live.done(stats)
    assert live.speed == pytest.approx(10.0)
    assert numbers.percent(live.acceptance_rate) == "55 %"


def test_a_drafter_that_never_fits_is_called_so_after_a_hundred_tokens() -> None:
    live = LiveNumbers()
    live.chunk(chunk(1, 99, 0))
    assert not live.drafter_unfit
    live.chunk(chunk(1, 1, 0))
    assert live.drafter_unfit
    live.chunk(chunk(2, 4, 1))
    assert not live.drafter_unfit


def test_footer_of_an_answer() -> None:
    stats = Statistics(
        completion_tokens=312, first_pass_tokens=2, target_passes=90, prefill_s=0.21, decode_s=310 / 58
    )
    assert [text for text, _ in numbers.footer(stats)] == [
        "312 tokens",
        "first 0.21 s",
        "58 tok/s",
        "— accepted",
    ]
    assert numbers.footer(stats)[3][1] == "Nothing was drafted for this answer."
    for reason in ("a draft would not pay", "no drafter has an offer", "no drafter has an offer"):
        stats.record_silence(reason)
    assert numbers.footer(stats)[3][1] == "Nothing was drafted for this answer: no drafter has an offer."
    stats.record_draft("cache", 100, 81)
    assert numbers.footer(stats)[3][0] == "81 % accepted"
    assert all(help.count(".") == 1 for _, help in numbers.footer(stats))


def test_why_nothing_is_drafted_is_said_in_words() -> None:
    none = [DrafterReport(name, "no file") for name in NEURAL]
    ready = EngineState(phase="ready", report=report(DrafterReport("cache"), *none))
    assert drafting_words(Settings(drafting=False), ready)[0] == "Drafting off in settings"
    assert drafting_words(Settings(links=()), ready)[0] == "All drafters off in settings"
    assert drafting_words(Settings(links=("draft",)), ready)[0] == "draft off: no file"
    assert drafting_words(Settings(draft_model="/gone.gguf"), ready)[0] == "draft off: no file"
    one = EngineState(phase="ready", report=report(DrafterReport("cache"), *none[:1]))
    assert drafting_words(Settings(draft_model="/head.gguf"), one)[0] == "", "it is of another kind"
    words, help = drafting_words(Settings(links=("cache", "draft")), ready)
    assert words == ""
    assert "draft off: no file" in help


def test_the_footer_tells_the_speedup_where_it_was_measured() -> None:
    stats = Statistics(completion_tokens=60, first_pass_tokens=1, decode_s=1.0, verify_s=0.9, plain_s=2.0)
    assert ("2.1x plain", numbers.SPEEDUP_HELP) in numbers.footer(stats)
    assert "plain" not in str(numbers.footer(Statistics(completion_tokens=60, decode_s=1.0)))


def test_what_is_counted_live_is_what_the_worker_sums_up() -> None:
    live = LiveNumbers()
    live.started(started())
    for step, (tokens, drafted, accepted) in enumerate(((1, 0, 0), (3, 4, 2), (5, 4, 4), (1, 3, 0))):
        live.chunk(chunk(tokens, drafted, accepted, 0.5 + step * 0.1))
    stats = live.stats
    assert (stats.prompt_tokens, stats.completion_tokens, stats.first_pass_tokens) == (9, 10, 1)
    assert (stats.target_passes, stats.prefill_s) == (4, 0.5)
    assert stats.tokens_per_second == pytest.approx(9 / 0.3)
    counts = stats.by_drafter["cache"]
    assert (counts.proposals, counts.drafted, counts.accepted) == (3, 11, 6)
    assert (counts.drafted_at, counts.accepted_at) == ([3, 3, 3, 2], [2, 2, 1, 1])
    assert len(live.series.points) == 4


def test_the_speedup_is_the_workers_word() -> None:
    live = LiveNumbers()
    live.chunk(replace(chunk(1), speedup=None))
    assert live.speedup is None and numbers.times(live.speedup) == "—"
    live.chunk(replace(chunk(3, 4, 2, 0.1), speedup=1.96))
    assert numbers.times(live.speedup) == "2.0x"
    live.done(Statistics(completion_tokens=4, first_pass_tokens=1, decode_s=1.0, verify_s=1.0, plain_s=3.0))
    assert numbers.times(live.speedup) == "3.0x"


def test_the_last_words_of_a_cancelled_answer_are_no_pass() -> None:
    live = LiveNumbers()
    live.chunk(chunk(3, 4, 2, 0.5))
    live.chunk(chunk(2, 0, 0, 0.6))
    live.chunk(chunk(0))
    assert live.passes == 2 and len(live.series.points) == 2
    assert live.speed == pytest.approx(20.0)


def test_the_course_of_the_last_few_answers_is_kept() -> None:
    live = LiveNumbers()
    ended: list[Statistics] = []
    for answer in range(20):
        live.started(started())
        for step in range(answer + 1):
            live.chunk(chunk(2, 3, 1, step * 0.1))
        ended.append(Statistics(completion_tokens=2 * answer + 2))
        live.done(ended[-1])
    assert [len(live.course(stats)) for stats in ended] == [0] * 4 + list(range(5, 21))
