"""Arms of sliders only: when is what is felt the inertia is that of the mini alone?

003 says of Theorem 2: "the equality ... is obtained for mechanisms that involve only prismatic
joints". Let the macro accelerate by a, with the joints of the mini left free. The tip stays where
it is, so that Λ̄_C = 0, exactly if the mini's joint accelerations q̈ = -U⁻¹ a need no forces:

    Σ_j>i (m_i + ... + m_(j-1)) (u_i · u_j) q̈_j + N_i q̈_i = 0      for every slider i of the mini

with directions u, masses m of the links and armature N. It holds for sliders at right angles
without armature, and for any directions where all links before the last weigh nothing. For others
the claim is wrong.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial import rotation

TIP = lw.Task.position("tip")


def sliders(directions, masses, *, armature=0.0):
    """Sliders one on the other; bodies are turned and have inertias that do not matter."""
    rng = np.random.default_rng(0)
    b = lw.Builder("sliders")
    parent, turned = "world", np.eye(3)
    for i, (u, m) in enumerate(zip(directions, masses, strict=True), start=1):
        turn = rotation.rpy(*rng.uniform(-1, 1, 3))
        inboard = lw.Pose.rotation(turn, rng.uniform(-0.3, 0.3, 3))
        turned = turned @ turn
        b.body(
            f"link_{i}",
            parent,
            lw.hinges.Prismatic(turned.T @ u),
            hinge_name=f"slider_{i}",
            inboard=inboard,
            inertia=lw.SpatialInertia.from_com(m, rng.uniform(-0.2, 0.2, 3), (0.1, 0.1, 0.1)),
            drive=lw.Drive(armature=armature if i > len(directions) - 3 else 0.7),
        )
        parent = f"link_{i}"
    b.node("tip", parent, (0.1, 0.2, 0.3))
    return b.build()


def report(mech):
    return lw.papers.reduced_inertia(mech, mech.random(0), TIP, split=f"slider_{mech.nv - 2}")


def random_arm(seed, *, orthogonal):
    """Two or three sliders anywhere, then three of the mini."""
    rng = np.random.default_rng(seed)
    macro = rng.standard_normal((int(rng.integers(1, 4)), 3))
    mini = np.linalg.qr(rng.standard_normal((3, 3)))[0] if orthogonal else oblique(rng)
    directions = np.vstack([macro, mini])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions, rng.uniform(0.5, 3.0, len(directions))


def oblique(rng):
    """Three directions that span space and are no two of them at right angles."""
    while True:
        result = rng.standard_normal((3, 3))
        result /= np.linalg.norm(result, axis=1, keepdims=True)
        off = np.abs(np.triu(result @ result.T, 1)[np.triu_indices(3, 1)])
        if off.min() > 0.2 and np.linalg.svd(result)[1][-1] > 0.2:
            return result


@pytest.mark.parametrize("seed", range(4))
def test_sliders_at_right_angles_have_equality(seed):
    result = report(sliders(*random_arm(seed, orthogonal=True)))
    # Λ̄_C is zero: what is left of it is rounding.
    assert np.abs(result.coupling).max() < 1e-13 * np.abs(result.whole_inverse).max()
    np.testing.assert_allclose(result.ratios, 1.0, rtol=0, atol=1e-12)
    assert "the inertia is that of the mini alone" in str(result)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_oblique_sliders_have_not(seed):
    """So the claim needs its condition; Theorem 2 itself holds."""
    result = report(sliders(*random_arm(seed, orthogonal=False)))
    assert result.ratios[0] < 1.0 - 1e-3
    assert result.theorem_2 < 1e-12


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_condition_decides(orthogonal):
    """The sum in this file's docstring, for every direction of a, says whether Λ̄_C is zero."""
    directions, masses = random_arm(5, orthogonal=orthogonal)
    mech = sliders(directions, masses)
    u, m = directions[-3:], masses[-3:]
    needed = np.zeros((3, 3))  # forces of the mini's joints per acceleration of the macro
    for column, a in enumerate(np.eye(3)):
        vdot = -np.linalg.solve(u.T, a)
        for i in range(3):
            needed[i, column] = sum(m[i:j].sum() * (u[i] @ u[j]) * vdot[j] for j in range(i + 1, 3))
    assert (np.abs(needed).max() < 1e-12) == orthogonal
    # The same forces from inverse dynamics, with the macro driven along its first slider.
    free = mech.with_gravity((0, 0, 0))
    full = np.zeros(mech.nv)
    full[0] = 1.0
    full[-3:] = -np.linalg.solve(u.T, directions[0])
    tau = lw.inverse_dynamics(free, mech.neutral(), np.zeros(mech.nv), full)
    np.testing.assert_allclose(tau[-3:], -needed @ directions[0], rtol=0, atol=1e-12)


def test_massless_links_make_oblique_sliders_equal():
    directions, masses = random_arm(1, orthogonal=False)
    masses[-3:-1] = 0.0
    u = np.random.default_rng(3)
    b = lw.Builder("light")
    parent = "world"
    for i, (d, m) in enumerate(zip(directions, masses, strict=True), start=1):
        inertia = lw.SpatialInertia.point(m) if m else None
        b.body(
            f"link_{i}", parent, lw.hinges.Prismatic(d), hinge_name=f"slider_{i}", inertia=inertia
        )
        parent = f"link_{i}"
    b.node("tip", parent, u.uniform(-1, 1, 3))
    result = report(b.build())
    np.testing.assert_allclose(result.ratios, 1.0, rtol=0, atol=1e-10)


def test_armature_of_the_mini_ends_the_equality():
    """A rotor resists the joint's motion, not the tip's: the tip then moves with the macro."""
    arm = random_arm(2, orthogonal=True)
    with_rotors = report(sliders(*arm, armature=0.5))
    assert with_rotors.ratios[0] < 1.0 - 1e-3
    assert with_rotors.lemma_2 < 1e-12 and with_rotors.theorem_2 < 1e-12


def test_one_turning_joint_ends_it_too():
    """The example of section 5.2: equality along its second axis only, so (46) is ≤, not <."""
    mech = lw.models.planar_rpp()
    task = lw.Task.position("end_effector", "xy", axes="node")
    reduced = lw.papers.reduced_inertia(mech, [0.3, 0.4, 0.6], task, split="slider_2")
    assert reduced.along([1.0, 0.0]).ratio < 0.8
    assert reduced.along([0.0, 1.0]).ratio == pytest.approx(1.0, abs=1e-14)
