"""How likely does a robot fall that stands under pushes?

A quadruped holds its pose with servos and is pushed sideways, by a force whose size is a variable
of the study. Most cases stand; importance sampling draws larger pushes and weighs them, which takes
far fewer cases for the same interval.
"""

import tempfile

import numpy as np
from scipy import stats

import linkwise as lw

PUSHED, STEPS, STEP = 40, 200, 4e-3


def mechanism() -> lw.Mechanism:
    """A quadruped of 13 kg with a servo at each joint."""
    mech = lw.models.quadruped()
    joints = [body.hinge_name for body in mech.bodies[1:]]
    servos = tuple(lw.Actuator.position(name, name, kp=300.0, kv=10.0) for name in joints)
    return lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=servos)


def pushed(values) -> dict[str, np.ndarray]:
    """One push of 0.16 s on the trunk, along y in body axes, as joint forces of the free hinge."""
    tau = np.zeros((len(values["force"]), STEPS, 18))
    tau[:, :PUSHED, 4] = values["force"][:, None]
    return {"tau": tau}


def robot() -> tuple[lw.Mechanism, list[lw.simulation.ContactPoint], np.ndarray]:
    """The quadruped, its feet, and its pose on the ground."""
    mech = mechanism()
    names = [node.name for node in mech.nodes if node.name.endswith("foot")]
    feet = lw.simulation.ground_contacts(mech, lw.simulation.Ground(friction=0.8), bodies=names)
    return mech, feet, lw.simulation.put_on_ground(mech, None, feet)


def fall_study(cases: int, **options) -> lw.Study:
    """A push of random size, normally distributed; `studies/standing.toml` is the same study."""
    mech, feet, start = robot()
    work = lw.study.Rollouts(
        mech, start, duration=STEPS * STEP, step=STEP, integrator="implicit", contacts=feet,
        controls=start[7:], setup=pushed, record_every=STEPS,
    )  # fmt: skip
    keep = {"height": lambda batch: batch["position:trunk"][:, -1, 2]}
    vary = {"force": stats.norm(0.0, 35.0)}
    return lw.Study(work, vary, keep=keep, cases=cases, seed=2, **options)


def main(cases: int = 2000) -> None:
    """Plain and importance sampling give the same probability."""
    plain = fall_study(cases).run(tempfile.mkdtemp(), progress=False)
    first = lw.study.probability(plain, "height", below=0.2)
    print("P(fall):", first)
    wide = fall_study(cases, propose={"force": stats.norm(0.0, 90.0)})
    second = lw.study.probability(wide.run(tempfile.mkdtemp(), progress=False), "height", below=0.2)
    print("P(fall), importance sampling:", second)
    assert second.low <= first.high and first.low <= second.high
    assert 0.0 < second.value < 0.5


if __name__ == "__main__":
    main()
