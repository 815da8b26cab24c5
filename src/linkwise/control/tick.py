"""One tick of a receding horizon as statements: move the plan on, iterate, give the joint forces.

The plan is the trajectory "x" of `routine.py`, and lasts. The input "now" is the measured state;
"advance" is 1 where the plan moves on by a step before, 0 where it stays, and below zero where it
begins anew, at rest in the measured position without force.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.llvm import CODE
from linkwise.codegen.stepping.stepping import (
    STEP,
    Loop,
    Segment,
    Sketch,
    Statement,
    Stepping,
    part,
    prefixed,
)
from linkwise.control.routine import FIRST, FOREVER, Routine
from linkwise.control.solver import PENALTY
from linkwise.simulation.rates import velocities
from linkwise.spatial.array import Array
from linkwise.spatial.choice import where

ALLOWED = 1e-4
"""Largest violation of a bound that a plan accepts [m, rad, ...]."""


@dataclass(frozen=True)
class Tick:
    """A tick of problems with K knots.

    Attributes:
        routine: The iterations.
    """

    routine: Routine

    @property
    def inputs(self) -> dict[str, int]:
        """What is given besides the plan, with sizes."""
        return {"now": self.routine.nx, "advance": 1, "most": 1, **self.routine.inputs}

    @property
    def lasting(self) -> tuple[tuple[str, int], ...]:
        """Registers that go from one tick to the next."""
        return tuple(self.routine.lasting.items())

    def statements(self) -> tuple[Statement, ...]:
        """All of a tick."""
        r = self.routine
        shift = self._shifted(0, r.nx, r.knots - 1)
        forces = self._shifted(r.nx, r.row - r.nx, r.knots - 2)
        solve = Loop(r.iteration(), FOREVER, again="running")
        begun = self._anew("x", r.row, r.knots + 1), self._measured()
        if r.bounds:
            multipliers = self._shifted(0, r.bounds, r.knots - 1, "shift", r.bounds)
            blank = self._anew("shift", r.bounds, r.knots)
            begun = multipliers, *begun, blank, *self._eased(), r.penalised()
        return shift, forces, *begun, solve, self._forces()

    def _shifted(
        self, start: int, size: int, count: int, register: str = "x", row: int = 0
    ) -> Loop:
        """Rows take the place of those before them."""
        row, s = row or self.routine.row, Sketch("shift")
        here, after = part(register, start, size), part(register, row + start, size)
        (advance,) = s.read("advance", 1)
        pairs = zip(s.read(after, size), s.read(here, size), strict=True)
        s.write(here, [where(advance, a, b) for a, b in pairs])
        return Loop((replace(s.segment(), moves=((here, row), (after, row))),), max(count, 0))

    def _eased(self) -> tuple[Statement, ...]:
        """The first penalty again, with multipliers that push as before.

        A few iterations cannot follow a penalty that grew while a plan was refined.
        """
        s, r = Sketch("ease"), self.routine
        s.write("scale", [s.read("penalty", 1)[0] / PENALTY])
        s.write("penalty", [PENALTY])
        each, row = Sketch("rescale"), part("shift", 0, r.bounds)
        (scale,) = each.read("scale", 1)
        each.write(row, [scale * x for x in each.read(row, r.bounds)])
        moved = replace(each.segment(), moves=((row, r.bounds),))
        return s.segment(), Loop((moved,), r.knots)

    def _anew(self, register: str, row: int, count: int) -> Loop:
        """Rows of a plan that begins anew: the measured position at rest, and zero."""
        r, s = self.routine, Sketch("anew")
        nq, name = r.program.mech.nq if register == "x" else 0, part(register, 0, row)
        (advance,) = s.read("advance", 1)
        first = [*(s.read("now", r.nx)[:nq] if nq else ()), *[0.0] * (row - nq)]
        old = s.read(name, row)
        s.write(name, [where(-advance, a, b) for a, b in zip(first, old, strict=True)])
        return Loop((replace(s.segment(), moves=((name, row),)),), count)

    def _measured(self) -> Segment:
        """The first state is the measured one."""
        r, s = self.routine, Sketch("measured")
        (advance,), (most,) = s.read("advance", 1), s.read("most", 1)
        for name, size in r.lasting.items():
            if size == 1 and name not in ("rough", "before", "unused"):
                s.write(name, [where(-advance, FIRST.get(name, 0.0), s.read(name, 1)[0])])
        s.write(part("x", 0, r.nx), list(s.read("now", r.nx)))
        for name, size in r.begun().writes:
            s.write(name, [0.0] * size)
        for name in ("ended", "count", "cost"):
            s.write(name, [0.0])
        s.write("running", [(most - 0.5).gate(1.0)])
        s.write("turns", [float(FOREVER)])
        s.write("tolerance", [1e-9])
        if r.bounds:
            s.write("allowed", [ALLOWED])
            # a plan that moves on keeps its multipliers, and improves them as soon as it can
            for name in ("rough", "before", "unused"):
                s.write(name, [FIRST[name]])
        return s.segment()

    def _forces(self) -> Segment:
        """u of the first step, as joint forces."""
        r, s = self.routine, Sketch("forces")
        u = s.read(part("x", r.nx, r.program.m), r.program.m)
        tau: list[Any] = [0.0] * r.program.mech.nv
        for i, x in zip(r.program.structure.driven, u, strict=True):
            tau[i] = x
        s.write("tau", tau)
        return s.segment()

    def stepping(self) -> Stepping:
        """A motion whose only step is a tick; what lasts is given and shown."""
        shown = (*self.lasting, ("tau", self.routine.program.mech.nv), ("cost", 1))
        begins = (*self.lasting, *self.inputs.items())
        return Stepping(
            "shooting", 0, 0, (), (), (), self.statements(), (), shown, begins,
            memory=self.routine.memory,
        )  # fmt: skip

    @cached_property
    def kernel(self) -> MotionKernel:
        """The same, compiled."""
        r = self.routine
        return r.program.compiled(("tick", r.knots, r.timed), self.stepping, alone=True)


class Plan:
    """The memory of a plan, and the call of a tick on it.

    Attributes:
        given: Inputs by name, to be written.
        tau: Joint forces (nv,) of the last tick.
    """

    def __init__(self, tick: Tick, held: dict[str, Any], step: float) -> None:
        self.tick, kernel = tick, tick.kernel
        self.rows = np.zeros((1, 1, kernel.width))
        self.given = {x: np.zeros(n) for x, n in tick.inputs.items()}
        for name in tick.routine.inputs:
            self.given[name][:] = held[name].ravel()
        size, nv = dict(tick.lasting)["x"], tick.routine.program.mech.nv
        lasting, end = dict[str, Any](), 0
        for name, n in tick.lasting:
            lasting[name], end = self.rows[:, 0, end : end + n], end + n
        nothing = np.zeros((1, 0))
        self._call, self._done = kernel.repeated(
            nothing, nothing, lasting | self.given, Course(step, 1, 1, 1), self.rows
        )
        self.tau = self.rows[0, 0, end : end + nv]
        self._size = size

    @property
    def trajectory(self) -> Any:
        """q, v and u of all knots (K, .)."""
        r = self.tick.routine
        return self.rows[0, 0, : self._size].reshape(r.knots + 1, r.row)[: r.knots]

    @property
    def cost(self) -> float:
        """What it costs."""
        return float(self.rows[0, 0, -1])

    def advance(self, now: Array, by: int, iterations: int) -> None:
        """A tick from a measured state, in which the plan moves on by 1 step, 0, or begins: -1."""
        given = self.given
        given["now"][:], given["advance"][0], given["most"][0] = now, by, iterations
        self._call()


PREFIX = "plan."
"""Of registers of a plan among those of a motion."""


def in_steps(tick: Tick, stepping: Stepping, step: float, first: int, later: int) -> Stepping:
    """A motion each of whose steps begins with a tick, whose forces are held over it and shown.

    Args:
        tick: The tick.
        stepping: The motion.
        step: Length of a step of the plan [s].
        first: Iterations of the first tick.
        later: Those of the others.
    """
    mech = tick.routine.program.mech
    s = Sketch("begin")
    s.write("phase", [-1.0])
    # registers whose first value is not used, but has to be a number
    blank = list[Statement]()
    for name, size in tick.lasting:
        zero, piece = Sketch("blank"), PREFIX + part(name, 0, 1)
        zero.write(piece, [0.0])
        blank.append(Loop((replace(zero.segment(), moves=((piece, 1),)),), size))
    sense = Sketch("sense")
    q, u = sense.read("q0", mech.nq), sense.read("u0", mech.nv)
    (phase,), (h,), (code,) = (sense.read(x, 1) for x in ("phase", STEP, CODE))
    begun = 1.0 - (-phase).gate(1.0)
    ahead = phase + h * (1.0 / step)
    full = (ahead - (1.0 - 1e-9)).gate(1.0)
    sense.write(PREFIX + "now", [*q, *velocities(mech, q, u)])
    sense.write(PREFIX + "advance", [where(begun, full, -1.0)])
    sense.write(PREFIX + "most", [where(begun, float(later), float(first))])
    sense.write("phase", [where(begun, ahead - full, 0.0)])
    sense.write(PREFIX + "h", [step])
    sense.write("known_code", [code])
    act = Sketch("act")
    act.write("tau", list(act.read(PREFIX + "tau", mech.nv)))
    act.write(CODE, list(act.read("known_code", 1)))
    given = tuple((PREFIX + x, n) for x, n in tick.routine.inputs.items())
    memory = tuple((PREFIX + x, n) for x, n in tick.routine.memory)
    ticking = sense.segment(), *prefixed(tick.statements(), PREFIX), act.segment()
    return replace(
        stepping,
        held=tuple(x for x in stepping.held if x[0] != "tau"),
        begins=(*stepping.begins, *given),
        enter=(*stepping.enter, s.segment(), *blank),
        step=(*ticking, *stepping.step),
        memory=(*stepping.memory, *memory),
        shown=(*stepping.shown, ("tau", mech.nv)),
    )
