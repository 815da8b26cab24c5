"""Results do not depend on chunks, also where a chunk has as many cases as a motion has steps."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ShapeError
from linkwise.study import Rollouts, Study
from tests.study.test_study import ARM, Q

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")

STEPS, STEP = 32, 1e-3
HAND = lw.Task.position("hand")
REACHING = lw.models.seven_dof_arm()
BENT = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])


def moving(mech: lw.Mechanism = ARM, q: np.ndarray = Q, v=None, **options) -> Rollouts:
    """Motions of as many steps as there are cases in a chunk."""
    return Rollouts(mech, q, v, duration=STEPS * STEP, step=STEP, integrator="euler", **options)


def columns(study: Study, chunk: int) -> dict[str, np.ndarray]:
    """All results of a study, computed in chunks."""
    parts = [
        study.evaluate(study.values(a, min(a + chunk, study.cases)), first=a)
        for a in range(0, study.cases, chunk)
    ]
    assert not any(x for part in parts for x in part.reasons)
    return {k: np.concatenate([x.columns[k] for x in parts]) for k in parts[0].columns}


def check_chunks(study: Study) -> dict[str, np.ndarray]:
    """Chunks of fewer cases than steps, of as many, and of more give the same bits."""
    each = [columns(study, chunk) for chunk in (16, STEPS, 48)]
    for other in each[1:]:
        assert all(np.array_equal(x, other[k]) for k, x in each[0].items())
    return each[0]


def pushed(values):
    return {"tau": values["force"][:, None] * np.ones(2)}


def stiffened(values):
    return {"inputs": {"kp": values["k"][:, None] * np.ones(3)}}


def loaded(values):
    ten = np.zeros((len(values["m"]), 10))
    ten[:, 0] = values["m"]
    return {"parameters": {"payload:hand": ten}}


def shaken(values):
    return {"noise": {"tau": (values["s"][:, None] * np.ones(2), 2 * STEP)}}


def sent(values):
    law, goal = law_and_goal()
    return {"controller": (law, goal + values["x"][:, None] * np.array([0.1, 0.0, 0.0]))}


def law_and_goal():
    law = lw.control_law(REACHING, HAND, kp=100.0, kv=20.0)
    return law, lw.tasks.task_position(REACHING, BENT, HAND) + 0.05


def test_rows_of_setup_are_those_of_cases():
    study = Study(moving(setup=pushed), {"force": (0.0, 0.1)}, keep=["v"], cases=64)
    full = check_chunks(study)
    tau = study.values()["force"][:, None, None] * np.ones(2)
    run = lw.rollout(ARM, np.tile(Q, (64, 1)), duration=STEPS * STEP, step=STEP, tau=tau,
                     integrator="euler")  # fmt: skip
    for i, name in enumerate(ARM.velocity_names):
        assert np.array_equal(full[f"v[{name}]"], run.v[:, -1, i])


def test_rows_of_noise_from_setup_are_those_of_cases():
    work = moving(setup=shaken, noise={"tau": (0.1, 2 * STEP)})
    check_chunks(Study(work, {"s": (0.05, 0.2)}, keep=["v"], cases=64))


@pytest.mark.parametrize(("setup", "name"), [(stiffened, "k"), (sent, "x"), (loaded, "m")])
def test_rows_of_gains_goals_and_parameters_from_setup_are_those_of_cases(setup, name):
    work = moving(REACHING, BENT, controller=law_and_goal(), setup=setup)
    full = check_chunks(Study(work, {name: (0.05, 0.2)}, keep=["v"], cases=64))
    assert len(np.unique(full["v[elbow_pitch]"])) == 64


def test_rows_of_steps_from_setup_need_an_axis_of_cases():
    profile = np.linspace(0.0, 0.1, STEPS)[:, None] * np.ones(2)
    shared = Study(moving(setup=lambda values: {"tau": profile[None]}), {"damping": (0.0, 1.0)},
                   keep=["v"], cases=64)  # fmt: skip
    given = Study(moving(tau=profile), {"damping": (0.0, 1.0)}, keep=["v"], cases=64)
    one, two = check_chunks(shared), check_chunks(given)
    assert all(np.array_equal(x, two[k]) for k, x in one.items())
    wrong = Study(moving(setup=lambda values: {"tau": profile}), {"damping": (0.0, 1.0)}, cases=8)
    with pytest.raises(ShapeError, match=r"tau of shape \(32, 2\) for 16 cases.*\(1, 32, 2\)"):
        wrong.trial()


@pytest.mark.parametrize("shape", [(16, 2), (16, 1, 2), (16, STEPS, 2)])
def test_options_of_a_study_have_no_rows_of_cases(shape):
    with pytest.raises(ShapeError, match=r"tau has shape \(16, .*for all cases"):
        Study(moving(tau=np.zeros(shape)), {"damping": (0.0, 1.0)}, cases=16)
    with pytest.raises(ShapeError, match=r"q has shape \(16, 2\).*one row"):
        Study(moving(q=np.tile(Q, (16, 1))), {"damping": (0.0, 1.0)}, cases=16)


# ------------------------------------------------------------------------------- joint forces


def explained(study: Study, case: int) -> np.ndarray:
    """Joint forces of each step, from the rates of the motion of a case (steps, nv)."""
    rec = study.case(case)
    rates = np.diff(rec.v, axis=0) / STEP
    return lw.inverse_dynamics(rec.mech, rec.q[:-1], rec.v[:-1], rates)


def given_forces() -> Study:
    tau = 0.02 * np.sin(np.arange(STEPS))[:, None] * np.ones(2)
    return Study(moving(tau=tau), {"q[link_2]": (-1.0, 1.0)}, keep=["tau", "initial:tau"], cases=64)


def goals(shape: str) -> Study:
    law, goal = law_and_goal()
    if shape == "of steps":
        goal = goal + np.linspace(0.0, 0.1, STEPS)[:, None] * np.ones(3)
    by_case = shape == "of cases"
    work = moving(
        REACHING, BENT, controller=(law, goal), passive=False, setup=sent if by_case else None
    )
    keep = ["tau", "initial:tau"]
    return Study(work, {"x" if by_case else "kp": (0.5, 0.9)}, keep=keep, cases=64)


@pytest.mark.parametrize(
    "make", [given_forces, lambda: goals("of steps"), lambda: goals("of cases")]
)
def test_joint_forces_are_those_of_the_motion(make):
    study = make()
    full, forces = check_chunks(study), [explained(study, i) for i in (0, 40)]
    for j, name in enumerate(study.work.nominal().mech.velocity_names):
        for i, each in zip((0, 40), forces, strict=True):
            scale = 1e-9 * np.abs(each).max()
            assert abs(full[f"initial:tau[{name}]"][i] - each[0, j]) < scale
            assert abs(study.case(i).tau[:-1, j] - each[:, j]).max() < scale


@pytest.mark.parametrize("keep", ["rms:tau", "peak:tau", "tau"])
def test_statistics_of_joint_forces_are_those_of_the_recording(keep):
    """All records count, of which the last begins no step: it has the forces of the one before."""
    for study in (given_forces(), goals("of steps")):
        chosen = Study(
            study.work, {x.name: x for x in study.sampling.variables}, keep=keep, cases=64
        )
        full, tau = check_chunks(chosen), chosen.case(40).tau
        expected = {"rms:tau": np.sqrt((tau**2).mean(axis=0)), "peak:tau": np.abs(tau).max(axis=0),
                    "tau": tau[-1]}[keep]  # fmt: skip
        for j, name in enumerate(study.work.nominal().mech.velocity_names):
            assert abs(full[f"{keep}[{name}]"][40] - expected[j]) < 1e-12 * max(1, abs(expected[j]))
