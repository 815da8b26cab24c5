"""One tick of a controller as a formula: state, goals and gains in, joint forces out.

What a kernel depends on is the structure: the tasks, their order of priority, and what else there
is. All numbers are inputs of it, so that a gain can be changed at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.algebra import X_B, bias, mass
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.mass_root import LARGE, MassRoot, mass_root
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
"""What is done near singular configurations; the last three are those of a strategy."""


@dataclass(frozen=True, slots=True)
class Driven:
    """A servo, without its numbers.

    Attributes:
        task: Its task.
        size: How many rows that has.
        kp: Whether the stiffness is a matrix; else there is a number for each row.
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
    """Joint limits, without their numbers: where in q and v they are, whether before all levels."""

    q: tuple[int, ...]
    v: tuple[int, ...]
    first: bool


@dataclass(frozen=True, slots=True)
class Structure:
    """What the kernel of a controller depends on.

    Attributes:
        levels: Servos in order of priority.
        order: Places of the rows of all tasks in the mechanism that has them; None for the same.
        near: What is done near singular configurations.
        braked: Whether joints are held to their largest speeds there.
        posture: What is done with the freedoms that all levels leave.
        limits: Joint limits.
        whole: Whether the bias force is compensated in all freedoms, or as the tasks see it.
    """

    levels: tuple[tuple[Driven, ...], ...]
    order: tuple[int, ...] | None
    near: Near
    braked: bool
    posture: Drawn | None
    limits: Kept | None
    whole: bool

    @property
    def servos(self) -> list[Driven]:
        """All of them, one level behind the other."""
        return [servo for level in self.levels for servo in level]

    @property
    def sizes(self) -> list[int]:
        """How many rows each servo has."""
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
    """τ and all that can be told of it."""
    names = [f"{k}.{name}" for k in range(len(s.levels)) for name in OF_LEVEL]
    return Formula(report, (s,), ("tau", "acceleration", "close", "free", *names))


OF_LEVEL = (
    *("wanted", "achieved", "rank", "singular_values", "directions", "share", "held", "slowed"),
)


def torque(at: Writing, s: Structure) -> Any:
    """The formula of a call."""
    given, known = _posed(at, s)
    return _solved(at, s, given, ("force",))["force"] + known["resisting"]


def report(at: Writing, s: Structure) -> Any:
    """The formula of a report."""
    given, known = _posed(at, s)
    names = [f"{k}.{name}" for k in range(len(s.levels)) for name in OF_LEVEL[2:]]
    found = _solved(at, s, given, ("force", "acceleration", "free", *names))
    vdot, parts = found["acceleration"], list[Any]()
    for k, rows in enumerate(s.rows):
        achieved = known["jacobian"][rows] @ vdot + known["bias"][rows]
        parts += [known["wanted"][rows], achieved]
        parts += [found[f"{k}.{name}"] for name in OF_LEVEL[2:]]
    close = np.full(at.mech.nv, 0.0, dtype=object)
    if s.limits is not None and s.limits.first:
        close[list(s.limits.v)] = gate(given["near"], 1.0)
    tau = found["force"] + known["resisting"]
    return tau, vdot, close, maximum(found["free"], 0.0), *parts


# ----------------------------------------------------------------------------- what is asked for


def _posed(at: Writing, s: Structure) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the levels are solved from, and what else is known of the state."""
    q, v, goals = at.q, at.v, _goals(at, s)  # in front of other inputs
    size, first = s.rows[-1].stop, s.limits is not None and s.limits.first
    rate, ahead = at.read("rate", size), at.read("ahead", size)
    known = _known(at, s)
    moving, gains, ends = known["jacobian"] @ v, _gains(at, s), np.cumsum(s.sizes)[:-1]
    parts = zip(*(np.split(x, ends) for x in (rate, ahead, moving)), strict=True)
    servos = zip(_errors(at, s, goals, known["places"]), parts, gains, strict=True)
    pulls, asked = list[Any](), list[Any]()
    for error, (speed, faster, now), (kp, kv, most) in servos:
        pulls.append(pulled(error, speed, kp, kv, most))
        asked.append(faster + pulls[-1] - times(kv, now))
    pull, known["wanted"] = np.concatenate(pulls), np.concatenate(asked)
    posture, mass = _posture(at, s, known["inertia"]), mass_root(at, known["inertia"])
    scale, reach = at.read("scale", size), at.read("reach", len(s.levels))
    given = {"q": q, "v": v, "root": mass.triangle, "tolerance": at.read("tolerance", 1)}
    given |= {"drive": posture if s.whole else posture - known["resisting"]}
    given |= {"scale": scale, "reach": reach}
    given |= {"white": mass.whitened(posture)} if s.near in ("goal", "rest") else {}
    given |= {"speeds": at.read("speeds", at.mech.nv)} if s.braked else {}
    if s.near != "plain":
        given["threshold"] = at.read("damping" if s.near == "damped" else "threshold", 1)
    level_gains = iter(gains)
    for k, (level, rows) in enumerate(zip(s.levels, s.rows, strict=True)):
        J = scale[rows, None] * known["jacobian"][rows]
        missing = known["wanted"][rows] - known["bias"][rows]
        given |= {f"J{k}": J, f"wanted{k}": scale[rows] * missing}
        kp, kv, _ = zip(*(next(level_gains) for _ in level), strict=True)
        given |= {f"kv{k}": _side_by_side(kv), f"kp{k}": _side_by_side(kp)}
        given |= {f"pull{k}": scale[rows] * pull[rows]}
        if k or first:
            inertial = s.near == "damped"
            alone = largest(at, mass.whitened(J.T).T if inertial else J)
            given[f"size{k}"] = np.array(sized(at, J, alone, reach[k], inertial), dtype=object)
    return given | (_near(at, s) if first else {}), known


def _known(at: Writing, s: Structure) -> dict[str, Any]:
    """J, γ, C, places of nodes and, of small mechanisms, 𝓜 in a state."""
    setting = Setting(bool(at.mech.loops), bool(at.mech.couplings))
    wanted = {"jacobian": TASK["task_jacobian"](setting), "bias": TASK["task_bias"](setting)}
    wanted |= {"resisting": bias} | ({"places": X_B} if setting.loops else {})
    wanted |= {"inertia": mass} if at.mech.nv < LARGE else {}
    found = dict(zip(wanted, at.value(*wanted.values()), strict=True))
    which = slice(None) if s.order is None else list(s.order)
    found |= {name: found[name][which] for name in ("jacobian", "bias")}
    found["places"] = found["places"].reshape(-1, 2, 3, 4) if setting.loops else []
    return {"inertia": None} | found


def _goals(at: Writing, s: Structure) -> list[Any]:
    """The numbers of the goal of each servo."""
    sizes = [goal_size(at.mech, servo.task) for servo in s.servos]
    return np.split(at.read("goal", sum(sizes)), np.cumsum(sizes)[:-1])


def _errors(at: Writing, s: Structure, goals: list[Any], places: Any) -> Iterator[Any]:
    """What is missing to each of the goals; places are those of a and b of each loop."""
    pairs = iter(places)
    for servo, goal in zip(s.servos, goals, strict=True):
        task = servo.task
        if task.kind == "joints":
            yield _joints(at, task, goal)
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
    """What is missing of coordinates of hinges."""
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
    """Joints near their limits: how much they come before all levels, and what they shall do."""
    assert s.limits is not None
    below, above, numbers = _distances(at, s.limits)
    lower, upper = (smooth(2.0 * closeness(rho, numbers[0])) for rho in (below, above))
    push = pushed(below, above, at.v[list(s.limits.v)], *numbers)
    return {"lower": lower, "upper": upper, "push": push, "near": maximum(lower, upper)}


# --------------------------------------------------------------------------------- what is given


def _solved(
    at: Writing, s: Structure, given: dict[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    """Results of the levels.

    With joint limits before them there are two rounds. Each joint near a limit is asked to do what
    it would do anyway, v̇ of the first round, or the push if that is away from the limit, with a
    share that grows from 0 at the margin: nothing jumps where a joint comes near.
    """
    if s.limits is None or not s.limits.first:
        return _levels(at, s, given, None)
    which = list(s.limits.v)
    shapes = {name: np.shape(x) for name, x in given.items()}
    made = dict[str, tuple[int, ...]]()

    def once(at: Any, x: Any, flat: Any) -> tuple[Any, Any]:
        inner = _unpacked(flat, shapes)
        second, wanted = x[0], x[1 : 1 + len(which)]
        found = _levels(at, s, inner, (which, wanted, second * inner["near"]))
        vdot, push = found["acceleration"][which], inner["push"]
        wanted = where(inner["lower"], maximum(vdot, push), vdot)
        wanted = where(inner["upper"], minimum(wanted, push), wanted)
        made.update({name: np.shape(found[name]) for name in names})
        again = gate(1.0 - second, inner["near"].sum())
        return np.concatenate([[1.0], wanted, *(np.ravel(found[n]) for n in names)]), again

    count = sum(_result_size(s, at.mech.nv, name) for name in names)
    x, _ = at.loop(once, [0.0] * (1 + len(which) + count), _packed(given), most=2)
    return _unpacked(x[1 + len(which) :], made)


def _result_size(s: Structure, n: int, name: str) -> int:
    """Numbers of a result."""
    if "." not in name:
        return 1 if name == "free" else n
    k, _, what = name.partition(".")
    m = sum(servo.size for servo in s.levels[int(k)])
    return {"rank": 1, "directions": m * m}.get(what, m)


def _packed(arrays: Mapping[str, Any]) -> Any:
    return np.concatenate([np.ravel(np.asarray(x, dtype=object)) for x in arrays.values()])


def _unpacked(flat: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    found, start = dict[str, Any](), 0
    for name, shape in shapes.items():
        stop = start + int(np.prod(shape, dtype=int))
        found[name] = flat[start:stop].reshape(shape) if shape else flat[start]
        start = stop
    return found


def _levels(at: Any, s: Structure, given: Mapping[str, Any], top: Any) -> dict[str, Any]:
    """All levels, below freedoms (which, v̇, share) that come before them."""
    root = MassRoot(at, given["q"], given["root"])
    done = Hierarchy(root, given["drive"], given["tolerance"][0])
    if top is not None:
        done.add_joints(*top)
    told = dict[str, Any]()
    for k in range(len(s.levels)):
        size = Size(*given[f"size{k}"]) if f"size{k}" in given else None
        options: dict[str, Any] = {"reach": given["reach"][k], "inertial": s.near == "damped"}
        add = partial(done.add, given[f"J{k}"], given[f"wanted{k}"], size, **options)
        if s.near == "plain":
            found, slowed = add(everything)
        elif s.near == "damped":
            found, slowed = add(partial(damped_share, damping=given["threshold"][0]))
        else:
            aside = partial(_aside, at, s, given, k) if s.near != "free" else None
            brake = partial(_brake, given, k) if s.braked else None
            found, slowed = add(partial(share, threshold=given["threshold"][0]), aside, brake)
        values = (found.exists.sum(), found.values, found.rows, found.share)
        parts = (*values, gate(found.hold, 1.0), slowed)
        told |= {f"{k}.{name}": x for name, x in zip(OF_LEVEL[2:], parts, strict=True)}
    whole = {"force": done.force, "acceleration": done.acceleration, "free": done.free}
    return whole | told


def _aside(
    at: Any, s: Structure, given: Mapping[str, Any], k: int, found: Directions, white: Any
) -> Any:
    """Accelerations v_i* v̇ (m,) of joints in directions that go away."""
    damp = along(given[f"kv{k}"], found.rows)
    out = white @ given["white"] - damp * (found.joints @ given["v"])
    if s.near == "rest":
        return out
    stiff, (threshold,) = along(given[f"kp{k}"], found.rows), given["threshold"]
    error = (found.rows.T @ given[f"pull{k}"]) / stiff
    rows, setting = s.rows[k], Setting(bool(at.mech.loops), bool(at.mech.couplings))
    which = list(range(rows.stop)) if s.order is None else list(s.order)
    steps = list[Any]()
    for i, joint in enumerate(found.joints):
        # κ = u* J̇(v) v
        gamma = at.value(TASK["task_bias"](setting), q=given["q"], v=joint)[which[rows]]
        kappa = (found.rows[:, i] * given["scale"][rows] * gamma).sum()
        steps.append(step(error[i], found.values[i], kappa, found.largest, threshold))
    return out + stiff * np.array(steps, dtype=object)


def _brake(given: Mapping[str, Any], k: int, found: Directions) -> tuple[Any, Any, Any]:
    """Between which v_i* v̇ (m,) joints keep to their speeds: k (± fastest - v_i* v)."""
    stiff, moving = BRAKE * along(given[f"kv{k}"], found.rows), found.joints @ given["v"]
    most, on = fastest(found.relative, found.joints, given["speeds"], given["threshold"][0])
    return stiff * (-most - moving), stiff * (most - moving), on
