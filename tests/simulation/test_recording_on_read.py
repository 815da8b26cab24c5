"""Channels and reports that are computed when they are first read."""

import copy
import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.model.body import Coupling
from linkwise.simulation import Recording, run, standard_channel
from linkwise.simulation.report import energy_flow


@pytest.fixture
def computed(monkeypatch):
    """The kinds of channels that were computed, in order."""
    kinds = []

    def counted(name):
        function = getattr(standard_channel, name)

        def call(*args):
            kinds.append(name)
            return function(*args)

        monkeypatch.setattr(standard_channel, name, call)

    for name in ("energy_channels", "momentum_channels", "loop_channels"):
        counted(name)
    return kinds


def test_a_channel_is_computed_once_and_by_the_first_who_reads_it(computed):
    mech = lw.models.puma560()
    rec = lw.simulate(mech, mech.random(seed=1), duration=0.05, integrator="implicit")
    assert "momentum.linear" in rec and computed == []
    first = rec["momentum.linear"]
    assert first is rec["momentum.linear"] and computed == ["momentum_channels"]
    assert np.allclose(first[7], lw.momentum(mech, rec.q[7], rec.v[7], about="world")[3:])
    report = rec.report
    assert report is rec.report and computed == ["momentum_channels", "energy_channels"]
    assert report.energy[1] == lw.dynamics.energy(mech, rec.q[-1], rec.v[-1]).total != 0.0


def test_a_copy_has_all_of_it(computed):
    rec = lw.simulate(lw.models.pendulum(2), [0.3, 0.1], duration=0.05, integrator="implicit")
    other = copy.deepcopy(rec)
    assert str(other) == str(rec) and list(other.channels) == list(rec.channels)
    assert computed == ["energy_channels", "momentum_channels"]


@pytest.mark.parametrize("make", [lw.models.pendulum, lw.models.four_bar, lw.models.stewart])
def test_names_of_channels_are_known_before(make):
    mech = make()
    q = mech.neutral()
    rec = Recording.of(mech, [0.0, 1.0], np.tile(q, (2, 1)), np.zeros((2, mech.nv)))
    names = list(rec.channels)
    assert [channel.name for channel in rec.channels.values()] == names
    assert ("loop.rate" in names) == bool(mech.loops)


def test_names_of_couplings_are_known_before():
    mech = lw.models.chain(3)
    first, second = (body.hinge_name for body in mech.bodies[:2])
    gear = Coupling("gear", first, ((second, (2.0,)),))
    mech = dataclasses.replace(mech, couplings=(gear,))
    rec = Recording.of(mech, [0.0], mech.neutral()[None], np.zeros((1, mech.nv)))
    assert [x.name for x in rec.channels.values()] == list(rec.channels)
    assert rec.channels["loop.angle"].labels == ("gear",) and "loop.distance" not in rec


def test_what_was_given_may_change_afterwards():
    mech = lw.models.pendulum(2)
    q, v, tau, work = np.array([[0.3, 0.1]]), np.ones((1, 2)), np.ones((1, 2)), np.zeros(1)
    f = np.ones((1, 6))
    node = mech.bodies[1].name
    rec, same = (
        Recording.of(mech, [0.0], *(x.copy() for x in (q, v, tau)), forces={node: f.copy()})
        if i else Recording.of(mech, [0.0], q, v, tau, forces={node: f}, works={"joints": work})
        for i in range(2)
    )  # fmt: skip
    for array in (q, v, tau, f, work):
        array[:] = np.nan
    assert rec["energy.total"] == same["energy.total"] and np.isfinite(rec["energy.total"])
    assert np.isfinite(rec["energy.balance"]) and np.isfinite(rec[f"force.{node}"]).all()
    assert str(rec) == str(same)


def test_mistakes_are_reported_at_once():
    mech = lw.models.pendulum(1)
    states = [0.0], [[0.3]], [[0.1]]
    with pytest.raises(ShapeError, match=r"work 'joints' has the shape \(2,\)"):
        Recording.of(mech, *states, works={"joints": [0.0, 1.0]})
    with pytest.raises(UnknownNameError, match="hnd"):
        Recording.of(mech, *states, forces={"hnd": np.zeros(6)})


@pytest.mark.parametrize("integrator", ["rk4", "euler", "adaptive"])
def test_the_energy_that_is_looked_at_is_that_of_the_channels(integrator, monkeypatch):
    looked = []
    monkeypatch.setattr(run, "adds_up", lambda flow, mech: looked.append(flow) or True)
    mech = lw.models.pendulum(2).with_drive("pin_1", damping=0.3, stiffness=2.0)
    rec = lw.simulate(mech, [1.0, 0.2], [3.0, 0.0], duration=0.2, tau=0.5, integrator=integrator)
    (flow,), known = looked, energy_flow(rec.channels)
    assert flow.kinetic == known.kinetic > 0.0
    assert flow.drift == pytest.approx(known.drift, rel=1e-6, abs=1e-14)
    assert known.works["joints"] != 0.0 != known.works["passive"]
    works = {name: work for name, work in flow.works.items() if work}
    assert works == pytest.approx({name: x for name, x in known.works.items() if x}, rel=1e-14)


@pytest.mark.parametrize(
    "wrong",
    [{"work_error": "a"}, {"forces_frame": "b"}, {"limits": 3}, {"worst_loop": "c"}],
    ids=str,
)
def test_what_only_the_report_needs_is_looked_at_at_once(wrong):
    with pytest.raises((ModelError, ShapeError)):
        Recording.of(lw.models.pendulum(1), [0.0], [[0.3]], [[0.1]], **wrong)
