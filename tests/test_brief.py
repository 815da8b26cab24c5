"""Results print as one line: short values in full, long arrays by their shape."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import linkwise as lw
from linkwise.brief import brief


@brief
@dataclass(frozen=True)
class _Result:
    q: np.ndarray
    inertia: np.ndarray
    error: float
    steps: np.int64
    name: str
    status: np.ndarray | None = None
    _private: int = 1
    hidden: int = field(default=2, repr=False)


def test_one_line_names_values_and_shapes():
    result = _Result(np.array([1.0, 2.5]), np.eye(6), 0.1234567, np.int64(3), "hand")
    line = "<_Result: q=[1.  2.5], inertia (6, 6), error=0.12346, steps=3, name='hand'>"
    assert repr(result) == str(result) == line


@pytest.mark.few(1)
@pytest.mark.parametrize("batch", [(), (5,)])
def test_results_of_everyday_functions_fit_a_line(batch):
    arm = lw.models.seven_dof_arm()
    q = np.broadcast_to(arm.random(seed=0), (*batch, 7))
    v = tau = np.zeros(7)
    shape = (*batch, 7, 7)
    derivatives = lw.forward_dynamics_derivatives(arm, q, v, tau)
    assert repr(derivatives) == f"<ForwardDynamicsDerivatives: q {shape}, v {shape}, tau {shape}>"
    linear = lw.linearize(arm, q, v, tau)
    assert repr(linear) == f"<Linearization: A {(*batch, 14, 14)}, B {(*batch, 14, 7)}>"
