"""The oracle that gives MuJoCo our inertias does so only where they are one physics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linkwise.io.load import load
from linkwise.spatial import quaternion
from tests.oracles.mujoco_inertia import inertia_gaps, same_inertias
from tests.oracles.mujoco_oracle import read_model

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")

MODEL = """<mujoco><worldbody><body name="upper"><joint axis="0 1 0"/>
<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
<body name="lower" pos="0 0 1"><joint axis="1 0 0"/>
<geom type="ellipsoid" size="0.1 0.3 0.2" euler="20 30 40"/></body></body></worldbody></mujoco>"""


@pytest.fixture
def pair(tmp_path: Path):
    (tmp_path / "model.xml").write_text(MODEL)
    return load(tmp_path / "model.xml"), read_model(tmp_path / "model.xml")


def test_nothing_is_replaced_where_nothing_differs(pair):
    assert same_inertias(*pair) == []
    assert max(gap.tensor for gap in inertia_gaps(*pair)) < 1e-14


@pytest.mark.parametrize(
    ("attribute", "change"),
    [
        ("body_mass", lambda x: x * (1.0 + 1e-10)),
        ("body_inertia", lambda x: x * (1.0 + 1e-10)),
        ("body_ipos", lambda x: x + 1e-10),
        ("body_iquat", lambda x: quaternion.normalise(x + np.array([0.0, 1e-5, 0.0, 0.0]))),
    ],
)
def test_an_inertia_that_was_read_wrongly_is_not_hidden(pair, attribute: str, change):
    mech, model = pair
    array = getattr(model, attribute)
    array[2] = change(array[2])
    with pytest.raises(AssertionError, match=r"inertias differ from MuJoCo's: .*body='lower'"):
        same_inertias(mech, model)


def test_what_is_replaced_is_listed(pair):
    mech, model = pair
    turned = model.body_iquat[2] + np.array([0.0, 1e-8, 0.0, 0.0])
    model.body_iquat[2] = turned / np.linalg.norm(turned)
    (gap,) = same_inertias(mech, model)
    assert gap.body == "lower"
    assert 1e-9 < gap.tensor < 1e-7
    rot = quaternion.to_matrix(model.body_iquat[2])
    J = rot @ np.diag(model.body_inertia[2]) @ rot.T
    assert np.abs(J - mech.body("lower").inertia.J_com).max() < 1e-14 * np.abs(J).max()
