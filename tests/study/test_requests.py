"""What a study refuses before it runs, and what makes it another one."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.study import Calls, Rollouts, Simulations, Study, optimize
from tests.study.test_study import ARM, Q

stats = pytest.importorskip("scipy.stats")
pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")


def test_names_that_setup_does_not_read_are_refused(tmp_path):
    """Some cases may not need a name: one that no case reads is misspelt."""

    def odd(values):
        return {"v": np.stack([values["speed"], 0 * values["speed"]], axis=1)}

    def all_of_them(values):
        return {"v": np.stack(list((values | {}).values())[:1] * 2, axis=1)}

    def sometimes(mech, values):
        return {"v": [values["speed"] if values["kind"] > 0.6 else 0.0, 0.0]}

    given = {"duration": 0.02, "step": 1e-2}
    vary = {"speed": (0.0, 1.0), "dampnig": (0.0, 1.0)}

    def one(mech, values):
        return {"v": [values["speed"], 0.0]}

    for work in (Rollouts(ARM, Q, setup=odd, **given), Simulations(ARM, Q, setup=one, **given)):
        with pytest.raises(UnknownNameError, match=r"'dampnig' .*does not read it.*'damping'"):
            Study(work, vary, keep=["q"], cases=9).run(tmp_path / "x")
    fine = {"speed": (0.0, 1.0), "damping": (0.0, 1.0)}
    for setup in (odd, all_of_them):
        Study(Rollouts(ARM, Q, setup=setup, **given), fine, keep=["q"], cases=3).trial()
    work = Simulations(ARM, Q, setup=sometimes, **given)
    study = Study(work, {"kind": (0.0, 1.0), "speed": (0.0, 1.0)}, keep=["q"], cases=9)
    assert study.values()["kind"][0] < 0.6
    study.trial()


def power_law(power):
    class PowerLaw(stats.rv_continuous):
        """A distribution of the user."""

        def _cdf(self, x):
            return x**power

    return PowerLaw(a=0.0, b=1.0, name="power law")()


class Bare:
    """What draws need, without a description."""

    def __init__(self, width):
        self.width = width

    def ppf(self, u):
        return self.width * np.asarray(u)

    def logpdf(self, x):
        return -np.log(self.width) + 0.0 * x


def histogram(power):
    return stats.rv_histogram(np.histogram(np.linspace(0.0, 1.0, 50) ** power), density=False)()


MADE = {
    "histogram": histogram,
    "list of values": lambda x: stats.rv_discrete(values=([1, 2], [x / 10, 1 - x / 10]))(),
    "mixture": lambda x: stats.Mixture([stats.Normal(mu=0.0), stats.Normal(mu=float(x))]),
    "class of the user": power_law,
    "object of the user": Bare,
    "name": lambda x: stats.norm(x, 1),
}


@pytest.mark.parametrize("kind", MADE)
def test_distributions_are_known_by_what_they_draw(kind):
    one, same, other = (Study(lambda a: a, {"a": MADE[kind](x)}, cases=4) for x in (1, 1, 3))
    assert one.digest == same.digest != other.digest
    text = one.sampling.variables[0].text
    assert " at 0x" not in text and ("sha256" in text) == (kind != "name")


def test_the_seed_is_that_of_the_noise_too():
    """Of equal values; a seed in the options of the rollout is kept."""

    def motions(of_study, **options):
        work = Rollouts(ARM, Q, duration=0.05, step=1e-2, noise={"tau": 0.1}, **options)
        study = Study(work, {"damping": [0.1, 0.2]}, keep=["q"], sampler="grid", seed=of_study)
        end = study.evaluate(study.values()).columns[f"q[{ARM.coordinate_names[1]}]"]
        assert study.case(1).q[-1, 1] == end[1]
        return end

    base = motions(3)
    assert np.array_equal(motions(3), base) and (motions(4) != base).all()
    assert np.array_equal(motions(4, seed=3), base) and (motions(3, seed=0) != base).all()


@pytest.mark.parametrize("pairs", [{("a", "a"): 0.1}, {("a", "b"): 0.9, ("b", "a"): -0.9}])
def test_correlations_are_given_once_and_of_two_variables(pairs):
    with pytest.raises(ModelError, match="of two variables, once for each pair"):
        Study(lambda a, b: a, {"a": (0, 1), "b": (0, 1)}, cases=3, correlate=pairs)


def test_values_to_evaluate_are_checked():
    study = Study(lambda a, b: a + b, {"a": (0, 1), "b": (0, 1)}, cases=3)
    with pytest.raises(ModelError, match=r"values has no 'a'; it needs a, b"):
        study.evaluate({})
    with pytest.raises(UnknownNameError, match="no variable called 'c'"):
        study.evaluate({"a": 1.0, "b": 2.0, "c": 3.0})
    with pytest.raises(ShapeError, match=r"'a' has \(2,\), 'b' has \(3,\)"):
        study.evaluate({"a": [1, 2], "b": [1, 2, 3]})
    assert study.evaluate({"a": [1, 2], "b": 1}).columns["value"].tolist() == [2.0, 3.0]


def test_designs_without_a_number_are_the_worst():
    pytest.importorskip("optuna")

    def root(a, b):
        with np.errstate(invalid="ignore"):
            return {"y": np.sqrt(a - 0.5) + 0.0 * b}

    study = Study(Calls(root, batched=True), {"a": (0.0, 1.0), "b": (0.0, 1.0)}, cases=5)
    best = optimize(study, "y", {"a": (0.0, 1.0)}, trials=20)
    assert 0.5 <= best.values["a"] < 0.7
    with pytest.raises(ModelError, match=r"'y' has no finite statistic in any of 5 designs"):
        optimize(study, "y", {"a": (0.0, 0.4)}, trials=5)


def test_impossible_numbers_do_not_slow_the_others(monkeypatch):
    """One rollout computes all others, with the bits that they have alone."""
    from linkwise.study import rollouts

    calls, run = list[int](), rollouts.rollout
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2, noise={"tau": 0.01})
    monkeypatch.setattr(rollouts, "rollout", lambda *a, **k: (calls.append(1), run(*a, **k))[1])
    vary = {"mass:link_2": stats.norm(1.0, 1.0), "damping": stats.norm(0.01, 0.01)}
    study = Study(work, vary, keep=["q", "trajectory:v"], cases=200)
    values = study.values()
    result, bad = study.evaluate(values), (values["mass:link_2"] < 0) | (values["damping"] < 0)
    assert len(calls) == 1 and 40 < bad.sum() < 90
    assert np.array_equal(result.failed, bad)
    assert np.isnan(result.trajectories["v"][bad]).all() and np.isnan(result.ends[bad]).all()
    q = result.columns[f"q[{ARM.coordinate_names[1]}]"]
    assert np.array_equal(np.isnan(q), bad)
    for i in [*np.flatnonzero(bad)[:3], *np.flatnonzero(~bad)[:3]]:
        alone = study.evaluate(study.values(i, i + 1), first=i)
        assert alone.reasons[0] == result.reasons[i]
        assert bad[i] or alone.columns[f"q[{ARM.coordinate_names[1]}]"][0] == q[i]
    assert any("kg; it must not be negative" in x for x in result.reasons)
    with pytest.raises(ModelError, match="must not be negative"):
        study.case(int(np.flatnonzero(bad)[0]))
