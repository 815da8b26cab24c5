"""All iterations of a problem as one kernel: the steps of `solver.py`.

The memory of a problem has its trajectory "x", K rows of q, v and u, and one row more; "new", the
one that is tried; and "gain", of which the first row is zero and that of knot k is k + 1. An
iteration is a loop over knots backward, loops over knots forward until each problem of the lanes
has found a step, and a copy of what is accepted. Problems that have found theirs repeat it
meanwhile; those that have ended change nothing any more. Conditions are numbers, 1 or 0.

Constraints have the multipliers "shift", K rows, and a "penalty" that is in the "weight" of their
rows; both change where a problem is "settling". What a call ends with is what another goes on from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.llvm import CODE
from linkwise.codegen.stepping.stepping import Loop, Segment, Sketch, Statement, Stepping, part
from linkwise.control.program import Program
from linkwise.control.recursion import BLANK, SUMS, moving
from linkwise.control.shooting import Structure
from linkwise.control.solver import (
    FINER,
    FINEST,
    INFEASIBLE,
    KEPT,
    LEAST,
    LESS,
    MOST,
    MUCH,
    NO_STEP,
    NOT_FINITE,
    OUT_OF_TIME,
    PENALTY,
    ROUGH,
    SHARES,
    SHORT,
    SHOWN,
    SOLVED,
    STRONGER,
    STRONGEST,
)  # fmt: skip
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.choice import absolute, clip, maximum, where

FOREVER = 2**31
"""Turns of a loop that ends by a condition."""

ROUNDS = 50
"""Iterations that a call makes at most."""

TRIALS = len(SHARES) - 1
"""Shorter steps that are tried at the same time, where knots are too."""

OUTER = ("penalty", "rough", "before", "unused", "fresh")
"""What the outer loop over constraints remembers."""

FIRST = {"rho": LEAST, "penalty": PENALTY, "rough": ROUGH, "before": 1e300, "unused": 1e300}
"""What problems begin with; other numbers begin with zero."""

NOTED = ("cost", "gap", "worst")
"""What of the sums of a sweep is kept of each iteration."""


@dataclass(frozen=True)
class Routine:
    """The iterations of problems with K knots.

    Attributes:
        program: The segments of a knot.
        knots: K = N + 1.
        timed: Inputs that have a row for each knot; others have one for all.
        spread: Whether expansions of all knots are kept, so that they may be made at the same time.
    """

    program: Program
    knots: int
    timed: tuple[str, ...]
    spread: bool = False

    @property
    def row(self) -> int:
        """Numbers of a knot: q, v and u."""
        return self.nx + self.program.m

    @property
    def nx(self) -> int:
        """Numbers of a state."""
        return self.program.mech.nq + self.program.mech.nv

    @cached_property
    def inputs(self) -> dict[str, int]:
        """What is given besides the trajectory, with all its rows."""
        made = {"q", "v", "u", "q_next", "v_next", "q_old", "v_old", "u_old", "h", "K", "k", "gap",
                "pulled", "alpha", "total", "rho", "shift"}  # fmt: skip
        first, _ = self.program.knot
        reads = dict((*first.reads, *self.program.roll.reads))
        if self.program.structure.boxed:
            reads |= {"u_low": self.program.m, "u_high": self.program.m}
        if self.bounds:
            reads |= dict(self.program.values.reads) | {"active": self.bounds}
        return {
            name: size * (self.knots if name in self.timed else 1)
            for name, size in reads.items() if name not in made
        }  # fmt: skip

    @property
    def memory(self) -> tuple[tuple[str, int], ...]:
        """Registers of one problem, with their sizes."""
        _, recursion = self.program.knot
        size = (self.knots + 1) * self.row
        sizes = {"x": size, "new": size, "gain": (self.knots + 1) * recursion.gain}
        if self.bounds:
            sizes |= dict.fromkeys(("shift", "c"), self.knots * self.bounds)
        every = sizes | dict(recursion.memory)
        return tuple((every | {x: self.knots * n for x, n in self._kept.items()}).items())

    @property
    def _kept(self) -> dict[str, int]:
        """Numbers of an expansion, if all of them are kept."""
        return dict(self.program.knot[0].writes) if self.spread else {}

    @property
    def bounds(self) -> int:
        """Rows of constraints."""
        return self.program.structure.bounds

    @property
    def lasting(self) -> dict[str, int]:
        """Registers that go from one call to the next, with sizes."""
        out = {"x": dict(self.memory)["x"], "rho": 1}
        if self.bounds:
            out |= {"shift": self.knots * self.bounds, **dict.fromkeys(OUTER, 1)}
        return out

    # ------------------------------------------------------------------------- over all knots

    def _at(
        self, segment: Segment, reads: Mapping[str, tuple[str, int]],
        writes: Mapping[str, tuple[str, int]] = {},
    ) -> Segment:  # fmt: skip
        """A segment on rows of the memory: names with the register and the place in its row."""
        _, recursion = self.program.knot
        strides = {"x": self.row, "new": self.row, "gain": recursion.gain}
        strides |= {"shift": self.bounds, "c": self.bounds}
        strides |= {"weight": self.program.structure.rows, **self._kept}
        moves = dict[str, int]()

        def other(
            pieces: tuple[tuple[str, int], ...], names: Mapping[str, tuple[str, int]]
        ) -> tuple[tuple[str, int], ...]:
            out = list[tuple[str, int]]()
            for name, size in pieces:
                register, start = names.get(name, (name, 0))
                stride = strides.get(register, size if name in self.timed else 0)
                if stride or name in names:
                    name = part(register, start, size)
                if stride:
                    moves[name] = stride
                out.append((name, size))
            return tuple(out)

        traced = replace(segment.traced, inputs=other(segment.reads, reads))
        to = other(segment.writes, writes)
        return replace(segment, traced=traced, writes=to, moves=(*segment.moves, *moves.items()))

    def sweep(self) -> tuple[Statement, ...]:
        """Expand all knots, and sweep backward."""
        _, recursion = self.program.knot
        s = Sketch("begin")
        s.write("P", [0.0] * dict(self.memory)["P"])
        s.write("p", [0.0] * self.program.n)
        s.write("sums", list(BLANK))
        if not self.spread:
            s.write(CODE, [0.0])
        steps = recursion.segments(recursion.gain, recursion.gain)
        body = tuple(self._at(x, self._here) for x in steps)
        if not self.spread:
            return s.segment(), Loop((self._expansion, *body), self.knots, down=True)
        body = tuple(moving(x, "W", self._kept["W"]) for x in body)
        return *self._expansions(), s.segment(), Loop(body, self.knots, down=True)

    def _expansions(self) -> tuple[Statement, ...]:
        """All knots, where their expansions are kept."""
        blank = Sketch("blank")
        blank.write(CODE, [0.0])
        return blank.segment(), Loop((self._expansion,), self.knots, apart=True)

    @property
    def _here(self) -> dict[str, tuple[str, int]]:
        nq, row = self.program.mech.nq, self.row
        here = {"q": ("x", 0), "v": ("x", nq), "u": ("x", self.nx)}
        return here | {"q_next": ("x", row), "v_next": ("x", row + nq)}

    @cached_property
    def _expansion(self) -> Segment:
        return self._at(self.program.knot[0], self._here)

    def roll(self) -> tuple[Statement, ...]:
        """Roll out with the gains, into "new"."""
        nq, nx, row = self.program.mech.nq, self.nx, self.row
        s = Sketch("start")
        s.write(part("new", 0, nx), list(s.read(part("x", 0, nx), nx)))
        s.write("total", [0.0, 0.0])
        s.write(CODE, [0.0])
        reads = {"q": ("new", 0), "v": ("new", nq)}
        writes = {"q": ("new", row), "v": ("new", row + nq), "u": ("new", nx)}
        return s.segment(), Loop(
            (self._at(self.program.roll, reads | self._old, writes),), self.knots
        )

    @property
    def _old(self) -> dict[str, tuple[str, int]]:
        """What a rollout reads of the trajectory and its gains."""
        _, recursion = self.program.knot
        nq, wide, n, m = self.program.mech.nq, recursion.gain, self.program.n, self.program.m
        return {
            "q_old": ("x", 0), "v_old": ("x", nq), "u_old": ("x", self.nx), "K": ("gain", wide),
            "k": ("gain", wide + m * n), "gap": ("gain", wide + m * (n + 1) + n),
            "pulled": ("gain", m * (n + 1)),
        }  # fmt: skip

    def search(self) -> tuple[Statement, ...]:
        """Rollouts with shorter and shorter steps, until one is good enough."""
        if not self.spread:
            return (Loop((*self.roll(), self._try()), len(SHARES), again="left"),)
        shorter = Loop((self._trials(), self._pick()), 1, again="left")
        return *self.roll(), self._try(), shorter, Loop(self.roll(), 1, again="chosen")

    def _trials(self) -> Loop:
        """All shorter steps at the same time, of which only the sums are kept."""
        nq, nx, m, s = self.program.mech.nq, self.nx, self.program.m, Sketch("trial")
        s.write(part("trial", 0, nx), list(s.read(part("x", 0, nx), nx)))
        s.write(part("tried", 0, 2), [0.0, 0.0])
        s.write(CODE, [0.0])
        end = Sketch("coded")
        end.write(part("tried", 2, 1), list(end.read(CODE, 1)))
        reads = {"q": ("trial", 0), "v": ("trial", nq), "alpha": ("shares", 0)}
        writes = {"q": ("trial", 0), "v": ("trial", nq), "u": ("trial_u", 0)}
        total = {"total": ("tried", 0)}
        step = self._at(self.program.roll, reads | self._old | total, writes | total)
        copies = {"trial": nx, "trial_u": m, "tried": 3, "shares": 1, CODE: 1}
        body = s.segment(), Loop((step,), self.knots), end.segment()
        return Loop(body, TRIALS, apart=True, copies=tuple(copies.items()))

    def _pick(self) -> Segment:
        """The longest of these steps that is good enough."""
        s = Sketch("pick")
        tried = np.reshape(s.read(part("tried", 0, 3 * TRIALS), 3 * TRIALS), (TRIALS, 3))
        shares, (left,) = s.read("shares", TRIALS), s.read("left", 1)
        (alpha,), (accepted,) = s.read("alpha", 1), s.read("accepted", 1)
        chosen: Any = 0.0
        for share, (*total, code) in zip(shares[::-1], tried[::-1], strict=True):
            good = self._good(s, share, total, code)
            alpha, chosen = where(good, share, alpha), maximum(chosen, good)
        s.write("alpha", [alpha])
        s.write("chosen", [chosen])
        s.write("accepted", [accepted + chosen])
        s.write("left", [left * _not(chosen)])
        return s.segment()

    def copy(self) -> Loop:
        """Accepted trajectories take the place of the old ones."""
        s = Sketch("accept")
        (accepted,) = s.read("accepted", 1)
        old, new = (
            s.read(part("x", 0, self.row), self.row),
            s.read(part("new", 0, self.row), self.row),
        )
        chosen = [where(accepted, a, b) for a, b in zip(new, old, strict=True)]
        s.write(part("x", 0, self.row), chosen)
        moves = (part("x", 0, self.row), self.row), (part("new", 0, self.row), self.row)
        return Loop((replace(s.segment(), moves=moves),), self.knots + 1, apart=True)

    # ----------------------------------------------------------------------------- decisions

    def _judge(self) -> Segment:
        """After a sweep: which problems have ended, and which try a step."""
        s = Sketch("judge")
        first, second, cost, gap, worst, least = s.read("sums", len(SUMS))
        (on,), (code,), (tolerance,) = s.read("running", 1), s.read(CODE, 1), s.read("tolerance", 1)
        violated: Any = 0.0
        fresh: Any = 0.0
        if self.bounds:
            (allowed,), (fresh,), (rough,) = (s.read(x, 1) for x in ("allowed", "fresh", "rough"))
            violated = _above(worst - allowed)
            tolerance = where(violated, maximum(tolerance, rough), tolerance)
        (rho,), (ended,), (count,), (known,) = (
            s.read(x, 1) for x in ("rho", "ended", "count", "cost")
        )
        fine = _not(_above(code)) * _above(least) * _finite(first)
        closed = _not(_above(gap - 1e-20))
        scale = absolute(cost) + 1e-300
        small = _not(_above(absolute(first + 0.5 * second) - tolerance * scale))
        ready = on * fine * closed * small
        if self.bounds:
            ready = ready * _not(violated * fresh)
            s.write("violated", [violated])
            s.write("settling", [ready])
        else:
            ended = where(ready, SOLVED, ended)
        going = on * _not(ready)
        rho, ended = _raised(going * _not(fine), cost, rho, ended)
        s.write("rho", [rho])
        s.write("ended", [ended])
        s.write("count", [count + on])
        s.write("cost", [where(on, cost, known)])
        s.write("closed", [closed])
        s.write("left", [going * fine])
        s.write("accepted", [0.0])
        s.write("alpha", [1.0])
        return s.segment()

    def _try(self) -> Segment:
        """After a rollout: whether it keeps enough of what was promised."""
        s = Sketch("try")
        (left,), (alpha,), (accepted,) = (s.read(x, 1) for x in ("left", "alpha", "accepted"))
        (code,) = s.read(CODE, 1)
        good = left * self._good(s, alpha, s.read("total", 2), code)
        left = left * _not(good)
        s.write("accepted", [accepted + good])
        s.write("left", [left])
        s.write("alpha", [where(left, 0.5 * alpha, alpha)])
        if self.spread:
            s.write("chosen", [0.0])
        return s.segment()

    def _good(self, s: Sketch, alpha: Any, total: Any, code: Any) -> Any:
        """Whether a step with a share keeps enough of what was promised."""
        first, second, *_ = s.read("sums", len(SUMS))
        (closed,), (cost,), (new, change) = s.read("closed", 1), s.read("cost", 1), total
        expected = alpha * ((first + change) + 0.5 * alpha * (second - 2.0 * change))
        decrease = cost - new
        kept = _not(closed * _not(_above(decrease - KEPT * expected)))
        rises = _above(-expected)
        falls = _not(rises) * kept + rises * _not(closed) * _above(decrease - 2.0 * expected)
        return falls * _finite(new) * _finite(expected) * _not(_above(code))

    def _conclude(self) -> Segment:
        """After an iteration: regularisation, and how problems without a step ended."""
        s = Sketch("conclude")
        first, second, *_ = s.read("sums", len(SUMS))
        (left,), (alpha,), (closed,), (accepted,) = (
            s.read(x, 1) for x in ("left", "alpha", "closed", "accepted")
        )
        (cost,), (new, _) = s.read("cost", 1), s.read("total", 2)
        (rho,), (ended,) = s.read("rho", 1), s.read("ended", 1)
        less = maximum(0.1 * rho, LEAST)
        rho = where(accepted * _above(alpha - 0.5), less, rho)
        rho = where(accepted * _not(_above(alpha - SHORT)), 10.0 * rho, rho)
        gain, scale = absolute(first + 0.5 * second), absolute(cost) + 1e-300
        flat = left * closed * _not(_above(gain - FINEST * scale))
        rho, ended = _raised(left * _not(flat), cost, rho, ended)
        if self.bounds:
            (settling,), (fresh,) = s.read("settling", 1), s.read("fresh", 1)
            s.write("settling", [settling + flat])
            s.write("fresh", [maximum(settling + flat, fresh * _not(accepted))])
        else:
            ended = where(flat, SOLVED, ended)
        s.write("rho", [rho])
        s.write("ended", [ended])
        s.write("cost", [where(accepted, new, cost)])
        s.write(CODE, [0.0])  # that of a step that was not taken
        return s.segment()

    def _finish(self) -> Segment:
        """Which problems go on."""
        s = Sketch("finish")
        (ended,), (count,), (most,), (turns,) = (
            s.read(x, 1) for x in ("ended", "count", "most", "turns")
        )
        over = _not(_above(ended)) * _above(count - most + 0.5)
        ended = where(over, OUT_OF_TIME, ended)
        s.write("ended", [ended])
        s.write("turns", [turns - 1.0])
        s.write("running", [_not(_above(ended)) * _above(turns - 1.5)])
        return s.segment()

    def iteration(self) -> tuple[Statement, ...]:
        """One iteration of all problems that have not ended."""
        parts = *self.sweep(), self._judge(), *self.search(), self.copy(), self._conclude()
        return *parts, *self._settled(), self._finish()

    # --------------------------------------------------------------------------- constraints

    def penalised(self, weight: float | None = None) -> Loop:
        """Weights of constraints where they hold; the penalty by default."""
        s = Sketch("penalise")
        active = s.read("active", self.bounds)
        penalty = s.read("penalty", 1)[0] if weight is None else weight
        s.write("bounding", [penalty * x for x in active])
        place = {"bounding": ("weight", self.program.structure.rows - self.bounds)}
        return Loop((self._at(s.segment(), {}, place),), self.knots, apart=True)

    def _settled(self) -> tuple[Statement, ...]:
        """End, or update multipliers; penalties grow where that helps little."""
        if not self.bounds:
            return ()
        s = Sketch("decide")
        (settling,), (violated,), (spare,), (penalty,), (ended,) = (
            s.read(x, 1) for x in ("settling", "violated", "spare", "penalty", "ended")
        )
        (rough,), (before,), (unused,) = (s.read(x, 1) for x in ("rough", "before", "unused"))
        (cost,), (tolerance,) = s.read("cost", 1), s.read("tolerance", 1)
        worst, spare = s.read("sums", len(SUMS))[4], penalty * spare
        most = maximum(tolerance, FINEST) * absolute(cost)
        solved = settling * _not(violated) * _not(_above(spare - most))
        going = settling * _not(solved)
        more, less = going * violated, going * _not(violated)
        slow = more * _above(worst - LESS * before) + less * _above(spare - LESS * unused)
        finer = more * slow * _above(MUCH * before - worst)
        last = slow * _not(_above(STRONGEST - penalty))
        ended = where(last * violated, INFEASIBLE, where(solved + last, SOLVED, ended))
        s.write("settling", [going])
        s.write("before", [where(more, worst, before)])
        s.write("unused", [where(less, spare, unused)])
        s.write("ended", [ended])
        s.write("penalty", [where(slow, STRONGER * penalty, penalty)])
        s.write("rough", [where(finer, FINER * rough, rough)])
        s.write("scale", [where(slow, 1.0 / STRONGER, 1.0)])
        values = Loop((self._at(self.program.values, self._here),), self.knots, apart=True)
        parts = values, *self._unused(), s.segment(), self._multiplied(), self.penalised()
        return (Loop(parts, 1, again="settling"),)

    def _unused(self) -> tuple[Statement, ...]:
        """Σ |multiplier| slack / penalty of all constraints: how far bounds are that push."""
        blank, s = Sketch("blank"), Sketch("unused")
        blank.write("spare", [0.0])
        names = "c", "shift", "low", "high", "active"
        c, shift, low, high, active = (s.read(x, self.bounds) for x in names)
        (spare,) = s.read("spare", 1)
        for here, moved, least, most, on in zip(c, shift, low, high, active, strict=True):
            y = here + moved
            over = y - clip(y, least, most)
            slack = maximum(where(_above(over), most - here, here - least), 0.0)
            spare = spare + on * absolute(over) * slack
        s.write("spare", [spare])
        return blank.segment(), Loop((self._at(s.segment(), {}),), self.knots)

    def _multiplied(self) -> Loop:
        """Where settling, multipliers become the forces that penalties exert."""
        s = Sketch("multiply")
        c, shift, low, high = (s.read(x, self.bounds) for x in ("c", "shift", "low", "high"))
        (settling,), (scale,) = s.read("settling", 1), s.read("scale", 1)
        y = [a + b for a, b in zip(c, shift, strict=True)]
        over = [scale * (a - clip(a, *ends)) for a, *ends in zip(y, low, high, strict=True)]
        s.write("shift", [where(settling, a, b) for a, b in zip(over, shift, strict=True)])
        return Loop((self._at(s.segment(), {}),), self.knots, apart=True)

    def _priced(self) -> tuple[Statement, ...]:
        """Cost and violation without penalties."""
        if not self.bounds:
            return ()
        blank, s = Sketch("blank"), Sketch("price")
        blank.write("price", [0.0, 0.0])
        cost, worst = s.read("price", 2)
        layout = self.program.knot[1].layout
        e = s.read("e", 1 + max(x for y in layout for x in y.entries if isinstance(x, int)))
        here, off = layout[-1].of(e)
        s.write("price", [cost + here, maximum(worst, off)])
        s.write(CODE, [0.0])
        price = self._at(s.segment(), {})
        if self.spread:
            rest = *self._expansions(), blank.segment(), Loop((price,), self.knots)
        else:
            rest = blank.segment(), Loop((self._expansion, price), self.knots)
        return self.penalised(SHOWN), *rest

    # -------------------------------------------------------------------------------- kernel

    def begun(self) -> Segment:
        """What a problem begins with besides its trajectory."""
        _, recursion = self.program.knot
        s = Sketch("enter")
        s.write(part("gain", 0, recursion.gain), [0.0] * recursion.gain)
        return s.segment()

    @property
    def state(self) -> dict[str, int]:
        """What a call begins and ends with, with sizes."""
        return self.lasting | dict.fromkeys(("cost", "ended", "count"), 1)

    def first(self, batch: int) -> dict[str, Array]:
        """What problems begin with besides their trajectories, each (batch, 1, .)."""
        return {
            name: np.full((batch, 1, size), FIRST.get(name, 0.0))
            for name, size in self.state.items() if name != "x"
        }  # fmt: skip

    def stepping(self) -> Stepping:
        """A motion whose only step makes iterations: "turns" of them, unless all problems end."""
        s, note = Sketch("start"), Sketch("note")
        (ended,), (turns,) = s.read("ended", 1), s.read("turns", 1)
        s.write("running", [_not(_above(ended)) * _above(turns - 0.5)])
        history = part("history", 0, len(NOTED))
        sums = dict(zip(SUMS, note.read("sums", len(SUMS)), strict=True))
        note.write(history, [sums[x] for x in NOTED])
        noted = replace(note.segment(), moves=((history, len(NOTED)),))
        least = "" if self.spread else "together"
        solve = Loop((*self.iteration(), noted), ROUNDS, again="running", least=least)
        enter: list[Statement] = [self.begun(), s.segment()]
        enter += [self.penalised()] if self.bounds else []
        sizes = {"history": len(NOTED) * ROUNDS}
        shown = self.state | {"gain": dict(self.memory)["gain"]} | sizes
        shown |= {"price": 2} if self.bounds else {}
        begins = self.state | self.inputs | dict.fromkeys(("tolerance", "most", "turns"), 1)
        begins |= {"allowed": 1} if self.bounds else {}
        begins |= {"shares": TRIALS} if self.spread else {"together": 1}
        return Stepping(
            "shooting", 0, 0, (), (), tuple(enter), (solve, *self._priced()), (),
            tuple(shown.items()), tuple(begins.items()), memory=(*self.memory, *sizes.items()),
        )  # fmt: skip

    def packed(self, start: Any, guess: Any, xp: Any = np) -> Any:
        """Trajectories "x" (batch, .) from guesses (batch, K, nq + nv + nu), by NumPy or CuPy."""
        x = xp.concatenate([guess, guess[:, -1:]], axis=1)
        x[:, 0, : self.nx], x[:, -2:, self.nx :] = start, 0.0
        return x.reshape(len(x), -1)

    @cached_property
    def kernel(self) -> MotionKernel:
        """The same, compiled."""
        name = "solve", self.knots, self.timed
        return self.program.compiled(name, self.stepping)


@once_per_mechanism
def _routines(mech: Mechanism, structure: Structure) -> dict[Any, Routine]:
    return {}


def routine(
    program: Program, knots: int, timed: tuple[str, ...], *, spread: bool = False
) -> Routine:
    """The iterations of problems; the same one for the same arguments."""
    known = _routines(program.mech, program.structure)
    return known.setdefault((knots, timed, spread), Routine(program, knots, timed, spread))


def _above(x: Any) -> Any:
    """1 where x is above zero; 0 for NaN."""
    return x.gate(1.0)


def _not(x: Any) -> Any:
    return 1.0 - x


def _finite(x: Any) -> Any:
    return _above(1e300 - absolute(x))


def _raised(which: Any, cost: Any, rho: Any, ended: Any) -> tuple[Any, Any]:
    """More regularisation, or the end."""
    rho = where(which, 10.0 * rho, rho)
    over = which * _above(rho - MOST)
    fine = _finite(cost)
    return rho, where(over, NO_STEP * fine + NOT_FINITE * _not(fine), ended)
