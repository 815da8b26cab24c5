"""Arms and the object they hold in one state: what each arm adds to the object, and what it blocks.

With v_o the velocities of the object's hinge and v_i those of arm i, the contacts of the arm ask

    A v_o = B v_i,    A v̇_o + γ = B v̇_i          A, -B: columns of J_c,  γ = J̇_c v

With D the measure of the rows (turning counts at a length) and the decomposition D B = U s V*,
the motions that the arm can have at its contacts are D⁻¹ U_r, and U_0* D are rows that no motion of
the arm has:

    U_0* D (A v̇_o + γ) = 0                        what the arm blocks of the object

Let l⁻¹ = D^(-½) (I - H ψ K) whiten joint forces, 𝓜⁻¹ = l⁻* l⁻¹ (`innovations`), and
(U_r* D B l⁻*)* = Q T. Then the inertia that the arm has at its contacts, and the force there of
joint forces Γ, are

    Λ = G* G,   G = T⁻* U_r* D,       J̄* Γ = Λ B 𝓜⁻¹ Γ = G* Q* l⁻¹ Γ

so that nothing is squared before it is inverted. The arm with joint forces Γ puts on the object

    A* λ,   λ = G* (Q* l⁻¹ (Γ - C) - G (A v̇_o + γ)) + what it blocks.

Source: 003, sections 6 and 7; the contacts are those of 001-II, of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import constraint_bias, constraint_jacobian
from linkwise.dynamics.innovations import innovations
from linkwise.dynamics.joint_force import coriolis_force, gravity_force
from linkwise.dynamics.kinematics import jacobian, jacobian_bias
from linkwise.dynamics.velocity_space import Scale, scale
from linkwise.errors import SingularHingeError
from linkwise.grasp.multi_arm.evaluation import multi_arm_kernel
from linkwise.grasp.multi_arm.held_object import Arm, MultiArm
from linkwise.grasp.multi_effector.held_closed import check_closed
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

TOLERANCE = 1e-10
"""Motions of an arm at its contacts below this part of its easiest are called lost."""

CLOSED = 1e-9
"""Rows that block the object below this part of the largest follow from others: loops are closed to
1e-12 or so."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmState:
    """One arm with its contacts, in one state.

    Attributes:
        name: First body of the arm.
        columns: Where its velocities stand in v (n,).
        rows: Where its contacts stand among the rows of constraints (k,).
        A: What motions of the object do at its contacts (k, n_o).
        B: What motions of the arm do there (k, n).
        bias: γ (k,).
        G: Root of the inertia at the contacts, Λ = G* G (r, k).
        Q: (n, r): B 𝓜⁻¹ = T* Q* l⁻¹ in the rows that exist.
        blocked: U_0* D (k - r, k).
        freedoms: m_i, how many motions of the object the arm by itself would allow.
        forces: C_v and g (2, n).
        whitened: l⁻¹ C_v and l⁻¹ g (2, n).
    """

    name: str
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    A: Array
    B: Array
    bias: Array
    G: Array
    Q: Array
    blocked: Array
    freedoms: int
    forces: Array
    whitened: Array

    @property
    def inertia(self) -> Array:
        """A* Λ A (n_o, n_o): what the arm adds to the object, in the motions that it allows."""
        root = self.G @ self.A
        return root.T @ root

    def carried(self, vdot_o: Array) -> Array:
        """Λ (A v̇_o + γ) (k,): what moves the arm along with the object."""
        return self.G.T @ (self.G @ (self.A @ vdot_o + self.bias))

    def felt(self, eps: Array) -> Array:
        """J̄* Γ = G* Q* ε (k,): the force at the contacts of joint forces with l⁻¹ Γ = ε."""
        return self.G.T @ (self.Q.T @ eps)


@dataclass(frozen=True, slots=True, eq=False)
class HeldState:
    """An object and the arms that hold it, in one state.

    Attributes:
        arms: The arms.
        mass: 𝓜_o of the object alone (n_o, n_o).
        coriolis: C_v of the object (n_o,).
        gravity: g of the object (n_o,).
        jacobian: J_p (6, n_o): ẋ = J_p v_o, in the axes of the world.
        bias: J̇_p v_o (6,).
        velocity: ẋ (6,).
        directions: U (6, m): an orthonormal basis of the motions that the object has.
        to_hinge: (n_o, 6): v_o of a motion ẋ that it has, and zero for what is none.
        enforced: v̇_o (n_o,) that the arms leave no choice about: v̇_o = Z y + this.
    """

    arms: tuple[ArmState, ...]
    mass: Array
    coriolis: Array
    gravity: Array
    jacobian: Array
    bias: Array
    velocity: Array
    directions: Array
    to_hinge: Array
    enforced: Array

    @property
    def offset(self) -> Array:
        """d (n_o,): v̇_o = K ẍ + d with K = `to_hinge`."""
        return self.enforced - self.to_hinge @ (self.jacobian @ self.enforced + self.bias)

    @property
    def enforced_acceleration(self) -> Array:
        """(1 - U U*) ẍ (6,): the part of ẍ that no force changes."""
        whole = self.jacobian @ self.enforced + self.bias
        return whole - self.directions @ (self.directions.T @ whole)


def held_states(
    mech: Mechanism,
    parts: MultiArm,
    q: Array,
    v: Array,
    point: Array,
    tolerance: float,
) -> list[HeldState]:
    """The states of a batch.

    Args:
        mech: The mechanism.
        parts: Its arms and its object.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        point: The operational point in the frame of the object's body (3,) [m].
        tolerance: Motions of an arm at its contacts below this part of its easiest are lost.

    Raises:
        ClosureError: A loop is open, or velocities pull it apart.
        SingularHingeError: Nothing resists the hinge of some body.
    """
    if not len(q):
        return []
    measure, own = scale(mech), parts.object_rows
    J_c = constraint_jacobian(mech, q)
    check_closed(mech, q, v, J_c)
    gamma = constraint_bias(mech, q, v)
    forces = np.stack([coriolis_force(mech, q, v), gravity_force(mech, q)], axis=1)
    # The arms are trees beside the object: l⁻¹ of all rows with the object's columns left out.
    right = np.concatenate([-J_c, forces], axis=1)
    right[:, :, own] = 0.0
    count = right.shape[1]
    eps = innovations(mech, np.repeat(q, count, axis=0), right.reshape(-1, mech.nv))
    eps = eps.reshape(right.shape)
    _check_resisted(mech, q, right, eps)
    names = parts.object_bodies
    mass = multi_arm_kernel(mech, "inertia", rows=names, columns=names)(q)
    J_p, bias = _at_point(mech, parts, q, v, point)
    found = list[HeldState]()
    for i in range(len(q)):
        arms = tuple(
            _arm_state(arm, J_c[i], gamma[i], right[i], eps[i], own, measure, tolerance)
            for arm in parts.arms
        )
        own_forces, unit = forces[i][:, own], measure.columns[own]
        found.append(
            _held(arms, mass[i], own_forces, J_p[i], bias[i], v[i, own], unit, measure.length)
        )
    return found


def _check_resisted(mech: Mechanism, q: Array, right: Array, eps: Array) -> None:
    """Raise for the first state in which nothing resists some hinge, which is named."""
    for i in np.flatnonzero(~np.isfinite(eps).all(axis=(1, 2))):
        innovations(mech, q[i], right[i, 0])  # of one state: it tells
        raise SingularHingeError(f"nothing resists some hinge of {mech.name!r} in state {i}.")


def _at_point(
    mech: Mechanism, parts: MultiArm, q: Array, v: Array, point: Array
) -> tuple[Array, Array]:
    """J_p and J̇_p v at the operational point, in the axes of the world: v_p = v_O + ω × r."""
    body = parts.object_bodies[0]
    J = np.asarray(jacobian(mech, q, body, frame="world"))[:, :, parts.object_rows]
    bias = np.array(jacobian_bias(mech, q, v, body, frame="world"))
    if not point.any():
        return J, bias
    r = (mech.pose(q, body).rot @ point)[:, None, :]
    w = (J[:, :3] @ v[:, parts.object_rows, None])[..., 0]
    J = J.copy()
    J[:, 3:] += np.swapaxes(np.cross(np.swapaxes(J[:, :3], 1, 2), r), 1, 2)
    # d/dt (ω × r) = ω̇ × r + ω × (ω × r)
    bias[:, 3:] += np.cross(bias[:, :3], r[:, 0]) + np.cross(w, np.cross(w, r[:, 0]))
    return J, bias


def _arm_state(
    arm: Arm,
    J_c: Array,
    gamma: Array,
    right: Array,
    eps: Array,
    own: NDArray[np.int64],
    measure: Scale,
    tolerance: float,
) -> ArmState:
    """One arm, split into the motions at its contacts that it has and those it has not."""
    rows, columns = arm.rows, arm.columns
    A, B = J_c[rows][:, own], -J_c[rows][:, columns]
    D = measure.rows[rows]
    span, values, _ = np.linalg.svd(D[:, None] * B * measure.columns[columns])
    rank = int((values > tolerance * values.max(initial=0.0)).sum())
    exist, blocked = span[:, :rank].T * D, span[:, rank:].T * D  # U_r* D, U_0* D
    Q, T = np.linalg.qr((exist @ eps[rows][:, columns]).T)
    G = np.asarray(np.linalg.solve(T.T, exist), dtype=np.float64)
    lost = np.linalg.svd(blocked @ A * measure.columns[own], compute_uv=False)
    freedoms = A.shape[1] - int((lost > CLOSED * measure.length).sum())
    forces, whitened = right[-2:, columns], eps[-2:, columns]
    return ArmState(
        arm.name, columns, rows, A, B, gamma[rows], G, Q, blocked, freedoms, forces, whitened
    )


def _held(
    arms: tuple[ArmState, ...],
    mass: Array,
    forces: Array,
    J_p: Array,
    bias: Array,
    v_o: Array,
    unit: Array,
    length: float,
) -> HeldState:
    """The motions that all arms leave to the object, and what they enforce."""
    rows = np.concatenate([x.blocked @ x.A for x in arms]) * unit
    span, values, right = np.linalg.svd(rows)
    rank = int((values > CLOSED * length).sum())
    wanted = -np.concatenate([x.blocked @ x.bias for x in arms])
    enforced = unit * (right[:rank].T @ ((span[:, :rank].T @ wanted) / values[:rank]))
    free = unit[:, None] * right[rank:].T  # Z
    basis, R = np.linalg.qr(J_p @ free)
    to_hinge = np.asarray(free @ np.linalg.solve(R, basis.T), dtype=np.float64)
    return HeldState(
        arms, mass, forces[0], forces[1], J_p, bias, J_p @ v_o, basis, to_hinge, enforced
    )
