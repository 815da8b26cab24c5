"""Iterations over the trajectory of one problem: sweep backward, roll out forward, accept or not.

The steps are those of FDDP: a sweep gives gains and how far the cost is expected to fall, rollouts
with shares α of the step are tried until one keeps a tenth of that promise, and the regularisation
ρ of Q_uu grows where none does. While there are gaps, a finite step is accepted where it is
expected to help, even if the cost rises: it closes gaps. Constraints are an outer loop: once the
cost hardly falls any more, multipliers λ are set to the forces that penalties exert, and penalties
grow where a violation did not shrink. A problem is solved once no constraint is violated and none
pushes that does not hold with equality: Σ |λ| slack, which bounds what the cost is above its
minimum, is within the tolerance of the cost.

The lanes of the processor hold the knots of the problem. A batch makes the same iterations in one
kernel, whose lanes hold problems: `routine.py`.

Source: mastalli2020crocoddyl for the steps, howell2019altro for the outer loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.stepping.device import Course
from linkwise.control.program import Program
from linkwise.control.recursion import SUMS
from linkwise.model.mechanism import Mechanism
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

LESS, MUCH, FINER = 0.25, 0.9, 0.1
"""A violation is reduced enough if to a quarter. If to less than 0.9, the decrease above becomes
smaller by this factor, since it limits how good multipliers are."""

PENALTY, STRONGER, STRONGEST = 10.0, 10.0, 1e8
"""The first penalty, its growth where a violation is not reduced to a quarter, and its bound."""

SHOWN = 1e-200
"""A weight that adds nothing to a cost, of a bound whose violation still counts."""

FINEST = 1e-12
"""Relative change of a cost that is round-off."""

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
            "u_high", and parameters. For constraints, "low" and "high" (., 1 or N + 1, c), and
            "active" (1, N + 1, c): 1 where one holds at a knot, else 0.
    """

    start: Array
    guess: Array
    held: Mapping[str, Array]

    def part(self, rows: NDArray[np.intp]) -> Data:
        """Some of the problems."""
        held = {name: x[rows] if len(x) > 1 else x for name, x in self.held.items()}
        return Data(self.start[rows], self.guess[rows], held)


Report = Callable[[int], None]
"""Called after each iteration with its number."""


class Iteration:
    """The trajectory of a problem that is improved, with all memory that it takes.

    Attributes:
        cost: Of the trajectory, with penalties until `price` is called.
        violation: The largest violation of a constraint.
        ended: How the problem ended.
        count: Iterations so far.
        history: Cost with penalties, length of the gaps, and violation at each iteration.
    """

    def __init__(self, program: Program, data: Data, h: float, limits: Limits) -> None:
        """Take the memory.

        Args:
            program: The kernels.
            data: Numbers of one problem.
            h: Length of a step [s].
            limits: When to stop.
        """
        assert len(data.start) == 1
        self.program, self.data, self.h, self.limits = program, data, h, limits
        mech = program.mech
        self.knots = data.guess.shape[1]
        self.nq, self.nx, self.m, self.n = mech.nq, mech.nq + mech.nv, program.m, program.n
        lanes = program.expand.lanes
        self.span = -(-self.knots // lanes) * lanes  # lanes have to be full
        self._both = [np.zeros((self.span + 1, self.nx + self.m + 2)) for _ in "ab"]
        self.rho, self.alpha = np.full(1, LEAST), np.ones(1)
        self.turn = 0
        self._weights()
        self._bind()
        self.begin(data.guess[0])

    def begin(self, guess: Array) -> None:
        """Begin from a trajectory (N + 1, nq + nv + nu)."""
        for x in self._both:
            x[: self.knots, : self.nx] = guess[..., : self.nx]
            x[0, : self.nx] = self.data.start[0]
            x[self.knots :, : self.nx] = x[self.knots - 1, : self.nx]
            x[1 : self.knots, self.nx : -2] = guess[:-1, self.nx :]
            x[self.knots :, self.nx :] = 0.0
        self.rho[:] = LEAST
        self.ended, self.count = RUNNING, 0
        self.cost, self.violation = float("nan"), 0.0
        self.history = list[tuple[float, float, float]]()
        self._before, self._unused, self._fresh = float("inf"), float("inf"), False
        self._penalty, self._rough = PENALTY, ROUGH
        if self.bounds:
            self._held["shift"][:] = 0.0
        self._penalise(PENALTY)

    # -------------------------------------------------------------------------------- memory

    def _weights(self) -> None:
        """Inputs with rows for as many knots as the lanes take."""
        self.bounds = self.program.structure.bounds
        shape = self.span, self.program.structure.rows
        self._held = {name: self._spanned(x[0]) for name, x in self.data.held.items()}
        # in C's order: kernels read these rows where they are, and follow their changes
        self._held["weight"] = np.array(np.broadcast_to(self._held["weight"], shape), order="C")
        if self.bounds:
            self._held["shift"] = np.zeros((self.span, self.bounds))

    def _spanned(self, x: Array) -> Array:
        """An input with rows for as many knots as the lanes take."""
        more = self.span - self.knots if len(x) > 1 else 0
        return np.concatenate([x, x[-1:].repeat(more, axis=0)]) if more else x

    def _penalise(self, penalty: float) -> None:
        """Weights of constraints where they hold; their rows are the last ones."""
        if self.bounds:
            self._held["weight"][:, -self.bounds :] = penalty * self._held["active"]

    def _bind(self) -> None:
        """The calls of the kernels on this memory: two, as the trajectories take turns."""
        p, n, m, K = self.program, self.n, self.m, self.knots
        wide = m * (n + 1) + 2 * n
        self.gains = np.zeros((K + 1, wide + len(SUMS)))
        back = self.gains[K - 1 :: -1] if K > 1 else self.gains[:1]
        ahead = self.gains[K:0:-1]
        gain = {
            "K": back[:, : m * n],
            "k": back[:, m * n : m * (n + 1)],
            "gap": back[:, m * (n + 1) + n : wide],
            "pulled": ahead[:, m * (n + 1) : m * (n + 1) + n],
        }
        held = {name: x[:K] for name, x in self._held.items()}
        self.calls = list[Any]()
        for now, new in (self._both, self._both[::-1]):
            x, u = now[:K, : self.nx], now[1 : K + 1, self.nx : self.nx + m]
            old = {"q_old": x[:, : self.nq], "v_old": x[:, self.nq :], "u_old": u}
            first = new[:1, : self.nq], new[:1, self.nq : self.nx]
            given = {a: b[None] for a, b in (held | gain | old).items()} | {"alpha": self.alpha}
            along = Course(self.h, K, 1, 1)
            roll = p.forward.repeated(*first, given, along, new[None, 1 : K + 1])
            self.calls.append([*self._sweeps(now, held), roll])

    def _sweeps(self, now: Array, held: dict[str, Array]) -> list[Any]:
        p, K, nq, nx, m = self.program, self.knots, self.nq, self.nx, self.m
        nothing, u = np.zeros((1, 0)), now[1:, None, nx : nx + m]
        each = {x: a[:, None] if len(a) > 1 else a[0] for x, a in self._held.items()}
        each |= {"u": u, "q_next": now[1:, None, :nq], "v_next": now[1:, None, nq:nx]}
        each = {name: each[name] for name, _ in p.expand.held}
        # its knots are a batch
        state, along = (now[:-1, :nq], now[:-1, nq:nx]), Course(self.h, K, 1, 1)
        expand = p.expand.repeated(*state, each, Course(self.h, 1, 1, 1))
        shown = expand[1].records[K - 1 :: -1, 0, nx:]
        cut = shown.shape[-1] - dict(p.sweep.held)["W"]
        given = {
            "e": shown[:, :cut],
            "W": shown[:, cut:],
            "rho": self.rho,
            "u": now[K:0:-1, nx : nx + m],
        }
        given |= {x: held[x][0] for x in ("u_low", "u_high") if x in held}
        out = self.gains[None, :K]
        return [expand, p.sweep.repeated(nothing, nothing, given, along, out)]

    # ---------------------------------------------------------------------------- iterations

    def run(self, report: Report | None = None, deadline: float | None = None) -> None:
        """Improve the trajectory until the problem has ended."""
        for i in range(self.limits.iterations):
            self.step()
            if report is not None:
                report(i)
            if self.ended != RUNNING:
                return
            if deadline is not None and time.monotonic() > deadline:
                break
        self.ended = OUT_OF_TIME

    def price(self) -> None:
        """Set `cost` and `violation` to those of the trajectory as it is, without penalties."""
        gains = self.gains.copy()
        self._penalise(SHOWN)
        self.sweep()
        _, _, cost, _, worst, _ = self._sums
        if np.isfinite(cost):
            self.cost, self.violation = float(cost), float(worst)
        self.gains[:] = gains
        self._penalise(self._penalty)

    def sweep(self) -> None:
        """Expand all knots, and sweep backward."""
        for call, _ in self.calls[self.turn][:-1]:
            call()

    @property
    def _sums(self) -> Array:
        return self.gains[self.knots - 1, -len(SUMS) :]

    def step(self) -> None:
        """One iteration."""
        self.sweep()
        failed = bool(self.calls[self.turn][-2][1].status[0])
        first, second, cost, gap, worst, least = map(float, self._sums)
        if failed:  # a sweep that failed adds up nothing
            cost = float("inf")
        fine = not failed and least > 0.0 and np.isfinite(first)
        closed = gap <= 1e-20
        self.count += 1
        self.cost, self.violation = cost, worst
        self.history.append((cost, float(np.sqrt(gap)), worst))
        violated = worst > self.limits.violation
        tolerance = max(self._rough, self.limits.tolerance) if violated else self.limits.tolerance
        small = abs(first + 0.5 * second) <= tolerance * (abs(cost) + 1e-300)
        if not fine:
            self._raise(cost)
        elif closed and small and not (violated and self._fresh):
            self._settle(violated)
        else:
            self._search(first, second, cost, closed, violated)

    def _search(
        self, first: float, second: float, cost: float, closed: bool, violated: bool
    ) -> None:
        roll, done = self.calls[self.turn][-1]
        for share in SHARES:
            self.alpha[:] = share
            roll()
            new, change = map(float, done.records[0, -1, -2:])
            expected = share * ((first + change) + 0.5 * share * (second - 2.0 * change))
            decrease = cost - new
            if expected >= 0.0:
                good = not closed or decrease > KEPT * expected
            else:
                good = not closed and decrease > 2.0 * expected
            if good and np.isfinite(new) and not done.status[0]:
                break
        else:
            # nothing left to gain but round-off
            if closed and abs(first + 0.5 * second) <= FINEST * (abs(cost) + 1e-300):
                self._settle(violated)
            else:
                self._raise(cost)
            return
        self.turn, self._fresh = 1 - self.turn, False
        if share > 0.5:
            self.rho[:] = max(self.rho[0] / 10.0, LEAST)
        elif share <= SHORT:
            self.rho *= 10.0

    def _raise(self, cost: float) -> None:
        """More regularisation, or the end."""
        self.rho *= 10.0
        if self.rho[0] > MOST:
            self.ended = NO_STEP if np.isfinite(cost) else NOT_FINITE

    # --------------------------------------------------------------------------- constraints

    @property
    def trajectory(self) -> Array:
        """q, v (and u behind them, one row later) of all knots."""
        return self._both[self.turn]

    @property
    def states(self) -> Array:
        """q, v and u of all knots (N + 1, .)."""
        x, K = self.trajectory, self.knots
        return np.concatenate([x[:K, : self.nx], x[1 : K + 1, self.nx : self.nx + self.m]], axis=1)

    def values(self) -> Array:
        """The bounded rows c (N + 1, c)."""
        return at_knots(
            self.program.bounded, self.program.mech, self.data, self.states[None], self.h
        )[0]

    def _settle(self, violated: bool) -> None:
        """The cost hardly falls: end, or update the multipliers."""
        if not self.bounds:
            self.ended = SOLVED
            return
        shift, K = self._held["shift"], self.knots
        low, high, active = (self._held[x][:K] for x in ("low", "high", "active"))
        c = self.values()
        y = c + shift[:K]
        over = y - np.clip(y, low, high)
        slack = np.maximum(np.where(over > 0.0, high - c, c - low), 0.0)
        unused = self._penalty * float(np.sum(active * np.abs(over) * slack))
        if not violated and unused <= max(self.limits.tolerance, FINEST) * abs(self.cost):
            self.ended = SOLVED
            return
        shift[:K] = over
        if violated:
            slow = self.violation > LESS * self._before
            self._rough *= FINER if slow and self.violation < MUCH * self._before else 1.0
            self._before = self.violation
        else:
            slow, self._unused = unused > LESS * self._unused, unused
        if slow:
            if self._penalty >= STRONGEST:
                self.ended = INFEASIBLE if violated else SOLVED
            self._penalty *= STRONGER
            shift /= STRONGER
        self._penalise(self._penalty)
        self._fresh = True


def at_knots(
    kernel: Any, mech: Mechanism, data: Data, x: Array, h: float, threads: int | None = 1
) -> Array:
    """What a kernel of a formula gives at all knots (batch, N + 1, n).

    Args:
        kernel: The kernel.
        mech: The mechanism.
        data: The numbers of the problems.
        x: q, v and u of all knots (batch, N + 1, .).
        h: Length of a step [s].
        threads: Processor cores; None: chosen from the batch size.
    """
    q, v, u = np.split(x, [mech.nq, mech.nq + mech.nv], axis=-1)
    given = {"q": q, "v": v, "u": u, "h": np.full((1, 1, 1), h), **data.held}
    lead = x.shape[:2]
    rows = [np.broadcast_to(given[a], (*lead, given[a].shape[-1])) for a in kernel.arguments]
    flat = [a.reshape(-1, a.shape[-1]) for a in rows]
    return kernel(*flat, threads=threads).reshape(*lead, -1)
