"""The report tells what a user waited for: the motion, and apart from it the compiling."""

from __future__ import annotations

from dataclasses import replace

import pytest

import linkwise as lw
from linkwise.model import memo
from linkwise.model.memo import once_per_mechanism, time_compiling
from linkwise.simulation import run


class Clock:
    """Stands for `time`: a second passes each time one looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    result = Clock()
    monkeypatch.setattr(run, "time", result)
    monkeypatch.setattr(memo, "time", result)
    return result


def test_all_of_the_wait_is_told_and_compiling_apart(clock: Clock):
    mech = lw.models.pendulum(3)
    waits = []
    for _ in range(2):
        began = clock.now
        rec = lw.simulate(mech, [0.3, 0.1, 0.2], duration=0.1)
        waits.append((clock.now - began, rec.report.notes))
    (first, notes), (second, later) = waits
    # The first look at the clock is when the call begins.
    assert notes.wall + notes.compiling == first - 1.0 and notes.compiling > 0.0
    assert later.wall == second - 1.0 > 0.0 and later.compiling == 0.0


def test_compiling_is_told_where_it_took_a_while(tmp_path):
    rec = lw.simulate(lw.models.pendulum(1), [0.3], duration=0.01)
    for seconds, message in ((0.001, "computed in 12 ms"), (2.5, "12 ms after 2.5 s of compiling")):
        notes = replace(rec.report.notes, wall=0.012, compiling=seconds)
        known = replace(rec, report=replace(rec.report, notes=notes))
        assert str(known).splitlines()[0].endswith(message)
        known.save(tmp_path / "run.npz")
        assert str(lw.load_recording(tmp_path / "run.npz")).splitlines()[0].endswith(message)
    assert "computed" not in str(known[0.0:0.005])


def test_the_clock_counts_what_is_made_once(clock: Clock):
    mech, before = lw.models.pendulum(1), time_compiling()

    @once_per_mechanism
    def made(mech: lw.Mechanism, value: int) -> int:
        clock.now += 20.0
        return value

    @once_per_mechanism
    def twice(mech: lw.Mechanism) -> int:
        return made(mech, 7) + made(mech, 7)

    for _ in range(2):
        assert twice(mech) == 14
    # What was made for another thing counts once: 20 s, and three looks at the clock.
    assert time_compiling() - before == 23.0
