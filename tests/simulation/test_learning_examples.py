"""The robots of examples/learn_cart_pole.py and examples/learn_quadruped.py learn."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_cart_pole_improves_in_a_few_rounds():
    names = runpy.run_path(str(EXAMPLES / "learn_cart_pole.py"))
    _, curve = names["learn"](rounds=8, copies=64)
    # -1.0 and -0.5 where it was written: from hanging to swinging
    assert curve[0] < -0.8 and curve[-1] > curve[0] + 0.2


@pytest.mark.prove
@pytest.mark.shipped
def test_a_cart_pole_swings_up_and_stands(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["learn_cart_pole.py", str(tmp_path / "curve.png")])
    runpy.run_path(str(EXAMPLES / "learn_cart_pole.py"), run_name="__main__")
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert "of 16 new episodes" in capsys.readouterr().out


@pytest.mark.prove
@pytest.mark.shipped
def test_a_quadruped_stays_up_longer_after_a_few_rounds(tmp_path):
    pytest.importorskip("torch")
    names = runpy.run_path(str(EXAMPLES / "learn_quadruped.py"))
    arguments = ["--cpu", "--robots", "128", "--rounds", "16", "--out", str(tmp_path)]
    motion = names["main"](arguments)
    curve = np.genfromtxt(tmp_path / "curve.csv", delimiter=",", names=True)
    # 0.1 and 0.3 where it was written, with 256 robots
    assert curve["reward"][-3:].mean() > 1.5 * curve["reward"][1:4].mean()
    assert motion["q"].shape == (250, 64, 19) and np.isfinite(motion["q"]).all()
    assert (tmp_path / "policy.pt").is_file() and (tmp_path / "walk.html").is_file()
