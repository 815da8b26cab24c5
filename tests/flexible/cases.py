"""Random mechanisms with flexible bodies, and the same ones with each lump as a body."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.model.body import Lump
from linkwise.model.hinges import Modal
from linkwise.model.lumps import separated
from linkwise.spatial.pose import Pose


def inertia(rng):
    J = 0.02 + 0.01 * rng.random(3)
    return lw.SpatialInertia.from_com(0.5 + rng.random(), 0.1 * rng.standard_normal(3), J)


def place(rng, turned=1.0):
    return Pose.rpy(turned * rng.standard_normal(3), rng.standard_normal(3))


def node(rng, modes, *, turns=True):
    """A node with modes and second-order displacements without any pattern."""
    shape = 0.4 * rng.standard_normal((6, modes))
    shape[:3] *= turns
    return Modal(shape, place(rng, float(turns)), rng.standard_normal((3, modes, modes)))


def mechanism(seed, *, base=None, loop=None):
    """A tree of rigid and flexible bodies; child and parent are flexible in all combinations."""
    rng = np.random.default_rng(seed)
    b = lw.Builder(f"flexible {seed}")
    hinges = (base or lw.hinges.Pin((0, 1, 0)), lw.hinges.Spherical())
    parent = "world"
    for i, (hinge, modes, lumps) in enumerate(zip(hinges, (1, 7), (2, 3), strict=True)):
        root = {"inboard": place(rng), "inertia": inertia(rng)}
        b.body(f"root_{i}", parent, hinge, drive=lw.Drive(armature=0.1 * i), **root)
        b.body(
            f"tip_{i}",
            f"root_{i}",
            node(rng, modes),
            hinge_name=f"modes_{i}",
            inboard=place(rng),
            outboard=place(rng),
            inertia=inertia(rng) if i else None,
            drive=lw.Drive(stiffness=30.0, damping=0.2),
            lumps=[Lump(node(rng, modes, turns=j > 0), inertia(rng)) for j in range(lumps)],
        )
        parent = f"tip_{i}"
    # A flexible body on a flexible one, without a rigid body between them; and a rigid branch.
    lump = Lump(node(rng, 2), inertia(rng))
    b.body("twig", "tip_0", node(rng, 2), inertia=inertia(rng), lumps=[lump])
    b.body("branch", "tip_1", lw.hinges.Prismatic((0, 1, 1)), inertia=inertia(rng))
    b.node("hand", "branch", place(rng))
    b.node("thorn", "twig", rng.standard_normal(3))
    if loop is not None:
        b.loop("held", "hand", "thorn", loop)
    return b.build()


def apart(mech, q):
    """The mechanism with its lumps as bodies, the matrix X of its velocities X v, and its q."""
    tree, part_of = separated(mech)
    entries = [i for k in part_of for i in range(mech.v_start[k], mech.v_start[k + 1])]
    places = [i for k in part_of for i in range(mech.q_start[k], mech.q_start[k + 1])]
    return tree, np.eye(mech.nv)[entries], q[places]
