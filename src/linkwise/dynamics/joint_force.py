"""Joint forces: bias, gravity, Coriolis, passive ones, and those equivalent to forces at nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import slopes
from linkwise.dynamics.carried_weight import carrying_force
from linkwise.dynamics.configuration import coordinates
from linkwise.dynamics.kernels import (
    Forces,
    Options,
    acting,
    begun,
    pushed,
    pushed_nodes,
    put,
    written,
)
from linkwise.dynamics.loop_drive import has_loop_drives, loop_drive_forces
from linkwise.dynamics.passive import passive
from linkwise.dynamics.quantity import FRAMES, Frame, expression
from linkwise.dynamics.viewpoint import viewed, viewpoint
from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@begins_bare()
def bias_force(
    mech: Mechanism | Embedded, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Joint forces that keep all joint accelerations at zero: Coriolis, centrifugal, gravity.

    Expression:
        C = H φ (M φ* a + b),   `bias`

    With loops or couplings it is the same term of 𝓜 v̇ + C = τ + J_c* λ.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    return begun(mech, "bias_force")(q, v, **options)


@begins_bare()
def gravity_force(mech: Mechanism | Embedded, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Joint forces that hold the mechanism at rest against gravity.

    Expression:
        H φ M φ* a_g,   `H @ phi @ M @ phi.T @ a_g`
    where a_g is the acceleration against gravity of the bodies on the ground. It is `bias_force` at
    v = 0, and the gradient of `potential_energy`. With loops or couplings these forces hold it at
    rest as well, and the loops carry nothing; `lw.loops.holding_forces` finds those of selected
    drives.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    return begun(mech, "gravity_force")(q, **options)


@begins_bare()
def coriolis_force(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Coriolis and centrifugal forces: `bias_force` without gravity.

    Expression:
        H φ (M φ* (a − a_g) + b) = C_v v,   `H @ phi @ (M @ phi.T @ (a - a_g) + b)`
    Two passes, O(n).

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    return begun(mech, "coriolis_force")(q, v, **options)


@begins_bare()
def coriolis_matrix(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """The Coriolis matrix C_v: C_v v is `coriolis_force`, and 𝓜̇ − 2 C_v is skew.

    Expression:
        C_v = H φ (M φ* A_V + B_V φ* H*)
    with A_V w = V × H* w + Ḣ* w and B_V the factor of the gyroscopic force,
        B_V = ½ (V ×* M − M V× + (M V)×~) = [[ω~ (J − ½ tr J) − h~ v~, 0], [−f~, 0]].

    𝓜̇ is the rate of the mass matrix while the mechanism moves with v. It equals C_v + C_v* for
    every hinge, also where v is not the derivative of coordinates (quaternions, rolling balls): φ*
    A_V is the rate of φ* H* as seen from outside, and B_V + B_V* that of M. Where v is q̇, C_v is
    the matrix of Christoffel symbols, the only one for which also C_v w = C_w v; for hinges with
    quasi-velocities C_v w − C_w v is due to the turning of their frames. Armature is constant and
    does not contribute.

    Source: the factor is that of echeandia2021coriolis; Pinocchio has the same matrix.
    Departs: Ḣ is part of A_V, so hinges whose H depends on q are included.

    Returns:
        (nv, nv) or (batch, nv, nv).
    """
    return begun(mech, "coriolis_matrix")(q, v, **options)


@begins_bare()
def coriolis_product(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, w: ArrayLike, **options: Unpack[Options]
) -> Array:
    """C_v w: the Coriolis matrix times another velocity, without the matrix.

    Expression:
        H φ (M φ* A_V + B_V φ* H*) w: two passes, O(n).

    Passive controllers use it: with a reference velocity w, the force 𝓜 ẇ + C_v w + g leaves only
    the energy of the error v − w to be damped, since 𝓜̇ − 2 C_v is skew (see `coriolis_matrix`).

    Args:
        w: The other velocities (nv,) or (batch, nv) [m/s or rad/s].

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    return begun(mech, "coriolis_product")(q, v, w, **options)


@begins_bare()
def passive_force(mech: Mechanism, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]) -> Array:
    """Joint forces that nobody commands: dampers, springs and carried weight [N or N m].

    Expression:
        τ_passive = −d v − k (q − rest) + Σ J* (weight that is carried)
    with `damping`, `stiffness` and `rest` of `lw.Drive` and `mech.gravity_compensation`. The spring
    of a spherical hinge turns it back to neutral the short way: −k times the rotation vector, where
    k is the same about all axes. Springs and dampers inside loops are included.

    `simulate`, `rollout` and `linearize` add it themselves, `forward_dynamics` and its derivatives
    on request (`passive=True`).

    Springs of other hinges whose v is not the rate of q have no such formula and are left out.
    Coulomb friction is not included: at rest its force follows from all others, as those of
    contacts and limits do (`integrator="implicit"`).

    Returns:
        (nv,) or (batch, nv).

    Raises:
        ModelError: Not a mechanism, or one with its loops built in.
        ShapeError: Arrays that do not fit.
    """
    if has_loop_drives(mech):
        inside = equivalent_force(mech, q, loop_drive_forces(mech, q, v))
        status = {name: x for name, x in options.items() if name != "out"}
        return put(written(mech, PASSIVE)(q, v, **status) + inside, options.get("out"))
    return begun(mech, "passive_force", (), written(mech, PASSIVE))(q, v, **options)


def with_passive_force(
    mech: Mechanism | Embedded, q: ArrayLike, v: ArrayLike, tau: ArrayLike
) -> Array:
    """`tau` with `passive_force`, checked: (nv,) or (batch, nv)."""
    total = written(mech, LOADED)(q, v, tau)
    if has_loop_drives(mech):
        return total + equivalent_force(mech, q, loop_drive_forces(mech, q, v))
    return total


def require_passive_slopes(mech: Mechanism | Embedded) -> None:
    """Refuse springs and dampers inside loops, whose forces are computed body by body."""
    if has_loop_drives(mech):
        raise ModelError(
            f"the springs and dampers inside loops of {mech.name!r} have no derivatives; pass "
            "passive=False and add theirs yourself."
        )


def has_passive_force(mech: Mechanism | Embedded) -> bool:
    """Whether anything acts that nobody commands."""
    tree = mech.mech if isinstance(mech, Embedded) else mech
    return passive(tree).any or has_loop_drives(tree)


def _passive(at: Writing) -> Any:
    if isinstance(at.mech, Embedded):
        raise ModelError(
            f"dampers and springs are those of all hinges of {at.mech.name!r}, and its loops are "
            "built in: give embedded.mech, with q and v of all hinges, or pass passive=False."
        )
    q, v = coordinates(at), at.v
    force = passive(at.mech).drawn(0.0 * v, q, v)
    if at.mech.gravity_compensation:
        force = force + carrying_force(at, q, at.mech.gravity)
    return force


def _loaded(at: Writing) -> Any:
    force = _passive(at)  # q and v are read first
    return force + at.read("tau", at.mech.nv)


def passive_slopes(at: Writing) -> tuple[Any, Any, Any]:
    """The passive forces τ_p (nv,) in a formula, ∂τ_p/∂q and ∂τ_p/∂v (nv, nv)."""
    force = _passive(at)
    return force, *(slopes(at, [force], name)[0] for name in ("q", "v"))


def is_curved(mech: Mechanism) -> bool:
    """Whether ∂τ_p/∂q of passive forces τ_p changes with q."""
    return bool(passive(mech).balls) or passive(mech).lifted is not None


def _curvature(at: Writing) -> Any:
    _, by_q, _ = passive_slopes(at)
    return slopes(at, [by_q], "q")[0]


PASSIVE, LOADED = Formula(_passive), Formula(_loaded)

PASSIVE_CURVATURE = Formula(_curvature)
"""How ∂τ_p/∂q of passive forces τ_p changes with q (nv, nv, nv)."""


def equivalent_force(
    mech: Mechanism,
    q: ArrayLike,
    forces: Forces,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """Joint forces that move the mechanism as forces at its nodes would.

    Expression:
        J* f = H φ B f,   `J.T @ f`

    Derived form, 1 pass, O(n), without J:
        H φ B f

    Args:
        frame: Axes of `forces`: those of each "node", of the "world", or of any node or body by its
            name.
        about: The point that `forces` are about instead: the origin of any node or body, or of the
            "world".

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].

    Raises:
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    return _of_forces(mech, "equivalent_force", q, forces, frame, about, options)


def compensating_force(
    mech: Mechanism,
    q: ArrayLike,
    forces: Forces,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """Joint forces that hold against forces at nodes: together they cause no acceleration.

    Expression:
        −J* f = −H φ B f,   `-(J.T @ f)`, in one pass from the tips to the base, O(n).
    Source: 002, "O(N) compensating torque computation".
    Departs: the document prints +J* f, for forces that act on the mechanism. That is what they are
    equivalent to (`equivalent_force`); it compensates forces that the mechanism exerts.

    Args:
        frame: As for `equivalent_force`.
        about: As for `equivalent_force`.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m], to be added to those of the motion.
    """
    return _of_forces(mech, "compensating_force", q, forces, frame, about, options)


def _of_forces(
    mech: Mechanism,
    name: str,
    q: ArrayLike,
    forces: Forces,
    frame: str,
    about: str | None,
    options: Mapping[str, Any],
) -> Array:
    kernel = None
    if acting(forces) and (about is not None or frame not in FRAMES):
        formula = _equivalent if name == "equivalent_force" else _compensating
        kernel = viewed(mech, formula, pushed_nodes(forces), frame, about)
    return pushed(mech, name, {"q": q}, forces, cast("Frame", frame), options, kernel)


def _equivalent(at: Writing, frame: str, about: str | None) -> Any:
    f = at.read("f", 6 * len(at.nodes)).reshape(-1, 6)
    in_world = viewpoint(at, frame, about).to_node(f).ravel()
    return at.value(expression("equivalent_force", frame="world"), f=in_world)


def _compensating(at: Writing, frame: str, about: str | None) -> Any:
    return -_equivalent(at, frame, about)
