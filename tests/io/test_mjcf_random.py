"""Random MJCF models: everything that decides tree and masses, against MuJoCo and a round trip."""

from __future__ import annotations

import pytest

from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from tests.io.mjcf_random import RandomModel
from tests.io.mjcf_text import again, read
from tests.io.round_trip import differences
from tests.oracles.mujoco_oracle import agreement, dynamics_gap, parse_model

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_mujoco(seed: int):
    text = RandomModel(seed).text()
    mech = read(text)
    model = parse_model(text)
    rows = agreement(mech, model)
    assert rows.dof[0] == rows.dof[1]
    assert rows.worst < 1e-12, rows
    assert rows.inertia < 1e-11, rows
    assert rows.axes < 1e-9, rows
    assert rows.drive < 1e-10, rows
    assert max(dynamics_gap(mech, model, samples=1)) < 1e-11
    back, report = again(mech)
    assert max(differences(mech, back).values()) < 1e-11
    assert not report.affecting("motion")
    saved = agreement(back, parse_model(write_mjcf(mech, Reporter("out.xml"))))
    assert saved.worst < 1e-12, saved
    assert saved.drive < 1e-12, saved
