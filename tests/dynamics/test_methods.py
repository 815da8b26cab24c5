"""FD1 to FD4 by name, products with the inverse mass matrix, and the tip force correction."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, J, a, b, bias, f, mass, phi, rot_W, tau
from linkwise.algebra.dense import Dense
from linkwise.dynamics.quantity import METHODS, fd1, fd2, fd3, fd4, pushing
from linkwise.errors import ModelError, SingularHingeError, UnknownNameError
from linkwise.sweeps.interpret import run
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import mass_matrix, node_jacobian
from tests.dynamics.oracle_state import MUJOCO, PINOCCHIO, in_mujoco, in_pinocchio

NODES = ("body_2", "tool")
PUSH = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0, 0.5, 0.1, -0.7, 4.0, 2.0, -5.0])


def pushed(mech, q, frame):
    """J* f by explicit Jacobians."""
    total = np.zeros(mech.nv)
    for node, six in zip(NODES, PUSH.reshape(2, 6), strict=True):
        turn = np.eye(3) if frame == "node" else mech.pose(q, node).rot
        total += node_jacobian(mech, q, node).T @ np.kron(np.eye(2), turn).T @ six
    return total


def residual(mech, q, v, tau, vdot, extra=0.0) -> float:
    """𝓜 v̇ + C − τ − J* f, by the size of what is added up."""
    A, c = mass_matrix(mech, q), Dense(mech, q, v)(bias)
    size = (np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(tau) + np.abs(extra)).max()
    return float(np.abs(A @ vdot + c - tau - extra).max() / size)


# ----------------------------------------------------------------------------- the algorithms


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TREES)
def test_every_method_on_every_tree(name, method):
    """By the interpreter: every hinge, armature or none, branches, a floating base, pushes."""
    mech = tree(name)
    q, v, x = state(mech)
    for frame in ("node", "world"):
        expr = lw.dynamics.expression(f"{method}_with_forces", frame=frame)
        given = {"tau": x, "f": PUSH}
        vdot = run(lw.plan(expr), mech, q, v, nodes=NODES, values=given)
        assert residual(mech, q, v, x, vdot, pushed(mech, q, frame)) < 1e-12


@cache
def small(armature: bool) -> lw.Mechanism:
    """Three bodies that kernels are quickly compiled for: a ball, a slide and a pin, branched."""
    kinds = ("spherical", "prismatic", "pin")
    mech = lw.models.random_tree(3, 5, hinges=kinds, branching=0.5, drives=armature)
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


@pytest.mark.parametrize("armature", [True, False])
def test_compiled_methods_agree(armature):
    mech = small(armature)
    q, v, x = states(mech, 3)
    for method in METHODS:
        vdot = lw.forward_dynamics(mech, q, v, x, method=method)
        assert vdot.shape == (3, mech.nv)
        for i in range(3):
            assert residual(mech, q[i], v[i], x[i], vdot[i]) < 1e-12
        one = lw.forward_dynamics(mech, q[0], v[0], x[0], method=method)
        close(one, vdot[0], 1e-13)
    forces = dict(zip(NODES, PUSH.reshape(2, 6), strict=True))
    vdot = lw.forward_dynamics(
        mech, q[1], v[1], x[1], method="FD4", forces=forces, forces_frame="world"
    )
    extra = pushed(mech, q[1], "world")
    assert residual(mech, q[1], v[1], x[1], vdot, extra) < 1e-12


def test_each_equals_the_plain_expression_by_proof():
    """Not by numbers: by identities, on any tree."""
    plain = mass.inv @ (tau - H @ phi @ (lw.algebra.M @ phi.T @ a + b - pushing(J)))
    for method in (fd1, fd2, fd3, fd4):
        assert lw.prove(plain, method(pushing(J))).proved
    turned = rot_W @ J
    assert fd3(pushing(turned)) is not fd3(pushing(J))


def test_methods_run_as_they_are_written():
    mech = small(False)
    written = {}
    for method in METHODS:
        kernel = lw.dynamics.kernel(mech, method)
        assert all(step.identity == "no armature" for step in kernel.derivation)
        assert kernel.derivation.start is lw.dynamics.expression(method)
        assert len(kernel.program.passes) == 3  # the two sweeps to the base are one
        written[method] = kernel.ops.total()
    assert len(set(written.values())) > 2
    default = lw.dynamics.kernel(mech, "forward_dynamics")
    assert default.derivation.steps and default.ops.total() <= min(written.values())


def test_the_cache_on_disk_knows_what_was_derived():
    """An expression as it stands and its cheapest form have the same name, and two kernels."""
    mech, expr = lw.models.chain(3), mass.inv @ (tau - bias)
    cheap = [lw.compile(expr, mech).ops.total() for _ in range(2)]
    plain = [lw.compile(expr, mech, derive=False).ops.total() for _ in range(2)]
    assert cheap[0] == cheap[1] < plain[0] == plain[1]


def test_a_method_there_is_not():
    mech = tree("no armature")
    q, v, x = state(mech)
    with pytest.raises(UnknownNameError, match=r"no method called 'FD5'.*did you mean 'FD"):
        lw.forward_dynamics(mech, q, v, x, method="FD5")  # type: ignore[arg-type]


def test_out_status_and_trouble_with_a_method():
    mech = small(False)
    q, v, x = states(mech, 4)
    v[2, 0] = np.nan
    out, status = np.empty((4, mech.nv)), np.empty(4, dtype=np.int32)
    vdot = lw.forward_dynamics(mech, q, v, x, method="FD1", out=out, status=status)
    assert vdot is out and status.tolist() == [0, 0, 1, 0] and np.isnan(out[2]).all()
    empty = lw.Builder("empty").body("arm", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.zero())
    with pytest.raises(SingularHingeError, match="arm"):
        lw.forward_dynamics(empty.build(), [0.0], [0.0], [1.0], method="FD3")


# ------------------------------------------------------------------------- parts of the algorithms


@pytest.mark.parametrize("name", ["no armature", "small"])
def test_inverse_times_a_vector(name):
    mech = small(True) if name == "small" else tree(name)
    q, _, x = states(mech, 3)
    result = lw.dynamics.mass_matrix_inverse_product(mech, q, x)
    for i in range(3):
        A = mass_matrix(mech, q[i])
        size = float((np.abs(A) @ np.abs(result[i])).max())
        close(A @ result[i], x[i], 1e-12, scale=size)
    assert len(lw.dynamics.kernel(mech, "mass_matrix_inverse_product").program.passes) == 2


@pytest.mark.parametrize("frame", ["node", "world"])
def test_tip_force_correction(frame):
    """(5.3) of document 000: what a push adds, whatever v and tau are."""
    mech = small(True)
    q, v, x = state(mech, 2)
    forces = dict(zip(NODES, PUSH.reshape(2, 6), strict=True))
    result = lw.papers.tip_force_correction(mech, q, forces, forces_frame=frame)
    A, push = mass_matrix(mech, q), pushed(mech, q, frame)
    close(A @ result, push, 1e-12, scale=float((np.abs(A) @ np.abs(result)).max()))
    without = lw.forward_dynamics(mech, q, v, x)
    assert residual(mech, q, v, x, without + result, push) < 1e-12
    derived = lw.derive(lw.dynamics.expression("tip_force_correction"))
    F = lw.algebra.symbols.articulated
    assert derived.result is F.whitening.T @ F.D.inv @ H @ F.psi @ lw.algebra.B @ f


def test_tip_force_correction_asks_for_a_force():
    mech = tree("no armature")
    with pytest.raises(ModelError, match="no force was given"):
        lw.papers.tip_force_correction(mech, mech.neutral(), {})


# --------------------------------------------------------------------------- off the manifold

CALLS = {
    "forward_dynamics": lambda m, q, v: lw.forward_dynamics(m, q, v, v),
    "FD4": lambda m, q, v: lw.forward_dynamics(m, q, v, v, method="FD4"),
    "inverse_dynamics": lambda m, q, v: lw.inverse_dynamics(m, q, v, v),
    "bias_force": lw.bias_force,
    "gravity_force": lambda m, q, v: lw.gravity_force(m, q),
    "mass_matrix": lambda m, q, v: lw.mass_matrix(m, q),
    "mass_matrix_inverse": lambda m, q, v: lw.mass_matrix_inverse(m, q),
    "mass_matrix_inverse_product": lw.dynamics.mass_matrix_inverse_product,
    "tip_force_correction": lambda m, q, v: lw.papers.tip_force_correction(
        m, q, {"tool": PUSH[:6]}
    ),
    "jacobian": lambda m, q, v: lw.jacobian(m, q, "tool"),
    "node_velocity": lambda m, q, v: lw.node_velocity(m, q, v, "tool"),
    "node_acceleration": lambda m, q, v: lw.node_acceleration(m, q, v, "tool", vdot=v),
    "hinge_forces": lambda m, q, v: lw.hinge_forces(m, q, v, tau=v),
    "kinetic_energy": lw.dynamics.kinetic_energy,
    "potential_energy": lambda m, q, v: lw.dynamics.potential_energy(m, q),
    "forward_kinematics": lambda m, q, v: lw.forward_kinematics(m, q).matrix,
}


@cache
def with_ball() -> lw.Mechanism:
    """A ball between two pins."""
    rod = lw.SpatialInertia.from_com(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.02))
    builder, above = lw.Builder("ball"), "world"
    for name, hinge in (
        ("upper", lw.hinges.Pin()),
        ("ball", lw.hinges.Spherical()),
        ("lower", lw.hinges.Pin()),
    ):
        builder.body(name, parent=above, hinge=hinge, inboard=(0, 0.1, -1), inertia=rod)
        above = name
    return builder.build().with_node("tool", "lower", (0.0, 0.0, -1.0))


@pytest.mark.parametrize("name", CALLS)
def test_a_quaternion_that_is_no_rotation(name):
    """Raised by name, never normalised behind one's back; within rounding it is taken as it is."""
    mech, call = with_ball(), CALLS[name]
    q, v = mech.random(0), mech.random_velocity(0)
    ball = mech.q_slice("ball")
    right = call(mech, q, v)
    for factor in (1.01, -0.9, 0.0):
        off = q.copy()
        off[ball] *= factor
        with pytest.raises(ModelError, match="quaternion of body 'ball' is not of unit length"):
            call(mech, off, v)
        if factor:
            close(call(mech, mech.normalise(off), v), right, 1e-11)
    near = q.copy()
    near[ball] *= 1.0 + 1e-12
    close(call(mech, near, v), right, 1e-10)


# ------------------------------------------------------------------------------------- oracles


def evaluated(mech, name, q, v, **values):
    """A named quantity by the interpreter."""
    expr = lw.dynamics.expression(name)
    return run(lw.plan(expr), mech, q, v, values=values)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PINOCCHIO)
def test_with_pinocchio(name):
    import pinocchio as pin

    it = in_pinocchio(name)
    force = it.layout.force_to(it.q, it.x)
    theirs = it.layout.v_from(it.q, pin.aba(it.model, it.data, it.q_pin, it.v_pin, force))
    for method in METHODS:
        close(evaluated(it.mech, method, it.q, it.v, tau=it.x), theirs, 1e-10)
    none = it.layout.v_from(it.q, pin.aba(it.model, it.data, it.q_pin, it.v_pin, 0.0 * force))
    product = evaluated(it.mech, "mass_matrix_inverse_product", it.q, it.v, x=it.x)
    close(product, theirs - none, 1e-10, scale=float(np.abs(theirs).max() + np.abs(none).max()))


@pytest.mark.oracle
@pytest.mark.parametrize("source", MUJOCO)
def test_with_mujoco(source):
    it = in_mujoco(source)
    for method in METHODS:
        result = evaluated(it.mech, method, it.q, it.v, tau=it.tau)
        close(it.accelerated(result), np.array(it.data.qacc), 1e-10)


@pytest.mark.oracle
def test_a_robot_compiled():
    import pinocchio as pin

    it = in_pinocchio("panda.urdf")
    force = it.layout.force_to(it.q, it.x)
    theirs = it.layout.v_from(it.q, pin.aba(it.model, it.data, it.q_pin, it.v_pin, force))
    for method in ("FD1", "FD4"):
        close(lw.forward_dynamics(it.mech, it.q, it.v, it.x, method=method), theirs, 1e-10)
