"""Robots of more bodies than straight code is for, moved step by step from Python.

What a simulator needs of a kernel of motions (`codegen/stepping/resident.py`), by `LongSteps`: one
robot after the other, with everything that lasts in rows of memory between calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.kernel import kernel as build
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.kernel import describe
from linkwise.codegen.stepping.resident import first_seen, seen_range, viewed
from linkwise.codegen.stepping.stepping import Place
from linkwise.dynamics.kernels import kernel, tree_of
from linkwise.errors import LoweringError, ModelError, unknown_name
from linkwise.simulation.actuation import write_actuation
from linkwise.simulation.episode import NOTHING
from linkwise.simulation.implicit.long_steps import LongSteps, Numbers
from linkwise.simulation.implicit.step_record import State, Steps
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.observation import BASE, PLACES, Observed
from linkwise.simulation.rates import is_traceable
from linkwise.spatial.array import Array

STATE = ("q0", "v0", "impulse", "activation", "worst")
"""Parts of the state that lasts; "worst" is residual, unsolved, deepest and slip."""

WORST = ("residual", "unsolved", "deepest", "slip")
"""Observations of what the solver left, and of contacts at worst."""

Look = Callable[["After"], Any]
"""Computes an observation."""


@dataclass(frozen=True, slots=True, eq=False)
class After:
    """What is observed after some steps.

    Attributes:
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        activation: Of actuators.
        worst: `WORST`.
        inputs: "tau" (joint forces of the last step, with actuators), and "control".
        force: At contacts (c, 3) [N].
    """

    q: Array
    v: Array
    activation: Array
    worst: Array
    inputs: Mapping[str, Array]
    force: Array


def long_simulation(request: MotionRequest, target: str, why: LoweringError) -> LongSimulation:
    """The steps of a simulator where no kernel can be compiled.

    Raises:
        LoweringError: These steps cannot be made one by one either; `why`.
    """
    plain = request.episode == NOTHING and not request.parameters and request.sweeps is None
    long = request.integrator == "implicit" and is_traceable(request.mech)
    if not (plain and long and target == "cpu" and request.itemsize == 8):
        raise LoweringError(
            f"{why} Steps by 'implicit' are made one by one on the 'cpu' in float64, without "
            "parameters, noise, conditions and sweeps=."
        ) from None
    return LongSimulation(request)


class LongSimulation:
    """Implicit steps that resume, of mechanisms of any length.

    Attributes:
        mech: The mechanism.
        held: What is held over each step, with lengths.
        layout: What rows of memory are made of.
        device: Itself, which makes motions that stay in memory.
    """

    def __init__(self, request: MotionRequest) -> None:
        self.mech = mech = request.mech
        acts = {"actuated": request.actuated, "passive": request.passive}
        self.stepper, self.actuated = LongSteps(mech, request.contacts, **acts), request.actuated
        motors = (("control", len(mech.actuators)),) if request.actuated else ()
        self.held: tuple[tuple[str, int], ...] = (("tau", mech.nv), *motors)
        self.device = self
        first = self.stepper.first(mech.neutral(), np.zeros(mech.nv))
        self.looks = {x.name: self._look(x, len(first.activation)) for x in request.observations}
        inputs = {name: np.zeros(n) for name, n in self.held}
        none = np.zeros(len(WORST)), inputs, np.zeros((len(request.contacts), 3))
        start = After(first.q, first.v, first.activation, *none)
        shapes = {name: np.shape(look(start)) for name, look in self.looks.items()}
        sizes = (mech.nq, mech.nv, len(first.impulse), len(first.activation), len(WORST))
        layout, end = list[Place](), 1
        for kind, parts in (
            ("state", {name: (n,) for name, n in zip(STATE, sizes, strict=True)}),
            ("seen", shapes),
            ("now", {"q": (mech.nq,), "v": (mech.nv,)}),
        ):
            for name, shape in parts.items():
                layout.append(Place(kind, name, end, shape))
                end += math.prod(shape)
        self.layout, self.width = tuple(layout), end

    def describe(self, code: int) -> str:
        """The meaning of a status code, naming the body."""
        return describe(self.mech, code)

    def resident(self, inputs: Mapping[str, Array], course: Course) -> LongResident:
        """A batch of motions that stay in memory."""
        return LongResident(self, inputs, course)

    # --------------------------------------------------------------------------- observations

    def _look(self, one: Observed, activations: int) -> Look:
        """What computes an observation."""
        what, mech = one.what, self.mech
        if isinstance(what, Request):
            return self._of_request(what)
        kind, _, node = what.partition(":")
        known: dict[str, Look] = {"q": lambda x: x.q, "v": lambda x: x.v}
        for name, _ in self.held:
            known[name] = lambda x, name=name: x.inputs[name]
        if activations:
            known["activation"] = lambda x: x.activation
        if self.stepper.joints or self.stepper.points:
            for i, name in enumerate(WORST if self.stepper.points else WORST[:2]):
                known[name] = lambda x, i=i: x.worst[i : i + 1]
        if self.stepper.points:
            known["contact_forces"] = lambda x: x.force
        if what in known:
            return known[what]
        if what in BASE and mech.n_bodies:
            return self._base(what, mech.bodies[0].name)
        if kind in PLACES and node:
            return self._place(kind, node)
        every = [*known, *BASE, *(f"{x}:{n.name}" for x in PLACES for n in mech.nodes)]
        raise unknown_name("observation", what, every, owner=f"mechanism {mech.name!r}")

    def _of_request(self, request: Request) -> Look:
        made = build(request, "cpu")
        names = made.arguments
        if not {"q", "v", "tau"} >= set(names):
            raise ModelError(
                f"an observation depends on {', '.join(names)}; it must be a function of q, v and "
                "tau."
            )

        def look(x: After) -> Any:
            given = {"q": x.q, "v": x.v, "tau": x.inputs["tau"]}
            return np.atleast_1d(made(*(given[name] for name in names)))

        return look

    def _base(self, what: str, base: str) -> Look:
        down = self.mech.gravity / (float(np.linalg.norm(self.mech.gravity)) or 1.0)
        if what == "base_velocity":
            return self._moving(base, "node")
        pose = self._pose(base)
        if what == "base_height":
            return lambda x: pose(x)[2:, 3]
        return lambda x: pose(x)[:, :3].T @ down

    def _place(self, kind: str, node: str) -> Look:
        mech = self.mech
        if node not in mech.node_index and node not in mech.body_index:
            known = [*mech.node_index, *(b.name for b in mech.bodies)]
            raise unknown_name("node or body", node, known, owner=f"mechanism {mech.name!r}")
        if kind == "velocity":
            return self._moving(node, "world")
        pose = self._pose(node)
        if kind == "position":
            return lambda x: pose(x)[:, 3]
        return lambda x: pose(x)[:, :3]

    def _pose(self, node: str) -> Callable[[After], Array]:
        at = kernel(tree_of(self.mech), "node_poses", (node,))
        return lambda x: at(x.q).reshape(3, 4)

    def _moving(self, node: str, frame: Any) -> Look:
        at = kernel(tree_of(self.mech), "node_velocity", (node,), frame=frame)
        return lambda x: at(x.q, x.v).reshape(6)


class LongResident:
    """A batch of motions by `LongSteps`, in the memory of the computer.

    Attributes:
        inputs: What is held over the steps of a call, by name, each (batch, n); to be written.
        rows: The records (batch, width).
        status: A code for each motion (batch,), 0 for success.
        turn: 0: there is one array of records.
    """

    turn = 0

    def __init__(self, made: LongSimulation, inputs: Mapping[str, Array], course: Course) -> None:
        self._of, self._course = made, course
        self.inputs = {name: np.array(x, np.float64, order="C") for name, x in inputs.items()}
        batch = len(next(iter(self.inputs.values())))
        self.rows: Array = np.zeros((batch, made.width))
        self.status: NDArray[np.int32] = np.zeros(batch, np.int32)

    @property
    def state(self) -> Array:
        """Everything that lasts (batch, n): to be saved and put back."""
        return self.rows[:, : first_seen(self._of.layout)]

    def view(self, kind: str, name: str) -> Array:
        """Some numbers of the records (batch, ...), as they are in memory."""
        return viewed(self.rows, self._of.layout, kind, name)

    def seen(self) -> Array:
        """All observations (batch, n), as they are in memory."""
        return self.rows[:, seen_range(self._of.layout)]

    def taken(self, name: str, value: Any) -> Any:
        """An array of the caller as one of NumPy."""
        return arrays.here(name, value)

    def begin(self, which: Any, q: Any, v: Any) -> None:
        """Begin some motions anew; the arguments are those of `Resident.begin`."""
        index = range(len(self.rows)) if which is None else np.flatnonzero(which).tolist()
        for i in index:
            self.status[i], self.rows[i] = 0, 0.0
            now = self._of.stepper.first(np.array(q[i]), np.array(v[i]))
            self._put(i, now, {n: x[i] for n, x in self.inputs.items()}, np.zeros(len(WORST)))

    def advance(self) -> None:
        """Move all motions on."""
        h, steps = self._course.step, self._course.steps
        for i in range(len(self.rows)):
            now, before = self._state(i)
            if not (np.isfinite(now.q).all() and np.isfinite(now.v).all()):
                self.status[i] = status.INPUT
                continue
            held = {name: x[i] for name, x in self.inputs.items()}
            control = held.get("control", np.zeros(0))
            made = self._of.stepper.advance(now, h, steps, held["tau"][None], control[None])
            self.status[i] = made.status
            if made.status:
                continue
            held["tau"] = self._pushed(now, made, held)
            self._put(i, made.last, held, _at_worst(made, before), made.touches.force[-1])

    def _state(self, i: int) -> tuple[State, Array]:
        """What a motion goes on from, and what was worst so far."""
        parts = [self.view("state", name)[i].copy() for name in STATE]
        return State(*parts[:4]), parts[4]

    def _pushed(self, now: State, made: Steps, held: Mapping[str, Array]) -> Array:
        """Joint forces at the beginning of the last step, with those of actuators."""
        if not self._of.actuated:
            return held["tau"]
        q, v = (x[-1] for x in made.before)
        a = made.activation[-2] if len(made) > 1 else now.activation
        before, given = State(q, v, now.impulse, a), (held["tau"], held["control"])
        at = Numbers(self._of.mech, before, self._course.step, *given)
        write_actuation(at, self._of.mech, slopes=False)
        return at.writes["tau"]

    def _put(
        self,
        i: int,
        now: State,
        held: Mapping[str, Array],
        worst: Array,
        force: Array | None = None,
    ) -> None:
        """Put a state and what is observed of it into memory."""
        values = (now.q, now.v, now.impulse, now.activation, worst)
        for name, x in zip(STATE, values, strict=True):
            self.view("state", name)[i] = x
        force = np.zeros((len(self._of.stepper.points), 3)) if force is None else force
        after = After(now.q, now.v, now.activation, worst, held, force)
        for name, look in self._of.looks.items():
            self.view("seen", name)[i] = look(after)
        self.view("now", "q")[i], self.view("now", "v")[i] = now.q, now.v


def _at_worst(made: Steps, before: Array) -> Array:
    """`WORST` after some steps."""
    touches = made.touches
    slip = np.where(touches.touching, touches.slip, 0.0).max(initial=0.0)
    largest = made.residual.max(initial=0.0), -touches.gap.min(initial=0.0), slip
    return np.array([made.residual[-1], *np.maximum(before[1:], largest)])
