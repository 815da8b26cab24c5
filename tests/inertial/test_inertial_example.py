"""The example runs; its assertions count."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "belted_ellipsoids.py"


def test_one_pose_of_the_hand(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(FILE)])
    runpy.run_path(str(FILE), run_name="__main__")
    out = capsys.readouterr().out
    assert "27 postures, one pose of the hand" in out


def test_with_a_picture(monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setattr("sys.argv", [str(FILE), str(tmp_path / "figure.png")])
    runpy.run_path(str(FILE), run_name="__main__")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
