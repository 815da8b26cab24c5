"""The examples that optimize motions with CasADi and IPOPT."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

ca = pytest.importorskip("casadi")
pytestmark = pytest.mark.prove

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cart_pole_swing_up", "time_optimal_arm"])
def test_it_runs_and_can_be_drawn(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sys.argv", [name, str(tmp_path / "figure.png")])
    example(name).main()
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "Solve_Succeeded" in capsys.readouterr().out


def test_the_cart_pole_is_that_of_textbooks():
    """(M + m) ẍ + m l (θ̈ cos θ - θ̇² sin θ) = u, with its centre at l and inertia m (2 l)²/3."""
    mech, rng = example("cart_pole_swing_up").cart_pole(), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 2))
    m, length = 0.3, 0.25
    thickness = m * 0.02**2 / 12
    angle = q[1]
    force = 1.3 * a[0] + m * length * (a[1] * np.cos(angle) - v[1] ** 2 * np.sin(angle))
    moment = (m * (2 * length) ** 2 / 3 + thickness) * a[1]
    moment += m * length * (a[0] * np.cos(angle) - 9.81 * np.sin(angle))
    expected = lw.inverse_dynamics(mech, q, v, a)
    np.testing.assert_allclose(expected, [force, moment], rtol=1e-12)


def test_symbols_and_machine_code_find_the_same_motion():
    module = example("cart_pole_swing_up")
    mech = module.cart_pole()
    made = lw.convert.to_casadi
    functions = [made("forward_dynamics", mech, name="f", compiled=c) for c in (True, False)]
    (x, u, stats), (y, w, _) = (module.optimum(f) for f in functions)
    assert stats["success"]
    np.testing.assert_allclose(x, y, atol=1e-5)
    np.testing.assert_allclose(u, w, atol=1e-4)
