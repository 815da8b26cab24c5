"""Springs at joint limits: the energy they store is the work done against them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation.limits import LimitSpring, LimitSprings


def ranged() -> lw.Mechanism:
    """A pin and a slide, each with a range."""
    b, box = lw.Builder("ranged"), lw.SpatialInertia.solid_box(2.0, (0.1, 0.2, 0.3))
    b.body("arm", hinge=lw.hinges.Pin(), inertia=box, drive=lw.Drive(lower=-0.5, upper=0.4))
    slide = lw.Drive(lower=-0.1, upper=0.2)
    return b.body(
        "slide", "arm", lw.hinges.Prismatic((1.0, 0.0, 0.0)), inertia=box, drive=slide
    ).build()


@pytest.mark.parametrize("options", [LimitSpring(), LimitSpring(stiffness=300.0)], ids=str)
@pytest.mark.parametrize("q", [(0.7, 0.35), (-0.9, -0.3), (0.6, -0.2)], ids=str)
def test_stored_energy_is_the_work_done(options: LimitSpring, q: tuple[float, float]):
    mech = ranged()
    springs, place, rest = LimitSprings(mech, mech.neutral(), options), np.array(q), np.zeros(2)
    springs.begin(place, rest)
    force, h = springs.force(place, rest), 1e-5
    assert (np.abs(force) > 1.0).all() and (force * place < 0.0).all(), "they push back"
    slope = [
        (springs.stored(place + h * e) - springs.stored(place - h * e)) / (2.0 * h)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(slope, -force, rtol=1e-6)
    assert springs.stored(mech.neutral()) == 0.0


def test_a_slide_of_known_mass_turns_back_where_its_energy_is_stored():
    """½ m v² = ½ k δ² at the turning point, without a damper."""
    b = lw.Builder("slide", gravity=(0.0, 0.0, 0.0))
    b.body(
        "cart",
        hinge=lw.hinges.Prismatic((1.0, 0.0, 0.0)),
        inertia=lw.SpatialInertia.solid_box(2.0, (0.1, 0.1, 0.1)),
        drive=lw.Drive(lower=-1.0, upper=0.0),
    )
    spring = lw.simulation.LimitSpring(stiffness=800.0, damping=0.0)
    rec = lw.simulate(b.build(), [0.0], [1.0], duration=0.1, step=1e-4, limits=spring)
    assert rec.q.max() == pytest.approx(np.sqrt(2.0 / 800.0), rel=1e-4)
