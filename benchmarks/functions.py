"""Every plain function compared with Pinocchio's:  one warm call from Python, and a batch.

Run with `python benchmarks/functions.py`; writes benchmarks/results/functions.md. Both sides are
measured in turn in one run, with the same states, and their results are compared first.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chain
import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer

import linkwise as lw
from linkwise.dynamics.configuration import DIFFERENCE, INTEGRATED
from linkwise.dynamics.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES
from linkwise.dynamics.kernels import kernel, written
from linkwise.dynamics.kinematics import jacobian_rate as rate, jacobian_seen
from linkwise.dynamics.momentum import CENTERS, CENTROIDAL, FORMULAS
from linkwise.dynamics.viewpoint import viewed

Array = np.ndarray
LOCAL, ALIGNED, WORLD = peer.LOCAL, pin.LOCAL_WORLD_ALIGNED, pin.WORLD
BATCH, STATES, ROUNDS = 10_000, 16, 15
RESULTS = Path(__file__).parent / "results" / "functions.md"
ROBOTS = {
    "panda (arm, 7)": (
        ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
        "panda_link8",
    ),
    "solo12 (free base, 18)": (("solo12.urdf", "free", ()), "FL_FOOT"),
    "talos_reduced (free base, 38)": (("talos_reduced.urdf", "free", ()), "left_sole_link"),
}
HEAD = """# Everyday functions compared with Pinocchio

Written by `make bench`. Microseconds for one state, float64; ratios are Pinocchio over Linkwise.
*Call* is a call from Python, cycling through {states} states, with a new result array. *Batch*
is {batch:,} states on one core; for Pinocchio a Python loop that stores each result in its row.
*Writing* is the part of our batch that a new array of the results takes when it is filled with one
number: matrices of large robots are bound by memory, and no kernel is faster than that.
*Operations* are scalar ones of the kernel for one state. *Apart* is the largest difference between
both results, relative to the largest entry.

{machine}

Load average {load}.
"""
TABLE = """
## {title}

| function | operations | call | Pinocchio | ratio | batch | writing | Pinocchio | ratio | apart |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class Pair:
    """A function of both libraries.

    Attributes:
        title: What the table calls it.
        ours: Of the mechanism, the node, q, v and x.
        kernel: What it runs, of the mechanism and the node.
        theirs: Of the model, its data, the frame, q, v and x.
        axes: For each axis of the result what it is over: "q", "v", "six" or "".
        takes: Which of q, v and x it takes.
    """

    title: str
    ours: Callable[..., Any]
    kernel: Callable[[lw.Mechanism, str], Any]
    theirs: Callable[..., Any]
    axes: tuple[str, ...]
    takes: str = "q"


def _rate(model: pin.Model, data: pin.Data, frame: int, q: Array, v: Array) -> Array:
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.updateFramePlacements(model, data)
    return pin.getFrameJacobianTimeVariation(model, data, frame, LOCAL)


def _rate_times_v(model: pin.Model, data: pin.Data, frame: int, q: Array, v: Array) -> Array:
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    return pin.getFrameAcceleration(model, data, frame, LOCAL).vector


def _velocity(model: pin.Model, data: pin.Data, frame: int, q: Array, v: Array) -> Array:
    pin.forwardKinematics(model, data, q, v)
    return pin.getFrameVelocity(model, data, frame, LOCAL).vector


def _place(model: pin.Model, data: pin.Data, frame: int, q: Array) -> Array:
    pin.forwardKinematics(model, data, q)
    return pin.updateFramePlacement(model, data, frame).translation


def _momentum_bias(model: pin.Model, data: pin.Data, frame: int, q: Array, v: Array) -> Array:
    pin.dccrba(model, data, q, v)
    return data.dAg @ v


def _inertia(model: pin.Model, data: pin.Data, frame: int, q: Array) -> Array:
    pin.ccrba(model, data, q, np.zeros(model.nv))
    return data.Ig.matrix()


def _named(name: str) -> Callable[[lw.Mechanism, str], Any]:
    return lambda m, n: kernel(m, name)


def _of_node(name: str, frame: Any = "node") -> Callable[[lw.Mechanism, str], Any]:
    return lambda m, n: kernel(m, name, n, frame=frame)


PAIRS = (
    Pair(
        "integrate",
        lambda m, n, q, v: lw.integrate(m, q, v),
        lambda m, n: written(m, INTEGRATED),
        lambda m, d, f, q, v: pin.integrate(m, q, v),
        ("q",),
        "qv",
    ),
    Pair(
        "difference",
        lambda m, n, q, other: lw.difference(m, q, other),
        lambda m, n: written(m, DIFFERENCE),
        lambda m, d, f, q, other: pin.difference(m, q, other),
        ("v",),
        "qq",
    ),
    Pair(
        "forward_kinematics",
        lambda m, n, q: lw.forward_kinematics(m, q, n).p,
        _of_node("node_poses"),
        _place,
        ("",),
    ),
    Pair(
        "jacobian",
        lambda m, n, q: lw.jacobian(m, q, n),
        _of_node("jacobian"),
        lambda m, d, f, q: pin.computeFrameJacobian(m, d, q, f, LOCAL),
        ("six", "v"),
    ),
    Pair(
        'jacobian, frame="world"',
        lambda m, n, q: lw.jacobian(m, q, n, frame="world"),
        _of_node("jacobian", "world"),
        lambda m, d, f, q: pin.computeFrameJacobian(m, d, q, f, ALIGNED),
        ("six", "v"),
    ),
    Pair(
        'jacobian, about="world"',
        lambda m, n, q: lw.jacobian(m, q, n, frame="world", about="world"),
        lambda m, n: viewed(m, jacobian_seen, n, "world", "world"),
        lambda m, d, f, q: pin.computeFrameJacobian(m, d, q, f, WORLD),
        ("six", "v"),
    ),
    Pair(
        "node_velocity",
        lambda m, n, q, v: lw.node_velocity(m, q, v, n),
        _of_node("node_velocity"),
        _velocity,
        ("six",),
        "qv",
    ),
    Pair(
        "jacobian_dot",
        lambda m, n, q, v: lw.jacobian_dot(m, q, v, n),
        lambda m, n: viewed(m, rate, n, "node", None),
        _rate,
        ("six", "v"),
        "qv",
    ),
    Pair(
        "jacobian_bias",
        lambda m, n, q, v: lw.dynamics.jacobian_bias(m, q, v, n),
        _of_node("jacobian_bias"),
        _rate_times_v,
        ("six",),
        "qv",
    ),
    Pair(
        "center_of_mass",
        lambda m, n, q: lw.center_of_mass(m, q),
        lambda m, n: written(m, CENTERS["position"]),
        lambda m, d, f, q: pin.centerOfMass(m, d, q, False),
        ("",),
    ),
    Pair(
        "center_of_mass_jacobian",
        lambda m, n, q: lw.center_of_mass(m, q, what="jacobian"),
        lambda m, n: written(m, CENTERS["jacobian"]),
        lambda m, d, f, q: pin.jacobianCenterOfMass(m, d, q, False),
        ("", "v"),
    ),
    Pair(
        "momentum",
        lambda m, n, q, v: lw.momentum(m, q, v),
        lambda m, n: written(m, FORMULAS["momentum", "com"]),
        lambda m, d, f, q, v: pin.computeCentroidalMomentum(m, d, q, v).vector,
        ("six",),
        "qv",
    ),
    Pair(
        "momentum_matrix",
        lambda m, n, q: lw.momentum(m, q, what="matrix"),
        lambda m, n: written(m, FORMULAS["matrix", "com"]),
        lambda m, d, f, q: pin.computeCentroidalMap(m, d, q),
        ("six", "v"),
    ),
    Pair(
        "momentum_bias",
        lambda m, n, q, v: lw.momentum(m, q, v, what="bias"),
        lambda m, n: written(m, FORMULAS["bias", "com"]),
        _momentum_bias,
        ("six",),
        "qv",
    ),
    Pair(
        "centroidal_inertia",
        lambda m, n, q: lw.dynamics.centroidal_inertia(m, q),
        lambda m, n: written(m, CENTROIDAL),
        _inertia,
        ("six", "six"),
    ),
    Pair(
        "kinetic_energy",
        lambda m, n, q, v: lw.dynamics.kinetic_energy(m, q, v),
        _named("kinetic_energy"),
        lambda m, d, f, q, v: pin.computeKineticEnergy(m, d, q, v),
        (),
        "qv",
    ),
    Pair(
        "potential_energy",
        lambda m, n, q: lw.dynamics.potential_energy(m, q),
        _named("potential_energy"),
        lambda m, d, f, q: pin.computePotentialEnergy(m, d, q),
        (),
    ),
    Pair(
        "mass_matrix",
        lambda m, n, q: lw.mass_matrix(m, q),
        _named("mass_matrix"),
        lambda m, d, f, q: pin.crba(m, d, q),
        ("v", "v"),
    ),
    Pair(
        "mass_matrix_inverse",
        lambda m, n, q: lw.mass_matrix_inverse(m, q),
        _named("mass_matrix_inverse"),
        lambda m, d, f, q: pin.computeMinverse(m, d, q),
        ("v", "v"),
    ),
    Pair(
        "coriolis_matrix",
        lambda m, n, q, v: lw.coriolis_matrix(m, q, v),
        _named("coriolis_matrix"),
        lambda m, d, f, q, v: pin.computeCoriolisMatrix(m, d, q, v),
        ("v", "v"),
        "qv",
    ),
    Pair(
        "gravity_force",
        lambda m, n, q: lw.gravity_force(m, q),
        _named("gravity_force"),
        lambda m, d, f, q: pin.computeGeneralizedGravity(m, d, q),
        ("v",),
    ),
    Pair(
        "bias_force",
        lambda m, n, q, v: lw.bias_force(m, q, v),
        _named("bias_force"),
        lambda m, d, f, q, v: pin.nonLinearEffects(m, d, q, v),
        ("v",),
        "qv",
    ),
    Pair(
        "inverse_dynamics",
        lambda m, n, q, v, x: lw.inverse_dynamics(m, q, v, x),
        _named("inverse_dynamics"),
        lambda m, d, f, q, v, x: pin.rnea(m, d, q, v, x),
        ("v",),
        "qvx",
    ),
    Pair(
        "forward_dynamics",
        lambda m, n, q, v, x: lw.forward_dynamics(m, q, v, x),
        _named("forward_dynamics"),
        lambda m, d, f, q, v, x: pin.aba(m, d, q, v, x),
        ("v",),
        "qvx",
    ),
    Pair(  # all three matrices on both sides; the one by q is compared
        "inverse_dynamics_derivatives",
        lambda m, n, q, v, x: lw.inverse_dynamics_derivatives(m, q, v, x).q,
        lambda m, n: written(m, INVERSE_DERIVATIVES),
        lambda m, d, f, q, v, x: pin.computeRNEADerivatives(m, d, q, v, x)[0],
        ("v", "v"),
        "qvx",
    ),
    Pair(
        "forward_dynamics_derivatives",
        lambda m, n, q, v, x: lw.forward_dynamics_derivatives(m, q, v, x).q,
        lambda m, n: written(m, FORWARD_DERIVATIVES),
        lambda m, d, f, q, v, x: pin.computeABADerivatives(m, d, q, v, x)[0],
        ("v", "v"),
        "qvx",
    ),
)


def main() -> None:
    """Measure and write the tables."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    packages = ("linkwise", "numpy", "llvmlite", "pin", "example-robot-data")
    text = HEAD.format(
        states=STATES, batch=BATCH, machine=machine.description(*packages), load=machine.load()
    )
    for title, (robot, node) in ROBOTS.items():
        mech, model = peer.models(*robot)
        text += TABLE.format(title=title)
        for pair in PAIRS:
            line = row(pair, mech, model, node)
            print(line, flush=True)
            text += line + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def row(pair: Pair, mech: lw.Mechanism, model: pin.Model, node: str) -> str:
    """One line of a table."""
    layout, rng = lw.convert.pinocchio_layout(mech, model), np.random.default_rng(0)
    frame, data = model.getFrameId(node), model.createData()
    given, others = list[Array](), list[Array]()
    for kind in pair.takes:
        if kind == "q":
            given.append(np.array([mech.random(rng) for _ in range(BATCH)]))
            others.append(layout.q_to(given[-1]))
        else:
            given.append(rng.standard_normal((BATCH, mech.nv)))
            others.append(layout.v_to(given[0], given[-1]))
    states = [tuple(np.array(x[i]) for x in given) for i in range(STATES)]
    their_states = [tuple(np.array(x[i]) for x in others) for i in range(STATES)]

    def ours(state: tuple[Array, ...]) -> Any:
        return pair.ours(mech, node, *state)

    def theirs(state: tuple[Array, ...]) -> Any:
        return pair.theirs(model, data, frame, *state)

    error = max(
        difference(pair, layout, ours(a), theirs(b))
        for a, b in zip(states, their_states, strict=True)
    )
    one, other = np.inf, np.inf
    for _ in range(ROUNDS):  # in turn, so that both see the same machine
        one = min(one, chain.best(lambda: [ours(s) for s in states], 20) / STATES)
        other = min(other, chain.best(lambda: [theirs(s) for s in their_states], 20) / STATES)
    result = pair.kernel(mech, node)
    ours(tuple(given))
    batch = chain.best(lambda: ours(tuple(given)), ROUNDS) / BATCH
    shape = (BATCH, *result.signature.shape)
    writing = chain.best(lambda: np.full(shape, 1.0), ROUNDS) / BATCH
    rows = np.empty((BATCH, *np.shape(theirs(their_states[0]))))

    def loop() -> None:
        for i in range(BATCH):
            rows[i] = pair.theirs(model, data, frame, *(x[i] for x in others))

    other_batch = chain.best(loop, 3) / BATCH
    us = [1e6 * t for t in (one, other, batch, other_batch)]
    return (
        f"| {pair.title} | {result.ops.total():,} | {us[0]:.2f} | {us[1]:.2f} | "
        f"{us[1] / us[0]:.1f} | {us[2]:.3f} | {1e6 * writing:.3f} | {us[3]:.2f} | "
        f"{us[3] / us[2]:.0f} | {error:.0e} |"
    )


def difference(pair: Pair, layout: Any, ours: Any, theirs: Any) -> float:
    """The largest one, as a part of the largest entry; ours is put into their order first."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    for axis, kind in enumerate(pair.axes):
        if kind == "six":
            ours = np.take(ours, [3, 4, 5, 0, 1, 2], axis)
        elif kind == "v":
            places = np.arange(float(layout.mech.nv))
            order = layout.v_to(layout.mech.neutral(), places).astype(int)
            ours = np.take(ours, order, axis)
        elif kind == "q":  # quaternions are compared as orientations: q and -q are one
            apart = lw.difference(layout.mech, layout.q_from(theirs), ours)
            return float(np.abs(apart).max() / np.abs(theirs).max())
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


if __name__ == "__main__":
    main()
