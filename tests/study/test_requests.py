"""What a study refuses before it runs, and what makes it another one."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import UnknownNameError
from linkwise.study import Rollouts, Simulations, Study
from tests.study.test_study import ARM, Q

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
