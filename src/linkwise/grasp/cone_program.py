"""Optimal contact forces inside their exact cones.

The margins g_k(λ) of the contacts are concave (see `contact`), so each is below its tangents:

    g_k(λ) ≤ g_k(λ_0) + ∇g_k(λ_0) (λ - λ_0)                                  for every λ_0

Instead of g_k ≥ reserve, the tangents at points tried so far must be at least `reserve`: a problem
with flat sides that contains the true one. Tangents are added where its solution violates the
curved cones, until it satisfies them up to a tolerance (Kelley's cutting planes). If the flat
problem has no solution, neither has the true one. No number of sides enters.

The flat problems, all under G λ = w (the resultant) and B λ ≤ d (normal forces, efforts):

    the largest smallest margin        a linear program, by SciPy's HiGHS
    the least overload of the joints   a linear program
    the smallest |R λ + r|             a least-distance problem, by non-negative least squares
                                       (Lawson and Hanson 1974, chapter 23)
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import MissingExtraError, ModelError
from linkwise.grasp.contact import Contact
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

TOLERANCE = 1e-9
"""Allowed violation of a limit, relative to the size of the forces."""

ACCURATE = 1e-6
"""The same for linear programs: HiGHS satisfies rows to 1e-7."""

MOST_ROUNDS = 200
"""Rounds of adding tangents before the best solution so far is returned."""

FUNCTION = "load_distribution"


def scipy(module: str, function: str) -> Any:
    """A module of SciPy; raises with the name of the extra if it is missing."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtraError(function, package="scipy", extra="optimize") from None


@dataclass(slots=True, eq=False)
class ConeProgram:
    """G λ = w, B λ ≤ d and the cones of a grasp, with the tangents found so far.

    Attributes:
        grasp: The grasp, whose margins are the cones.
        G: (6, r).
        w: (6,), in the range of G.
        B: (k, r).
        d: (k,).
        rows: Tangents: margin ≤ rows λ + offsets.
        offsets: Of the tangents.
    """

    grasp: Grasp
    G: Array
    w: Array
    B: Array
    d: Array
    rows: list[Array] = field(default_factory=list[Array])
    offsets: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self._cut(np.zeros(self.count), np.inf)  # f_n ≥ 0, μ f_n ≥ 0 ...

    @property
    def count(self) -> int:
        """The number of unknowns λ."""
        return int(self.G.shape[1])

    @property
    def size(self) -> float:
        """The scale of forces, for tolerances [N]."""
        return max(1.0, float(np.abs(self.w).max(initial=0.0)))

    def margin(self, lam: Array) -> float:
        """The smallest margin at λ [N]; inf where no contact has a limit."""
        f = (lam @ self.grasp.usable).reshape(-1, 6)
        each = [room(c, f[i]).min() for i, c in enumerate(self.grasp.contacts.values())]
        return float(min(each))

    def _cut(self, lam: Array, below: float) -> int:
        """Add tangents at λ of all margins smaller than `below`; returns their number."""
        S, before = self.grasp.usable, len(self.rows)
        f = (lam @ S).reshape(-1, 6)
        for i, contact in enumerate(self.grasp.contacts.values()):
            values, slopes = room(contact, f[i]), contact.slopes(f[i])
            for k in np.flatnonzero(values < below):
                row = S[:, 6 * i : 6 * i + 6] @ slopes[k]
                self.rows.append(row)
                self.offsets.append(float(values[k] - row @ lam))
        return len(self.rows) - before

    def _tangents(self) -> tuple[Array, Array]:
        return np.reshape(self.rows, (-1, self.count)), np.array(self.offsets)

    def _linear(self, above: Array, bound: Array, most: float | None) -> Array | None:
        """(λ, s) with the smallest s under above (λ, s) ≤ bound, B λ ≤ d and G λ = w."""
        wide = np.concatenate([self.B, np.zeros((len(self.B), 1))], axis=1)
        result = scipy("optimize", FUNCTION).linprog(
            np.append(np.zeros(self.count), 1.0),
            A_ub=np.concatenate([above, wide]),
            b_ub=np.concatenate([bound, self.d]),
            A_eq=np.concatenate([self.G, np.zeros((6, 1))], axis=1),
            b_eq=self.w,
            bounds=[(None, None)] * self.count + [(None if most is None else -most, None)],
            method="highs",
        )
        return np.asarray(result.x, dtype=np.float64) if result.status == 0 else None

    def _balanced(self, lam: Array) -> Array:
        """λ corrected to G λ = w, which a linear program satisfies only to 1e-7 N."""
        moved = np.linalg.lstsq(self.G, self.w - self.G @ lam, rcond=None)[0]
        return np.asarray(lam + moved, dtype=np.float64)

    def largest_margin(self, most: float, enough: float = np.inf) -> tuple[Array, float] | None:
        """λ with the largest smallest margin, and that margin; negative outside the cones.

        min s  with  -s ≤ tangents. None if G λ = w and B λ ≤ d alone have no solution.

        Args:
            most: Upper bound of all margins [N].
            enough: A margin at which to stop [N].
        """
        best: tuple[Array, float] | None = None
        for _ in range(MOST_ROUNDS):
            rows, offsets = self._tangents()
            above = np.concatenate([-rows, -np.ones((len(rows), 1))], axis=1)
            solution = self._linear(above, offsets, most)
            if solution is None:
                break
            lam, bound = self._balanced(solution[:-1]), -float(solution[-1])
            margin = min(self.margin(lam), most)
            if best is None or margin > best[1]:
                best = lam, margin
            optimal = best[1] >= bound - ACCURATE * max(self.size, abs(bound))
            if optimal or best[1] >= enough or not self._cut(lam, bound):
                break
        return best

    def least_overload(
        self, efforts: Array, start: Array, limit: Array, reserve: float
    ) -> tuple[Array, float] | None:
        """λ with the smallest largest |start + efforts λ| / limit, all margins at least `reserve`.

        First with slightly more reserve, so that rounding does not violate it; if that is too much
        for contacts or joints, with `reserve` itself. None if there is no solution.
        """
        more = self._least_overload(efforts, start, limit, reserve + ACCURATE * self.size, reserve)
        if more is not None and more[1] <= 1.0:
            return more
        return self._least_overload(efforts, start, limit, reserve, reserve) or more

    def _least_overload(
        self, efforts: Array, start: Array, limit: Array, target: float, reserve: float
    ) -> tuple[Array, float] | None:
        best: tuple[Array, float] | None = None
        for _ in range(MOST_ROUNDS):
            rows, offsets = self._tangents()
            above = np.concatenate(
                [
                    np.concatenate([efforts, -limit[:, None]], axis=1),
                    np.concatenate([-efforts, -limit[:, None]], axis=1),
                    np.concatenate([-rows, np.zeros((len(rows), 1))], axis=1),
                ]
            )
            solution = self._linear(above, np.concatenate([-start, start, offsets - target]), None)
            if solution is None:
                return None
            best = self._balanced(solution[:-1]), float(solution[-1])
            if self.margin(best[0]) >= reserve or not self._cut(best[0], target):
                break
        return best

    def nearest(self, R: Array, start: Array, reserve: float) -> Array | None:
        """λ with the smallest |R λ + start| and all margins at least `reserve`; None if none.

        Args:
            R: (n, r), of full column rank.
            start: (n,).
            reserve: Smallest allowed margin [N].
        """
        # λ = λ_p + N z solves G λ = w. With R N = Q T the distance, up to a constant, is |x| with
        # x = T z + Q* (R λ_p + start): a least-distance problem.
        lam_p, null = np.linalg.lstsq(self.G, self.w, rcond=None)[0], _kernel(self.G)
        Q, T = np.linalg.qr(R @ null)
        back: Array = null @ np.linalg.inv(T)
        lam_0: Array = lam_p - back @ (Q.T @ (R @ lam_p + start))
        lam = lam_0
        target = reserve + TOLERANCE * self.size  # so that rounding does not violate it
        for _ in range(MOST_ROUNDS):
            rows, offsets = self._tangents()
            above = np.concatenate([rows, -self.B])
            bound = np.concatenate([target - offsets, -self.d])
            x = least_distance(above @ back, bound - above @ lam_0)
            if x is None:
                return None
            lam = lam_0 + back @ x
            if self.margin(lam) >= reserve or not self._cut(lam, target):
                break
        return lam


def room(contact: Contact, force: Array) -> Array:
    """Margins (4,) of a force S* λ with the rows of `Contact.usable`.

    Slip and twist are inf without friction: such forces have no component there.
    """
    values = contact.margins(force)
    return np.where([False, contact.smooth, contact.spins, False], np.inf, values)


def least_distance(above: Array, bound: Array) -> Array | None:
    """x of least norm with above x ≥ bound; None if there is none.

    By non-negative least squares: u ≥ 0 with [above*; bound*] u nearest to (0, ..., 0, 1). The
    residual r gives x = -(r_1 ... r_n) / r_n+1; it is zero if the inequalities have no solution. In
    between, where r is mostly rounding, x is verified, and None if it violates an inequality.
    """
    lengths = np.linalg.norm(above, axis=1)
    plain = lengths > 1e-12
    size = float(np.abs(bound).max(initial=0.0))
    if (bound[~plain] > TOLERANCE * size).any():
        return None  # 0 x ≥ bound > 0
    if size == 0.0 or not plain.any():
        return np.zeros(int(above.shape[1]))
    rows, least = above[plain] / lengths[plain, None], bound[plain] / lengths[plain]
    size = max(float(np.abs(least).max()), np.finfo(np.float64).tiny)
    stacked = np.concatenate([rows.T, least[None] / size])
    goal = np.append(np.zeros(rows.shape[1]), 1.0)
    try:
        solution = scipy("optimize", FUNCTION).nnls(stacked, goal, maxiter=100 * max(stacked.shape))
    except RuntimeError as error:  # too many steps
        raise ModelError(
            f"the search for the smallest forces did not converge ({error}). `objective='margin'` "
            "uses another method."
        ) from error
    u: Array = np.asarray(solution[0], dtype=np.float64)
    r: Array = stacked @ u - goal
    if float(r @ r) < 1e-16 or r[-1] >= 0.0:  # |r|² = -r_n+1
        return None
    x: Array = -r[:-1] / r[-1] * size
    kept = bool((rows @ x >= least - TOLERANCE * max(size, float(np.linalg.norm(x)))).all())
    return x if kept and np.isfinite(x).all() else None


def _kernel(G: Array) -> Array:
    """Orthonormal columns that span the kernel of G."""
    values, right = np.linalg.svd(G)[1:]
    rank = int((values > 1e-10 * values[0]).sum())
    return right[rank:].T
