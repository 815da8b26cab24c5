"""Loops and couplings: their errors, their Jacobian, and the dynamics that holds them.

With J_c = Q J + Y and γ = Q B* φ* a + κ_g + κ, which is Q B* φ* A_V v + κ:

    Ω = J_c 𝓜⁻¹ J_c*      λ = -Ω⁻¹ (J_c 𝓜⁻¹ (τ - C) + γ)      v̇ = 𝓜⁻¹ (τ - C + J_c* λ)

The expressions here are written this way; what runs is what `lw.derive` makes of them. It finds the
columns X = (I - H ψ K) J_c*, one for each row of the constraints, and Ω = X* D⁻¹ X: one sweep from
the tips, one from the base for v̇, and a matrix of the size of the constraints between them. For
arms that hold an object this is algorithm RCCFD2 of JPL 88-11-II, (6.18).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.algebra import (
    A_V,
    B,
    H,
    J,
    Q,
    Y,
    a,
    bias,
    f,
    kappa,
    kappa_g,
    mass,
    phi,
    rot_W,
    tau,
    v,
    vdot,
)
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.symbols import articulated, vector
from linkwise.codegen.stages import MOST_BODIES
from linkwise.dynamics.closure_error import error_kernel
from linkwise.dynamics.kernels import (
    Forces,
    acting,
    called,
    check_mechanism,
    kernel,
    pushed_nodes,
    side_by_side,
    tree_of,
)
from linkwise.dynamics.quantity import Frame, check_frame, expression
from linkwise.dynamics.rccfd import RCCFD
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model import closure
from linkwise.model.closure import (
    closure_nodes as closure_nodes,
    constraint_names as constraint_names,
    constraint_sizes as constraint_sizes,
    loop_error,
)
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.state import body_poses
from linkwise.pipeline import compile, derive
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.sweeps.program import Program

Per: TypeAlias = Literal["row", "loop"]
"""Errors of constraints for each of their rows, or for each loop."""

closing = vector("closing", CONSTRAINT, tex=r"\ddot{e}")
"""The value of J_c v̇ + γ, zero by default: with it open loops are made to close."""

# ------------------------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Setting:
    """The parts of a closed mechanism that enter its expressions.

    Attributes:
        loops: Whether it has loops.
        couplings: Whether it has couplings.
        pushed: Axes of forces at nodes, "node" or "world"; "" without forces.
        closing: Whether the constraints accelerate.
    """

    loops: bool = True
    couplings: bool = False
    pushed: str = ""
    closing: bool = False

    @property
    def jacobian(self) -> Expr:
        """J_c."""
        return _sum(Q @ J if self.loops else None, Y if self.couplings else None)

    @property
    def bias(self) -> Expr:
        """γ = J̇_c v."""
        return _sum(Q @ B.T @ phi.T @ A_V @ v if self.loops else None, kappa)

    @property
    def lifted_bias(self) -> Expr:
        """γ again, by the accelerations φ* a, which the bias forces need anyhow."""
        return _sum(Q @ B.T @ phi.T @ a + kappa_g if self.loops else None, kappa)

    @property
    def missing(self) -> Expr:
        """γ, less what the constraints shall accelerate by."""
        return self.lifted_bias - closing if self.closing else self.lifted_bias

    @property
    def push(self) -> Expr | None:
        """B f: the effect of forces at nodes on the bodies."""
        return {"node": B @ f, "world": B @ rot_W.T @ f}.get(self.pushed)

    @property
    def acting(self) -> Expr:
        """τ - C, and H φ B f."""
        return tau - bias if self.push is None else tau - bias + H @ phi @ self.push

    @property
    def whitened(self) -> Expr:
        """(I - H ψ K) J_c* = H ψ B Q* + (I - H ψ K) Y*."""
        loops = H @ articulated.psi @ B @ Q.T if self.loops else None
        return _sum(loops, articulated.whitening @ Y.T if self.couplings else None)

    @property
    def compliance(self) -> Expr:
        """Ω = J_c 𝓜⁻¹ J_c*, by the articulated recursion."""
        return self.whitened.T @ articulated.D.inv @ self.whitened

    @property
    def force(self) -> Expr:
        """-λ."""
        J_c = self.jacobian
        return (J_c @ mass.inv @ J_c.T).inv @ (J_c @ mass.inv @ self.acting + self.missing)


def _sum(*parts: Expr | None) -> Expr:
    first, *rest = [part for part in parts if part is not None]
    return sum(rest, first)


def _tip_force_correction(s: Setting) -> Expr:
    """The accelerations that forces alone cause."""
    J_c, push = s.jacobian, H @ phi @ (B @ f if s.push is None else s.push)
    force = (J_c @ mass.inv @ J_c.T).inv @ (J_c @ mass.inv @ push)
    return mass.inv @ push - mass.inv @ J_c.T @ force


def _allowed_velocity(s: Setting) -> Expr:
    """The nearest velocity that obeys, with the kinetic energy of the difference as distance."""
    J_c = s.jacobian
    return v - mass.inv @ J_c.T @ (J_c @ mass.inv @ J_c.T).inv @ (J_c @ v)


CLOSED: dict[str, Callable[[Setting], Expr]] = {
    "constraint_jacobian": lambda s: s.jacobian,
    "constraint_bias": lambda s: s.bias,
    "constraint_inertia_inverse": lambda s: s.jacobian @ mass.inv @ s.jacobian.T,
    "constraint_forces": lambda s: -1.0 * s.force,
    "forward_dynamics": lambda s: mass.inv @ s.acting - mass.inv @ s.jacobian.T @ s.force,
    "constraint_acceleration": lambda s: s.jacobian @ vdot + s.bias,
    "tip_force_correction": _tip_force_correction,
    "allowed_velocity": _allowed_velocity,
}


def closed_expression(mech: Mechanism, name: str, *, plain: bool = True) -> Expr:
    """The expression of a quantity of a mechanism with loops or couplings.

    Args:
        mech: The mechanism; it decides which terms are in the expression.
        name: "forward_dynamics", "constraint_forces", "constraint_jacobian" ...
        plain: As written in a textbook, or False for the equal form that runs.
    """
    check_mechanism(mech)
    if name not in CLOSED:
        raise unknown_name("quantity", name, CLOSED, owner="linkwise.loops")
    if not mech.loops and not mech.couplings:
        if name == "forward_dynamics":
            return expression("forward_dynamics")
        raise ModelError(f"{mech.name!r} has no loops and no couplings: it has no {name}.")
    expr = CLOSED[name](setting_of(mech, "node" if name == "tip_force_correction" else ""))
    return expr if plain else derive(expr).result


def setting_of(mech: Mechanism, pushed: str = "", closing: bool = False) -> Setting:
    """The parts of a mechanism that enter its expressions."""
    return Setting(bool(mech.loops), bool(mech.couplings), pushed, closing)


# ---------------------------------------------------------------------------------------- kernels


def closed_kernel(
    mech: Mechanism,
    name: str,
    forced: tuple[str, ...] = (),
    *,
    frame: Frame = "node",
    closing: bool = False,
    rank: int | None = None,
    parameters: tuple[str, ...] = (),
) -> Kernel:
    """The kernel behind a quantity of a mechanism with loops or couplings.

    Args:
        mech: The mechanism.
        name: A key of CLOSED or RCCFD.
        forced: Nodes with external forces; they come after those of the loops.
        frame: Axes of these forces.
        closing: Whether the constraints accelerate, by an input of that name.
        rank: How many rows have to be independent; other states get a code.
        parameters: Numbers of the mechanism that are inputs.
    """
    return _kernel(mech, name, forced, frame if forced else "", closing, rank, parameters)


@once_per_mechanism
def _kernel(
    mech: Mechanism, name: str, forced: tuple[str, ...], frame: str, closing: bool,
    rank: int | None, parameters: tuple[str, ...],
) -> Kernel:  # fmt: skip
    for node in forced:
        mech.node(node)  # raises for an unknown name
    expr = {**CLOSED, **RCCFD}[name](setting_of(mech, frame, closing))
    nodes = (*closure_nodes(mech), *forced)
    derive = name not in RCCFD
    if rank is None:
        return compile(expr, mech, nodes=nodes, derive=derive, parameters=parameters)
    from linkwise.codegen.kernel import kernel as kernel_of
    from linkwise.codegen.request import Request

    return kernel_of(Request((expr,), mech, nodes, parameters, rank=rank, derive=derive))


def program_of(mech: Mechanism, name: str) -> Program:
    """The sweeps of a quantity for the interpreter: of J_c as written, else derived."""
    expr = CLOSED[name](setting_of(mech))
    return _program(expr, name != "constraint_jacobian", bool(mech.armature.any()))


@lru_cache(maxsize=64)
def _program(expr: Expr, derived: bool, geared: bool) -> Program:
    from linkwise.algebra.armature import no_armature
    from linkwise.algebra.budget import Budget
    from linkwise.codegen.cheapest import cheapest
    from linkwise.sweeps.lower import lower

    expr = expr if geared else no_armature(expr).result
    return lower(cheapest(expr, Budget()).result if derived else expr)


def run(
    mech: Mechanism,
    name: str,
    arrays: Mapping[str, Any],
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
    rank: int | None = None,
    parameters: tuple[str, ...] = (),
) -> Array:
    """A quantity on arrays, with forces at nodes and the inputs of loops with custom hinges."""
    check_frame(forces_frame, "forces_frame")
    forced = pushed_nodes(forces) if acting(forces) else ()
    is_closing = closing is not None
    kernel = closed_kernel(
        mech, name, forced, frame=forces_frame, closing=is_closing, rank=rank, parameters=parameters
    )
    given = dict(arrays)
    if acting(forces):
        given["f"] = side_by_side(forces, forced, before=len(closure_nodes(mech)))
    if closing is not None:
        given["closing"] = floats(closing, "closing")
    if {"S", "S_rate"} & set(kernel.arguments):
        given |= blocked_inputs(mech, *finite_state(mech, given["q"], given.get("v")))
    return called(kernel, given, options or {})


def finite_state(
    mech: Mechanism, q: ArrayLike, v: ArrayLike | None = None
) -> tuple[Array, Array | None]:
    """q and v, checked, with numbers in place of rows of q that are not finite, and of such v.

    What is computed of them is the input of a kernel, which reports these states.
    """
    q = floats(q, "q")
    if q.shape[-1:] == (mech.nq,):
        q = np.where(np.isfinite(q).all(axis=-1, keepdims=True), q, mech.neutral())
    if v is not None:
        v = floats(v, "v")
        v = mech.check_v(np.where(np.isfinite(v), v, 0.0))
    return mech.check_q(q), v


def blocked_inputs(mech: Mechanism, q: Array, v: Array | None) -> dict[str, Array]:
    """S and -S Ḣ* W of the loops that have no formula for them."""
    lead = q.shape[:-1] if v is None else np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q = np.broadcast_to(q, (*lead, mech.nq))
    V = np.zeros((*lead, len(mech.loops), 2, 6))
    if v is not None:
        v = np.broadcast_to(v, (*lead, mech.nv))
        V = np.reshape(kernel(mech, "node_velocity", closure_nodes(mech))(q, v), V.shape)
    directions, rates = list[Array](), list[Array]()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
        if not closure.is_traceable(loop):
            V_ab = V[..., i, 1, :] - X_ab.shift_velocity(V[..., i, 0, :])
            blocked = closure.blocked(loop.hinge, X_ab, V_ab)
            directions.append(blocked.S.reshape(*lead, 6 * loop.rows))
            rates.append(blocked.rate)
    both = {"S": np.concatenate(directions, axis=-1), "S_rate": np.concatenate(rates, axis=-1)}
    return {name: np.ascontiguousarray(array) for name, array in both.items()}


# ------------------------------------------------------------------------------ poses and errors


def relative_poses(mech: Mechanism, q: Array, *, compiled: bool = True) -> list[Pose]:
    """X_ab of each loop: rot (..., 3, 3), p (..., 3); by a kernel, or body by body."""
    if not mech.loops:
        return []
    if not compiled:
        world = body_poses(mech, q)
        nodes = [mech.node(name) for name in closure_nodes(mech)]
        each = [_placed(world, mech.body_index[x.body]) @ x.pose for x in nodes]
        return [a.inverse() @ b for a, b in zip(each[::2], each[1::2], strict=True)]
    poses = kernel(mech, "node_poses", closure_nodes(mech))(q)
    place = np.reshape(poses, (*np.shape(q)[:-1], len(mech.loops), 2, 3, 4))
    a, b = (trusted_pose(place[..., i, :, :3], place[..., i, :, 3]) for i in (0, 1))
    X = a.inverse() @ b
    return [trusted_pose(X.rot[..., i, :, :], X.p[..., i, :]) for i in range(len(mech.loops))]


def _placed(world: Pose, k: int) -> Pose:
    """The pose of body k, or of the ground."""
    if k >= 0:
        return trusted_pose(world.rot[..., k, :, :], world.p[..., k, :])
    lead = world.p.shape[:-2]
    return trusted_pose(np.broadcast_to(np.eye(3), (*lead, 3, 3)), np.zeros((*lead, 3)))


def loop_coordinates(
    mech: Mechanism, q: ArrayLike, near: dict[str, Array] | None = None
) -> dict[str, Array]:
    """θ of the hinge inside each loop, by the loop's name, with quaternions where it has them.

    These are Θ(0) of JPL 88-11-II, Appendix A, the configuration parameters of a contact. Where a
    loop is not closed, θ is that of the nearest pose its hinge allows.

    Args:
        near: Approximate coordinates, by the loop's name; default: each hinge at neutral.

    Returns:
        For each loop (nq of its hinge,) or (batch, nq of its hinge).
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    lead, theta = q.shape[:-1], dict[str, Array]()
    for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True):
        start = None if near is None else near.get(loop.name)
        each = [
            closure.coordinates(loop.hinge, closure.one_of(X_ab, i), start)
            for i in np.ndindex(*lead)
        ]
        theta[loop.name] = np.reshape(each, (*lead, loop.hinge.nq))
    return theta


def loop_errors(mech: Mechanism, q: Array, poses: Sequence[Pose]) -> Array:
    """e of each loop (..., loops, 6) with X_ab of each."""
    lead, out = q.shape[:-1], np.zeros((*q.shape[:-1], len(mech.loops), 6))
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        each = [loop_error(loop.hinge, closure.one_of(X_ab, state)) for state in np.ndindex(*lead)]
        out[..., i, :] = np.reshape(each, (*lead, 6))
    return out


def constraint_error(mech: Mechanism, q: ArrayLike, *, per: Per = "row") -> Array:
    """How far the constraints are from satisfied: zero where all loops are closed.

    The error e of a loop is the rotation vector [rad] and the translation [m] from the nearest pose
    its hinge allows to the pose that node b has, seen from there. The rows of a loop are S e, where
    S are the directions that its hinge blocks; the row of a coupling is q_dependent - f(q). The
    rate of change of the rows is `constraint_jacobian` times v, up to terms of the size of the
    error.

    Args:
        per: "row" returns the rows of all loops and couplings, "loop" e of each loop.

    Returns:
        (m,) or (batch, m) [rad or m], in the order of `constraint_names`; per loop (loops, 6) or
        (batch, loops, 6), in the order of `mech.loops`.

    Raises:
        ModelError: `per` is neither "row" nor "loop".
    """
    check_mechanism(mech)
    if per not in ("row", "loop"):
        raise ModelError(f"per is {per!r}; it must be 'row' or 'loop'.")
    kernel = error_kernel(mech, per == "row")
    if kernel is not None and isinstance(q, np.ndarray) and q.ndim == 1:
        return kernel(q)
    q = mech.check_q(q)
    if kernel is not None:
        return kernel(q)
    return (error_at if per == "row" else loop_errors)(mech, q, relative_poses(mech, q))


def error_at(mech: Mechanism, q: Array, poses: Sequence[Pose]) -> Array:
    """`constraint_error` with X_ab of each loop."""
    e, still = loop_errors(mech, q, poses), np.zeros((*q.shape[:-1], 6))
    parts = [np.zeros((*q.shape[:-1], 0))]
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        S = closure.blocked(loop.hinge, X_ab, still).S
        parts.append((S @ e[..., i, :, None])[..., 0])
    parts += [closure.coupling_error(mech, x, q)[..., None] for x in mech.couplings]
    return np.concatenate(parts, axis=-1)


# ------------------------------------------------------------------------------------ constraints


def constraint_jacobian(mech: Mechanism, q: ArrayLike) -> Array:
    """J_c: the constraints require J_c v = 0 of velocities.

    Expression:
        J_c = Q J + Y
    with J = B* φ* H* of the nodes of the loops, Q V = S (V_b - T V_a) for each loop and Y the rows
    of the couplings.

    Returns:
        (m, nv) or (batch, m, nv), in the order of `constraint_names`.
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*mech.check_q(q).shape[:-1], 0, mech.nv))
    if is_long(mech):
        return _long_jacobian(mech, mech.check_q(q))
    return run(mech, "constraint_jacobian", {"q": q})


def constraint_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """γ = J̇_c v: the constraints require J_c v̇ + γ = 0 of accelerations.

    Expression:
        γ = Q B* φ* A_V v + κ,   κ = S (V_ab × T V_a - Ḣ* W) for a loop,
                                 κ = Ṅ_d v - Σ (f_j Ṅ_j v + f_jj (N_j v)²) for a coupling

    Returns:
        (m,) or (batch, m) [rad/s² or m/s²].
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q, v), 0))
    if is_long(mech):
        return _long_bias(mech, mech.check_q(q), mech.check_v(v))
    return run(mech, "constraint_bias", {"q": q, "v": v})


def is_long(mech: Mechanism) -> bool:
    """Whether rows of loops are formed on numbers: code of constraints has no loops over bodies."""
    return mech.n_bodies > MOST_BODIES and not mech.couplings and not mech.flexible


def _long_jacobian(mech: Mechanism, q: Array) -> Array:
    """S (J_b - T J_a) of each loop, row by row: joint forces J* f of its wrenches at both nodes."""
    lead, nodes, m = q.shape[:-1], closure_nodes(mech), sum(constraint_sizes(mech))
    wrenches, row = np.zeros((*lead, m, len(mech.loops), 2, 6)), 0
    still = np.zeros((*lead, 6))
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
        S = np.broadcast_to(closure.blocked(loop.hinge, X_ab, still).S, (*lead, loop.rows, 6))
        rows = slice(row, row + loop.rows)
        wrenches[..., rows, i, 1, :] = S
        wrenches[..., rows, i, 0, :] = -S @ np.swapaxes(X_ab.shift, -1, -2)
        row += loop.rows
    states = np.broadcast_to(q[..., None, :], (*lead, m, mech.nq)).reshape(-1, mech.nq)
    rows = _pushed(tree_of(mech), nodes)(states, wrenches.reshape(-1, 12 * len(mech.loops)))
    return rows.reshape(*lead, m, mech.nv)


def _long_bias(mech: Mechanism, q: Array, v: Array) -> Array:
    """S (a_b - T a_a + V_ab × T V_a) - S Ḣ* W of each loop, with a = J̇ v of its nodes."""
    tree, nodes = tree_of(mech), closure_nodes(mech)
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    shape = (*lead, len(mech.loops), 2, 6)
    V = np.reshape(kernel(tree, "node_velocity", nodes)(q, v), shape)
    A = np.reshape(_node_bias(tree, nodes)(q, v), shape)
    rows = list[Array]()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
        carried = X_ab.shift_velocity(V[..., i, 0, :])
        V_ab = V[..., i, 1, :] - carried
        a = A[..., i, 1, :] - X_ab.shift_velocity(A[..., i, 0, :]) + cross_velocity(V_ab, carried)
        part = closure.blocked(loop.hinge, X_ab, V_ab)
        rows.append((part.S @ a[..., None])[..., 0] + part.rate)
    return np.concatenate(rows, axis=-1)


@once_per_mechanism
def _pushed(mech: Mechanism, nodes: tuple[str, ...]) -> Kernel:
    return compile(J.T @ f, mech, nodes=nodes)


@once_per_mechanism
def _node_bias(mech: Mechanism, nodes: tuple[str, ...]) -> Kernel:
    return compile(B.T @ phi.T @ A_V @ v, mech, nodes=nodes)


def constraint_inertia_inverse(mech: Mechanism, q: ArrayLike) -> Array:
    """Ω = J_c 𝓜⁻¹ J_c*: the acceleration along one row of the constraints per force along another.

    Expression:
        `J_c @ mass.inv @ J_c.T`, for arms that hold an object J 𝓜⁻¹ J* + A M(C)⁻¹ A*
    with the armature of the mechanism in 𝓜.

    Derived form for loops, 3 passes, O(n), and a product of the size of the constraints:
        Q B* ψ* H* D⁻¹ H ψ B Q*
    Source: JPL 88-11-II (3.1), (4.7).

    It is singular where rows depend on each other; `lw.loops.mobility` reports the rank.

    Returns:
        (m, m) or (batch, m, m), in the order of `constraint_names`.
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q), 0, 0))
    return run(mech, "constraint_inertia_inverse", {"q": q})


def lead(mech: Mechanism, q: ArrayLike, *vectors: ArrayLike) -> tuple[int, ...]:
    """The batch of a state and of vectors over the joints, all of which are checked."""
    batches = {x.shape[:-1] for x in (mech.check_q(q), *map(mech.check_v, vectors))} - {()}
    if len(batches) > 1:
        raise ShapeError(f"the batches of q, v and others differ: {sorted(batches)}.")
    return batches.pop() if batches else ()


def blocked_directions(mech: Mechanism, q: ArrayLike) -> list[Array]:
    """S of each loop (rows, 6) or (batch, rows, 6): what its hinge blocks, in node b's axes."""
    q = mech.check_q(q)
    still, directions = np.zeros((*q.shape[:-1], 6)), list[Array]()
    for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True):
        S = closure.blocked(loop.hinge, X_ab, still).S
        directions.append(np.broadcast_to(S, (*q.shape[:-1], *S.shape[-2:])))
    return directions


def loop_forces(mech: Mechanism, q: ArrayLike, lam: ArrayLike) -> dict[str, Array]:
    """The force in each loop: S* λ, which acts on node b; the opposite acts on node a.

    Args:
        lam: Forces along the rows of the constraints (m,) or (batch, m), from `constraint_forces`.

    Returns:
        By the loop's name (moment, force) about node b's origin in its axes, (6,) or (batch, 6).
    """
    check_mechanism(mech)
    lam, sizes = floats(lam, "lam"), constraint_sizes(mech)
    if lam.ndim == 0 or lam.shape[-1] != sum(sizes):
        raise ShapeError(
            f"lam has shape {lam.shape}; {mech.name!r} has {sum(sizes)} rows of constraints."
        )
    if not np.isfinite(lam).all():
        raise ModelError("lam is not finite.")
    q = mech.check_q(q)
    if lam.ndim > 1 and q.ndim > 1 and lam.shape[:-1] != q.shape[:-1]:
        raise ShapeError(f"the batches of q {q.shape} and lam {lam.shape} differ.")
    parts = np.split(lam, np.cumsum(sizes)[:-1], axis=-1)
    each = zip(mech.loops, blocked_directions(mech, q), parts, strict=False)
    return {loop.name: (x[..., None, :] @ S)[..., 0, :] for loop, S, x in each}
