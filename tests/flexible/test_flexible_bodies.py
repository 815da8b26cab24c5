"""Mechanisms with flexible bodies: dense = interpreter = kernels, and each lump as its own body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, M, N, P, R, b, bias, mass, phi, psi, vdot
from linkwise.algebra.dense import Dense
from linkwise.model.body import Lump
from linkwise.model.lumps import wires
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.codegen.test_c import compiled
from tests.flexible.cases import apart, inertia as part, mechanism, node, place

SEEDS = (0, 1)
EXACT = 1e-12


def state(seed):
    mech = mechanism(seed, base=lw.hinges.Free() if seed else None)
    rng = np.random.default_rng(seed + 100)
    return mech, mech.random(rng), mech.random_velocity(rng), mech.random_velocity(rng)


def same(value, reference, tolerance=EXACT):
    np.testing.assert_allclose(value, reference, rtol=0.0, atol=tolerance * np.abs(reference).max())


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_equations_of_motion_are_those_of_separate_lumps(seed):
    mech, q, v_, vdot_ = state(seed)
    tree, X, q_all = apart(mech, q)
    inertia = X.T @ lw.mass_matrix(tree, q_all) @ X
    same(lw.mass_matrix(mech, q), inertia)
    tau = X.T @ lw.inverse_dynamics(tree, q_all, X @ v_, X @ vdot_)
    same(lw.inverse_dynamics(mech, q, v_, vdot_), tau)
    same(lw.forward_dynamics(mech, q, v_, tau), vdot_, 1e-10)
    jacobian = lw.jacobian(tree, q_all, "hand") @ X
    same(lw.jacobian(mech, q, "hand"), jacobian)
    yielding = jacobian @ np.linalg.solve(inertia, jacobian.T)
    same(lw.operational_inertia(mech, q, "hand"), np.linalg.inv(yielding), 1e-9)
    same(mech.total_mass, tree.total_mass)
    same(mech.center_of_mass(q), tree.center_of_mass(q_all))
    same(lw.center_of_mass(mech, q), tree.center_of_mass(q_all))
    same(lw.momentum(mech, q, v_), lw.momentum(tree, q_all, X @ v_))
    energies = [lw.energy(*x) for x in ((mech, q, v_), (tree, q_all, X @ v_))]
    same([energies[0].kinetic, energies[0].potential], [energies[1].kinetic, energies[1].potential])


def on_ground():
    """A flexible body and a hinge with a motor, both on the ground, and one hinge further out."""
    rng = np.random.default_rng(5)
    b = lw.Builder("on ground")
    b.body("shoulder", "world", lw.hinges.Pin((0, 1, 0)), inboard=place(rng), inertia=part(rng))
    b.motor("shoulder", part(rng), ratio=20.0, axis=(1, 2, 3), mount=place(rng))
    b.body("arm", "shoulder", lw.hinges.Spherical(), inboard=place(rng), inertia=part(rng))
    lumps = [Lump(node(rng, 2), part(rng)) for _ in range(2)]
    return b.body("beam", "world", node(rng, 2), inertia=part(rng), lumps=lumps).build()


def test_momentum_has_the_lumps_of_bodies_on_the_ground():
    mech = on_ground()
    q, v_ = mech.random(1), mech.random_velocity(2)
    tree, X, q_all = apart(mech, q)
    together, parts = lw.dynamics.whole_inertia(mech, q), lw.dynamics.whole_inertia(tree, q_all)
    same(together.com, parts.com)
    same(together.about_world, parts.about_world)
    rate = lw.momentum(mech, q, v_, what="bias", about="world")
    same(rate, lw.momentum(tree, q_all, X @ v_, what="bias", about="world"))
    same(lw.momentum(mech, q, what="matrix"), lw.momentum(tree, q_all, what="matrix") @ X)


@pytest.mark.few(11)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "expr",
    [mass, bias, M, phi, H, P, R, psi, H @ phi @ M @ phi.T @ b, N + H @ P @ H.T, mass.inv @ bias],
)
def test_dense_matrices_interpreter_and_kernels_agree(expr, seed):
    mech, q, v_, _ = state(seed)
    reference = Dense(mech, q, v_)(expr)
    tolerance = 1e-9 if expr in (psi, mass.inv @ bias) else EXACT
    same(run(lower(expr), mech, q, v_), reference, tolerance)
    kernel = lw.compile(expr, mech)
    given = {"q": q, "v": v_}
    same(kernel(*[given[name] for name in kernel.arguments]), reference, tolerance)


@pytest.mark.parametrize("wrt", ["q", "v"])
@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_are_those_of_separate_lumps(seed, wrt):
    mech, q, v_, vdot_ = state(seed)
    tree, X, q_all = apart(mech, q)
    expr = lw.differentiate(mass @ vdot + bias, wrt)
    reference = Dense(tree, q_all, X @ v_, values={"vdot": X @ vdot_})(expr)
    same(Dense(mech, q, v_, values={"vdot": vdot_})(expr), X.T @ reference @ X)
    same(run(lower(expr), mech, q, v_, values={"vdot": vdot_}), X.T @ reference @ X)


@pytest.mark.prove
def test_compiled_derivatives_are_those_of_dense_matrices():
    mech, q, v_, vdot_ = state(1)
    results = lw.inverse_dynamics_derivatives(mech, q, v_, vdot_)
    for wrt, result in zip("qv", results, strict=False):
        expr = lw.differentiate(mass @ vdot + bias, wrt)
        same(result, Dense(mech, q, v_, values={"vdot": vdot_})(expr))


def test_results_about_bodies_are_those_of_frames():
    mech, q, v_, _ = state(1)
    tree, X, q_all = apart(mech, q)
    frames = [tree.body_index[body.name] for body in mech.bodies]
    for function in (lw.dynamics.body_velocities, lw.dynamics.hinge_velocities):
        same(function(mech, q, v_), function(tree, q_all, X @ v_)[frames])
    same(lw.forward_kinematics(mech, q, "hand").matrix, tree.pose(q_all, "hand").matrix)


@pytest.mark.filterwarnings("ignore::linkwise.errors.BendingWarning")
def test_loops_are_held():
    mech = mechanism(3, loop=lw.hinges.Spherical())
    q = lw.loops.assemble(mech, mech.random(3)).q
    rng = np.random.default_rng(3)
    tau = rng.standard_normal(mech.nv)
    free = lw.dynamics.tree_of(mech)
    J_c = lw.loops.constraint_jacobian(mech, q)
    a_0 = lw.forward_dynamics(free, q, np.zeros(mech.nv), tau)
    inverse = lw.mass_matrix_inverse(free, q)
    force = np.linalg.solve(J_c @ inverse @ J_c.T, -J_c @ a_0)
    result = lw.forward_dynamics(mech, q, np.zeros(mech.nv), tau)
    same(result, a_0 + inverse @ J_c.T @ force, 1e-9)


def test_emitted_c_agrees(tmp_path):
    mech, q, v_, _ = state(0)
    code, result = compiled(tmp_path, lw.compile(bias, mech, target="c"))((q, v_), (mech.nv,))
    assert code == 0
    same(result, Dense(mech, q, v_)(bias))


def test_embedded_flexible_bodies_are_the_same():
    """Lumps as bodies of aggregates: the same mass matrix and accelerations."""
    mech, q, v_, tau = state(0)
    embedded, q_all = lw.loops.embed(mech), lw.flexible.separate_q(mech, q)
    assert embedded.velocity_names == mech.velocity_names
    same(lw.mass_matrix(embedded, q_all), lw.mass_matrix(mech, q))
    reference = lw.forward_dynamics(mech, q, v_, tau)
    same(lw.forward_dynamics(embedded, q_all, v_, tau), reference, 1e-10)


def test_bodies_on_several_nodes():
    """A beam that carries a load at its tip and one on a spring in between, and is driven there."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    beam = lw.flexible.beam(1.0, **section, modes=2, lumps=5, directions=("y", "rz"))
    b = lw.Builder("crane")
    beam.add_to(b, "beam", "world", lw.hinges.Pin((0, 0, 1)), nodes={"middle": 2})
    rng = np.random.default_rng(0)
    for parent in ("beam.middle", "beam.tip"):
        b.body(f"{parent}.load", parent, lw.hinges.Pin((0, 1, 1)), inertia=part(rng))
    mech = b.build()
    embedded = lw.loops.embed(mech)
    q, u = np.zeros(mech.nq), rng.standard_normal(embedded.nv)
    eta = [0.05, -0.02]
    for name in ("beam.modes", "beam.middle"):
        q[mech.q_slice(name)] = eta
    q[mech.q_slice("beam.middle.load")], q[mech.q_slice("beam.tip.load")] = 0.4, -0.7
    tree = lw.flexible.separate(mech)
    q_all = lw.flexible.separate_q(mech, q)
    # X: every part has the velocity of the modes.
    X = np.zeros((tree.nv, embedded.nv))
    for i, name in enumerate(tree.velocity_names):
        hinge, _, mode = name.rpartition(".mode_")
        of_beam = f"beam.modes.mode_{mode}" if hinge else name
        X[i, embedded.velocity_names.index(of_beam)] = 1.0
    free = lw.dynamics.tree_of(tree)
    inertia = X.T @ lw.mass_matrix(free, q_all) @ X
    bias_ = X.T @ lw.inverse_dynamics(free, q_all, X @ u, np.zeros(tree.nv))
    same(lw.mass_matrix(embedded, q_all), inertia)
    tau = rng.standard_normal(embedded.nv)
    reference = np.linalg.solve(inertia, tau - bias_)
    same(lw.forward_dynamics(embedded, q_all, u, tau), reference, 1e-9)
    # The same by loops, on the mechanism with its couplings.
    Y = np.zeros((mech.nv, embedded.nv))
    for i, name in enumerate(mech.velocity_names):
        of_beam = name.replace("beam.middle.mode", "beam.modes.mode")
        Y[i, embedded.velocity_names.index(of_beam)] = 1.0
    tau_all = np.zeros(mech.nv)
    tau_all[[mech.velocity_names.index(name) for name in embedded.velocity_names]] = tau
    same(lw.forward_dynamics(mech, q, Y @ u, tau_all), Y @ reference, 1e-9)
    assert np.linalg.eigvalsh(lw.mass_matrix(mech, q)).min() > 1e-4  # each part resists its modes
    same(mech.total_mass, beam.masses.sum() + sum(x.inertia.mass for x in mech.bodies[-2:]))
    assert [wire.body for wire in wires(mech)] == [mech.body_index["beam.tip"]]
    apart_ = mech.pose(q, "beam.middle").p - beam.shape(eta)[2]
    np.testing.assert_allclose(apart_, 0.0, atol=1e-12)
    with pytest.raises(lw.ModelError, match="not the tip"):
        beam.add_to(b, "other", "world", lw.hinges.Pin(), nodes={"end": beam.tip})


@pytest.mark.prove
def test_motions_of_bodies_on_several_nodes():
    """Rollouts with couplings beside Runge-Kutta steps of the embedded mechanism."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    beam = lw.flexible.beam(1.0, **section, modes=2, lumps=5, directions=("y", "rz"))
    b = lw.Builder("crane", gravity=(0, -9.81, 0))
    beam.add_to(b, "beam", "world", lw.hinges.Pin((0, 0, 1)), nodes={"middle": 2})
    load = lw.SpatialInertia.from_com(0.5, (0, -0.2, 0), (0.01,) * 3)
    mech = b.body("load", "beam.middle", lw.hinges.Pin((0, 0, 1)), inertia=load).build()
    embedded = lw.loops.embed(mech)
    named = [n.replace("beam.middle.mode", "beam.modes.mode") for n in mech.velocity_names]
    Y = np.array([[float(n == x) for x in embedded.velocity_names] for n in named])
    u, y, h, steps = np.array([1.0, 0.2, -0.1, 3.0]), np.zeros(4), 1e-3, 50
    start, springs = Y @ u, np.array([0.0, *beam.stiffness, 0.0])

    def rate(y, u):
        q_all = lw.flexible.separate_q(mech, Y @ y)
        return u, lw.forward_dynamics(embedded, q_all, u, -springs * y)

    for _ in range(steps):
        k = [rate(y, u)]
        for share in (0.5, 0.5, 1.0):
            k.append(rate(y + share * h * k[-1][0], u + share * h * k[-1][1]))
        y, u = (
            x + h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i])
            for i, x in enumerate((y, u))
        )
    run = lw.rollout(mech, np.zeros(mech.nq), start, duration=steps * h, step=h)
    assert np.abs(y).min() > 1e-4
    same(run.q[-1], Y @ y, 1e-7)
    # Implicit steps are of order one: half the step, half the distance.
    options = {"duration": steps * h, "integrator": "implicit"}
    apart_ = [
        np.abs(lw.rollout(mech, np.zeros(mech.nq), start, step=x, **options).q[-1] - Y @ y).max()
        for x in (1e-4, 5e-5)
    ]
    assert 1.8 < apart_[0] / apart_[1] < 2.2


def test_locked_modes_leave_a_rigid_body():
    mech, q, _, _ = state(0)
    names = ["modes_0", "modes_1", "twig"]
    held = mech.lock({name: q[mech.q_slice(name)] for name in names})
    left = [i for i, name in enumerate(mech.velocity_names) if name.split(".")[0] not in names]
    rigid = np.concatenate([q[mech.q_slice(n)] for n in ("root_0", "root_1", "branch")])
    reference = lw.mass_matrix(mech, q)[np.ix_(left, left)]
    same(lw.mass_matrix(held, rigid), reference)
    same(lw.mass_matrix(held.merge_locked(), rigid), reference)
    same(lw.mass_matrix(held.release(), q), lw.mass_matrix(mech, q))


def test_other_lumps_are_other_kernels():
    mech, q, *_ = state(0)
    body = mech.bodies[1]
    heavy = [type(x)(x.hinge, x.inertia.scaled(2.0)) for x in body.lumps]
    bodies = list(mech.bodies)
    bodies[1] = replace(body, lumps=tuple(heavy))
    other = replace(mech, bodies=tuple(bodies))
    assert np.abs(lw.mass_matrix(other, q) - lw.mass_matrix(mech, q)).max() > 1e-3


def test_functions_for_rigid_bodies_refuse_flexible_ones():
    mech, q, v_, vdot_ = state(0)
    for call in (
        lambda: lw.regressor(mech, q, v_, vdot_),
        lambda: lw.estimation.RandomField(mech, q),
        lambda: lw.save(mech, "robot.urdf"),
        lambda: lw.save(mech, "robot.xml"),
        lambda: lw.compile(bias, mech, target="cuda", schedule="scan"),
        lambda: lw.simulation.implicit_step(mech, 1e-3, target="cuda"),
    ):
        with pytest.raises(lw.LinkwiseError, match="flexible"):
            call()
