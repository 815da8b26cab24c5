"""Which motions and which forces are controlled: the selection matrices Ω and Ω̄.

Forces are described in a frame F whose axes suit the task, moments in a separate frame T. Along
each axis either the motion or the force is controlled (σ = 1 or 0). In the axes of the task

    Ω = [ S_T* Σ_T S_T       0       ]        Ω̄ = I - Ω
        [      0       S_F* Σ_F S_F  ]

with S the rotation from the task's axes into the frame, and Σ the diagonal of the σ: two orthogonal
projections with Ω + Ω̄ = I, Ω Ω = Ω, Ω Ω̄ = 0. Moments come first; the source has forces first. For
a task of fewer, orthonormal rows S_t it is S_t Ω S_t*, a projection if the rows span axes of the
frame.

Source: 003 section 2.2, after Khatib (1987), where the name is generalised selection matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.arguments import rows
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ModelError
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike, constant, floats, frozen, unit
from linkwise.spatial.pose import Pose
from linkwise.tasks.force.commanded import Axes
from linkwise.tasks.force.surface import CompliantSurface, check_node
from linkwise.tasks.task import Task

AXES = ("rx", "ry", "rz", "x", "y", "z")
"""Turning about the axes of a frame, and moving along them, in the order of spatial vectors."""

TOLERANCE = 1e-9
"""Largest deviation of given matrices from complementary projections."""

KINDS = ("pose", "position")
"""Tasks whose motions and forces can be selected."""

Given: TypeAlias = "ArrayLike | str | CompliantSurface | None"
"""Axes: a rotation matrix (3, 3) from the frame to the task's axes, the name of a node whose axes
they are, a surface whose normal is the third axis, or None for the task's axes."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The axes of motion control and of force control.

    Made by `along_normal`, `from_axes`, `from_matrices` or `all_motion`.

    Attributes:
        motion: σ of (rx, ry, rz, x, y, z): whether motion is controlled there, else force.
        frame: Axes of forces and of moving, as `Given`.
        turn_frame: Axes of moments and of turning.
    """

    motion: tuple[bool, bool, bool, bool, bool, bool]
    frame: Given = None
    turn_frame: Given = None

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        chosen = rows(self.motion, 6, "motion", stacked=False, hint=f"the axes are {AXES}")
        if not ((chosen == 0.0) | (chosen == 1.0)).all():
            raise ModelError(f"motion is {self.motion!r}; each axis is True or False.")
        put(self, "motion", tuple(bool(x) for x in chosen))
        for name in ("frame", "turn_frame"):
            put(self, name, _checked_frame(getattr(self, name), name))

    @staticmethod
    def all_motion() -> Selection:
        """Free motion: Ω is the identity."""
        return Selection((True, True, True, True, True, True))

    @staticmethod
    def along_normal(normal: ArrayLike | CompliantSurface) -> Selection:
        """Force along a normal; motion in the tangent plane and in all rotations.

        Args:
            normal: A vector (3,) in the task's axes, of any nonzero length, or a surface, with
                its normal at the node.
        """
        if isinstance(normal, CompliantSurface):
            return Selection((True, True, True, True, True, False), normal)
        z = np.array([0.0, 0.0, 1.0])
        frame = rotation.aligning(z, unit(normal, "normal"))
        return Selection((True, True, True, True, True, False), frame)

    @staticmethod
    def from_axes(
        frame: Given = None,
        *,
        motion: str | Iterable[str] | None = None,
        force: str | Iterable[str] | None = None,
        turn_frame: Given = None,
    ) -> Selection:
        """By the axes of a frame: "x", "y", "z" for moving and forces, "rx" … for turning.

            lw.tasks.Selection.from_axes("wrist", force="z rx ry")        all others are motion

        Args:
            frame: Axes of moving: a rotation matrix from the frame to the task's axes, the name of
                a node, a surface (its third axis is the normal), or None for the task's axes.
            motion: Axes of motion control; default: those that are not in `force`.
            force: Axes of force control; default: those that are not in `motion`.
            turn_frame: Axes of turning; default: those of moving.

        Raises:
            ModelError: The named axis is in both, in neither, or unknown.
        """
        moved, pushed = _axes(motion, "motion"), _axes(force, "force")
        if moved is None and pushed is None:
            raise ModelError("the selection has no axes; give motion= or force=, like force='z'.")
        if moved is None or pushed is None:
            given = moved if pushed is None else pushed
            rest = frozenset(AXES) - (given or frozenset())
            moved, pushed = (rest, pushed) if moved is None else (moved, rest)
        assert moved is not None and pushed is not None
        both = [x for x in AXES if x in moved and x in pushed]
        neither = [x for x in AXES if x not in moved and x not in pushed]
        if both or neither:
            problems = [f"{', '.join(both)} in both"] if both else []
            problems += [f"{', '.join(neither)} in neither"] if neither else []
            raise ModelError(
                f"motion and force are not complementary: {' and '.join(problems)}. Each of "
                f"{', '.join(AXES)} must be in one of them; if one is omitted, it is the rest."
            )
        sigma: Any = tuple(x in moved for x in AXES)
        return Selection(sigma, frame, frame if turn_frame is None else turn_frame)

    @staticmethod
    def from_matrices(motion: ArrayLike, force: ArrayLike | None = None) -> Selection:
        """By Ω and Ω̄ themselves, in the task's axes.

        Args:
            motion: Ω (6, 6), angular rows first; or (3, 3) of moving, with motion control of all
                turning.
            force: Ω̄ of the same shape; default: I - Ω.

        Raises:
            ModelError: They are not orthogonal projections, mix turning with moving, or are not
                complementary.
        """
        Omega = _six(motion, "motion")
        Omega_bar = np.eye(6) - Omega if force is None else _six(force, "force", rest=0.0)
        for name, matrix in (("motion", Omega), ("force", Omega_bar)):
            _check_projection(name, matrix)
        off = np.abs(Omega + Omega_bar - np.eye(6)).max()
        if off > TOLERANCE:
            raise ModelError(
                "the selection matrices of motion and force are not complementary: their sum is "
                f"not the identity, off by {off:.3g} ({_overlap(Omega, Omega_bar)}). Omit force= "
                "for I - motion."
            )
        frames, sigma = list[Array | None](), list[bool]()
        for part in (slice(0, 3), slice(3, 6)):
            frame, chosen = _frame_of(Omega[part, part])
            frames.append(frame)
            sigma += chosen
        six: Any = tuple(sigma)
        return Selection(six, frames[1], frames[0])

    def matrices(self, mech: Mechanism, q: ArrayLike, task: Task) -> tuple[Array, Array]:
        """Ω and Ω̄ (m, m), or (batch, m, m) if the axes move with the mechanism.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            task: A pose or position.

        Raises:
            ModelError: The task is of another kind, or has rows oblique to the axes of the frame.
            UnknownNameError: The mechanism has no such node.
        """
        check_task(mech, task)
        q = mech.check_q(q)
        turn, move = (self._projection(mech, q, task, i) for i in (0, 1))
        both = np.zeros((*np.broadcast_shapes(turn.shape[:-2], move.shape[:-2]), 6, 6))
        both[..., :3, :3], both[..., 3:, 3:] = turn, move
        rows = task.matrix
        Omega = rows @ both @ rows.T
        if np.abs(Omega @ rows - rows @ both).max(initial=0.0) > TOLERANCE:
            raise ModelError(
                f"task {task.name!r} has {len(rows)} rows, not all along axes of the selection: "
                "it would control partly motion and partly force. Use all three directions, "
                f"lw.Task.position({task.node!r}), or rows along the axes of the frame."
            )
        Omega_bar = np.eye(len(rows)) - Omega
        pushed = [name for name, moves in zip(AXES, self.motion, strict=True) if not moves]
        left_out = len(pushed) - Omega_bar.trace(axis1=-2, axis2=-1)
        if np.abs(left_out).max(initial=0.0) > 0.5:
            raise ModelError(
                f"the selection has force along {', '.join(pushed)}, but task {task.name!r} with "
                f"its {len(rows)} rows does not include all of them, so some would not be "
                f"controlled. Use lw.Task.pose({task.node!r}), or name only axes of the task: "
                "force='z'."
            )
        return Omega, Omega_bar

    def constant(self, task: Task) -> bool:
        """Whether Ω is constant: its frames do not move relative to the task's axes."""
        still = task.axes == "reference" and task.relative_to == WORLD
        return all(
            frame is None
            or isinstance(frame, np.ndarray)
            or (isinstance(frame, CompliantSurface) and frame.normal is not None and still)
            for frame in (self.frame, self.turn_frame)
        )

    def normal(self, mech: Mechanism, q: ArrayLike, task: Task) -> Array:
        """The one axis of force control, in the rows of the task (..., m).

        Raises:
            ModelError: There are several or none, or a moment is controlled.
        """
        pushed = [name for name, moves in zip(AXES, self.motion, strict=True) if not moves]
        if len(pushed) != 1 or pushed[0] not in AXES[3:]:
            raise ModelError(
                f"the selection has {len(pushed)} axes of force control ({', '.join(pushed)}), so "
                "there is no single normal. Give the force as a vector over the rows of the task; "
                "to approach a surface, use lw.tasks.Selection.along_normal."
            )
        check_task(mech, task)
        return self.axis(mech, mech.check_q(q), task, AXES.index(pushed[0]) - 3)

    def axis(self, mech: Mechanism, q: Array, task: Task, k: int) -> Array:
        """Axis x, y or z (0, 1, 2) of the frame of moving, in the rows of the task (..., m)."""
        return self._axes(mech, q, task, self.frame)[..., :, k] @ task.matrix[:, 3:].T

    def _projection(self, mech: Mechanism, q: Array, task: Task, i: int) -> Array:
        """S* Σ S of turning (0) or moving (1), in the task's axes."""
        sigma = np.array(self.motion[3 * i : 3 * i + 3])
        if sigma.all() or not sigma.any():  # no frame matters
            return np.eye(3) * float(sigma.all())
        axes = self._axes(mech, q, task, self.frame if i else self.turn_frame)
        return (axes * sigma) @ np.swapaxes(axes, -1, -2)

    def _axes(self, mech: Mechanism, q: Array, task: Task, frame: Given) -> Array:
        """S*: the axes of the frame as columns, in the task's axes (..., 3, 3)."""
        if frame is None:
            return np.eye(3)
        if isinstance(frame, np.ndarray):
            return frame
        if isinstance(frame, CompliantSurface):
            if task.relative_to != WORLD:
                raise ModelError(
                    f"task {task.name!r} is relative to {task.relative_to!r}, but the surface of "
                    "the selection is fixed in the world; use a task relative to the world."
                )
            if frame.normal is not None:
                rot_WF = upright(frame.normal)
            else:
                normal = frame.normal_at(forward_kinematics(mech, q, task.node).p)
                rot_WF = rotation.aligning(np.array([0.0, 0.0, 1.0]), normal)
        else:
            assert isinstance(frame, str)
            check_node(mech, frame)
            rot_WF = forward_kinematics(mech, q, frame).rot
        return np.swapaxes(task_axes(mech, q, task), -1, -2) @ rot_WF

    def __str__(self) -> str:
        lines = [
            f"{what} {', '.join(x for x, m in zip(AXES, self.motion, strict=True) if m is kind)}"
            for what, kind in (("motion", True), ("force", False))
            if kind in self.motion
        ]
        whose = f"{'; '.join(lines)}; of {_named(self.frame)}"
        turns = self.motion[:3]
        if all(turns) or not any(turns) or _same(self.frame, self.turn_frame):
            return whose  # axes of turning do not matter, or are the same
        return f"{whose}, turning of {_named(self.turn_frame)}"


def axes_of(frame: Given) -> Axes:
    """The structure of the axes of a selection, for kernels."""
    if frame is None:
        return Axes("own")
    if isinstance(frame, CompliantSurface):
        return Axes("world" if frame.normal is not None else frame.shape)
    return Axes("node", frame) if isinstance(frame, str) else Axes("given")


def task_axes(mech: Mechanism, q: ArrayLike, task: Task) -> Array:
    """The axes of a task, as columns in the world (..., 3, 3)."""
    name = task.relative_to if task.axes == "reference" else task.node
    return np.eye(3) if name == WORLD else forward_kinematics(mech, q, name).rot


def check_task(mech: object, task: object) -> None:
    """Raise unless a task is the pose or position of a node, in basic coordinates."""
    check_mechanism(mech)
    if not isinstance(task, Task):
        kind = "several tasks" if isinstance(task, tuple | list) else f"a {type(task).__name__}"
        raise ModelError(f"task is {kind}; motion and force are controlled for one lw.Task.")
    if task.kind not in KINDS:
        raise ModelError(
            f"task {task.name!r} is of kind {task.kind!r}; motion and force are controlled for the "
            "pose or the position of a node: lw.Task.pose(node), lw.Task.position(node)."
        )
    if task.coordinates is not None:
        raise ModelError(
            f"task {task.name!r} has coordinates {task.coordinates!r}; forces along them are not "
            "moments. Remove the coordinates: motion and force are controlled in angular "
            "velocities."
        )
    off = np.abs(task.matrix @ task.matrix.T - np.eye(len(task.rows))).max()
    if off > TOLERANCE:
        raise ModelError(
            f"task {task.name!r} has rows that are not orthonormal, by {off:.3g}; force control "
            "needs perpendicular directions of unit length."
        )
    for name in (task.node, task.relative_to):
        if name != WORLD:
            check_node(mech, name)


@lru_cache(maxsize=64)
def upright(normal: tuple[float, float, float]) -> Array:
    """Axes whose third is a normal, as columns."""
    return frozen(rotation.aligning(np.array([0.0, 0.0, 1.0]), np.array(normal)))


def _checked_frame(frame: object, what: str) -> object:
    if frame is None or isinstance(frame, str | CompliantSurface):
        return frame
    return frozen(np.array(Pose.rotation(constant(floats(frame, what), (3, 3), what)).rot))


def _axes(given: object, what: str) -> frozenset[str] | None:
    """Names of axes, from a text or several."""
    if given is None:
        return None
    if isinstance(given, str):
        given = given.split()
    if not isinstance(given, Iterable):
        raise ModelError(f"{what} is {given!r}; it names axes, like {what}='z rx ry'.")
    words = list(cast("Iterable[object]", given))
    for word in words:
        if word not in AXES:
            raise ModelError(
                f"{what} has an axis {word!r}; axes are {', '.join(AXES)}, separated by "
                "spaces: force='z', force='z rx ry'."
            )
    return frozenset(str(word) for word in words)


def _six(matrix: ArrayLike, what: str, rest: float = 1.0) -> Array:
    """A selection matrix of all six axes; `rest` is the diagonal of turning for (3, 3)."""
    array = floats(matrix, what)
    if array.shape == (3, 3):
        six = rest * np.eye(6)
        six[3:, 3:] = array
        array = six
    return constant(array, (6, 6), f"selection matrix of {what}")


def _check_projection(what: str, matrix: Array) -> None:
    """Raise unless a matrix is an orthogonal projection, of turning and moving separately."""
    mixed = max(np.abs(matrix[:3, 3:]).max(), np.abs(matrix[3:, :3]).max())
    if mixed > TOLERANCE:
        raise ModelError(
            f"the selection matrix of {what} mixes turning with moving, by {mixed:.3g}, so the "
            "selection would depend on the unit of length. Give blocks (3, 3) on its diagonal."
        )
    off = max(np.abs(matrix @ matrix - matrix).max(), np.abs(matrix - matrix.T).max())
    if off > TOLERANCE:
        raise ModelError(
            f"the selection matrix of {what} is not an orthogonal projection: Ω Ω = Ω = Ω* fails "
            f"by {off:.3g}. Use S* Σ S with a rotation S and a diagonal Σ of ones and zeros."
        )


def _overlap(Omega: Array, Omega_bar: Array) -> str:
    """Which directions are in both, or in neither."""
    values = np.linalg.eigvalsh(Omega + Omega_bar)
    both, neither = int((values > 1.0 + TOLERANCE).sum()), int((values < 1.0 - TOLERANCE).sum())
    return f"partly in both: {both} of the directions, in neither: {neither}"


def _frame_of(projection: Array) -> tuple[Array | None, list[bool]]:
    """Axes of a projection (3, 3), None for the axes themselves, and which of them it keeps."""
    diagonal = np.diag(projection)
    if np.abs(projection - np.diag(diagonal)).max() <= TOLERANCE:
        return None, [bool(x > 0.5) for x in diagonal]
    alone = np.trace(projection) > 1.5  # the axis that differs from the others is z
    vectors = np.linalg.eigh(projection)[1]
    z = vectors[:, 0 if alone else 2]
    z = z * np.sign(z[np.argmax(np.abs(z))])
    return rotation.aligning(np.array([0.0, 0.0, 1.0]), z), [alone, alone, not alone]


def _same(one: Given, other: Given) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return one is other or (isinstance(one, str) and one == other)


def _named(frame: Given) -> str:
    if frame is None:
        return "the task's axes"
    if isinstance(frame, str):
        return f"the axes of {frame!r}"
    if isinstance(frame, CompliantSurface):
        return f"the normal of a {frame.shape}"
    columns = np.array(frame).T.round(3) + 0.0
    return "axes " + ", ".join(str(tuple(x.tolist())) for x in columns)
