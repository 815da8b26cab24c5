"""The virtual linkage: internal forces as tensions of bars between the contacts.

ℓ contacts are the nodes of a truss. Bars between them carry tensions t, and the moments τ_i of the
contacts act at its nodes. With f_i the forces and m_i the moments at the contacts, all in the
object's axes, r_i from C to contact i, and e_ij the unit vector from i to j,

    F = Σ f_i,   N = Σ (r_i × f_i + m_i)             the resultant
    t = E⁺ f,    E: column of bar ij is e_ij at i and -e_ij at j
    τ_i = m_i

A positive t is a squeeze: a bar in tension pulls its ends together, like fingers that press the
object between them. In the other direction, with W_f the map from forces alone to the resultant,

    m_i = τ_i,    f = W_f⁺ ((N, F) - (Σ τ_i, 0)) + E t

A truss of ℓ ≥ 3 points has 3 ℓ - 6 bars: those of a triangle, and three for each further point;
with 3 ℓ moments, 6 ℓ - 6 internal forces. Two points have one bar, and forces alone cannot produce
a moment about the line through them: the twists of the contacts do, in equal parts. Five moments
are then internal: the difference of the twists and the four perpendicular to the line.

Points in one plane make a truss that is soft out of the plane: internal forces that bend it are not
tensions. They are kept as further members, called "transverse".

Source: D. Williams, O. Khatib, "The virtual linkage: a model for internal forces in multi-grasp
manipulation", IEEE International Conference on Robotics and Automation, 1993. The form of E⁺ for
any number of points and the treatment of points in a plane are this library's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments import rows
from linkwise.brief import counted
from linkwise.errors import ModelError
from linkwise.spatial.array import Array, ArrayLike, constant
from linkwise.spatial.rotation import skew

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

TOLERANCE = 1e-9
"""A bar whose column depends on earlier ones up to this residual is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class VirtualLinkage:
    """The map between contact forces and (resultant, internal forces).

    Attributes:
        names: One name for each internal force: "left-right" for a bar [N], "left moment x" ...
            in the object's axes [N m], "transverse 1" ... for forces that bend a flat truss [N].
        description: (6 ℓ, 6 ℓ): (resultant, internal) = description f, with f the contact forces
            in the contacts' frames.
        inverse: (6 ℓ, 6 ℓ): f = inverse (resultant, internal).
        bars: Pairs of contacts that a bar joins.
    """

    names: tuple[str, ...]
    description: Array
    inverse: Array
    bars: tuple[tuple[str, str], ...]

    @property
    def dimension(self) -> int:
        """Of the internal forces: 6 ℓ - 6."""
        return len(self.names)

    def __str__(self) -> str:
        bars, others = len(self.bars), self.dimension - len(self.bars)
        return (
            f"virtual linkage of {self.dimension} internal forces: tensions of "
            f"{counted(bars, 'bar')} ({', '.join(self.names[:bars])}), and {others} "
            "moments and bending forces"
        )

    def split(self, forces: ArrayLike) -> tuple[Array, Array]:
        """Resultant (..., 6) and internal forces (..., 6 ℓ - 6) of contact forces (..., ℓ, 6)."""
        f = rows(forces, (len(self.inverse) // 6, 6), "the contact force")
        both = f.reshape(*f.shape[:-2], -1) @ self.description.T
        return both[..., :6], both[..., 6:]

    def contact_forces(self, resultant: ArrayLike, internal: ArrayLike) -> Array:
        """Contact forces (..., ℓ, 6) with a resultant (..., 6) and internal forces."""
        F = rows(resultant, 6, "the resultant")
        inside = rows(internal, self.dimension, "the internal force")
        lead = np.broadcast_shapes(F.shape[:-1], inside.shape[:-1])
        parts = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in (F, inside)]
        both = np.concatenate(parts, axis=-1)
        return (both @ self.inverse.T).reshape(*lead, -1, 6)


def virtual_linkage(grasp: Grasp, point: ArrayLike) -> VirtualLinkage:
    """The virtual linkage of a grasp, with the resultant at C = `point`."""
    points = grasp.points - constant(point, (3,), "point of the linkage")
    _check(grasp, points)
    count = len(grasp)
    # In the object's axes, all moments first and then all forces.
    sums = np.concatenate([np.eye(3)] * count, axis=1)
    W_f = np.concatenate([np.concatenate([skew(r) for r in points], axis=1), sums])
    W_m = np.concatenate([sums, np.zeros((3, 3 * count))])
    truss, bars = _truss(points)
    # Internal forces that are not tensions exist only for points in a plane.
    values, right = np.linalg.svd(np.concatenate([W_f, truss.T]))[1:]
    transverse = right[int((values > TOLERANCE * values[0]).sum()) :].T
    tensions = np.linalg.pinv(np.concatenate([truss, transverse], axis=1))
    moments, moment_names = _moments(grasp, points)
    left = np.zeros((6 * count, 6 * count))
    left[:6] = np.concatenate([W_m, W_f], axis=1)
    left[6 : 6 + len(tensions), 3 * count :] = tensions
    left[6 + len(tensions) :, : 3 * count] = moments
    names = [f"{grasp.names[i]}-{grasp.names[j]}" for i, j in bars]
    names += [f"transverse {k + 1}" for k in range(transverse.shape[1])]
    description = left @ _axes(grasp)
    return VirtualLinkage(
        (*names, *moment_names),
        description,
        np.asarray(np.linalg.inv(description), dtype=np.float64),
        tuple((grasp.names[i], grasp.names[j]) for i, j in bars),
    )


def _check(grasp: Grasp, points: Array) -> None:
    slick = [name for name, contact in grasp.contacts.items() if contact.kind == "frictionless"]
    if slick:
        raise ModelError(
            f"contacts without friction ({', '.join(slick)}) transmit one force each; the virtual "
            "linkage needs all three. Use `force_space` for their internal forces."
        )
    if len(grasp) < 2:
        raise ModelError("a virtual linkage joins two or more contacts; this grasp has 1.")
    size = max(float(np.abs(points - points.mean(axis=0)).max()), np.finfo(float).tiny)
    for i, j in itertools.combinations(range(len(grasp)), 2):
        if float(np.linalg.norm(points[i] - points[j])) < TOLERANCE * size:
            raise ModelError(
                f"contacts {grasp.names[i]!r} and {grasp.names[j]!r} are at one point; no bar of a "
                "virtual linkage can join them. Move one, or model them as one contact."
            )
    flat = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if len(grasp) > 2 and flat[1] < TOLERANCE * flat[0]:
        raise ModelError(
            f"the {len(grasp)} contacts are on one line; a virtual linkage needs three that are "
            "not, or exactly two. Use `internal_forces(..., split='minimum_norm')`."
        )


def _truss(points: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Columns of E (3 ℓ, bars) of the independent bars, short bars first."""
    pairs = sorted(
        itertools.combinations(range(len(points)), 2),
        key=lambda ij: (round(float(np.linalg.norm(points[ij[0]] - points[ij[1]])), 12), ij),
    )
    chosen, bars = list[Array](), list[tuple[int, int]]()
    basis = np.zeros((0, points.size))
    for i, j in pairs:
        column = np.zeros(points.size)
        e = (points[j] - points[i]) / np.linalg.norm(points[j] - points[i])
        column[3 * i : 3 * i + 3], column[3 * j : 3 * j + 3] = e, -e
        rest = column - basis.T @ (basis @ column)
        rest = rest - basis.T @ (basis @ rest)
        if float(np.linalg.norm(rest)) > TOLERANCE:
            basis = np.concatenate([basis, (rest / np.linalg.norm(rest))[None]])
            chosen.append(column)
            bars.append((i, j))
    return np.stack(chosen, axis=1), bars


def _moments(grasp: Grasp, points: Array) -> tuple[Array, list[str]]:
    """Rows that extract the internal moments from all moments (3 ℓ), and their names."""
    count = len(grasp)
    if count > 2:
        names = [f"{name} moment {axis}" for name in grasp.names for axis in "xyz"]
        return np.eye(3 * count), names
    line = points[1] - points[0]
    line = line / np.linalg.norm(line)
    across = np.linalg.svd(line[None])[2][1:]
    rows, names = [0.5 * np.concatenate([line, -line])], ["twist"]
    for i, name in enumerate(grasp.names):
        for k, direction in enumerate(across):
            row = np.zeros(6)
            row[3 * i : 3 * i + 3] = direction
            rows.append(row)
            names.append(f"{name} bending {k + 1}")
    return np.stack(rows), names


def _axes(grasp: Grasp) -> Array:
    """(6 ℓ, 6 ℓ): from the contacts' frames to all moments, then all forces, in the object's."""
    count = len(grasp)
    out = np.zeros((6 * count, 6 * count))
    for i, contact in enumerate(grasp.contacts.values()):
        rot = contact.pose.rot
        out[3 * i : 3 * i + 3, 6 * i : 6 * i + 3] = rot
        out[3 * (count + i) : 3 * (count + i) + 3, 6 * i + 3 : 6 * i + 6] = rot
    return out
