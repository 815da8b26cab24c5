"""Kernels of mechanisms with loops and couplings: made on first use, kept with the mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.dynamics.closure_quantity import CLOSED, Setting
from linkwise.dynamics.kernels import (
    acting,
    called,
    check_mechanism,
    kernel,
    node_names,
)
from linkwise.dynamics.quantity import Frame, check_frame, expression
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model import closure
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.state import body_poses
from linkwise.pipeline import compile, derive
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.sweeps.program import Program


def closed_expression(mech: Mechanism, name: str, *, plain: bool = True) -> Expr:
    """The expression of a quantity of a mechanism with loops or couplings.

    Args:
        mech: The mechanism; its parts say what stands in the expression.
        name: "constrained_forward_dynamics", "constraint_forces", "constraint_jacobian" ...
        plain: As one would write it, or False for the equal form that runs.
    """
    check_mechanism(mech)
    if name not in CLOSED:
        raise unknown_name("quantity", name, CLOSED, owner="linkwise.loops")
    if not mech.loops and not mech.couplings:
        if name == "constrained_forward_dynamics":
            return expression("forward_dynamics")
        raise ModelError(f"{mech.name!r} has no loops and no couplings: it has no {name}.")
    pushed = "node" if name == "tip_force_correction" else ""
    expr = CLOSED[name](_setting(mech, pushed))
    return expr if plain else derive(expr).result


def _setting(mech: Mechanism, pushed: str = "", closing: bool = False) -> Setting:
    loops, couplings = bool(mech.loops), bool(mech.couplings)
    return Setting(loops, couplings, pushed, closing)


def closed_kernel(
    mech: Mechanism,
    name: str,
    forced: tuple[str, ...] = (),
    *,
    frame: Frame = "node",
    closing: bool = False,
    rank: int | None = None,
) -> Kernel:
    """The kernel behind a quantity of a mechanism with loops or couplings.

    Args:
        name: A key of `closure_quantity.CLOSED`.
        forced: Nodes with forces from outside; they stand behind those of the loops.
        frame: Axes of these forces.
        closing: Whether the constraints shall accelerate, by an input of that name.
        rank: How many rows have to be independent; states with others get a code.
    """
    return _kernel(mech, name, forced, frame if forced else "", closing, rank)


@once_per_mechanism
def _kernel(
    mech: Mechanism,
    name: str,
    forced: tuple[str, ...],
    frame: str,
    closing: bool,
    rank: int | None,
) -> Kernel:
    for node in forced:
        mech.node(node)  # raises for one that is not there
    expr = CLOSED[name](_setting(mech, frame, closing))
    nodes = (*closure_nodes(mech), *forced)
    if rank is None:
        return compile(expr, mech, nodes=nodes)
    from linkwise.codegen.kernel import kernel as kernel_of
    from linkwise.codegen.request import Request

    return kernel_of(Request((expr,), mech, nodes, rank=rank))


def program_of(mech: Mechanism, name: str) -> Program:
    """The sweeps of a quantity for the interpreter: of J_c as it is written, else derived."""
    expr = CLOSED[name](_setting(mech))
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
    forces: Mapping[str, ArrayLike] | None = None,
    frame: Frame = "node",
    closing: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
    rank: int | None = None,
) -> Array:
    """A quantity on arrays, with forces at nodes and what loops of one's own hinges need."""
    check_frame(frame, "forces_frame")
    forced = tuple(sorted(node_names(tuple(forces)))) if acting(forces) else ()
    found = closed_kernel(mech, name, forced, frame=frame, closing=closing is not None, rank=rank)
    given = dict(arrays)
    if acting(forces):
        given["f"] = _forces(mech, forces, forced)
    if closing is not None:
        given["closing"] = floats(closing, "closing")
    if {"S", "S_rate"} & set(found.arguments):
        q, v = floats(given["q"], "q"), given.get("v")
        fine = np.isfinite(q).all(axis=-1, keepdims=True)  # the kernel tells of the others
        q = mech.check_q(np.where(fine, q, mech.neutral()))
        if v is not None:
            v = floats(v, "v")
            v = mech.check_v(np.where(np.isfinite(v), v, 0.0))
        given |= _blocked(mech, q, v)
    return called(found, given, options or {})


def _forces(mech: Mechanism, forces: Mapping[str, ArrayLike], names: tuple[str, ...]) -> Array:
    """Forces at the nodes of the loops, which are zero, and at those that are pushed."""
    parts = [floats(forces[name], f"the force on {name!r}") for name in names]
    for name, part in zip(names, parts, strict=True):
        if part.ndim not in (1, 2) or part.shape[-1] != 6:
            raise ShapeError(
                f"the force on {name!r} has shape {part.shape}; it must be (6,) or (batch, 6), "
                "moment first."
            )
    rows = {len(part) for part in parts if part.ndim == 2}
    if len(rows) > 1:
        raise ShapeError(
            f"forces have batches of {sorted(rows)} rows; one batch for all is wanted."
        )
    lead = (rows.pop(),) if rows else ()
    none = np.zeros((*lead, 6 * len(closure_nodes(mech))))
    return np.concatenate([none, *(np.broadcast_to(x, (*lead, 6)) for x in parts)], axis=-1)


def relative_poses(mech: Mechanism, q: Array, *, compiled: bool = True) -> list[Pose]:
    """X_ab of each loop: rot (..., 3, 3), p (..., 3); by a kernel, or body by body."""
    if not mech.loops:
        return []
    if not compiled:
        world = body_poses(mech, q)
        nodes = [mech.node(name) for name in closure_nodes(mech)]
        each = [_placed(world, mech.body_index[x.body]) @ x.pose for x in nodes]
        return [a.inverse() @ b for a, b in zip(each[::2], each[1::2], strict=True)]
    found = kernel(mech, "node_poses", closure_nodes(mech))(q)
    place = np.reshape(found, (*np.shape(q)[:-1], len(mech.loops), 2, 3, 4))
    a, b = (trusted_pose(place[..., i, :, :3], place[..., i, :, 3]) for i in (0, 1))
    whole = a.inverse() @ b
    return [
        trusted_pose(whole.rot[..., i, :, :], whole.p[..., i, :]) for i in range(len(mech.loops))
    ]


def _placed(world: Pose, k: int) -> Pose:
    """The pose of body k, or of the ground."""
    if k >= 0:
        return trusted_pose(world.rot[..., k, :, :], world.p[..., k, :])
    lead = world.p.shape[:-2]
    return trusted_pose(np.broadcast_to(np.eye(3), (*lead, 3, 3)), np.zeros((*lead, 3)))


def _blocked(mech: Mechanism, q: Array, v: Array | None) -> dict[str, Array]:
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
            found = closure.blocked(loop.hinge, X_ab, V_ab)
            directions.append(found.S.reshape(*lead, -1))
            rates.append(found.rate)
    both = {"S": np.concatenate(directions, axis=-1), "S_rate": np.concatenate(rates, axis=-1)}
    return {name: np.ascontiguousarray(array) for name, array in both.items()}
