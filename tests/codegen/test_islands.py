"""Mechanisms of many parts that only the ground joins: one loop over parts of equal build."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen import stages
from linkwise.dynamics.closure import closed_kernel
from linkwise.errors import RankWarning, SingularHingeError
from linkwise.loops import closed_expression
from linkwise.model.islands import alike, alone, islands
from linkwise.spatial.array import Array

PIN = lw.hinges.Pin((0.0, 1.0, 0.0))


def four_bars(
    count: int, *, apart: bool = True, more: bool = False, flat: bool = False
) -> lw.Mechanism:
    """Four-bars side by side, each with lengths of its own; all on the ground, or in a chain.

    With `flat` they are parallelograms, which lie flat where the crank is turned by a right angle.
    """
    b, base, at = lw.Builder(f"four_bars_{count}"), "world", np.zeros(3)
    for i in range(count):
        crank, rocker = 0.1 + 0.01 * (i % 7), 0.4 + 0.02 * (i % 3)
        crank = rocker if flat else crank
        start = np.array([0.0, 0.7 * i, 0.1 * i]) if apart else at
        p_B, p_D, p_C = (np.array(x) for x in ((0, 0, crank), (0.4, 0, 0), (0.4, 0, rocker)))
        rod = lw.SpatialInertia.solid_box(1.0 + 0.1 * i, (0.3, 0.1 + 0.01 * i, 0.1))
        b.body(f"crank_{i}", base, PIN, inboard=lw.Pose.translation(start), inertia=rod)
        b.body(f"coupler_{i}", f"crank_{i}", PIN, inboard=lw.Pose.translation(p_B), inertia=rod)
        b.body(f"rocker_{i}", base, PIN, inboard=lw.Pose.translation(start + p_D), inertia=rod)
        b.node(f"coupler_end_{i}", f"coupler_{i}", lw.Pose.translation(p_C - p_B))
        b.node(f"rocker_end_{i}", f"rocker_{i}", lw.Pose.translation(p_C - p_D))
        b.loop(f"loop_{i}", f"coupler_end_{i}", f"rocker_end_{i}", PIN)
        base, at = ("world", at) if apart else (f"coupler_{i}", 0.5 * (p_C - p_B))
    if more:
        box = lw.SpatialInertia.solid_box(2.0, (0.3, 0.2, 0.1))
        b.body("box", "world", lw.hinges.Free(), inertia=box)
        for i in range(3):
            ours = lw.SpatialInertia.solid_box(2.0 + i, (0.3, 0.2, 0.1))
            b.body(f"gear_{i}", "world", lw.hinges.Pin(), hinge_name=f"gear_{i}", inertia=ours)
            b.body(f"wheel_{i}", hinge=lw.hinges.Prismatic(), hinge_name=f"wheel_{i}", inertia=box)
            b.couple(f"mesh_{i}", f"wheel_{i}", {f"gear_{i}": 0.3})
    return b.build()


def state(mech: lw.Mechanism, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    start = mech.integrate(mech.neutral(), 0.1 * rng.standard_normal(mech.nv))
    q, v, tau = list[Array](), list[Array](), rng.standard_normal(mech.nv)
    for island in islands(mech):
        part = alone(mech, island)
        q.append(lw.loops.project_position(part, island.of_q(mech, start)).required())
        v.append(lw.loops.project_velocity(part, q[-1], rng.standard_normal(part.nv)))
    return np.concatenate(q), np.concatenate(v), tau


def one_by_one(mech: lw.Mechanism, q: Array, v: Array, tau: Array) -> Array:
    result = list[Array]()
    for island in islands(mech):
        at = slice(int(mech.v_start[island.bodies[0]]), int(mech.v_start[island.bodies[-1] + 1]))
        part = alone(mech, island)
        result.append(lw.forward_dynamics(part, island.of_q(mech, q), v[at], tau[at]))
    return np.concatenate(result)


def test_what_hinges_loops_and_couplings_join_is_one_island():
    mech = four_bars(2, more=True)
    names = [[mech.bodies[k].name for k in island.bodies] for island in islands(mech)]
    assert names[0] == ["crank_0", "coupler_0", "rocker_0"]
    assert names[2:] == [["box"], *([f"gear_{i}", f"wheel_{i}"] for i in range(3))]
    assert [len(kind) for kind in alike(mech)] == [2, 1, 3]
    assert len(islands(four_bars(3, apart=False))) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("more", [False, True])
def test_islands_in_one_loop_are_as_each_alone(more: bool):
    mech = four_bars(9, more=more)
    q, v, tau = state(mech)
    assert stages.islands(closed_kernel(mech, "forward_dynamics").request) is not None
    vdot = lw.forward_dynamics(mech, q, v, tau)
    assert np.allclose(vdot, one_by_one(mech, q, v, tau), rtol=1e-10, atol=1e-10)
    batch = lw.forward_dynamics(mech, np.tile(q, (11, 1)), v, np.arange(11)[:, None] * tau)
    assert np.allclose(batch[1], vdot, rtol=1e-12, atol=1e-12)
    assert np.allclose(batch[10], one_by_one(mech, q, v, 10.0 * tau), rtol=1e-9, atol=1e-9)


@pytest.mark.prove
def test_single_precision():
    mech = four_bars(8)
    q, v, tau = state(mech)
    expr = closed_expression(mech, "forward_dynamics")
    kernel = lw.compile(expr, mech, nodes=lw.loops.closure_nodes(mech), dtype=np.float32)
    expected = one_by_one(mech, q, v, tau)
    assert np.allclose(kernel(q, v, tau), expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


def test_code_does_not_grow_with_the_number_of_islands_and_work_grows_in_proportion():
    few, many = (closed_kernel(four_bars(n), "forward_dynamics") for n in (14, 140))
    assert len(many.source.splitlines()) == len(few.source.splitlines())
    assert sum(many.ops.values()) == 10 * sum(few.ops.values())


def test_one_island_that_is_not_finite_concerns_its_own_state_only():
    mech = four_bars(8)
    q, v, tau = state(mech)
    bad = q.copy()
    bad[3 * 5 + 1] = np.nan
    codes = np.zeros(2, np.int32)
    vdot = lw.forward_dynamics(mech, np.stack([q, bad]), v, tau, status=codes)
    assert codes.tolist() == [0, 1]
    assert np.allclose(vdot[0], one_by_one(mech, q, v, tau), rtol=1e-10, atol=1e-10)


def test_one_island_that_is_singular_is_told():
    mech, turned = four_bars(8, flat=True), np.array([1.0, -1.0, 1.0])
    q, still, tau = np.tile(0.3 * turned, 8), np.zeros(mech.nv), np.ones(mech.nv)
    assert np.isfinite(lw.forward_dynamics(mech, q, still, tau)).all()
    q[15:18] = 0.5 * np.pi * turned
    with pytest.warns(RankWarning, match="'four_bars_8' are singular"):
        lw.forward_dynamics(mech, q, still, tau)


def test_the_hinge_of_the_right_body_is_named():
    mech = four_bars(8)
    light = list(mech.bodies)
    k = mech.body_index["coupler_6"]
    light[k] = replace(light[k], inertia=lw.SpatialInertia.zero())
    light[k + 1] = replace(light[k + 1], inertia=lw.SpatialInertia.zero())
    broken = replace(mech, bodies=tuple(light))
    q, v, tau = state(mech)
    with pytest.raises(SingularHingeError, match="_6"):
        lw.forward_dynamics(broken, q, v, tau)
