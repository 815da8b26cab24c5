"""JPL 88-11, Part II: the grasps that its statements are tried on."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.body import Loop
from linkwise.model.hinges import Free, Locked, Pin, SoftFinger, Spherical
from linkwise.spatial.rotation import skew
from linkwise_ledger import cases
from linkwise_ledger.case import apart
from linkwise_ledger.grasp import Grasp, loose, planar, rigid
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import (
    by_elimination,
    general,
    outside_image,
    right_side,
)


def test_what_is_held_is_held() -> None:
    # The state of every grasp: the contacts allow the velocities, to rounding.
    for case in cases():
        for grasp in (rigid(case), *loose(case)):
            relative = grasp.H_0.T @ np.concatenate(grasp.W)
            assert apart(grasp.tip_velocity + relative, grasp.A @ grasp.V_C) < 1e-12
            assert np.abs(grasp.V_C).max() > 1e-2, "nothing moves"


def test_accelerations_need_every_bias() -> None:
    # An algorithm that left one out would still look like forward dynamics.
    grasp = rigid(cases()[-1])
    result, _, _ = general(grasp, by_elimination)
    assert apart(result, grasp.solution.theta_ddot) < 1e-9
    for bias in ("coriolis", "bent", "object_bias", "contact_bias"):
        less = Grasp(grasp.arms, grasp.contacts, grasp.seed)
        setattr(less, bias, 0.0 * getattr(grasp, bias))
        result, _, _ = general(less, by_elimination)
        assert apart(result, grasp.solution.theta_ddot) > 1e-6, bias


def test_image_of_a_singular_compliance_is_left_by_velocities_that_break_the_loops() -> None:
    for case in cases():
        grasp = planar(case)
        assert outside_image(grasp, right_side(grasp)) < 1e-12
        broken = Grasp(grasp.arms, grasp.contacts, grasp.seed)
        # Arms in one plane cannot turn an object about an axis in it: its ω is made up.
        broken.V_C = grasp.V_C + np.array([0.5, 0.2, 0.0, 0.0, 0.0, 0.0])
        del broken.contact_bias, broken.object_bias
        assert outside_image(broken, right_side(broken)) > 1e-3


def _with_loops(grasp: Grasp) -> tuple[lw.Mechanism, np.ndarray, np.ndarray, np.ndarray]:
    """The same arms and object as one mechanism with loops, and its state."""
    b = lw.Builder("object", gravity=(0.0, 0.0, 0.0))
    about_com = grasp.I_C + grasp.masses.sum() * skew(grasp.p_C) @ skew(grasp.p_C)
    inertia = lw.SpatialInertia.from_com(grasp.masses.sum(), grasp.p_C, about_com)
    b.body("object", "world", Free(), inertia=inertia)
    forest = grasp.mech.without_armature()
    loops = []
    for i, (tip, kind) in enumerate(zip(grasp.tips, grasp.contacts, strict=True)):
        # Hinge frames at rest in the axes of the tip; axes of the contact are seen from there.
        rot = forest.pose(grasp.q, tip).rot
        h = rot.T @ grasp.h[i]
        hinge = {
            "rigid": lambda: Locked(),
            "edge": lambda h=h: Pin(tuple(h[:, 0])),
            "soft": lambda h=h: SoftFinger(tuple(np.cross(h[:, 0], h[:, 1]))),
            "ball": lambda: Spherical(),
        }[kind]()
        b.node(f"contact_{i}", "object", lw.Pose.rotation(rot, grasp.O[i] - grasp.C))
        loops.append(Loop(f"grasp_{i}", tip, f"contact_{i}", hinge))
    both = forest.mount(b.build(), at="world")
    free = np.concatenate([[1.0, 0.0, 0.0, 0.0], grasp.C])
    q = np.concatenate([grasp.q, free])
    v = np.concatenate([grasp.v, grasp.V_C])
    return replace(both, loops=tuple(loops)), q, v, np.concatenate([grasp.T, np.zeros(6)])


@pytest.mark.parametrize("which", range(3))
def test_the_library_moves_them_alike(which: int) -> None:
    # d'Alembert's principle here, contact forces there; one mechanism of trees, three grasps.
    case = cases()[3]
    grasp = (rigid(case), *loose(case))[which]
    mech, q, v, tau = _with_loops(grasp)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    assert apart(vdot[: len(grasp.T)], grasp.solution.theta_ddot) < 1e-9
    # In the object's axes and at C accelerations lack ω × v.
    carried = np.concatenate([np.zeros(3), np.cross(grasp.V_C[:3], grasp.V_C[3:])])
    assert apart(vdot[len(grasp.T) :] + carried, grasp.solution.alpha) < 1e-9
    if which == 0:  # six rows a contact: the forces on the object, in the axes of the tips
        forces = lw.loops.constraint_forces(mech, q, v, tau).reshape(-1, 2, 3)
        turned = [x @ mech.pose(q, tip).rot.T for x, tip in zip(forces, grasp.tips, strict=True)]
        assert apart(np.ravel(turned), grasp.solution.f) < 1e-9
