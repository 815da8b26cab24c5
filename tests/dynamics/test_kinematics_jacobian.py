"""Jacobians in the frame that is named, their rates and products, and forces at nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, TroubleWarning, UnknownNameError
from linkwise.spatial import Array
from tests.cases import close, state, states, tree
from tests.dense_kinematics import node_jacobian

TREES = ["every hinge, armature", "every hinge, others", "floating"]
NODES = ["tool", "body_2", "post"]
VIEWS = [
    *(("node", None), ("world", None), ("node", "world"), ("world", "world")),
    *(("body_3", None), ("world", "tool"), ("tool", "body_1")),
]


def plain(mech: lw.Mechanism, q: Array, node: str, frame: str, about: str | None) -> Array:
    """J (6, nv) from the node's own by one rigid shift: V_Q = φ*(N, Q) V_N, Q = (axes F, point P).

    The axes of F and the point P are put together to one frame Q that stands still.
    """
    X_WN = mech.pose(q, node)
    rot_WQ = X_WN.rot if frame == "node" else mech.pose(q, frame).rot
    p_WQ = X_WN.p if about is None else mech.pose(q, about).p
    X_NQ = X_WN.inverse() @ lw.Pose(rot_WQ, p_WQ)
    return X_NQ.shift.T @ node_jacobian(mech, q, node)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TREES)
def test_jacobians_and_velocities_in_every_frame(name):
    mech = tree(name)
    q, v, _ = state(mech)
    for frame, about in VIEWS:
        J = lw.jacobian(mech, q, NODES, frame=frame, about=about)
        expected = np.vstack([plain(mech, q, node, frame, about) for node in NODES])
        close(J, expected, 1e-12)
        V = lw.node_velocity(mech, q, v, NODES, frame=frame, about=about)
        close(V, expected @ v, 1e-12, np.abs(expected).max() * np.abs(v).sum())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TREES)
def test_rates_are_differences_of_jacobians(name):
    """J̇ and J̇ v against central differences along the motion; good to about 1e-9."""
    mech = tree(name)
    q, v, _ = state(mech)
    step = 1e-5
    ahead, behind = (mech.integrate(q, s * v, 1.0) for s in (step, -step))
    for frame, about in VIEWS:
        rate = sum(
            s * lw.jacobian(mech, at, NODES, frame=frame, about=about)
            for s, at in ((1.0, ahead), (-1.0, behind))
        ) / (2.0 * step)
        J_dot = lw.jacobian_dot(mech, q, v, NODES, frame=frame, about=about)
        size = np.abs(rate).max()
        assert size > 0.1
        close(J_dot, rate, 1e-7)
        result = lw.dynamics.jacobian_bias(mech, q, v, NODES, frame=frame, about=about)
        close(result, J_dot @ v, 1e-11, size * np.abs(v).sum())


def test_in_the_world_about_the_world_a_rate_is_that_of_the_columns():
    """There J̇ = to_W φ* A_V: no frame of it moves, and each column turns with its own body."""
    mech = tree("every hinge, armature")
    q, v, _ = state(mech)
    names = [body.name for body in mech.bodies]
    rates = lw.jacobian_dot(mech, q, v, names, frame="world", about="world").reshape(-1, 6, mech.nv)
    for k, p in enumerate(mech.parent.tolist()):
        if p >= 0:  # of what moves its parent, the same
            columns = mech.v_slice(mech.bodies[k].hinge_name)
            others = np.delete(np.arange(mech.nv), np.arange(columns.start, columns.stop))
            close(rates[k][:, others], rates[p][:, others], 1e-11, np.abs(rates[k]).max())


@pytest.mark.parametrize("name", TREES)
def test_products_of_a_jacobian_with_itself(name):
    mech = tree(name)
    q = state(mech)[0]
    for frame, about in (("node", None), ("world", None), ("body_3", "world")):
        J = np.vstack([plain(mech, q, node, frame, about) for node in NODES])
        result = lw.dynamics.jacobian_gram(mech, q, NODES, frame=frame, about=about)
        close(result, J @ J.T, 1e-12)
        result = lw.dynamics.jacobian_gram(mech, q, NODES, of="columns", frame=frame, about=about)
        close(result, J.T @ J, 1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TREES)
def test_forces_at_nodes(name):
    mech = tree(name)
    q, v, _ = state(mech)
    f = np.random.default_rng(3).standard_normal((len(NODES), 6))
    forces = dict(zip(NODES, f, strict=True))
    for frame, about in VIEWS:
        expected = sum(
            plain(mech, q, node, frame, about).T @ x for node, x in zip(NODES, f, strict=True)
        )
        result = lw.dynamics.equivalent_force(mech, q, forces, frame=frame, about=about)
        close(result, expected, 1e-11)
        close(
            lw.dynamics.compensating_force(mech, q, forces, frame=frame, about=about),
            -result,
            1e-15,
        )
    # The power is that of the forces on the moving nodes, whatever the frame.
    V = lw.node_velocity(mech, q, v, NODES, frame="body_3", about="world")
    power = lw.dynamics.equivalent_force(mech, q, forces, frame="body_3", about="world") @ v
    close(power, f.ravel() @ V, 1e-11)


def test_compensating_forces_cause_no_acceleration():
    """Against document 002, which has the other sign: that one doubles the acceleration."""
    mech = tree("no armature")
    q, v, tau = state(mech)
    forces = {"tool": np.array([0.3, -0.2, 0.5, 4.0, 5.0, -6.0])}
    free = lw.forward_dynamics(mech, q, v, tau)
    held = tau + lw.dynamics.compensating_force(mech, q, forces, frame="world")
    close(lw.forward_dynamics(mech, q, v, held, forces=forces, forces_frame="world"), free, 1e-9)
    pushed = lw.forward_dynamics(mech, q, v, tau, forces=forces, forces_frame="world")
    wrong = tau + lw.dynamics.equivalent_force(mech, q, forces, frame="world")
    vdot = lw.forward_dynamics(mech, q, v, wrong, forces=forces, forces_frame="world")
    close(vdot - free, 2.0 * (pushed - free), 1e-9)


# --------------------------------------------------------------------------- how it is called


def rod() -> lw.Mechanism:
    """A pin, a ball, a pin, one behind the other."""
    b, last = lw.Builder("rod"), "world"
    for i, hinge in enumerate(
        (lw.hinges.Pin((0, 1, 0)), lw.hinges.Spherical(), lw.hinges.Pin((1, 0, 0))), start=1
    ):
        place = lw.Pose.rpy((0.1 * i, 0.5, 0.2), (0.3, 0.0, 0.1))
        b.body(f"body_{i}", last, hinge, inboard=place)
        last = f"body_{i}"
    return b.build()


def branched() -> lw.Mechanism:
    """A pin with a pin on it, and beside them a ball."""
    b = lw.Builder("branched")
    b.body("body_1", hinge=lw.hinges.Pin((0, 1, 0)))
    b.body("body_3", "body_1", lw.hinges.Pin((1, 0, 0)), inboard=(0.3, 0, 0))
    b.body("side", hinge=lw.hinges.Spherical(), inboard=(0, 1, 0))
    return b.build()


def calls(mech: lw.Mechanism) -> dict[str, Callable[..., Array]]:
    f = {"body_3": np.arange(6.0)}
    return {
        "jacobian": lambda q, v, **o: lw.jacobian(mech, q, "body_3", **o),
        "node_velocity": lambda q, v, **o: lw.node_velocity(mech, q, v, "body_3", **o),
        "jacobian_dot": lambda q, v, **o: lw.jacobian_dot(mech, q, v, "body_3", **o),
        "jacobian_bias": lambda q, v, **o: lw.dynamics.jacobian_bias(mech, q, v, "body_3", **o),
        "jacobian_gram": lambda q, v, **o: lw.dynamics.jacobian_gram(mech, q, "body_3", **o),
        "equivalent_force": lambda q, v, **o: lw.dynamics.equivalent_force(mech, q, f, **o),
    }


ROD, BRANCHED = rod(), branched()
CALLS, BRANCHED_CALLS = calls(ROD), calls(BRANCHED)
AXES = [("node", None), ("world", None), ("body_2", "body_1")]


@pytest.mark.parametrize(("frame", "about"), AXES)
@pytest.mark.parametrize("name", CALLS)
def test_batches_places_and_codes(name, frame, about):
    def call(q, v, **more):
        return CALLS[name](q, v, frame=frame, about=about, **more)

    q, v, _ = states(ROD, 5)
    full = call(q, v)
    close(full, np.stack([call(q[i], v[i]) for i in range(5)]), 1e-13)
    out, status = np.zeros_like(full), np.full(5, 9, dtype=np.int32)
    assert call(q, v, out=out, status=status, threads=2) is out
    close(out, full, 1e-13)
    assert not status.any()
    with pytest.raises(ShapeError, match="out"):
        call(q, v, out=np.zeros((5, 2)))
    if "dot" in name:  # many v at one q
        close(call(q[0], v)[3], call(q[0], v[3]), 1e-13)
    q[2, ROD.q_slice("body_2")] *= 1.5
    status = np.zeros(5, dtype=np.int32)
    result = call(q, v, status=status)
    assert status.tolist() == [0, 0, status[2], 0, 0] and status[2] != 0
    assert np.isnan(result[2]).all() and np.isfinite(result[[0, 1, 3, 4]]).all()
    with pytest.raises(ModelError, match="quaternion of body 'body_2' is not of unit"):
        call(q[2], v[2])
    with pytest.warns(TroubleWarning, match="1 of 5 states") as caught:
        call(q, v)
    assert len(caught) == 1


@pytest.mark.parametrize("name", CALLS)
def test_trouble_with_the_frame_alone_is_told(name):
    """The frame hangs on a branch of its own, behind a ball; the node does not need it."""

    def call(q, v, **more):
        return BRANCHED_CALLS[name](q, v, frame="side", about="side", **more)

    q, v, _ = states(BRANCHED, 4)
    expected = call(q, v)
    q[1, BRANCHED.q_slice("side")] *= 2.0
    status = np.zeros(4, dtype=np.int32)
    result = call(q, v, status=status)
    assert (status != 0).tolist() == [False, True, False, False]
    assert np.isnan(result[1]).all()
    close(result[[0, 2, 3]], expected[[0, 2, 3]], 1e-13)
    with pytest.warns(TroubleWarning, match="row 1: the quaternion of body 'side'") as caught:
        call(q, v)
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.raises(ModelError, match="quaternion of body 'side' is not of unit length"):
        call(q[1], v[1])
    code = np.zeros((), dtype=np.int32)
    assert np.isnan(call(q[1], v[1], status=code)).all() and code != 0
    with pytest.raises(ShapeError, match=r"it must be a contiguous array of int32 \(4,\)"):
        call(q, v, status=np.zeros(3, dtype=np.int32))


def test_bad_input_is_told():
    q, v, _ = state(ROD)
    with pytest.raises(
        UnknownNameError, match=r"frame is 'bdy_3'; it must be 'node' or 'world', or"
    ):
        lw.jacobian(ROD, q, "body_3", frame="bdy_3")
    with pytest.raises(UnknownNameError, match="about is 'node'; it must be 'world', or"):
        lw.node_velocity(ROD, q, v, "body_3", about="node")
    with pytest.raises(UnknownNameError, match="did you mean 'body_3'"):
        lw.dynamics.jacobian_bias(ROD, q, v, "bdy_3", frame="world")
    with pytest.raises(UnknownNameError, match="did you mean 'body_3'"):
        lw.dynamics.compensating_force(ROD, q, {"bdy_3": np.zeros(6)}, about="world")
    with pytest.raises(ModelError, match="of is 'cols'; it must be 'rows' for J J\\*"):
        lw.dynamics.jacobian_gram(ROD, q, "body_3", of="cols")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"the force on 'body_3' has shape \(3,\)"):
        lw.dynamics.equivalent_force(ROD, q, {"body_3": np.zeros(3)}, frame="body_2")
    with pytest.raises(ModelError, match="f is not finite"):
        lw.dynamics.equivalent_force(ROD, q, {"body_3": np.full(6, np.nan)}, frame="body_2")
    with pytest.raises(ModelError, match="q is not finite"):
        lw.dynamics.equivalent_force(
            ROD, np.full(ROD.nq, np.nan), {"body_3": np.ones(6)}, frame="body_2"
        )
