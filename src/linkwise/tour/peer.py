"""Pinocchio and MuJoCo beside Linkwise, where they are installed: the same robot, the same state.

The tree of the robot is written to a file that both libraries read, so that names and axes are the
same. Functions whose results differ are not timed.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import dynamics
from linkwise.convert import mujoco_layout, pinocchio_layout
from linkwise.errors import LinkwiseError, ModelError
from linkwise.io.load import load
from linkwise.io.save import save
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

SAME = 1e-6
"""Largest relative difference of two libraries with the same robot."""


@dataclass(frozen=True, slots=True)
class Route:
    """One function of another library.

    Attributes:
        name: Its name there.
        call: One evaluation.
        agrees: Whether its result is that of Linkwise.
    """

    name: str
    call: Callable[[], object]
    agrees: bool


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Positions, velocities, joint forces and accelerations of one state, or of a batch."""

    q: Array
    v: Array
    tau: Array
    vdot: Array

    @classmethod
    def random(cls, mech: Mechanism, seed: int = 0) -> State:
        """A random state."""
        rng = np.random.default_rng(seed)
        q, v = mech.random(rng), mech.random_velocity(rng)
        return cls(q, v, *rng.standard_normal((2, mech.nv)))

    def carried(self, here: Mechanism, there: Mechanism) -> State:
        """The same state of the same robot read from a file, where the bodies may be reordered.

        Raises:
            ModelError: The hinges differ, or the same numbers mean another state.
        """
        q, (v, tau, vdot, carried) = there.neutral(), np.zeros((4, there.nv))
        expected = dynamics.forward_dynamics(here, self.q, self.v, self.tau, loops="open")
        for body in (body for body in there.bodies if body.hinge.nv):
            name = body.hinge_name
            if name not in here.hinge_index or type(here.hinge(name).hinge) is not type(body.hinge):
                raise ModelError(f"in a file {here.name} has other hinges, so states differ.")
            q[there.q_slice(name)] = self.q[here.q_slice(name)]
            pairs = ((v, self.v), (tau, self.tau), (vdot, self.vdot), (carried, expected))
            for new, old in pairs:
                new[there.v_slice(name)] = old[here.v_slice(name)]
        if not _close(dynamics.forward_dynamics(there, q, v, tau, loops="open"), carried):
            raise ModelError(f"in a file {here.name} moves otherwise, so states differ.")
        return State(q, v, tau, vdot)


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def pinocchio(mech: Mechanism, state: State | None = None) -> dict[str, Route]:
    """Functions of Pinocchio, by the names of ours, at a state or at a random one.

    Raises:
        LinkwiseError: The robot cannot be written for it, or read by it.
    """
    pin = importlib.import_module("pinocchio")
    robot = mech
    mech, model = _read(robot, "robot.urdf", lambda path: pin.buildModelFromUrdf(path), "Pinocchio")
    at = State.random(mech) if state is None else state.carried(robot, mech)
    layout = pinocchio_layout(mech, model)
    units = np.array(
        [layout.v_to(at.q, e) for e in np.eye(mech.nv)]
    )  # rows: our unit vectors there
    model.armature[:] = np.abs(units).T @ mech.armature
    model.gravity.linear = np.array(mech.gravity)
    data = model.createData()
    q, v = layout.q_to(at.q), layout.v_to(at.q, at.v)
    tau, vdot = layout.force_to(at.q, at.tau), layout.vdot_to(at.q, at.v, at.vdot)
    calls: dict[str, tuple[str, Callable[[], Array]]] = {
        "forward_dynamics": ("aba", lambda: pin.aba(model, data, q, v, tau)),
        "inverse_dynamics": ("rnea", lambda: pin.rnea(model, data, q, v, vdot)),
        "mass_matrix": ("crba", lambda: pin.crba(model, data, q)),
        "mass_matrix_inverse": ("computeMinverse", lambda: pin.computeMinverse(model, data, q)),
        "bias_force": ("nonLinearEffects", lambda: pin.nonLinearEffects(model, data, q, v)),
        "gravity_force": (
            "computeGeneralizedGravity",
            lambda: pin.computeGeneralizedGravity(model, data, q),
        ),
    }

    def here(name: str, there: Array) -> Array:
        """A result of Pinocchio in our layout."""
        if name == "forward_dynamics":
            return layout.vdot_from(at.q, at.v, there)
        if name.startswith("mass_matrix"):
            return units @ _symmetric(there) @ units.T
        return layout.force_from(at.q, there)

    return _compared(mech, at, calls, here)


def mujoco(mech: Mechanism) -> dict[str, Route]:
    """MuJoCo's complete forward and inverse computation, without contacts and limits.

    Raises:
        LinkwiseError: The robot cannot be written for it, or read by it.
    """
    mj = importlib.import_module("mujoco")
    mech, model = _read(mech, "robot.xml", lambda path: mj.MjModel.from_xml_path(path), "MuJoCo")
    at, layout = State.random(mech), mujoco_layout(mech, model)
    model.opt.disableflags |= mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.gravity[:] = mech.gravity
    model.dof_damping[:], model.jnt_stiffness[:] = 0.0, 0.0
    q, v = layout.q_to(at.q), layout.v_to(at.q, at.v)
    forward, inverse = mj.MjData(model), mj.MjData(model)
    forward.qpos[:], forward.qvel[:] = q, v
    inverse.qpos[:], inverse.qvel[:] = q, v
    forward.qfrc_applied[:] = layout.force_to(at.q, at.tau)
    inverse.qacc[:] = layout.vdot_to(at.q, at.v, at.vdot)
    calls: dict[str, tuple[str, Callable[[], Any]]] = {
        "forward_dynamics": ("mj_forward", lambda: mj.mj_forward(model, forward)),
        "inverse_dynamics": ("mj_inverse", lambda: mj.mj_inverse(model, inverse)),
    }

    def here(name: str, there: object) -> Array:
        """MuJoCo leaves results in its data."""
        del there
        if name == "forward_dynamics":
            return layout.vdot_from(at.q, at.v, np.array(forward.qacc))
        return layout.force_from(at.q, np.array(inverse.qfrc_inverse))

    return _compared(mech, at, calls, here)


def everyday(mech: Mechanism, at: State) -> dict[str, Callable[[], Any]]:
    """The functions that other libraries have too, at a state or a batch of them."""
    q, v, tau, vdot = at.q, at.v, at.tau, at.vdot
    return {
        "forward_dynamics": lambda: dynamics.forward_dynamics(mech, q, v, tau, loops="open"),
        "inverse_dynamics": lambda: dynamics.inverse_dynamics(mech, q, v, vdot, loops="open"),
        "mass_matrix": lambda: dynamics.mass_matrix(mech, q),
        "mass_matrix_inverse": lambda: dynamics.mass_matrix_inverse(mech, q),
        "bias_force": lambda: dynamics.bias_force(mech, q, v),
        "gravity_force": lambda: dynamics.gravity_force(mech, q),
    }


def _compared(
    mech: Mechanism,
    at: State,
    calls: dict[str, tuple[str, Callable[[], Any]]],
    here: Callable[[str, Any], Array],
) -> dict[str, Route]:
    ours = everyday(mech, at)
    return {
        name: Route(theirs, call, _close(here(name, call()), np.asarray(ours[name]())))
        for name, (theirs, call) in calls.items()
    }


def _close(got: Array, expected: Array) -> bool:
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    return float(np.abs(got - expected).max(initial=0.0)) <= SAME * scale


def _read(
    mech: Mechanism, file: str, read: Callable[[str], Any], library: str
) -> tuple[Mechanism, Any]:
    """The tree of the robot read from one file by both libraries."""
    if not mech.nv:
        raise ModelError("nothing moves.")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        path = str(Path(folder) / file)
        try:
            save(_bare(mech), path)
            again = load(path).with_gravity(mech.gravity)
            return again, read(path)
        except LinkwiseError:
            raise
        except UserWarning as warning:
            lines = str(warning).splitlines()
            raise ModelError(" ".join(line.strip() for line in lines[:2])) from None
        except Exception as error:  # the other library may raise anything
            text = " ".join(str(error).split())[:200]
            raise ModelError(f"{library} cannot read it: {text}") from None


def _bare(mech: Mechanism) -> Mechanism:
    """The tree without loops, couplings and shapes; URDF cannot express gravity."""
    tree = mech.without(*(x.name for x in (*mech.loops, *mech.couplings)))
    bodies = tuple(replace(body, geometry=()) for body in tree.bodies)
    nodes = tuple(replace(node, geometry=()) for node in tree.nodes)
    return replaced(tree, bodies=bodies, nodes=nodes).with_gravity((0.0, 0.0, -9.81))


def _symmetric(upper: Array) -> Array:
    """A symmetric matrix from its upper half."""
    top = np.triu(upper)
    return top + np.triu(top, 1).T
