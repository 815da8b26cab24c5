"""The example runs; its assertions count."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "mass_matrix_as_covariance.py"


def test_example(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(FILE)])
    runpy.run_path(str(FILE), run_name="__main__")
    assert "200000" in capsys.readouterr().out


def test_example_draws_a_figure(monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setattr("sys.argv", [str(FILE), str(tmp_path / "figure.png")])
    runpy.run_path(str(FILE), run_name="__main__")
    assert (tmp_path / "figure.png").stat().st_size > 1000
