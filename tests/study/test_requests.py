"""What a study refuses before it runs, and what makes it another one."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import UnknownNameError
from linkwise.study import Rollouts, Simulations, Study
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
