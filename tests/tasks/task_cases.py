"""Tasks of every kind, each with the rows it should have, written down by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise import Task
from tests.tasks.dense_task import DenseSpace, World, dense_world, rows, space_of

I6 = np.eye(6)
OBLIQUE = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
AXIS = np.array([2.0, -1.0, 2.0]) / 3.0


@dataclass(frozen=True)
class Case:
    """A task, and S (m, 6), node, reference and axes of ẋ = S R V_ab; or the hinges of joints."""

    task: lw.Task
    S: np.ndarray | None = None
    node: str = ""
    relative_to: str = "world"
    axes: str = "reference"
    hinges: tuple[str, ...] = ()

    def dense(self, mech: lw.Mechanism, world: World) -> tuple[np.ndarray, np.ndarray]:
        """J_t and γ."""
        if self.S is not None:
            return rows(world, self.S, self.node, self.relative_to, self.axes)
        chosen = [np.eye(mech.nv)[mech.v_slice(name)] for name in self.hinges]
        J = np.vstack(chosen)
        return J, np.zeros(len(J))


def cases(mech: lw.Mechanism, node: str, other: str) -> dict[str, list[Case]]:
    """By name: tasks of two nodes."""
    hinge = next(b.hinge_name for b in mech.bodies if b.hinge.nq == b.hinge.nv > 0)
    direction = Task.direction(node, axis=AXIS)
    angular = np.array(direction.rows)[:, :3]
    np.testing.assert_allclose(angular @ angular.T, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(angular @ AXIS, 0.0, atol=1e-14)
    assert not np.array(direction.rows)[:, 3:].any()
    lead = np.zeros((2, 3))
    result = {
        "pose": [Case(Task.pose(node), I6, node)],
        "pose, node axes": [Case(Task.pose(node, axes="node"), I6, node, axes="node")],
        "position": [Case(Task.position(node), I6[3:], node)],
        "x and z": [Case(Task.position(node, along="xz"), I6[[3, 5]], node)],
        "oblique": [
            Case(Task.position(node, along=OBLIQUE), np.hstack([lead, OBLIQUE]), node),
            Case(Task.position(other, along="y", axes="node"), I6[4:5], other, axes="node"),
        ],
        "orientation": [Case(Task.orientation(node), I6[:3], node)],
        "about y": [Case(Task.orientation(node, about="y"), I6[1:2], node)],
        "about oblique": [
            Case(Task.orientation(node, about=OBLIQUE), np.hstack([OBLIQUE, lead]), node)
        ],
        "direction": [Case(direction, np.array(direction.rows), node, axes="node")],
        "relative": [Case(Task.pose(node, relative_to=other), I6, node, other)],
        "relative, node axes": [
            Case(Task.pose(node, relative_to=other, axes="node"), I6, node, other, "node")
        ],
        "relative position": [
            Case(Task.position(node, relative_to=other, along="xy"), I6[3:5], node, other)
        ],
        "joints": [Case(Task.joints(hinge), hinges=(hinge,))],
        "stack": [
            Case(Task.position(node), I6[3:], node),
            Case(Task.orientation(other, about="xz"), I6[[0, 2]], other),
            Case(Task.joints(hinge), hinges=(hinge,)),
        ],
    }
    return result


def tasks_of(some: Sequence[Case]) -> list[lw.Task]:
    return [case.task for case in some]


def dense_space(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, some: Sequence[Case]
) -> DenseSpace:
    """From hinge maps and NumPy."""
    names = {name for case in some for name in (case.node, case.relative_to)} - {"", "world"}
    world = dense_world(mech, q, v, sorted(names))
    return space_of(world, [case.dense(mech, world) for case in some])
