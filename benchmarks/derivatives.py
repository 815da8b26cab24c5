"""Derivatives of dynamics and regressors beside Pinocchio: one call, batches, first calls.

Run with `python benchmarks/derivatives.py`; writes benchmarks/results/derivatives.md. Both sides
are measured in turn in one run, with the same states, and all matrices are compared first.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vector
from linkwise.algebra.space import JOINT
from linkwise.dynamics.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES
from linkwise.dynamics.kernels import written
from linkwise.dynamics.regressor import FORMULAS

Array = np.ndarray
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
ROBOTS = {
    "panda (7)": (("panda.urdf", "fixed", FINGERS), 2048),
    "solo12 (18)": (("solo12.urdf", "free", ()), 256),
    "talos_reduced (38)": (("talos_reduced.urdf", "free", ()), 64),
}
STATES, ROUNDS = 16, 40
RESULTS = Path(__file__).parent / "results" / "derivatives.md"
HEAD = """# Derivatives compared with Pinocchio

Written by `make bench`. Microseconds for one state, float64; ratios are Pinocchio over Linkwise.
All matrices of a function are computed on both sides: ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹ of forward dynamics,
∂τ/∂q, ∂τ/∂v and 𝓜 of inverse dynamics, the regressor of joint forces by all inertial parameters.
*One call* is a call from Python, cycling through {states} states, with new arrays for the results.
*Batch* is that many states in one call on one core, for Pinocchio a loop in Python that stores each
result in its row. *Writing* is the time that this core takes to fill as much memory as the results
of one state need, in an array as large as the batch's: no batch can be faster. *First call* is that
of a fresh process with an empty cache folder, including what a kernel imports; *first batch* is
what code for batches adds. *Operations* are scalar ones of the kernel for one state. All times are
processor times. The last column is the largest difference between both libraries, relative to the
largest entry.

What remains: one call does limbs of equal build side by side, so robots with legs and arms gain
most. A single arm has none, and about half of its call is outside the kernel: the call from Python,
three arrays and their record. Batches of large robots write all zeros of the results too; *writing*
is the part of the time that no better code can save.

{machine}

Load average {load} at the start.

| robot (dof) | derivatives of | operations | one call | Pinocchio | ratio | batch of | time | \
writing | Pinocchio | ratio | first call [s] | first batch [s] | difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
PRODUCTS = """
## Products with derivatives of forward dynamics

Operations for one state: v̇ itself, with A = ∂v̇/∂q the product A u and the gradient A* w, and
`lw.jvp` and `lw.vjp` by q, v and τ at once.

| mechanism | v̇ | A u | ratio | A* w | ratio | jvp by q, v, τ | ratio | vjp by q, v, τ | ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
CHILD = """
import sys, time
sys.path.insert(0, {here!r})
import derivatives, numpy as np, pinocchio_side as peer
robot, _ = derivatives.ROBOTS[{robot!r}]
mech, _ = peer.models(*robot)
call = derivatives.PAIRS[{pair}].ours
q, v, x = mech.neutral(), np.full(mech.nv, 0.1), np.full(mech.nv, 0.2)
begun = time.process_time()
call(mech, q, v, x)
one = time.process_time()
call(mech, *(np.tile(y, (8, 1)) for y in (q, v, x)))
print(one - begun, time.process_time() - one)
"""


@dataclass(frozen=True)
class Pair:
    """A function of both libraries.

    Attributes:
        title: What the table calls it.
        ours: Of the mechanism, q, v and x: several matrices, or one.
        formula: What it runs.
        theirs: Of the model, its data, q, v and x: the same, in the same order.
    """

    title: str
    ours: Callable[..., Any]
    formula: Any
    theirs: Callable[..., Any]


PAIRS = (
    Pair(
        "forward dynamics",
        lw.forward_dynamics_derivatives,
        FORWARD_DERIVATIVES,
        pin.computeABADerivatives,
    ),
    Pair(
        "inverse dynamics",
        lw.inverse_dynamics_derivatives,
        INVERSE_DERIVATIVES,
        pin.computeRNEADerivatives,
    ),
    Pair(
        "joint forces, by inertia",
        lw.dynamics.regressor,
        FORMULAS["torque"],
        pin.computeJointTorqueRegressor,
    ),
)


def main() -> None:
    """Measure and write the tables."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    packages = ("linkwise", "numpy", "llvmlite", "pin", "example-robot-data")
    text = HEAD.format(states=STATES, machine=machine.description(*packages), load=machine.load())
    for title in ROBOTS:
        for number in range(len(PAIRS)):
            text += shown(row(title, number))
    text += shown(PRODUCTS.rstrip("\n"))
    for name in ("seven_dof_arm", "puma560", "quadruped"):
        text += shown(products(name))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def shown(line: str) -> str:
    """A line of the page, printed too."""
    print(line, flush=True)
    return line + "\n"


def products(name: str) -> str:
    """A line of the table of products."""
    mech, forward = getattr(lw.models, name)(), mass.inv @ (tau - bias)
    A, (u, w) = lw.differentiate(forward, "q"), (vector(x, JOINT) for x in "uw")
    line, plain = f"| {name}", 0
    both = [product(forward, "q", "v", "tau") for product in (lw.jvp, lw.vjp)]
    for expr in (forward, A @ u, A.T @ w, *both):
        count = sum(lw.compile(expr, mech).ops.values())
        line += f" | {count:,}" + (f" | {count / plain:.2f}" if plain else "")
        plain = plain or count
    return line + " |"


def row(title: str, number: int) -> str:
    """One line of the table."""
    (robot, batch), pair = ROBOTS[title], PAIRS[number]
    mech, model = peer.models(*robot)
    layout, data = lw.convert.pinocchio_layout(mech, model), model.createData()
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(batch)])
    v, x = rng.standard_normal((2, batch, mech.nv))
    given, others = (q, v, x), (layout.q_to(q), layout.v_to(q, v), layout.v_to(q, x))
    states = [tuple(np.array(y[i]) for y in given) for i in range(STATES)]
    their_states = [tuple(np.array(y[i]) for y in others) for i in range(STATES)]

    def ours(*arrays: Array) -> tuple[Array, ...]:
        return parts(pair.ours(mech, *arrays))

    def theirs(*arrays: Array) -> tuple[Array, ...]:
        return parts(pair.theirs(model, data, *arrays))

    together = ours(*given)
    error = max(
        difference(each, theirs(*other), layout, model)
        for i, (state, other) in enumerate(zip(states, their_states, strict=True))
        for each in (ours(*state), tuple(y[i] for y in together))
    )
    if error > 1e-9:
        raise SystemExit(f"{title}, {pair.title}: results differ by {error:.1e}")
    rows = [np.empty((batch, *y.shape)) for y in theirs(*their_states[0])]
    size = sum(y[0].nbytes for y in together)
    memory = np.empty((batch, size // 8))

    call, other = pair.ours, pair.theirs

    def loop() -> None:
        for i in range(batch):
            result = other(model, data, *(z[i] for z in others))
            for array, y in zip(rows, parts(result), strict=True):
                array[i] = y

    out = np.empty((batch, size // 8))
    kernel = written(mech, pair.formula)
    shape = (batch, *kernel.signature.shape)
    work: tuple[Callable[[], object], ...] = (
        lambda: [call(mech, q, v, x) for q, v, x in states],
        lambda: [other(model, data, q, v, x) for q, v, x in their_states],
        lambda: kernel(*given, out=out.reshape(shape), threads=1),
        lambda: memory.fill(1.0),
        loop,
    )
    best = [np.inf] * len(work)
    for i in range(ROUNDS):  # in turn, so that all see the same machine
        for j, function in enumerate(work):
            if j < 4 or i < ROUNDS // 10:
                best[j] = min(best[j], timed(function, 10 if j < 2 else 2))
    per_state = [STATES, STATES, batch, batch, batch]
    us = [1e6 * t / n for t, n in zip(best, per_state, strict=True)]
    cold, cold_batch = first_calls(title, number)
    return (
        f"| {title} | {pair.title} | {kernel.ops.total():,} | {us[0]:.2f} | {us[1]:.2f} | "
        f"{us[1] / us[0]:.1f} | {batch} | {us[2]:.3f} | {us[3]:.3f} | {us[4]:.2f} | "
        f"{us[4] / us[2]:.0f} | {cold:.2f} | {cold_batch:.2f} | {error:.0e} |"
    )


def parts(result: Any) -> tuple[Array, ...]:
    """Several matrices, or one of them."""
    return result if isinstance(result, tuple) else (result,)


def timed(function: Callable[[], object], rounds: int) -> float:
    """Shortest of some runs, processor time [s]: other processes run beside this one."""
    times = list[float]()
    for _ in range(rounds):
        began = time.thread_time()
        function()
        times.append(time.thread_time() - began)
    return min(times)


def first_calls(title: str, number: int) -> tuple[float, float]:
    """Processor time [s] of the first call for one state, and of the first for a batch."""
    code = CHILD.format(here=str(Path(__file__).parent), robot=title, pair=number)
    times = list[list[float]]()
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "LINKWISE_CACHE": folder},
                check=True, capture_output=True, text=True,
            )  # fmt: skip
        times.append([float(x) for x in done.stdout.split()])
    one, many = (min(x) for x in zip(*times, strict=True))
    return one, many


def difference(
    ours: tuple[Array, ...], theirs: tuple[Array, ...], layout: Any, model: pin.Model
) -> float:
    """The largest one of all matrices, relative to the largest entry of each.

    Pinocchio's velocities of a free base are (linear, angular), in body axes as ours; of its
    symmetric matrices the upper half counts, and its regressor has other parameters in its columns:
    Jxx Jxy Jyy Jxz Jyz Jzz.
    """
    nv = layout.mech.nv
    order = layout.v_to(layout.mech.neutral(), np.arange(float(nv))).astype(int)
    worst = 0.0
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        expected = np.array(other)
        if i == 2 and not np.array_equal(expected, expected.T):
            expected = np.triu(expected) + np.triu(expected, 1).T
        if one.shape == (nv, nv):
            mine = one[np.ix_(order, order)]
        else:
            mine = in_their_columns(one[order], layout.mech, model)
        worst = max(worst, float(np.abs(mine - expected).max() / np.abs(expected).max()))
    return worst


def in_their_columns(matrix: Array, mech: lw.Mechanism, model: pin.Model) -> Array:
    """A regressor by Pinocchio's parameters: bodies in its order, moments in its order."""
    bodies = {body.hinge_name: k for k, body in enumerate(mech.bodies)}
    numbers = [bodies.get(name, 0) for name in list(model.names)[1:]]  # the base has another name
    inside = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]
    columns = [10 * k + i for k in numbers for i in inside]
    return matrix[:, columns]


if __name__ == "__main__":
    main()
