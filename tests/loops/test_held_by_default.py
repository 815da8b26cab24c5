"""Loops and couplings are held by every function, unless `loops="open"` is passed.

The reference is one dense system in NumPy, by the mass matrix and the bias force of the open tree,
with J_c and J̇_c v as derivatives of `constraint_error`, by differences:

    ⎡ 𝓜   −J_c* ⎤ ⎡ v̇ ⎤   ⎡ τ − C + J* f ⎤
    ⎣ J_c   0   ⎦ ⎣ λ ⎦ = ⎣ −J̇_c v       ⎦       in the sense of least squares.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.dynamics.kernels import tree_of
from linkwise.errors import ModelError, TroubleWarning
from linkwise.spatial.array import Array
from tests.cases import linkage

H = 1e-3
"""Of the differences [s]."""

WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
"""Of the eighth-order difference: f′ = Σ w_i (f(i h) − f(−i h)) / h."""

CASES = ("four_bar", "gripper", "stewart", "couplings", "floating")
QUICK = tuple(x if x != "stewart" else pytest.param(x, marks=pytest.mark.prove) for x in CASES)
"""The platform takes seconds to compile: `make prove` has it."""


def gripper() -> lw.Mechanism:
    """Two fingers on an arm; one mimics the other."""
    b = lw.Builder("gripper")
    rod = lw.SpatialInertia.solid_cylinder(0.5, 0.02, 0.2).moved(lw.Pose.translation((0, 0, 0.1)))
    b.body("arm", hinge=lw.hinges.Pin((0, 1, 0)), inertia=rod, drive=lw.Drive(armature=0.02))
    for name, side in (("left", 1.0), ("right", -1.0)):
        b.body(
            name,
            "arm",
            lw.hinges.Prismatic((0, side, 0)),
            inboard=(0, 0.03 * side, 0.2),
            inertia=rod,
        )
    hinges = [body.hinge_name for body in b.build().bodies]
    b.couple("mimic", hinges[2], {hinges[1]: 1.0})
    return b.build()


def floating() -> lw.Mechanism:
    """A loop and a coupling on a base that floats."""
    b = lw.Builder("floating")
    box = lw.SpatialInertia.solid_box(3.0, (0.3, 0.2, 0.1))
    rod = lw.SpatialInertia.solid_cylinder(0.4, 0.02, 0.3).moved(lw.Pose.translation((0, 0, 0.15)))
    pin = lw.hinges.Pin((0, 1, 0))
    b.body("base", hinge=lw.hinges.Free(), inertia=box)
    b.body("left", "base", pin, inertia=rod, drive=lw.Drive(armature=0.01))
    b.body("right", "base", pin, inboard=(0.5, 0, 0), inertia=rod)
    b.body("bar", "left", pin, inboard=(0, 0, 0.3), inertia=rod)
    b.body("flap", "base", lw.hinges.Pin((1, 0, 0)), inboard=(0, 0.2, 0), inertia=rod)
    b.node("bar end", "bar", (0, 0, 0.45))
    b.node("right end", "right", (0, 0, 0.3))
    b.loop("bolt", "bar end", "right end", lw.hinges.Spherical())
    hinges = {body.name: body.hinge_name for body in b.build().bodies}
    b.couple("follow", hinges["flap"], {hinges["left"]: 0.5})
    return b.build()


@cache
def case(name: str) -> tuple[lw.Mechanism, Array, Array, Array]:
    """A mechanism, q with closed loops, v that obeys them, and joint forces."""
    rng = np.random.default_rng(7)
    if name in ("gripper", "floating"):
        mech = gripper() if name == "gripper" else floating()
        guess = mech.integrate(mech.neutral(), 0.3 * rng.standard_normal(mech.nv))
        q = lw.loops.assemble(mech, guess).required()
    else:
        mech, q = linkage(name)
    v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
    return mech, q, v, rng.standard_normal(mech.nv)


def difference(of: Any) -> Array:
    parts = [w * (of(i * H) - of(-i * H)) for i, w in WEIGHTS.items()]
    return sum(parts[1:], parts[0]) / H


def jacobian(mech: lw.Mechanism, q: Array) -> Array:
    """J_c by differences of the errors of loops and couplings."""
    columns = [
        difference(lambda t, u=unit: lw.loops.constraint_error(mech, mech.integrate(q, u, t)))
        for unit in np.eye(mech.nv)
    ]
    return np.stack(columns, axis=1)


def dense(mech: lw.Mechanism, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """v̇, J_c* λ and J̇_c v by the dense system."""
    tree = tree_of(mech)
    J = jacobian(mech, q)
    rate = difference(lambda t: jacobian(mech, mech.integrate(q, v, t)) @ v)
    n, m = mech.nv, len(J)
    system = np.zeros((n + m, n + m))
    system[:n, :n], system[:n, n:], system[n:, :n] = lw.mass_matrix(tree, q), -J.T, J
    right = np.concatenate([tau - lw.bias_force(tree, q, v), -rate])
    scale = 1.0 / np.sqrt(np.maximum(np.abs(system).max(axis=1), 1e-3))
    result = np.linalg.lstsq(scale[:, None] * system * scale, scale * right, rcond=1e-9)[0] * scale
    return result[:n], J.T @ result[n:], rate


def close(result: Array, expected: Array, part: float = 1e-7) -> None:
    size = float(np.abs(expected).max())
    assert size > 1e-3, "the test compares nothing"
    np.testing.assert_allclose(result, expected, rtol=0.0, atol=part * size)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_forward_dynamics_is_that_of_the_dense_system(name: str) -> None:
    mech, q, v, tau = case(name)
    expected, _, _ = dense(mech, q, v, tau)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    close(vdot, expected)
    np.testing.assert_array_equal(vdot, lw.forward_dynamics(mech, q, v, tau))
    opened = lw.forward_dynamics(mech, q, v, tau, loops="open")
    np.testing.assert_array_equal(opened, lw.forward_dynamics(tree_of(mech), q, v, tau))
    assert np.abs(opened - vdot).max() > 1e-2 * np.abs(vdot).max()


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_forces_at_nodes_batches_and_outputs(name: str) -> None:
    mech, q, v, tau = case(name)
    node = mech.bodies[-1].name
    wrench = np.random.default_rng(2).standard_normal(6)
    push = wrench @ lw.jacobian(mech, q, node)
    expected, _, _ = dense(mech, q, v, tau + push)
    close(lw.forward_dynamics(mech, q, v, tau, forces={node: wrench}), expected)
    alone = lw.forward_dynamics(mech, q, v, tau)
    correction = lw.papers.tip_force_correction(mech, q, {node: wrench})
    np.testing.assert_allclose(
        alone + correction, expected, rtol=0.0, atol=1e-7 * np.abs(expected).max()
    )
    out, codes = np.zeros((2, mech.nv)), np.ones(2, np.int32)
    both = np.array([v, 0.0 * v])
    got = lw.forward_dynamics(mech, q, both, tau, out=out, status=codes, threads=1)
    assert got is out and not codes.any()
    np.testing.assert_allclose(out[0], alone, rtol=0.0, atol=1e-12 * np.abs(alone).max())
    np.testing.assert_allclose(
        out[1], dense(mech, q, 0.0 * v, tau)[0], rtol=0.0, atol=1e-7 * np.abs(out).max()
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_inverse_dynamics_gives_the_forces_of_a_motion_that_loops_allow(name: str) -> None:
    mech, q, v, tau = case(name)
    vdot, carried, _ = dense(mech, q, v, tau)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    result = lw.inverse_dynamics(mech, q, v, vdot)
    close(result, tau + carried, 1e-6)  # all of it from the hinges, nothing from the loops
    close(lw.forward_dynamics(mech, q, v, result), vdot)
    np.testing.assert_array_equal(result, lw.inverse_dynamics(tree_of(mech), q, v, vdot))


@pytest.mark.parametrize("name", CASES)
def test_accelerations_that_break_loops_have_no_forces(name: str) -> None:
    mech, q, v, tau = case(name)
    free = lw.forward_dynamics(mech, q, v, tau, loops="open")
    with pytest.raises(lw.ClosureError, match=r'vdot breaks .* by .*loops="open"'):
        lw.inverse_dynamics(mech, q, v, free)
    np.testing.assert_allclose(
        lw.inverse_dynamics(mech, q, v, free, loops="open"), tau, rtol=0.0, atol=1e-9
    )
    held = lw.forward_dynamics(mech, q, v, tau)
    codes, rows = np.zeros(2, np.int32), np.array([held, free])
    result = lw.inverse_dynamics(mech, q, v, rows, status=codes)
    assert codes.tolist() == [0, status.broken(mech)]
    assert np.isnan(result[1]).all() and np.isfinite(result[0]).all()
    with pytest.warns(TroubleWarning, match="1 of 2 states .* break loops or couplings"):
        lw.inverse_dynamics(mech, q, v, rows)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", QUICK)
def test_hybrid_dynamics_holds_them(name: str) -> None:
    mech, q, v, tau = case(name)
    moving = [body.hinge_name for body in mech.bodies if body.hinge.nv]
    held = lw.forward_dynamics(mech, q, v, tau)
    chosen = [moving[-1]]
    motion = lw.hybrid_dynamics(mech, q, v, tau=tau, vdot=held, prescribed=chosen)
    close(motion.vdot, held)
    close(dense(mech, q, v, motion.tau)[0], held)
    wrong = held + np.eye(mech.nv)[mech.v_slice(chosen[0])].sum(axis=0)
    try:
        other = lw.hybrid_dynamics(mech, q, v, tau=tau, vdot=wrong, prescribed=chosen)
    except lw.ClosureError:
        pytest.fail("one hinge can be moved by another acceleration")
    close(dense(mech, q, v, other.tau)[0], other.vdot)
    at = mech.v_slice(chosen[0])
    np.testing.assert_allclose(other.vdot[at], wrong[at], rtol=0.0, atol=1e-9)
    free = lw.forward_dynamics(mech, q, v, tau, loops="open")
    with pytest.raises(lw.ClosureError, match="vdot breaks"):
        lw.hybrid_dynamics(mech, q, v, tau=tau, vdot=free, prescribed=moving)
    rows, codes = np.array([held, free]), np.zeros(2, np.int32)
    batch = lw.hybrid_dynamics(mech, q, v, tau=tau, vdot=rows, prescribed=moving, status=codes)
    assert codes.tolist() == [0, status.broken(mech)] and np.isnan(batch.tau[1]).all()
    close(batch.tau[0], lw.inverse_dynamics(mech, q, v, held))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_accelerations_of_bodies_and_forces_between_them(name: str) -> None:
    mech, q, v, tau = case(name)
    node = mech.bodies[-1].name
    vdot, _, _ = dense(mech, q, v, tau)
    J = lw.jacobian(mech, q, node, frame="world")
    rate = difference(lambda t: lw.jacobian(mech, mech.integrate(q, v, t), node, frame="world") @ v)
    close(lw.node_acceleration(mech, q, v, node, tau=tau, frame="world"), J @ vdot + rate)
    each = lw.dynamics.body_accelerations(mech, q, v, tau=tau)
    close(each, lw.dynamics.body_accelerations(mech, q, v, vdot=vdot))
    # What goes through a hinge, along it, is the joint force and what couplings add, less N v̇.
    through = lw.hinge_forces(mech, q, v, tau=tau)
    maps = [body.hinge.hinge_map(q[mech.q_slice(body.hinge_name)]) for body in mech.bodies]
    shifts = [body.outboard.shift for body in mech.bodies]
    along = np.concatenate(
        [np.atleast_2d(m @ s) @ f for m, s, f in zip(maps, shifts, through, strict=True)]
    )
    lam = lw.loops.constraint_forces(mech, q, v, tau)
    count = len(mech.couplings)
    added = lam[len(lam) - count :] @ lw.loops.constraint_jacobian(mech, q)[len(lam) - count :]
    close(along, tau + added - mech.armature * vdot, 1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", QUICK)
def test_tasks_and_operational_space_hold_them(name: str) -> None:
    mech, q, v, tau = case(name)
    node = {"floating": "bar", "four_bar": "coupler"}.get(name, mech.bodies[-1].name)
    task = lw.Task.position(node)
    space = lw.tasks.task_space(mech, q, task)
    basis = space.basis[:, : int(space.rank)]
    # The response of the node to a force along it, by the dense system.
    rest, _, _ = dense(mech, q, v, tau)
    push = space.jacobian.T @ basis[:, 0]
    pushed, _, _ = dense(mech, q, v, tau + push)
    close(space.inverse @ basis[:, 0], space.jacobian @ (pushed - rest), 1e-6)
    close(space.jacobian @ space.consistent_inverse @ basis, basis, 1e-6)
    expected = basis @ np.ones(basis.shape[1])
    torque = lw.tasks.task_torque(mech, q, v, task, expected, tau0=tau)
    vdot, _, _ = dense(mech, q, v, torque)
    got = basis.T @ (space.jacobian @ vdot + lw.tasks.task_bias(mech, q, v, task))
    close(got, basis.T @ expected, 1e-6)
    motion = lw.tasks.task_dynamics(mech, q, v, task)
    force = basis @ np.arange(1.0, 1.0 + basis.shape[1])
    vdot, _, _ = dense(mech, q, v, space.jacobian.T @ force)
    request = motion.inertia @ (space.jacobian @ vdot + motion.bias)
    close(basis.T @ (request + motion.coriolis + motion.gravity), basis.T @ force, 1e-6)
    world = lw.dynamics.operational_inertia_inverse(mech, q, node, frame="world")
    close(world[3:, 3:], space.inverse, 1e-9)
    open_space = lw.tasks.task_space(mech, q, task, loops="open")
    assert np.abs(open_space.inverse - space.inverse).max() > 1e-3 * np.abs(space.inverse).max()
    close(open_space.inverse, lw.tasks.task_space(tree_of(mech), q, task).inverse, 1e-12)
    assert lw.tasks.task_space(mech, np.zeros((0, mech.nq)), task).inverse.shape == (0, 3, 3)


# --------------------------------------------------------------------- the keyword, everywhere

HELD = {
    "Simulator",
    "body_accelerations",
    "effective_mass",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_second_derivatives",
    "hinge_forces",
    "hybrid_dynamics",
    "identify",
    "impact_estimate",
    "inertial_properties",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_second_derivatives",
    "linearize",
    "load_effect",
    "node_acceleration",
    "operational_inertia",
    "operational_inertia_inverse",
    "operational_space",
    "optimize",
    "regressor",
    "rollout",
    "simulate",
    "task_dynamics",
    "task_space",
    "task_torque",
    "tip_force_correction",
}
"""They hold loops and couplings, and have the keyword."""

REFUSING = {
    "MotionForceController",
    "TaskController",
    "control_law",
    "diagonal_dynamics",
    "lqr",
    "reduced_inertia",
    "smallest_mini",
    "task_dynamics_derivatives",
}
"""They have the keyword, and cannot hold them."""

ALWAYS = {
    # loops are what these are about
    "drive_forces",
    "constraint_forces",
    "holding_forces",
    "coordinate_dynamics",  # hands `loops` on to task_dynamics
}
"""They hold loops without a keyword."""

TERMS = {
    # terms of 𝓜 v̇ + C = τ + J_c* λ, the same whether λ is there or not
    "bias_force",
    "compensating_force",
    "coriolis_force",
    "coriolis_product",
    "equivalent_force",
    "gravity_force",
    "momentum_derivatives",  # of momentum, a sum over the bodies of the tree
    "passive_force",
    # changes of coordinates of the tree
    "diagonal_coriolis",
    "mass_matrix_inverse_product",  # the inverse of the matrix above
    "force_from_innovations",
    "independent_force",
    "innovations",
    # laws of joint control: with loops held, v̇ is the one nearest to what they ask for
    "computed_torque",
    "pd_gravity",
    "wen_bayard",
    "full_acceleration",
}
"""Nothing in them depends on loops."""

WORDS = ("accelerat", "joint force", "torque")


def functions() -> dict[str, Any]:
    places = (lw, lw.dynamics, lw.loops, lw.grasp, lw.tasks, lw.inertial, lw.papers, lw.simulation)
    result = {name: getattr(place, name) for place in places for name in place.__all__}
    errors = (BaseException, lw.Mechanism, lw.loops.Aggregate)  # which have loops by that name
    return {
        name: x
        for name, x in result.items()
        if callable(x) and not (inspect.isclass(x) and issubclass(x, errors))
    }


def has_loops(thing: Any) -> bool:
    return "loops" in inspect.signature(thing).parameters


def test_the_keyword_has_one_default() -> None:
    named = {name: x for name, x in functions().items() if has_loops(x)}
    assert set(named) == HELD | REFUSING
    for name, thing in named.items():
        given = inspect.signature(thing).parameters["loops"]
        assert given.default == "closed", name
        texts = [inspect.getdoc(x) or "" for x in (thing, getattr(thing, "__init__", None))]
        assert any("loops:" in text for text in texts), f"{name} does not document loops"


def test_every_function_of_accelerations_and_joint_forces_is_classified() -> None:
    """By its arguments, and by what it says that it returns."""
    missing = set[str]()
    for name, thing in functions().items():
        if inspect.isclass(thing):
            continue
        parameters = inspect.signature(thing).parameters
        takes = {"tau", "vdot", "vdot_d", "acceleration"} & set(parameters)
        returned = (inspect.getdoc(thing) or "").partition("Returns:")[2].partition("Raises:")[0]
        gives = any(word in returned.lower() for word in WORDS)
        if (takes or gives) and "mech" in parameters:
            missing.add(name)
    assert missing - (HELD | REFUSING | ALWAYS | TERMS) == set()


@pytest.mark.few(4)
@pytest.mark.parametrize("name", sorted(REFUSING - {"MotionForceController"}))
def test_those_that_cannot_hold_them_raise(name: str) -> None:
    mech, q, v, tau = case("gripper")
    task = lw.Task.joints(mech.bodies[0].hinge_name)
    hand = lw.Task.position("left", "x")
    calls: dict[str, Any] = {
        "TaskController": lambda **k: lw.TaskController(mech, lw.tasks.Servo(task, 1.0, 1.0), **k),
        "control_law": lambda **k: lw.control_law(mech, task, **k),
        "diagonal_dynamics": lambda **k: lw.papers.diagonal_dynamics(mech, q, v, tau, **k),
        "lqr": lambda **k: lw.lqr(mech, q, Q=np.eye(2 * mech.nv), R=np.eye(mech.nv), **k),
        "reduced_inertia": lambda **k: lw.papers.reduced_inertia(mech, q, hand, split="left", **k),
        "smallest_mini": lambda **k: lw.papers.smallest_mini(mech, q, hand, **k),
        "task_dynamics_derivatives": lambda **k: lw.tasks.task_dynamics_derivatives(
            mech, q, v, hand, **k
        ),
    }
    with pytest.raises(
        ModelError, match=rf"lw\.(\w+\.)?{name} .*mimic.* cannot hold.*loops=\"open\""
    ):
        calls[name]()
    if name != "reduced_inertia":  # that a mini cannot do the task is another matter
        calls[name](loops="open")


def test_a_word_that_is_none_is_told() -> None:
    mech, q, v, tau = case("four_bar")
    for function in (lw.forward_dynamics, lw.inverse_dynamics):
        with pytest.raises(ModelError, match="loops is 'shut'; it must be 'closed'"):
            function(mech, q, v, tau, loops="shut")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="loops is 'shut'"):
        lw.simulate(mech, q, duration=0.1, loops="shut")  # type: ignore[arg-type]


def test_algorithms_of_trees_are_refused() -> None:
    mech, q, v, tau = case("four_bar")
    with pytest.raises(ModelError, match=r"method='FD3'.*loops=\"open\""):
        lw.forward_dynamics(mech, q, v, tau, method="FD3")
    with pytest.raises(ModelError, match=r"kernel of forward_dynamics.*tree_of"):
        lw.dynamics.kernel(mech, "forward_dynamics")


def test_a_simulation_with_open_loops_is_that_of_the_tree() -> None:
    mech, q, v, _ = case("four_bar")
    opened = lw.simulate(mech, q, v, duration=0.05, loops="open")
    tree = lw.simulate(tree_of(mech), q, v, duration=0.05)
    held = lw.simulate(mech, q, v, duration=0.05)
    np.testing.assert_array_equal(opened.q, tree.q)
    assert np.abs(opened.q[-1] - held.q[-1]).max() > 1e-3
