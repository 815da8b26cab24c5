"""Which contact forces give the object the force that is wanted?

    A* f = f_C,   f = S* λ,   margins(f) ≥ reserve,   |τ| ≤ limit,   τ = offset + map f

Of the many, the one that is best: the smallest in a metric, the one with the least joint effort, or
the one farthest from every limit. Cones are exact (see `cone_program`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.errors import ModelError
from linkwise.grasp.cone_program import ConeProgram, room
from linkwise.grasp.contact import LIMITS
from linkwise.grasp.effort import GraspEffort
from linkwise.grasp.grasp import Grasp, check_grasp, grasp_map
from linkwise.grasp.internal_force import ForceSpace, force_space, metric
from linkwise.grasp.margin import WORDS, GraspMargins, grasp_margins
from linkwise.spatial.array import Array, ArrayLike, constant, floats

Objective: TypeAlias = Literal["force", "effort", "margin"]

CLOSE = 1e-7
"""A limit counts as kept within this part of the forces' size, which is 1 N at least."""

NEAR = 1e-6
"""A resultant counts as reached within this part of it."""

ROUNDING = 1e-14
"""How well sums of forces that cancel are known, as a part of the forces."""

BLIND = 1e-9
"""How much of the forces' norm is added to an effort that some internal forces do not change."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadDistribution:
    """Contact forces for a wanted force on the object.

    Attributes:
        feasible: Whether all limits are kept, to 1e-7 of the wrench or 1e-7 N: the forces that are
            given were looked at for it.
        reason: What is in the way where it is not; "" otherwise.
        forces: On the object, in the contacts' frames (ℓ, 6) [N m, N]. Where nothing is feasible,
            those that miss the limits by the least.
        margins: Their margins.
        efforts: Joint forces (n,) that go with them; None where no effort was given.
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
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    objective: Objective = "force",
    reserve: float = 0.0,
    most: float = 1e4,
    effort: GraspEffort | None = None,
    length: float | None = None,
    weights: ArrayLike | None = None,
) -> LoadDistribution:
    """Contact forces inside their limits that give the object a wanted force.

    Expression:
        "force":   min f* W f,   W as in `internal_forces`
        "effort":  min Σ (τ_j / limit_j)²,   τ = offset + map f
        "margin":  max min_k margin_k(f)
        under  A* f = wrench,  f = S* λ,  margins ≥ reserve,  f_n ≤ most,  |τ| ≤ limit
    Where the limits are met but leave nothing to spare, to about 1e-9 of the wrench, forces that
    keep them are given, which need not be the smallest.

    Args:
        grasp: The grasp.
        wrench: What the contacts have to do to the object (moment about C, force) (6,) in its axes
            [N m, N]; against gravity, for an object at rest, minus its weight. `needed_wrench`
            finds it for a motion.
        point: C in the object's frame (3,) [m].
        objective: What is best: "force", "effort" or "margin".
        reserve: What is asked of every margin [N], of slip only where there is friction; zero or
            more.
        most: The largest normal force of a contact [N].
        effort: Joint forces that go with contact forces, and their limits (`grasp_effort`).
        length: Of the metric W [m]; by default `typical_length`.
        weights: Of the contacts in W (ℓ,).

    Returns:
        The forces; where there are none inside the limits, `feasible` is False and `reason` says
        which contact, limit or joint is in the way.

    Raises:
        ModelError: An effort is asked for without one given; a reserve that is negative or no
            number.
        MissingExtraError: SciPy is not installed.
    """
    check_grasp(grasp, "load_distribution")
    _check(objective, effort)
    most, reserve = float(constant(most, (), "most")), _reserve(reserve)
    if not most > 0.0:
        raise ModelError(f"most is {most}; the largest normal force must be positive [N].")
    w = constant(wrench, (6,), "wanted wrench")
    S, space = grasp.held, force_space(grasp, point, length=length)
    G = (S @ grasp_map(grasp, point)).T
    reached = G @ np.linalg.lstsq(G, w, rcond=None)[0]
    if not _near(reached, w, space.length):
        return _answer(grasp, np.linalg.pinv(G) @ w, space, effort, _unreachable(w, reached, space))
    program = ConeProgram(grasp, G, reached, *_normals(grasp, most))
    found = program.largest_margin(most, enough=reserve)
    if found is None:
        least = np.linalg.pinv(G) @ w
        return _answer(grasp, least, space, effort, _pressed(most))
    (inside, margin), whole = found, program
    if margin < reserve - CLOSE * program.size:
        return _answer(grasp, inside, space, effort, _crowded(grasp, inside, margin, reserve, most))
    has = np.zeros(0, dtype=bool) if effort is None else np.isfinite(effort.limit)
    if effort is not None and has.any():
        rows, start, limit = effort.map[has] @ S.T, effort.offset[has], effort.limit[has]
        lam, overload = program.least_overload(rows, start, limit, reserve) or (inside, np.inf)
        if np.isinf(overload):
            overload = float((np.abs(start + rows @ lam) / limit).max())
        if overload > 1.0 + CLOSE:
            return _answer(grasp, lam, space, effort, _weak(effort, lam @ S, overload))
        below = np.concatenate([program.B, rows, -rows])
        program = ConeProgram(
            grasp, G, reached, below, np.concatenate([program.d, limit - start, limit + start])
        )
        inside = lam
    if objective == "margin":
        found = program.largest_margin(most)
        best = None if found is None else found[0]
    else:
        R, start = _distance(grasp, objective, effort, length, weights)
        best = program.nearest(R, start, reserve)
    missed = ""
    for lam in [inside] if best is None else [best, inside]:
        missed = _missed(whole, lam, reserve, most, effort) or _off(G, lam, w, space)
        if not missed:
            return _answer(grasp, lam, space, effort, "")
    return _answer(
        grasp, inside, space, effort, f"no forces that keep all limits were found: {missed}"
    )


def _near(found: Array, w: Array, length: float, size: float = 0.0) -> bool:
    """Whether a resultant is the wanted one, but for the rounding of forces of some size.

    Moments are divided by the length.
    """
    scale = np.array([1.0 / length] * 3 + [1.0] * 3)
    off, whole = np.abs((found - w) * scale).max(), np.abs(w * scale).max()
    return bool(off <= NEAR * whole + ROUNDING * size)


def _off(G: Array, lam: Array, w: Array, space: ForceSpace) -> str:
    """What is wrong with the resultant of forces; "" if nothing."""
    found, size = G @ lam, float(np.linalg.norm(lam)) * float(space.singular_values[0])
    if _near(found, w, space.length, size):
        return ""
    return f"({_numbers(found - w)}) is what their resultant has too much."


def _missed(
    program: ConeProgram, lam: Array, reserve: float, most: float, effort: GraspEffort | None
) -> str:
    """Which limit forces miss; "" if none."""
    if not np.isfinite(lam).all():
        return "they are not finite."
    margin, forces = program.margin(lam), (lam @ program.grasp.held).reshape(-1, 6)
    if margin < reserve - CLOSE * program.size:
        return f"the smallest margin is {margin:.6g} N, and {reserve:.6g} N is asked for."
    # `whole` has normal forces alone in B.
    push = float((program.B @ lam).max(initial=0.0))
    if push > most + CLOSE * max(program.size, most):
        return f"a normal force is {push:.6g} N, and {most:.6g} N is the most."
    if effort is not None:
        overload = float((np.abs(effort.of(forces)) / effort.limit).max(initial=0.0))
        if overload > 1.0 + CLOSE:
            return f"a joint gives {overload:.6g} of its limit."
    return ""


def _reserve(reserve: float) -> float:
    found = floats(reserve, "reserve")
    if found.shape or not 0.0 <= float(found) < np.inf:
        raise ModelError(
            f"reserve is {reserve}; what is asked of every margin must be zero or more [N], and "
            "finite."
        )
    return float(found)


def _distance(
    grasp: Grasp,
    objective: Objective,
    effort: GraspEffort | None,
    length: float | None,
    weights: ArrayLike | None,
) -> tuple[Array, Array]:
    """R and start of what is made small, |R λ + start|."""
    S, W = grasp.held, metric(grasp, length, weights)
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
            "the least effort was asked for, but no effort was given; `grasp_effort(grasp, q)` "
            "makes it from the mechanism."
        )


def _normals(grasp: Grasp, most: float) -> tuple[Array, Array]:
    """f_n ≤ most for every contact with limits."""
    S, rows = grasp.held, list[Array]()
    for i, contact in enumerate(grasp.contacts.values()):
        if not contact.two_sided:
            rows.append(S[:, 6 * i + 3 : 6 * i + 6] @ np.array(contact.normal))
    return np.reshape(rows, (-1, len(S))), np.full(len(rows), most)


def _answer(
    grasp: Grasp, lam: Array, space: ForceSpace, effort: GraspEffort | None, reason: str
) -> LoadDistribution:
    forces = (lam @ grasp.held).reshape(-1, 6)
    efforts = None if effort is None else effort.of(forces)
    margins = grasp_margins(grasp, forces)
    return LoadDistribution(not reason, reason, forces, margins, efforts, space)


def _unreachable(w: Array, reached: Array, space: ForceSpace) -> str:
    off = w - reached
    off = np.where(np.abs(off) < 1e-9 * np.abs(w).max(), 0.0, off)
    return (
        f"no contact forces, of whatever size, give the wanted wrench: ({_numbers(off)}) of it is "
        f"left over. The grasp has {space}."
    )


def _crowded(grasp: Grasp, lam: Array, margin: float, reserve: float, most: float) -> str:
    """Which limits stand in the way at the best forces."""
    f = (lam @ grasp.held).reshape(-1, 6)
    values = np.stack([room(c, f[i]) for i, c in enumerate(grasp.contacts.values())])
    tight = np.argwhere(values < margin + 1e-6 * max(1.0, abs(margin)))
    told = [f"{grasp.names[i]!r} {WORDS[LIMITS[k]]}" for i, k in tight]
    return (
        f"with normal forces up to {most:.6g} N the smallest margin is {margin:.6g} N at best, and "
        f"{reserve:.6g} N is asked for: {', '.join(told)}."
    )


def _weak(effort: GraspEffort, stacked: Array, overload: float) -> str:
    """Which joints would have to give more than they can."""
    ratio = np.abs(effort.of(stacked.reshape(-1, 6))) / effort.limit
    worst = [effort.names[j] for j in np.flatnonzero(ratio > overload * (1.0 - 1e-6))]
    return (
        f"joints would have to give {overload:.4g} of their limits at least while the contacts "
        f"hold: {', '.join(worst)}."
    )


def _pressed(most: float) -> str:
    return (
        f"the wanted wrench needs a normal force of more than {most:.6g} N at some contact, the "
        "most that was allowed."
    )


def _numbers(x: Array) -> str:
    return ", ".join(f"{c:.4g}" for c in x)
