"""What of the contact forces moves the object, and what squeezes it.

    f = f_motion + f_internal,     A* f_internal = 0

The internal forces are a space: the kernel of A* (of (S A)* for contacts that do not pass all). The
part that moves is only fixed when one says which of the forces with the same resultant does not
squeeze, and there is more than one answer:

    "minimum_norm"     the smallest, min λ* W λ: f_motion = W⁻¹ G* (G W⁻¹ G*)⁻¹ f_C with G = (S A)*.
                       The metric W has to compare newtons with newton metres, so it needs a length,
                       and another length gives another split. With A = S = W = 1 it is the dual of
                       001-II, (2.8a). The two parts are orthogonal in W.
    "equal_shares"     every contact carries f_C / ℓ, as seen from C: minimum norm when all forces
                       are measured at C instead of where they act. Depends on C.
    "virtual_linkage"  no member of the virtual linkage is in tension, no contact carries a moment
                       (Williams and Khatib 1993; see `virtual_linkage`).

A split that calls a push on both ends of a rod "motion" is of no use for a controller that is to
hold the squeeze constant: that is why the metric is said and not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp.grasp import Grasp, check_grasp, grasp_map, object_force
from linkwise.grasp.virtual_linkage import virtual_linkage
from linkwise.spatial.array import Array, ArrayLike, floats

Split: TypeAlias = Literal["minimum_norm", "equal_shares", "virtual_linkage"]

TOLERANCE = 1e-10
"""Singular values of the grasp map below this part of the largest count as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class InternalForces:
    """Contact forces, split.

    Attributes:
        motion: What moves the object (..., ℓ, 6) [N m, N], in the contacts' frames.
        internal: What squeezes it (..., ℓ, 6): its resultant is zero.
        resultant: f_C (..., 6) of both, in the object's axes.
    """

    motion: Array
    internal: Array
    resultant: Array

    def __str__(self) -> str:
        if self.resultant.ndim > 1:
            count, states = self.motion.shape[-2], int(np.prod(self.resultant.shape[:-1]))
            return f"forces of {count} contacts, split into motion and squeeze, {states} states"
        lines = [f"resultant ({_cells(self.resultant)}) N m, N"]
        for i, (moves, squeezes) in enumerate(zip(self.motion, self.internal, strict=True)):
            lines.append(f"contact {i + 1}: moves ({_cells(moves)}), squeezes ({_cells(squeezes)})")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class ForceSpace:
    """Which forces a grasp can put on its object, and which cancel.

    Attributes:
        rank: How many independent forces it can put on the object; 6 is all.
        internal: Contact forces that cancel (k, ℓ, 6): an orthonormal basis.
        unresisted: Velocities (6 - rank, 6) of the object at C that no contact resists.
        singular_values: Of (S A)* with turning measured at `length` (6,), largest first.
        length: At which moments are compared with forces [m].
    """

    rank: int
    internal: Array
    unresisted: Array
    singular_values: Array
    length: float

    @property
    def dimension(self) -> int:
        """Of the internal forces: Σ rows - rank, 6 ℓ - 6 for rigid contacts."""
        return len(self.internal)

    def __str__(self) -> str:
        told = f"rank {self.rank} of 6, {self.dimension} internal forces"
        if self.rank == 6:
            return told
        return f"{told}; not resisted: " + ", ".join(screw_in_words(x) for x in self.unresisted)


def typical_length(grasp: Grasp) -> float:
    """Root mean square distance of the contacts from their centre [m]; 1 if all are in one point.

    The length at which turning the object moves the contacts as far as shifting it.
    """
    off = grasp.points - grasp.points.mean(axis=0)
    size = float(np.sqrt((off**2).sum(axis=1).mean()))
    return size if size > 0.0 else 1.0


def force_space(
    grasp: Grasp, point: ArrayLike = (0.0, 0.0, 0.0), *, length: float | None = None
) -> ForceSpace:
    """Rank of a grasp and its internal forces, friction limits aside (but for friction of zero).

    Two point contacts, for instance, have rank 5: nothing resists the turn about the line through
    them. Two soft fingers have rank 6 unless both normals are across that line.

    Args:
        grasp: The grasp.
        point: C in the object's frame (3,) [m].
        length: At which moments are compared with forces [m]; by default `typical_length`.
    """
    check_grasp(grasp, "force_space")
    length = _length(grasp, length)
    S = grasp.held
    weights = np.array([1.0 / length] * 3 + [1.0] * 3)
    map_ = (S @ grasp_map(grasp, point)).T * weights[:, None]
    left, values, right = np.linalg.svd(map_)
    values = np.append(values, np.zeros(6 - len(values)))
    rank = int((values > TOLERANCE * values[0]).sum())
    internal = (right[rank:] @ S).reshape(-1, len(grasp), 6)
    # Left null vectors y: y* W (S A)* = 0, so the velocity W y does no work on any force.
    lost = left[:, rank:].T * weights
    largest = np.take_along_axis(lost, np.abs(lost).argmax(axis=1)[:, None], axis=1)
    lost = lost / np.linalg.norm(lost, axis=1, keepdims=True) * np.sign(largest)
    return ForceSpace(rank, internal, lost, values, length)


def internal_forces(
    grasp: Grasp,
    forces: ArrayLike,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    split: Split = "minimum_norm",
    length: float | None = None,
    weights: ArrayLike | None = None,
) -> InternalForces:
    """Contact forces split into what moves the object and what squeezes it.

    Expression:
        f_motion = S* W⁻¹ G* (G W⁻¹ G*)⁺ f_C,   G = (S A)*,   f_internal = f - f_motion
    Source: 001-II, (2.8)-(2.9) for the pseudo-inverse of A; Williams and Khatib 1993 for the
        virtual linkage. See the head of this file for what the choice means.

    Args:
        grasp: The grasp.
        forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N]; only what
            the contacts pass.
        point: C in the object's frame (3,) [m].
        split: "minimum_norm", "equal_shares" or "virtual_linkage".
        length: Of the metric: moments are divided by it [m]; by default `typical_length`.
        weights: Of the contacts in the metric (ℓ,), positive: a contact of weight 4 gets a fourth
            of what one of weight 1 does. By default all 1.

    Raises:
        ModelError: Forces that a contact does not pass; a split that the contacts do not allow.
    """
    check_grasp(grasp, "internal_forces")
    f = grasp.check_forces(forces)
    stacked = f.reshape(*f.shape[:-2], -1)
    S = grasp.passed
    _check_passed(grasp, stacked, S)
    resultant = object_force(grasp, f, point)
    if split == "virtual_linkage":
        linkage = virtual_linkage(grasp, point)
        found = linkage.contact_forces(resultant, np.zeros(linkage.dimension))
    elif split in ("minimum_norm", "equal_shares"):
        if split == "minimum_norm":
            inverse = np.linalg.inv(S @ metric(grasp, length, weights) @ S.T)
        else:
            inverse = _equal(grasp, point)
        G = (S @ grasp_map(grasp, point)).T
        gain = S.T @ inverse @ G.T @ np.linalg.pinv(G @ inverse @ G.T, rcond=TOLERANCE)
        found = (resultant @ gain.T).reshape(f.shape)
    else:
        raise ModelError(
            f"split is {split!r}; it must be 'minimum_norm', 'equal_shares' or 'virtual_linkage'."
        )
    return InternalForces(found, f - found, resultant)


def metric(grasp: Grasp, length: float | None, weights: ArrayLike | None) -> Array:
    """W (6 ℓ, 6 ℓ): moments over a length, contacts by their weights."""
    length = _length(grasp, length)
    given = np.ones(len(grasp)) if weights is None else floats(weights, "weights of contacts")
    if given.shape != (len(grasp),) or not (np.isfinite(given).all() and (given > 0.0).all()):
        raise ShapeError(
            f"weights of contacts are {given.tolist()}; they must be {len(grasp)} positive numbers."
        )
    once = np.array([length**-2] * 3 + [1.0] * 3)
    return np.diag(np.outer(given, once).ravel())


def _equal(grasp: Grasp, point: ArrayLike) -> Array:
    """W⁻¹ for W = φ* φ: forces measured at C. Needs contacts that pass everything."""
    poor = [name for name, contact in grasp.contacts.items() if contact.rows < 6]
    if poor:
        raise ModelError(
            f"equal shares were asked for, but {', '.join(poor)} do not pass all moments and "
            "forces; every contact has to be rigid. Use 'minimum_norm' or 'virtual_linkage'."
        )
    A = grasp_map(grasp, point).reshape(-1, 6, 6)
    out = np.zeros((6 * len(grasp),) * 2)
    for i, shift in enumerate(A):  # shift = φ*, so W⁻¹ = (φ* φ)⁻¹
        out[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = np.linalg.inv(shift @ shift.T)
    return out


def _length(grasp: Grasp, length: float | None) -> float:
    if length is None:
        return typical_length(grasp)
    return number(length, "length", least=1e-9, most=1e9)


def _check_passed(grasp: Grasp, stacked: Array, S: Array) -> None:
    """f = S* S f, up to rounding."""
    lost = np.abs(stacked - stacked @ S.T @ S).reshape(-1, len(grasp), 6).max(axis=(0, 2))
    size = max(1.0, float(np.abs(stacked).max(initial=0.0)))
    for name, off in zip(grasp.names, lost, strict=True):
        if off > 1e-9 * size:
            kind = grasp.contacts[name].kind
            raise ModelError(
                f"the force at contact {name!r} has {off:.3g} N or N m that a contact of kind "
                f"{kind!r} does not pass (H(0) f must be 0). Leave it out, or use another kind."
            )


def screw_in_words(V: Array) -> str:
    """A velocity (ω, v) in words: the turn about a line, or the way along a direction."""
    w, v = V[:3], V[3:]
    turn = float(np.linalg.norm(w))
    if turn < 1e-9 * float(np.linalg.norm(v)):
        return f"moving along {_vector(v)}"
    axis, at = w / turn, np.cross(w, v) / turn**2
    return f"turning about {_vector(axis)} through {_vector(at)} m"


def _cells(x: Array) -> str:
    return ", ".join(f"{c:.4g}" for c in np.round(x, 9) + 0.0)


def _vector(x: Array) -> str:
    length = float(np.linalg.norm(x))
    clean = np.where(np.abs(x) < 1e-9 * max(length, 1e-3), 0.0, x)
    return "(" + ", ".join(f"{c:.4g}" for c in clean) + ")"
