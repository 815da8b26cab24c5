"""Linearised steps of mechanisms with loops and couplings that end with a projection.

The reference is the motion itself: eighth-order differences of single steps of `lw.rollout`, from
states that stay closed. They are good to about 1e-12; what a projection does to the matrices shows
up at 1e-3 or more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.errors import ClosureError, TroubleWarning
from tests.algebra.test_differential import STENCIL
from tests.cases import close
from tests.loops import embedding_cases as cases
from tests.loops.test_singular_loops import bars, flat

STEP = 1e-3
CASES: dict[str, Callable[[], lw.Mechanism]] = {
    "four-bar": lw.models.four_bar,
    "gears": cases.differential_wrist,
    "parallelogram": cases.parallelogram_arm,
    "universal loop": cases.universal_loop,
    "cams and a free hinge": cases.geared_four_bar,
}
QUICK = {("four-bar", "euler")}
LEFT_OUT = {
    ("cams and a free hinge", "rk4"),  # too long for one kernel
    *(
        (name, "rk4_mujoco")
        for name in ("parallelogram", "universal loop", "cams and a free hinge")
    ),
}


def differences(function):
    """The derivative at 0 of a function of one number."""
    h = 1e-3
    parts = zip(STENCIL, range(-4, 5), strict=True)
    return sum(w * function(s * h) for w, s in parts if w) / h


@pytest.mark.parametrize(
    ("name", "integrator"),
    [
        pytest.param(name, x, marks=[] if (name, x) in QUICK else pytest.mark.prove)
        for name in CASES
        for x in ("rk4", "euler", "rk4_mujoco")
        if (name, x) not in LEFT_OUT
    ],
)
def test_differences_of_steps(name, integrator):
    mech, rng = CASES[name](), np.random.default_rng(1)
    q = lw.loops.project_position(mech, cases.near(mech, 1)).required()
    tree = lw.loops.embed(mech)
    u, du, dv = rng.standard_normal((3, tree.nv))
    tau, dtau = rng.standard_normal((2, mech.nv))
    along = lw.loops.full_velocity(tree, q, du)
    options = {"step": STEP, "integrator": integrator}

    def start(s):
        moved = lw.loops.project_position(mech, mech.integrate(q, s * along), weight="mass")
        there = moved.required()
        return there, lw.loops.full_velocity(tree, there, u + s * dv)

    def after(s):
        runs = lw.rollout(mech, *start(s), tau=tau + s * dtau, duration=STEP, **options)
        return runs.q[-1], runs.v[-1]

    def tangent(state):
        origin = state(0.0)[0]

        def at(s):
            there, speed = state(s)
            return np.concatenate([mech.difference(origin, there), speed])

        return differences(at)

    A, B = lw.linearize(mech, *start(0.0), tau, **options)
    before, expected = tangent(start), tangent(after)
    close(A @ before + B @ dtau, expected, 1e-10)
    assert np.abs(expected - before).max() > 1e-3
    tree_step = lw.linearize(mech, *start(0.0), tau, loops="open", **options)
    assert np.abs(tree_step.A @ before + tree_step.B @ dtau - expected).max() > 1e-4


def test_batches_and_out():
    mech, options = lw.models.four_bar(), {"step": STEP, "integrator": "euler"}
    q, still = mech.neutral(), np.zeros(3)
    v = lw.loops.full_velocity(lw.loops.embed(mech), q, [0.8])
    tau = np.array([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0]])
    every = lw.linearize(mech, np.stack([q, q]), np.stack([v, still]), tau, **options)
    for i, speed in enumerate((v, still)):
        one = lw.linearize(mech, q, speed, tau[i], **options)
        close(every.A[i], one.A, 1e-14)
        close(every.B[i], one.B, 1e-14)
    again = lw.linearize(mech, q, v, tau[1], **options, out=one)
    assert again.A is one.A and np.abs(one.A - every.A[1]).max() > 1e-6


def test_singular_states_have_a_status():
    mech, still, tau = bars(2.0, 1.0, 2.0, 1.0), np.zeros(3), np.zeros(3)
    q, codes = np.stack([flat(0.3), flat(0.0)]), np.zeros(2, np.int32)
    options = {"step": STEP, "integrator": "euler"}
    free = mech.with_gravity((0.0, 0.0, 0.0))  # at rest it stays where it is
    A, B = lw.linearize(free, q, still, tau, **options, status=codes)
    assert codes.tolist() == [0, status.singular(free)]
    assert np.isfinite(A[0]).all() and np.isnan(A[1]).all() and np.isnan(B[1]).all()
    with pytest.warns(TroubleWarning, match="1 of 2"):
        lw.linearize(free, q, still, tau, **options)
    with pytest.raises(ClosureError, match="singular"):
        lw.linearize(free, q[1], still, tau, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "variational"}, "makes no steps of mechanisms with loops"),
        ({"contacts": []}, "'implicit' only"),
        ({"controls": []}, "'implicit' only"),
    ],
)
def test_what_has_no_kernel_is_refused(options, message):
    mech = lw.models.four_bar()
    with pytest.raises(ClosureError, match=f"'four_bar'.*{message}.*integrator='implicit'"):
        lw.linearize(mech, mech.neutral(), np.zeros(3), np.zeros(3), step=STEP, **options)


def test_long_ones_are_refused():
    mech = lw.models.stewart()
    still = np.zeros(mech.nv)
    with pytest.raises(ClosureError, match="too long for one kernel"):
        lw.linearize(mech, mech.neutral(), still, still, step=STEP)
