"""Contacts and limits that are away are left out, and a motion is its own whoever is beside it."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.implicit import segments
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.simulation.implicit.segments import implicit_stepping
from tests.simulation.moving import Given

STEP, STEPS = 2e-3, 250


def thrown_box():
    """A box with a flap that has limits, and points all around it."""
    b = lw.Builder("box with a flap")
    box = lw.SpatialInertia.solid_box(1.0, [0.3, 0.2, 0.1])
    body = b.body("box", "world", lw.hinges.Free(), inertia=box)
    flap = lw.SpatialInertia.solid_box(0.2, [0.2, 0.2, 0.02])
    drive = lw.Drive(lower=-0.3, upper=0.5, damping=0.01)
    body.body("flap", "box", lw.hinges.Pin([0.0, 1.0, 0.0]), inertia=flap, drive=drive)
    corners = [(x, y, z) for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (-0.05, 0.05)]
    rough = Ground(friction=0.5), Ground(friction=0.8, torsional=0.02, rolling=0.01)
    points = [ContactPoint(f"c{i}", "box", p, 0.0, rough[0]) for i, p in enumerate(corners)]
    tips = [ContactPoint(f"t{y}", "flap", (0.1, y, 0.0), 0.02, rough[1]) for y in (-0.1, 0.1)]
    return b.build(), (*points, *tips)


def legs_and_arms():
    """A body on two feet of four points, with friction in all joints; arms carry a point each."""
    b = lw.Builder("legs and arms")
    trunk = lw.SpatialInertia.solid_box(5.0, [0.2, 0.2, 0.4])
    body = b.body("trunk", "world", lw.hinges.Free(), inertia=trunk)
    limb, axis = lw.SpatialInertia.solid_box(0.5, [0.1, 0.1, 0.3]), [0.0, 1.0, 0.0]
    points = list[ContactPoint]()
    for y in (-0.1, 0.1):
        for part, z, x in (("leg", -0.2, 0.05), ("arm", 0.2, 0.0)):
            name, drive = f"{part}{y}", lw.Drive(friction=0.4, damping=0.02)
            place = {"inboard": [x, y, z], "drive": drive}
            body = body.body(name, "trunk", lw.hinges.Pin(axis), inertia=limb, **place)
            below = [0.0, 0.0, -0.3], [1.0, 0.0, 0.0]
            end = lw.SpatialInertia.solid_box(0.3, [0.15, 0.08, 0.04])
            body = body.body(
                f"{name} end", name, lw.hinges.Pin(below[1]), inertia=end, inboard=below[0],
                drive=drive,
            )  # fmt: skip
            corners = [(x, y) for x in (-0.07, 0.08) for y in (-0.04, 0.04)]
            for k, corner in enumerate(corners if part == "leg" else corners[:1]):
                ground = Ground(friction=0.6)
                points.append(
                    ContactPoint(f"{name}/{k}", f"{name} end", (*corner, -0.02), 0.0, ground)
                )
    return body.build(), tuple(points)


def starts(mech, count):
    rng = np.random.default_rng(4)
    q = np.tile(mech.neutral(), (count, 1))
    q[:, 6] = 0.2 + 0.3 * rng.random(count)
    return q, rng.normal(size=(count, mech.nv))


def kernel(mech, points, **options):
    joints = joints_with_rows(mech)
    # slow steps are solved as others are: what is compared is the solution
    stepping = implicit_stepping(mech, 8, None, joints, points, late=0.0, **options)
    return MotionKernel(Given(mech, stepping))


def run(compiled, q, v):
    held = {name: np.zeros(size) for name, size in (*compiled.begins, *compiled.held)}
    return compiled.run(q, v, held, STEP, STEPS, 1)


def test_branches_give_the_motion_of_all_rows():
    mech, points = thrown_box()
    q, v = starts(mech, 11)
    complete, parts = (kernel(mech, points, branches=x) for x in (False, True))
    first, second = run(complete, q, v), run(parts, q, v)
    assert not first.status.any()
    pushed = slice(mech.nq + mech.nv, mech.nq + mech.nv + complete.shown["impulse"])
    assert (np.abs(first.records[..., pushed]).max(axis=(0, 1)) > 0.0).sum() > 20  # many touch
    # until impacts have told rounding apart
    np.testing.assert_allclose(second.records[:, :100], first.records[:, :100], atol=1e-9)
    # and what they do at worst goes on to be the same, but for rounding of heights
    worst = slice(-2, None)
    late, expected = (x.records[:, 100, worst] for x in (second, first))
    np.testing.assert_allclose(late, expected, rtol=1e-9, atol=1e-16)
    steps = [segment.when for segment in parts.stepping.step]
    assert sum(bool(x) for x in steps) > 3 * len(points)


@pytest.mark.parametrize("made", [thrown_box, legs_and_arms])
def test_what_is_not_near_would_not_touch(made, monkeypatch):
    """The motion is that with everything near, also at impacts with 4 m/s."""
    mech, points = made()
    q, v = starts(mech, 16)
    q[:, 6] += 0.3
    v[:, 5] -= 4.0
    chosen = kernel(mech, points, branches=True, sweeps=1000)
    monkeypatch.setattr(segments, "PUSHED", 1e4)
    complete = kernel(mech, points, branches=True, sweeps=1000)
    first, second = run(complete, q, v), run(chosen, q, v)
    assert not first.status.any() and not second.status.any()
    at = mech.nq + mech.nv
    pushes = first.records[:, :100, at : at + complete.shown["impulse"]]
    assert (np.abs(pushes).max(axis=1) > 1e-3).sum() > 200
    # what is missed changes velocities by metres per second
    np.testing.assert_allclose(second.records[:, :100, :at], first.records[:, :100, :at], atol=1e-3)


def test_sweeps_in_part_give_the_motion_of_sweeps_over_everything():
    """Most leave out the arms, and feet that do not push."""
    mech, points = legs_and_arms()
    q, v = starts(mech, 5)
    q[:, 6], v = 0.53 + 0.02 * np.arange(5), 0.2 * v
    complete, parts = (kernel(mech, points, branches=x, sweeps=2000) for x in (False, True))
    first, second = run(complete, q, v), run(parts, q, v)
    assert not first.status.any() and not second.status.any()
    at = mech.nq + mech.nv
    impulse = second.records[..., at : at + 8 + 3 * len(points)]
    joints, contacts = impulse[..., :8], impulse[..., 8::3]
    held = (np.abs(joints) < 0.999 * STEP * 0.4).mean(axis=(0, 1))
    assert ((held > 0.02) & (held < 0.98)).sum() >= 6
    assert ((contacts > 0.0).mean(axis=(0, 1)) > 0.02).sum() >= 8
    # not impulses, as those of the four points of a foot are not unique
    moved = second.records[:, :60, :at] - first.records[:, :60, :at]
    assert np.abs(moved).max() < 1e-5 < 0.1 < np.abs(second.records[:, :60, mech.nq : at]).max()
    masked = {segment.when.partition("[")[0] for segment in parts.stepping.step if segment.again}
    assert {"limbs", "acts"} <= masked


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("made", [thrown_box, legs_and_arms])
def test_a_motion_does_not_depend_on_its_neighbours(made, branches):
    mech, points = made()
    compiled = kernel(mech, points, branches=branches)
    width = compiled.lanes
    q, v = starts(mech, 3 * width)
    together = run(compiled, q, v)
    mixed = np.random.default_rng(1).permutation(len(q))
    shuffled = run(compiled, q[mixed], v[mixed])
    np.testing.assert_array_equal(shuffled.records, together.records[mixed])


def test_a_point_that_is_away_takes_no_operations():
    """Its segments are the only ones that have its rows."""
    mech, points = thrown_box()
    with_branches, bare = (
        implicit_stepping(mech, 8, None, joints_with_rows(mech), chosen, branches=True)
        for chosen in (points, points[:1])
    )

    def always(stepping):
        return sum(
            s.traced.graph.count(s.traced.roots).total() for s in stepping.step if not s.when
        )

    complete = implicit_stepping(mech, 8, None, joints_with_rows(mech), points)
    assert always(with_branches) < always(bare) + 60 * (len(points) - 1)
    assert always(complete) > 3 * always(with_branches)


@pytest.mark.prove
def test_what_a_recording_needs_is_the_same_in_branches():
    mech, points = thrown_box()
    q, v = starts(mech, 5)
    complete, parts = (kernel(mech, points, branches=x, observed=True) for x in (False, True))
    first, second = run(complete, q, v).records[:, :100], run(parts, q, v).records[:, :100]
    assert complete.shown == parts.shown and {"before", "after", "gap"} <= parts.shown.keys()
    np.testing.assert_allclose(second, first, rtol=1e-7, atol=1e-7)
    # also of points that are away: the end of each step is before the next one, where axes are
    at = mech.nq + mech.nv
    where = dict[str, slice]()
    for name, size in parts.shown.items():
        where[name], at = slice(at, at + size), at + size
    normal = [1 + sum(point.rows for point in points[:i]) for i in range(len(points))]
    after, before = second[:, :-1, where["after"]], second[:, 1:, where["before"]]
    assert np.abs(after[..., normal] - before[..., normal]).max() < 0.2
    assert np.abs(before[..., normal]).max() > 2.0


def test_joints_side_by_side_give_the_motion_of_one_after_another():
    """Heavy arms on a light base: their joints depend on each other as much as they can."""
    b = lw.Builder("arms")
    body = b.body(
        "base", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(0.05, [0.1] * 3)
    )
    heavy = lw.SpatialInertia.solid_box(5.0, [0.4, 0.1, 0.1])
    for side in (-1.0, 1.0):
        for k, axis in enumerate(([0.0, 0.0, 1.0], [0.0, 1.0, 0.0])):
            name, parent = f"{side:+.0f}/{k}", f"{side:+.0f}/{k - 1}" if k else "base"
            drive = lw.Drive(friction=0.5 + k, lower=-0.4, upper=0.3)
            place = [0.2 * side, 0.0, 0.0] if k else [0.05 * side, 0.0, 0.0]
            options = {"inertia": heavy, "drive": drive, "inboard": place}
            body = body.body(name, parent, lw.hinges.Pin(axis), **options)
    mech = b.build()
    points = (ContactPoint("tip", "+1/1", (0.3, 0.0, 0.0), 0.05, Ground(friction=0.4)),)
    rng = np.random.default_rng(2)
    q, v = np.tile(mech.neutral(), (3, 1)), rng.normal(size=(3, mech.nv))
    q[:, 6] = 0.3
    complete, parts = (kernel(mech, points, branches=x, sweeps=2000) for x in (False, True))
    first, second = (run(x, q, v) for x in (complete, parts))
    assert not first.status.any()
    start = mech.nq + mech.nv
    impulses, residual = second.records[..., start : start + 4], second.records[..., start + 7]
    bounds = STEP * np.array([0.5, 1.5, 0.5, 1.5])
    sticks = (np.abs(impulses) < 0.999 * bounds).mean(axis=(0, 1))
    assert (sticks > 0.01).all() and (sticks < 0.99).all()
    assert residual.max() < 1e-9
    np.testing.assert_allclose(second.records[:, :50], first.records[:, :50], atol=1e-7)
