"""Hybrid dynamics: some hinges move as prescribed, others are driven by given forces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import H, J, M, N, a, b, phi, rot_W, tau, vdot
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.role import Composite
from linkwise.algebra.selection import selection
from linkwise.algebra.space import BODY, JOINT
from linkwise.dynamics.hybrid_closed import held_hybrid
from linkwise.dynamics.kernels import (
    Status,
    acting,
    called,
    check_mechanism,
    node_names,
    side_by_side,
)
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.open_chain_quantity import pushing
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Body
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class HybridMotion:
    """All accelerations and all forces: those that were given, and those that follow.

    Attributes:
        vdot: Joint accelerations (nv,) or (batch, nv).
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
    """

    vdot: Array
    tau: Array


def hybrid_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: Mapping[str, ArrayLike] | ArrayLike,
    vdot: Mapping[str, ArrayLike] | ArrayLike,
    prescribed: Sequence[str] | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    status: Status | None = None,
    threads: int | None = None,
) -> HybridMotion:
    """Accelerations of the driven hinges, and forces at those that move as prescribed.

    Expression, with U the projection onto the driven hinges and Ū onto the others:
        v̇_U = (U 𝓜 U + Ū)⁻¹ U (τ − C − 𝓜 Ū v̇ + J* f)
        τ_Ū = Ū (𝓜 (v̇_U + Ū v̇) + C − J* f)

    What is derived takes three passes, O(n), and gives both parts in one vector. The articulated
    quantities in it belong to U H instead of H, with D = U H P H* U + Ū (+ U N U): a hinge that
    moves as prescribed passes the whole inertia it carries on to its parent.
    Source: 000 Lemma 4.3 for the inverse; 004 section 4, f = z + P α, for the force.

    Each choice of hinges has a kernel of its own, in which the choice is folded: with nothing
    prescribed it is that of forward dynamics, with everything that of inverse dynamics.

    Loops and couplings are held (`hybrid_closed.py`): what is prescribed must obey them. Where
    they leave open how a load is shared between loops and prescribed hinges, the loops carry the
    least.

    Args:
        tau: Forces at the driven hinges: by name of the hinge, a number for one freedom, (nv_k,) or
            (batch, nv_k) [N or N m]; or (nv,) or (batch, nv) for all, where entries of
            prescribed hinges are not looked at.
        vdot: Accelerations of the prescribed hinges, likewise.
        prescribed: Where `tau` and `vdot` are arrays: names of the prescribed hinges.
        forces_frame: Axes of `forces`: those of the "node" or of the "world".

    Returns:
        All accelerations and all forces.

    Raises:
        ModelError: A hinge is prescribed and driven at once, or neither, or has no freedom.
        ShapeError: An array does not fit; says which.
        UnknownNameError: A hinge or node that the mechanism does not have; tells the near ones.
        SingularHingeError: Nothing resists a driven hinge; its body is named.
        ClosureError: What is prescribed breaks a loop or coupling, which is named. In a batch its
            row is NaN instead, and a warning or `status` tells.
    """
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    closed, whole, mech = is_closed(mech, loops), mech, tree_of(mech)
    nodes = tuple(sorted(node_names(tuple(forces)))) if acting(forces) else ()
    choice = _choice(mech, tau, vdot, prescribed, nodes, forces_frame)
    given: dict[str, Any] = {
        "q": q,
        "v": v,
        "tau": _entries(mech, tau, choice.driven, choice.forces, "tau"),
        "vdot": _entries(mech, vdot, choice.held, choice.motions, "vdot"),
    }
    if closed:
        motion = held_hybrid(
            whole, q, v, given["tau"], given["vdot"], choice.driven,
            forces=forces, forces_frame=forces_frame, status=status,
        )  # fmt: skip
        return HybridMotion(*motion)
    if acting(forces):
        given["f"] = side_by_side(forces, nodes)
    result = called(choice.kernel, given, {"status": status, "threads": threads})
    motion, force = given["vdot"], given["tau"]  # arrays of our own
    if motion.shape == force.shape == result.shape:
        np.copyto(motion, result, where=choice.driven)
        np.copyto(force, result, where=choice.held)
        return HybridMotion(motion, force)
    held = choice.held
    return HybridMotion(np.where(held, motion, result), np.where(held, result, force))


def hybrid_kernel(
    mech: Mechanism,
    prescribed: Iterable[str],
    nodes: Sequence[str] = (),
    *,
    frame: Frame = "node",
) -> Kernel:
    """The kernel of hybrid dynamics for one choice of hinges: made once, then kept.

    Takes q, v, tau, vdot (and f), and gives accelerations at driven and forces at prescribed
    hinges.

    Args:
        prescribed: Names of the hinges that move as prescribed.
        nodes: Nodes at which outside forces act.
        frame: Axes of these forces.
    """
    check_mechanism(mech)
    check_frame(frame)
    chosen = frozenset(_hinge(mech, name).hinge_name for name in prescribed)
    return _kernel(mech, chosen, node_names(nodes), frame)


@once_per_mechanism
def _kernel(
    mech: Mechanism, prescribed: frozenset[str], nodes: tuple[str, ...], frame: Frame
) -> Kernel:
    _moving(mech, prescribed)
    for node in nodes:
        mech.node(node)  # raises for one that is not there
    driven = [body.hinge_name for body in mech.bodies if body.hinge_name not in prescribed]
    push = pushing(J if frame == "node" else rot_W @ J) if nodes else None
    expr = hybrid_expression(driven, prescribed, push=push)
    return compile(expr, mech, nodes=nodes)


def hybrid_expression(
    driven: Iterable[str],
    prescribed: Iterable[str],
    *,
    push: Expr | None = None,
) -> Expr:
    """v̇ at driven hinges and τ at prescribed ones, as one expression.

    Args:
        driven: Names of the hinges with given forces.
        prescribed: Names of the hinges with given accelerations.
        push: What outside forces do to the bodies, B f; by default nothing.
    """
    free = selection("U", driven)
    bound = selection("Ū", prescribed, ascii="U_bar", tex=r"\overline{U}")
    H_U = symbol("H_U", JOINT, BODY, Composite(free @ H), "H_U", "H_U")
    noise = symbol("N_U", JOINT, JOINT, Composite(bound + free @ N @ free), "N_U", "N_U")
    given = a + H.T @ bound @ vdot
    outside = b if push is None else b - push
    moved = (H_U @ phi @ M @ phi.T @ H_U.T + noise).inv @ (
        free @ tau - H_U @ phi @ (M @ phi.T @ given + outside)
    )
    through_hinges = phi @ (M @ phi.T @ (H_U.T @ moved + given) + outside)
    return moved + bound @ (H @ through_hinges + N @ vdot)


# ---------------------------------------------------------------------------------- what is given


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """What follows from the names alone; kept, so that the next call need not look at them.

    Attributes:
        kernel: For this choice.
        held: Which freedoms are prescribed.
        driven: Which are not.
        forces: For each name in tau, its freedoms.
        motions: For each name in vdot, its freedoms.
    """

    kernel: Kernel
    held: NDArray[np.bool_]
    driven: NDArray[np.bool_]
    forces: dict[str, slice]
    motions: dict[str, slice]


def _choice(
    mech: Mechanism,
    tau: Any,
    vdot: Any,
    prescribed: Sequence[str] | None,
    nodes: tuple[str, ...],
    frame: Frame,
) -> _Choice:
    """The choice that is meant; raises where a hinge is in both groups, or in none."""
    if isinstance(prescribed, str):
        prescribed = (prescribed,)
    names = None if prescribed is None else tuple(prescribed)
    by_name = isinstance(tau, Mapping), isinstance(vdot, Mapping)
    written = tuple(tau) if by_name[0] else (), tuple(vdot) if by_name[1] else ()
    return _of_names(mech, by_name, written, names, nodes, frame)


@once_per_mechanism
def _of_names(
    mech: Mechanism,
    by_name: tuple[bool, bool],
    written: tuple[tuple[str, ...], tuple[str, ...]],
    names: tuple[str, ...] | None,
    nodes: tuple[str, ...],
    frame: Frame,
) -> _Choice:
    if by_name[0] != by_name[1]:
        raise ModelError(
            "tau and vdot are given in two ways; give both by names of hinges, {'elbow': 1.0}, or "
            "both as arrays of all freedoms with prescribed=['elbow', ...]."
        )
    forces, motions = (_by_hinge(mech, group) for group in written)
    if by_name[0]:
        _check_groups(mech, forces, motions, names)
        chosen = tuple(motions)
    elif names is None:
        raise ModelError(
            "tau and vdot are arrays; say with prescribed=['elbow', ...] which hinges move as vdot "
            "says."
        )
    else:
        chosen = tuple(_hinge(mech, name).hinge_name for name in names)
    held = np.zeros(mech.nv, dtype=np.bool_)
    for name in chosen:
        held[mech.v_slice(name)] = True
    places = [{name: mech.v_slice(_hinge(mech, name).hinge_name) for name in g} for g in written]
    return _Choice(hybrid_kernel(mech, chosen, nodes, frame=frame), held, ~held, *places)


def _by_hinge(mech: Mechanism, names: tuple[str, ...]) -> dict[str, str]:
    """Names as they were written, by names of hinges; a hinge may be called by its body."""
    out = dict[str, str]()
    for name in names:
        hinge = _hinge(mech, name).hinge_name
        if hinge in out:
            raise ModelError(f"hinge {hinge!r} is given twice, as {out[hinge]!r} and as {name!r}.")
        out[hinge] = name
    _moving(mech, out)
    return out


def _check_groups(
    mech: Mechanism, forces: Iterable[str], motions: Iterable[str], prescribed: object
) -> None:
    """Every hinge in one group and not in both."""
    if prescribed is not None:
        raise ModelError(
            "prescribed is given, and tau and vdot by names of hinges; the names say it already."
        )
    driven, held = set(forces), set(motions)
    both = [name for name in forces if name in held]
    if both:
        raise ModelError(
            f"{_named(both)} both in tau and in vdot; a hinge moves as prescribed or is driven by "
            "a given force. Take one of the two away."
        )
    moving = [body.hinge_name for body in mech.bodies if body.hinge.nv]
    left = [name for name in moving if name not in driven and name not in held]
    if left:
        raise ModelError(
            f"{_named(left)} neither in tau nor in vdot; every hinge needs a force or an "
            "acceleration. A hinge that swings freely has the force 0."
        )


def _hinge(mech: Mechanism, name: str) -> Body:
    """The body of a hinge, by the name of either; raises for one that is not there."""
    k = mech.body_index.get(name, -1) if name not in mech.hinge_index else -1
    return mech.bodies[k] if k >= 0 else mech.hinge(name)


def _moving(mech: Mechanism, names: Iterable[str]) -> None:
    for name in names:
        if _hinge(mech, name).hinge.nv == 0:
            raise ModelError(
                f"hinge {name!r} of {mech.name} has no freedom; it takes neither an acceleration "
                "nor a force. Leave it out."
            )


def _named(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"hinge {listed} is" if len(names) == 1 else f"hinges {listed}{more} are"


def _entries(
    mech: Mechanism, given: Any, used: NDArray[np.bool_], places: dict[str, slice], what: str
) -> Array:
    """All freedoms (nv,) or (batch, nv), zero where they are not used."""
    if not isinstance(given, Mapping):
        array = floats(given, what)
        if array.ndim not in (1, 2) or array.shape[-1] != mech.nv:
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be ({mech.nv},) or (batch, {mech.nv})."
            )
        return np.where(used, array, 0.0)
    parts, batch = dict[str, Any](), -1  # rows, once they are known
    for name, value in cast("Mapping[str, Any]", given).items():
        nv = places[name].stop - places[name].start
        if nv == 1 and type(value) is float:
            parts[name] = value
            continue
        part = floats(value, f"{what} of {name!r}")
        part = part.reshape(1) if part.ndim == 0 and nv == 1 else part
        if part.ndim not in (1, 2) or part.shape[-1] != nv:
            number = "a number, " if nv == 1 else ""
            raise ShapeError(
                f"{what} of hinge {name!r} has shape {part.shape}; it must be {number}({nv},) or "
                f"(batch, {nv})."
            )
        if part.ndim == 2 and batch not in (-1, len(part)):
            raise ShapeError(
                f"{what} of hinge {name!r} has {len(part)} rows, others have {batch}; one batch "
                "for all is wanted."
            )
        batch = len(part) if part.ndim == 2 else batch
        parts[name] = part
    out = np.zeros((batch, mech.nv) if batch >= 0 else mech.nv)
    for name, part in parts.items():
        out[..., places[name]] = part
    return out


__all__ = ["HybridMotion", "hybrid_dynamics", "hybrid_expression", "hybrid_kernel"]
