"""Works of implicit steps by one kernel, against plain NumPy and plain sums over contacts."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import Ground, HeightField, put_on_ground
from linkwise.simulation.implicit.ground import axes_of
from linkwise.simulation.implicit.steps import KernelSteps
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.implicit.work import WORKERS, works

STEPS, H = 60, 2e-3


def hills():
    x = np.linspace(-2.0, 2.0, 41)
    return HeightField(0.05 * np.sin(4.0 * x)[:, None] * np.cos(3.0 * x), (4.0, 4.0))


def rubbing_arm():
    mech = lw.models.seven_dof_arm()
    for i, name in enumerate(body.hinge_name for body in mech.bodies):
        mech = mech.with_drive(
            name,
            friction=0.4 * (i % 2),
            damping=0.3,
            stiffness=2.0 * (i % 3),
            upper=0.3,
            lower=-2.0,
        )
    return mech


def moved(mech, points, *, passive=True, tau, pushed, q=None, v=None):
    """A stepper and some steps of it."""
    stepper = KernelSteps(mech, points, actuated=False, passive=passive)
    now = stepper.first(
        mech.random(seed=1) if q is None else q,
        mech.random_velocity(seed=2) if v is None else v,
    )
    return stepper, stepper.advance(now, H, STEPS, tau + pushed, np.zeros((1, 0)))


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("each", [False, True])
def test_the_kernel_gives_the_works_of_plain_numpy(passive, each):
    mech, random = rubbing_arm(), np.random.default_rng(3)
    tau, pushed = random.standard_normal((STEPS if each else 1, 7)), random.standard_normal((1, 7))
    q, v = np.full(7, 0.25), np.full(7, 2.0)
    stepper, steps = moved(mech, (), passive=passive, tau=tau, pushed=pushed, q=q, v=v)
    result, limited = stepper.works(steps, H, tau, pushed)
    plain, where = works(mech, steps, stepper.joints, H, tau, pushed, passive=passive)
    np.testing.assert_allclose(result, plain, rtol=1e-11, atol=1e-13)
    assert (limited == where).all() and 0 < limited.sum() < STEPS
    done = dict(zip(WORKERS, np.abs(plain).sum(axis=0), strict=True))
    acting = {"joints", "forces", "limits", "steps"}
    acting |= {"passive", "joint_friction"} if passive else set()
    assert {name for name, size in done.items() if size > 1e-6} == acting


@pytest.mark.parametrize(
    "make", [lw.models.quadruped, lw.models.four_bar, lw.models.stewart], ids=lambda f: f.__name__
)
def test_free_bodies_and_loops_count_as_in_plain_numpy(make):
    mech = make()
    q = lw.loops.assemble(mech, mech.random(seed=1)).q if mech.loops else mech.random(seed=1)
    v = mech.random_velocity(seed=2)
    tau, none = np.random.default_rng(3).standard_normal((1, mech.nv)), np.zeros((1, mech.nv))
    stepper, steps = moved(mech, (), tau=tau, pushed=none, q=q, v=v)
    result, _ = stepper.works(steps, H, tau, none)
    plain, _ = works(mech, steps, stepper.joints, H, tau, none, passive=True)
    assert len(steps) == STEPS and np.abs(plain[:, -1]).max() > 1e-6
    np.testing.assert_allclose(result, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "ground", [Ground(friction=0.5, torsional=0.02), hills()], ids=["plane", "hills"]
)
def test_contacts_are_those_of_all_points_one_by_one(ground):
    """Points without a force take no time; forces, slips and works are sums over all."""
    mech = lw.models.quadruped()
    points = contact_points(mech, ground)
    q = put_on_ground(mech, None, ground)
    v = np.zeros(mech.nv)
    v[3:6] = 0.5, 0.1, -1.0
    none = np.zeros((1, mech.nv))
    _, steps = moved(mech, points, tau=none, pushed=none, q=q, v=v)
    touches, count = steps.touches, len(points)
    pushing = touches.pushing
    assert 0 < pushing.sum() < count
    axes = np.broadcast_to(axes_of(points, touches.normals), (STEPS, count, 3, 3))
    first, size = 0, 3 + (getattr(ground, "torsional", 0.0) > 0.0)
    work = np.zeros((STEPS, 2))
    for c in range(count):
        assert points[c].rows == size
        rows = slice(first, first + size)
        impulse, start, end = (x[:, rows] for x in (touches.impulse, touches.start, touches.end))
        force = np.einsum("ni,nij->nj", impulse[:, :3], axes[:, c]) / H
        np.testing.assert_allclose(touches.force[:, c], force, rtol=1e-12, atol=1e-12)
        assert (touches.touching[:, c] == (force != 0.0).any(axis=1)).all()
        assert force.any() == pushing[c]
        np.testing.assert_allclose(touches.slip[:, c], np.linalg.norm(end[:, 1:3], axis=1))
        assert (touches.approach[:, c] == start[:, 0]).all()
        each = 0.5 * impulse * (start + end)
        work += np.column_stack([each[:, 0], each[:, 1:].sum(axis=1)])
        first += size
    np.testing.assert_allclose(touches.work, work, rtol=1e-12, atol=1e-15)
    assert (work.min(axis=0) < -1e-4).all()
    some = touches.at(np.array([3, 20]))
    np.testing.assert_array_equal(some.force, touches.force[[3, 20]])
    both = np.flatnonzero(pushing)
    for part, everything in zip(
        touches.among(both),
        (touches.touching, touches.gap, touches.approach, touches.slip),
        strict=True,
    ):
        np.testing.assert_array_equal(part, everything[:, both])


def test_works_at_some_records_are_sums_over_all_steps():
    """Recorded after each step or after some, in parts or at once: the same works."""
    mech = rubbing_arm()
    options = {"duration": 0.2, "step": H, "integrator": "implicit", "tau": 1.0}
    each = lw.simulate(mech, np.full(7, 0.25), np.full(7, 2.0), record_every=1, **options)
    some = lw.simulate(mech, np.full(7, 0.25), np.full(7, 2.0), record_every=7, **options)
    ticks = lw.simulate(
        mech, np.full(7, 0.25), np.full(7, 2.0), record_every=7, duration=0.2, step=H,
        integrator="implicit", controller=lambda t, q, v: 1.0, control_step=5 * H,
    )  # fmt: skip
    rows = np.searchsorted(each.t, some.t - 1e-9)
    assert 14 < len(some) < 40 < len(each) == 101 and (each.t[rows] == some.t).all()
    names = [name for name in each.channels if name.startswith("work.")]
    kinds = ("joints", "passive", "forces", "joint_friction", "limits", "steps")
    assert names == [f"work.{kind}" for kind in kinds]  # no actuators, not even by rounding
    for rec in (some, ticks):
        assert (rec.t == some.t).all()
        for name in names:
            assert rec[name] == pytest.approx(each[name][rows], rel=1e-12, abs=1e-13), name
    assert some.report.drift < 1e-9
