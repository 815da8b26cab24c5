"""Motion and force of a node as one formula: state, goals and gains in, joint forces out.

The kernel depends on the structure; all numbers are inputs. In all phases of a contact, F*_active
is

    F*_active = k_f (f_d - f) + k_i ∫ (f_d - f) dt - a n - k_v ẋ - n (ṅ · ẋ)

with k_f = k_i = 0 before force control begins, and a of the approach along the normal n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import X_B, bias, mass
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import singular
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.mass_root import LARGE, MassRoot, mass_root
from linkwise.model import task_rows
from linkwise.model.body import WORLD
from linkwise.spatial import rotation
from linkwise.spatial.choice import gate, maximum, where
from linkwise.spatial.vector import cross
from linkwise.tasks.control.gain import gains_read, times
from linkwise.tasks.control.hierarchy import SHORT, TOLERANCE, in_part
from linkwise.tasks.control.posture import Drawn, drawing
from linkwise.tasks.control.singular import share
from linkwise.tasks.force.surface import following, nearest
from linkwise.tasks.measure import missing
from linkwise.tasks.quantity import TASK
from linkwise.tasks.space import ROUNDING
from linkwise.tasks.task import Task

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of a selection, without numbers.

    Attributes:
        kind: "own" for those of the task, "given" for constant ones in it, "world" for fixed ones,
            "node", or the "sphere" or "cylinder" whose normal is the third.
        node: The node.
    """

    kind: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Commanded:
    """The structure that the kernel of a motion and force controller depends on.

    Attributes:
        task: The task.
        motion: σ of (rx, ry, rz, x, y, z): whether motion is controlled there, else force.
        turn: Axes of turning.
        move: Axes of moving.
        normal: The one axis of moving with force control; None if there is no single one.
        surface: The shape that the node follows; "" for none.
        kp: Whether the stiffness is a matrix.
        kv: Whether the damping is.
        posture: The posture of a redundant mechanism.
        fades: Whether directions fade out near singular configurations.
    """

    task: Task
    motion: tuple[bool, ...]
    turn: Axes
    move: Axes
    normal: int | None
    surface: str
    kp: bool
    kv: bool
    posture: Drawn | None
    fades: bool


NAMES = ("tau", "motion", "active", "acceleration", "motion_error", "force_error", "Omega")


@cache
def formula(s: Commanded, full: bool) -> Formula:
    """The formula of a command, or of its joint forces alone."""
    return Formula(commanded if full else torque, (s,), NAMES if full else ())


def torque(at: Writing, s: Commanded) -> Any:
    """Joint forces alone."""
    return commanded(at, s)[0]


def commanded(at: Writing, s: Commanded) -> Any:
    """Results in the order of NAMES."""
    rows, m = s.task.matrix, len(s.task.rows)
    _, v, goal = at.q, at.v, at.read("goal", task_rows.SIZES[s.task.kind])
    rate, ahead, force, integral = (
        at.read(name, m) for name in ("velocity", "acceleration", "force", "integral")
    )
    sensed, (press, kf, ki, approach, damp) = at.read("contact", 6), at.read("servo", 5)
    setting = Setting(loops=True)
    expressions = (TASK["task_jacobian"](setting), TASK["task_bias"](setting), bias, X_B)
    small = [mass] * (at.mech.nv < LARGE)
    jacobian_of_node, gamma, resisting, places, *inertia = at.value(*expressions, *small)
    inertia = inertia[0] if inertia else None
    (a, b), jacobian, gamma = places.reshape(2, 3, 4), rows @ jacobian_of_node, rows @ gamma
    R, p = b[:, :3], b[:, 3]
    if s.task.relative_to != WORLD:
        R, p = a[:, :3].T @ R, a[:, :3].T @ (p - a[:, 3])
    place = goal.reshape(3, 4) if s.task.kind == "pose" else goal
    turn, way = (place[:, :3], place[:, 3]) if s.task.kind == "pose" else (place, place)
    error, moving = missing(s.task, R, p, turn, way), jacobian @ v

    ((kp,), (kv,)) = (gains_read(at, n, [m], [k]) for n, k in (("kp", s.kp), ("kv", s.kv)))
    F_motion = ahead + times(kv, rate - moving) + times(kp, error)
    axes_of_task = (b if s.task.axes == "node" else a)[:, :3]  # the task's axes in the world
    frames = [_axes(at, n, axes_of_task, b[:, 3], getattr(s, n)) for n in ("turn", "move")]
    Omega = rows @ _projection(s.motion, *frames) @ rows.T
    Omega_bar = np.eye(m) - Omega
    n = np.full(m, 0.0) if s.normal is None else rows[:, 3:] @ frames[1][:, s.normal]
    short = Omega_bar @ (force - press * n + rows @ sensed)  # f_d - f with f = - sensed
    F_active = kf * short + ki * integral - approach * n - damp * moving
    if s.surface:
        third = rows[:, 3:] @ frames[1][:, 2]
        F_active = F_active + _kept(at, s, jacobian_of_node, axes_of_task, b[:, 3]) * third
    along, across = Omega @ F_motion, Omega_bar @ F_active

    root = mass_root(at, inertia)
    scale, (reach,) = at.read("scale", m), at.read("reach", 1)
    threshold = at.read("threshold", 1)[0] if s.fades else None
    Lambda = fading_inertia(root, jacobian, scale, reach, threshold)
    posture = np.full(at.mech.nv, 0.0, dtype=object)
    if s.posture is not None:
        posture = drawing(at, s.posture, inertia)
    A_star = root.whitened(jacobian.T).T
    felt = np.stack([resisting, jacobian_of_node.T @ sensed, posture], axis=1)
    falling, pushed, drawn = (A_star @ root.whitened(felt)).T  # J 𝓜⁻¹ of each
    motion = Lambda @ (along + falling - gamma)
    active = Lambda @ (across - pushed)
    tau = posture + jacobian.T @ (motion + active - Lambda @ drawn)
    return tau, motion, active, along + across, Omega @ error, short, Omega


def _axes(at: Writing, name: str, rot: Any, point: Any, axes: Axes) -> Any:
    """The axes of a selection as columns, in the axes of the task."""
    if axes.kind == "own":
        return np.eye(3)
    if axes.kind in ("given", "world"):
        frame = at.read(f"{name}_axes", 9).reshape(3, 3)
        return frame if axes.kind == "given" else rot.T @ frame
    if axes.kind == "node":
        return rot.T @ at.value(X_B, nodes=(axes.node,)).reshape(3, 4)[:, :3]
    _, normal, _ = nearest(axes.kind, point, at.read(f"{name}_surface", 7))
    return rot.T @ rotation.aligning(np.array([0.0, 0.0, 1.0]), normal)


def _projection(motion: tuple[bool, ...], *frames: Any) -> Any:
    """diag(S_T* Σ_T S_T, S_F* Σ_F S_F) (6, 6)."""
    out = np.full((6, 6), 0.0, dtype=object)
    for i, frame in enumerate(frames):
        sigma, at = np.array(motion[3 * i : 3 * i + 3]), slice(3 * i, 3 * i + 3)
        same = sigma.all() or not sigma.any()  # no frame matters
        out[at, at] = np.diag(sigma * 1.0) if same else (frame * (1.0 * sigma)) @ frame.T
    return out


def _kept(at: Writing, s: Commanded, full: Any, rot: Any, point: Any) -> Any:
    """- ṅ · ẋ of a surface that the node follows.

    It makes d/dt (n · ẋ) the request of the servo. The components of n in the task's axes change on
    a curved surface, and in the node's axes while the node turns.
    """
    numbers, V = at.read("move_surface", 7), full @ at.v
    _, normal, distance = nearest(s.surface, point, numbers)
    speed = rot @ V[3:]
    rate = following(s.surface, normal, distance, speed, numbers[3:6])
    if s.task.axes == "node":
        rate = rate + (speed * cross(rot @ V[:3], normal)).sum()
    return rate


def fading_inertia(mass: MassRoot, J: Any, scale: Any, reach: Any, threshold: Any = None) -> Any:
    """Λ (m, m) of a task whose directions fade out near a singular configuration, for one state.

    With J = U σ V*, rows that turn measured at a length, and G = L⁻¹ V, 𝓜 = L L*, the inertia is

        Λ = U σ⁻¹ (G* G)⁻¹ σ⁻¹ U*

    which grows with 1/σ². A direction with σ below a threshold, a fraction of the largest, gets the
    share s = x² (3 - 2 x), x = σ / (threshold · largest), of its request: with W² = s the middle
    becomes W (W G* G W + (1 - s) diag(G* G))⁻¹ W. All other directions are exact. √s / σ is at most
    √3 over the threshold, so Λ is bounded; at s = 0 the direction is not part of the task, and the
    mechanism is redundant there. No torque jumps.

    Args:
        mass: The root of the mass matrix.
        J: Jacobian of the task (m, nv).
        scale: Factors that turn all rows into speeds (m,).
        reach: Of the mechanism at the nodes of the task [m].
        threshold: Fraction of the largest singular value below which directions fade out; None for
            the plain inverse.
    """
    inside = scale[:, None] * J
    span, values = singular(mass.at, inside)
    most = values[0] if threshold is None else maximum(values[0], SHORT * reach)
    exists = gate(values - maximum(TOLERANCE * most, ROUNDING * reach), 1.0)
    given = exists if threshold is None else exists * share(values / most, threshold)
    over = exists / where(exists, values, 1.0)
    G = mass.whitened((over[:, None] * (span.T @ inside)).T)
    half = in_part(G.T @ G, given, exists)
    outer = half @ (over[:, None] * (span.T * scale))
    return outer.T @ outer
