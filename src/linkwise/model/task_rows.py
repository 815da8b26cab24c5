"""Rows of velocities that a task prescribes: a task written as a constraint.

A loop requires S V_ab = 0. A task requires that S V_ab have a given value, so its rows are those of
a loop whose hinge blocks exactly these directions; as a row of a coupling it may be a single
velocity. Such loops and couplings occur only in copies of a mechanism made for a task; nothing
closes them.

With X_ab = (R, p) the pose of node b seen from a, and the goal R_d, p_d or a direction d_d of the
axis d fixed in b, the missing displacement and turn, in a's axes, are

    way = p_d - p
    turn = 2 sin(θ/2) n,   axis n and angle θ of R_d R*, or of the smallest turn from R d to d_d

The turn is the chord of the angle: it is the vector part of a quaternion, grows up to half a turn,
and needs no branches. The rows are S (turn, way), in b's axes if the rows are b's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.body import Coupling
from linkwise.model.hinges.hinge import Coordinate, Hinge
from linkwise.spatial import rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross, six

if TYPE_CHECKING:
    from linkwise.model.embedded import Embedded
    from linkwise.model.mechanism import Mechanism


@dataclass(frozen=True)
class Rows(Hinge):
    """A hinge known only by the directions that it blocks.

    Attributes:
        directions: S (m, 6), rows that need not be orthonormal, angular part first.
        outer: Whether their axes are those of node a, which turn as seen from b; else b's.
        aim: What kind of goal they have: a "pose", "position", "orientation" or "direction".
        axis: For a direction, the axis in b's axes.
    """

    directions: tuple[tuple[float, ...], ...]
    outer: bool = True
    aim: str = "pose"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    @property
    def nv(self) -> int:
        """Number of free directions."""
        return 6 - len(self.directions)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Without meaning."""
        return tuple(Coordinate(f"free_{i}", "") for i in range(self.nv))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        """Without meaning."""
        return self.coordinates

    @property
    def rows(self) -> Array:
        """S (m, 6)."""
        return np.array(self.directions, dtype=np.float64).reshape(-1, 6)

    def pose(self, q: Array) -> Pose:
        """Not defined for rows of a task."""
        self._refuse()

    def hinge_map(self, q: Array) -> Array:
        """Not defined for rows of a task."""
        self._refuse()

    def bias(self, q: Array, v: Array) -> Array:
        """Not defined for rows of a task."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError("rows of a task have no coordinates: they are prescribed, not closed.")


def has_tasks(mech: Mechanism | Embedded) -> bool:
    """Whether its loops or couplings are tasks, whose rows must be independent."""
    rows = any(isinstance(loop.hinge, Rows) for loop in mech.loops)
    return rows or any(isinstance(coupling, JointRow) for coupling in mech.couplings)


SINGULAR = {8: 1e-9, 4: 1e-4}
"""Smallest pivot of J 𝓜⁻¹ J* of tasks, relative to the terms it is made of, by bytes of a number: a
solution keeps at least half of all digits."""


def row_scales(mech: Mechanism) -> Array:
    """The entry of J 𝓜⁻¹ J* of each row of tasks if all of the mass moved with it (m,).

    Rows far below it are rounding only: those of a node seen from the body it is on, for example.
    """
    mass = mech.total_mass
    parts = [pose.p for body in mech.bodies for pose in (body.inboard, body.outboard)]
    way = sum(float(np.linalg.norm(p)) for p in parts)
    moving = 1.0 / mass if mass > 0.0 else 0.0
    turning = moving / way**2 if way > 0.0 else moving
    scales = list[float]()
    for loop in mech.loops:
        assert isinstance(loop.hinge, Rows)
        scales += [moving if any(row[3:]) else turning for row in loop.hinge.directions]
    return np.array(scales + [min(moving, turning)] * len(mech.couplings))


@dataclass(frozen=True, slots=True)
class JointRow(Coupling):
    """A row that is one velocity of a hinge.

    Attributes:
        index: Which of the velocities of the hinge `dependent`.
    """

    index: int = 0


SIZES = {"pose": 12, "orientation": 9, "position": 3, "direction": 3, "center_of_mass": 3}
"""Numbers of a goal: (R_d | p_d) row by row, R_d row by row, p_d, d_d; a point."""

SERVO = ("goal", "velocity", "acceleration", "kp", "kv")
"""Inputs of a servo: the goal, ẋ_d, ẍ_d and the gains, with a number for each row."""

OF_GOALS = {"task_error", "error_X", "error_X*", "error_goal", "error_goal*"}
"""Rules of sweeps that take the goal of a servo alone."""


def servo_inputs(rules: set[str]) -> tuple[str, ...]:
    """Those of `SERVO` that sweeps with these rules take."""
    of_goals = rules & OF_GOALS or any(rule.startswith("form error ") for rule in rules)
    return SERVO if "servo" in rules else SERVO[:1] if of_goals else ()


HALF_TURN = {8: 1e-14, 4: 1e-7}
"""Keeps the axis finite at half a turn, where no direction is nearest; by bytes of a number."""


def goal_sizes(mech: Mechanism) -> list[int]:
    """Numbers of the goal of each loop and coupling of a mechanism that holds tasks as loops."""
    check_rows(mech, "a servo")
    sizes = list[int]()
    for loop in mech.loops:
        if not isinstance(loop.hinge, Rows):
            raise ModelError(f"loop {loop.name!r} of {mech.name!r} is not a task: it has no goal.")
        sizes.append(SIZES[loop.hinge.aim])
    return sizes + [1] * len(joint_places(mech))


def check_rows(mech: Mechanism | Embedded, what: object) -> None:
    """Raise unless there are rows of loops, couplings or tasks.

    Args:
        mech: The mechanism.
        what: What is about these rows.
    """
    if mech.loops or mech.couplings:
        return
    raise ModelError(
        f"{what} is about rows of loops, couplings or tasks, and {mech.name!r} has none. The "
        "expression of a control law is about a copy of the mechanism with the tasks in it: "
        "law.kernel is its kernel; lw.jvp and lw.vjp take the law itself. Closed chains have "
        "expressions in lw.loops.closed_expression(mech, ...)."
    )


def joint_places(mech: Mechanism) -> list[tuple[int, int]]:
    """Body and velocity index of each row of joints.

    Raises:
        ModelError: The velocities of a hinge are not the rates of its coordinates.
    """
    places = list[tuple[int, int]]()
    for row in mech.couplings:
        if not isinstance(row, JointRow):
            raise ModelError(
                f"coupling {row.name!r} of {mech.name!r} is not a task: it has no goal."
            )
        k = mech.hinge_index[row.dependent]
        if type(mech.bodies[k].hinge).qdot is not Hinge.qdot:
            raise ModelError(
                f"hinge {row.dependent!r} has coordinates whose rates are not its velocities; a "
                "kernel has no error for it. Use a task about a node instead."
            )
        places.append((k, row.index))
    return places


def random_goal(mech: Mechanism, rng: np.random.Generator) -> Array:
    """A random goal that the tasks can reach."""
    parts = list[Array]()
    for loop in mech.loops:
        assert isinstance(loop.hinge, Rows)
        turn, way = rotation.random_rotation(rng), rng.standard_normal(3)
        pose = np.concatenate([turn, way[:, None]], axis=1).ravel()
        each = {"pose": pose, "orientation": turn.ravel(), "position": way, "direction": turn[0]}
        parts.append(each[loop.hinge.aim])
    return np.concatenate([*parts, rng.standard_normal(len(joint_places(mech)))])


def missing(hinge: Rows, X_ab: Pose, goal: Any, itemsize: int = 8) -> Any:
    """The rows S (turn, way) (..., m).

    Args:
        hinge: The rows, with what they aim at.
        X_ab: Pose of b seen from a, with leading axes.
        goal: The goal (..., size), or (size,).
        itemsize: Bytes of a number.
    """
    R, p, least = X_ab.rot, X_ab.p, HALF_TURN[itemsize]
    turn, way = np.zeros(p.shape), np.zeros(p.shape)
    if hinge.aim == "pose":
        place = goal.reshape(*goal.shape[:-1], 3, 4)
        turn, way = chord(R, place[..., :3], least), place[..., 3] - p
    elif hinge.aim == "orientation":
        turn = chord(R, goal.reshape(*goal.shape[:-1], 3, 3), least)
    elif hinge.aim == "position":
        way = goal - p
    else:
        turn = _least_turn((R @ np.array(hinge.axis)[:, None])[..., 0], goal, least)
    if not hinge.outer:
        back = np.swapaxes(R, -1, -2)
        turn, way = (back @ turn[..., None])[..., 0], (back @ way[..., None])[..., 0]
    both: Any = six(turn, way)
    return (hinge.rows @ both[..., None])[..., 0]


def chord(R: Array, R_d: Array, least: float) -> Array:
    """2 sin(θ/2) n of R_d R* (..., 3): sin θ n over cos(θ/2)."""
    E = R_d @ np.swapaxes(R, -1, -2)
    sine: Any = 0.5 * np.stack(
        [
            E[..., 2, 1] - E[..., 1, 2],
            E[..., 0, 2] - E[..., 2, 0],
            E[..., 1, 0] - E[..., 0, 1],
        ],
        axis=-1,
    )
    trace = E[..., 0, 0] + E[..., 1, 1] + E[..., 2, 2]
    return sine / _half((1.0 + trace) * 0.25, least)[..., None]


def _least_turn(d: Array, goal: Array, least: float) -> Array:
    """2 sin(θ/2) n of the smallest turn that takes one unit vector to another."""
    cosine = (d * goal).sum(axis=-1)
    return cross(d, goal) / _half((1.0 + cosine) * 0.5, least)[..., None]


def _half(square: Any, least: float) -> Any:
    """cos(θ/2) from its square, which rounding may take below zero: (|x| + x) / 2 is max(x, 0)."""
    return np.sqrt(0.5 * (np.sqrt(square * square) + square) + least)
