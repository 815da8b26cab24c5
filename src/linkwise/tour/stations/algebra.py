"""Forward dynamics derived: from one line of algebra to three sweeps."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.algebra import bias, mass, tau
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import Derivation
from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.loops import tree_of
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import derive, plan
from linkwise.plot.mass_matrix import mass_matrix
from linkwise.sweeps.interpret import run
from linkwise.tour.posture import posture
from linkwise.tour.visit import Visit

MOST_DENSE = 40
"""Bodies of a mechanism that is compared with explicit matrices."""

FORWARD = mass.inv @ (tau - bias)
"""Forward dynamics as it is defined."""


def algebra(visit: Visit) -> None:
    """Mechanics as algebra: forward dynamics is one line, and the algorithm is derived from it."""
    mech = shown(visit)
    expr = FORWARD
    visit.say(
        "The accelerations of all joints are what is left of the joint forces τ when the bias C "
        "(Coriolis, centrifugal and gravity forces) is taken away, over the mass matrix 𝓜, which "
        "includes the armature N of the drives. Written so it takes a dense matrix and its "
        "inverse. Identities of the algebra turn it into a form that only recurs along the tree:"
    )
    derivation = derive(expr)
    show(visit, derivation)
    program = plan(derivation.result)
    ops = kernel(tree_of(mech), "forward_dynamics").ops.total()
    visit.say(
        f"This becomes {len(program.passes)} sweeps over the bodies, and on {mech.name} code of "
        f"{ops} operations."
    )
    visit.sweeps(
        program,
        "The sweeps as the papers print them: p is the parent of body k, c its children. They are "
        "made from the line above, not written by hand.",
    )
    at = posture(mech)
    visit.picture(
        lambda theme: mass_matrix(mech, at, theme=theme)[0].figure,
        f"What the sweeps never build: the mass matrix of {mech.name} and its inverse, by the size "
        "of their entries.",
    )
    q, v = mech.random(3), mech.random_velocity(3)
    values = {"tau": np.random.default_rng(3).standard_normal(mech.nv)}
    swept = np.asarray(run(program, mech, q, v, values=values))
    dense = np.asarray(Dense(mech, q, v, values=values)(expr))
    scale = float(np.abs(dense).max(initial=0.0)) or 1.0
    gap = float(np.abs(swept - dense).max(initial=0.0)) / scale
    visit.check(f"{mech.name}: sweeps against matrices, relative", gap, 1e-9)
    other = models.random_tree(8, 1)
    visit.check(
        "every step of the derivation, on a random tree, relative",
        derivation.check(other),
        1e-9,
        own=False,
    )


def shown(visit: Visit) -> Mechanism:
    """The robot, or, where it is too large for explicit matrices or nothing moves, another."""
    mech = visit.mech
    if not mech.nv:
        why = "has no body" if not mech.n_bodies else "has no hinge that moves"
    elif mech.n_bodies > MOST_DENSE:
        why = f"has {mech.n_bodies} bodies, and matrices of more than {MOST_DENSE} are not shown"
    else:
        return mech
    return visit.instead(models.puma560(), why)


def show(visit: Visit, derivation: Derivation) -> None:
    """Step by step, with what justifies each."""
    start = derivation.start
    visit.formula(rf"\dot{{v}} = {start.latex()}", f"v̇ = {start}")
    for step in derivation.steps:
        remark = f"{step.identity}: {step.statement} [{step.source}]"
        visit.formula(rf"= {step.after.latex()}", f"= {step.after}", remark)
    visit.print("")
