"""Threads are given up beside a busy program, and taken back when it has ended."""

from __future__ import annotations

import pytest

from drafting.cost import CostCurve
from drafting.loop import Loop
from drafting.thread_count import ThreadCount
from drafting.verification import Mode
from tests.drafting.toy import Ticks, ToyTarget, sequence

PASS_S = 0.006


class Machine:
    """Runs passes on so many cores, of which ``busy`` are shared with programs that never rest."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.busy = 0
        self.throttle = 1.0
        self.now = 0.0
        self.counts: list[int] = []
        self.threads = ThreadCount(cores, self.counts.append)

    def slowdown(self, count: int) -> float:
        waits = 8.0 if count > self.cores - self.busy else 1.0
        return self.throttle * waits * self.cores / count

    def run(self, seconds: float) -> float:
        """Passes a second over what a quiet machine does."""
        began, passes = self.now, 0
        while self.now - began < seconds:
            slowdown = self.slowdown(self.threads.count)
            self.now += slowdown * PASS_S
            passes += 1
            self.threads.passed(slowdown, self.now)
        return passes * PASS_S / (self.now - began)


def test_nothing_is_tried_on_a_quiet_machine() -> None:
    machine = Machine(cores=2)
    assert machine.run(60.0) == pytest.approx(1.0)
    assert machine.counts == []


@pytest.mark.parametrize(("cores", "busy", "best"), [(2, 1, 1 / 2), (8, 1, 6 / 8), (8, 4, 4 / 8)])
def test_beside_a_busy_program_fewer_threads_are_faster(cores: int, busy: int, best: float) -> None:
    machine = Machine(cores)
    machine.run(5.0)
    machine.busy = busy
    machine.run(2.0)
    assert machine.run(60.0) > 0.9 * best
    machine.busy = 0
    machine.run(70.0)  # as long as the longest wait
    assert machine.threads.count == cores
    assert machine.run(10.0) == pytest.approx(1.0)


def test_a_machine_that_is_slow_by_itself_keeps_its_threads() -> None:
    machine = Machine(cores=4)
    machine.throttle = 3.0
    assert machine.run(300.0) > 0.97 / 3.0
    assert machine.threads.count == 4


def test_all_threads_for_answers_whose_last_bits_matter() -> None:
    machine = Machine(cores=2)
    machine.busy = 1
    machine.run(10.0)
    assert machine.threads.count == 1
    machine.threads.hold()
    assert machine.threads.count == 2 and machine.counts[-1] == 2


@pytest.mark.parametrize("held", [2.9, 5.0])
def test_one_slow_pass_is_no_reason(held: float) -> None:
    machine = Machine(cores=2)

    for _ in range(50):
        machine.run(0.05)
        machine.threads.passed(held, machine.now)
    assert machine.counts == []


@pytest.mark.parametrize("mode", Mode.__args__)
def test_the_loop_tells_of_passes_whose_last_bits_may_differ(mode: Mode) -> None:
    target, counts = ToyTarget(), list[int]()
    threads = ThreadCount(4, counts.append)
    loop = Loop(target, Ticks(), CostCurve({1: 0.5}), threads)  # they take a tick, twice as long
    loop.add(sequence(target, [3, 1, 4], mode=mode, max_new=8))
    while loop.busy:
        loop.step()
    assert counts == ([3] if mode == "rejection" else [])
    loop.add(sequence(target, [3, 1, 4], mode=mode, max_new=1))
    assert threads.count == (3 if mode == "rejection" else 4)
    loop.add(sequence(target, [3, 1, 4], seq=1, mode="reproducible", max_new=1))
    assert threads.count == 4
