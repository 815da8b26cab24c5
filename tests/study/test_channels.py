"""Channels of a study where inertia varies: those of the mechanism of each case."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import StudyWarning
from linkwise.study import Rollouts, Study
from tests.study.test_chunks import BENT, REACHING, STEP, STEPS, check_chunks, moving

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")

KEEP = ["q", "v", "energy.kinetic", "energy.potential", "energy.total", "center_of_mass"]
LINK = REACHING.bodies[3].name
TEN = np.array([20.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
SPEED = np.linspace(0.5, 1.0, 7)


def loaded(mass: float) -> lw.Mechanism:
    point = lw.SpatialInertia.from_com(mass, (0.0, 0.0, 0.0), np.zeros((3, 3)))
    return REACHING.with_payload("hand", point, name="load")


def heavier(mass: float) -> lw.Mechanism:
    old = REACHING.body(LINK).inertia
    new = lw.SpatialInertia(mass, old.h * mass / old.mass, old.J * mass / old.mass)
    bodies = [dataclasses.replace(b, inertia=new) if b.name == LINK else b for b in REACHING.bodies]
    return dataclasses.replace(REACHING, bodies=tuple(bodies))


def armoured(armature: float) -> lw.Mechanism:
    names = [x.hinge_name for x in REACHING.bodies]
    return REACHING.with_drive(names, armature=armature, rotor_inertia=0.0)


def by_setup(values):
    return {"parameters": {"payload:hand": values["m"][:, None] * TEN / 20.0}}


def with_gravity(z: float) -> lw.Mechanism:
    return REACHING.with_gravity((0.0, 0.0, z))


VARIED = {
    "payload": ({"payload:hand": (1.0, 20.0)}, {}, loaded),
    "mass": ({f"mass:{LINK}": (1.0, 20.0)}, {}, heavier),
    "scaled": ({f"scale:mass:{LINK}": (1.0, 5.0)}, {},
               lambda x: heavier(x * REACHING.body(LINK).inertia.mass)),
    "armature": ({"armature": (0.1, 5.0)}, {}, armoured),
    "gravity": ({"gravity[z]": (-9.0, -1.0)}, {}, with_gravity),
    "setup": ({"m": (1.0, 20.0)}, {"setup": by_setup}, loaded),
    "options": ({"damping": (0.1, 0.2)}, {"parameters": {"payload:hand": TEN}},
                lambda x: loaded(20.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", VARIED)
def test_energies_and_centres_of_mass_are_those_of_each_case(kind):
    """Of a mechanism that is made with the numbers of the case."""
    vary, options, make = VARIED[kind]
    study = Study(moving(REACHING, BENT, v=SPEED, **options), vary, keep=KEEP, cases=64)
    full, values = check_chunks(study), next(iter(study.values().values()))
    for i in (0, 50):
        mech = make(values[i])
        q, v = (np.array([full[f"{n}[{x}]"][i] for x in labels]) for n, labels in
                (("q", mech.coordinate_names), ("v", mech.velocity_names)))  # fmt: skip
        truth = lw.energy(mech, q, v)
        for name in ("kinetic", "potential", "total"):
            assert full[f"energy.{name}"][i] == pytest.approx(getattr(truth, name), rel=1e-11)
        center = [full[f"center_of_mass[{a}]"][i] for a in "xyz"]
        np.testing.assert_allclose(center, lw.center_of_mass(mech, q), rtol=0, atol=1e-11)
        rec = study.case(i)
        assert rec.mech.total_mass == pytest.approx(mech.total_mass)
        assert rec["energy.total"][-1] == pytest.approx(truth.total, rel=1e-11)


def test_payloads_and_masses_may_vary_together_in_any_order():
    vary = {"payload:hand": [3.0], f"mass:{LINK}": [5.0]}
    study = Study(moving(REACHING, BENT), vary, sampler="grid")
    expected = REACHING.total_mass - REACHING.body(LINK).inertia.mass + 8.0
    assert study.case(0).mech.total_mass == pytest.approx(expected)


def test_a_payload_that_is_dropped_counts_while_it_is_there():
    """Rows of steps: a record has the numbers of the step that begins there."""
    ten = np.where(np.arange(STEPS)[:, None] < STEPS // 2, TEN, 0.0)
    work = Rollouts(REACHING, BENT, duration=STEPS * STEP, step=STEP, integrator="euler",
                    parameters={"payload:hand": ten}, record_every=1)  # fmt: skip
    keep = ["initial:energy.total", "energy.total", "initial:center_of_mass", "center_of_mass"]
    study = Study(work, {"v[0]": (0.1, 0.2)}, keep=keep, cases=64)
    full = check_chunks(study)
    with pytest.warns(StudyWarning, match="payload:hand, which changes from step to step"):
        rec = study.case(5)
    for name, k, mech in (("initial:", 0, loaded(20.0)), ("", -1, REACHING)):
        total = lw.energy(mech, rec.q[k], rec.v[k]).total
        assert full[f"{name}energy.total"][5] == pytest.approx(total, rel=1e-11)
        center = [full[f"{name}center_of_mass[{a}]"][5] for a in "xyz"]
        np.testing.assert_allclose(center, lw.center_of_mass(mech, rec.q[k]), rtol=0, atol=1e-11)
