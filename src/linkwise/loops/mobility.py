"""Mobility: the degrees of freedom that loops and couplings leave, redundant and singular rows.

Rows of the constraints are counted three ways. There are m in all, and Grübler's count nv - m
of degrees of freedom. Of these r are independent in the given configuration, the rank of J_c, and
nv - r degrees of freedom are left in it. Nearby, among the configurations in which loops are
closed, the rank may be larger: then the given one is singular, and has velocities that no motion
has.

Singular values decide the rank after turning and moving were put into one unit
(`linkwise.dynamics.velocity_space`). The dynamics does not decide: it takes rows as they are, down
to rounding. Between the two are doubtful rows: they nearly depend on others, because an axis is not
quite parallel or loops are not quite closed, and lock motions that they should leave free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.arguments import count, generator
from linkwise.brief import counted, degrees_of_freedom
from linkwise.dynamics.closure import constraint_error
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.velocity_space import (
    LEAST,
    TOLERANCE,
    VelocitySpace,
    checked_tolerance,
    one_state,
    scale,
    velocity_space,
    velocity_spaces,
)
from linkwise.loops.projection import project_position
from linkwise.model import closure
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

NEARBY = 0.05
"""Distance of configurations nearby [rad, or of the mechanism's length]."""

OPEN = 1e-8
"""Loops with a larger error are reported as open [rad or m]."""

NEAR = 1e4
"""A larger condition is reported as near a singular configuration."""

TAKEN = 1e-13
"""Rows above this part of the largest singular value change the dynamics, by 1e-3 at that size and
completely from 1e-11 on: Ω, their square, is damped by rounding only."""

COMBINED = 1e-8
"""The same for combinations of rows, each relative to its size: about √1e-13, the damping, and
less since the residual is solved for once more."""

ROUNDING = 4e-16
"""Rounding of a few numbers; accelerations lose it times the square of the condition."""

WHOLE = 1e-6
"""A row of which less than this is outside the redundant combinations is redundant by itself."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mobility:
    """Degrees of freedom and redundancies of a mechanism in one configuration.

    Attributes:
        name: The mechanism's name.
        velocities: Joint velocities of the tree, nv.
        rows: Rows of the constraints, m.
        rank: How many of them are independent here.
        generic_rank: How many are in configurations nearby.
        inertia: Whether some mass resists every remaining motion.
        error: The largest error of a row of the constraints [rad or m].
        singular_values: Of J_c with turning measured at `length` (min(m, nv),) [m].
        length: The distance at which turning is compared with moving [m].
        redundancies: Redundant rows, in words.
        doubtful: How many rows nearly depend on others: they are not counted in `rank`, but the
            dynamics takes them as they are.
    """

    name: str
    velocities: int
    rows: int
    rank: int
    generic_rank: int
    inertia: bool
    error: float
    singular_values: Array
    length: float
    redundancies: tuple[str, ...]
    doubtful: int = 0

    @property
    def degrees_of_freedom(self) -> int:
        """Independent velocities that obey all constraints: nv - rank."""
        return self.velocities - self.rank

    @property
    def motions(self) -> int:
        """Degrees of freedom of configurations nearby; at a singular one there are fewer."""
        return self.velocities - self.generic_rank

    @property
    def redundant(self) -> int:
        """Rows that repeat others: m - rank."""
        return self.rows - self.rank

    @property
    def gruebler(self) -> int:
        """Grübler's count nv - m: what would be left without redundant rows; may be negative."""
        return self.velocities - self.rows

    @property
    def singular(self) -> bool:
        """Whether the rank is smaller than in configurations nearby."""
        return self.rank < self.generic_rank

    @property
    def condition(self) -> float:
        """Largest over smallest singular value of those that count; 1 without constraints."""
        if not self.rank:
            return 1.0
        return float(self.singular_values[0] / self.singular_values[self.rank - 1])

    @property
    def accuracy(self) -> float:
        """Part of the accelerations that rounding may change: 4e-16 times the condition squared."""
        return min(1.0, ROUNDING * self.condition**2)

    @property
    def doubt(self) -> float:
        """Largest singular value of the `doubtful` rows relative to the largest of all, or 0."""
        if not self.doubtful:
            return 0.0
        return float(self.singular_values[self.rank] / self.singular_values[0])

    @property
    def unique_accelerations(self) -> bool:
        """Whether joint forces determine v̇: no motion without inertia, no doubt, not singular."""
        return self.inertia and not self.doubtful and not self.singular

    @property
    def unique_forces(self) -> bool:
        """Whether joint forces determine λ: J_c 𝓜⁻¹ J_c* has full rank, no row is redundant."""
        return self.rank == self.rows

    @property
    def well_posed(self) -> bool:
        """Whether accelerations and constraint forces are both unique (000, section 6)."""
        return self.unique_accelerations and self.unique_forces

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {degrees_of_freedom(self.degrees_of_freedom)} in a tree of "
            f"{self.velocities}, {counted(self.rows, 'row')} of rank {self.rank}; Grübler's count "
            f"is {self.gruebler}"
        ]
        if self.error > OPEN:
            lines.append(f"loops are open: a row is off by {self.error:.3g} (rad or m)")
        if self.singular:
            lines.append(
                f"singular: rank {self.rank} here, {self.generic_rank} nearby, so that "
                f"{self.degrees_of_freedom - self.motions} of these velocities belong to no motion"
            )
        elif self.condition > NEAR:
            lines.append(
                f"near a singular configuration: condition {self.condition:.3g}; digits are lost "
                f"with its square, so that accelerations may be off by {self.accuracy:.1g} of "
                "their size"
            )
        if self.doubtful:
            lines.append(self._doubts())
        if self.redundant:
            lines.append(f"redundant rows: {self.redundant}; " + "; ".join(self.redundancies))
        forces = "unique" if self.unique_forces else "not unique (those of least norm are taken)"
        moves = "unique" if self.inertia else "not unique (no mass resists)"
        if self.inertia and self.doubtful:
            moves = "unique only with the doubtful rows taken as they are"
        elif self.singular:
            moves = "not unique (the rank drops here, and the motion may continue in several ways)"
        lines.append(f"accelerations are {moves}, constraint forces are {forces}")
        return "\n  ".join(lines)

    def _doubts(self) -> str:
        count, one = self.degrees_of_freedom - self.doubtful, self.doubtful == 1
        return (
            f"doubtful: {counted(self.doubtful, 'row')} nearly {'depends' if one else 'depend'} "
            f"on others (relative singular value {self.doubt:.2g}); the dynamics takes "
            f"{'it as it is' if one else 'them as they are'}, and then "
            f"{degrees_of_freedom(count)} {'is' if count == 1 else 'are'} left. Make axes exactly "
            "parallel, close loops to rounding (lw.loops.assemble), or use hinges that block less "
            "(for two pins of a planar loop a Spherical and a Cylindrical one)"
        )

    def __repr__(self) -> str:
        state = ", singular" if self.singular else ""
        free = degrees_of_freedom(self.degrees_of_freedom)
        return f"<Mobility of {self.name!r}: {free}, rank {self.rank}{state}>"


def mobility(
    mech: Mechanism,
    q: ArrayLike,
    *,
    nearby: int = 4,
    seed: int | np.random.Generator = 0,
    tolerance: float = TOLERANCE,
) -> Mobility:
    """The degrees of freedom left in a configuration, and whether the problem is well posed there.

    Expression:
        degrees_of_freedom = nv - rank J_c
    Source: 000, section 6: accelerations and contact forces are unique where the inverse of the
        effective inertia, J_c 𝓜⁻¹ J_c*, has full rank. Without that λ is not unique; v̇ still is.

    Args:
        q: Joint positions (nq,) [m or rad], with closed loops. Where they are open by some error,
            singular values of that size cannot be distinguished from zero.
        nearby: Number of configurations nearby that the rank is compared with; 0 skips this.
        tolerance: Singular values below this part of the largest count as zero. Those above
            rounding are reported as `doubtful`, since the dynamics has no such tolerance: it takes
            rows as they are.

    Returns:
        A `Mobility`; print it.

    Raises:
        ModelError: The tolerance or the number of configurations is out of range.
    """
    q = one_state(mech, q)
    tolerance = checked_tolerance(tolerance)
    nearby = count(nearby, "nearby", most=10_000)
    measure = scale(mech)
    rows = constraint_error(mech, q)
    error = float(np.abs(rows).max(initial=0.0))
    off = float(np.abs(rows * measure.rows).max(initial=0.0)) / measure.length
    least = max(tolerance, min(10.0 * off, 0.1))
    space = velocity_space(mech, q, least)
    rng = generator(seed, stream=1992)
    ranks = [space.rank, *_ranks_nearby(mech, q, space, nearby, rng, tolerance)]
    return Mobility(
        mech.name,
        mech.nv,
        len(rows),
        space.rank,
        max(ranks),
        _resisted(mech, q, space),
        error,
        space.singular_values,
        measure.length,
        tuple(_redundancies(mech, space)),
        _doubtful(space),
    )


def _doubtful(space: VelocitySpace) -> int:
    """The number of singular values that the dynamics sees and the rank does not count."""
    s, measure = space.singular_values, space.scale
    largest = max(float(s.max(initial=0.0)), LEAST * measure.length)
    # Ω is damped by a part of its diagonal: each row is compared with its size.
    A = measure.rows[:, None] * space.jacobian * measure.columns
    size = np.linalg.norm(A, axis=1, keepdims=True)
    unit = np.where(size > TAKEN * largest, A / np.maximum(size, TAKEN * largest), 0.0)
    seen = int((np.linalg.svd(unit, compute_uv=False) > COMBINED).sum()) if A.size else 0
    return max(0, min(seen, int((s > TAKEN * largest).sum())) - space.rank)


def _ranks_nearby(
    mech: Mechanism,
    q: Array,
    space: VelocitySpace,
    count: int,
    rng: np.random.Generator,
    tolerance: float,
) -> list[int]:
    """Ranks of configurations with closed loops nearby, along the free velocities."""
    free = space.free
    if not count or not free.shape[1] or not len(space.jacobian):
        return []
    way = rng.standard_normal((count, free.shape[1]))
    way *= NEARBY / np.abs(way).max(axis=1, keepdims=True)
    around = project_position(mech, mech.integrate(q, way @ free.T))
    return [x.rank for x in velocity_spaces(mech, around.q[around.closed], tolerance)]


def _resisted(mech: Mechanism, q: Array, space: VelocitySpace) -> bool:
    """Whether Z* 𝓜 Z is positive definite, to rounding."""
    free = space.free
    if not free.shape[1]:
        return True
    values = np.linalg.eigvalsh(free.T @ mass_matrix(mech, q) @ free)
    return bool(values[0] > 1e-13 * max(values[-1], 0.0))


def row_words(mech: Mechanism) -> list[tuple[str, str]]:
    """The constraint and the direction of each row: ("loop 'a'", "turning about x") ..."""
    rows = list[tuple[str, str]]()
    axes = [f"{what} {axis}" for what in ("turning about", "moving along") for axis in "xyz"]
    for loop in mech.loops:
        S = closure.constant_directions(loop.hinge)
        for i in range(loop.rows):
            plain = S is not None and float(np.abs(S[i]).max()) == 1.0
            axis = axes[int(np.argmax(np.abs(S[i])))] if plain and S is not None else f"row {i}"
            rows.append((f"loop {loop.name!r}", axis))
    return rows + [(f"coupling {x.name!r}", "") for x in mech.couplings]


def _redundancies(mech: Mechanism, space: VelocitySpace) -> list[str]:
    """Rows that nothing moves, and constraints that repeat each other."""
    left = np.eye(len(space.jacobian)) - space.left @ space.left.T  # on the kernel of J_c*
    redundant = len(left) - space.rank
    if not redundant:
        return []
    words, sentences = row_words(mech), list[str]()
    still = np.diag(left) > 1.0 - WHOLE
    for name in dict.fromkeys(words[i][0] for i in np.flatnonzero(still)):
        rows = [words[i][1] for i in np.flatnonzero(still) if words[i][0] == name]
        sentences.append(f"nothing moves {name}" + (f" by {', '.join(rows)}" if any(rows) else ""))
    others = redundant - int(still.sum())
    if others:
        part = np.where(still, 0.0, np.diag(left))
        sentences.append(f"{counted(others, 'combination')} {_among(words, part)}")
    return sentences


def _among(words: list[tuple[str, str]], part: Array) -> str:
    """The constraints whose rows have a part in the redundant combinations."""
    within = dict[str, float]()
    for (name, _), size in zip(words, part.tolist(), strict=True):
        within[name] = within.get(name, 0.0) + size
    names = [name for name, size in within.items() if size > WHOLE]
    if len(names) == 1:
        return f"of the rows of {names[0]}"
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"of the rows of {shown}"
