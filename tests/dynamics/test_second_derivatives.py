"""Second derivatives of dynamics: against differences of the first ones, and of Pinocchio's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import second_derivatives
from tests.cases import close, state, states, tree
from tests.dynamics.test_derivatives import differences
from tests.dynamics.test_oracles import robot
from tests.dynamics.test_passive import BALLS
from tests.io.mjcf_text import read

FUNCTIONS = {
    "inverse": (lw.dynamics.inverse_dynamics_second_derivatives, lw.inverse_dynamics_derivatives),
    "forward": (lw.dynamics.forward_dynamics_second_derivatives, lw.forward_dynamics_derivatives),
}
PARTS = ((0, "q"), (1, "q"), (1, "v"), (2, "q"))
"""For each tensor, which of the first derivatives changes, and with what."""

WAYS = ("one kernel", "directions", "loops")
SMALL = lw.models.random_tree(3, 4, hinges=("spherical", "pin", "prismatic"), mass_ratio=3.0)


def by_differences(first, mech, q, v, x):
    def moved(wrt, d):
        return first(mech, mech.integrate(q, d), v, x) if wrt == "q" else first(mech, q, v + d, x)

    n = mech.nv
    return [
        differences(lambda d, i=i, wrt=wrt: moved(wrt, d)[i].ravel(), mech).reshape(n, n, n)
        for i, wrt in PARTS
    ]


@pytest.mark.parametrize("which", FUNCTIONS)
@pytest.mark.parametrize(
    "name",
    [
        "small",
        pytest.param("every hinge, others", marks=pytest.mark.prove),
        pytest.param("floating", marks=pytest.mark.prove),
    ],
)
def test_differences(which, name):
    function, first = FUNCTIONS[which]
    mech = SMALL if name == "small" else tree(name)
    q, v, x = state(mech, 2)
    ours = function(mech, q, v, x)
    for result, expected in zip(ours, by_differences(first, mech, q, v, x), strict=True):
        assert np.abs(expected).max() > 1e-3
        close(result, expected, 1e-9)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_symmetry(which):
    """By two velocities always; by two positions where hinges have one degree of freedom."""
    mech = lw.models.random_tree(4, 6, hinges=("pin", "prismatic"), branching=0.7, mass_ratio=3.0)
    ours = FUNCTIONS[which][0](mech, *state(mech, 3))
    for x in (ours.qq, ours.vv):
        assert np.abs(x).max() > 1e-2
        close(x, np.swapaxes(x, -1, -2), 1e-12)
    close(ours[3], np.swapaxes(ours[3], 0, 1), 1e-12)  # of 𝓜, or of 𝓜⁻¹


def as_for_many_joints(ways, monkeypatch):
    """All directions in one kernel; one after another; or that in loops over bodies."""
    if ways != "one kernel":
        monkeypatch.setattr(second_derivatives, "STRAIGHT", 0)
    if ways == "loops":
        monkeypatch.setattr(second_derivatives, "_along", lambda *_: None)


@pytest.mark.parametrize("ways", WAYS[1:])
@pytest.mark.parametrize("which", FUNCTIONS)
def test_one_direction_after_another(which, ways, monkeypatch):
    """As for robots with many joints: the same numbers, batches and codes."""
    function = FUNCTIONS[which][0]
    q, v, x = states(SMALL, 3)
    every = function(SMALL, q, v, x)
    as_for_many_joints(ways, monkeypatch)
    ours = function(SMALL, q, v, x)
    for result, expected in zip(ours, every, strict=True):
        close(result, expected, 1e-10)
    for result, expected in zip(function(SMALL, q[1], v[1], x[1]), every, strict=True):
        close(result, expected[1], 1e-10)
    v[2, 0] = np.nan
    codes = np.zeros(3, np.int32)
    ours = function(SMALL, q, v, x, status=codes)
    assert codes[2] and not codes[:2].any()
    for result, expected in zip(ours, every, strict=True):
        close(result[0], expected[0], 1e-10)
        assert np.isnan(result[2]).all()
    with pytest.raises(lw.ModelError, match="not finite"):
        function(SMALL, q[2], v[2], x[2])
    with pytest.warns(lw.errors.TroubleWarning, match="1 of 3 states") as warned:
        function(SMALL, q, v, x)
    assert len(warned) == 1
    shared = function(SMALL, q[:2], v[0], x[0])
    for result, expected in zip(shared, function(SMALL, q[1], v[0], x[0]), strict=True):
        close(result[1], expected, 1e-10)


@pytest.mark.parametrize(
    ("which", "n"),
    [
        ("inverse", 30),
        pytest.param("forward", 30, marks=pytest.mark.prove),
        pytest.param("inverse", 70, marks=pytest.mark.prove),
    ],
)
def test_long_chains(which, n):
    """Along a direction, against differences of the first derivatives."""
    function, first = FUNCTIONS[which]
    chain = lw.models.chain(n)
    q, v, x, d = 0.1 * np.random.default_rng(0).standard_normal((4, n))
    ours = function(chain, q, v, x)
    weights, h = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 1e-2
    for result, (i, wrt) in zip(ours, PARTS, strict=True):

        def at(s, i=i, wrt=wrt):
            moved = (q + s * d, v) if wrt == "q" else (q, v + s * d)
            return first(chain, *moved, x)[i]

        expected = sum(w * (at(k * h) - at(-k * h)) for k, w in weights.items()) / h
        assert np.abs(expected).max() > 1e-3
        close(result @ d, expected, 1e-7)


def test_tree_of_a_closed_chain():
    mech = lw.models.four_bar()
    given = state(mech)
    ours = lw.dynamics.forward_dynamics_second_derivatives(mech, *given, loops="open")
    tree = lw.dynamics.forward_dynamics_second_derivatives(lw.dynamics.tree_of(mech), *given)
    assert all(np.array_equal(x, y) for x, y in zip(ours, tree, strict=True))


@pytest.mark.oracle
@pytest.mark.prove
@pytest.mark.parametrize("short", ["panda.urdf", "solo12.urdf"])
def test_pinocchio(short):
    """Differences of order eight of its first derivatives: second ones it has in C++ only."""
    import pinocchio as pin

    it = robot(short)
    T, back, data = it.T, np.linalg.inv(it.T), it.model.createData()

    def inverse(mech, q, v, x):
        there = (it.layout.q_to(q), it.layout.v_to(q, v), it.layout.v_to(q, x))
        by_q, by_v, M = pin.computeRNEADerivatives(it.model, data, *there)
        return [T.T @ part @ T for part in (by_q, by_v, np.triu(M) + np.triu(M, 1).T)]

    def forward(mech, q, v, x):
        there = (it.layout.q_to(q), it.layout.v_to(q, v), it.layout.force_to(q, x))
        by_q, by_v, inv = pin.computeABADerivatives(it.model, data, *there)
        return [
            back @ by_q @ T,
            back @ by_v @ T,
            back @ (np.triu(inv) + np.triu(inv, 1).T) @ back.T,
        ]

    for which, theirs in (("inverse", inverse), ("forward", forward)):
        ours = FUNCTIONS[which][0](it.mech, it.q, it.v, it.x)
        every = by_differences(theirs, it.mech, it.q, it.v, it.x)
        for result, expected in zip(ours, every, strict=True):
            close(result, expected, 1e-9)


def lifted():
    """A tree with dampers, springs and carried weight: a pin and a ball."""
    return read(BALLS)


@pytest.mark.parametrize("which", ["forward", pytest.param("inverse", marks=pytest.mark.prove)])
@pytest.mark.parametrize("frame", ["node", pytest.param("world", marks=pytest.mark.prove)])
@pytest.mark.parametrize(
    "ways", ["one kernel", *(pytest.param(x, marks=pytest.mark.prove) for x in WAYS[1:])]
)
def test_forces_at_nodes_and_passive_forces(which, frame, ways, monkeypatch):
    as_for_many_joints(ways, monkeypatch)
    function, first = FUNCTIONS[which]
    mech = lifted()
    forces = {mech.bodies[-1].name: [0.3, -0.2, 0.5, 1.0, 2.0, -3.0]}
    given = {"forces": forces, "forces_frame": frame}
    given |= {"passive": True} if which == "forward" else {}
    q, v, x = state(mech, 2)
    ours = function(mech, q, v, x, **given)
    every = by_differences(lambda *at: first(*at, **given), mech, q, v, x)
    bare = function(mech, q, v, x)
    for result, expected in zip(ours, every, strict=True):
        close(result, expected, 1e-9)
    assert np.abs(ours.qq - bare.qq).max() > 1e-2
    again = function(mech, q, v, x, **given, out=bare)
    assert all(x is y for x, y in zip(again, bare, strict=True))
    assert all(np.array_equal(x, y) for x, y in zip(again, ours, strict=True))
    with pytest.raises(lw.ShapeError, match="out is"):
        function(mech, q, v, x, out=(bare.qq,))


def sprung_four_bar():
    mech = lw.models.four_bar()
    drive = lw.Drive(damping=0.7, stiffness=2.0)
    bodies = tuple(dataclasses.replace(body, drive=drive) for body in mech.bodies)
    return dataclasses.replace(mech, bodies=bodies, gravity_compensation=(("coupler", 0.5),))


@pytest.mark.prove
def test_forces_and_passive_forces_with_loops_held():
    """First derivatives against differences of accelerations, second ones of the first."""
    mech = sprung_four_bar()
    q = lw.loops.assemble(mech, mech.random(seed=3)).q
    _, v, x = state(mech, 2)
    given = {"forces": {"coupler": [0.3, -0.2, 0.5, 1.0, 2.0, -3.0]}, "passive": True}
    function, first = FUNCTIONS["forward"]
    d, bare = first(mech, q, v, x, **given), first(mech, q, v, x)
    by_q = differences(
        lambda e: lw.forward_dynamics(mech, mech.integrate(q, e), v, x, **given), mech
    )
    by_v = differences(lambda e: lw.forward_dynamics(mech, q, v + e, x, **given), mech)
    close(d.q, by_q, 1e-9)
    close(d.v, by_v, 1e-9)
    assert np.abs(d.v - bare.v).max() > 1e-1
    ours = function(mech, q, v, x, **given)
    every = by_differences(lambda *at: first(*at, **given), mech, q, v, x)
    for result, expected in zip(ours, every, strict=True):
        close(result, expected, 1e-8)
