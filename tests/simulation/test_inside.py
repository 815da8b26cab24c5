"""Motions that begin inside the ground are warned of, whatever moves them."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.grid import Grid
from linkwise.simulation import Ground, contact_points
from linkwise.simulation.implicit.ground import HeightField
from linkwise.simulation.implicit.inside import gaps
from linkwise.simulation.implicit.steps import KernelSteps

SHAPES = {
    "sphere": (0.2,),
    "box": (0.2, 0.3, 0.4),
    "capsule": (0.1, 0.3),
    "cylinder": (0.1, 0.3),
    "ellipsoid": (0.1, 0.2, 0.3),
}
TEXT = r"begins with contact 'shape/\d' 0\.05 m inside what it touches"


def body(kind="sphere"):
    shape = lw.Geometry("shape", kind, SHAPES[kind], lw.Pose.translation((0.02, 0.0, 0.03)))
    inertia = lw.SpatialInertia.solid_sphere(1.0, 0.2)
    b = lw.Builder("body").body(
        "body", "world", lw.hinges.Free(), inertia=inertia, geometry=[shape]
    )
    return b.build()


def uneven():
    x, y = np.meshgrid(np.linspace(0, 3, 7), np.linspace(0, 2, 5))
    return HeightField(Grid(np.sin(x) * np.cos(y)), (4.0, 4.0), point=(0.0, 0.0, -1.0))


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("ground", [Ground((0.1, 0, -0.3), (0.0, 0.6, 0.8)), uneven()])
def test_gaps_are_those_of_the_steps(kind, ground):
    mech = body(kind)
    points = contact_points(mech, ground)
    stepper = KernelSteps(mech, points, actuated=False, passive=True)
    for seed in range(3):
        q = mech.random(seed)
        _, kernel = stepper.gaps(stepper.first(q, np.zeros(6)), 1e-6)
        np.testing.assert_allclose(gaps(mech, q, points), kernel[0], rtol=1e-12, atol=1e-13)


def outside(mech, depth):
    q = lw.simulation.put_on_ground(mech, contacts=Ground())
    q[6] -= depth
    return q


@pytest.mark.parametrize("every", [1, 20])
def test_every_way_to_move_warns(every):
    mech, options = body(), {"integrator": "implicit", "contacts": Ground()}
    inside, fine = outside(mech, 0.05), outside(mech, 0.005)
    rollout = {"duration": 0.1, "record_every": every} | options
    for start in (inside, np.stack([fine, inside, fine])):
        with pytest.warns(UserWarning, match=TEXT):
            lw.rollout(mech, start, **rollout)
        with pytest.warns(UserWarning, match=TEXT):
            batch = len(start) if start.ndim == 2 else None
            lw.Simulator(mech, q=start, batch=batch, contacts=Ground())
    with pytest.warns(UserWarning, match=TEXT):
        lw.simulate(mech, inside, duration=0.1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(mech, fine, **rollout)
        lw.Simulator(mech, q=fine, contacts=Ground())
