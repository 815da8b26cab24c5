"""Studies of motions whose controller plans anew at each step."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, UnknownNameError
from linkwise.study import Rollouts, Simulations, Study
from tests.study.test_study import Q

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")


def predictive(**options) -> tuple[lw.Mechanism, Study]:
    """An arm that plans anew at each step, with a load that the plan does not know."""
    from linkwise.control import Cost, RecedingHorizon

    mech = lw.models.chain(2)
    costs = [Cost.posture(np.array([0.5, 0.4]), weight=50.0), Cost.velocity(weight=1.0, final=1.0),
             Cost.effort(weight=1e-2)]  # fmt: skip
    plan = RecedingHorizon(mech, costs=costs, step=0.02, horizon=4, iterations=2)
    work = Rollouts(mech, Q, duration=0.12, step=1e-2, controller=plan, integrator="euler")
    vary = {f"payload:{mech.bodies[1].name}": (0.0, 2.0), "v[1]": (-1.0, 1.0)}
    return mech, Study(work, vary, keep=["q", "tau", "peak:tau"], cases=40, **options)


@pytest.mark.prove
def test_a_receding_horizon_is_studied(tmp_path):
    """Its forces are those that explain the motion; its digest knows goals and weights."""
    mech, study = predictive()
    full = study.evaluate(study.values())
    assert not full.failed.any()
    for begin, end in ((0, 1), (13, 14), (5, 37)):
        part = study.evaluate(study.values(begin, end), first=begin)
        for name, column in full.columns.items():
            assert np.array_equal(part.columns[name], column[begin:end])
    rec = study.case(17)
    rates = np.diff(rec.v, axis=0) / 1e-2
    tau = lw.inverse_dynamics(rec.mech, rec.q[:-1], rec.v[:-1], rates)
    assert rec.mech.total_mass > mech.total_mass and np.abs(tau).max() > 0.01
    np.testing.assert_allclose(rec.tau[:-1], tau, rtol=0, atol=1e-9 * np.abs(tau).max())
    for i, name in enumerate(mech.velocity_names):
        assert full.columns[f"tau[{name}]"][17] == rec.tau[-1, i]
        assert full.columns[f"peak:tau[{name}]"][17] == np.abs(rec.tau[:, i]).max()
    results = study.run(tmp_path, progress=False)
    again = results.study  # from its pickle: made anew
    assert again.digest == study.digest and again is not study
    assert np.array_equal(again.case(17).q, rec.q)
    digest = predictive()[1].digest
    assert digest == study.digest
    study.work.options["controller"].set_goal(0, np.array([0.1, 0.2]))
    assert study.digest != digest
    copy = pickle.loads(pickle.dumps(study.work.options["controller"]))
    assert np.array_equal(copy(0.0, Q, 0 * Q), study.work.options["controller"](0.0, Q, 0 * Q))
    assert not np.array_equal(study.case(17).q, rec.q)


def test_receding_horizons_in_simulations_begin_anew_with_each_case():
    mech, study = predictive()
    work = Simulations(mech, Q, duration=0.01, step=1e-2,
                       controller=study.work.options["controller"])  # fmt: skip
    each = Study(work, {"v[1]": (-1.0, 1.0)}, keep=["v"], cases=3)
    full = each.evaluate(each.values())
    last = each.evaluate(each.values(2, 3))
    name = f"final:v[{mech.velocity_names[1]}]"
    assert last.columns[name][0] == full.columns[name][2] != full.columns[name][1]


def test_what_a_study_of_a_receding_horizon_cannot_do():
    mech, study = predictive()
    with pytest.raises(UnknownNameError, match="no variable called 'kp'"):
        Study(study.work, {"kp": (0.0, 1.0)}, cases=3)
    plan = study.work.options["controller"]
    digest = study.digest
    assert pickle.loads(pickle.dumps(study)).digest == digest  # made anew
    plan.set_goal(0, np.array([0.1, 0.2]))
    assert study.digest != digest
    work = Rollouts(mech, Q, duration=0.1, step=1e-2, controller=plan, integrator="euler",
                    record_every=5)  # fmt: skip
    with pytest.raises(ModelError, match="every step is recorded"):
        Study(work, {"damping": (0.0, 1.0)}, keep=["tau"], cases=3).trial()
