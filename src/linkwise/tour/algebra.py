"""Stations about the theory: forward dynamics derived, and inertia as covariance."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.algebra import bias, mass, tau
from linkwise.algebra.dense import Dense
from linkwise.dynamics import bias_force, forward_dynamics, mass_matrix
from linkwise.dynamics.kernels import kernel, tree_of
from linkwise.estimation import RandomField
from linkwise.pipeline import derive, plan
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run
from linkwise.tour.posture import posture
from linkwise.tour.robot import small
from linkwise.tour.visit import Visit

FORWARD = mass.inv @ (tau - bias)
"""Forward dynamics by definition."""


def algebra(visit: Visit) -> None:
    """Mechanics as algebra: forward dynamics is one line, and the algorithm is derived from it."""
    mech = small(visit)
    visit.say(
        "Joint accelerations are the joint forces τ minus the bias C (Coriolis, centrifugal and "
        "gravity forces), divided by the mass matrix 𝓜, which includes the armature N of the "
        "drives. In this form the computation needs a dense matrix and its inverse. Identities of "
        "the algebra turn it into recursions along the tree:"
    )
    derivation = derive(FORWARD)
    start = derivation.start
    visit.formula(rf"\dot{{v}} = {start.latex()}", f"v̇ = {start}")
    for step in derivation.steps:
        remark = f"{step.identity}: {step.statement} [{step.source}]"
        visit.formula(rf"= {step.after.latex()}", f"= {step.after}", remark)
    visit.print("")
    program = plan(derivation.result)
    ops = kernel(tree_of(mech), "forward_dynamics").ops.total()
    visit.say(
        f"This becomes {len(program.passes)} sweeps over the bodies, and on {mech.name} code of "
        f"{ops} operations."
    )
    visit.sweeps(
        program,
        "The sweeps as the papers print them: p is the parent of body k, c its children. They are "
        "generated from the last line above.",
    )
    q, v = mech.random(3), mech.random_velocity(3)
    values = {"tau": np.random.default_rng(3).standard_normal(mech.nv)}
    swept = np.asarray(run(program, mech, q, v, values=values))
    dense = np.asarray(Dense(mech, q, v, values=values)(FORWARD))
    visit.check(f"{mech.name}: sweeps against matrices, relative", relative(swept, dense), 1e-9)
    error = derivation.check(models.random_tree(8, 1))
    claim = "every step of the derivation, on a random tree, relative"
    visit.check(claim, error, 1e-9, of_robot=False)


def relative(values: Array, expected: Array) -> float:
    """The largest difference of two arrays, relative to the largest entry."""
    size = float(np.abs(expected).max(initial=0.0)) or 1.0
    return float(np.abs(values - expected).max(initial=0.0)) / size


def covariance(visit: Visit) -> None:
    """Inertia is covariance: push bodies at random, and the joints feel the mass matrix."""
    mech = small(visit)
    visit.say(
        "Push every body at random, with its spatial inertia as the covariance of the push. The "
        "joint forces T = H φ W then have the covariance H φ M φ* H*: the mass matrix. Forward "
        "dynamics is the optimal smoother of that random field."
    )
    q = posture(mech)
    field = RandomField(mech, q)
    drawn = field.draw_measurements(2**12 if visit.quick else 2**15, seed=5)
    average = drawn.T @ drawn / len(drawn)
    exact = mass_matrix(tree_of(mech), q)
    spread = np.sqrt((exact**2 + np.outer(np.diag(exact), np.diag(exact))) / len(drawn))
    off = float((np.abs(average - exact) / spread).max())
    visit.check(f"the mass matrix as an average of {len(drawn)} draws, in deviations", off, 7.0)
    forces, still = np.random.default_rng(5).standard_normal(mech.nv), np.zeros(mech.nv)
    vdot = forward_dynamics(mech, q, still, forces, loops="open")
    smoothed = field.smooth(forces - bias_force(mech, q, still)).vdot
    visit.check("the smoother is forward dynamics, relative", relative(smoothed, vdot), 1e-9)
