"""From scripted measurements to rows: medians, ratios within a run, means, and what is missing."""

from __future__ import annotations

import pytest

from app.bench.measurement import Measurement, by_mode, geometric_mean, measurement, median, ratios, rows
from app.protocol import Done
from drafting.statistics import Statistics


def measured(
    mode: str, run: int, speed: float, *, workload: str = "chat", drafted: int = 0, accepted: int = 0
) -> Measurement:
    """100 tokens at ``speed`` tokens per second."""
    return Measurement(
        model="m",
        workload=workload,
        mode=mode,
        run=run,
        tokens=101,
        decode_tokens=100,
        decode_s=100 / speed,
        drafted=drafted,
        accepted=accepted,
        passes=101 - accepted,
    )


def test_speed_is_the_median_and_speedup_the_median_of_each_runs_ratio() -> None:
    # The second run met a machine half as fast: its ratio says the same as the others'.
    off = [measured("off", 0, 100), measured("off", 1, 50), measured("off", 2, 110)]
    chain = [
        measured("chain", 0, 150, drafted=80, accepted=40),
        measured("chain", 1, 75, drafted=80, accepted=40),
        measured("chain", 2, 176, drafted=40, accepted=40),
    ]
    plain, drafted = rows([*off, *chain], "off")
    assert (plain.mode, plain.tokens_per_second, plain.speedup) == ("off", pytest.approx(100), 1.0)
    assert plain.acceptance_rate is None and plain.tokens_per_pass == 1.0
    assert drafted.tokens_per_second == pytest.approx(150) and drafted.speedup == pytest.approx(1.5)
    assert (drafted.drafted, drafted.accepted, drafted.acceptance_rate) == (200, 120, pytest.approx(0.6))
    assert drafted.tokens_per_pass == pytest.approx(303 / 183)


def test_an_answer_that_ended_with_its_first_pass_has_no_speed() -> None:
    short = Measurement(
        model="m",
        workload="chat",
        mode="off",
        run=0,
        tokens=1,
        decode_tokens=0,
        decode_s=0,
        drafted=0,
        accepted=0,
        passes=1,
    )
    (row,) = rows([short], "off")
    assert row.tokens_per_second is None and row.speedup is None and row.tokens_per_pass == 1.0


def test_all_turns_of_a_conversation_count_together() -> None:
    stats = Statistics(completion_tokens=11, first_pass_tokens=1, target_passes=7, decode_s=0.5)
    stats.record_draft("mod", 8, 4)
    done = Done(
        request_id=1,
        finish_reason="length",
        text="",
        reasoning="",
        cut_in_reasoning=False,
        token_ids=(),
        seed=0,
        stats=stats,
    )
    m = measurement("m", "refactor", "mod", 0, [done, done])
    assert (m.tokens, m.decode_tokens, m.decode_s) == (22, 20, 1.0)
    assert (m.drafted, m.accepted, m.passes, m.tokens_per_second) == (16, 8, 14, 20.0)


def test_ratios_are_over_the_peers_fastest_of_that_workload_and_plain_over_plain() -> None:
    ours = [measured("off", 0, 99), measured("chain", 0, 150)]
    peers = [measured("none", 0, 100), measured("ngram-mod", 0, 120), measured("ngram-cache", 0, 60)]
    found = [(r.mode, r.peer_mode, r.ratio) for r in ratios(ours, peers, plain="off", peer_plain="none")]
    assert found == [
        ("off", "none", pytest.approx(0.99)),
        ("off", "ngram-mod", pytest.approx(0.825)),
        ("chain", "ngram-mod", pytest.approx(1.25)),
    ]


def test_means_leave_out_what_is_not_known() -> None:
    assert geometric_mean([2.0, 8.0, None]) == pytest.approx(4.0)
    assert geometric_mean([None]) is None and geometric_mean([]) is None
    assert median([3.0, None, 1.0]) == 2.0 and median([None]) is None
    table = rows([measured("off", 0, 100), measured("off", 0, 25, workload="code")], "off")
    assert by_mode(table, lambda row: row.tokens_per_second) == {"off": pytest.approx(50)}
