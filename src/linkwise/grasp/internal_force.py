"""Which part of the contact forces moves the object, and which part squeezes it.

    f = f_motion + f_internal,     A* f_internal = 0

The internal forces are the kernel of A* (of (S A)* for contacts that do not transmit everything).
The motion part is fixed only by a choice: which of the forces with the same resultant does not
squeeze? There is more than one answer:

    "minimum_norm"     the smallest, min λ* W λ: f_motion = W⁻¹ G* (G W⁻¹ G*)⁻¹ f_C with G = (S A)*.
                       The metric W compares newtons with newton metres, so it needs a length, and
                       another length gives another split. With A = S = W = 1 it is the dual of
                       001-II, (2.8a). The two parts are orthogonal in W.
    "equal_shares"     every contact carries f_C / ℓ, as seen from C: minimum norm when all forces
                       are measured at C instead of at the contacts. Depends on C.
    "virtual_linkage"  no member of the virtual linkage is in tension, no contact carries a moment
                       (Williams and Khatib 1993; see `virtual_linkage`).

A split that counts a push on both ends of a rod as motion is useless for a controller that keeps
the squeeze constant. That is why the metric is stated and not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp.contact import block_diagonal
from linkwise.grasp.virtual_linkage import virtual_linkage
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

Split: TypeAlias = Literal["minimum_norm", "equal_shares", "virtual_linkage"]

TOLERANCE = 1e-10
"""Singular values of the grasp map below this fraction of the largest count as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class InternalForces:
    """Contact forces, split.

    Attributes:
        motion: The part that moves the object (..., ℓ, 6) [N m, N], in the contacts' frames.
        internal: The part that squeezes it (..., ℓ, 6): its resultant is zero.
        resultant: f_C (..., 6) of both, in the object's axes.
    """

    motion: Array
    internal: Array
    resultant: Array

    def __str__(self) -> str:
        if self.resultant.ndim > 1:
            count, states = self.motion.shape[-2], int(np.prod(self.resultant.shape[:-1]))
            return f"forces of {count} contacts, split into motion and squeeze, {states} states"
        lines = [f"resultant ({cells(self.resultant)}) N m, N"]
        for i, (moves, squeezes) in enumerate(zip(self.motion, self.internal, strict=True)):
            lines.append(f"contact {i + 1}: moves ({cells(moves)}), squeezes ({cells(squeezes)})")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class ForceSpace:
    """Which forces a grasp can apply to its object, and which cancel.

    Attributes:
        rank: The number of independent forces it can apply; 6 is all.
        internal: Contact forces that cancel (k, ℓ, 6): an orthonormal basis.
        unresisted: Velocities (6 - rank, 6) of the object at C that no contact resists.
        singular_values: Of (S A)* with moments divided by `length` (6,), largest first.
        length: Divides moments to compare them with forces [m].
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
        text = f"rank {self.rank} of 6, {self.dimension} internal forces"
        if self.rank == 6:
            return text
        return f"{text}; not resisted: " + ", ".join(screw_in_words(x) for x in self.unresisted)


def typical_length(grasp: Grasp, length: float | None = None) -> float:
    """A given length, checked, or the root mean square distance of the contacts from their centre.

    At that length [m] turning the object moves the contacts as far as shifting it; it is 1 if all
    contacts are at one point.
    """
    if length is not None:
        return number(length, "length", least=1e-9, most=1e9)
    off = grasp.points - grasp.points.mean(axis=0)
    size = float(np.sqrt((off**2).sum(axis=1).mean()))
    return size if size > 0.0 else 1.0


def force_space(grasp: Grasp, point: ArrayLike, length: float | None) -> ForceSpace:
    """The singular value decomposition of (S A)*."""
    length = typical_length(grasp, length)
    S = grasp.usable
    weights = np.array([1.0 / length] * 3 + [1.0] * 3)
    left, values, right = np.linalg.svd((S @ grasp.map(point)).T * weights[:, None])
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
    point: ArrayLike,
    split: Split,
    length: float | None,
    weights: ArrayLike | None,
) -> InternalForces:
    """f_motion = S* W⁻¹ G* (G W⁻¹ G*)⁺ f_C, f_internal = f - f_motion."""
    f = grasp.check_forces(forces)
    S = grasp.passed
    _check_passed(grasp, f.reshape(*f.shape[:-2], -1), S)
    resultant = grasp.object_force(f, point)
    if split == "virtual_linkage":
        linkage = virtual_linkage(grasp, point)
        motion = linkage.contact_forces(resultant, np.zeros(linkage.dimension))
    elif split in ("minimum_norm", "equal_shares"):
        if split == "minimum_norm":
            inverse = np.linalg.inv(S @ metric(grasp, length, weights) @ S.T)
        else:
            inverse = _inverse_metric_at(grasp, point)
        G = (S @ grasp.map(point)).T
        gain = S.T @ inverse @ G.T @ np.linalg.pinv(G @ inverse @ G.T, rcond=TOLERANCE)
        motion = (resultant @ gain.T).reshape(f.shape)
    else:
        raise ModelError(
            f"split is {split!r}; it must be 'minimum_norm', 'equal_shares' or 'virtual_linkage'."
        )
    return InternalForces(motion, f - motion, resultant)


def metric(grasp: Grasp, length: float | None, weights: ArrayLike | None) -> Array:
    """W (6 ℓ, 6 ℓ): moments over a length, contacts by their weights."""
    length = typical_length(grasp, length)
    given = np.ones(len(grasp)) if weights is None else floats(weights, "weights of contacts")
    if given.shape != (len(grasp),) or not (np.isfinite(given).all() and (given > 0.0).all()):
        raise ShapeError(
            f"weights of contacts are {given.tolist()}; they must be {len(grasp)} positive numbers."
        )
    once = np.array([length**-2] * 3 + [1.0] * 3)
    return np.diag(np.outer(given, once).ravel())


def _inverse_metric_at(grasp: Grasp, point: ArrayLike) -> Array:
    """W⁻¹ for W = φ* φ: forces measured at C. Needs rigid contacts."""
    poor = [name for name, contact in grasp.contacts.items() if contact.rows < 6]
    if poor:
        raise ModelError(
            f"split='equal_shares' needs rigid contacts, but {', '.join(poor)} do not transmit all "
            "moments and forces. Use 'minimum_norm' or 'virtual_linkage'."
        )
    shifts = grasp.map(point).reshape(-1, 6, 6)  # φ*
    inverses = [np.asarray(np.linalg.inv(x @ x.T), dtype=np.float64) for x in shifts]
    return block_diagonal(inverses)


def _check_passed(grasp: Grasp, stacked: Array, S: Array) -> None:
    """f = S* S f, up to rounding."""
    lost = np.abs(stacked - stacked @ S.T @ S).reshape(-1, len(grasp), 6).max(axis=(0, 2))
    size = max(1.0, float(np.abs(stacked).max(initial=0.0)))
    for name, off in zip(grasp.names, lost, strict=True):
        if off > 1e-9 * size:
            kind = grasp.contacts[name].kind
            raise ModelError(
                f"the force at contact {name!r} has {off:.3g} N or N m that a contact of kind "
                f"{kind!r} does not transmit (H(0) f must be 0). Remove it, or use another kind."
            )


def screw_in_words(V: Array) -> str:
    """A velocity (ω, v) in words: the turn about a line, or the direction of motion."""
    w, v = V[:3], V[3:]
    turn = float(np.linalg.norm(w))
    if turn < 1e-9 * float(np.linalg.norm(v)):
        return f"moving along {_vector(v)}"
    axis, at = w / turn, np.cross(w, v) / turn**2
    return f"turning about {_vector(axis)} through {_vector(at)} m"


def cells(x: Array) -> str:
    """Numbers for a printed line, rounding noise removed."""
    return ", ".join(f"{c:.4g}" for c in np.round(x, 9) + 0.0)


def _vector(x: Array) -> str:
    length = float(np.linalg.norm(x))
    clean = np.where(np.abs(x) < 1e-9 * max(length, 1e-3), 0.0, x)
    return "(" + ", ".join(f"{c:.4g}" for c in clean) + ")"
