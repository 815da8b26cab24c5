"""Motions of mechanisms with loops that show their parameters well.

    y(t) = c + s A (Σ_k a_k sin(k w t) + b_k cos(k w t))        of independent hinges
    e(y, z) = 0,    z_dot = −J_z⁺ J_y ẏ,    z̈ = −J_z⁺ (J_y ÿ + γ)        of the others

Positions z of all samples are followed from the centre c on, while s grows; s ends where a limit is
reached, or where the loops become singular or cannot close. Motions are compared by the determinant
of W* W, where W has the columns of X* τ (`closed.py`); the forces X* τ of the independent hinges
keep their limits. The best of random series is changed at random as long as that helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import constraint_bias, constraint_error, constraint_jacobian
from linkwise.dynamics.configuration import integrate
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.passive import passive
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError, ModelError
from linkwise.identification import closed, model
from linkwise.identification.progress import Reporter
from linkwise.identification.rows import Rows, base_and_equations
from linkwise.loops.projection import project_position
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

GROWTH = 12
"""Steps in which s grows."""

CORRECTIONS = 8
"""Newton's steps that close loops, at most."""

CLOSED = 1e-10
"""Error of loops [m or rad] at which they are closed."""

SINGULAR = 1e-3
"""Least singular value of J_z, relative to its largest, that motions keep away from."""

COMPARED = 100
"""Samples by which motions are compared."""

MARGIN = 0.95
"""Share of a limit that is used."""

WIDE = 1.5
"""Half the range [rad] of hinges without limits; 0.5 m along."""

LIKELY = 64
"""Random places from which independent hinges are chosen."""

CHANGES = 10
"""Random changes that a round of the search tries."""

RANDOM, IMPROVED = "random motions", "rounds of the search"
"""Stages, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """A motion: positions, velocities and accelerations (samples, ...), and X (samples, nv, f)."""

    q: Array
    v: Array
    vdot: Array
    X: Array


@dataclass(frozen=True, eq=False)
class ClosedSeries:
    """Fourier series of independent hinges.

    Numbers x are a and b (2, f, terms), then c (f,) in shares of half the range.

    Attributes:
        mech: The mechanism.
        kinds: What is to be identified.
        w: Angular frequencies (terms,) [rad/s].
        places: The independent velocities (f,).
        near: A place (nq,) where loops are closed.
    """

    mech: Mechanism
    kinds: tuple[str, ...]
    w: Array
    places: list[int]
    near: Array

    @classmethod
    def of(
        cls,
        mech: Mechanism,
        kinds: tuple[str, ...],
        w: Array,
        driven: list[int],
        rng: np.random.Generator,
    ) -> ClosedSeries:
        """Series of hinges that move the others, `driven` ones first."""
        near = project_position(mech, mech.neutral()).required()
        q = closed.random_states(mech, near[None], LIKELY, rng)[0]
        plain = [
            i
            for k, body in enumerate(mech.bodies)
            if is_plain(body.hinge)
            for i in range(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        ]
        places = closed.motions(mech, q, [], driven or plain).places
        for i in places:
            k = int(np.searchsorted(mech.v_start, i, side="right")) - 1
            if not is_plain(mech.bodies[k].hinge):
                raise ModelError(
                    f"lw.identification.exciting_motion of {mech.name!r} would move "
                    f"{mech.velocity_names[i]!r}, which is {mech.bodies[k].hinge.kind}; with loops "
                    "independent hinges have plain coordinates. Name such hinges with driven=..."
                )
        return cls(mech, kinds, w, places, near)

    @cached_property
    def others(self) -> list[int]:
        """The velocities that follow."""
        return [i for i in range(self.mech.nv) if i not in self.places]

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the base parameters."""
        none = np.zeros((1, self.mech.nv))
        state = np.array(self.near[None]), none, none
        rows = Rows.of(self.mech, state, list(range(self.mech.nv)), self.places)
        return base_and_equations(self.kinds, rows)[0].columns

    @property
    def size(self) -> int:
        """Numbers in x."""
        return len(self.places) * (2 * len(self.w) + 1)

    def _bounds(self) -> tuple[Array, Array]:
        """Limits along velocities (nv,); infinite ones of hinges without plain coordinates."""
        mech = self.mech
        lower, upper = np.full(mech.nv, -np.inf), np.full(mech.nv, np.inf)
        for k, body in enumerate(mech.bodies):
            if is_plain(body.hinge):
                i = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
                j = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
                lower[j], upper[j] = mech.lower[i], mech.upper[i]
        return lower, upper

    def _along(self, q: Array) -> Array:
        """Plain coordinates (..., nv) at the places of their velocities, else zero."""
        mech, out = self.mech, np.zeros((*q.shape[:-1], self.mech.nv))
        for k, body in enumerate(mech.bodies):
            if is_plain(body.hinge):
                i = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
                out[..., int(mech.v_start[k]) : int(mech.v_start[k + 1])] = q[..., i]
        return out

    # ------------------------------------------------------------------------------- motions

    def center(self, x: Array) -> Array | None:
        """The place (nq,) about which a motion is, or None where loops do not close."""
        f, mech = len(self.places), self.mech
        at = self._along(self.near)
        lower, upper = self._bounds()
        unit = np.array([0.5 if kind == "prismatic" else WIDE for kind in self._kinds()])
        low = np.where(np.isfinite(lower), lower, at - unit)[self.places]
        high = np.where(np.isfinite(upper), upper, at + unit)[self.places]
        goal = 0.5 * (low + high) + 0.5 * (high - low) * np.clip(x[-f:], -0.9, 0.9)
        q = self.near[None]
        for s in np.linspace(0.0, 1.0, GROWTH + 1)[1:]:
            step = np.zeros((1, mech.nv))
            step[0, self.places] = (at[self.places] + s * (goal - at[self.places])) - self._along(
                q
            )[0, self.places]
            after, good = self._closed(integrate(mech, q, step))
            if not good.all():
                break
            q = after
        return q[0] if self._inside(q) else None

    def _kinds(self) -> list[str]:
        """Kinds of the hinges of all velocities."""
        counts = np.diff(self.mech.v_start)
        return [
            body.hinge.kind
            for body, n in zip(self.mech.bodies, counts, strict=True)
            for _ in range(n)
        ]

    def _inside(self, q: Array) -> bool:
        lower, upper = self._bounds()
        slack = 0.5 * (1.0 - MARGIN) * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
        here = self._along(q)
        for k, body in enumerate(self.mech.bodies):
            if np.isfinite(body.drive.max_angle):
                turn = q[..., int(self.mech.q_start[k]) :][..., :4]
                angle = 2.0 * np.arctan2(
                    np.linalg.norm(turn[..., 1:], axis=-1), np.abs(turn[..., 0])
                )
                if (angle > MARGIN * body.drive.max_angle).any():
                    return False
        return bool(((here >= lower + slack) & (here <= upper - slack)).all())

    def _closed(self, q: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Positions with the others moved so that loops close, and where they do."""
        mech, measure = self.mech, scale(self.mech)
        for _ in range(CORRECTIONS):
            error = constraint_error(mech, q) * measure.rows
            off = np.abs(error).max(axis=-1)
            if not (off > CLOSED).any():
                break
            J = (measure.rows[:, None] * constraint_jacobian(mech, q) * measure.columns)[
                ..., self.others
            ]
            turned = J.swapaxes(-1, -2)
            square = turned @ J
            size = np.trace(square, axis1=-2, axis2=-1)[:, None, None]
            square = square + 1e-13 * size * np.eye(square.shape[-1])
            step = np.zeros((len(q), mech.nv))
            step[:, self.others] = -np.linalg.solve(square, turned @ error[..., None])[..., 0]
            step *= measure.columns
            largest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
            q = integrate(mech, q, step / np.maximum(1.0, 2.0 * largest))
        off = np.abs(constraint_error(mech, q) * measure.rows).max(axis=-1, initial=0.0)
        return q, np.asarray(off <= 10.0 * CLOSED, dtype=np.bool_)

    def moved(self, x: Array, t: Array, share: float = 1.0) -> tuple[float, Moved | None]:
        """The motion at times t with the largest admissible s up to `share`, and this s."""
        start = self.center(x)
        if start is None:
            return 0.0, None
        f, mech = len(self.places), self.mech
        a, b = x[:-f].reshape(2, f, len(self.w))
        along = np.outer(self.w, t)
        sin, cos = np.sin(along), np.cos(along)
        shape = (a @ sin + b @ cos).T
        rates = (
            ((a * self.w) @ cos - (b * self.w) @ sin).T,
            -((a * self.w**2) @ sin + (b * self.w**2) @ cos).T,
        )
        size = self._amplitudes(start, shape, rates[0])
        shape, speed, rate = size * shape, size * rates[0], size * rates[1]
        best, motion, q = 0.0, None, np.tile(start, (len(t), 1))
        middle = self._along(start)[self.places]
        for s in share * np.linspace(0.0, 1.0, GROWTH + 1)[1:]:
            step = np.zeros((len(t), mech.nv))
            step[:, self.places] = middle + s * shape - self._along(q)[:, self.places]
            q, good = self._closed(integrate(mech, q, step))
            if not good.all() or not self._inside(q):
                break
            here = self._rates(q, s * speed, s * rate)
            if here is None or not self._within(here):
                break
            best, motion = float(s), here
        return best, motion

    def _amplitudes(self, start: Array, shape: Array, speed: Array) -> Array:
        """A (f,): how far limits of the independent hinges let them go."""
        lower, upper = (x[self.places] for x in self._bounds())
        at = self._along(start)[self.places]
        unit = np.array([0.5 if k == "prismatic" else WIDE for k in self._kinds()])[self.places]
        room = np.minimum(np.where(np.isfinite(upper), upper - at, unit),
                          np.where(np.isfinite(lower), at - lower, unit))  # fmt: skip
        reach = MARGIN * np.maximum(room, 0.01) / np.maximum(np.abs(shape).max(axis=0), 1e-300)
        fast = self.mech.velocity_limit[self.places] / np.maximum(np.abs(speed).max(axis=0), 1e-300)
        return np.minimum(reach, MARGIN * fast)

    def _rates(self, q: Array, speed: Array, rate: Array) -> Moved | None:
        """Velocities and accelerations, and X; None next to singular places."""
        mech, measure = self.mech, scale(self.mech)
        columns, rows = measure.columns, measure.rows
        J = rows[:, None] * constraint_jacobian(mech, q) * columns
        values = np.linalg.svd(J[..., self.others], compute_uv=False)[..., : len(self.others)]
        if not (values[:, -1:] > SINGULAR * values[:, :1]).all():
            return None
        back = np.linalg.pinv(J[..., self.others], rcond=0.1 * SINGULAR)
        X = np.zeros((len(q), mech.nv, len(self.places)))
        X[:, self.places] = np.eye(len(self.places))
        X[:, self.others] = -back @ J[..., self.places]
        X[:, self.others] *= columns[self.others][:, None] / columns[self.places]
        v = (X @ speed[..., None])[..., 0]
        vdot = (X @ rate[..., None])[..., 0]
        gamma = constraint_bias(mech, q, v) * rows
        vdot[:, self.others] -= (back @ gamma[..., None])[..., 0] * columns[self.others]
        return Moved(q, v, vdot, X)

    # ----------------------------------------------------------------------- limits and score

    def _forces(self, m: Moved) -> Array:
        """X* τ (samples, f) with friction and springs."""
        mech, springs = self.mech, passive(self.mech)
        tau = inverse_dynamics(tree_of(mech), m.q, m.v, m.vdot)
        tau = tau + mech.damping * m.v + mech.friction * np.sign(m.v)
        tau = tau + mech.stiffness * (m.q[:, springs.at] - springs.rest)
        return (m.X.swapaxes(-1, -2) @ tau[..., None])[..., 0]

    def _within(self, m: Moved) -> bool:
        """Whether velocities and forces keep their limits."""
        limit = self.mech.effort_limit[self.places]
        if not (np.abs(m.v) <= MARGIN * self.mech.velocity_limit * (1.0 + 1e-9)).all():
            return False
        return not np.isfinite(limit).any() or bool(
            (np.abs(self._forces(m)) <= MARGIN * limit).all()
        )

    def score(self, m: Moved) -> float:
        """log det W* W."""
        W = model.design(tree_of(self.mech), self.kinds, m.q, m.v, m.vdot)[..., self.columns]
        A = (m.X.swapaxes(-1, -2) @ W).reshape(-1, len(self.columns))
        sign, size = np.linalg.slogdet(A.T @ A)
        return float(size) if sign > 0.0 else -np.inf


def excited(
    series: ClosedSeries,
    t: Array,
    tries: int,
    rounds: int,
    rng: np.random.Generator,
    report: Reporter,
) -> Moved:
    """The best motion of those that were tried, at times t.

    Raises:
        ModelError: None that was tried shows all base parameters within the limits.
        ClosureError: The best cannot be followed at all times.
    """
    few = t[:: max(1, len(t) // COMPARED)]
    best, value, f = np.zeros(series.size), -np.inf, len(series.places)

    def tried(x: Array) -> bool:
        nonlocal best, value
        motion = series.moved(x, few)[1]
        score = -np.inf if motion is None else series.score(motion)
        if score > value:
            best, value = x, score
            return True
        return False

    report.begin(RANDOM, tries)
    for i in range(tries):
        if i and i % max(1, tries // 10) == 0:
            report(i, -value)
        x = rng.standard_normal(series.size)
        x[-f:] = rng.uniform(-1.0, 1.0, f) * (i % 2)
        tried(x)
    if not np.isfinite(value):
        names = ", ".join(series.mech.velocity_names[i] for i in series.places)
        raise ModelError(
            f"no motion of {series.mech.name!r} that was tried ({tries}, of {names}) shows all "
            "base parameters within the limits. Widen limits of position, speed or force, identify "
            "fewer parameters, move other hinges with driven=..., or raise tries."
        )
    width = 0.3
    report.begin(IMPROVED, rounds)
    for done in range(rounds):
        better = [
            tried(best + width * np.abs(best).mean() * rng.standard_normal(series.size))
            for _ in range(CHANGES)
        ]
        width *= 1.0 if any(better) else 0.5
        report(done + 1, -value)
    share = series.moved(best, few)[0]
    for _ in range(GROWTH):
        reached, motion = series.moved(best, t, share)
        if motion is not None and reached >= share * (1.0 - 1e-9):
            return motion
        share *= MARGIN
    raise ClosureError(
        f"a motion of {series.mech.name!r} closes its loops at {len(few)} samples and not at all "
        f"{len(t)}. Take a shorter step or fewer harmonics."
    )
