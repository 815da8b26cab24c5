"""The same problem, solved by IPOPT."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, Foothold, Phase
from linkwise.errors import LinkwiseError, TroubleWarning

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


def test_loops_are_the_same() -> None:
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


def arm_problem(**more: Any) -> Any:
    """An arm of three links that has little room for its joints and torques."""
    chain = lw.models.chain(3)
    task = lw.Task.position(chain.bodies[-1].name)
    start = np.array([0.4, -0.6, 0.5])
    goal = lw.tasks.task_position(chain, start + 0.5, task)
    given: Any = {
        "costs": [Cost.of_task(task, goal, weight=1.0), Cost.effort(weight=1e-3),
                  Cost.velocity(weight=0.05)],
        "bounds": [Bound.on_task(task, goal, when="final"), Bound.on_position(-0.9, 0.9),
                   Bound.on_velocity(-1.6, 1.6)],
        "step": 0.03, "horizon": 20,
    }  # fmt: skip
    return chain, start, given | more


def test_a_task_within_boxes_has_the_same_optimum() -> None:
    chain, start, given = arm_problem()
    ours = lw.optimize(chain, start, tolerance=1e-12, violation=1e-8, **given)
    program = lw.control.nonlinear_program(chain, start, **given)
    motion, cost, stats = program.solve("ipopt", **QUIET, **{"ipopt.tol": 1e-10})
    assert ours.status == 0 and stats["success"]
    assert np.abs(ours.v).max() > 1.59  # a bound pushes
    assert abs(cost - ours.cost) < 1e-6 * cost
    assert np.abs(motion["q"] - ours.q).max() < 1e-4
    assert np.abs(motion["tau"] - ours.tau).max() < 1e-2 * np.abs(ours.tau).max()


def test_what_ends_without_a_solution_is_reported() -> None:
    chain, start, given = arm_problem(bounds=[Bound.on_position(5.0, 6.0, when="final")])
    program = lw.control.nonlinear_program(chain, start, **given)
    with pytest.warns(TroubleWarning, match="is not solved: ipopt ends with 'Max"):
        _, _, stats = program.solve("ipopt", **QUIET, **{"ipopt.max_iter": 2})
    assert not stats["success"]


def test_what_it_does_not_take_is_refused_by_name() -> None:
    chain, start, given = arm_problem()
    goals = np.zeros((4, 3))
    batch = Cost.of_task(lw.Task.position(chain.bodies[-1].name), goals, weight=1.0)
    program = lw.control.nonlinear_program(chain, start, **given)
    for refused, words in (
        ({"iterations": 5}, r"'iterations' says how lw.optimize solves a problem, .*max_iter"),
        ({"target": "cuda"}, "'target' says how lw.optimize solves"),
        ({"weights": 1.0}, "no option called 'weights'"),
        ({"costs": batch}, "one problem; these are 4"),
    ):
        with pytest.raises(LinkwiseError, match=words):
            lw.control.nonlinear_program(chain, start, **(given | refused))
    with pytest.raises(LinkwiseError, match="costs is missing"):
        lw.control.nonlinear_program(chain, start, step=0.1, horizon=2)
    with pytest.raises(LinkwiseError, match="no solver 'snipt' on this machine"):
        program.solve("snipt")
    with pytest.raises(LinkwiseError, match=r"does not take the options .*No such IPOPT option"):
        program.solve("ipopt", **{"ipopt.maxiter": 3})
    with pytest.raises(LinkwiseError, match=r"does not take the options"):
        program.solve("ipopt", **{"ipopt.max_iter": object()})


def test_a_hop_costs_the_same() -> None:
    build = lw.Builder("hopper")
    trunk = lw.SpatialInertia.solid_box(3.0, (0.2, 0.2, 0.1))
    link = lw.SpatialInertia.solid_box(0.4, (0.04, 0.04, 0.3))
    link = link.moved(lw.Pose.translation((0, 0, -0.15)))
    build.body("along", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=trunk)
    build.body("up", "along", lw.hinges.Prismatic((0, 0, 1)), inertia=trunk)
    build.body("thigh", "up", lw.hinges.Pin((0, 1, 0)), inertia=link)
    build.body("shank", "thigh", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, -0.3), inertia=link)
    build.node("foot", "shank", (0, 0, -0.3))
    mech, foot = build.build(), Foothold("foot", friction=0.5)
    stance = np.array([0.0, 0.6 * np.cos(0.6), 0.6, -1.2])
    given: Any = {
        "phases": [Phase(12, [foot]), Phase(8), Phase(15, [foot])],
        "costs": [Cost.posture(stance + 0.05 * np.eye(4)[0], weight=1.0, final=10.0),
                  Cost.velocity(weight=0.05, final=1.0), Cost.effort(weight=1e-2)],
        "driven": ["thigh", "shank"], "step": 0.02,
    }  # fmt: skip
    ours = lw.optimize(
        mech, stance, violation=1e-6, tolerance=1e-11, iterations=500, **given
    )  # fmt: skip
    program = lw.control.nonlinear_program(mech, stance, guess=ours, **given)
    motion, cost, stats = program.solve("ipopt", **QUIET, **{"ipopt.tol": 1e-9})
    assert ours.status == 0 and stats["success"]
    assert lw.forward_kinematics(mech, ours.q, "foot").p[13:20, 2].max() > 2e-3
    assert abs(cost - ours.cost) < 1e-5 * cost
    assert np.abs(motion["q"] - ours.q).max() < 1e-5
