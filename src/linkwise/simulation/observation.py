"""What a simulator shows after each step: numbers by name, computed in the kernel of the step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.request import Request
from linkwise.codegen.stages import is_rolled, traced
from linkwise.codegen.stepping.stepping import STEP, Segment, Stepping
from linkwise.codegen.writing import Writing
from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.quantity import QUANTITIES, expression
from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint, HeightField, axes_of
from linkwise.simulation.implicit.segments import NORMAL
from linkwise.simulation.lasting_state import SHOWN

Observation: TypeAlias = str | Expr | Kernel

Observations: TypeAlias = Sequence[str] | Mapping[str, Observation]
"""Names, or what to observe under a name of the caller's."""

REGISTERS = ("tau", "control", "activation", "residual", "unsolved", "deepest", "slip")
"""Registers of a step that can be observed as they are."""

PLACES = ("position", "rotation", "velocity")
"""What can be observed of a node, as "position:NODE"."""

BASE = ("base_height", "base_velocity", "gravity")
"""What can be observed of the first body."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One observation.

    Attributes:
        name: Its name.
        what: A standard name, or the request of an expression.
    """

    name: str
    what: str | Request


def checked_observations(
    mech: Mechanism, given: Observations, *, itemsize: int
) -> tuple[Observed, ...]:
    """What to observe, by name.

    Raises:
        ModelError: Nothing, or something that is not a name, an expression or a kernel.
    """
    pairs: Any = given.items() if isinstance(given, Mapping) else [(x, x) for x in given]
    chosen = list[Observed]()
    for name, what in pairs:
        if not isinstance(name, str):
            raise ModelError(
                f"observations has {name!r} without a name; give a dictionary: "
                "observations={'name': expression or kernel}."
            )
        if isinstance(what, Expr):
            what = Request((what,), mech, itemsize=itemsize)
        elif isinstance(what, Kernel):
            if what.request.mech is not mech:
                raise ModelError(
                    f"observation {name!r} is a kernel of {what.mech.name!r}, made apart from the "
                    f"mechanism {mech.name!r} of the simulator: compile it for this one."
                )
            what = replace(what.request, itemsize=itemsize)
        elif what in QUANTITIES and what not in REGISTERS:
            what = replace(kernel(mech, what).request, itemsize=itemsize)
        elif not isinstance(what, str):
            raise ModelError(
                f"observation {name!r} is {type(what).__name__}; it must be a name, an expression "
                "or a kernel of lw.compile."
            )
        chosen.append(Observed(name, what))
    if not chosen:
        raise ModelError("observations are empty; name at least one, such as 'q'.")
    return tuple(chosen)


def observing(
    mech: Mechanism,
    stepping: Stepping,
    chosen: tuple[Observed, ...],
    points: tuple[ContactPoint, ...],
    itemsize: int,
) -> tuple[Segment, dict[str, tuple[int, ...]]]:
    """The segment that writes "v": all observations, then q and v; and the shape of each."""
    at = Writing(Request((expression("body_poses"),), mech, itemsize=itemsize))
    look = _Look(mech, stepping, points, at)
    shapes, values = dict[str, tuple[int, ...]](), list[Any]()
    for one in chosen:
        value = look.of_request(one) if isinstance(one.what, Request) else look.named(one.what)
        shapes[one.name] = value.shape
        values += value.ravel().tolist()
    at.write("v", [*values, *look.q, *look.v])
    writes = tuple((key, len(x)) for key, x in at.writes.items())
    return Segment("observe", at.traced(), writes), shapes


def watched(
    mech: Mechanism,
    stepping: Stepping,
    chosen: Sequence[Observed],
    points: tuple[ContactPoint, ...],
    at: Writing,
) -> list[Any]:
    """The values of observations, from the registers of `SHOWN` and others of the stepping."""
    look = _Look(mech, stepping, points, at)
    return [
        look.of_request(one) if isinstance(one.what, Request) else look.named(one.what)
        for one in chosen
    ]


class _Look:
    """The observations as arrays of graph nodes."""

    def __init__(
        self,
        mech: Mechanism,
        stepping: Stepping,
        points: tuple[ContactPoint, ...],
        at: Writing,
    ) -> None:
        self.mech, self.stepping, self.points, self.at = mech, stepping, points, at
        self.q, self.v = at.read(SHOWN["q"], mech.nq), at.read(SHOWN["v"], mech.nv)

    def of_request(self, one: Observed) -> Any:
        """The value of an expression."""
        request = one.what
        assert isinstance(request, Request)
        if is_rolled(request):
            raise ModelError(
                f"observation {one.name!r} of {self.mech.name!r} has loops over its bodies, and "
                "observations are straight-line code; compute it from 'q' and 'v'."
            )
        graph, given = traced(request), {"q": self.q, "v": self.v}
        for name, size in graph.inputs:
            if name not in given and name != "tau":
                raise ModelError(
                    f"observation {one.name!r} depends on {name!r}; it must be a function of q, v "
                    "and tau."
                )
            given.setdefault(name, self.at.read(name, size) if name == "tau" else None)
        if graph.parts:
            raise ModelError(f"observation {one.name!r} is a kernel of several results; take one.")
        flat = np.array(self.at.replay(graph, given), dtype=object)
        return flat.reshape(graph.shape or (math.prod(graph.shape),))

    def named(self, what: str) -> Any:
        """A standard observation."""
        kind, _, node = what.partition(":")
        registers = self.stepping.registers
        if what in ("q", "v"):
            return self.q if what == "q" else self.v
        if what in REGISTERS and what in registers:
            return self.at.read(what, registers[what])
        if what in BASE and self.mech.n_bodies:
            return self._base(what)
        if what == "contact_forces" and self.points:
            return self._contact_forces()
        if kind in PLACES and node:
            return self._place(kind, node)
        known = ["q", "v", *(x for x in REGISTERS if x in registers), *BASE]
        known += ["contact_forces"] if self.points else []
        known += [f"{x}:{n.name}" for x in PLACES for n in self.mech.nodes]
        raise unknown_name("observation", what, known, owner=f"mechanism {self.mech.name!r}")

    def _base(self, what: str) -> Any:
        base = self.mech.bodies[0].name
        pose = self._pose(base)
        if what == "base_height":
            return pose[2:, 3]
        if what == "gravity":
            size = float(np.linalg.norm(self.mech.gravity)) or 1.0
            return pose[:, :3].T @ (self.mech.gravity / size)
        return self.at.value(expression("node_velocity"), nodes=(base,), q=self.q, v=self.v)

    def _place(self, kind: str, node: str) -> Any:
        if node not in self.mech.node_index and node not in self.mech.body_index:
            known = [*self.mech.node_index, *(b.name for b in self.mech.bodies)]
            raise unknown_name("node or body", node, known, owner=f"mechanism {self.mech.name!r}")
        if kind == "velocity":
            expr = expression("node_velocity", frame="world")
            return self.at.value(expr, nodes=(node,), q=self.q, v=self.v)
        pose = self._pose(node)
        return pose[:, 3] if kind == "position" else pose[:, :3]

    def _pose(self, node: str) -> Any:
        """(3, 4): rotation and place."""
        return self.at.value(expression("node_poses"), nodes=(node,), q=self.q).reshape(3, 4)

    def _contact_forces(self) -> Any:
        """(contacts, 3) in world axes: impulses of the last step over its length."""
        (h,), size = self.at.read(STEP, 1), self.stepping.registers["impulse"]
        impulse = self.at.read("impulse", size)
        start, forces = size - sum(point.rows for point in self.points), list[Any]()
        uneven = 3 * sum(isinstance(point.ground, HeightField) for point in self.points)
        normals = self.at.read(NORMAL, uneven) if uneven else np.zeros(0, dtype=object)
        for point, axes in zip(self.points, axes_of(self.points, normals), strict=True):
            forces.append(impulse[start : start + 3] @ axes / h)
            start += point.rows
        return np.array(forces, dtype=object)
