"""Scatter and gather: any stacked vector, propagated along the tree."""

from __future__ import annotations

from typing import Literal, TypeAlias

from linkwise.dynamics.kernels import Status, named
from linkwise.dynamics.stacked import flat, flat_out, six_each
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Through: TypeAlias = Literal["rigid", "articulated"]
"""What a vector is carried through: rigid bodies (φ), or bodies with hinges that give way (ψ)."""


def scatter(
    mech: Mechanism,
    q: ArrayLike,
    x: ArrayLike,
    *,
    strict: bool = False,
    through: Through = "rigid",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """A stacked vector propagated from the base to the tips, as velocities are.

    Expression:
        φ* x,   `phi.T @ x`;   φ̃* x with φ̃ = φ − I if `strict`;   ψ, ψ̃ if `through="articulated"`

    Recursion:
        y(k) = φ*(p,k) y(p) + x(k): one pass, O(n). Strictly: ȳ(k) = φ*(p,k) [ȳ(p) + x(p)].
    Source: 002, "Base-to-tips structure-based O(N) scatter recursion" and the one for φ̃* x.

    With x = H* v it gives the velocities of the bodies, and with `strict` V⁺, what each would be
    with its hinge held.

    Args:
        x: Six numbers for each body, in its frame and in the order of `mech.bodies`: (n, 6) or
            (batch, n, 6). Many x at one q are a batch of them.
        strict: Leave out what x has at the body itself.
        through: "rigid" for φ; "articulated" for ψ = (I − E_ψ)⁻¹, whose hinges give way with the
            inertia (and armature) of the mechanism.

    Returns:
        (n, 6), or (batch, n, 6).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: `through="articulated"` and nothing resists the hinge of some body.
    """
    return _propagated(mech, "scatter", q, x, strict, through, out, status, threads)


def gather(
    mech: Mechanism,
    q: ArrayLike,
    x: ArrayLike,
    *,
    strict: bool = False,
    through: Through = "rigid",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """A stacked vector propagated from the tips to the base, as forces are.

    Expression:
        φ x,   `phi @ x`;   φ̃ x with φ̃ = φ − I if `strict`;   ψ, ψ̃ if `through="articulated"`

    Recursion:
        y(k) = Σ_c φ(k,c) y(c) + x(k): one pass, O(n). Strictly: ȳ(k) = Σ_c φ(k,c) [ȳ(c) + x(c)].
    Source: 002, "Tips-to-base structure-based O(N) gather recursion" and the one for φ̃ x.

    With a force x on each body it gives what each hinge has to hold: all that is outboard of it.

    Args:
        x: Six numbers for each body, in its frame and in the order of `mech.bodies`: (n, 6) or
            (batch, n, 6). Many x at one q are a batch of them.
        strict: Leave out what x has at the body itself.
        through: "rigid" for φ; "articulated" for ψ = (I − E_ψ)⁻¹, whose hinges give way with the
            inertia (and armature) of the mechanism.

    Returns:
        (n, 6), or (batch, n, 6).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: `through="articulated"` and nothing resists the hinge of some body.
    """
    return _propagated(mech, "gather", q, x, strict, through, out, status, threads)


def _propagated(
    mech: Mechanism,
    way: str,
    q: ArrayLike,
    x: ArrayLike,
    strict: bool,
    through: Through,
    out: Array | None,
    status: Status | None,
    threads: int | None,
) -> Array:
    if through not in ("rigid", "articulated"):
        raise ModelError(f"through is {through!r}; it must be 'rigid' or 'articulated'.")
    name = f"articulated_{way}" if through == "articulated" else way
    name = f"strict_{name}" if strict else name
    found = named(mech, name)
    row = flat(x, mech.n_bodies, "x")
    if out is status is threads is None:
        return six_each(found(q, row))
    place = flat_out(out, mech.n_bodies)
    return six_each(found(q, row, out=place, status=status, threads=threads), out)
