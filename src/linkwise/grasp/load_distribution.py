"""Which contact forces apply a given wrench to the object?

    A* f = f_C,   f = S* λ,   margins(f) ≥ reserve,   |τ| ≤ limit,   τ = offset + map f

Of all solutions, the best: the smallest in a metric, the one with the least joint effort, or the
one farthest from every limit. Cones are exact (see `cone_program`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from linkwise.errors import ModelError
from linkwise.grasp.cone_program import ConeProgram, room
from linkwise.grasp.contact import LIMITS
from linkwise.grasp.contact_motion import FAILURES, GraspEffort, GraspMargins
from linkwise.grasp.internal_force import ForceSpace, force_space, metric
from linkwise.spatial.array import Array, ArrayLike, constant, floats

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

Objective: TypeAlias = Literal["force", "effort", "margin"]

CLOSE = 1e-7
"""A limit counts as satisfied within this fraction of the forces' size, which is 1 N at least."""

NEAR = 1e-6
"""A resultant counts as reached within this fraction of it."""

ROUNDING = 1e-14
"""Relative rounding of sums of forces that cancel."""

BLIND = 1e-9
"""Fraction of the forces' norm added to an effort that some internal forces do not change."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadDistribution:
    """Contact forces that apply a given wrench to the object.

    Attributes:
        feasible: Whether the returned forces were verified to satisfy all limits, to 1e-7 of the
            wrench or 1e-7 N.
        reason: Why not; "" if feasible.
        forces: On the object, in the contacts' frames (ℓ, 6) [N m, N]. If nothing is feasible,
            those that violate the limits the least.
        margins: Their margins.
        efforts: The corresponding joint forces (n,); None if no effort was given.
        space: Rank and internal forces of the grasp.
    """

    feasible: bool
    reason: str
    forces: Array
    margins: GraspMargins
    efforts: Array | None
    space: ForceSpace

    def __str__(self) -> str:
        head = "feasible" if self.feasible else f"not feasible: {self.reason}"
        return f"{head}; {self.space}\n{self.margins}"


def load_distribution(
    grasp: Grasp,
    wrench: ArrayLike,
    point: ArrayLike,
    objective: Objective,
    reserve: float,
    most: float,
    effort: GraspEffort | None,
    length: float | None,
    weights: ArrayLike | None,
) -> LoadDistribution:
    """Find forces inside the limits first, then the best of them."""
    _check(objective, effort)
    most, reserve = float(constant(most, (), "most")), _reserve(reserve)
    if not most > 0.0:
        raise ModelError(f"most is {most}; the largest normal force must be positive [N].")
    w = constant(wrench, (6,), "wrench")
    S, space = grasp.usable, force_space(grasp, point, length)
    G = (S @ grasp.map(point)).T
    reached = G @ np.linalg.lstsq(G, w, rcond=None)[0]

    def answer(lam: Array, reason: str) -> LoadDistribution:
        forces = (lam @ S).reshape(-1, 6)
        efforts = None if effort is None else effort.of(forces)
        margins = grasp.margins(forces)
        return LoadDistribution(not reason, reason, forces, margins, efforts, space)

    if not _near(reached, w, space.length):
        return answer(np.linalg.pinv(G) @ w, _unreachable(w, reached, space))
    cones = ConeProgram(grasp, G, reached, *_normals(grasp, most))
    best = cones.largest_margin(most, enough=reserve)
    if best is None:
        return answer(
            np.linalg.pinv(G) @ w,
            f"the wrench needs a normal force of more than {most:.6g} N at some contact, the "
            "largest allowed.",
        )
    (inside, margin), program = best, cones
    if margin < reserve - CLOSE * cones.size:
        return answer(inside, _crowded(grasp, inside, margin, reserve, most))
    has = np.zeros(0, dtype=bool) if effort is None else np.isfinite(effort.limit)
    if effort is not None and has.any():
        rows, start, limit = effort.map[has] @ S.T, effort.offset[has], effort.limit[has]
        lam, overload = cones.least_overload(rows, start, limit, reserve) or (inside, np.inf)
        if np.isinf(overload):
            overload = float((np.abs(start + rows @ lam) / limit).max())
        if overload > 1.0 + CLOSE:
            return answer(lam, _weak(effort, lam @ S, overload))
        below = np.concatenate([cones.B, rows, -rows])
        bound = np.concatenate([cones.d, limit - start, limit + start])
        program, inside = ConeProgram(grasp, G, reached, below, bound), lam
    if objective == "margin":
        best = program.largest_margin(most)
        optimal = None if best is None else best[0]
    else:
        R, start = _distance(grasp, objective, effort, length, weights)
        optimal = program.nearest(R, start, reserve)
    missed = ""
    for lam in [inside] if optimal is None else [optimal, inside]:
        missed = _missed(cones, lam, reserve, most, effort) or _off(G, lam, w, space)
        if not missed:
            return answer(lam, "")
    return answer(inside, f"no forces that satisfy all limits were found: {missed}")


def _near(resultant: Array, w: Array, length: float, size: float = 0.0) -> bool:
    """Whether a resultant is w up to rounding of forces of some size; moments over the length."""
    scale = np.array([1.0 / length] * 3 + [1.0] * 3)
    off, norm = np.abs((resultant - w) * scale).max(), np.abs(w * scale).max()
    return bool(off <= NEAR * norm + ROUNDING * size)


def _off(G: Array, lam: Array, w: Array, space: ForceSpace) -> str:
    """What is wrong with the resultant of forces; "" if nothing."""
    resultant, size = G @ lam, float(np.linalg.norm(lam)) * float(space.singular_values[0])
    if _near(resultant, w, space.length, size):
        return ""
    return f"their resultant is off by ({_numbers(resultant - w)})."


def _missed(
    program: ConeProgram, lam: Array, reserve: float, most: float, effort: GraspEffort | None
) -> str:
    """Which limit the forces violate; "" if none."""
    if not np.isfinite(lam).all():
        return "they are not finite."
    margin, forces = program.margin(lam), (lam @ program.grasp.usable).reshape(-1, 6)
    if margin < reserve - CLOSE * program.size:
        return f"the smallest margin is {margin:.6g} N, below the reserve of {reserve:.6g} N."
    # B of `program` has only normal forces.
    push = float((program.B @ lam).max(initial=0.0))
    if push > most + CLOSE * max(program.size, most):
        return f"a normal force is {push:.6g} N, above the largest allowed, {most:.6g} N."
    if effort is not None:
        overload = float((np.abs(effort.of(forces)) / effort.limit).max(initial=0.0))
        if overload > 1.0 + CLOSE:
            return f"a joint needs {overload:.6g} of its limit."
    return ""


def _reserve(reserve: float) -> float:
    value = floats(reserve, "reserve")
    if value.shape or not 0.0 <= float(value) < np.inf:
        raise ModelError(
            f"reserve is {reserve}; the smallest allowed margin must be zero or more [N], and "
            "finite."
        )
    return float(value)


def _distance(
    grasp: Grasp,
    objective: Objective,
    effort: GraspEffort | None,
    length: float | None,
    weights: ArrayLike | None,
) -> tuple[Array, Array]:
    """R and start of the objective |R λ + start|."""
    S, W = grasp.usable, metric(grasp, length, weights)
    if objective == "force" or effort is None:
        R: Array = np.sqrt(W) @ S.T
        return R, np.zeros(len(R))
    scale = np.where(np.isfinite(effort.limit), effort.limit, 1.0)
    R = (effort.map @ S.T) / scale[:, None]
    blind = BLIND * float(np.linalg.norm(R)) * np.sqrt(np.diag(S @ W @ S.T))
    start = np.append(effort.offset / scale, np.zeros(len(blind)))
    return np.concatenate([R, np.diag(blind)]), start


def _check(objective: object, effort: object) -> None:
    if objective not in get_args(Objective):
        raise ModelError(f"objective is {objective!r}; it must be 'force', 'effort' or 'margin'.")
    if objective == "effort" and effort is None:
        raise ModelError(
            "objective is 'effort', but no effort was given; `grasp.effort(q)` makes it from the "
            "mechanism."
        )


def _normals(grasp: Grasp, most: float) -> tuple[Array, Array]:
    """f_n ≤ most for every contact with limits."""
    S, rows = grasp.usable, list[Array]()
    for i, contact in enumerate(grasp.contacts.values()):
        if not contact.two_sided:
            rows.append(S[:, 6 * i + 3 : 6 * i + 6] @ np.array(contact.normal))
    return np.reshape(rows, (-1, len(S))), np.full(len(rows), most)


def _unreachable(w: Array, reached: Array, space: ForceSpace) -> str:
    off = w - reached
    off = np.where(np.abs(off) < 1e-9 * np.abs(w).max(), 0.0, off)
    return (
        f"no contact forces of any size give this wrench: ({_numbers(off)}) of it remains. The "
        f"grasp has {space}."
    )


def _crowded(grasp: Grasp, lam: Array, margin: float, reserve: float, most: float) -> str:
    """Which limits are active at the best forces."""
    f = (lam @ grasp.usable).reshape(-1, 6)
    values = np.stack([room(c, f[i]) for i, c in enumerate(grasp.contacts.values())])
    tight = np.argwhere(values < margin + 1e-6 * max(1.0, abs(margin)))
    active = [f"{grasp.names[i]!r} {FAILURES[LIMITS[k]]}" for i, k in tight]
    return (
        f"with normal forces up to {most:.6g} N the smallest margin is {margin:.6g} N at best, "
        f"below the reserve of {reserve:.6g} N: {', '.join(active)}."
    )


def _weak(effort: GraspEffort, stacked: Array, overload: float) -> str:
    """Which joints would need more than their limits."""
    ratio = np.abs(effort.of(stacked.reshape(-1, 6))) / effort.limit
    worst = [effort.names[j] for j in np.flatnonzero(ratio > overload * (1.0 - 1e-6))]
    return (
        f"joints need at least {overload:.4g} of their limits while the contacts hold: "
        f"{', '.join(worst)}."
    )


def _numbers(x: Array) -> str:
    return ", ".join(f"{c:.4g}" for c in x)
