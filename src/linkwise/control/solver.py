"""Iterations over trajectories: sweep backward, roll out forward, accept or not.

The steps are those of FDDP: a sweep gives gains and how far the cost is expected to fall, rollouts
with shares α of the step are tried until one keeps a tenth of that promise, and the regularisation
ρ of Q_uu grows where none does. While there are gaps, a finite step is accepted where it is
expected to help, even if the cost rises: it closes gaps. Constraints are an outer loop: once the
cost hardly falls any more, multipliers are set to the forces that penalties exert, and penalties
grow where a violation did not shrink.

Each problem of a batch has its own α, ρ, penalties and end; kernels run for all of them.

Source: mastalli2020crocoddyl for the steps, howell2019altro for the outer loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.control.program import Program
from linkwise.control.recursion import SUMS
from linkwise.spatial.array import Array

LEAST, MOST = 1e-9, 1e9
"""Bounds of the regularisation ρ; where no step helps with the largest one, a problem ends."""

SHARES = tuple(0.5**i for i in range(10))
"""α of the rollouts that are tried."""

SHORT = 0.01
"""A share up to which ρ grows although it was accepted."""

KEPT = 0.1
"""Share of the expected decrease that a step has to achieve."""

ROUGH = 1e-4
"""Expected relative decrease at which multipliers are updated while constraints are violated."""

PENALTY, STRONGER, STRONGEST = 10.0, 10.0, 1e8
"""The first penalty, its growth where a violation is not reduced to a quarter, and its bound."""

RUNNING, SOLVED, OUT_OF_TIME, NO_STEP, NOT_FINITE, INFEASIBLE = range(6)
"""How a problem ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop.

    Attributes:
        iterations: Sweeps at most.
        tolerance: Expected decrease of the cost, relative to it.
        violation: Largest violation of a constraint.
    """

    iterations: int
    tolerance: float
    violation: float


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Numbers of some problems, each with (1 or batch) in front.

    Attributes:
        start: q and v at the beginning (batch, nq + nv).
        guess: q, v and u of all knots (batch, N + 1, nq + nv + nu); u of the last is not used.
        held: Inputs of the kernels: "weight" (., N + 1, rows), "goal" (., 1 or N + 1, n), "u_low",
            "u_high", and parameters.
        low: Bounds of constraints (., 1 or N + 1, c).
        high: Likewise.
        active: 1 where a constraint holds at a knot, else 0 (1, N + 1, c).
    """

    start: Array
    guess: Array
    held: Mapping[str, Array]
    low: Array
    high: Array
    active: Array

    def part(self, rows: NDArray[np.intp]) -> Data:
        """Some of the problems."""

        def some(x: Array) -> Array:
            return x[rows] if len(x) > 1 else x

        held = {name: some(x) for name, x in self.held.items()}
        parts = some(self.low), some(self.high), some(self.active)
        return Data(self.start[rows], self.guess[rows], held, *parts)


Report = Callable[[int], None]
"""Called after each iteration with its number."""


class Iteration:
    """Trajectories of some problems that are improved together, with all memory that it takes.

    Attributes:
        cost: Of each trajectory, with penalties until `price` is called (batch,).
        violation: The largest violation of a constraint (batch,).
        ended: How each problem ended (batch,).
        count: Iterations that each took (batch,).
        history: Cost with penalties and violation of each iteration, [(batch,), (batch,)].
    """

    def __init__(self, program: Program, data: Data, h: float, limits: Limits) -> None:
        self.program, self.data, self.h, self.limits = program, data, h, limits
        mech = program.mech
        self.batch, self.knots = len(data.start), data.guess.shape[1]
        self.nq, self.nx, self.m, self.n = mech.nq, mech.nq + mech.nv, program.m, program.n
        lanes = program.forward.lanes
        # one problem has its knots in the lanes, which have to be full
        self.span = self.knots if self.batch > 1 else -(-self.knots // lanes) * lanes
        self._both = [np.zeros((self.batch, self.span + 1, self.nx + self.m + 2)) for _ in "ab"]
        self._stored, self._waiting = self._both[0][:0], np.zeros(self.batch, dtype=bool)
        self.rho, self.alpha = np.full((self.batch, 1, 1), LEAST), np.ones((self.batch, 1, 1))
        self.turn = 0
        self._weights()
        self._bind()
        self.begin(data.guess)

    def begin(self, guess: Array) -> None:
        """Begin from trajectories (batch, N + 1, nq + nv + nu)."""
        for x in self._both:
            x[:, : self.knots, : self.nx] = guess[..., : self.nx]
            x[:, 0, : self.nx] = self.data.start
            x[:, self.knots :, : self.nx] = x[:, self.knots - 1 : self.knots, : self.nx]
            x[:, 1 : self.knots, self.nx : -2] = guess[:, :-1, self.nx :]
            x[:, self.knots :, self.nx :] = 0.0
        self.reset()

    def reset(self) -> None:
        """Begin anew from the trajectories as they are."""
        self.rho[:] = LEAST
        self.ended = np.zeros(self.batch, np.int64)
        self.count = np.zeros(self.batch, np.int64)
        self.cost, self.violation = np.full(self.batch, np.nan), np.zeros(self.batch)
        self.before = np.full(self.batch, np.inf)
        self.history = list[tuple[Array, Array]]()
        self.violation = self.violated()

    # ----------------------------------------------------------------------- one that moves on

    def restart(self, start: Array) -> None:
        """Begin from a state (nq + nv) that is held without force."""
        for x in self._both:
            x[:] = 0.0
            x[:, :, : self.nx] = start
            x[:, 1:, self.nq : self.nx] = 0.0
        if len(self.bounded):
            self._held["shift"][:] = 0.0
            self.penalty[:] = PENALTY
            self._penalise()
        self.reset()

    def move_on(self, start: Array, steps: int) -> None:
        """Replace the first state, after some steps of the trajectory have passed.

        The last state stays, with the last joint forces.
        """
        x, K = self.trajectory, self.knots
        for _ in range(min(steps, K - 1)):
            x[:, : K - 1, : self.nx] = x[:, 1:K, : self.nx]
            x[:, 1 : K - 1, self.nx :] = x[:, 2:K, self.nx :]
            if len(self.bounded):
                shift = self._held["shift"]
                shift[:, : K - 1] = shift[:, 1:K]
        for both in self._both:
            both[:, 0, : self.nx] = start
        self.ended[:] = RUNNING
        self.history.clear()

    @property
    def command(self) -> Array:
        """u of the first step of one problem (nu,)."""
        return self.trajectory[0, 1, self.nx : self.nx + self.m]

    def set_goal(self, at: int, rows: Array) -> None:
        """Other numbers of goals from a place on (1, N + 1 or 1, n)."""
        goal = self._held["goal"]
        knots = rows.shape[1]
        goal[:, : knots if knots > 1 else None, at : at + rows.shape[2]] = rows
        goal[:, knots:, at : at + rows.shape[2]] = rows[:, -1:]

    # -------------------------------------------------------------------------------- memory

    def _weights(self) -> None:
        """Weights of all rows, behind which those of constraints can be set."""
        terms = self.program.structure.terms
        bounded = np.array([t.bounded for t in terms for _ in range(t.rows)], dtype=bool)
        self.bounded = np.flatnonzero(bounded)
        self._held = {name: self._spanned(x) for name, x in self.data.held.items()}
        if not len(self.bounded):
            return
        shape = (self.batch, self.span, len(bounded))
        # in C's order: kernels read these rows where they are, and follow their changes
        self._held["weight"] = np.array(np.broadcast_to(self._held["weight"], shape), order="C")
        self._held["shift"] = np.zeros((self.batch, self.span, len(self.bounded)))
        self._held["low"], self._held["high"] = map(self._spanned, (self.data.low, self.data.high))
        self.active = self._spanned(self.data.active)
        self.penalty = np.full((self.batch, 1, len(self.bounded)), PENALTY)
        self._penalise()

    def _spanned(self, x: Array) -> Array:
        """An input with rows for as many knots as the lanes take."""
        more = self.span - self.knots if x.shape[1] > 1 else 0
        return np.concatenate([x, x[:, -1:].repeat(more, axis=1)], axis=1) if more else x

    def _penalise(self) -> None:
        self._held["weight"][..., self.bounded] = self.penalty * self.active

    def _bind(self) -> None:
        """The calls of the kernels on this memory: two, as the trajectories take turns."""
        p, n, m, K = self.program, self.n, self.m, self.knots
        wide = m * (n + 1) + 2 * n
        self.gains = np.zeros((self.batch, K + 1, wide + len(SUMS)))
        back = self.gains[:, K - 1 :: -1] if K > 1 else self.gains[:, :1]
        ahead = self.gains[:, K:0:-1]
        gain = {
            "K": back[..., : m * n],
            "k": back[..., m * n : m * (n + 1)],
            "gap": back[..., m * (n + 1) + n : wide],
            "pulled": ahead[..., m * (n + 1) : m * (n + 1) + n],
        }
        held = {name: x[:, :K] for name, x in self._held.items()}
        nothing = np.zeros((self.batch, 0))
        self.calls = list[Any]()
        for now, new in (self._both, self._both[::-1]):
            x, u = now[:, :K, : self.nx], now[:, 1 : K + 1, self.nx : self.nx + m]
            old = {"q_old": x[..., : self.nq], "v_old": x[..., self.nq :], "u_old": u}
            first = new[:, 0, : self.nq], new[:, 0, self.nq : self.nx]
            given = held | gain | old | {"alpha": self.alpha}
            roll = p.forward.repeated(*first, given, self.h, K, 1, 1, new[:, 1 : K + 1])
            calls = [*self._sweeps(now, held, nothing), roll]
            self.calls.append(calls)

    def _sweeps(self, now: Array, held: dict[str, Array], nothing: Array) -> list[Any]:
        p, K, nq, nx, m = self.program, self.knots, self.nq, self.nx, self.m
        out = self.gains[:, :K]
        if self.batch > 1:
            after = now[:, 1 : K + 1]
            given = held | {
                "q_at": now[:, :K, :nq], "v_at": now[:, :K, nq:nx], "u": after[..., nx : nx + m],
                "q_next": after[..., :nq], "v_next": after[..., nq:nx], "rho": self.rho,
            }  # fmt: skip
            given = {x: a[:, ::-1] if a.ndim == 3 and a.shape[1] > 1 else a
                     for x, a in given.items()}  # fmt: skip
            call = p.backward.repeated(nothing, nothing, given, self.h, K, 1, 1, out)
            return [call]
        # one problem: its knots are a batch
        rows = now[0]
        each = {
            name: x[0, :, None] if x.shape[1] > 1 else x.reshape(-1)
            for name, x in self._held.items()
        }
        each |= {
            "u": rows[1:, None, nx : nx + m], "q_next": rows[1:, None, :nq],
            "v_next": rows[1:, None, nq:nx],
        }  # fmt: skip
        each = {name: each[name] for name, _ in p.expand.held}
        expand = p.expand.repeated(rows[:-1, :nq], rows[:-1, nq:nx], each, self.h, 1, 1, 1)
        e = expand[1].records[K - 1 :: -1, 0, nx:]
        given = {"e": e, "rho": self.rho[0], "u": rows[K:0:-1, nx : nx + m]}
        given |= {x: held[x].reshape(-1) for x in ("u_low", "u_high") if x in held}
        return [expand, p.sweep.repeated(nothing, nothing, given, self.h, K, 1, 1, out)]

    # ---------------------------------------------------------------------------- iterations

    def release(self) -> None:
        """Give back what only further iterations need."""
        self.calls.clear()
        self._both[1 - self.turn] = self._stored = self._both[self.turn][:0]

    def run(self, report: Report | None = None, deadline: float | None = None) -> None:
        """Improve all trajectories until each has ended."""
        for i in range(self.limits.iterations):
            self.step()
            if report is not None:
                report(i)
            if self.ended.all():
                return
            if deadline is not None and time.monotonic() > deadline:
                break
        self.ended[self.ended == RUNNING] = OUT_OF_TIME

    def price(self) -> None:
        """Set `cost` to that of the trajectories as they are, without penalties."""
        gains, weight = self.gains.copy(), self._held["weight"].copy()
        if len(self.bounded):
            self._held["weight"][..., self.bounded] = 0.0
        self.sweep()
        cost = self.gains[:, self.knots - 1, -len(SUMS) + 2]
        self.cost = np.where(np.isfinite(cost), cost, self.cost)
        self.gains[:], self._held["weight"][:] = gains, weight

    def sweep(self) -> None:
        """Expand all knots, and sweep backward."""
        for call, _ in self.calls[self.turn][:-1]:
            call()

    def step(self) -> None:
        """One iteration."""
        self.sweep()
        done = self.calls[self.turn][-2][1]
        sums = self.gains[:, self.knots - 1, -len(SUMS) :]
        first, second, gap = sums[:, 0], sums[:, 1], sums[:, 3]
        cost = np.where(done.status == 0, sums[:, 2], np.inf)  # a sweep that failed adds up nothing
        on = self.ended == RUNNING
        fine = (done.status == 0) & (sums[:, -1] > 0.0) & np.isfinite(first)
        expected = first + 0.5 * second
        scale = np.abs(cost) + 1e-300
        closed = gap <= 1e-20
        self.count[on] += 1
        self.cost[on] = cost[on]
        self.history.append((cost.copy(), np.sqrt(gap)))
        tolerance = self._tolerance()
        ready = on & fine & closed & (np.abs(expected) <= tolerance * scale)
        if ready.any():
            self._settle(ready)
            on = on & ~ready
        self._raise(on & ~fine, cost)
        on = on & fine
        if on.any():
            self._search(on, first, second, cost, closed)

    def _tolerance(self) -> Array:
        """The decrease at which a problem ends, or at which its multipliers are updated."""
        exact = self.violation <= self.limits.violation
        return np.where(exact, self.limits.tolerance, max(ROUGH, self.limits.tolerance))

    def _search(self, on: Any, first: Array, second: Array, cost: Array, closed: Any) -> None:
        left: Any = on.copy()
        accepted: Any = np.zeros(self.batch, dtype=bool)
        shares = np.ones(self.batch)
        roll, done = self.calls[self.turn][-1]
        for share in SHARES:
            self.alpha[left] = share
            roll()
            new, change = done.records[:, -1, -2], done.records[:, -1, -1]
            expected = share * ((first + change) + 0.5 * share * (second - 2.0 * change))
            decrease = cost - new
            falls = (expected >= 0.0) & (~closed | (decrease > KEPT * expected))
            good = falls | ((expected < 0.0) & ~closed & (decrease > 2.0 * expected))
            good = good & left & np.isfinite(new) & (done.status == 0)
            shares[good] = share
            accepted |= good
            left &= ~good
            if not left.any():
                break
            if self.batch > 1 and good.any():  # keep what is accepted; others try again
                self._keep(good)
        self._accept(accepted)
        big, small = accepted & (shares > 0.5), accepted & (shares <= SHORT)
        self.rho[big] = np.maximum(self.rho[big] / 10.0, LEAST)
        self.rho[small] *= 10.0
        # nothing left to gain but round-off
        flat = left & closed & (np.abs(first + 0.5 * second) <= 1e-12 * (np.abs(cost) + 1e-300))
        if flat.any():
            self._settle(flat)
        self._raise(left & ~flat, cost)

    def _keep(self, good: Any) -> None:
        """Put accepted trajectories aside while others try again."""
        new = self._both[1 - self.turn]
        if not len(self._stored):
            self._stored = np.empty_like(new)
        self._stored[good] = new[good]
        self._waiting |= good

    def _accept(self, accepted: Any) -> None:
        """The accepted trajectories take the place of the old ones."""
        now, new = self._both[self.turn], self._both[1 - self.turn]
        if self._waiting.any():
            new[self._waiting] = self._stored[self._waiting]
            self._waiting[:] = False
        if accepted.any():
            if not accepted.all():
                new[~accepted] = now[~accepted]
            self.turn = 1 - self.turn

    def _raise(self, which: Any, cost: Array) -> None:
        """More regularisation, or the end."""
        self.rho[which] *= 10.0
        over = which & (self.rho[:, 0, 0] > MOST)
        self.ended[over] = np.where(np.isfinite(cost[over]), NO_STEP, NOT_FINITE)

    # --------------------------------------------------------------------------- constraints

    @property
    def trajectory(self) -> Array:
        """q, v (and u behind them, one row later) of all knots."""
        return self._both[self.turn]

    def values(self) -> Array:
        """The bounded rows c (batch, N + 1, c)."""
        return self.at_knots(self.program.bounded)

    def at_knots(self, kernel: Any) -> Array:
        """What a kernel of a formula gives at all knots (batch, N + 1, n)."""
        x, shape = self.trajectory[:, : self.knots], (self.batch, self.knots)
        u = self.trajectory[:, 1 : self.knots + 1, self.nx : self.nx + self.m]
        given = {"q": x[..., : self.nq], "v": x[..., self.nq : self.nx], "u": u,
                 "h": np.full((1, 1, 1), self.h), **self.data.held}  # fmt: skip
        rows = [np.broadcast_to(given[a], (*shape, given[a].shape[-1])) for a in kernel.arguments]
        flat = [x.reshape(-1, x.shape[-1]) for x in rows]
        return kernel(*flat, threads=1).reshape(*shape, -1)

    def violated(self) -> Array:
        """The largest violation of each problem (batch,)."""
        if not len(self.bounded):
            return np.zeros(self.batch)
        c = self.values()
        off = np.abs(c - np.clip(c, self.data.low, self.data.high)) * (self.data.active > 0.0)
        return off.max(axis=(1, 2), initial=0.0)

    def _settle(self, ready: Any) -> None:
        """Problems whose cost hardly falls: end them, or update their multipliers."""
        rough = self._tolerance() > self.limits.tolerance
        self.violation = self.violated()
        satisfied = self.violation <= self.limits.violation
        self.ended[ready & satisfied & ~rough] = SOLVED
        more = ready & ~satisfied
        if not more.any():
            return
        shift = self._held["shift"]
        y = self.values() + shift[:, : self.knots]
        shift[more, : self.knots] = (y - np.clip(y, self.data.low, self.data.high))[more]
        slow = more & (self.violation > 0.25 * self.before)
        self.before[more] = self.violation[more]
        self.ended[slow & (self.penalty.max(axis=(1, 2)) >= STRONGEST)] = INFEASIBLE
        self.penalty[slow] *= STRONGER
        shift[slow] /= STRONGER
        self._penalise()
