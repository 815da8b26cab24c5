"""Numbers that differ from motion to motion: each is that of a mechanism with its numbers."""

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar.parameters import numbers
from linkwise.errors import LinkwiseError, ModelError, ShapeError
from linkwise.simulation import ContactPoint, Ground

MOTIONS = 3
rng = np.random.default_rng(5)


def leg(scale=1.0, *, damping=0.3, stiffness=2.0, friction=0.1, kp=40.0, kv=2.0, gravity=9.81):
    """A trunk on a slide with a leg of two links and servos: what varies is an argument."""
    b = lw.Builder("leg", gravity=(0.0, 0.0, -gravity))
    drive = lw.Drive(damping=damping, stiffness=stiffness, friction=friction)
    trunk = lw.SpatialInertia.solid_box(3.0 * scale, (0.2, 0.2, 0.1))
    b.body("trunk", hinge=lw.hinges.Prismatic((0, 0, 1)), inertia=trunk)
    rod = lw.SpatialInertia.from_com(0.5 * scale, (0.0, 0.0, -0.15), (0.004, 0.004, 1e-4))
    pin, down = lw.hinges.Pin((0, 1, 0)), lw.Pose.translation((0.0, 0.0, -0.3))
    b.body("thigh", "trunk", pin, inertia=rod, drive=drive)
    b.body("shank", "thigh", pin, inboard=down, inertia=rod, drive=drive)
    for name in ("thigh", "shank"):
        b.actuator(lw.Actuator.position(name, name, kp=kp, kv=kv))
    return b.build()


def foot(mu=0.6):
    return (ContactPoint("foot", "shank", (0.0, 0.0, -0.3), ground=Ground(friction=mu)),)


VARIED = {
    "gravity": ("gravity", np.array([9.81, 5.0, 1.6]), lambda x: (0.0, 0.0, -x)),
    "inertia": (
        "scale",
        np.array([1.0, 0.7, 1.4]),
        lambda x: np.concatenate([numbers(b.inertia) for b in leg(x).bodies]),
    ),
    "damping": ("damping", np.array([0.3, 0.0, 2.0]), lambda x: (0.0, x, x)),
    "stiffness": ("stiffness", np.array([2.0, 0.0, 9.0]), lambda x: (0.0, x, x)),
    "friction": ("friction", np.array([0.1, 0.0, 1.5]), lambda x: (0.0, x, x)),
    "gain": ("kp", np.array([40.0, 10.0, 80.0]), lambda x: (x, 0, 0, x, 0, 0)),
    "bias": ("kp", np.array([40.0, 10.0, 80.0]), lambda x: (0, -x, -2.0, 0, -x, -2.0)),
}


def run(mech, integrator, **options):
    q, v = np.array([0.55, 0.4, -0.8]), np.array([0.0, 0.5, -0.2])
    touching = {"contacts": foot()} if integrator == "implicit" else {}
    return lw.rollout(
        mech, q, v, duration=0.1, step=2e-3, integrator=integrator, controls=[0.2, -0.6],
        **(touching | options),
    )  # fmt: skip


@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
@pytest.mark.parametrize("which", [("gravity", "inertia"), ("damping", "stiffness"), ("friction",),
                                   ("gain", "bias")])  # fmt: skip
def test_each_motion_has_its_numbers(integrator, which):
    if integrator == "rk4" and "friction" in which:
        pytest.skip("friction acts in implicit steps")
    given = {x: np.array([VARIED[x][2](e) for e in VARIED[x][1]])[:, None] for x in which}
    runs = run(leg(), integrator, parameters=given)
    for i in range(MOTIONS):
        mech = leg(**{VARIED[x][0]: VARIED[x][1][i] for x in which})
        alone = run(mech, integrator)
        np.testing.assert_allclose(runs.q[i], alone.q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(runs.v[i], alone.v, rtol=0, atol=1e-6)
    assert np.abs(runs.q[0, -1] - runs.q[2, -1]).max() > 1e-3


def test_each_motion_has_its_ground():
    mus = np.array([0.05, 0.4, 1.5])
    start = np.array([0.35, 0.9, -1.2])
    options = {"duration": 0.3, "step": 2e-3, "integrator": "implicit"}
    runs = lw.rollout(leg(), start, parameters={"ground_friction": mus[:, None, None]},
                      contacts=foot(), **options)  # fmt: skip
    for i, mu in enumerate(mus):
        alone = lw.rollout(leg(), start, contacts=foot(mu), **options)
        np.testing.assert_allclose(runs.q[i], alone.q, rtol=0, atol=1e-9)
    assert np.abs(runs.q[0, -1] - runs.q[2, -1]).max() > 1e-2


def test_gradients_by_gains_and_dampers_are_differences():
    def last(name, x):
        return run(leg(), "rk4", parameters={name: x}).q[-1].sum()

    for name in ("gain", "bias", "damping", "stiffness"):
        x = np.array(VARIED[name][2](VARIED[name][1][0]), dtype=float)
        runs = run(leg(), "rk4", parameters={name: x})
        slope = runs.gradient(q=np.ones(3)).inputs[name]
        for i in range(1 if len(x) == 3 else 0, len(x), 2):
            step = 1e-4 * np.eye(len(x))[i]
            difference = (last(name, x + step) - last(name, x - step)) / 2e-4
            np.testing.assert_allclose(slope[i], difference, rtol=1e-5, atol=1e-9)


def test_loops_have_numbers_of_motions_too():
    mech = lw.models.four_bar()
    light = dataclasses.replace(mech, gravity=(3.0, 0.0, -2.0))
    options = {"duration": 0.1, "integrator": "implicit", "passive": False}
    runs = lw.rollout(mech, mech.neutral(), parameters={"gravity": [3.0, 0, -2.0]}, **options)
    alone = lw.rollout(light, mech.neutral(), **options)
    np.testing.assert_allclose(runs.q, alone.q, rtol=0, atol=1e-12)
    assert np.abs(runs.v[-1]).max() > 1e-2


@pytest.mark.parametrize(
    ("integrator", "numbers", "error", "text"),
    [
        ("rk4", {"friction": 1.0}, ModelError, "it acts in steps by 'implicit'"),
        ("implicit", {"damping": -1.0}, ModelError, "must not be negative"),
        ("implicit", {"gain": [1.0, 2.0]}, ShapeError, "its rows have 6 numbers"),
        ("implicit", {"dampings": 1.0}, LinkwiseError, "damping"),
        ("implicit", {"locked": [0, 0, 0]}, ModelError, "'locked', which does not work"),
    ],
)
def test_numbers_that_do_not_act_are_refused(integrator, numbers, error, text):
    with pytest.raises(error, match=text):
        run(leg(), integrator, parameters=numbers)
