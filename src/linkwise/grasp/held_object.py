"""Arms and the object they hold in one state: what each arm adds to the object and what it blocks.

With v_o the velocities of the object's hinge and v_i those of arm i, the contacts of the arm
require

    A v_o = B v_i,    A v̇_o + γ = B v̇_i          A, -B: columns of J_c,  γ = J̇_c v

With D the measure of the rows (turning counts at a length) and the decomposition D B = U s V*,
the possible motions of the arm at its contacts are D⁻¹ U_r; no motion of the arm has components in
the rows U_0* D:

    U_0* D (A v̇_o + γ) = 0                        blocked by the arm

Let l⁻¹ = D^(-½) (I - H ψ K) whiten joint forces, 𝓜⁻¹ = l⁻* l⁻¹ (`innovations`), and
(U_r* D B l⁻*)* = Q T. Then the inertia that the arm has at its contacts, and the force there of
joint forces Γ, are

    Λ = G* G,   G = T⁻* U_r* D,       J̄* Γ = Λ B 𝓜⁻¹ Γ = G* Q* l⁻¹ Γ

so nothing is squared before it is inverted. The arm with joint forces Γ applies to the object

    A* λ,   λ = G* (Q* l⁻¹ (Γ - C) - G (A v̇_o + γ)) + the blocked part.

Source: 003, sections 6 and 7; the contacts are those of 001-II, of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import mass as mass_operator
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closure import CLOSED, blocked_inputs, loop_errors, setting_of
from linkwise.dynamics.innovations import innovations
from linkwise.dynamics.kernels import written
from linkwise.dynamics.kinematics import bias_seen
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.velocity_space import Scale, scale
from linkwise.errors import ClosureError, SingularHingeError
from linkwise.grasp.arms import Arm, MultiArm
from linkwise.model.closure import blocked, closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

TOLERANCE = 1e-10
"""Motions of an arm at its contacts below this fraction of its largest count as lost."""

REDUNDANT = 1e-9
"""Blocking rows below this fraction of the largest are redundant: loops close to about 1e-12."""

OPEN = 1e-3
"""Largest gap [m, rad] of a closed loop. `simulate` begins within 1e-6; between its steps, where it
also evaluates controllers, loops drift by about 1e-5, by 1e-4 in long steps."""

APART = 2e-2
"""Largest speed [m/s, rad/s] at which a loop may open: 1e-3 and 1e-2 in the same situations. It
scales with joint velocities above one rad/s or m/s."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmState:
    """One arm with its contacts, in one state.

    Attributes:
        name: First body of the arm.
        columns: Indices of its velocities in v (n,).
        rows: Indices of its contacts among the constraint rows (k,).
        A: From the object's velocities to its contacts (k, n_o).
        B: From the arm's velocities to its contacts (k, n).
        bias: γ (k,).
        G: Root of the inertia at the contacts, Λ = G* G (r, k).
        Q: (n, r): B 𝓜⁻¹ = T* Q* l⁻¹ in the rows that exist.
        blocked: U_0* D (k - r, k).
        mobility: m_i, the number of motions of the object that the arm alone allows.
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
    mobility: int
    forces: Array
    whitened: Array

    @property
    def inertia(self) -> Array:
        """A* Λ A (n_o, n_o): the inertia that the arm adds to the object."""
        root = self.G @ self.A
        return root.T @ root

    def carried(self, vdot_o: Array) -> Array:
        """Λ (A v̇_o + γ) (k,): moves the arm along with the object."""
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
        directions: U (6, m): an orthonormal basis of the object's possible motions.
        to_hinge: (n_o, 6): v_o of a possible motion ẋ, zero for impossible ones.
        enforced: The part of v̇_o (n_o,) that the arms determine: v̇_o = Z y + this.
        loops: S of each loop (rows, 6): what its hinge blocks.
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
    loops: tuple[Array, ...]

    @property
    def offset(self) -> Array:
        """d (n_o,): v̇_o = K ẍ + d with K = `to_hinge`."""
        return self.enforced - self.to_hinge @ (self.jacobian @ self.enforced + self.bias)

    @property
    def enforced_acceleration(self) -> Array:
        """(1 - U U*) ẍ (6,): the part of ẍ that no force changes."""
        total = self.jacobian @ self.enforced + self.bias
        return total - self.directions @ (self.directions.T @ total)


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
        tolerance: Motions of an arm at its contacts below this fraction of its largest are lost.

    Raises:
        ClosureError: A loop is open, or velocities pull it apart.
        SingularHingeError: Nothing resists the hinge of some body.
    """
    if not len(q):
        return []
    measure, of_object = scale(mech), parts.object_rows
    at = _evaluated(mech, parts, q, v)
    J_c, right, eps, mass = at["J_c"], at["right"], at["eps"], at["mass"]
    poses = [trusted_pose(x[..., :3], x[..., 3]) for x in np.swapaxes(at["loops"], 0, 1)]
    _check_closed(mech, q, v, J_c, poses)
    still = np.zeros((len(q), 6))
    pairs = zip(mech.loops, poses, strict=True)
    S = [blocked(loop.hinge, pose, still).S for loop, pose in pairs]
    _check_resisted(mech, q, right, eps)
    J_p, bias = _at_point(parts, v, point, at)
    states = list[HeldState]()
    for i in range(len(q)):
        arms = tuple(
            _arm_state(arm, J_c[i], at["gamma"][i], right[i], eps[i], of_object, measure, tolerance)
            for arm in parts.arms
        )
        bias_o, v_o, unit = at["of_object"][i], v[i, of_object], measure.columns[of_object]
        loops = tuple(x[i] if x.ndim == 3 else x for x in S)
        rest = (mass[i], bias_o, J_p[i], bias[i], v_o)
        states.append(_held(arms, *rest, unit, measure.length, loops))
    return states


NAMES = ("J_c", "gamma", "right", "eps", "of_object", "mass", "J", "bias", "rot", "loops")


def _evaluated(mech: Mechanism, parts: MultiArm, q: Array, v: Array) -> dict[str, Array]:
    """All numbers of the states that `_inputs` gives, by name, with the batch in front."""
    made = _kernel(mech, parts.object_bodies)
    given = {"q": q, "v": v}
    if {"S", "S_rate"} & set(made.arguments):
        given |= blocked_inputs(mech, q, v)
    rows = [given[name] for name in made.arguments]
    if len(q) == 1:
        return {name: x[None] for name, x in made(*(row[0] for row in rows)).items()}
    return made(*rows, status=np.zeros(len(q), np.int32))


@once_per_mechanism
def _kernel(mech: Mechanism, names: tuple[str, ...]) -> Any:
    return written(mech, Formula(_inputs, names, NAMES), names[0])


def _inputs(at: Writing, *names: str) -> Any:
    """J_c, γ, joint forces with the object's left out and l⁻¹ of them, and the object's own."""
    mech, nodes, s = at.mech, closure_nodes(at.mech), setting_of(at.mech)
    of_object: Any = np.r_[tuple(mech.v_slice(name) for name in names)]
    at.read("q", mech.nq)  # the first inputs
    at.read("v", mech.nv)
    J_c, gamma = (
        at.value(CLOSED[name](s), nodes=nodes)
        for name in ("constraint_jacobian", "constraint_bias")
    )
    forces = np.stack([at.value(expression(x)) for x in ("coriolis_force", "gravity_force")])
    # The arms are trees beside the object: l⁻¹ of all rows with the object's columns left out.
    right, root = np.concatenate([-J_c, forces]), root_of(at)
    right[:, of_object] = 0.0
    eps = [root.solved(at.value(expression("whitened_force"), x=row)) for row in right]
    poses = at.value(expression("node_poses"), nodes=nodes).reshape(-1, 2, 3, 4)
    back = np.swapaxes(poses[:, 0, :, :3], -1, -2)
    apart = (poses[:, 1, :, 3] - poses[:, 0, :, 3])[..., None]
    loops = np.concatenate([back @ poses[:, 1, :, :3], back @ apart], axis=-1)
    rot = at.value(expression("node_poses")).reshape(3, 4)[:, :3]
    mass = at.value(mass_operator, rows=names, columns=names)
    J = at.value(expression("jacobian", frame="world"))[:, of_object]
    bias, force = bias_seen(at, "world", None), forces[:, of_object]
    return J_c, gamma, right, np.stack(eps), force, mass, J, bias, rot, loops


def _check_resisted(mech: Mechanism, q: Array, right: Array, eps: Array) -> None:
    """Raise for the first state in which nothing resists some hinge."""
    for i in np.flatnonzero(~np.isfinite(eps).all(axis=(1, 2))):
        innovations(mech, q[i], right[i, 0])  # raises, naming the body
        raise SingularHingeError(f"nothing resists some hinge of {mech.name!r} in state {i}.")


def _at_point(
    parts: MultiArm, v: Array, point: Array, at: Mapping[str, Array]
) -> tuple[Array, Array]:
    """J_p and J̇_p v at the operational point, in the axes of the world: v_p = v_O + ω × r."""
    J, bias = at["J"].copy(), at["bias"].copy()
    if not point.any():
        return J, bias
    r = (at["rot"] @ point)[:, None, :]
    w = (J[:, :3] @ v[:, parts.object_rows, None])[..., 0]
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
    of_object: NDArray[np.int64],
    measure: Scale,
    tolerance: float,
) -> ArmState:
    """One arm, split into possible and lost motions at its contacts."""
    rows, columns = arm.rows, arm.columns
    A, B = J_c[rows][:, of_object], -J_c[rows][:, columns]
    D = measure.rows[rows]
    span, values, _ = np.linalg.svd(D[:, None] * B * measure.columns[columns])
    rank = int((values > tolerance * values.max(initial=0.0)).sum())
    exist, blocked = span[:, :rank].T * D, span[:, rank:].T * D  # U_r* D, U_0* D
    Q, T = np.linalg.qr((exist @ eps[rows][:, columns]).T)
    G = np.asarray(np.linalg.solve(T.T, exist), dtype=np.float64)
    lost = np.linalg.svd(blocked @ A * measure.columns[of_object], compute_uv=False)
    mobility = A.shape[1] - int((lost > REDUNDANT * measure.length).sum())
    forces, whitened = right[-2:, columns], eps[-2:, columns]
    return ArmState(
        arm.name, columns, rows, A, B, gamma[rows], G, Q, blocked, mobility, forces, whitened
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
    loops: tuple[Array, ...],
) -> HeldState:
    """The motions that all arms leave to the object, and those they determine."""
    rows = np.concatenate([x.blocked @ x.A for x in arms]) * unit
    span, values, right = np.linalg.svd(rows)
    rank = int((values > REDUNDANT * length).sum())
    target = -np.concatenate([x.blocked @ x.bias for x in arms])
    enforced = unit * (right[:rank].T @ ((span[:, :rank].T @ target) / values[:rank]))
    free = unit[:, None] * right[rank:].T  # Z
    basis, R = np.linalg.qr(J_p @ free)
    to_hinge = np.asarray(free @ np.linalg.solve(R, basis.T), dtype=np.float64)
    return HeldState(
        arms, mass, forces[0], forces[1], J_p, bias, J_p @ v_o, basis, to_hinge, enforced, loops
    )


def _check_closed(mech: Mechanism, q: Array, v: Array, J_c: Array, poses: Sequence[Pose]) -> None:
    """Raise for states in which the arms do not hold the object: their sums would mean nothing."""
    e = loop_errors(mech, q, poses).reshape(len(q), -1, 2, 3)
    size = np.linalg.norm(e, axis=-1)  # (batch, loops, 2): angle, distance
    if (size > OPEN).any():
        state, loop, _ = np.unravel_index(int(np.argmax(size)), size.shape)
        angle, distance = size[state, loop]
        raise ClosureError(
            f"the arms of {mech.name!r} do not hold the object{_in(state, q)}: loop "
            f"{mech.loops[loop].name!r} is open by {distance:.3g} m and {angle:.3g} rad. Up to "
            f"{OPEN:g} is allowed; close it with lw.loops.assemble(mech, q)."
        )
    if not v.any():
        return
    speed = np.abs((J_c @ v[..., None])[..., 0])
    allowed = APART * np.maximum(np.abs(v).max(axis=-1, keepdims=True), 1.0)
    if (speed > allowed).any():
        state, row = np.unravel_index(int(np.argmax(speed / allowed)), speed.shape)
        names = [loop.name for loop in mech.loops for _ in range(loop.rows)]
        raise ClosureError(
            f"the velocities pull loop {names[int(row)]!r} of {mech.name!r} apart"
            f"{_in(state, q)}, |J_c v| = {speed[state, row]:.3g} m/s or rad/s; up to "
            f"{allowed[state, 0]:.2g} is allowed. Use lw.loops.project_velocity(mech, q, v)."
        )


def _in(state: np.intp, q: Array) -> str:
    return f" in state {state} of {len(q)}" if len(q) > 1 else ""
