"""From costs, bounds and limits to the structure and the numbers of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import parameters as numbers_of
from linkwise.codegen.writing import Writing
from linkwise.control.cost import Bound, Cost
from linkwise.control.phase import loop_name
from linkwise.control.residual import Term
from linkwise.control.shooting import Structure
from linkwise.control.solver import Data
from linkwise.errors import ModelError, ShapeError
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.simulation.holding import CONTACT, contact_rows
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.measure import checked_goal, goal_numbers
from linkwise.tasks.task_stack import task_stack

FAR = 1e20
"""In place of infinite bounds: numbers of kernels are finite."""

LIMITS = ("position", "velocity", "effort")
"""Limits of a mechanism that can be held, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """How many problems and knots there are.

    Attributes:
        batch: Problems; None for a single one.
        steps: N.
    """

    batch: int | None
    steps: int

    def rows(self, given: Array, axes: int, what: str) -> Array:
        """Numbers as (1 or batch, 1 or N + 1, n); the last `axes` axes are one row of them."""
        lead, size = given.shape[: given.ndim - axes], given.shape[given.ndim - axes :]
        flat = given.reshape(*lead, int(np.prod(size, dtype=int)))
        knots = self.steps + 1
        if not lead:
            return flat[None, None]
        if self.batch is None and lead in ((knots,), (1,)):
            return flat[None]
        if self.batch is None and lead in ((1, knots), (1, 1)):
            return flat
        if self.batch is not None and lead in ((self.batch,), (1,)):
            return flat[:, None]
        if self.batch is not None and lead in ((self.batch, knots), (1, knots), (self.batch, 1)):
            return flat
        first = f"({knots},)" if self.batch is None else f"({self.batch},)"
        raise ShapeError(
            f"{what} has shape {given.shape}; it must be {size}, or with {first} in front."
        )


def structure_of(
    mech: Mechanism,
    costs: tuple[Cost, ...],
    bounds: tuple[Bound, ...],
    *,
    driven: Sequence[str] | None,
    integrator: str,
    passive: bool,
    boxed: bool,
    parameters: tuple[str, ...],
) -> Structure:
    """The structure of a problem."""
    forces = tuple(moved_places(mech, driven, "driven"))
    if not forces:
        raise ModelError(f"{mech.name!r} has no hinge that moves; a trajectory needs one.")
    terms = [_term(mech, x, len(forces)) for x in (*costs, *bounds)]
    return Structure(tuple(terms), forces, integrator, passive, boxed, parameters)


def _term(mech: Mechanism, x: Cost | Bound, forces: int) -> Term:
    bounded = isinstance(x, Bound)
    if x.kind == "function":
        assert x.function is not None
        at = Writing(Request(Formula(x.function), mech))
        try:
            rows = np.asarray(x.function(at), dtype=object).size
        except TypeError as error:
            raise ModelError(
                f"the rows of {type(x).__name__}.{'on' if bounded else 'of'}_function could not be "
                f"written: {error}. They are array code that runs once, on graph nodes: no "
                "comparison and no if; linkwise.spatial.choice has where, minimum and maximum."
            ) from error
        return Term("function", bounded=bounded, function=x.function, rows=rows)
    if x.kind in ("force", "cone"):
        return _contact_term(mech, x)
    if x.kind == "effort":
        return Term("effort", tuple(range(forces)), rows=forces)
    if x.task is not None:
        stack = task_stack(mech, x.task, center=True)  # raises for unknown names
        if x.task.kind == "joints":
            places = [i for name in x.task.hinges for i in _places(mech, name)]
            if bounded:
                _check_plain(mech, x.task.hinges)
            return Term("posture", tuple(places), rows=len(places), bounded=bounded)
        return Term("task", task=x.task, rows=stack.size, bounded=bounded)
    hinges = [body.hinge_name for body in mech.bodies] if x.hinges is None else x.hinges
    places = [i for name in hinges for i in _places(mech, name)]
    if bounded and x.kind == "posture":
        _check_plain(mech, x.hinges or ())
        places = [i for i in places if _plain_at(mech, i)]
    return Term(x.kind, tuple(places), rows=len(places), bounded=bounded)


def _contact_term(mech: Mechanism, x: Cost | Bound) -> Term:
    rows = contact_rows(mech)
    if isinstance(x, Cost):
        if not rows:
            raise ModelError("Cost.force was given without contacts; list them in phases.")
        return Term("force", tuple(rows), rows=len(rows))
    assert x.contact is not None
    loops = [loop.name for loop in mech.loops if loop.hinge == CONTACT]
    first = 3 * loops.index(loop_name(x.contact.node))
    places = tuple(rows[first : first + 3])
    return Term("cone", places, rows=2, bounded=True, friction=float(x.contact.friction))


def _check_plain(mech: Mechanism, hinges: Sequence[str]) -> None:
    for name in hinges:
        if not is_plain(mech.hinge(name).hinge):
            raise ModelError(
                f"a bound on the position of {name!r} was given; only coordinates of pins and "
                "sliders have bounds. Bound the pose of a node with Bound.on_task."
            )


def _places(mech: Mechanism, hinge: str) -> range:
    part = mech.v_slice(hinge)  # raises for an unknown one
    return range(part.start, part.stop)


def _plain_at(mech: Mechanism, i: int) -> bool:
    k = int(np.searchsorted(mech.v_start, i, side="right")) - 1
    return is_plain(mech.bodies[k].hinge)


def limits_of(mech: Mechanism, limits: Sequence[str]) -> tuple[Bound, ...]:
    """Limits of positions and velocities as bounds, where there are any."""
    out = list[Bound]()
    for k, body in enumerate(mech.bodies):
        of_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        of_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        low, high, most = mech.lower[of_q], mech.upper[of_q], mech.velocity_limit[of_v]
        name = (body.hinge_name,)
        some = np.isfinite(low).any() or np.isfinite(high).any()
        if "position" in limits and some and is_plain(body.hinge):
            out.append(Bound.on_position(low, high, hinges=name))
        if "velocity" in limits and np.isfinite(most).any():
            out.append(Bound.on_velocity(-most, most, hinges=name))
    return tuple(out)


def data_of(
    mech: Mechanism,
    structure: Structure,
    costs: tuple[Cost, ...],
    bounds: tuple[Bound, ...],
    shape: Shape,
    h: float,
    start: Array,
    guess: Array,
    parameters: Mapping[str, ArrayLike],
    contacts: Mapping[str, Array],
) -> Data:
    """The numbers of a problem."""
    knots, terms = shape.steps + 1, structure.terms
    weights, goals, lows, highs, active = (list[Array]() for _ in range(5))
    for x, term in zip((*costs, *bounds), terms, strict=True):
        if isinstance(x, Cost):
            weights.append(_weight(x, term, shape, h))
        else:
            weights.append(np.zeros((1, knots, term.rows)))
            low, high = _bounds(mech, x, term, shape)
            lows.append(low)
            highs.append(high)
            on = np.zeros((1, knots, term.rows))
            on[:, {"all": slice(None), "final": slice(-1, None), "before": slice(-1)}[x.when]] = 1.0
            active.append(on)
        if term.goals(mech):
            goals.append(_goal(mech, x, term, shape, structure))
    joined = np.ones((1, knots, 1))
    joined[:, -1] = 0.0
    held = {"weight": np.concatenate(weights, axis=-1), "joined": joined, **contacts}
    if goals:
        held["goal"] = _side_by_side(goals)
    if structure.boxed:
        most = np.minimum(mech.effort_limit[list(structure.driven)], FAR)
        held |= {"u_low": -most[None, None], "u_high": most[None, None]}
    for name, given in parameters.items():
        array = floats(given, name)
        size = len(numbers_of.nominal(mech, name).ravel())
        nominal = numbers_of.nominal(mech, name)
        if array.shape[array.ndim - nominal.ndim :] != nominal.shape:
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be {nominal.shape}, or (batch,) more."
            )
        held[name] = shape.rows(array, nominal.ndim, name)[..., :size]
    if active:
        held |= {"low": _side_by_side(lows), "high": _side_by_side(highs)}
        held["active"] = np.concatenate(active, axis=-1)
    every = {x: np.ascontiguousarray(a, np.float64) for x, a in held.items()}
    return Data(start, guess, every)


def goal_place(mech: Mechanism, structure: Structure, number: int) -> slice:
    """Where the goal of a cost is among the numbers of all goals."""
    sizes = [term.goals(mech) for term in structure.terms]
    return slice(sum(sizes[:number]), sum(sizes[: number + 1]))


def goal_numbers_of(
    mech: Mechanism, structure: Structure, shape: Shape, cost: Cost, number: int, goal: Any
) -> Array:
    """The numbers of another goal of a cost (1, 1 or N + 1, n)."""
    term = structure.terms[number]
    if not term.goals(mech):
        raise ModelError(f"cost {number} is a {cost.kind}, which has no goal.")
    return _goal(mech, replace(cost, goal=goal), term, shape, structure)


def _side_by_side(parts: list[Array]) -> Array:
    lead = np.broadcast_shapes(*(x.shape[:2] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts], axis=-1)


def _weight(x: Cost, term: Term, shape: Shape, h: float) -> Array:
    """Weights of all knots (1, N + 1, m)."""
    out = np.zeros((1, shape.steps + 1, term.rows))
    for given, part, what in ((x.weight, slice(-1), "weight"), (x.final, slice(-1, None), "final")):
        array = floats(given, what)
        allowed = [(), (term.rows,)] + ([(shape.steps, term.rows)] if what == "weight" else [])
        if array.shape not in allowed:
            raise ShapeError(
                f"{what} of a cost of {x.kind} has shape {array.shape}; it must be a number or "
                f"{' or '.join(map(str, allowed[1:]))}."
            )
        if not np.all(np.isfinite(array) & (array >= 0.0)):
            raise ModelError(
                f"{what} of a cost of {x.kind} is {_worst(array)}; it must be finite and not "
                "negative."
            )
        out[0, part] = array * (h if what == "weight" else 1.0)
    return out


def _worst(weights: Array) -> float:
    """The first weight that is none."""
    return float(weights[~(np.isfinite(weights) & (weights >= 0.0))].flat[0])


def _bounds(mech: Mechanism, x: Bound, term: Term, shape: Shape) -> tuple[Array, Array]:
    """Bounds of the rows (1 or batch, 1 or N + 1, m); of coordinates q if of joints' goal − q."""
    out = list[Array]()
    for given, what in ((x.low, "low"), (x.high, "high")):
        array = floats(given, what)
        knots = shape.steps + 1
        allowed = (), (term.rows,), (knots, term.rows)
        if array.shape not in allowed or np.isnan(array).any():
            raise ShapeError(
                f"{what} of a bound on {x.kind} has shape {array.shape}; it must be a number, "
                f"({term.rows},) or ({knots}, {term.rows}), without NaN."
            )
        array = np.clip(array, -FAR, FAR)
        rows = knots if array.ndim == 2 else 1
        out.append(np.broadcast_to(array, (1, rows, term.rows)))
    low, high = (part[0] for part in np.broadcast_arrays(*out))
    if np.any(low > high):
        knot, row = np.argwhere(low > high)[0]
        raise ModelError(
            f"low of a bound on {x.kind} is {low[knot, row]:g} in row {row}, above high, which is "
            f"{high[knot, row]:g}; exchange them, or give equal ones for an equation."
        )
    if x.task is None or x.task.kind != "joints":
        return out[0], out[1]
    goal = shape.rows(checked_goal(mech, x.task, x.goal), 1, f"the goal of {x.task.name!r}")
    return goal - out[1], goal - out[0]


def _goal(
    mech: Mechanism, x: Cost | Bound, term: Term, shape: Shape, structure: Structure
) -> Array:
    """Numbers of a goal (1 or batch, 1 or N + 1, n)."""
    what = f"the goal of a cost of {x.kind}"
    if x.task is not None and x.task.kind == "joints":
        joints = checked_goal(mech, x.task, x.goal)
        q = np.array(np.broadcast_to(mech.neutral(), (*joints.shape[:-1], mech.nq)))
        places = [i for name in x.task.hinges for i in range(*mech.q_slice(name).indices(mech.nq))]
        q[..., places] = joints
        return shape.rows(q, 1, what)
    if x.task is not None:
        return shape.rows(goal_numbers(mech, x.task, x.goal), 1, f"the goal of {x.task.name!r}")
    if term.kind == "posture":
        q = mech.neutral() if x.goal is None else mech.check_q(x.goal)
        return shape.rows(q, 1, what)
    v = np.zeros(mech.nv) if x.goal is None else mech.check_v(x.goal, what)
    places = structure.driven if term.kind == "effort" else term.at
    return shape.rows(v[..., list(places)], 1, what)
