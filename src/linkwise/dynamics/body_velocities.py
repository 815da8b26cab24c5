"""Velocities of all bodies: whole, with the hinge held, and what the hinge adds.

V = V⁺ + ΔV,   V⁺ = E_φ* V,   ΔV = H* v                            002, "More stacked vectors"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.codegen.formula import Formula
from linkwise.dynamics.body_frame import BodyFrame, check_body_frame, velocities_seen
from linkwise.dynamics.kernels import Status, check_mechanism, named, written
from linkwise.dynamics.stacked import flat_out, six_each
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def body_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
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
            * "inertial": about the origin of the world, in its axes: V_I(k) = to_W V(k). Bodies
              that do not move against each other have the same.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocity(mech, "body_velocities", q, v, frame, out, status, threads)


def inboard_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """V⁺: what the velocity of each body would be with its hinge held; that of its parent.

    Expression:
        V⁺ = E_φ* V = φ̃* H* v,   `E_phi.T @ V`;   V⁺(k) = φ*(p,k) V(p), zero on the ground
    Source: 002, "The E_φ operator" and "Operator expression for V⁺".

    It belongs to the point where the body is now, not to the hinge frame O⁺: a hinge that has
    travelled has the two apart. `with_hinge_frames` gives O⁺ as a node.

    Args:
        frame: Where it is taken, and in which axes, as for `body_velocities`.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocity(mech, "inboard_velocities", q, v, frame, out, status, threads)


def hinge_velocities(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    frame: BodyFrame = "body",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """ΔV: what the hinge of each body adds to its velocity.

    Expression:
        ΔV = H* v,   `H.T @ v`: no recursion
    Source: 002, "The Joint Map operator H"; away from the hinge, H_B* = φ*(O, B) H*.

    Args:
        frame: Where it is taken, and in which axes, as for `body_velocities`.

    Returns:
        (n, 6) in the order of `mech.bodies`, or (batch, n, 6) [rad/s, m/s].
    """
    return _velocity(mech, "hinge_velocities", q, v, frame, out, status, threads)


def _velocity(
    mech: Mechanism,
    name: str,
    q: ArrayLike,
    v: ArrayLike,
    frame: BodyFrame,
    out: Array | None,
    status: Status | None,
    threads: int | None,
) -> Array:
    found = _kernel(mech, name, frame)
    if out is status is threads is None:
        rows = found(q, v)
    else:
        place = flat_out(out, mech.n_bodies)
        rows = found(q, v, out=place, status=status, threads=threads)
    return six_each(rows, out)


@once_per_mechanism
def _kernel(mech: Mechanism, name: str, frame: BodyFrame) -> Any:
    check_mechanism(mech)
    check_body_frame(frame, " For the axes of other nodes see node_velocity.")
    if frame == "body":
        return named(mech, name)
    if frame == "inertial":
        return named(mech, f"{name}_about_world")
    return written(mech, Formula(_flat, (name, frame)))


def _flat(at: Writing, name: str, frame: BodyFrame) -> Any:
    return velocities_seen(at, name, frame).ravel()
