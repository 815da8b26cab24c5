"""Hybrid dynamics: some hinges with given motion, others with given force."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import linkwise as lw
from linkwise.algebra import B, E_phi, H, M, N, a, b, bias, f, mass, phi, rot_W, tau, vdot
from linkwise.algebra.armature import without_armature
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import random_dense, residual as apart
from linkwise.algebra.family import composite, riccati
from linkwise.algebra.replay import justified
from linkwise.algebra.selection import selection, with_selections
from linkwise.codegen.stages import is_rolled
from linkwise.dynamics import hybrid_expression, hybrid_kernel
from linkwise.errors import ModelError, ShapeError, SingularHingeError, UnknownNameError
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import mass_matrix, node_jacobian
from tests.dynamics.oracle_state import MUJOCO, PINOCCHIO, in_mujoco, in_pinocchio
from tests.dynamics.test_random_trees import trees


def moving(mech) -> list[str]:
    return [body.hinge_name for body in mech.bodies if body.hinge.nv]


def mask(mech, prescribed) -> np.ndarray:
    held = np.zeros(mech.nv, dtype=bool)
    for name in prescribed:
        held[mech.v_slice(name)] = True
    return held


def partitioned(A, c, tau, vdot, held):
    """By matrices: A_ff v̇_f = τ_f − c_f − A_fp v̇_p, then τ_p = A_p v̇ + c_p."""
    free, motion, force = ~held, np.where(held, vdot, 0.0), np.where(held, 0.0, tau)
    motion[free] = np.linalg.solve(A[np.ix_(free, free)], (tau - c - A @ motion)[free])
    force[held] = (A @ motion + c)[held]
    return motion, force


def evaluated(mech, prescribed, q, v, x, y):
    """All accelerations and forces, by the interpreter."""
    driven = [name for name in moving(mech) if name not in prescribed]
    expr = hybrid_expression(driven, prescribed)
    result = run(lw.plan(lw.derive(expr).result), mech, q, v, values={"tau": x, "vdot": y})
    held = mask(mech, prescribed)
    return np.where(held, y, result), np.where(held, result, x)


@cache
def small() -> lw.Mechanism:
    """A ball, a slide, two pins and a weld, branched, with armature."""
    kinds = ("spherical", "prismatic", "pin", "pin", "locked")
    mech = lw.models.random_tree(5, 5, hinges=kinds, branching=0.5)
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


@pytest.mark.few(10)
@pytest.mark.parametrize("choice", ["none", "even", "odd", "first", "all"])
@pytest.mark.parametrize("name", TREES)
def test_against_a_partitioned_solve(name, choice):
    """Every hinge prescribed and driven in turn, multi-freedom ones as wholes."""
    mech = tree(name)
    hinges = moving(mech)
    chosen = {"none": [], "even": hinges[::2], "odd": hinges[1::2], "first": hinges[:1]}
    prescribed = chosen.get(choice, hinges)
    q, v, x = state(mech)
    y = np.random.default_rng(7).standard_normal(mech.nv)
    motion, force = evaluated(mech, prescribed, q, v, x, y)
    A, c = mass_matrix(mech, q), Dense(mech, q, v)(bias)
    size = (np.abs(A) @ np.abs(motion) + np.abs(c) + np.abs(force)).max()
    close(A @ motion + c, force, 1e-12, scale=size)  # the equations of motion
    theirs, their_force = partitioned(A, c, x, y, mask(mech, prescribed))
    # The dense solution is as good as the matrix is conditioned.
    close(motion, theirs, 1e-14 * max(1e2, np.linalg.cond(A)))
    close(force, their_force, 1e-11, scale=float(size))


@pytest.mark.slow
@settings(max_examples=40)
@given(trees(), st.integers(0, 1000))
def test_any_choice_on_any_tree(mech, seed):
    """By the residual of the equations of motion, and by what was given."""
    rng = np.random.default_rng(seed)
    prescribed = [name for name in moving(mech) if rng.random() < 0.5]
    q, v, x = state(mech, seed)
    y = rng.standard_normal(mech.nv)
    motion, force = evaluated(mech, prescribed, q, v, x, y)
    A, c = mass_matrix(mech, q), Dense(mech, q, v)(bias)
    size = (np.abs(A) @ np.abs(motion) + np.abs(c) + np.abs(force)).max(initial=1e-9)
    close(A @ motion + c, force, 1e-12, scale=float(size))
    held = mask(mech, prescribed)
    assert np.array_equal(motion[held], y[held]) and np.array_equal(force[~held], x[~held])


def test_the_expression_is_the_definition():
    """U (U 𝓜 U + Ū)⁻¹ U (τ − C − 𝓜 Ū v̇) and Ū (𝓜 v̇ + C), as explicit matrices."""
    for mech in (tree("no armature"), lw.models.puma560(), lw.models.random_tree(6, 4)):
        names, A = moving(mech), mass
        free, bound = selection("U", names[::2]), selection("Ū", names[1::2])
        inner = (free @ A @ free + bound).inv @ free @ (tau - bias - A @ bound @ vdot)
        definition = inner + bound @ (A @ (inner + bound @ vdot) + bias)
        expr = hybrid_expression(names[::2], names[1::2])
        dense = random_dense(mech, [definition, expr])
        assert apart(dense, definition, expr) < 1e-11


def by_hand(driven, prescribed, push=None):
    """z = ψ (K U τ + M φ* (a + H* Ū v̇) + b − B f), ν = D⁻¹ (U τ − U H z), λ = ψ* H* U ν, then
    ν − K* λ and Ū (H (z + P λ) + N v̇): what is derived may cost no more."""
    free, bound = selection("U", driven), selection("Ū", prescribed)
    H_U, noise = composite(free @ H), composite(bound + free @ N @ free)
    F, outside = riccati(E_phi, M, H_U, noise), b if push is None else b - push
    z = F.psi @ (F.K @ free @ tau + M @ phi.T @ (a + H.T @ bound @ vdot) + outside)
    nu = F.D.inv @ (free @ tau - H_U @ z)
    costate = F.psi.T @ H_U.T @ nu
    return nu - F.K.T @ costate + bound @ (H @ (z + F.P @ costate) + N @ vdot)


@pytest.mark.few(1)
@pytest.mark.parametrize("push", [None, B @ f, B @ rot_W.T @ f], ids=str)
def test_what_is_derived_costs_no_more_than_by_hand(push):
    """The force at prescribed hinges is found as z + P ψ* H* ν, and every step follows."""
    mech = lw.models.random_tree(5, 4)
    names = moving(mech)
    chosen = names[::2], names[1::2]
    derived, known = lw.derive(hybrid_expression(*chosen, push=push)), by_hand(*chosen, push)
    assert cost(lower(derived.result)) <= cost(lower(known))
    assert all(justified(step) for step in derived)
    dense = random_dense(mech, [derived.result, known])
    assert apart(dense, derived.result, known) < 1e-11
    for form in (derived.result, lw.derive(without_armature(derived.start)).result):
        assert "H_U ψ_U (b + K_U U τ" in str(form), "families have names one can read"


def test_what_is_derived_for_one_choice_holds_for_all(monkeypatch):
    """Names of hinges mean nothing to the algebra: it does not search again."""
    one, two = hybrid_expression(["a"], ["b", "c"]), hybrid_expression(["b"], ["a", "d"])
    first = lw.derive(one)
    monkeypatch.setattr("linkwise.algebra.search.cheapest", None)
    second = lw.derive(two)
    assert second.start is two and second.result is not first.result
    assert str(second) == str(first)
    back = {("b",): ("a",), ("a", "d"): ("b", "c")}
    swapped = with_selections(second, lambda key: replace(key, hinges=back[key.hinges]))
    assert swapped == first


def test_limits_are_forward_and_inverse_dynamics():
    """The same numbers, from as many operations: the choice is folded into the code."""
    mech = small()
    q, v, x = state(mech)
    y = np.random.default_rng(1).standard_normal(mech.nv)
    names = moving(mech)
    driven = lw.hybrid_dynamics(mech, q, v, tau=x, vdot=y, prescribed=[])
    close(driven.vdot, lw.forward_dynamics(mech, q, v, x), 1e-13)
    assert np.array_equal(driven.tau, x)
    moved = lw.hybrid_dynamics(mech, q, v, tau=x, vdot=y, prescribed=names)
    close(moved.tau, lw.inverse_dynamics(mech, q, v, y), 1e-13)
    assert np.array_equal(moved.vdot, y)
    ops = [hybrid_kernel(mech, chosen).ops.total() for chosen in ([], names[1:3], names)]
    assert ops[0] == lw.dynamics.kernel(mech, "forward_dynamics").ops.total()
    assert ops[2] == lw.dynamics.kernel(mech, "inverse_dynamics").ops.total()
    assert ops[2] < ops[1] < ops[0]
    assert len(hybrid_kernel(mech, names[1:3]).program.passes) == 3


def test_by_names_in_batches_and_with_forces():
    mech = small()
    first, second, third, fourth = moving(mech)
    q, v, _ = states(mech, 3)
    rng = np.random.default_rng(2)
    forces = {first: rng.standard_normal((3, mech.hinge(first).hinge.nv)), third: 0.3}
    motions = {
        second: rng.standard_normal(mech.hinge(second).hinge.nv),
        fourth: rng.standard_normal((3, 1)),
    }
    push = {"tool": np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])}
    motion = lw.hybrid_dynamics(
        mech, q, v, tau=forces, vdot=motions, forces=push, forces_frame="world"
    )
    assert motion.vdot.shape == motion.tau.shape == (3, mech.nv)
    for group, part in ((forces, motion.tau), (motions, motion.vdot)):
        for name, value in group.items():
            assert (part[:, mech.v_slice(name)] == value).all()
    for i in range(3):
        turn = np.kron(np.eye(2), mech.pose(q[i], "tool").rot)
        pushed = node_jacobian(mech, q[i], "tool").T @ turn.T @ push["tool"]
        A, c = mass_matrix(mech, q[i]), Dense(mech, q[i], v[i])(bias) - pushed
        size = (np.abs(A) @ np.abs(motion.vdot[i]) + np.abs(c) + np.abs(motion.tau[i])).max()
        close(A @ motion.vdot[i] + c, motion.tau[i], 1e-12, scale=size)
    arrays = lw.hybrid_dynamics(
        mech, q, v, tau=np.where(mask(mech, motions), np.nan, motion.tau), vdot=motion.vdot,
        prescribed=[second, mech.hinge(fourth).name], forces=push, forces_frame="world",
    )  # fmt: skip
    close(
        arrays.vdot, motion.vdot, 1e-14
    )  # a hinge may be called by its body; NaN is not looked at


def test_loops_over_bodies():
    """A chain too long for straight code, every third hinge prescribed."""
    mech = lw.models.chain(90)
    names = moving(mech)
    q, v, x = state(mech, 3)
    y = np.random.default_rng(1).standard_normal(mech.nv)
    motion = lw.hybrid_dynamics(mech, q, 0.1 * v, tau=x, vdot=y, prescribed=names[::3])
    assert is_rolled(hybrid_kernel(mech, names[::3]).request)
    back = lw.inverse_dynamics(mech, q, 0.1 * v, motion.vdot)
    close(back, motion.tau, 1e-10)


def test_trouble_is_told():
    mech = small()
    q, v, x = states(mech, 3)
    v[1, 2] = np.nan
    status = np.empty(3, dtype=np.int32)
    names = moving(mech)[:1]
    motion = lw.hybrid_dynamics(mech, q, v, tau=x, vdot=x, prescribed=names, status=status)
    assert status.tolist() == [0, 1, 0] and np.isnan(motion.tau[1, mech.v_slice(names[0])]).all()
    ball = next(body for body in mech.bodies if body.hinge.quaternion is not None)
    q[0, mech.q_slice(ball.hinge_name)] *= 1.01
    with pytest.raises(ModelError, match=f"quaternion of body '{ball.name}' is not of unit length"):
        lw.hybrid_dynamics(mech, q[0], v[0], tau=x[0], vdot=x[0], prescribed=names)
    empty = lw.Builder("empty").body("arm", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.zero())
    light = empty.build()
    with pytest.raises(SingularHingeError, match="arm"):
        lw.hybrid_dynamics(light, [0.0], [0.0], tau=[1.0], vdot=[0.0], prescribed=[])
    held = lw.hybrid_dynamics(light, [0.0], [0.0], tau=[1.0], vdot=[2.0], prescribed=["arm"])
    assert held.tau.tolist() == [0.0] and held.vdot.tolist() == [2.0]


def test_what_cannot_be_meant():
    mech = small()
    q, v, x = state(mech)
    first, second, third, fourth = moving(mech)
    weld = next(body.hinge_name for body in mech.bodies if not body.hinge.nv)
    forces, motions = {first: x[mech.v_slice(first)], second: 0.0}, {third: 0.0, fourth: 0.0}

    def call(tau, vdot, **options):
        return lw.hybrid_dynamics(mech, q, v, tau=tau, vdot=vdot, **options)

    call(forces, motions)
    with pytest.raises(ModelError, match=f"hinge '{second}' is both in tau and in vdot"):
        call(forces, {**motions, second: 0.0})
    with pytest.raises(ModelError, match=f"hinges '{third}', '{fourth}' are neither in tau nor in"):
        call(forces, {})
    with pytest.raises(UnknownNameError, match=r"no hinge called 'hinge_9'.*did you mean"):
        call({**forces, "hinge_9": 0.0}, motions)
    with pytest.raises(ModelError, match=f"hinge '{weld}' of .* cannot move"):
        call({**forces, weld: []}, motions)
    with pytest.raises(ModelError, match=f"hinge '{second}' is given twice"):
        call({**forces, mech.hinge(second).name: 1.0}, motions)
    with pytest.raises(ModelError, match="given in two ways"):
        call(x, motions)
    with pytest.raises(ModelError, match="name the hinges that move as vdot with"):
        call(x, x)
    with pytest.raises(ModelError, match="already name the hinges"):
        call(forces, motions, prescribed=[third])
    with pytest.raises(ShapeError, match=rf"tau of hinge '{second}' has shape \(2,\)"):
        call({**forces, second: [1.0, 2.0]}, motions)
    with pytest.raises(ShapeError, match=rf"vdot has shape \(3,\); it must be \({mech.nv},\)"):
        call(x, np.zeros(3), prescribed=[third])
    with pytest.raises(ShapeError, match="has 2 rows, others have 3; all need"):
        call({first: np.zeros((3, mech.hinge(first).hinge.nv)), second: np.zeros((2, 1))}, motions)
    with pytest.raises(ModelError, match="forces_frame is 'body'"):
        call(forces, motions, forces_frame="body")


def test_selections_are_projections():
    mech = small()
    names = moving(mech)
    free, bound = selection("U", names[:2]), selection("Ū", names[2:])
    dense = Dense(mech, mech.neutral())
    one, other = dense.matrix(free), dense.matrix(bound)
    assert np.array_equal(one @ one, one) and np.array_equal(one + other, np.eye(mech.nv))
    assert selection("U", names[:2]) is selection("U", reversed(names[:2]))
    assert free is not selection("U", names[:1])
    expr = free @ H @ phi @ (M @ phi.T @ a + b)
    q, v, _ = state(mech)
    result = lw.compile(expr, mech)(q, v)
    close(result, one @ lw.bias_force(mech, q, v), 1e-13)


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.oracle
@pytest.mark.parametrize("name", PINOCCHIO)
def test_with_pinocchio(name):
    """Its forward dynamics with the forces that were found gives the motion that was found."""
    import pinocchio as pin

    it = in_pinocchio(name)
    y = np.random.default_rng(3).standard_normal(it.mech.nv)
    prescribed = moving(it.mech)[::2]
    motion, force = evaluated(it.mech, prescribed, it.q, it.v, it.x, y)
    there = it.layout.force_to(it.q, force)
    theirs = it.layout.v_from(it.q, pin.aba(it.model, it.data, it.q_pin, it.v_pin, there))
    close(motion, theirs, 1e-10, scale=float(np.abs(theirs).max() + np.abs(motion).max()))
    forces = pin.rnea(it.model, it.data, it.q_pin, it.v_pin, it.accelerated(motion))
    close(force, it.layout.force_from(it.q, forces), 1e-10)


@pytest.mark.oracle
@pytest.mark.parametrize("source", MUJOCO)
def test_with_mujoco(source):
    """mj_inverse of the motion that was found gives the forces that were found."""
    import mujoco

    it = in_mujoco(source)
    y = np.random.default_rng(3).standard_normal(it.mech.nv)
    prescribed = moving(it.mech)[1::2]
    motion, force = evaluated(it.mech, prescribed, it.q, it.v, it.tau, y)
    data = mujoco.MjData(it.model)
    data.qpos[:], data.qvel[:] = it.data.qpos, it.data.qvel
    data.qacc[:] = it.accelerated(motion)
    mujoco.mj_inverse(it.model, data)
    theirs = it.layout.force_from(it.q, np.array(data.qfrc_inverse))
    close(force, theirs, 1e-10, scale=float(np.abs(it.data.qfrc_bias).max() + np.abs(force).max()))
