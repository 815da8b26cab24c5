"""URDF mimic joints: held by the constrained dynamics, and what the plain functions make of them.

Pinocchio has no coordinate for a joint that mimics another: its mass matrix is that of the reduced
mechanism, E* 𝓜 E with v = E v_reduced, and its accelerations are those of the coupled robot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.corpus import find_urdf

import linkwise as lw
from linkwise.convert.libraries import pinocchio_layout
from linkwise.spatial.array import Array
from tests.io.urdf_text import joint, link, read, robot
from tests.oracles.pinocchio_oracle import read_model

MIMIC = (
    '<axis xyz="{0}"/><origin xyz="0.1 0.2 {1}"/><mimic joint="{2}" multiplier="{3}" offset="0.2"/>'
)
LIMIT = '<limit lower="-9" upper="9" effort="1" velocity="1"/>'
CLAW = '<axis xyz="1 0 0"/><origin xyz="0 0.1 0.3"/>'
HAND = robot(
    link("base"),
    *(link(name) for name in ("palm", "claw", "finger", "tip")),
    joint("wrist", "continuous", "base", "palm", '<axis xyz="0 1 0.2"/><origin xyz="0 0 0.3"/>'),
    joint("claw", "revolute", "palm", "claw", CLAW + LIMIT),
    joint(
        "finger", "revolute", "palm", "finger", MIMIC.format("1 0 0.3", 0.3, "claw", -1.5) + LIMIT
    ),
    joint("tip", "prismatic", "finger", "tip", MIMIC.format("0 0 1", 0.4, "finger", 0.25) + LIMIT),
)
"""A hand whose finger follows its claw, and the tip the finger."""

ROBOTS = ("panda.urdf", "baxter.urdf", "pr2.urdf", "tiago_pro.urdf")
"""Robots of example-robot-data with mimic joints. Pinocchio refuses romeo and talos: of two
joints on a link it wants the one that is followed to come first, by name."""


def in_pinocchio(mech: lw.Mechanism, model: Any, seed: int) -> tuple[Array, Array, Array, Array]:
    """A state in which the couplings hold, and Pinocchio's accelerations there, in our order."""
    import pinocchio as pin

    layout, rng = pinocchio_layout(mech, model), np.random.default_rng(seed)
    assert layout.nv == mech.nv - len(mech.couplings)
    q = mech.random(rng)
    v = layout.v_from(q, rng.standard_normal(layout.nv))
    tau = rng.standard_normal(mech.nv)
    state = model, model.createData(), layout.q_to(q)
    mass = np.triu(pin.crba(*state))
    mass = mass + np.triu(mass, 1).T
    bias = pin.rnea(*state, layout.v_to(q, v), np.zeros(layout.nv))
    reduced = np.linalg.solve(mass, layout.force_to(q, tau) - bias)
    return q, v, tau, layout.vdot_from(q, v, reduced)


def check(mech: lw.Mechanism, model: Any) -> None:
    model.gravity.linear = np.array(mech.gravity)
    for seed in range(2):
        q, v, tau, theirs = in_pinocchio(mech, model, seed)
        ours = lw.forward_dynamics(mech, q, v, tau)
        assert np.abs(lw.loops.constraint_jacobian(mech, q) @ v).max() < 1e-13
        # Relative to the largest: fingers of some grams are accelerated a thousandfold.
        assert np.abs(ours - theirs).max() < 1e-9 * np.abs(theirs).max()


@pytest.mark.oracle
def test_a_chain_of_mimics(tmp_path: Path):
    """Pinocchio has no mimic of a mimic: there, the tip follows the claw by what comes of both."""
    pytest.importorskip("pinocchio")
    chain = '<mimic joint="finger" multiplier="0.25" offset="0.2"/>'
    assert chain in HAND
    path = tmp_path / "hand.urdf"
    straight = (
        '<mimic joint="claw" multiplier="-0.375" offset="0.25"/>'  # 0.25 (-1.5 q + 0.2) + 0.2
    )
    path.write_text(HAND.replace(chain, straight), encoding="utf-8")
    mech = read(HAND)
    assert [c.dependent for c in mech.couplings] == ["finger", "tip"]
    check(mech, read_model(path, mimic=True))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "panda.urdf" else pytest.mark.slow) for n in ROBOTS]
)
def test_robots_with_mimic_joints(name: str):
    pytest.importorskip("pinocchio")
    result = [path for short, path in find_urdf().items() if short.endswith(f"/{name}")]
    if not result:
        pytest.skip("example-robot-data is not installed")
    mech = lw.load(result[0]).without_armature()  # Pinocchio reads no rotors
    assert mech.couplings
    check(mech, read_model(result[0], mimic=True))


def test_mimic_joints_are_held_unless_they_are_left_open():
    """With loops="open" the finger does not follow the claw."""
    mech = read(HAND)
    q, v = mech.random(0), np.zeros(mech.nv)
    tau = np.zeros(mech.nv)
    tau[mech.v_slice("claw")] = 1.0
    row = lw.loops.constraint_jacobian(mech, q)[0]
    assert abs(row @ lw.forward_dynamics(mech, q, v, tau, loops="open")) > 0.1
    assert abs(row @ lw.forward_dynamics(mech, q, v, tau)) < 1e-12
