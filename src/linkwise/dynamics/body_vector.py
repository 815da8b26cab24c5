"""Vectors stacked over the bodies: velocities of all bodies, scatter and gather.

    V = V⁺ + ΔV,   V⁺ = E_φ* V,   ΔV = H* v                        002, "More stacked vectors"

Users hold them as (n, 6), kernels as (6 n,). They can be taken at other places and in other axes:
with V(k) and F(k) at the body frame B and in its axes, O the hinge frame on the body, and R, p its
rotation and place in the world,

    "hinge"      φ*(B, O) V,         φ(O, B) F
    "world"      (R ω, R v),         (R n, R f)
    "inertial"   to_W V,             (R n + p × R f, R f)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Options, check_mechanism, named, written
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.rotation import skew

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

BodyFrame: TypeAlias = Literal["body", "hinge", "world", "inertial"]
"""Where a velocity or force of a body is taken, and in which axes; see `body_velocities`."""

BODY_FRAMES = ("body", "hinge", "world", "inertial")

Through: TypeAlias = Literal["rigid", "articulated"]
"""What a vector is carried through: rigid bodies (φ), or bodies with hinges that give way (ψ)."""


def body_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    **options: Unpack[Options],
) -> Array:
    """Spatial velocities (angular, linear) of all bodies.

    Expression:
        V = φ* H* v,   `phi.T @ H.T @ v`;   V(k) = φ*(p,k) V(p) + H*(k) v(k): one pass, O(n)
    Source: 002, "Explicit operator expression for body spatial velocities"; for the frames
    "Body frame at hinge", "Body frame not at hinge", "Inertially referenced body velocities".

    Args:
        frame: Where it is taken, and in which axes:

            * "body": at the body frame B(k), in its axes: V(k).
            * "hinge": at the hinge frame O(k), in its axes: V(O(k)) = φ*(B(k), O(k)) V(k). The
              same as "body" for a body frame at the hinge.
            * "world": at the body frame, in world axes.
            * "inertial": about the origin of the world, in its axes: V_I(k) = to_W V(k). It is the
              same for bodies that do not move against each other.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocities(mech, "body_velocities", q, v, frame, options)


def inboard_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    **options: Unpack[Options],
) -> Array:
    """V⁺: the velocity that each body would have with its hinge held; that of its parent.

    Expression:
        V⁺ = E_φ* V = φ̃* H* v,   `E_phi.T @ V`;   V⁺(k) = φ*(p,k) V(p), zero on the ground
    Source: 002, "The E_φ operator" and "Operator expression for V⁺".

    It is taken at the point where the body is now, not at the hinge frame O⁺: the two differ once a
    hinge has moved. `with_hinge_frames` gives O⁺ as a node.

    Args:
        frame: Where it is taken, and in which axes, as for `body_velocities`.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocities(mech, "inboard_velocities", q, v, frame, options)


def hinge_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    **options: Unpack[Options],
) -> Array:
    """ΔV: the part of each body's velocity that its hinge adds.

    Expression:
        ΔV = H* v,   `H.T @ v`: no recursion
    Source: 002, "The Joint Map operator H"; away from the hinge, H_B* = φ*(O, B) H*.

    Args:
        frame: Where it is taken, and in which axes, as for `body_velocities`.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocities(mech, "hinge_velocities", q, v, frame, options)


def _velocities(
    mech: Mechanism, name: str, q: ArrayLike, v: ArrayLike, frame: BodyFrame, options: Options
) -> Array:
    kernel = _velocity_kernel(mech, name, frame)
    if not options:
        return six_each(kernel(q, v))
    out = options.get("out")
    return six_each(kernel(q, v, **flat_options(options, mech.n_bodies)), out)


@once_per_mechanism
def _velocity_kernel(mech: Mechanism, name: str, frame: BodyFrame) -> Any:
    check_mechanism(mech)
    check_body_frame(frame, " For the axes of other nodes see node_velocity.")
    if frame == "body":
        return named(mech, name)
    if frame == "inertial":
        return named(mech, f"{name}_about_world")
    return written(mech, Formula(_velocities_seen, (name, frame)))


def scatter(
    mech: Mechanism,
    q: ArrayLike,
    x: ArrayLike,
    *,
    strict: bool = False,
    through: Through = "rigid",
    **options: Unpack[Options],
) -> Array:
    """A stacked vector propagated from the base to the tips, as velocities are.

    Expression:
        φ* x,   `phi.T @ x`;   φ̃* x with φ̃ = φ − I if `strict`;   ψ, ψ̃ if `through="articulated"`

    Recursion:
        y(k) = φ*(p,k) y(p) + x(k): one pass, O(n). Strictly: ȳ(k) = φ*(p,k) [ȳ(p) + x(p)].
    Source: 002, "Base-to-tips structure-based O(N) scatter recursion" and the one for φ̃* x.

    With x = H* v it gives the velocities of the bodies, and with `strict` V⁺, the velocity that
    each would have with its hinge held.

    Args:
        x: Six numbers for each body, in its frame and in the order of `mech.bodies`: (n, 6) or
            (batch, n, 6). Many x at one q are a batch of them.
        strict: Leave out the part of x at the body itself.
        through: "rigid" for φ; "articulated" for ψ = (I − E_ψ)⁻¹, whose hinges give way with the
            inertia (and armature) of the mechanism.

    Returns:
        (n, 6), or (batch, n, 6).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: `through="articulated"` and nothing resists the hinge of some body.
    """
    return _propagated(mech, "scatter", q, x, strict, through, options)


def gather(
    mech: Mechanism,
    q: ArrayLike,
    x: ArrayLike,
    *,
    strict: bool = False,
    through: Through = "rigid",
    **options: Unpack[Options],
) -> Array:
    """A stacked vector propagated from the tips to the base, as forces are.

    Expression:
        φ x,   `phi @ x`;   φ̃ x with φ̃ = φ − I if `strict`;   ψ, ψ̃ if `through="articulated"`

    Recursion:
        y(k) = Σ_c φ(k,c) y(c) + x(k): one pass, O(n). Strictly: ȳ(k) = Σ_c φ(k,c) [ȳ(c) + x(c)].
    Source: 002, "Tips-to-base structure-based O(N) gather recursion" and the one for φ̃ x.

    With a force x on each body it gives the load of each hinge: everything outboard of it.

    Args:
        x: As for `scatter`.
        strict: As for `scatter`.
        through: As for `scatter`.

    Returns:
        (n, 6), or (batch, n, 6).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: `through="articulated"` and nothing resists the hinge of some body.
    """
    return _propagated(mech, "gather", q, x, strict, through, options)


def _propagated(
    mech: Mechanism,
    name: str,
    q: ArrayLike,
    x: ArrayLike,
    strict: bool,
    through: Through,
    options: Options,
) -> Array:
    if through not in ("rigid", "articulated"):
        raise ModelError(f"through is {through!r}; it must be 'rigid' or 'articulated'.")
    name = f"articulated_{name}" if through == "articulated" else name
    kernel = named(mech, f"strict_{name}" if strict else name)
    row = flat(x, mech.n_bodies, "x")
    if not options:
        return six_each(kernel(q, row))
    out = options.get("out")
    return six_each(kernel(q, row, **flat_options(options, mech.n_bodies)), out)


# ---------------------------------------------------------------------------------------- frames


def check_body_frame(frame: object, hint: str = "") -> None:
    """Raise unless it is one of the four words; `hint` is added to the message."""
    if not isinstance(frame, str) or frame not in BODY_FRAMES:
        raise ModelError(
            f"frame is {frame!r}; it must be 'body', 'hinge', 'world' or 'inertial'.{hint}"
        )


def _velocities_seen(at: Writing, name: str, frame: BodyFrame) -> Any:
    """A quantity V of all bodies (6 n,) at another place or in other axes, as a formula."""
    V = at.value(expression(name)).reshape(-1, 6, 1)
    if frame == "hinge":
        shifts = [body.outboard.inverse().shift.T for body in at.mech.bodies]
        return (np.reshape(shifts, (-1, 6, 6)) @ V).ravel()
    rot = at.value(expression("body_poses")).reshape(-1, 3, 4)[..., :3]
    return np.concatenate([rot @ V[:, :3], rot @ V[:, 3:]], axis=1).ravel()


def forces_seen(at: Writing, name: str, forces_frame: Frame, frame: BodyFrame) -> Any:
    """A quantity F of all bodies (6 n,), with forces at nodes, likewise."""
    F = at.value(expression(name, frame=forces_frame)).reshape(-1, 6, 1)
    if frame == "hinge":
        shifts = np.reshape([body.outboard.shift for body in at.mech.bodies], (-1, 6, 6))
        return (shifts @ F).ravel()
    poses = at.value(expression("body_poses")).reshape(-1, 3, 4)
    rot, p = poses[..., :3], poses[..., 3]
    moment, force = rot @ F[:, :3], rot @ F[:, 3:]
    if frame == "inertial":
        moment = moment + skew(p) @ force
    return np.concatenate([moment, force], axis=1).ravel()


# ---------------------------------------------------------------------------------------- shapes


def flat(x: ArrayLike, count: int, what: str) -> Array:
    """(n, 6) or (batch, n, 6) as the rows of a kernel."""
    if type(x) is np.ndarray and x.shape == (count, 6):
        return x.reshape(-1)  # most calls: the kernel checks the rest
    array = floats(x, what)
    if array.ndim not in (2, 3) or array.shape[-2:] != (count, 6):
        raise ShapeError(
            f"{what} has shape {array.shape}; it must be ({count}, 6), six numbers for each body, "
            f"or (batch, {count}, 6)."
        )
    return array.reshape(*array.shape[:-2], 6 * count)


def flat_options(options: Options, count: int) -> Options:
    """The options of a kernel: the memory of `out` (..., n, 6) as its rows."""
    out = options.get("out")
    if out is None:
        return options
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(f"out is a {type(out).__name__}; it must be an array.")
    if out.ndim not in (2, 3) or out.shape[-2:] != (count, 6) or not out.flags.c_contiguous:
        raise ShapeError(
            f"out has shape {out.shape}; it must be contiguous, ({count}, 6) or "
            f"(batch, {count}, 6)."
        )
    return {**options, "out": out.reshape(*out.shape[:-2], 6 * count)}


def six_each(rows: Array, out: Array | None = None) -> Array:
    """Rows (..., 6 n) of a kernel as (..., n, 6); `out` itself where they are in it."""
    if out is not None:
        return out
    if rows.ndim == 1:
        return rows.reshape(-1, 6)
    return rows.reshape(*rows.shape[:-1], rows.shape[-1] // 6, 6)
