"""How likely does a robot fall that stands under pushes?

A block on four feet is pushed sideways at random, by forces whose size is a variable of the study.
A condition ends a motion when the block tips over. Most cases stand; importance sampling draws
larger pushes and weighs them, which takes far fewer cases for the same interval.
"""

import tempfile

import numpy as np
from scipy import stats

import linkwise as lw


def robot() -> tuple[lw.Mechanism, list[lw.simulation.ContactPoint]]:
    """A tall block, 4 kg, with a foot at each corner."""
    solid = lw.SpatialInertia.solid_box(4.0, (0.2, 0.2, 0.6))
    mech = lw.Builder("block").body("block", "world", lw.hinges.Free(), inertia=solid).build()
    feet = [
        lw.simulation.ContactPoint(f"foot {x} {y}", "block", (x, y, -0.3))
        for x in (-0.1, 0.1)
        for y in (-0.1, 0.1)
    ]
    return mech, feet


def fall_study(cases: int, **options) -> lw.Study:
    """One push of 0.1 s, a normal force of random size, along x."""
    mech, feet = robot()
    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3])

    def pushed(values):
        tau = np.zeros((len(values["force"]), 50, 6))
        tau[:, :10, 3] = values["force"][:, None]  # at the centre of mass, in body axes
        return {"tau": tau}

    work = lw.study.Rollouts(
        mech, start, duration=0.5, step=1e-2, integrator="implicit", contacts=feet, setup=pushed,
        record_every=50,
    )  # fmt: skip
    fell = {"height": lambda batch: batch["position:block"][:, -1, 2]}
    vary = {"force": stats.norm(0.0, 15.0)}
    return lw.Study(work, vary, keep=fell, cases=cases, seed=2, **options)


def main(cases: int = 2000) -> None:
    """Plain and importance sampling give the same probability."""
    plain = fall_study(cases).run(tempfile.mkdtemp(), progress=False)
    first = lw.study.probability(plain, "height", below=0.25)
    print("P(fall):", first)
    wide = fall_study(cases, propose={"force": stats.norm(0.0, 40.0)})
    second = lw.study.probability(
        wide.run(tempfile.mkdtemp(), progress=False), "height", below=0.25
    )
    print("P(fall), importance sampling:", second)
    assert second.low <= first.high and first.low <= second.high
    assert 0.0 < second.value < 0.5


if __name__ == "__main__":
    main()
