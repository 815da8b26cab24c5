"""Poses, velocities of bodies, scatter and gather against plain kinematics and matrices."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import phi, phi_tilde, psi, psi_tilde
from linkwise.algebra.dense import Dense
from linkwise.errors import ModelError, ShapeError, TroubleWarning, UnknownNameError
from linkwise.models.random_tree import HINGE_KINDS
from linkwise.spatial import Array
from linkwise.spatial.pose import log
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import body_jacobians

ALL = [*TREES, "all hinges"]
FEW = ["every hinge, armature", "floating", "no armature"]


@cache
def mechanism(name: str) -> lw.Mechanism:
    if name in TREES:
        return tree(name)
    mech = lw.models.random_tree(len(HINGE_KINDS), 11)  # each kind occurs
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


def moved(mech: lw.Mechanism, q: Array, v: Array, name: str, step: float = 1e-5) -> Array:
    """Velocity of a frame in its own axes, from poses alone; good to about 1e-9."""
    ahead, behind = (mech.pose(mech.integrate(q, s * v, 1.0), name) for s in (step, -step))
    return log(behind.inverse() @ ahead) / (2.0 * step)


# ------------------------------------------------------------------------------------- poses


@pytest.mark.parametrize("name", ALL)
def test_relative_poses_are_products_of_hinge_poses(name):
    """From any body inboard: the product along the branch (002), hinge by hinge."""
    mech = mechanism(name)
    q, names = state(mech)[0], [body.name for body in mech.bodies]
    first = names[0]
    result, seen = lw.dynamics.relative_pose(mech, q, names, first), 0
    for k in range(1, mech.n_bodies):
        X, p = lw.Pose.identity(), k
        while p > 0:  # the first body is a forebear of all others
            X = mech.bodies[p].pose(q[mech.q_slice(mech.bodies[p].hinge_name)]) @ X
            p, seen = int(mech.parent[p]), seen + 1
        close(result[k].matrix, X.matrix, 1e-13)
    assert p == 0 and seen >= mech.n_bodies


def test_relative_poses_across_branches_and_of_nodes():
    mech = mechanism("all hinges")
    q = np.stack([mech.random(s) for s in range(3)])
    tips = [node.name for node in mech.nodes]
    assert len(tips) > 2
    result = lw.dynamics.relative_pose(mech, q, tips, tips[0])
    assert result.p.shape == (3, len(tips), 3)
    close(result.matrix[:, 0], np.broadcast_to(np.eye(4), (3, 4, 4)), 1e-14)
    for i in range(3):
        back = mech.pose(q[i], tips[0]).inverse()
        for j, tip in enumerate(tips):
            close(result[i, j].matrix, (back @ mech.pose(q[i], tip)).matrix, 1e-13)
    one = lw.dynamics.relative_pose(mech, q[1], tips[2], tips[1])
    close(
        one.inverse().matrix, lw.dynamics.relative_pose(mech, q[1], tips[1], tips[2]).matrix, 1e-13
    )
    with pytest.raises(UnknownNameError, match="no node or body called 'hnd'"):
        lw.dynamics.relative_pose(mech, q, "tool", "hnd")


def test_hinge_frames_are_nodes():
    mech = mechanism("all hinges")
    framed, q = lw.dynamics.with_hinge_frames(mech), state(mech)[0]
    assert lw.dynamics.with_hinge_frames(framed) is framed
    sides = [f"{body.hinge_name}:{side}" for body in mech.bodies for side in ("O+", "O")]
    poses = lw.forward_kinematics(framed, q, sides)
    for k, body in enumerate(mech.bodies):
        q_k = q[mech.q_slice(body.hinge_name)]
        X = poses[2 * k].inverse() @ poses[2 * k + 1]
        close(X.matrix, body.hinge.pose(q_k).matrix, 1e-13)
    elsewhere = mech.with_node(f"{mech.bodies[0].hinge_name}:O", mech.bodies[1].name)
    with pytest.raises(ModelError, match="is not at that frame of the hinge"):
        lw.dynamics.with_hinge_frames(elsewhere)


# -------------------------------------------------------------------------------- velocities


@pytest.mark.parametrize("name", ALL)
def test_velocities_of_bodies_in_every_frame(name):
    mech = mechanism(name)
    q, v, _ = state(mech)
    V = body_jacobians(mech, q) @ v
    poses = mech.poses(q)
    close(lw.dynamics.body_velocities(mech, q, v), V, 1e-13)
    frames = ("hinge", "world", "inertial")
    hinge, world, inertial = (
        lw.dynamics.body_velocities(mech, q, v, frame=frame) for frame in frames
    )
    for k, body in enumerate(mech.bodies):
        at_hinge = body.outboard.inverse().shift.T @ V[k]  # φ*(B, O) V
        close(hinge[k], at_hinge, 1e-12, np.abs(V).max())
        turned = np.concatenate([poses[k].rot @ V[k, :3], poses[k].rot @ V[k, 3:]])
        close(world[k], turned, 1e-12, np.abs(V).max())
        about = poses[k].inverse().shift.T @ V[k]  # φ*(B, I) V
        close(inertial[k], about, 1e-12, np.abs(V).max())
    for k in (0, mech.n_bodies // 2, mech.n_bodies - 1):
        close(V[k], moved(mech, q, v, mech.bodies[k].name), 1e-7, np.abs(V).max())


@pytest.mark.parametrize("frame", ["body", "hinge", "world", "inertial"])
@pytest.mark.parametrize("name", FEW)
def test_whole_inboard_and_hinge_velocities(name, frame):
    """V = V⁺ + ΔV; V⁺ is the motion of the parent, ΔV what is left when the parent is held."""
    mech = mechanism(name)
    q, v, _ = state(mech)
    V, V_plus, ours = (
        of(mech, q, v, frame=frame)
        for of in (
            lw.dynamics.body_velocities,
            lw.dynamics.inboard_velocities,
            lw.dynamics.hinge_velocities,
        )
    )
    close(V_plus + ours, V, 1e-13)
    for k, body in enumerate(mech.bodies):
        held, alone = np.array(v), np.zeros(mech.nv)
        held[mech.v_slice(body.hinge_name)] = 0.0
        alone[mech.v_slice(body.hinge_name)] = v[mech.v_slice(body.hinge_name)]
        size = np.abs(V).max()
        close(V_plus[k], lw.dynamics.body_velocities(mech, q, held, frame=frame)[k], 1e-12, size)
        close(ours[k], lw.dynamics.body_velocities(mech, q, alone, frame=frame)[k], 1e-12, size)
    if frame == "inertial":  # the shift is not needed: V_I⁺(k) = V_I(p)
        for k, p in enumerate(mech.parent.tolist()):
            close(V_plus[k], V[p] if p >= 0 else np.zeros(6), 1e-12, np.abs(V).max())


def test_inboard_velocities_are_at_the_body_not_at_the_other_hinge_frame():
    """On a slide that has travelled, V at O⁺ and V⁺ are of one motion, but of two points."""
    b = lw.Builder("slide on a wheel")
    b.body("wheel", hinge=lw.hinges.Pin(axis=(0, 0, 1)))
    b.body("slide", "wheel", lw.hinges.Prismatic(axis=(1, 0, 0)), hinge_name="rail")
    mech = lw.dynamics.with_hinge_frames(b.build())
    q, v = np.array([0.0, 2.0]), np.array([3.0, 0.5])
    close(lw.dynamics.inboard_velocities(mech, q, v)[1], np.array([0, 0, 3.0, 0, 6.0, 0]), 1e-14)
    close(lw.node_velocity(mech, q, v, "rail:O+"), np.array([0, 0, 3.0, 0, 0, 0]), 1e-14)


# ------------------------------------------------------------------------- scatter and gather


@pytest.mark.parametrize(
    ("name", "through"),
    [*((name, "rigid") for name in FEW), ("no armature", "articulated"), ("pins", "articulated")],
)
def test_scatter_and_gather_are_the_operators(name, through):
    mech = mechanism(name)
    q = state(mech)[0]
    x = np.random.default_rng(5).standard_normal((mech.n_bodies, 6))
    dense = Dense(mech, q)
    full, strict = phi, phi_tilde
    if through == "articulated":
        full, strict = psi, psi_tilde  # of D = H P H* + N, whether there is armature or not
    for operator, options in ((full, {}), (strict, {"strict": True})):
        A = dense(operator)
        result = lw.dynamics.scatter(mech, q, x, through=through, **options)
        close(result, (A.T @ x.ravel()).reshape(-1, 6), 1e-11)
        result = lw.dynamics.gather(mech, q, x, through=through, **options)
        close(result, (A @ x.ravel()).reshape(-1, 6), 1e-11)


def test_scatter_and_gather_are_adjoint_and_make_velocities():
    mech = mechanism("all hinges")
    q, v, _ = state(mech)
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 20, mech.n_bodies, 6))  # a batch at one q
    left = (lw.dynamics.gather(mech, q, x) * y).sum(axis=(1, 2))
    right = (x * lw.dynamics.scatter(mech, q, y)).sum(axis=(1, 2))
    close(left, right, 1e-12)
    ours = lw.dynamics.hinge_velocities(mech, q, v)
    close(lw.dynamics.scatter(mech, q, ours), lw.dynamics.body_velocities(mech, q, v), 1e-13)
    close(
        lw.dynamics.scatter(mech, q, ours, strict=True),
        lw.dynamics.inboard_velocities(mech, q, v),
        1e-13,
    )


# --------------------------------------------------------------------------- how it is called


def test_batches_places_and_codes():
    mech = lw.models.random_tree(3, 2, hinges=("spherical",), drives=False)
    q, v, _ = states(mech, 5)
    x = np.random.default_rng(7).standard_normal((5, mech.n_bodies, 6))
    calls = {
        "scatter": lambda i, **o: lw.dynamics.scatter(mech, q[i], x[i], **o),
        "gather": lambda i, **o: lw.dynamics.gather(mech, q[i], x[i], strict=True, **o),
        "body": lambda i, **o: lw.dynamics.body_velocities(mech, q[i], v[i], **o),
        "hinge": lambda i, **o: lw.dynamics.inboard_velocities(
            mech, q[i], v[i], frame="hinge", **o
        ),
        "world": lambda i, **o: lw.dynamics.hinge_velocities(mech, q[i], v[i], frame="world", **o),
        "at rest": lambda i, **o: lw.dynamics.hinge_velocities(
            mech, q[i], 0 * v[i], frame="world", **o
        ),
        "inertial": lambda i, **o: lw.dynamics.body_velocities(
            mech, q[i], v[i], frame="inertial", **o
        ),
    }
    every = slice(None)
    for call in calls.values():
        full = call(every)
        assert full.shape == (5, mech.n_bodies, 6)
        close(full, np.stack([call(i) for i in range(5)]), 1e-13)
        out, status = np.zeros_like(full), np.full(5, 9, dtype=np.int32)
        assert call(every, out=out, status=status, threads=2) is out
        close(out, full, 1e-13)
        assert not status.any()
        with pytest.raises(ShapeError, match=r"out has shape \(5, 3\)"):
            call(every, out=np.zeros((5, 3)))
    q[2, mech.q_slice("body_2")] *= 1.5
    for call in calls.values():
        status = np.zeros(5, dtype=np.int32)
        result = call(every, status=status)
        assert status.tolist() == [0, 0, status[2], 0, 0] and status[2] != 0
        assert np.isnan(result[2]).all() and np.isfinite(result[[0, 1, 3, 4]]).all()
        with pytest.raises(ModelError, match="quaternion of body 'body_2' is not of unit length"):
            call(2)
        with pytest.warns(TroubleWarning, match="1 of 5 states"):
            call(every)


def test_bad_input_is_told():
    mech = mechanism("pins")
    q, v, _ = state(mech)
    with pytest.raises(ShapeError, match=r"x has shape \(36,\); it must be \(6, 6\), six numbers"):
        lw.dynamics.scatter(mech, q, np.zeros(36))
    with pytest.raises(ShapeError, match=r"x has shape \(5, 6\)"):
        lw.dynamics.gather(mech, q, np.zeros((5, 6)))
    with pytest.raises(ModelError, match="through is 'soft'; it must be 'rigid' or"):
        lw.dynamics.scatter(mech, q, np.zeros((6, 6)), through="soft")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="frame is 'joint'; it must be 'body', 'hinge', 'world'"):
        lw.dynamics.body_velocities(mech, q, v, frame="joint")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="v has shape"):
        lw.dynamics.body_velocities(mech, q, v[:3])
    with pytest.raises(ShapeError, match="out is a list"):
        lw.dynamics.scatter(mech, q, np.zeros((6, 6)), out=[])  # type: ignore[arg-type]
