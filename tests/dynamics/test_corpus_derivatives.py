"""Derivatives of dynamics and regressors against Pinocchio: all robot files, random trees.

Its binding has no second derivatives: ours are compared with differences of its first ones.

Robots with light fingers are stiff: derivatives of accelerations are judged by the forces that they
need, 𝓜 ∂v̇/∂q = −∂τ/∂q.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tools.corpus import find_urdf

import linkwise as lw
from linkwise.algebra import JOINT, X, bias, mass, v, vdot, vector, weight
from linkwise.algebra.differential_form import decomposed
from linkwise.sweeps.interpret import run
from tests.algebra.test_differential import STENCIL
from tests.cases import close, state
from tests.dynamics.oracle_state import InPinocchio, tree_in_pinocchio
from tests.dynamics.test_corpus_dynamics import singular
from tests.io.test_urdf_corpus import BROKEN
from tests.oracles.pinocchio_oracle import read_model as read_urdf

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

URDF = find_urdf()
BOUND, LEAST = 1e-9, 1e-3
FIXED_AXES = ("pin", "prismatic", "helical", "cylindrical", "spherical", "translation", "free")
TEN = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]
"""m, m c and Ixx Ixy Iyy Ixz Iyz Izz, as in Pinocchio."""


TORQUE, u, w = mass @ vdot + bias, vector("u", JOINT), vector("w", JOINT)
ENERGIES = {"kinetic": 0.5 * (v.T @ mass @ v), "potential": weight.T @ X}


@cache
def planned(wrt: str):
    return lw.plan(decomposed(lw.differentiate(TORQUE, wrt)))


@cache
def planned_twice(first: str, second: str):
    """∂(∂τ/∂first u)/∂second w."""
    once = lw.differentiate(TORQUE, first) @ u
    return lw.plan(lw.differentiate(once, second) @ w)


@cache
def planned_energy(name: str):
    return lw.plan(lw.differentiate(ENERGIES[name], "inertia"))


def derivative(it: InPinocchio, wrt: str, motion) -> np.ndarray:
    """∂(𝓜 v̇ + C) by a variable, by the interpreter: no robot is compiled."""
    return run(planned(wrt), it.mech, it.q, it.v, values={"vdot": motion})


def compared(it: InPinocchio) -> None:
    """First derivatives and the regressor in one state."""
    import pinocchio as pin

    T = it.T
    there = it.model, it.data, it.q_pin, it.v_pin
    motion = it.x
    theirs = pin.computeRNEADerivatives(*there, T @ motion)
    ours = [derivative(it, wrt, motion) for wrt in ("q", "v")]
    for result, expected in zip(ours, theirs[:2], strict=True):
        close(result, T.T @ expected @ T, BOUND, float(np.abs(ours[0]).max()), LEAST)
    theirs = np.atleast_2d(pin.computeJointTorqueRegressor(*there, T @ motion))
    ours = derivative(it, "inertia", motion)
    regressors(it, ours, T.T @ theirs)
    force = pin.rnea(*there, T @ motion)  # with which v̇ is this motion
    theirs = pin.computeABADerivatives(*there, force)
    M = np.array(pin.crba(it.model, it.data, it.q_pin))
    M = T.T @ (np.triu(M) + np.triu(M, 1).T) @ T
    if singular(M):
        pytest.skip("nothing resists some hinge: no derivatives of accelerations")
    for wrt, expected in zip(("q", "v"), theirs[:2], strict=True):
        result, expected = derivative(it, wrt, motion), T.T @ expected @ T
        size = float((np.abs(M) @ np.abs(expected)).max())
        close(M @ expected, -result, BOUND, size, LEAST)


def regressors(it: InPinocchio, ours, theirs) -> None:
    """The columns of bodies that both have, by the same ten numbers."""
    import pinocchio as pin

    names = [body.hinge_name for body in it.mech.bodies]
    size = float(np.abs(theirs).max())
    for j, name in enumerate(it.model.names[1:]):
        if name in names:
            k = names.index(name)
            moved = pin.SE3(it.placed(it.mech.bodies[k].name))
            block, expected = ours[:, 10 * k : 10 * k + 10], theirs[:, 10 * j : 10 * j + 10]
            close(block @ numbers_moved(moved)[:, TEN], expected, BOUND, size, LEAST)


def energies(it: InPinocchio) -> None:
    """Regressors of kinetic and potential energy."""
    import pinocchio as pin

    state = it.model, it.data, it.q_pin
    theirs = {
        "kinetic": pin.computeKineticEnergyRegressor(*state, it.v_pin),
        "potential": pin.computePotentialEnergyRegressor(*state),
    }
    for name, expected in theirs.items():
        ours = np.atleast_2d(run(planned_energy(name), it.mech, it.q, it.v))
        assert np.abs(expected).max() > 1e-6
        regressors(it, ours, np.atleast_2d(expected))


def twice(it: InPinocchio) -> None:
    """Second derivatives of inverse dynamics along two directions."""
    import pinocchio as pin

    T, mech, motion = it.T, it.mech, it.x
    rng = np.random.default_rng(mech.nv)
    ways = {"u": rng.standard_normal(mech.nv), "w": rng.standard_normal(mech.nv)}
    along = T @ ways["w"]
    for second in ("q", "v"):
        moved = {"q": np.zeros(mech.nv), "v": np.zeros(mech.nv)}
        h, size = 4e-3, dict[str, float]()
        for c, s in zip(STENCIL, range(-4, 5), strict=True):
            q = pin.integrate(it.model, it.q_pin, s * h * along) if second == "q" else it.q_pin
            v_pin = it.v_pin + s * h * along if second == "v" else it.v_pin
            there = it.model, it.data, q, v_pin, T @ motion
            for first, A in zip(moved, pin.computeRNEADerivatives(*there)[:2], strict=True):
                changed = T.T @ A @ T @ ways["u"]
                size[first] = float(np.abs(changed).max())  # some do not depend on the state
                moved[first] = moved[first] + c / h * changed
        for first, expected in moved.items():
            values = {"vdot": motion, **ways}
            ours = run(planned_twice(first, second), mech, it.q, it.v, values=values)
            close(ours, expected, BOUND, max(size[first], float(np.abs(expected).max())), LEAST)


def numbers_moved(place) -> np.ndarray:
    """Ten inertial parameters of a body here, from those about the frame of its joint there."""
    from linkwise.codegen.scalar import parameters

    pose = lw.Pose(np.array(place.rotation), np.array(place.translation)).inverse()
    columns = [parameters.numbers(parameters.inertia(e).moved(pose)) for e in np.eye(10)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", [n for n in URDF if n.rsplit("/", 1)[-1] not in BROKEN])
def test_robots(name):
    pytest.importorskip("pinocchio")
    mech = lw.load(URDF[name])
    mech = mech.without(*(coupling.name for coupling in mech.couplings))
    if not mech.nv:
        pytest.skip("nothing moves")
    it = InPinocchio(mech, read_urdf(URDF[name]), *state(mech))
    energies(it)
    twice(it)
    compared(it)


@pytest.mark.parametrize("seed", range(24))
def test_random_trees(seed):
    """One to twelve bodies, armature, free bases, branches.

    Its derivatives take the axes of a joint as constant in the body. Those of universal joints and
    gimbals are not the differences of its own `rnea`; ours agree with these differences to 1e-12.
    """
    pytest.importorskip("pinocchio")
    options = {
        "hinges": FIXED_AXES,
        "floating": seed % 3 == 0,
        "branching": (0.0, 0.4, 1.0)[seed % 3],
    }
    it = tree_in_pinocchio(1 + seed // 2, seed, **options)
    energies(it)
    twice(it)
    compared(it)
