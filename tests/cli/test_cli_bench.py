"""`linkwise bench`: figures of every function, and other libraries only where they agree."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.tour import measure, peer
from linkwise.tour.bench import FUNCTIONS, bench
from linkwise.tour.measure import as_time, best


def test_every_function_has_its_figures(capsys):
    assert main(["bench", "puma560", "--quick", "--batch", "16"]) == 0
    out = capsys.readouterr().out
    for name in FUNCTIONS:
        assert re.search(rf"lw\.{name} +\d+ +[\d.]+ (ms|s|µs) ", out), name
    assert "6 degrees of freedom" in out
    assert "of 6 directions" not in out


def test_what_the_batch_gives_is_what_one_state_gives():
    """The same function is timed both ways."""
    from linkwise.tour.bench import calls

    mech = lw.models.puma560()
    one = peer.State.random(mech, 3)
    many = peer.State(*(np.stack([x, x]) for x in (one.q, one.v, one.tau, one.vdot)))
    for name, call in calls(mech, "flange", one).items():
        assert np.allclose(calls(mech, "flange", many)[name]()[1], call(), rtol=1e-10), name


def floating() -> lw.Mechanism:
    mech = lw.models.random_tree(3, 2, floating=True, hinges=("pin", "prismatic"), drives=False)
    return mech.with_gravity((0.3, -9.0, 2.0))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "made",
    [
        lw.models.puma560,
        floating,
        pytest.param(lw.models.humanoid, marks=pytest.mark.slow),
        pytest.param(lw.models.stewart, marks=pytest.mark.slow),
        pytest.param(lw.models.free_flyer, marks=pytest.mark.slow),
    ],
)
def test_other_libraries_find_the_same(made):
    for package, ask in (("pinocchio", peer.pinocchio), ("mujoco", peer.mujoco)):
        pytest.importorskip(package)
        routes = ask(made())
        assert {"forward_dynamics", "inverse_dynamics"} <= set(routes)
        assert [name for name, route in routes.items() if not route.agrees] == []


@pytest.mark.oracle
def test_a_library_with_another_robot_is_not_timed(monkeypatch):
    """With masses of its own it finds something else, and no ratio is shown."""
    pytest.importorskip("pinocchio")
    real = peer._bare

    def heavier(mech):
        tree = real(mech)
        return tree.with_payload(tree.bodies[-1].name, lw.SpatialInertia.solid_sphere(1.0, 0.1))

    mech = lw.models.puma560()
    monkeypatch.setattr(peer, "load", lambda path: real(mech))
    monkeypatch.setattr(peer, "_bare", heavier)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    result = bench(mech, quick=True, batch=2)
    assert all("Pinocchio" not in line.peers for line in result.lines)
    assert any("computes another forward_dynamics" in note for note in result.notes)


def test_without_other_libraries(monkeypatch):
    for package in ("pinocchio", "mujoco"):
        monkeypatch.setitem(sys.modules, package, None)
    result = bench(lw.models.pendulum(2), quick=True, batch=4)
    assert result.libraries == []
    assert sum("not installed" in note for note in result.notes) == 2
    assert (
        sum("in 2 of 6 directions" in note for note in result.notes) == 1
    )  # two joints, six directions


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["puma56"], "puma560"), (["--batch", "0"], "--batch"), (["statue.urdf"], "statue")],
)
def test_errors(arguments, said, capsys):
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_robot_that_does_not_move_is_told(tmp_path, capsys):
    path = tmp_path / "statue.urdf"
    path.write_text('<robot name="statue"><link name="block"/></robot>')
    assert main(["bench", str(path)]) == 2
    assert "no degree of freedom" in capsys.readouterr().err


def test_times():
    assert as_time(2.0) == "2 s"
    assert as_time(0.0123) == "12.3 ms"
    assert as_time(4.5e-6) == "4.5 µs"
    assert as_time(7.8e-8) == "78 ns"


def test_the_best_of_several_rounds_counts(monkeypatch):
    """By a clock of the test: calls of 3, 5, 2, 4 ms, measured by loops of one."""
    clock, costs = [0.0], iter([3e-3, 5e-3, 2e-3, 4e-3, 4e-3])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def call():
        clock[0] += next(costs)

    assert best(call, seconds=0.01) == pytest.approx(2e-3)
    assert next(costs) == 4e-3  # after 5 + 2 + 4 ms, more than were asked for, it ended


def test_short_calls_are_measured_many_at_a_time(monkeypatch):
    """A clock would cost as much as they do: 0.1 · 10 ms / 1 µs = 1000 calls a round."""
    clock, count, request = [0.0], [0], list[int]()

    def look():
        request.append(count[0])
        return clock[0]

    def call():
        count[0] += 1
        clock[0] += 1e-6

    monkeypatch.setattr(measure.time, "perf_counter", look)
    assert best(call, seconds=0.01) == pytest.approx(1e-6)
    rounds = np.diff(request)
    assert rounds.max() in (999, 1000)  # a first call of 1 µs, up to rounding
