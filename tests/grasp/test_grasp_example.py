"""The example runs; its assertions count."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "three_arms_soft_fingers.py"


@pytest.mark.prove
def test_three_arms_until_one_slips(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(FILE)])
    runpy.run_path(str(FILE), run_name="__main__")
    assert "'grasp_1 slips' at 1.4911" in capsys.readouterr().out


def test_help_is_no_file_name(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(FILE), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FILE), run_name="__main__")
    assert ended.value.code == 0
    assert "figure.png" in capsys.readouterr().out
