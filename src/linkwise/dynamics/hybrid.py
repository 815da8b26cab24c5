"""Hybrid dynamics: some hinges move as prescribed, others are driven by given forces."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import E_phi, H, J, M, N, a, b, phi, rot_W, tau, vdot
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.family import Family
from linkwise.algebra.role import Composite
from linkwise.algebra.selection import selection
from linkwise.algebra.space import BODY, JOINT
from linkwise.dynamics.kernels import Status, side_by_side
from linkwise.dynamics.open_chain_quantity import pushing
from linkwise.dynamics.quantity import FRAMES, Frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Body
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel

_MAKING = threading.Lock()
"""Held while a kernel is made."""


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
    frame: Frame = "node",
    status: Status | None = None,
    threads: int | None = None,
) -> HybridMotion:
    """Accelerations of the driven hinges, and forces at those that move as prescribed.

    Expression, with U the projection onto the driven hinges and Ū onto the others:
        v̇_U = (U 𝓜 U + Ū)⁻¹ U (τ − C − 𝓜 Ū v̇ + J* f)
        τ_Ū = Ū (𝓜 (v̇_U + Ū v̇) + C − J* f)
    with 𝓜 + N for 𝓜 where the mechanism has armature.

    Form that runs, three passes, O(n), both parts in one vector (`hybrid_expression`):
        z = ψ (K U τ + M φ* (a + H* Ū v̇) + b − B f),  ν = D⁻¹ (U τ − U H z),  λ = ψ* H* U ν
        v̇_U = ν − K* λ,   τ_Ū = Ū (H (z + P λ) + N v̇)
    where P, D, K, ψ belong to U H instead of H: D = U H P H* U + Ū (+ U N U). A hinge that moves as
    prescribed passes the whole inertia it carries on to its parent.
    Source: 000 Lemma 4.3 for the inverse; `hinge_forces` for the force.

    Each choice of hinges has a kernel of its own, in which the choice is folded: with nothing
    prescribed it is that of forward dynamics, with everything that of inverse dynamics.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tau: Forces at the driven hinges: by name of the hinge, a number for one freedom, (nv_k,) or
            (batch, nv_k) [N or N m]; or (nv,) or (batch, nv) for all, where entries of
            prescribed hinges are not looked at.
        vdot: Accelerations of the prescribed hinges, likewise.
        prescribed: Where `tau` and `vdot` are arrays: names of the prescribed hinges.
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        frame: Axes of `forces`: those of the "node" or of the "world".
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        All accelerations and all forces.

    Raises:
        ModelError: A hinge is prescribed and driven at once, or neither, or has no freedom.
        ShapeError: An array does not fit; says which.
        UnknownNameError: A hinge or node that the mechanism does not have; tells the near ones.
        SingularHingeError: Nothing resists a driven hinge; its body is named.
    """
    tau, vdot = _by_hinge(mech, tau, "tau"), _by_hinge(mech, vdot, "vdot")
    names = _prescribed(mech, tau, vdot, prescribed)
    held = np.zeros(mech.nv, dtype=np.bool_)
    for name in names:
        held[mech.v_slice(name)] = True
    given = {
        "q": q,
        "v": v,
        "tau": _entries(mech, tau, ~held, "tau"),
        "vdot": _entries(mech, vdot, held, "vdot"),
    }
    nodes = tuple(sorted(forces or ()))
    if forces:
        given["f"] = side_by_side(forces, nodes)
    found = hybrid_kernel(mech, names, nodes, frame=frame)
    asked = {"status": status, "threads": threads}
    options: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    result = found(*(given[name] for name in found.arguments), **options)
    return HybridMotion(np.where(held, given["vdot"], result), np.where(held, result, given["tau"]))


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
        mech: The mechanism.
        prescribed: Names of the hinges that move as prescribed.
        nodes: Nodes at which outside forces act.
        frame: Axes of these forces.
    """
    if frame not in FRAMES:
        raise ModelError(f"frame is {frame!r}; it must be 'node' or 'world'.")
    chosen, nodes = frozenset(_hinge(mech, name).hinge_name for name in prescribed), tuple(nodes)
    key = ("hybrid_dynamics", chosen, nodes, frame)
    found = mech.kept.get(key)
    if found is None:
        _moving(mech, chosen)
        for node in nodes:
            mech.node(node)  # raises for one that is not there
        driven = [body.hinge_name for body in mech.bodies if body.hinge_name not in chosen]
        push = pushing(J if frame == "node" else rot_W @ J) if nodes else None
        expr = hybrid_expression(driven, chosen, armature=bool(mech.armature.any()), push=push)
        with _MAKING:
            found = mech.kept.get(key)
            if found is None:
                found = mech.kept[key] = compile(expr, mech, nodes=nodes, derive=False)
    return found


def hybrid_expression(
    driven: Iterable[str],
    prescribed: Iterable[str],
    *,
    armature: bool = False,
    push: Expr | None = None,
) -> Expr:
    """v̇ at driven hinges and τ at prescribed ones, as one expression.

    Args:
        driven: Names of the hinges with given forces.
        prescribed: Names of the hinges with given accelerations.
        armature: Whether hinges have inertia of their own.
        push: What outside forces do to the bodies, B f; by default nothing.
    """
    free = selection("U", driven)
    bound = selection("Ū", prescribed, ascii="U_bar", tex=r"\overline{U}")
    H_U = symbol("H_U", JOINT, BODY, Composite(free @ H), "H_U", "H_U")
    inside = bound + free @ N @ free if armature else bound
    noise = symbol("N_U", JOINT, JOINT, Composite(inside), "N_U", "N_U")
    F = Family(E_phi, M, H_U, noise, "ᵤ")
    outside = b if push is None else b - push
    z = F.psi @ (F.K @ free @ tau + M @ phi.T @ (a + H.T @ bound @ vdot) + outside)
    nu = F.D.inv @ (free @ tau - H_U @ z)
    costate = F.psi.T @ H_U.T @ nu
    through_hinges = H @ (z + F.P @ costate)
    if armature:
        through_hinges = through_hinges + N @ vdot
    return nu - F.K.T @ costate + bound @ through_hinges


# ---------------------------------------------------------------------------------- what is given


def _by_hinge(mech: Mechanism, given: Any, what: str) -> Any:
    """What is given by name, under the names of hinges; a hinge may be called by its body."""
    if not isinstance(given, Mapping):
        return given
    out = dict[str, Any]()
    for name, value in cast("Mapping[str, Any]", given).items():
        hinge = _hinge(mech, name).hinge_name
        if hinge in out:
            raise ModelError(f"{what} has hinge {hinge!r} twice, once by the name of its body.")
        out[hinge] = value
    return out


def _prescribed(
    mech: Mechanism, tau: object, vdot: object, prescribed: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of the prescribed hinges; raises where a hinge is in both groups, or in none."""
    if isinstance(tau, Mapping) != isinstance(vdot, Mapping):
        raise ModelError(
            "tau and vdot are given in two ways; give both by names of hinges, {'elbow': 1.0}, or "
            "both as arrays of all freedoms with prescribed=['elbow', ...]."
        )
    if not isinstance(tau, Mapping):
        if prescribed is None:
            raise ModelError(
                "tau and vdot are arrays; say with prescribed=['elbow', ...] which hinges move as "
                "vdot says."
            )
        names = (prescribed,) if isinstance(prescribed, str) else tuple(prescribed)
        _moving(mech, names)
        return tuple(_hinge(mech, name).hinge_name for name in names)
    forces, motions = cast("Mapping[str, Any]", tau), cast("Mapping[str, Any]", vdot)
    if prescribed is not None:
        raise ModelError(
            "prescribed is given, and tau and vdot by names of hinges; the names say it already."
        )
    _moving(mech, (*forces, *motions))
    both = [name for name in forces if name in motions]
    if both:
        raise ModelError(
            f"{_named(both)} both in tau and in vdot; a hinge moves as prescribed or is driven by "
            "a given force. Take one of the two away."
        )
    left = [
        body.hinge_name
        for body in mech.bodies
        if body.hinge.nv and body.hinge_name not in forces and body.hinge_name not in motions
    ]
    if left:
        raise ModelError(
            f"{_named(left)} neither in tau nor in vdot; every hinge needs a force or an "
            "acceleration. A hinge that swings freely has the force 0."
        )
    return tuple(motions)


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


def _entries(mech: Mechanism, given: object, used: NDArray[np.bool_], what: str) -> Array:
    """All freedoms (nv,) or (batch, nv), zero where they are not used."""
    if not isinstance(given, Mapping):
        array = floats(cast("ArrayLike", given), what)
        if array.ndim not in (1, 2) or array.shape[-1] != mech.nv:
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be ({mech.nv},) or (batch, {mech.nv})."
            )
        return np.where(used, array, 0.0)
    parts = dict[str, Array]()
    for name, value in cast("Mapping[str, ArrayLike]", given).items():
        nv, part = mech.hinge(name).hinge.nv, floats(value, f"{what} of {name!r}")
        part = part.reshape(1) if part.ndim == 0 and nv == 1 else part
        if part.ndim not in (1, 2) or part.shape[-1] != nv:
            number = "a number, " if nv == 1 else ""
            raise ShapeError(
                f"{what} of hinge {name!r} has shape {part.shape}; it must be {number}({nv},) or "
                f"(batch, {nv})."
            )
        parts[name] = part
    try:
        lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts.values()))
    except ValueError:
        shapes = ", ".join(f"{name!r} {part.shape}" for name, part in parts.items())
        raise ShapeError(f"{what} has batches that differ: {shapes}.") from None
    out = np.zeros((*lead, mech.nv))
    for name, part in parts.items():
        out[..., mech.v_slice(name)] = part
    return out


__all__ = ["HybridMotion", "hybrid_dynamics", "hybrid_expression", "hybrid_kernel"]
