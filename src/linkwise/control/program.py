"""The kernels of a problem: expansions of knots, the Riccati sweep, and the rollout forward.

Each is a motion in the sense of `codegen.stepping`: segments of straight code over registers, with
a loop over time in the kernel. For a single problem the lanes hold its knots, which are expanded
all at once (`expand`), and `sweep` runs the recursion alone. For a batch they hold problems:
`routine.py` makes one kernel, which expands each knot (`knot`) just before its Riccati step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.codegen.writing import Writing
from linkwise.control.recursion import BLANK, SUMS, Recursion
from linkwise.control.residual import rows_of
from linkwise.control.shooting import (
    Structure,
    chooses_velocities,
    forces_of_rows,
    forward,
    knot,
)
from linkwise.control.velocity_recursion import VelocityRecursion
from linkwise.dynamics.kernels import written
from linkwise.errors import LoweringError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism


@dataclass(frozen=True, eq=False)
class PartRequest:
    """The request for one kernel of a program."""

    mech: Mechanism
    name: tuple[Any, ...]  # which part
    structure: Structure
    make: Callable[[], Stepping]
    alone: bool  # whether it is for a single problem
    integrator: str = "shooting"
    itemsize: int = 8

    @property
    def content(self) -> Any:
        """Everything that the segments depend on."""
        return *self.name, self.structure

    def stepping(self, target: str) -> Stepping:
        """The segments, alike for all targets."""
        del target
        return self.make()


@dataclass(frozen=True)
class Program:
    """The kernels of a mechanism and a structure, made when they are needed."""

    mech: Mechanism
    structure: Structure

    @property
    def n(self) -> int:
        """Numbers of δx."""
        return 2 * self.mech.nv

    @property
    def m(self) -> int:
        """Numbers of u."""
        return len(self.structure.driven)

    def _writing(self) -> Writing:
        formula = Formula(_nothing)
        request = Request(formula, self.mech, (), self.structure.parameters)
        if self.mech.n_bodies > LARGEST:
            raise LoweringError(
                f"lw.optimize was called for {self.mech.name!r} with {self.mech.n_bodies} bodies; "
                f"it handles at most {LARGEST}, because its kernels are straight-line code. Lock "
                "joints that do not matter (mech.lock)."
            )
        return Writing(request, plain=bool(self.structure.parameters))

    @cached_property
    def roll(self) -> Segment:
        """A step of the rollout: u, the next state, and the sums of costs."""
        at = self._writing()
        u, q, v, cost, change = forward(at, self.structure)
        total = at.read("total", 2)
        both = [total[0] + cost[0], total[1] + change[0]]
        writes = {"u": list(u), "q": list(q), "v": list(v), "total": both}
        return _segment(at, "forward", writes)

    @cached_property
    def values(self) -> Segment:
        """The bounded rows c at a knot."""
        at = self._writing()
        return _segment(at, "values", {"c": list(_bounded(at, self.structure))})

    @cached_property
    def knot(self) -> tuple[Segment, Recursion]:
        """The expansion of a knot into dense memory, and the recursion that reads it."""
        at = self._writing()
        W, values, layout = knot(at, self.structure)
        kind = VelocityRecursion if chooses_velocities(self.mech, self.structure) else Recursion
        recursion = kind(layout, self.n, self.m, bounded=self.structure.boxed)
        padded = np.full((len(W), recursion.wide), 0.0, dtype=object)
        padded[:, : W.shape[1]] = W
        return _segment(at, "expand", {"e": list(values), "W": list(padded.ravel())}), recursion

    @cached_property
    def expand(self) -> MotionKernel:
        """Expansions e and W of knots; each is a motion of one step."""

        def make() -> Stepping:
            segment, mech = self.knot[0], self.mech
            held = _held((segment,), {"q", "v"})
            return Stepping(
                "shooting", mech.nq, mech.nv, held, (), (), (segment,), (), segment.writes
            )

        return self.compiled(("expand",), make)

    @cached_property
    def sweep(self) -> MotionKernel:
        """The Riccati sweep from the last knot to the first, of expansions e and W."""

        def make() -> Stepping:
            _, recursion = self.knot
            s, sizes = Sketch("begin"), dict(recursion.memory)
            s.write("p", [0.0] * self.n)
            s.write("sums", list(BLANK))
            s.write("P", [0.0] * sizes["P"])
            step = recursion.segments()
            wide = "W", sizes.pop("W")
            shown = ("gain", recursion.gain), ("sums", len(SUMS))
            made = {"p", "sums", "known", "free", "gain", "W", *sizes}
            held = [x for x in _held(step, made) if "[" not in x[0]]
            return Stepping(
                "shooting", 0, 0, (*held, wide), ("p", "sums"), (s.segment(),), step, (), shown,
                memory=(*sizes.items(), ("gain", recursion.gain)),
            )  # fmt: skip

        return self.compiled(("sweep",), make, alone=True)

    def forward_stepping(self) -> Stepping:
        """The rollout with the gains of a sweep; shows u and the sums of costs."""
        mech, s = self.mech, Sketch("begin")
        s.write("total", [0.0, 0.0])
        segment = self.roll
        held = _held((segment,), {"q", "v", "total"})
        shown = ("u", self.m), ("total", 2)
        state = "q", "v", "total"
        return Stepping(
            "shooting", mech.nq, mech.nv, held, state, (s.segment(),), (segment,), (), shown
        )

    @cached_property
    def forward(self) -> MotionKernel:
        """The same, compiled."""
        return self.compiled(("forward",), self.forward_stepping, alone=True)

    @cached_property
    def bounded(self) -> Any:
        """The kernel of the bounded rows (c,) at a knot, of its inputs; None without bounds."""
        terms = self.structure.terms
        if not any(term.bounded for term in terms):
            return None
        return written(self.mech, Formula(_bounded, (self.structure,)))

    @cached_property
    def forces(self) -> Any:
        """The kernel of the forces λ of loops, couplings and contacts at a knot, of its inputs."""
        return written(self.mech, Formula(forces_of_rows, (self.structure,)))

    def compiled(self, name: tuple[Any, ...], make: Any, *, alone: bool = False) -> MotionKernel:
        """A kernel of this mechanism and structure, by name; `alone` for a single problem."""
        try:
            return MotionKernel(PartRequest(self.mech, name, self.structure, make, alone))
        except TooLongError:
            raise LoweringError(
                f"lw.optimize was called for {self.mech.name!r}; its dynamics are too long for "
                "straight-line code."
            ) from None


LARGEST = 40
"""Bodies of a mechanism whose knots are straight-line code."""


@once_per_mechanism
def program(mech: Mechanism, structure: Structure) -> Program:
    """The kernels of a mechanism and a structure."""
    return Program(mech, structure)


def _nothing(at: Writing) -> Any:
    raise AssertionError("knots are written part by part")


def _bounded(at: Writing, s: Structure) -> Any:
    u = np.full(len(s.driven), 0.0, dtype=object)
    felt = any(term.kind in ("force", "cone") for term in s.terms)
    pull = (forces_of_rows(at, s), None) if felt else None
    r, _, _ = rows_of(at, s.terms, u, derivatives=False, bare=True, pull=pull)
    keep = [term.bounded for term in s.terms for _ in range(term.rows)]
    return r[keep]


def _segment(at: Writing, name: str, writes: dict[str, list[Any]]) -> Segment:
    """What was written, as a segment."""
    for register, values in writes.items():
        at.write(register, values)
    sizes = tuple((register, len(values)) for register, values in writes.items())
    return Segment(name, at.traced(), sizes)


def _held(step: tuple[Segment, ...], made: set[str]) -> tuple[tuple[str, int], ...]:
    """What the segments read that is given from outside."""
    reads = dict[str, int]()
    for segment in step:
        reads |= dict(segment.reads)
    return tuple((x, n) for x, n in reads.items() if x not in made and x != STEP)
