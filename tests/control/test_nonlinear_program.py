"""The same problem, solved by IPOPT."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, Phase
from linkwise.errors import LinkwiseError

pytest.importorskip("casadi")
pytestmark = pytest.mark.prove

QUIET: dict[str, Any] = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}


def test_cart_pole_costs_the_same() -> None:
    build = lw.Builder("cart_pole")
    cart = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    pole = lw.SpatialInertia.solid_box(0.3, (0.02, 0.02, 0.5))
    pole = pole.moved(lw.Pose.translation((0.0, 0.0, 0.25)))
    slide, drive = lw.hinges.Prismatic((1, 0, 0)), lw.Drive(effort=8.0, damping=0.1)
    build.body("cart", "world", slide, inertia=cart, drive=drive)
    build.body("pole", "cart", lw.hinges.Pin((0, 1, 0)), inertia=pole)
    mech = build.build()
    given: Any = {
        "costs": [Cost.posture(weight=1.0, final=10.0), Cost.effort(weight=0.05)],
        "bounds": Bound.on_velocity(-1.5, 1.5, hinges=["cart"]),
        "step": 0.05, "horizon": 15, "driven": ["cart"],
    }  # fmt: skip
    ours = lw.optimize(mech, [0.0, 0.6], tolerance=1e-10, violation=1e-7, **given)
    program = lw.control.nonlinear_program(mech, [0.0, 0.6], **given)
    motion, cost, stats = program.solve("ipopt", **QUIET)
    assert stats["success"] and ours.status == 0
    assert np.isclose(cost, ours.cost, rtol=1e-5)
    assert np.abs(motion["q"] - ours.q).max() < 1e-3 and np.abs(ours.v[:, 0]).max() > 1.49
    again = lw.optimize(mech, [0.0, 0.6], guess=motion, **given)
    assert again.iterations < ours.iterations


def test_loops_and_contacts_are_the_same() -> None:
    mech = lw.models.four_bar()
    given: Any = {
        "costs": [Cost.effort(weight=1e-2), Cost.velocity(weight=1e-3, final=1.0)],
        "bounds": Bound.on_position(0.3, 0.3, hinges=["crank_pin"], when="final"),
        "step": 0.02, "horizon": 15, "driven": ["crank_pin"],
    }  # fmt: skip
    ours = lw.optimize(mech, mech.neutral(), tolerance=1e-10, **given)
    program = lw.control.nonlinear_program(mech, mech.neutral(), **given)
    _, cost, stats = program.solve("ipopt", **QUIET)
    assert stats["success"] and np.isclose(cost, ours.cost, rtol=1e-4)


def test_batches_are_refused() -> None:
    chain = lw.models.chain(2)
    with pytest.raises(LinkwiseError, match="one problem"):
        lw.control.nonlinear_program(
            chain, np.zeros((3, 2)), costs=Cost.effort(weight=1.0), step=0.1, phases=Phase(2)
        )
