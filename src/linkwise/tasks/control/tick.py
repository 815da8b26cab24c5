"""One tick of a controller as a formula: state, goals and gains in, joint forces out.

A kernel depends on the structure: the tasks, their order of priority and the options in use. All
numbers are inputs, so gains can change at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.algebra import X_B, bias, mass
from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.mass_root import LARGE, MassRoot, mass_root
from linkwise.dynamics.momentum import center, linear
from linkwise.model.body import WORLD
from linkwise.spatial.choice import gate, maximum, minimum, norm, where
from linkwise.tasks.control.gain import along, gains_read, times
from linkwise.tasks.control.goal import goal_size
from linkwise.tasks.control.hierarchy import (
    Directions,
    Hierarchy,
    Size,
    everything,
    largest,
    sized,
    smooth,
)
from linkwise.tasks.control.joint_limits import closeness, distances, pushed
from linkwise.tasks.control.posture import Drawn, drawing
from linkwise.tasks.control.servo import pulled
from linkwise.tasks.control.singular import BRAKE, damped_share, fastest, share, step
from linkwise.tasks.measure import missing
from linkwise.tasks.quantity import TASK
from linkwise.tasks.task import Task

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Near: TypeAlias = Literal["plain", "damped", "goal", "rest", "free"]
"""The treatment of singular configurations; the last three belong to a strategy."""


@dataclass(frozen=True, slots=True)
class Driven:
    """A servo, without its numbers.

    Attributes:
        task: Its task.
        size: Its number of rows.
        kp: Whether the stiffness is a matrix; else one number for each row.
        kv: Whether the damping is.
        limited: Whether there is a largest speed.
    """

    task: Task
    size: int
    kp: bool
    kv: bool
    limited: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """Joint limits without their numbers: indices in q and v, and whether before all levels."""

    q: tuple[int, ...]
    v: tuple[int, ...]
    first: bool


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure that the kernel of a controller depends on.

    Attributes:
        levels: Servos in order of priority.
        order: Indices of the rows of all tasks in the mechanism with tasks; None if equal.
        near: The treatment of singular configurations.
        braked: Whether joint speeds are limited there.
        posture: The posture in the null space of all levels.
        limits: Joint limits.
        all_joints: Whether the bias force is compensated in all joints, or as the tasks see it.
    """

    levels: tuple[tuple[Driven, ...], ...]
    order: tuple[int, ...] | None
    near: Near
    braked: bool
    posture: Drawn | None
    limits: Kept | None
    all_joints: bool

    @property
    def servos(self) -> list[Driven]:
        """All servos, in order of the levels."""
        return [servo for level in self.levels for servo in level]

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each servo."""
        return [servo.size for servo in self.servos]

    @property
    def rows(self) -> list[slice]:
        """The rows of each level."""
        ends = np.cumsum([sum(servo.size for servo in level) for level in self.levels]).tolist()
        return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]


@cache
def torque_formula(s: Structure) -> Formula:
    """τ."""
    return Formula(torque, (s,))


@cache
def report_formula(s: Structure) -> Formula:
    """τ and everything that a report contains."""
    names = [f"{k}.{name}" for k in range(len(s.levels)) for name in OF_LEVEL]
    return Formula(report, (s,), ("tau", "acceleration", "close", "free", *names))


ROWS = ("jacobian", "bias")
"""J_t and γ."""

OF_CENTER = {"jacobian": "momentum_matrix", "bias": "momentum_bias"}
"""The momenta that they are of the centre of mass, times the mass."""

OF_LEVEL = (
    *("requested", "achieved", "rank", "singular_values", "directions", "share", "held", "slowed"),
)


def torque(at: Writing, s: Structure) -> Any:
    """The formula of a call."""
    given, known = _posed(at, s)
    return _solved(at, s, given, ("force",))["force"] + known["resisting"]


def report(at: Writing, s: Structure) -> Any:
    """The formula of a report."""
    given, known = _posed(at, s)
    names = [f"{k}.{name}" for k in range(len(s.levels)) for name in OF_LEVEL[2:]]
    result = _solved(at, s, given, ("force", "acceleration", "free", *names))
    vdot, parts = result["acceleration"], list[Any]()
    for k, rows in enumerate(s.rows):
        achieved = known["jacobian"][rows] @ vdot + known["bias"][rows]
        parts += [known["requested"][rows], achieved]
        parts += [result[f"{k}.{name}"] for name in OF_LEVEL[2:]]
    close = np.full(at.mech.nv, 0.0, dtype=object)
    if s.limits is not None and s.limits.first:
        close[list(s.limits.v)] = gate(given["near"], 1.0)
    tau = result["force"] + known["resisting"]
    return tau, vdot, close, maximum(result["free"], 0.0), *parts


# -------------------------------------------------------------------------------------- requests


def _posed(at: Writing, s: Structure) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs of the levels, and other quantities of the state."""
    q, v, goals = at.q, at.v, _goals(at, s)  # before other inputs
    size, first = s.rows[-1].stop, s.limits is not None and s.limits.first
    rate, ahead = at.read("velocity", size), at.read("acceleration", size)
    known = _known(at, s)
    moving, gains, ends = known["jacobian"] @ v, _gains(at, s), np.cumsum(s.sizes)[:-1]
    parts = zip(*(np.split(x, ends) for x in (rate, ahead, moving)), strict=True)
    servos = zip(_errors(at, s, goals, known), parts, gains, strict=True)
    pulls, accelerations = list[Any](), list[Any]()
    for error, (speed, faster, now), (kp, kv, most) in servos:
        pulls.append(pulled(error, speed, kp, kv, most))
        accelerations.append(faster + pulls[-1] - times(kv, now))
    pull, known["requested"] = np.concatenate(pulls), np.concatenate(accelerations)
    posture, mass = _posture(at, s, known["inertia"]), mass_root(at, known["inertia"])
    scale, reach = at.read("scale", size), at.read("reach", len(s.levels))
    given = {"q": q, "v": v, "root": mass.triangle, "tolerance": at.read("tolerance", 1)}
    given |= {"drive": posture if s.all_joints else posture - known["resisting"]}
    given |= {"scale": scale, "reach": reach}
    given |= {"white": mass.whitened(posture)} if s.near in ("goal", "rest") else {}
    given |= {"speeds": at.read("speeds", at.mech.nv)} if s.braked else {}
    if s.near != "plain":
        given["threshold"] = at.read("damping" if s.near == "damped" else "threshold", 1)
    level_gains = iter(gains)
    for k, (level, rows) in enumerate(zip(s.levels, s.rows, strict=True)):
        J = scale[rows, None] * known["jacobian"][rows]
        missing = known["requested"][rows] - known["bias"][rows]
        given |= {f"J{k}": J, f"requested{k}": scale[rows] * missing}
        kp, kv, _ = zip(*(next(level_gains) for _ in level), strict=True)
        given |= {f"kv{k}": _side_by_side(kv), f"kp{k}": _side_by_side(kp)}
        given |= {f"pull{k}": scale[rows] * pull[rows]}
        if k or first:
            inertial = s.near == "damped"
            alone = largest(at, mass.whitened(J.T).T if inertial else J)
            given[f"size{k}"] = np.array(sized(at, J, alone, reach[k], inertial), dtype=object)
    return given | (_near(at, s) if first else {}), known


def _known(at: Writing, s: Structure) -> dict[str, Any]:
    """J, γ, C, places of nodes and the centre of mass and, of small mechanisms, 𝓜 in a state."""
    setting = Setting(bool(at.mech.loops), bool(at.mech.couplings))
    expressions: dict[str, Expr] = {"resisting": bias}
    if setting.loops or setting.couplings:
        expressions |= {name: TASK[f"task_{name}"](setting) for name in ROWS}
    expressions |= {"places": X_B} if setting.loops else {}
    expressions |= {"inertia": mass} if at.mech.nv < LARGE else {}
    parts = at.value(*expressions.values())
    values = dict(zip(expressions, parts if len(expressions) > 1 else [parts], strict=True))
    values["center"] = center(at) if len(_center_rows(s)) else None
    values |= {name: _with_center(at, s, name, values.get(name)) for name in ROWS}
    values["places"] = values["places"].reshape(-1, 2, 3, 4) if setting.loops else []
    return {"inertia": None} | values


def _center_rows(s: Structure) -> Any:
    """Directions (k, 3) of the rows of the centre of mass."""
    rows = [x.task.matrix[:, 3:] for x in s.servos if x.task.kind == "center_of_mass"]
    return np.concatenate(rows) if rows else np.zeros((0, 3))


def _with_center(at: Any, s: Structure, name: str, rows: Any, **given: Any) -> Any:
    """J_t or γ in the order of the tasks, from the rows of nodes and joints, if there are any."""
    S, which = _center_rows(s), slice(None) if s.order is None else list(s.order)
    if len(S):
        center_rows = S @ linear(at, OF_CENTER[name], **given)
        rows = center_rows if rows is None else np.concatenate([rows, center_rows])
    return rows[which]


def _goals(at: Writing, s: Structure) -> list[Any]:
    """The numbers of the goal of each servo."""
    sizes = [goal_size(at.mech, servo.task) for servo in s.servos]
    return np.split(at.read("goal", sum(sizes)), np.cumsum(sizes)[:-1])


def _errors(at: Writing, s: Structure, goals: list[Any], known: dict[str, Any]) -> Iterator[Any]:
    """The error of each servo; known places are those of a and b of each loop."""
    pairs = iter(known["places"])
    for servo, goal in zip(s.servos, goals, strict=True):
        task = servo.task
        if task.kind == "joints":
            yield _joints(at, task, goal)
            continue
        if task.kind == "center_of_mass":
            yield task.matrix[:, 3:] @ (goal - known["center"])
            continue
        a, b = next(pairs)
        R, p = b[:, :3], b[:, 3]
        if task.relative_to != WORLD:
            back = a[:, :3].T
            R, p = back @ R, back @ (p - a[:, 3])
        place = goal.reshape(3, 4) if task.kind == "pose" else goal
        if task.kind == "orientation":
            place = goal.reshape(3, 3)
        elif task.kind == "direction":
            place = goal / norm(goal)
        turn, way = (place[:, :3], place[:, 3]) if task.kind == "pose" else (place, place)
        yield missing(task, R, p, turn, way)


def _joints(at: Writing, task: Task, goal: Any) -> Any:
    """The error of coordinates of hinges."""
    parts, start, q = list[Any](), 0, at.q
    for name in task.hinges:
        where = at.mech.q_slice(name)
        stop = start + where.stop - where.start
        body = at.mech.hinge(name) if name in at.mech.hinge_index else at.mech.body(name)
        parts.append(body.hinge.difference(q[None, where], goal[None, start:stop])[0])
        start = stop
    return np.concatenate(parts)


def _gains(at: Writing, s: Structure) -> list[tuple[Any, Any, Any]]:
    """Stiffness, damping and largest speed of each servo."""
    sizes = s.sizes
    kinds = {"kp": [x.kp for x in s.servos], "kv": [x.kv for x in s.servos]}
    kp, kv = (gains_read(at, name, sizes, kind) for name, kind in kinds.items())
    limited = [servo.limited for servo in s.servos]
    speeds = iter(at.read("speed", sum(limited)) if any(limited) else ())
    return [(a, b, next(speeds) if x else None) for a, b, x in zip(kp, kv, limited, strict=True)]


def _side_by_side(gains: Sequence[Any]) -> Any:
    """The gain of all rows of a level (m,) or (m, m)."""
    if all(gain.ndim == 1 for gain in gains):
        return np.concatenate(gains)
    size, start = sum(len(gain) for gain in gains), 0
    out = np.full((size, size), 0.0, dtype=object)
    for gain in gains:
        rows = slice(start, start + len(gain))
        out[rows, rows] = gain if gain.ndim == 2 else np.diag(gain)
        start = rows.stop
    return out


def _posture(at: Writing, s: Structure, inertia: Any) -> Any:
    """Γ₀ (nv,)."""
    out = np.full(at.mech.nv, 0.0, dtype=object)
    if s.posture is not None:
        out = drawing(at, s.posture, inertia)
    if s.limits is not None and not s.limits.first:
        below, above, numbers = _distances(at, s.limits)
        places = list(s.limits.v)
        out[places] = out[places] + pushed(below, above, at.v[places], *numbers)
    return out


def _distances(at: Writing, kept: Kept) -> tuple[Any, Any, Any]:
    """Distances from lower and upper limits, and the numbers of these."""
    count = len(kept.q)
    both = distances(at.q[list(kept.q)], at.read("lower", count), at.read("upper", count))
    return *both, at.read("limits", 4)


def _near(at: Writing, s: Structure) -> dict[str, Any]:
    """Joints near their limits: their shares before all levels, and their accelerations."""
    assert s.limits is not None
    below, above, numbers = _distances(at, s.limits)
    lower, upper = (smooth(2.0 * closeness(rho, numbers[0])) for rho in (below, above))
    push = pushed(below, above, at.v[list(s.limits.v)], *numbers)
    return {"lower": lower, "upper": upper, "push": push, "near": maximum(lower, upper)}


# --------------------------------------------------------------------------------------- results


def _solved(
    at: Writing, s: Structure, given: dict[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    """Results of the levels.

    With joint limits before them there are two rounds. Each joint near a limit is given v̇ of the
    first round, or the push if that points away from the limit, with a share that grows from 0 at
    the margin: nothing jumps where a joint comes near.
    """
    if s.limits is None or not s.limits.first:
        return _levels(at, s, given, None)
    which = list(s.limits.v)
    shapes = {name: np.shape(x) for name, x in given.items()}
    made = dict[str, tuple[int, ...]]()

    def once(at: Any, x: Any, flat: Any) -> tuple[Any, Any]:
        inner = _unpacked(flat, shapes)
        second, acceleration = x[0], x[1 : 1 + len(which)]
        result = _levels(at, s, inner, (which, acceleration, second * inner["near"]))
        vdot, push = result["acceleration"][which], inner["push"]
        acceleration = where(inner["lower"], maximum(vdot, push), vdot)
        acceleration = where(inner["upper"], minimum(acceleration, push), acceleration)
        made.update({name: np.shape(result[name]) for name in names})
        again = gate(1.0 - second, inner["near"].sum())
        return np.concatenate([[1.0], acceleration, *(np.ravel(result[n]) for n in names)]), again

    count = sum(_result_size(s, at.mech.nv, name) for name in names)
    x, _ = at.loop(once, [0.0] * (1 + len(which) + count), _packed(given), most=2)
    return _unpacked(x[1 + len(which) :], made)


def _result_size(s: Structure, n: int, name: str) -> int:
    """The number of entries of a result."""
    if "." not in name:
        return 1 if name == "free" else n
    k, _, what = name.partition(".")
    m = sum(servo.size for servo in s.levels[int(k)])
    return {"rank": 1, "directions": m * m}.get(what, m)


def _packed(arrays: Mapping[str, Any]) -> Any:
    return np.concatenate([np.ravel(np.asarray(x, dtype=object)) for x in arrays.values()])


def _unpacked(flat: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    inputs, start = dict[str, Any](), 0
    for name, shape in shapes.items():
        stop = start + int(np.prod(shape, dtype=int))
        inputs[name] = flat[start:stop].reshape(shape) if shape else flat[start]
        start = stop
    return inputs


def _levels(at: Any, s: Structure, given: Mapping[str, Any], top: Any) -> dict[str, Any]:
    """All levels, after joints (which, v̇, share) that come before them."""
    root = MassRoot(at, given["q"], given["root"])
    done = Hierarchy(root, given["drive"], given["tolerance"][0])
    if top is not None:
        done.add_joints(*top)
    results = dict[str, Any]()
    for k in range(len(s.levels)):
        size = Size(*given[f"size{k}"]) if f"size{k}" in given else None
        options: dict[str, Any] = {"reach": given["reach"][k], "inertial": s.near == "damped"}
        add = partial(done.add, given[f"J{k}"], given[f"requested{k}"], size, **options)
        if s.near == "plain":
            directions, slowed = add(everything)
        elif s.near == "damped":
            directions, slowed = add(partial(damped_share, damping=given["threshold"][0]))
        else:
            aside = partial(_aside, at, s, given, k) if s.near != "free" else None
            brake = partial(_brake, given, k) if s.braked else None
            directions, slowed = add(partial(share, threshold=given["threshold"][0]), aside, brake)
        values = (directions.exists.sum(), directions.values, directions.rows, directions.share)
        parts = (*values, gate(directions.hold, 1.0), slowed)
        results |= {f"{k}.{name}": x for name, x in zip(OF_LEVEL[2:], parts, strict=True)}
    totals = {"force": done.force, "acceleration": done.acceleration, "free": done.free}
    return totals | results


def _aside(
    at: Any, s: Structure, given: Mapping[str, Any], k: int, directions: Directions, white: Any
) -> Any:
    """Accelerations v_i* v̇ (m,) of joints in fading directions."""
    damp = along(given[f"kv{k}"], directions.rows)
    out = white @ given["white"] - damp * (directions.joints @ given["v"])
    if s.near == "rest":
        return out
    stiff, (threshold,) = along(given[f"kp{k}"], directions.rows), given["threshold"]
    error = (directions.rows.T @ given[f"pull{k}"]) / stiff
    rows, setting = s.rows[k], Setting(bool(at.mech.loops), bool(at.mech.couplings))
    steps, nodes = list[Any](), setting.loops or setting.couplings
    for i, joint in enumerate(directions.joints):
        # κ = u* J̇(v) v
        here = {"q": given["q"], "v": joint}
        gamma = at.value(TASK["task_bias"](setting), **here) if nodes else None
        gamma = _with_center(at, s, "bias", gamma, **here)[rows]
        kappa = (directions.rows[:, i] * given["scale"][rows] * gamma).sum()
        steps.append(step(error[i], directions.values[i], kappa, directions.largest, threshold))
    return out + stiff * np.array(steps, dtype=object)


def _brake(given: Mapping[str, Any], k: int, directions: Directions) -> tuple[Any, Any, Any]:
    """Bounds of v_i* v̇ (m,) that limit joint speeds: k (± fastest - v_i* v)."""
    stiff, moving = BRAKE * along(given[f"kv{k}"], directions.rows), directions.joints @ given["v"]
    most, on = fastest(
        directions.relative, directions.joints, given["speeds"], given["threshold"][0]
    )
    return stiff * (-most - moving), stiff * (most - moving), on
