"""Mechanisms of arms that hold an object, and states of theirs; made once, so are their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

import numpy as np

import linkwise as lw
from linkwise.models.puma560 import add_puma560
from linkwise.spatial.array import Array
from tests import cases
from tests.grasp.random_systems import _arm

close = partial(cases.close, bound="closed chains", least=1.0)


@cache
def pumas() -> lw.Mechanism:
    """Two PUMAs: the object has six motions, and the arms none besides."""
    return lw.models.multi_arm(2, arm="puma560")


@cache
def redundant() -> lw.Mechanism:
    """Two arms of seven axes: one motion each that the object does not feel."""
    return lw.models.dual_arm()


def moving(mech: lw.Mechanism, seed: int, home: Array | None = None) -> tuple[Array, Array]:
    """A state near neutral, or near another one, with loops closed, in motion."""
    rng = np.random.default_rng(seed)
    start = mech.neutral() if home is None else home
    q = mech.integrate(start, 0.15 * rng.standard_normal(mech.nv))
    q = lw.loops.project_position(mech, q).required()
    return q, lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))


def grasped(
    b: lw.Builder,
    q_of: Mapping[str, float | Array],
    tips: list[str],
    hinge: lw.hinges.Hinge | None = None,
) -> tuple[lw.Mechanism, Array]:
    """An object at the tips of arms, wherever they are, held rigidly; the state."""
    inertia = lw.SpatialInertia.solid_box(3.0, (0.3, 0.2, 0.1)).moved(
        lw.Pose.translation((0.1,) * 3)
    )
    b.body("object", hinge=hinge or lw.hinges.Free(), inertia=inertia)
    loose = b.build()
    q = loose.neutral()
    for name, value in q_of.items():
        q[loose.q_slice(name)] = value
    for k, tip in enumerate(tips):
        b.node(f"grip_{k + 1}", "object", loose.pose(q, "object").inverse() @ loose.pose(q, tip))
        b.loop(f"grasp_{k + 1}", tip, f"grip_{k + 1}", lw.hinges.Locked())
    return b.build(), q


@cache
def planar_and_spatial() -> tuple[lw.Mechanism, Array]:
    """An arm in a plane, three motions, and one of six axes that could do more."""
    rng = np.random.default_rng(11)
    b = lw.Builder("planar and spatial", gravity=(0.5, -1.0, -9.0))
    parent = "world"
    for j in range(3):
        b.body(
            f"flat_{j}",
            parent,
            lw.hinges.Pin((0, 0, 1)),
            inboard=(0.4 * (j > 0), 0.0, 0.0),
            inertia=lw.SpatialInertia.solid_box(2.0, (0.4, 0.1, 0.1)),
        )
        parent = f"flat_{j}"
    b.node("flat_tip", parent, (0.3, 0.1, 0.0))
    other = _arm(b, 2, 6, rng, True, ("pin",))
    angles = {f"flat_{j}": 0.4 + 0.5 * j for j in range(3)}
    angles |= {f"arm_2_link_{j}": rng.uniform(-2, 2) for j in range(1, 7)}
    return grasped(b, angles, ["flat_tip", other])


@cache
def straight_wrist() -> tuple[lw.Mechanism, Array]:
    """Two PUMAs, the wrist of the first of them straight: five motions."""
    b = lw.Builder("straight wrist")
    tips = [
        add_puma560(b, prefix="a_"),
        add_puma560(b, at=lw.Pose.translation((1, 0, 0)), prefix="b_"),
    ]
    single = b.build()
    names = [body.hinge_name for body in single.bodies if body.hinge.nv]
    angles = dict(
        zip(names, (0.3, -0.7, 2.4, 0.5, 0.0, 0.2, 0.1, -0.9, 2.6, 0.4, 0.8, -0.3), strict=True)
    )
    return grasped(b, {k: np.array(x) for k, x in angles.items()}, tips)


@cache
def in_a_plane() -> tuple[lw.Mechanism, Array]:
    """Arms of four and three axes and an object, all in a plane: figure 13 A of 003."""
    b = lw.Builder("in a plane")
    angles = dict[str, float]()
    for k, n in ((1, 4), (2, 3)):
        parent = "world"
        for j in range(n):
            name = f"arm_{k}_{j}"
            b.body(
                name,
                parent,
                lw.hinges.Pin((0, 0, 1)),
                inboard=(0.4 if j else k - 1.0, 0.0, 0.0),
                inertia=lw.SpatialInertia.solid_box(2.0, (0.4, 0.1, 0.1)),
            )
            angles[name], parent = 0.3 + 0.2 * len(angles), name
        b.node(f"tip_{k}", parent, (0.3, 0.0, 0.0))
    return grasped(b, angles, ["tip_1", "tip_2"], lw.hinges.Planar())


def accelerated(mech: lw.Mechanism, q: Array, v: Array, vdot: Array, node: str = "object") -> Array:
    """ẍ of the object's origin, or of another node, in the axes of the world."""
    J = lw.jacobian(mech, q, node, frame="world")
    return J @ vdot + lw.dynamics.jacobian_bias(mech, q, v, node, frame="world")


def driven(mech: lw.Mechanism, seed: int) -> Array:
    """Joint forces of the arms; nothing drives the object."""
    tau = 5.0 * np.random.default_rng(seed).standard_normal(mech.nv)
    tau[lw.grasp.multi_arm_parts(mech).object_rows] = 0.0
    return tau


def accelerated_by(
    mech: lw.Mechanism, q: Array, v: Array, tau: Array, node: str = "object"
) -> Array:
    """ẍ of a node of the object in the closed chain, by joint forces."""
    return accelerated(mech, q, v, lw.forward_dynamics(mech, q, v, tau), node)


def contacts(result: lw.grasp.ObjectTorque) -> Array:
    """Contact forces (contacts, 6) as they were meant."""
    return np.stack(list(result.contact_forces.values()), axis=-2)
