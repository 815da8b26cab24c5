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

All of it is one kernel. Where a state has fewer motions than others, rows of G and columns of Q are
zero, and so are rows of U_0* D where it has more.

Source: 003, sections 6 and 7; the contacts are those of 001-II, of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import mass as mass_operator
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import (
    complement,
    factored,
    independent,
    singular,
    solved,
    solved_below,
)
from linkwise.dynamics.closure import (
    CLOSED,
    blocked_inputs,
    constraint_error,
    relative_poses,
    setting_of,
)
from linkwise.dynamics.closure_error import error_kernel, errors_of_loops
from linkwise.dynamics.kernels import written
from linkwise.dynamics.kinematics import bias_seen
from linkwise.dynamics.mass_root import mass_root
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError
from linkwise.grasp.arms import MultiArm, rigid_parts
from linkwise.model.closure import blocked, closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.choice import absolute, gate, maximum, norm
from linkwise.spatial.vector import cross

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
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


class HeldArm(NamedTuple):
    """One arm with its contacts, in a formula; its k contacts have r ≤ k possible motions.

    Attributes:
        A: From the object's velocities to its contacts (k, n_o).
        B: From the arm's velocities to its contacts (k, n).
        bias: γ (k,).
        G: Root of the inertia at the contacts, Λ = G* G (k, k).
        Q: (n, k): B 𝓜⁻¹ = T* Q* l⁻¹ in the rows that exist.
        blocked: U_0* D (k, k).
        mobility: m_i, the number of motions of the object that the arm alone allows.
        forces: C_v and g (2, n).
        whitened: l⁻¹ C_v and l⁻¹ g (2, n).
    """

    A: Any
    B: Any
    bias: Any
    G: Any
    Q: Any
    blocked: Any
    mobility: Any
    forces: Any
    whitened: Any

    @property
    def inertia(self) -> Any:
        """A* Λ A (n_o, n_o): the inertia that the arm adds to the object."""
        root = self.G @ self.A
        return root.T @ root

    def carried(self, vdot_o: Any) -> Any:
        """Λ (A v̇_o + γ) (k,): moves the arm along with the object."""
        return self.G.T @ (self.G @ (self.A @ vdot_o + self.bias))

    def felt(self, eps: Any) -> Any:
        """J̄* Γ = G* Q* ε (k,): the force at the contacts of joint forces with l⁻¹ Γ = ε."""
        return self.G.T @ (self.Q.T @ eps)


class HeldObject(NamedTuple):
    """The object, in a formula.

    Attributes:
        mass: 𝓜_o of the object alone (n_o, n_o).
        forces: C_v and g of the object (2, n_o).
        jacobian: J_p (6, n_o): ẋ = J_p v_o, in the axes of the world.
        bias: J̇_p v_o (6,).
        velocity: ẋ (6,).
        motions: U (6, n_o): orthonormal columns that span the object's possible motions, and zeros.
        exists: 1 for columns that are not zero, 0 for others (n_o,).
        to_hinge: K (n_o, 6): v_o of a possible motion ẋ, zero for impossible ones.
        enforced: The part of v̇_o (n_o,) that the arms determine: v̇_o = Z y + this.
        gap: How far each loop is open (loops, 2) [rad, m]; none where that is no formula.
        speed: J_c v (m,), zero where velocities hold all loops closed.
        trouble: Positive where the arms do not hold the object, by gap or speed.
    """

    mass: Any
    forces: Any
    jacobian: Any
    bias: Any
    velocity: Any
    motions: Any
    exists: Any
    to_hinge: Any
    enforced: Any
    gap: Any
    speed: Any
    trouble: Any

    @property
    def offset(self) -> Any:
        """d (n_o,): v̇_o = K ẍ + d."""
        return self.enforced - self.to_hinge @ (self.jacobian @ self.enforced + self.bias)

    @property
    def enforced_acceleration(self) -> Any:
        """(1 - U U*) ẍ (6,): the part of ẍ that no force changes."""
        total = self.jacobian @ self.enforced + self.bias
        return total - self.motions @ (self.motions.T @ total)


@dataclass(frozen=True, slots=True, eq=False)
class ArmState:
    """One arm with its contacts, in one state.

    Attributes:
        name: First body of the arm.
        columns: Indices of its velocities in v (n,).
        rows: Indices of its contacts among the constraint rows (k,).
        numbers: Everything else.
    """

    name: str
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    numbers: HeldArm


@dataclass(frozen=True, slots=True, eq=False)
class HeldState:
    """An object and the arms that hold it, in one state.

    Attributes:
        arms: The arms.
        object: The object.
        loops: S of each loop (rows, 6): what its hinge blocks.
    """

    arms: tuple[ArmState, ...]
    object: HeldObject
    loops: tuple[Array, ...]


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
    body = parts.object_bodies[0]
    results = evaluated(mech, written_on(mech, body), q, v, point, tolerance)
    still = np.zeros((len(q), 6))
    pairs = zip(mech.loops, relative_poses(mech, q), strict=True)
    S = [blocked(loop.hinge, pose, still).S for loop, pose in pairs]
    states = list[HeldState]()
    for i in range(len(q)):
        numbers = iter([x[i] for x in results.values()])
        held = HeldObject(*(next(numbers) for _ in HeldObject._fields))
        arms = [HeldArm(*(next(numbers) for _ in HeldArm._fields)) for _ in parts.arms]
        states.append(
            HeldState(
                tuple(
                    ArmState(arm.name, arm.columns, arm.rows, x)
                    for arm, x in zip(parts.arms, arms, strict=True)
                ),
                held,
                tuple(x[i] if x.ndim == 3 else x for x in S),
            )
        )
    return states


# ------------------------------------------------------------------------------------- formula


@once_per_mechanism
def written_on(mech: Mechanism, body: str) -> Kernel:
    """The kernel of an object and its arms, all numbers one after another."""
    arms = rigid_parts(mech, body).arms
    names = [*HeldObject._fields, *(f"{x}_{i}" for i in range(len(arms)) for x in HeldArm._fields)]
    return written(mech, Formula(_all, (body,), tuple(names)), body)


def evaluated(
    mech: Mechanism, kernel: Kernel, q: Array, v: Array, point: Array, tolerance: float
) -> dict[str, Array]:
    """The results of such a kernel by name, with the batch in front.

    Raises:
        ClosureError: A loop is open, or velocities pull it apart.
        SingularHingeError: Nothing resists the hinge of some body.
    """
    given = {"q": q, "v": v, "point": point, "tolerance": np.array([tolerance])}
    names = [name for name, _ in kernel.device.inputs]
    if {"S", "S_rate"} & set(names):
        given |= blocked_inputs(mech, q, v)
    if len(q) == 1:
        one = kernel(*[x[0] if (x := given[n]).ndim == 2 else x for n in names])
        results = {name: x[None] for name, x in one.items()}
    else:
        codes = np.zeros(len(q), np.int32)
        results = kernel(*[given[name] for name in names], status=codes)
        if codes.any():
            i = int(np.argmax(codes != 0))
            kernel(*[x[i] if (x := given[n]).ndim == 2 else x for n in names])  # raises
    if (results["trouble"] > 0.0).any() or not results["gap"].size:
        _check_closed(mech, q)
        _check_speed(mech, q, v, results["speed"])
    return results


def _all(at: Writing, body: str) -> Any:
    held, arms = held_object(at, body)
    return *held, *(x for arm in arms for x in arm)


def held_object(at: Writing, body: str) -> tuple[HeldObject, list[HeldArm]]:
    """The object and its arms; inputs q, v, point and tolerance."""
    mech, nodes, s = at.mech, closure_nodes(at.mech), setting_of(at.mech)
    parts, measure = rigid_parts(mech, body), scale(mech)
    _, v = at.q, at.v  # the first inputs
    point, (tolerance,) = at.read("point", 3), at.read("tolerance", 1)
    J_c, gamma = (
        at.value(CLOSED[name](s), nodes=nodes)
        for name in ("constraint_jacobian", "constraint_bias")
    )
    forces = np.stack([at.value(expression(x)) for x in ("coriolis_force", "gravity_force")])
    of_object, unit = parts.object_rows, measure.columns[parts.object_rows]
    # The arms are trees beside the object: each has a block of the root of 𝓜.
    mass = at.value(mass_operator)
    root, arms = mass_root(at, mass).triangle, list[HeldArm]()
    missing: Any = -0.5
    for arm in parts.arms:
        rows, columns = arm.rows, arm.columns
        A, B, D = J_c[rows][:, of_object], -J_c[rows][:, columns], measure.rows[rows]
        span, values = singular(at, D[:, None] * B * measure.columns[columns])
        exists = np.array([gate(x - tolerance * values[0], 1.0) for x in values])
        possible, lost = (e[:, None] * span.T * D for e in (exists, 1.0 - exists))
        block = root[np.ix_(columns, columns)]
        Q, T = factored(solved(block, (possible @ B).T), exists)
        some = sum(1.0 - exists, -0.5)  # positive if there are lost rows
        reached = independent(at, lost @ A * unit, REDUNDANT, measure.length, when=some).exists
        missing = maximum(missing, some)
        inside = forces[:, columns]
        white = solved(block, inside.T).T
        mobility = float(len(of_object)) - reached.sum()
        G = solved_below(T, possible)
        arms.append(HeldArm(A, B, gamma[rows], G, Q, lost, mobility, inside, white))
    J, bias = _at_point(at, v[of_object], point, of_object)
    blocking = np.concatenate([x.blocked @ x.A for x in arms]) * unit
    target = -np.concatenate([x.blocked @ x.bias for x in arms])[:, None]
    held = independent(at, blocking, REDUNDANT, measure.length, target, when=missing)
    enforced = unit * (held.rows.T @ held.beside[:, 0])
    free = complement(at, held.rows, held.exists)
    left = unit[:, None] * free.rows.T  # Z
    motions, T = factored(J @ left, free.exists)
    to_hinge = left @ solved(T, motions.T)
    parted = mass[np.ix_(of_object, of_object)], forces[:, of_object], J, bias, J @ v[of_object]
    rest = motions, free.exists, to_hinge, enforced
    return HeldObject(*parted, *rest, *_loosened(at, J_c @ v, v)), arms


def _loosened(at: Writing, speed: Any, v: Any) -> tuple[Any, Any, Any]:
    """Gap, speed and trouble of `HeldObject`."""
    gap = np.zeros((0, 2))
    if error_kernel(at.mech, False) is not None:
        gap = np.array([[norm(e[:3]), norm(e[3:])] for e in errors_of_loops(at)])
    fastest: Any = 1.0
    for x in v:
        fastest = maximum(fastest, absolute(x))
    trouble: Any = -OPEN
    for x in gap.ravel():
        trouble = maximum(trouble, x - OPEN)
    for x in speed:
        trouble = maximum(trouble, absolute(x) - APART * fastest)
    return gap, speed, trouble


def _at_point(at: Writing, v: Any, point: Any, of_object: NDArray[np.int64]) -> tuple[Any, Any]:
    """J_p and J̇_p v at the operational point, in the axes of the world: v_p = v_O + ω × r."""
    J = at.value(expression("jacobian", frame="world"))[:, of_object]
    bias = bias_seen(at, "world", None)
    r = at.value(expression("node_poses")).reshape(3, 4)[:, :3] @ point
    w = J[:3] @ v
    turned = np.array([cross(column, r) for column in J[:3].T]).T
    # d/dt (ω × r) = ω̇ × r + ω × (ω × r)
    swung = cross(bias[:3], r) + cross(w, cross(w, r))
    parts = np.concatenate([J[:3], J[3:] + turned]), np.concatenate([bias[:3], bias[3:] + swung])
    return parts


# -------------------------------------------------------------------------------------- checks


def _check_closed(mech: Mechanism, q: Array) -> None:
    """Raise for states in which the arms do not hold the object: their sums would mean nothing."""
    e = constraint_error(mech, q[0] if len(q) == 1 else q, per="loop")
    e = e.reshape(len(q), len(mech.loops), 2, 3)
    size = np.linalg.norm(e, axis=-1)  # (batch, loops, 2): angle, distance
    if size.max(initial=0.0) > OPEN:
        state, loop, _ = np.unravel_index(int(np.argmax(size)), size.shape)
        angle, distance = size[state, loop]
        raise ClosureError(
            f"the arms of {mech.name!r} do not hold the object{_in(state, q)}: loop "
            f"{mech.loops[loop].name!r} is open by {distance:.3g} m and {angle:.3g} rad. Up to "
            f"{OPEN:g} is allowed; close it with lw.loops.assemble(mech, q)."
        )


def _check_speed(mech: Mechanism, q: Array, v: Array, apart: Array) -> None:
    """Raise for velocities J_c v (batch, m) that pull loops apart."""
    if not v.any():
        return
    speed = np.abs(apart)
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
