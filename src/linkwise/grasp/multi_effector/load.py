"""What a load adds to the inertia of the arm that carries it.

A load of mass m and inertia 𝓘 about its centre of mass C, seen from the operational point O, with
r from O to C, has the velocity of O in its own motion: v_C = v + ω × r. In (angular, linear),

    V_C = φ* V,   φ* = [1 0; -r~ 1],    Λ_L = φ [𝓘 0; 0 m] φ* = [𝓘 - m r~ r~   m r~;  -m r~   m]

which is the spatial inertia of the load about O. What the arm and the load together have, where
J are all six rows of the effector, is

    Λ_arm+load = Λ_arm + Λ_L          in operational space    (Lemma 3)
    𝓜_arm+load = 𝓜 + J* Λ_L J         in joint space          (Lemma 4)

Lemma 4 says that energies add, and holds always. Lemma 3 follows from it by
(J (𝓜 + J* Λ_L J)⁻¹ J*)⁻¹ = Λ + Λ_L, for redundant arms as well, under one condition: the energy of
the load must be a function of ẋ alone. All six rows of the effector are enough. A task of fewer
rows is not: for the position of a hand alone, a load with an inertia about O turns with the hand,
and what it adds is no longer its mass. Where motions of the effector are lost, the load counts in
those that exist: Λ_L between projectors P = U U* on them.

Source: 003, (56)-(62) and (72), (73), with the halves of the vectors the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from linkwise.dynamics.kernels import Loops, check_mechanism
from linkwise.dynamics.kinematics import jacobian
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.operational_space import TOLERANCE, OperationalSpace, operational_space
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike


@dataclass(frozen=True, slots=True, eq=False)
class LoadEffect:
    """An arm and a load at one of its nodes; for a batch every array has the batch in front.

    Attributes:
        node: Where the load is.
        load: Λ_L (6, 6) at the node, angular rows first.
        effector: The operational space of the arm without the load.
        inertia: Λ_arm+load (6, 6), of the motions that the node has.
        mass_matrix: 𝓜_arm+load (nv, nv).
    """

    node: str
    load: Array
    effector: OperationalSpace
    inertia: Array
    mass_matrix: Array

    def __str__(self) -> str:
        if self.inertia.ndim > 2:
            return f"a load at {self.node!r}, {len(self.inertia)} states"
        before, after = (np.trace(x[3:, 3:]) / 3.0 for x in (self.effector.inertia, self.inertia))
        mass = self.load[5, 5]
        return (
            f"a load of {mass:.4g} kg at {self.node!r}: the mean of the diagonal of the linear "
            f"part of Λ goes from {before:.4g} to {after:.4g} kg"
        )


def load_inertia(load: SpatialInertia, pose: PoseLike | None = None) -> Array:
    """Λ_L: the inertia of a load as felt at the operational point.

    Expression:
        Λ_L = φ M_L φ* = [𝓘_C - m r~ r~   m r~;  -m r~   m]
    with r from the operational point to the centre of mass of the load.
    Source: 003 (56)-(59). Departs: (angular, linear); the load may be given about any frame.

    Args:
        load: Mass, centre of mass and inertia of the load in a frame of its own.
        pose: Of that frame, seen from the operational frame; by default they are one. A stack of
            poses gives a stack of inertias.

    Returns:
        (6, 6), or with a stack of poses (batch, 6, 6), at the origin of the operational frame and
        in its axes, angular rows first [kg m², kg m, kg].

    Raises:
        ModelError: The load is not a SpatialInertia.
    """
    if not isinstance(cast(object, load), SpatialInertia):
        raise ModelError(
            f"load is a {type(load).__name__}; it must be a SpatialInertia, which "
            "lw.SpatialInertia.from_com, .point, .solid_box and others make."
        )
    at = Pose.identity() if pose is None else pose if isinstance(pose, Pose) else Pose.of(pose)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(load.moved(at).matrix)
    if not np.isfinite(found).all():
        raise ModelError("the inertia of the load is not finite: it is too far away, or too heavy.")
    return found


def load_effect(
    mech: Mechanism,
    q: ArrayLike,
    load: SpatialInertia,
    *,
    node: str,
    pose: PoseLike | None = None,
    frame: Frame = "node",
    tolerance: float = TOLERANCE,
    loops: Loops = "closed",
) -> LoadEffect:
    """What an arm weighs at a node when a load is fixed there.

    Expression:
        Λ_arm+load = Λ + P Λ_L P,   P on the motions that exist      (62)
        𝓜_arm+load = 𝓜 + J* Λ_L J                                    (72)
    Source: 003, Lemmas 3 and 4. `mech.with_payload` builds the mechanism that carries the load.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        load: The load, in a frame of its own.
        node: Name of the node or body that it is fixed to: the operational point.
        pose: Of the load's frame, seen from the node; by default they are one.
        frame: Axes of the inertias: those of the "node" or of the "world".
        tolerance: Motions of the node below this part of the easiest are called lost.
        loops: "closed" holds loops and couplings; "open" leaves them open.

    Raises:
        ModelError: The load is not a SpatialInertia.
        UnknownNameError: A node that the mechanism does not have.
    """
    check_mechanism(mech)
    space = operational_space(mech, q, node, frame=frame, tolerance=tolerance, loops=loops)
    at_node = load_inertia(load, pose)
    J = np.asarray(jacobian(mech, q, node, frame="node"))
    mass = mass_matrix(mech, q) + np.swapaxes(J, -1, -2) @ at_node @ J
    if frame == "world":
        rot = mech.pose(mech.check_q(q), node).rot
        turn = np.zeros((*rot.shape[:-2], 6, 6))
        turn[..., :3, :3] = turn[..., 3:, 3:] = rot
        at_node = turn @ at_node @ np.swapaxes(turn, -1, -2)
    kept = np.arange(6) < np.asarray(space.rank)[..., None]
    exist = (space.basis * kept[..., None, :]) @ np.swapaxes(space.basis, -1, -2)
    added = np.broadcast_to(at_node, exist.shape)
    return LoadEffect(node, np.array(added), space, space.inertia + exist @ added @ exist, mass)
