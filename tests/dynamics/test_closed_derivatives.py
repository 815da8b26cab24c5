"""Derivatives of closed chains: against differences, Pinocchio, and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import JOINT, bias, mass, vector
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status
from linkwise.dynamics.closure import closed_expression
from linkwise.dynamics.derivative_formula import FORWARD_DERIVATIVES
from linkwise.model.closure import closure_nodes
from linkwise.sweeps.interpret import run
from tests.cases import close, state
from tests.codegen.test_c import compiled
from tests.dynamics.test_derivatives import differences
from tests.loops.embedding_cases import coupled_tree
from tests.loops.pinocchio_loops import SETTINGS, loops_in_pinocchio
from tests.loops.random_loops import LIGHT, looped, null_space
from tests.loops.test_singular_loops import bars, flat

CASES = {
    "ground": lambda: looped(5, ("locked",), n=4, hinges=LIGHT, ground=True),
    "four-bar": lambda: (lw.models.four_bar(), lw.models.four_bar().neutral()),
    "couplings": lambda: looped(
        4, ("spherical",), n=7, couplings=2, hinges=("pin", "prismatic", "gimbal")
    ),
    "several": lambda: looped(12, ("universal", "planar"), n=5, hinges=LIGHT),
}


def moving(mech, q, seed=1):
    """Velocities that keep the loops closed, and joint forces."""
    rng = np.random.default_rng(seed)
    J_c = lw.loops.constraint_jacobian(mech, q)
    v = rng.standard_normal(mech.nv)
    return v - np.linalg.pinv(J_c, rcond=1e-9) @ J_c @ v, rng.standard_normal(mech.nv)


@pytest.mark.parametrize(
    "name",
    ["four-bar", *(pytest.param(x, marks=pytest.mark.prove) for x in CASES if x != "four-bar")],
)
def test_differences(name):
    mech, q = CASES[name]()
    v, tau = moving(mech, q)
    ours = lw.forward_dynamics_derivatives(mech, q, v, tau)
    at = {
        "q": lambda d: lw.forward_dynamics(mech, mech.integrate(q, d), v, tau),
        "v": lambda d: lw.forward_dynamics(mech, q, v + d, tau),
        "tau": lambda d: lw.forward_dynamics(mech, q, v, tau + d),
    }
    for x, function in at.items():
        expected = differences(function, mech)
        assert np.abs(expected).max() > 0.1
        close(getattr(ours, x), expected, 1e-8)
    again = lw.forward_dynamics_derivatives(mech, q, v, tau)  # the bare call
    assert all(np.array_equal(x, y) for x, y in zip(ours, again, strict=True))
    model = lw.linearize(mech, q, v, tau, passive=False)
    close(model.A[mech.nv :], np.hstack([ours.q, ours.v]), 1e-15)
    close(model.B[mech.nv :], ours.tau, 1e-15)


@pytest.mark.parametrize(
    "name, frame", [("four-bar", "world"), pytest.param("several", "node", marks=pytest.mark.prove)]
)
def test_forces_at_nodes(name, frame):
    mech, q = CASES[name]()
    v, tau = moving(mech, q)
    force = {mech.bodies[-1].name: np.array([1.0, -2.0, 3.0, 9.0, 5.0, -7.0])}
    given = {"forces": force, "forces_frame": frame}
    ours = lw.forward_dynamics_derivatives(mech, q, v, tau, **given)
    for part, move in (
        (ours.q, lambda d: (mech.integrate(q, d), v)),
        (ours.v, lambda d: (q, v + d)),
    ):
        expected = differences(
            lambda d, move=move: lw.forward_dynamics(mech, *move(d), tau, **given), mech
        )
        close(part, expected, 1e-8)
    assert np.abs(lw.forward_dynamics_derivatives(mech, q, v, tau).q - ours.q).max() > 0.1
    model = lw.linearize(mech, q, v, tau, out=lw.linearize(mech, q, v, tau), **given, passive=False)
    assert np.array_equal(model.A[mech.nv :], np.hstack(ours[:2]))
    vdot = lw.forward_dynamics(mech, q, v, tau, **given)
    there = lw.inverse_dynamics_derivatives(mech, q, v, vdot, **given)
    expected = differences(
        lambda d: lw.inverse_dynamics(mech, mech.integrate(q, d), v, vdot, loops="open", **given),
        mech,
    )
    close(there.q, expected, 1e-9)


def test_inverse_dynamics():
    """Of the joint forces with which loops carry no load, for accelerations that are possible."""
    mech, q = CASES["ground"]()
    v, tau = moving(mech, q)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    ours = lw.inverse_dynamics_derivatives(mech, q, v, vdot)
    tree = lw.inverse_dynamics_derivatives(mech, q, v, vdot, loops="open")
    assert all(np.array_equal(x, y) for x, y in zip(ours, tree, strict=True))
    with pytest.raises(lw.errors.ClosureError, match="vdot breaks 'locked_0"):
        lw.inverse_dynamics_derivatives(mech, q, v, vdot + 1.0)
    codes = np.zeros(2, np.int32)
    pair = lw.inverse_dynamics_derivatives(mech, q, v, [vdot, vdot + 1.0], status=codes)
    assert codes.tolist() == [0, status.broken(mech)]
    close(pair.q[0], ours.q, 1e-12)
    assert all(np.isnan(x[1]).all() for x in pair)


def test_singular_states_and_batches():
    """Singular states have a code and no numbers; the others of a batch are right."""
    mech = bars(2.0, 1.0, 2.0, 1.0)
    still, tau = np.zeros(3), np.ones(3)
    q = np.stack([flat(0.3), flat(0.0), flat(0.4)])
    codes = np.zeros(3, np.int32)
    every = lw.forward_dynamics_derivatives(mech, q, still, tau, status=codes)
    assert codes.tolist() == [0, status.singular(mech), 0]
    assert np.isnan(every.q[1]).all()
    for i in (0, 2):
        one = lw.forward_dynamics_derivatives(mech, q[i], still, tau)
        close(every.q[i], one.q, 1e-12)
    with pytest.raises(lw.errors.ClosureError, match="singular here"):
        lw.forward_dynamics_derivatives(mech, flat(0.0), still, tau)
    with pytest.warns(lw.errors.TroubleWarning, match="1 of 3 states"):
        lw.linearize(mech, q, still, tau)


@pytest.mark.parametrize(
    "name",
    [
        "four-bar",
        pytest.param("ground", marks=pytest.mark.prove),
        pytest.param("several", marks=pytest.mark.nightly),
    ],
)
def test_second_derivatives(name):
    """Against differences of the first, with loops held."""
    mech, q = CASES[name]()
    v, tau = moving(mech, q)
    ours = lw.dynamics.forward_dynamics_second_derivatives(mech, q, v, tau)
    for i, part in enumerate(("qq", "vq", "tauq")):
        expected = differences(
            lambda d, i=i: lw.forward_dynamics_derivatives(mech, mech.integrate(q, d), v, tau)[i],
            mech,
        )
        close(getattr(ours, part), expected, 1e-9)
    expected = differences(lambda d: lw.forward_dynamics_derivatives(mech, q, v + d, tau).v, mech)
    close(ours.vv, expected, 1e-8)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    there = lw.dynamics.inverse_dynamics_second_derivatives(mech, q, v, vdot)
    tree = lw.dynamics.inverse_dynamics_second_derivatives(mech, q, v, vdot, loops="open")
    assert all(np.array_equal(x, y) for x, y in zip(there, tree, strict=True))
    with pytest.raises(lw.errors.ClosureError, match="vdot breaks"):
        lw.dynamics.inverse_dynamics_second_derivatives(mech, q, v, vdot + 1.0)


def test_second_derivatives_of_singular_states():
    mech = bars(2.0, 1.0, 2.0, 1.0)
    q, still, tau = np.stack([flat(0.3), flat(0.0)]), np.zeros(3), np.ones(3)
    codes = np.zeros(2, np.int32)
    every = lw.dynamics.forward_dynamics_second_derivatives(mech, q, still, tau, status=codes)
    assert codes.tolist() == [0, status.singular(mech)]
    assert np.isnan(every.qq[1]).all()
    one = lw.dynamics.forward_dynamics_second_derivatives(mech, q[0], still, tau)
    close(every.qq[0], one.qq, 1e-12)
    with pytest.raises(lw.errors.ClosureError, match="singular here"):
        lw.dynamics.forward_dynamics_second_derivatives(mech, q[1], still, tau)
    with pytest.warns(lw.errors.TroubleWarning, match="1 of 2 states"):
        lw.dynamics.forward_dynamics_second_derivatives(mech, q, still, tau)


def test_rows_that_depend_only_while_closed():
    """Three parallel cranks: no derivative exists by the angle of a single one."""
    b = lw.Builder("three cranks")
    rod, pin = lw.SpatialInertia.solid_cylinder(1.0, 0.02, 0.3), lw.hinges.Pin((0, 1, 0))
    b.body("first", hinge=pin, inertia=rod)
    b.body("bar", "first", pin, inboard=(0, 0, 0.3), inertia=rod)
    for name, x in (("second", 0.4), ("third", 0.8)):
        b.body(name, hinge=pin, inboard=(x, 0, 0), inertia=rod)
        b.node(f"{name} end", name, (0, 0, 0.3))
        b.node(f"bar at {name}", "bar", (x, 0, 0))
        b.loop(name, f"bar at {name}", f"{name} end", pin)
    mech = b.build()
    q, v = np.array([0.4, -0.4, 0.4, 0.4]), np.array([0.5, -0.5, 0.5, 0.5])
    tau = np.array([1.0, 0.0, 0.5, 0.0])
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-12
    with pytest.raises(lw.errors.ClosureError, match=r"no derivatives by single.*lw\.loops\.embed"):
        lw.forward_dynamics_derivatives(mech, q, v, tau)


def coupled():
    """A tree with couplings, in a state in which they hold."""
    mech = coupled_tree(3, 5)
    q = lw.loops.project_position(mech, mech.random(seed=1)).required()
    return mech, q


@pytest.mark.parametrize(
    "case", [CASES["four-bar"], pytest.param(coupled, marks=pytest.mark.prove)]
)
def test_embedded(case):
    """Loops built in: the same motion, along displacements that keep them closed."""
    mech, q = case()
    tree, rng = lw.loops.embed(mech), np.random.default_rng(2)
    n, chosen = mech.nv, tree.independent
    u, tau = rng.standard_normal((2, tree.nv))
    X = np.stack([lw.loops.full_velocity(tree, q, e) for e in np.eye(tree.nv)], axis=-1)
    v, force = X @ u, np.zeros(n)
    force[chosen] = tau  # 𝒳* τ stays what it is
    J_c = lw.loops.constraint_jacobian(mech, q)
    rate = differences(lambda d: lw.loops.constraint_jacobian(mech, mech.integrate(q, d)) @ v, mech)
    held = lw.forward_dynamics_derivatives(mech, q, v, force)
    # δv of δq = 𝒳 δ, with u held: J_c δv + δ(J_c v) = 0, and no change of u
    rows = np.vstack([J_c, np.eye(n)[chosen]])
    change = np.vstack([-rate @ X, np.zeros((tree.nv, tree.nv))])
    turn = np.linalg.lstsq(rows, change, rcond=None)[0]
    assert np.abs(rows @ turn - change).max() < 1e-9
    ours = lw.forward_dynamics_derivatives(tree, q, u, tau)
    close(ours.q, (held.q @ X + held.v @ turn)[chosen], 1e-8)
    close(ours.v, (held.v @ X)[chosen], 1e-8)
    close(ours.tau, held.tau[np.ix_(chosen, chosen)], 1e-9)
    there = lw.inverse_dynamics_derivatives(tree, q, u, lw.forward_dynamics(tree, q, u, tau))
    close(there.vdot @ ours.q, -there.q, 1e-8)
    close(there.vdot @ ours.v, -there.v, 1e-8)
    gradient = lw.compile(lw.vjp(mass.inv @ (lw.algebra.tau - bias), "q"), tree)
    weight = rng.standard_normal(tree.nv)
    close(gradient(q, u, tau, weight)["q"], weight @ ours.q, 1e-10)


def test_c_and_single_precision(tmp_path):
    """The same kernel as C, which reports singular loops by a code, and in float32."""
    mech, q = CASES["four-bar"]()
    v, tau = moving(mech, q)
    formula = Formula(FORWARD_DERIVATIVES.write, ("", 2), FORWARD_DERIVATIVES.names)
    expected = lw.compile(formula, mech)(q, v, tau)
    source = lw.compile(formula, mech, target="c")
    assert "the loops are singular here" in source.header
    ours = compiled(tmp_path, source)
    assert ours.selftest() == 0
    code, flat = ours((q, v, tau), source.shape)
    close(np.ravel(flat)[:9].reshape(3, 3), expected["q"], 1e-11)
    assert not code
    single = lw.compile(formula, mech, dtype=np.float32)(*(x.astype("f4") for x in (q, v, tau)))
    close(single["q"], expected["q"], 1e-4)


def test_open_on_request():
    mech = lw.models.four_bar()
    q, v, x = state(mech)
    ours = lw.inverse_dynamics_derivatives(mech, q, v, x, loops="open")
    close(ours.vdot, lw.mass_matrix(mech, q), 1e-14)
    close(lw.linearize(mech, q, v, x, loops="open").B[3:], np.linalg.inv(ours.vdot), 1e-10)


TREE = ("pin", "prismatic", "spherical")
BOTH = [("locked", False), ("spherical", True)]
"""Welds between bodies, and balls on the ground."""


@pytest.mark.oracle
@pytest.mark.prove
@pytest.mark.parametrize("kind, seed, ground", [("locked", 5, False), ("spherical", 2, True)])
def test_pinocchio(kind, seed, ground):
    """Welds between bodies, and balls on the ground.

    Of a ball between two moving bodies its derivatives are not those of its own
    `constraintDynamics`, by differences of which ours are confirmed to 2e-10.
    """
    mech, q, v, tau = in_motion(kind, seed, ground, 7)
    vdot, by_tau, ways, expected = by_pinocchio(mech, q, v, tau)
    close(lw.forward_dynamics(mech, q, v, tau), vdot, 1e-12)
    ours = lw.forward_dynamics_derivatives(mech, q, v, tau)
    close(ours.tau, by_tau, 1e-12)
    close(np.hstack(ours[:2]) @ ways, expected, 1e-10)


CHAINS = [(kind, seed, ground) for kind, ground in BOTH for seed in range(12)]


@pytest.mark.oracle
@pytest.mark.prove
@pytest.mark.parametrize("kind, seed, ground", CHAINS)
def test_random_chains_in_pinocchio(kind, seed, ground):
    """By sweeps of the algebraic derivative, so that none is compiled."""
    mech, q, v, tau = in_motion(kind, independent(kind, seed, ground), ground, 5 + seed % 4)
    vdot, by_tau, ways, expected = by_pinocchio(mech, q, v, tau)
    dynamics, nodes = closed_expression(mech, "forward_dynamics"), closure_nodes(mech)
    u, n = vector("u", JOINT), mech.nv

    def value(expr, **values) -> np.ndarray:
        return run(lw.plan(expr), mech, q, v, nodes=nodes, values={"tau": tau, **values})

    def derivative(wrt: str, way) -> np.ndarray:
        return value(lw.differentiate(dynamics, wrt) @ u, u=way)

    close(value(dynamics), vdot, 1e-9)

    rng = np.random.default_rng(seed)
    size = float(np.abs(expected).max())
    assert ways.shape[1] > 0
    mixed = rng.standard_normal(ways.shape[1])
    way = ways @ mixed
    result = derivative("q", way[:n]) + derivative("v", way[n:])
    close(result, expected @ mixed, 1e-9, size)
    way = rng.standard_normal(n)
    close(derivative("tau", way), by_tau @ way, 1e-9, float(np.abs(by_tau).max()))


def independent(kind: str, seed: int, ground: bool) -> int:
    """The next draw whose loop has rows far from depending on each other, as Pinocchio needs."""
    for draw in range(1000 * seed, 1000 * seed + 1000):
        mech, q = looped(draw, (kind,), n=5 + seed % 4, hinges=TREE, ground=ground)
        values = np.linalg.svd(lw.loops.constraint_jacobian(mech, q), compute_uv=False)
        if len(values) == mech.loops[0].rows < mech.nv and values[-1] > 0.05 * values[0]:
            return draw
    raise AssertionError("no such draw")


def in_motion(kind: str, seed: int, ground: bool, n: int):
    """A mechanism with a loop that holds, in a state that keeps it."""
    mech, q = looped(seed, (kind,), n=n, hinges=TREE, ground=ground)
    return mech, q, *moving(mech, q)


def by_pinocchio(mech: lw.Mechanism, q, v, tau):
    """Its derivatives by τ; and along motions (2 nv, m) that keep loops closed, by q and v.

    How open loops accelerate is a convention.
    """
    import pinocchio as pin

    it = loops_in_pinocchio(mech, q, v, tau)
    vdot = it.vdot()
    theirs = pin.computeConstraintDynamicsDerivatives(
        it.model, it.data, it.constraints, it.work, pin.ProximalSettings(*SETTINGS)
    )
    theirs = [it.T.T @ x @ it.T for x in theirs[:3]]
    J_c, n = lw.loops.constraint_jacobian(mech, q), mech.nv
    rate = differences(lambda d: lw.loops.constraint_jacobian(mech, mech.integrate(q, d)) @ v, mech)
    closed = null_space(np.block([[J_c, np.zeros_like(J_c)], [rate, J_c]]), 2 * len(J_c))
    assert closed.shape[1] == 2 * (n - len(J_c))
    return vdot, theirs[2], closed, np.hstack(theirs[:2]) @ closed


def test_steps_of_mechanisms_with_loops_built_in_are_refused():
    mech = lw.loops.embed(lw.models.four_bar())
    with pytest.raises(lw.ModelError, match=r"lw\.rollout makes no steps of it\. Use the"):
        lw.linearize(mech, mech.mech.neutral(), [0.0], [0.0], step=1e-3)
