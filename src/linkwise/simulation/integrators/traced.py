"""A step of an integrator as segments: its own code, traced and cut where it asks for u̇.

The step runs once on graph nodes. Each call of f ends a segment, which writes its arguments into
the registers q1 and u1; the accelerations, one segment that is called each time, put u̇ into a. What
a later segment needs is computed where it can be first, and kept in registers until its last use;
what takes a few operations from what is at hand is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping.passive import Passive
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators.integrator import Integrator
from linkwise.simulation.rates import check_turns, rate_acceleration, rates, velocities

AGAIN = 4
"""Values that take at most this many operations are recomputed rather than stored."""


def traced_stepping(
    scheme: Integrator, mech: Mechanism, forward: Traced, passive: Passive | None
) -> Stepping:
    """The segments of an explicit integrator on a mechanism."""
    held = tuple(x for x in forward.inputs if x[0] not in ("q", "v"))
    s, calls = Sketch("step"), list[list[int]]()
    state, (h,) = (s.read("q0", mech.nq), s.read("u0", mech.nv)), s.read(STEP, 1)

    def f(t: object, q: Any, u: Any) -> Any:
        calls.append([x.node for x in (*q, *u)])
        return s.read(f"a{len(calls)}", mech.nv)

    assert scheme.step is not None
    q, u = scheme.step(mech, f, 0.0, *state, h)
    ends = [*calls, [x.node for x in (*q, *u)]]
    alone = calls == [[x.node for x in (*state[0], *state[1])]]  # u̇ is evaluated once, at the start
    at = ("q0", "u0") if alone else ("q1", "u1")
    accelerate = _accelerate(mech, forward, passive, held, at)
    step = list[Segment]()
    for segment in _Cut(mech, s, ends).segments()[int(alone) :]:
        step += [segment, accelerate]
    step = [accelerate, *step[:-1]] if alone else step[:-1]
    parts = (_enter(mech),), tuple(step), (_leave(mech),)
    return Stepping(scheme.name, mech.nq, mech.nv, held, ("q0", "u0"), *parts)


def _enter(mech: Mechanism) -> Segment:
    """(q, v) to the state (q0, u0)."""
    s = Sketch("enter")
    q, v = s.read("q", mech.nq), s.read("v", mech.nv)
    s.write("q0", q)
    s.write("u0", rates(mech, q, v))
    return s.segment()


def _leave(mech: Mechanism) -> Segment:
    """The state (q0, u0) to (q, v)."""
    s = Sketch("leave")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    s.write("q", q)
    s.write("v", velocities(mech, q, u))
    return s.segment()


def _accelerate(
    mech: Mechanism,
    forward: Traced,
    passive: Passive | None,
    held: Sequence[tuple[str, int]],
    at: tuple[str, str],
) -> Segment:
    """a = u̇ of the registers of q and u, and of what is held."""
    s = Sketch("accelerate")
    q, u = s.read(at[0], mech.nq), s.read(at[1], mech.nv)
    v = velocities(mech, q, u)
    given = {"q": q, "v": v} | {name: s.read(name, size) for name, size in held}
    if passive is not None:
        given["tau"] = passive.added(given["tau"], q, v)
    vdot = np.empty(mech.nv, dtype=object)
    vdot[:] = s.replay(forward, given)
    s.write("a", rate_acceleration(mech, q, v, vdot))
    return s.segment()


class _Cut:
    """The graph of a step, cut into segments.

    Segment k comes after the k-th call of f and computes what the next one is called with, or the
    state at the end. A node belongs to the segment `home`, the first in which it can be computed
    and is needed.
    """

    def __init__(self, mech: Mechanism, sketch: Sketch, ends: list[list[int]]) -> None:
        self.mech, self.graph, self.ends = mech, sketch.graph, ends
        self.place = dict[int, tuple[str, int]]()  # of nodes that are inputs
        for name, values in sketch.reads.items():
            self.place |= {x.node: (name, i) for i, x in enumerate(values)}
        self.order = self.graph.used([n for end in ends for n in end])
        self.stage = dict[int, int]()
        for n in self.order:
            name, _ = self.place.get(n, ("", 0))
            late = int(name[1:]) if name[:1] == "a" else 0
            self.stage[n] = max([late, *(self.stage[x] for x in self._operands(n))])
        self.called = [  # where the arguments of each call are, right behind it
            {n: ("q1", i) if i < mech.nq else ("u1", i - mech.nq) for i, n in enumerate(end)}
            for end in ends
        ]
        self.home, self.register = self._homes(), dict[int, tuple[str, int]]()
        self.kept, self.last = self._crossings()
        self.register = self._registers()

    def _operands(self, n: int) -> list[int]:
        if self.graph.op[n] in ("const", "input"):
            return []
        return [x for x in (self.graph.a[n], self.graph.b[n]) if x >= 0]

    def _homes(self) -> dict[int, int]:
        home = {n: self.stage[n] or len(self.ends) for n in self.order}
        for k, end in enumerate(self.ends):
            for n in end:
                home[n] = self.stage[n] or min(home[n], k)
        for n in reversed(self.order):
            for x in self._operands(n):
                home[x] = self.stage[x] or min(home[x], home[n])
        return home

    def _place(self, n: int, k: int) -> tuple[str, int] | None:
        """The register from which segment k has a node; None if it computes it."""
        name, i = self.place.get(n, ("", 0))
        if name in ("q0", "u0", STEP):
            return name, i
        if self.home[n] == k:
            return ("a", i) if name else None
        if k and n in self.called[k - 1]:
            return self.called[k - 1][n]
        if self._work(n, k) <= AGAIN:
            return None
        return self.register.get(n, ("kept", -1))

    def _work(self, n: int, k: int) -> int:
        """Operations to make a node of the state and of what f was last called with."""
        name, _ = self.place.get(n, ("", 0))
        if name in ("q0", "u0", STEP) or self.graph.op[n] == "const" or n in self.called[k - 1]:
            return 0
        total = 1 if not name else AGAIN + 1
        for x in self._operands(n):
            total += self._work(x, k) if total <= AGAIN else 0
        return total

    def _needed(self, k: int, roots: Iterable[int]) -> list[int]:
        """What segment k reads or computes for some nodes, in the order of the graph."""
        seen, left = set[int](), list(roots)
        while left:
            n = left.pop()
            if n not in seen:
                seen.add(n)
                left += [] if self._place(n, k) else self._operands(n)
        return sorted(seen)

    def _crossings(self) -> tuple[list[list[int]], dict[int, int]]:
        """What each segment keeps for later ones, and the last segment that needs it."""
        kept = [dict[int, None]() for _ in self.ends]
        last = dict[int, int]()
        for k in reversed(range(len(self.ends))):
            for n in self._needed(k, [*self.ends[k], *kept[k]]):
                if self._place(n, k) == ("kept", -1):
                    kept[self.home[n]][n] = None
                    last[n] = max(last.get(n, 0), k)
        return [sorted(x) for x in kept], last

    def _registers(self) -> dict[int, tuple[str, int]]:
        """A place for each node that is kept; registers are used again when they are not needed."""
        size = max(self.mech.nv, 1)
        registers, busy = dict[int, tuple[str, int]](), list[tuple[int, int]]()  # (size, until)
        for k, nodes in enumerate(self.kept):
            for until in sorted({self.last[n] for n in nodes}):
                group = [n for n in nodes if self.last[n] == until]
                for start in range(0, len(group), size):
                    part = group[start : start + size]
                    free = (i for i, x in enumerate(busy) if x[0] == len(part) and x[1] <= k)
                    i = next(free, len(busy))
                    busy[i : i + 1] = [(len(part), until)]
                    registers |= {n: (f"kept{i}", j) for j, n in enumerate(part)}
        self.sizes = {f"kept{i}": width for i, (width, _) in enumerate(busy)}
        return registers

    def segments(self) -> list[Segment]:
        """All of them, in order."""
        return [self._segment(k) for k in range(len(self.ends))]

    def _segment(self, k: int) -> Segment:
        s, mech = Sketch(f"stage{k}"), self.mech
        sizes = {"q0": mech.nq, "u0": mech.nv, "q1": mech.nq, "u1": mech.nv, "a": mech.nv, STEP: 1}
        values = dict[int, Scalar]()
        for n in self._needed(k, [*self.ends[k], *self.kept[k]]):
            place = self._place(n, k)
            if place is None:
                values[n] = self._computed(s, n, [values[x].node for x in self._operands(n)])
            else:
                values[n] = s.read(place[0], (sizes | self.sizes)[place[0]])[place[1]]
        final = k + 1 == len(self.ends)
        q, u = ("q0", "u0") if final else ("q1", "u1")
        s.write(q, [values[n] for n in self.ends[k][: mech.nq]])
        s.write(u, [values[n] for n in self.ends[k][mech.nq :]])
        groups = dict[str, list[Scalar]]()
        for n in self.kept[k]:
            groups.setdefault(self.register[n][0], []).append(values[n])
        for name, group in groups.items():
            s.write(name, group)
        if final:
            (h,) = s.read(STEP, 1)
            check_turns(s, mech, [h * x for x in s.writes["u0"]])
        return s.segment()

    def _computed(self, s: Sketch, n: int, operands: list[int]) -> Scalar:
        """An operation or a constant, in the graph of a segment."""
        op, here = self.graph.op[n], s.graph
        if op == "const":
            return s.scalar(self.graph.value[n])
        if op == "neg":
            return Scalar(here, here.neg(*operands))
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul, "gate": here.gate}
        return Scalar(here, binary[op](*operands) if op in binary else here.unary(op, *operands))
