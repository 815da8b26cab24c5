"""The expressions of closed chains: equal to what one would write, and the same on every rung."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import Q, Y, kappa
from linkwise.algebra.budget import Budget
from linkwise.algebra.dense import Dense
from linkwise.algebra.search import cheapest
from linkwise.algebra.space import JOINT
from linkwise.dynamics.closure import CLOSED, Setting
from linkwise.errors import LoweringError, ModelError, TroubleWarning
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.codegen.test_c import compiled
from tests.effort import at_most
from tests.loops.by_hand import BY_HAND

LOOPS, BOTH, COUPLINGS = Setting(), Setting(couplings=True), Setting(loops=False, couplings=True)
PUSHED = Setting(couplings=True, pushed="world", closing=True)
PROVED = [
    *((name, LOOPS) for name in BY_HAND),
    ("constraint_inertia_inverse", BOTH),
]
"""With couplings the words of forward dynamics are thousands: their rungs are compared below."""

HINGES = {
    "weld": lw.hinges.Locked(),
    "pin": lw.hinges.Pin((0.0, 0.6, 0.8)),
    "slider": lw.hinges.Prismatic((1.0, 0.0, 0.0)),
    "ball": lw.hinges.Spherical(),
    "universal": lw.hinges.Universal((1.0, 0.0, 0.0), (0.0, 0.6, 0.8)),
    "universal, seen from b": lw.hinges.Universal((1.0, 0.0, 0.0), (0.0, 0.6, 0.8)).reversed(),
    "planar": lw.hinges.Planar(),
    "helical": lw.hinges.Helical((0.0, 0.0, 1.0), 0.1),
    "gimbal": lw.hinges.Gimbal(),
    "two screws": lw.hinges.Screws([[0, 0, 1, 0, 0, 0], [0, 1, 0, 0.3, 0, 0]]),
}


def closed_tree(
    hinge: lw.hinges.Hinge, seed: int, *, ground: bool = False, chain: bool = False
) -> tuple[lw.Mechanism, Array]:
    """A random tree with a loop by a hinge, closed at the q that comes with it, and couplings.

    A chain whose ends are closed can move in its loop, whatever the hinge is.
    """
    rng = np.random.default_rng(seed)
    shape = {"branching": 0.0} if chain else {}
    tree = lw.models.random_tree(9, seed, hinges=("pin",), drives=False, **shape)
    q = 0.7 * rng.standard_normal(tree.nq)
    builder = lw.Builder("closed", gravity=(0.5, -1.0, -9.0))
    for body in tree.bodies:
        builder.body(
            body.name,
            body.parent,
            body.hinge,
            hinge_name=body.hinge_name,
            inboard=body.inboard,
            outboard=body.outboard,
            inertia=body.inertia,
            drive=lw.Drive(armature=0.1 if seed % 2 else 0.0),
        )
    start = tree.bodies[0 if chain else 3].name
    ends = ("world" if ground else start, tree.bodies[-1].name)
    free = np.full(hinge.nq, np.inf)
    theta = hinge.normalise(hinge.random(rng, -free, free))
    at_a = lw.Pose.rpy(rng.standard_normal(3), rng.standard_normal(3))
    builder.node("a", ends[0], at_a)
    from_b = (
        tree.pose(q, ends[1]).inverse() @ tree.pose(q, ends[0])
        if not ground
        else (tree.pose(q, ends[1]).inverse())
    )
    builder.node("b", ends[1], from_b @ at_a @ hinge.pose(theta))
    builder.loop("loop", "a", "b", hinge)
    names = [body.hinge_name for body in tree.bodies]
    for name, other in ((names[1], names[0]), (names[4], names[1])):
        follows, leads = (tree.q_slice(x).start for x in (name, other))
        slope, bend = 0.7, 0.2
        offset = q[follows] - slope * q[leads] - bend * q[leads] ** 2
        builder.couple(f"{name} follows", name, {other: (slope, bend)}, offset=float(offset))
    return builder.build(), q


def allowed(mech: lw.Mechanism, q: Array, seed: int) -> Array:
    """A velocity that the constraints allow."""
    v, J_c = mech.random_velocity(seed), lw.loops.constraint_jacobian(mech, q)
    return v - np.linalg.pinv(J_c, rcond=1e-10) @ (J_c @ v)


@pytest.mark.parametrize(("name", "setting"), PROVED, ids=str)
def test_what_was_derived_by_hand_is_equal(name: str, setting: Setting):
    proof = lw.prove(CLOSED[name](setting), BY_HAND[name](setting))
    assert proof.proved, proof.verdict


@pytest.mark.few(6)
@pytest.mark.parametrize("setting", [LOOPS, BOTH, COUPLINGS, PUSHED], ids=str)
@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_derived_costs_no_more_than_by_hand(name: str, setting: Setting):
    """X = (I - H ψ K) J_c* is found, shared by the inverse and by what stands around it."""
    derived = lw.derive(CLOSED[name](setting))
    assert cost(lower(derived.result)) <= cost(lower(BY_HAND[name](setting)))


@pytest.mark.parametrize(("setting", "most"), [(LOOPS, 9e5), (BOTH, 1.7e6)], ids=str)
def test_the_search_is_short(setting: Setting, most: float):
    """The first call on a mechanism with loops waits for it: counted in calls of functions."""
    expr = CLOSED["forward_dynamics"](setting)
    with at_most(most):
        result = cheapest(expr, lambda form: cost(lower(form)), Budget())
    assert result.result is lw.derive(expr).result


def test_three_passes_are_printed():
    program = lower(lw.derive(CLOSED["forward_dynamics"](Setting())).result)
    assert len(program.passes) == 3
    assert "for k = tips … base" in str(program)
    assert "\nκ = rate of Q" in str(program), "what belongs to no body stands between the loops"
    # Products with columns that are known are taken at once, over joints, without a recursion.
    at_once = [s for s in program.statements if s.special in ("gram", "spread")]
    assert [s.special for s in at_once] == ["gram", "gram", "spread"]
    assert all(x.rows == JOINT for s in at_once[:2] for x, _ in s.reads)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", HINGES)
@pytest.mark.parametrize("ground", [False, True], ids=["between bodies", "to the ground"])
def test_every_rung_agrees(kind: str, ground: bool):
    """Dense matrices, sweeps in NumPy and the compiled kernel, plain form and running form."""
    mech, q = closed_tree(HINGES[kind], seed=len(kind), ground=ground)
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-13
    v, tau = allowed(mech, q, 1), mech.random_velocity(2)
    values = {"tau": tau}
    nodes = lw.loops.closure_nodes(mech)
    dense = Dense(mech, q, v, nodes=nodes, values=values)
    compiled = {
        "constraint_jacobian": lw.loops.constraint_jacobian(mech, q),
        "constraint_bias": lw.loops.constraint_bias(mech, q, v),
        "constraint_inertia_inverse": lw.loops.constraint_inertia_inverse(mech, q),
        "forward_dynamics": lw.forward_dynamics(mech, q, v, tau),
    }
    # Forces of loops solve a system whose condition bounds what two ways to do so can share.
    eigenvalues = np.linalg.eigvalsh(compiled["constraint_inertia_inverse"])
    counted = eigenvalues[eigenvalues > 1e-12 * eigenvalues[-1]]  # others: dependent rows
    lost = max(1e-10, 10.0 * np.finfo(float).eps * float(counted[-1] / counted[0]))
    assert lost < 1e-8
    for name, result in compiled.items():
        plain, running = (lw.loops.closed_expression(mech, name, plain=x) for x in (True, False))
        expected = dense(plain)
        size = (1.0 + np.abs(expected).max()) * (
            lost / 1e-10 if name == "forward_dynamics" else 1.0
        )
        swept = run(lower(running), mech, q, v, nodes=nodes, values=values)
        if running != plain:
            np.testing.assert_allclose(dense(running), expected, atol=1e-10 * size)
        np.testing.assert_allclose(swept, expected, atol=1e-10 * size)
        np.testing.assert_allclose(result, expected, atol=1e-10 * size)


PLANE = lw.hinges.PointOnPlane(0.2, (0.6, 0.0, 0.8))
RATES = {**HINGES, "plane": PLANE, "plane, seen from b": PLANE.reversed()}


@pytest.mark.few(8)
@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("ground", [False, True], ids=["between bodies", "to the ground"])
def test_rates_are_rates(kind: str, ground: bool):
    """J_c v is the rate of the error, J̇_c v that of J_c v, by central differences."""
    mech, q = closed_tree(RATES[kind], seed=10, ground=ground, chain=True)
    v, step = allowed(mech, q, 1), 1e-5
    v = v / np.abs(v).max()
    ahead, behind = (mech.integrate(q, v, s) for s in (step, -step))
    away = mech.random_velocity(4)  # any direction: the error grows with J_c v
    far, near = (lw.loops.constraint_error(mech, mech.integrate(q, away, s)) for s in (step, -step))
    J_c = lw.loops.constraint_jacobian(mech, q)
    assert np.abs(J_c @ away).max() > 0.1, "something opens"
    np.testing.assert_allclose((far - near) / (2.0 * step), J_c @ away, atol=2e-7)
    change = (
        lw.loops.constraint_jacobian(mech, ahead) @ v
        - lw.loops.constraint_jacobian(mech, behind) @ v
    )
    bias = lw.loops.constraint_bias(mech, q, v)
    rows = slice(0, mech.loops[0].rows), slice(mech.loops[0].rows, None)
    for part in rows:  # of the loop, and of the couplings
        assert np.abs(bias[part]).max() > 1e-2, "what moves in the loop bends"
    np.testing.assert_allclose(change / (2.0 * step), bias, atol=1e-7 * (1.0 + np.abs(bias).max()))


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "axes"), [("pin", "node"), ("two screws", "world")])
def test_dynamics_obeys_newton_and_the_constraints(kind: str, axes: str):
    """𝓜 v̇ + C = τ + J_c* λ + J* f and J_c v̇ + γ = closing, with forces from outside."""
    mech, q = closed_tree(HINGES[kind], seed=5)
    v, tau = allowed(mech, q, 1), mech.random_velocity(2)
    rng = np.random.default_rng(0)
    node, force = mech.bodies[5].name, rng.standard_normal(6)
    closing = lw.loops.constraint_jacobian(mech, q) @ rng.standard_normal(mech.nv)
    request = {"forces": {node: force}, "forces_frame": axes, "closing": closing}
    vdot = lw.forward_dynamics(mech, q, v, tau, **request)
    lam = lw.loops.constraint_forces(mech, q, v, tau, **request)
    J_c, J = lw.loops.constraint_jacobian(mech, q), lw.jacobian(mech, q, node, frame=axes)
    mass = lw.mass_matrix(mech, q)
    left = mass @ vdot + lw.bias_force(mech, q, v) - tau - J_c.T @ lam - J.T @ force
    assert np.abs(left).max() < 1e-9 * (1.0 + np.abs(mass @ vdot).max())
    missed = J_c @ vdot + lw.loops.constraint_bias(mech, q, v) - closing
    assert np.abs(missed).max() < 1e-9 * (1.0 + np.abs(vdot).max())


@pytest.mark.prove
def test_batches_and_single_states_agree():
    mech, q = closed_tree(HINGES["two screws"], seed=2)
    states = np.stack([mech.integrate(q, allowed(mech, q, s), 1e-3) for s in range(5)])
    v = np.stack([allowed(mech, x, i) for i, x in enumerate(states)])
    tau = np.stack([mech.random_velocity(i) for i in range(5)])
    together = lw.forward_dynamics(mech, states, v, tau)
    one_by_one = [lw.forward_dynamics(mech, *x) for x in zip(states, v, tau, strict=True)]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12, atol=1e-12)
    forces = lw.loops.constraint_forces(mech, states, v, tau)
    singly = [lw.loops.constraint_forces(mech, *x) for x in zip(states, v, tau, strict=True)]
    np.testing.assert_allclose(forces, singly, rtol=1e-9, atol=1e-9)


@pytest.mark.prove
def test_redundant_rows_change_nothing():
    """Each loop twice: accelerations stay, forces are shared, which has the least norm."""
    mech = lw.models.multi_arm(2)
    loops = [*mech.loops, *(lw.Loop(f"{x.name}_2", x.node_a, x.node_b) for x in mech.loops)]
    parts = (mech.bodies, mech.nodes, tuple(loops), mech.couplings)
    twice = lw.Mechanism(mech.name, *parts, gravity=mech.gravity)
    q = mech.neutral()
    v, tau = allowed(mech, q, 1), mech.random_velocity(2)
    once = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_allclose(
        lw.forward_dynamics(twice, q, v, tau),
        once,
        atol=1e-9 * np.abs(once).max(),
    )
    lam, shared = (lw.loops.constraint_forces(m, q, v, tau) for m in (mech, twice))
    np.testing.assert_allclose(shared, 0.5 * np.tile(lam, 2), atol=1e-8 * np.abs(lam).max())


def test_a_planar_linkage_has_least_forces():
    """Of a four-bar's five rows two count: λ has no part that does nothing."""
    mech = lw.models.four_bar()
    q, tau = mech.neutral(), np.array([0.3, 0.0, 0.0])
    v = allowed(mech, q, 0)
    lam, J_c = lw.loops.constraint_forces(mech, q, v, tau), lw.loops.constraint_jacobian(mech, q)
    assert np.linalg.matrix_rank(J_c, tol=1e-9) == 2
    residual = lam - np.linalg.pinv(J_c.T, rcond=1e-9) @ J_c.T @ lam
    assert np.abs(residual).max() < 1e-12 * np.abs(lam).max()
    (force,) = lw.loops.loop_forces(mech, q, lam).values()
    assert np.abs(force[[0, 2, 4]]).max() < 1e-12 * np.abs(lam).max(), "it works in its plane"


def flat_parallelogram() -> lw.Mechanism:
    """Singular at q = 0; the axes of its loop's nodes lie across the bars."""
    pin, b = lw.hinges.Pin((0.0, 1.0, 0.0)), lw.Builder("parallelogram")
    rod = lw.SpatialInertia.solid_box(1.0, (0.5, 0.05, 0.05))
    across = lw.Pose.rpy((0.0, 0.25 * np.pi, 0.0))
    b.body("left", hinge=pin, inertia=rod)
    b.body("top", "left", pin, inboard=(0.5, 0.0, 0.0), inertia=rod)
    b.body("right", hinge=pin, inboard=(1.0, 0.0, 0.0), inertia=rod)
    b.node("a", "top", lw.Pose.translation((1.0, 0.0, 0.0)) @ across)
    b.node("b", "right", lw.Pose.translation((0.5, 0.0, 0.0)) @ across)
    return b.loop("bolt", "a", "b", pin).build()


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5])
def test_near_a_singularity_digits_go_with_the_square_of_the_condition(angle: float):
    """The motion q = θ (1, -1, 1) is known, so v̇ is that of one freedom."""
    mech, way = flat_parallelogram(), np.array([1.0, -1.0, 1.0])
    q, v, tau = angle * way, way, np.array([1.0, 0.3, 0.0])
    mass, force = lw.mass_matrix(mech, q), tau - lw.bias_force(mech, q, v)
    expected = way * (way @ force) / (way @ mass @ way)
    values = np.linalg.svd(lw.loops.constraint_jacobian(mech, q))[1]
    condition = values[0] / values[1]
    error = np.abs(lw.forward_dynamics(mech, q, v, tau) - expected).max()
    assert error < 1e-14 * condition**2 * np.abs(expected).max() + 1e-12


def test_bodies_without_mass_turn_by_their_rotors():
    """Two rotors of 0.1 kg m², the second twice as fast: 0.5 kg m² at the first."""
    b, rotor = lw.Builder("gears"), lw.Drive(armature=0.1)
    b.body("a", hinge=lw.hinges.Pin((0.0, 0.0, 1.0)), drive=rotor)
    b.body("b", hinge=lw.hinges.Pin((0.0, 0.0, 1.0)), inboard=(1.0, 0.0, 0.0), drive=rotor)
    mech = b.couple("gear", "b", {"a": 2.0}).build()
    state = (np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
    np.testing.assert_allclose(lw.forward_dynamics(mech, *state), [2.0, 4.0])


def test_a_bad_row_of_a_batch_leaves_the_others_alone():
    """For loops with a formula and for those whose directions come from coordinates."""
    for kind in ("pin", "two screws"):
        mech, q = closed_tree(HINGES[kind], seed=2)
        many, v = np.tile(q, (3, 1)), np.zeros((3, mech.nv))
        many[1, 0] = np.nan
        with pytest.warns(TroubleWarning):
            vdot = lw.forward_dynamics(mech, many, v, v)
        assert np.isnan(vdot[1]).all() and np.isfinite(vdot[[0, 2]]).all()


def test_without_constraints_it_is_forward_dynamics():
    mech = lw.models.puma560()
    q, v, tau = mech.random(0), mech.random_velocity(0), mech.random_velocity(1)
    free = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_array_equal(lw.forward_dynamics(mech, q, v, tau), free)
    assert lw.loops.constraint_forces(mech, q, v, tau).shape == (0,)
    assert lw.loops.constraint_jacobian(mech, q).shape == (0, mech.nv)
    assert lw.loops.constraint_inertia_inverse(mech, q).shape == (0, 0)
    assert (
        lw.loops.constraint_error(mech, q).shape
        == lw.loops.constraint_bias(mech, q, v).shape
        == (0,)
    )
    plain = lw.loops.closed_expression(mech, "forward_dynamics")
    assert plain == lw.dynamics.expression("forward_dynamics")
    with pytest.raises(ModelError, match="no loops and no couplings"):
        lw.loops.closed_expression(mech, "constraint_forces")


def test_a_screw_that_is_wound_has_more_than_one_turn():
    """A helical loop, three turns on: closed, and its angle is told."""
    hinge = lw.hinges.Helical((0.0, 0.0, 1.0), 0.1)
    b = lw.Builder("wound")
    b.body(
        "nut", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
    )
    b.node("thread", "world")
    b.loop("screw", "thread", "nut", hinge)
    mech, angle = b.build(), 6.0 * np.pi + 0.4
    pose = hinge.pose(np.array([angle]))
    q = np.concatenate([quaternion.from_matrix(pose.rot), pose.p])
    assert np.abs(lw.loops.constraint_error(mech, q, per="loop")).max() < 1e-12
    np.testing.assert_allclose(lw.loops.loop_coordinates(mech, q)["screw"], [angle], rtol=1e-12)


def test_a_kernel_on_disk_belongs_to_its_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two mechanisms that differ in a coupling, or in the hinge of a loop, only."""
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    for change in ("coupling", "hinge"):
        mech, q = closed_tree(HINGES["pin"], seed=1)
        lw.loops.constraint_jacobian(mech, q)
        couplings, loops = mech.couplings, mech.loops
        if change == "coupling":
            couplings = couplings[:1]
        else:
            loops = (lw.Loop("loop", "a", "b", lw.hinges.Pin((1.0, 0.0, 0.0))),)
        other = lw.Mechanism(mech.name, mech.bodies, mech.nodes, loops, couplings)
        dense = Dense(other, q, nodes=lw.loops.closure_nodes(other))
        expected = dense(lw.loops.closed_expression(other, "constraint_jacobian"))
        np.testing.assert_allclose(lw.loops.constraint_jacobian(other, q), expected, atol=1e-12)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_code_of_a_closed_chain_runs(tmp_path: Path):
    mech = lw.models.four_bar()
    expr = lw.loops.closed_expression(mech, "forward_dynamics", plain=False)
    made = lw.compile(expr, mech, nodes=lw.loops.closure_nodes(mech), target="c", derive=False)
    q = mech.neutral()
    v, tau = allowed(mech, q, 1), np.array([0.2, 0.0, -0.1])
    code, result = compiled(tmp_path, made)((q, v, tau), (mech.nv,))
    assert code == 0
    np.testing.assert_allclose(result, lw.forward_dynamics(mech, q, v, tau), rtol=1e-12)


def test_what_is_refused():
    mech = lw.models.multi_arm(2)
    q = mech.neutral()
    with pytest.raises(ModelError, match="have to come first"):
        Dense(mech, q, nodes=("object",))(Q)
    with pytest.raises(LoweringError, match="no loops over bodies"):
        lw.compile(Q @ lw.algebra.J, mech, nodes=lw.loops.closure_nodes(mech), rolled=True)
    with pytest.raises(lw.ShapeError, match="a number for each of"):
        lw.forward_dynamics(mech, q, 0 * q[:20], 0 * q[:20], closing=np.zeros(3))
    with pytest.raises(lw.ModelError, match="no node or body called"):
        lw.forward_dynamics(
            mech, q, np.zeros(mech.nv), np.zeros(mech.nv), forces={"nobody": np.zeros(6)}
        )
    assert Y.range is Q.range is kappa.range
