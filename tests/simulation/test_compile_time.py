"""The report tells what a user waited for: the motion, and apart from it the compiling."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

import linkwise as lw
from linkwise.dynamics.kernels import made_once, time_compiling


def test_all_of_the_wait_is_told_and_compiling_apart():
    mech = lw.models.pendulum(3)
    lw.simulate(lw.models.pendulum(1), duration=0.01)  # imports are done
    times = []
    for _ in range(2):
        began = time.monotonic()
        rec = lw.simulate(mech, [0.3, 0.1, 0.2], duration=0.2)
        times.append((time.monotonic() - began, rec.report.notes))
    (first, notes), (second, later) = times
    # Between the call and the clock there are microseconds; the machine may be busy.
    assert notes.wall + notes.compiling == pytest.approx(first, rel=0.1, abs=0.05)
    assert later.wall == pytest.approx(second, rel=0.1, abs=0.05) and later.compiling == 0.0
    assert notes.compiling > 0.0


def test_compiling_is_told_where_it_took_a_while(tmp_path):
    rec = lw.simulate(lw.models.pendulum(1), [0.3], duration=0.01)
    for seconds, told in ((0.001, "computed in 12 ms"), (2.5, "12 ms after 2.5 s of compiling")):
        notes = replace(rec.report.notes, wall=0.012, compiling=seconds)
        known = replace(rec, report=replace(rec.report, notes=notes))
        assert str(known).splitlines()[0].endswith(told)
        known.save(tmp_path / "run.npz")
        assert str(lw.load_recording(tmp_path / "run.npz")).splitlines()[0].endswith(told)
    assert "computed" not in str(known[0.0:0.005])


def test_the_clock_counts_what_is_made_once():
    mech, before = lw.models.pendulum(1), time_compiling()
    for _ in range(2):
        made_once(mech, "slept", lambda: time.sleep(0.02) or 7)
    assert 0.02 <= time_compiling() - before < 1.0
    assert made_once(mech, "slept", lambda: 8) == 7
