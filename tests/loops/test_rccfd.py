"""RCCFD1 to RCCFD3: proved equal to forward dynamics with loops held, and right in numbers."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.closure import CLOSED, Setting, closed_kernel
from linkwise.dynamics.rccfd import RCCFD
from linkwise.spatial.array import Array
from tests.dense_kinematics import mass_matrix
from tests.loops.test_closure_quantity import HINGES, allowed, closed_tree


def dense(mech: lw.Mechanism, q: Array, v: Array, tau: Array, closing: Array | float = 0) -> Array:
    """v̇ of 𝓜 v̇ + C = τ + J_c* λ, J_c v̇ + γ = closing, all at once; 𝓜 by dense Jacobians."""
    J_c = lw.loops.constraint_jacobian(mech, q)
    A = mass_matrix(mech, q)
    matrix = np.block([[A, -J_c.T], [J_c, np.zeros((len(J_c), len(J_c)))]])
    right = np.concatenate(
        [tau - lw.bias_force(mech, q, v), closing - lw.loops.constraint_bias(mech, q, v)]
    )
    return np.linalg.lstsq(matrix, right, rcond=1e-13)[0][: mech.nv]


def apart(result: Array, expected: Array) -> float:
    assert np.abs(expected).max() > 1e-2
    return float(np.abs(result - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", RCCFD)
def test_they_are_proved_equal_to_what_is_derived(name: str):
    for setting in (Setting(), Setting(pushed="node")):
        proof = lw.prove(RCCFD[name](setting), CLOSED["forward_dynamics"](setting))
        assert proof.proved, proof.verdict


@pytest.mark.few(1)
@pytest.mark.parametrize("hinge", HINGES)
@pytest.mark.parametrize("name", RCCFD)
def test_any_loop_with_couplings_and_armature(name: str, hinge: str):
    mech, q = closed_tree(HINGES[hinge], 3 + len(hinge), chain=True)
    v, tau = allowed(mech, q, 1), np.random.default_rng(2).standard_normal(mech.nv)
    result = lw.forward_dynamics(mech, q, v, tau, method=name)
    assert apart(result, dense(mech, q, v, tau)) < 1e-8


@pytest.mark.parametrize("name", RCCFD)
def test_arms_that_hold_an_object(name: str):
    """Three arms with soft fingers: batches, forces at a node, and constraints that accelerate."""
    mech = lw.models.multi_arm(3, arm="puma560", grasp=lw.hinges.SoftFinger())
    rng = np.random.default_rng(4)
    q = np.stack([mech.neutral()] * 2)
    v = np.stack([allowed(mech, q[0], seed) for seed in (1, 2)])
    tau, closing = rng.standard_normal((2, mech.nv)), rng.standard_normal(12)
    result = lw.forward_dynamics(mech, q, v, tau, method=name)
    for i in range(2):
        assert apart(result[i], dense(mech, q[i], v[i], tau[i])) < 1e-9
    push = {"object": rng.standard_normal(6)}
    pushed = lw.forward_dynamics(
        mech, q[0], v[0], tau[0], forces=push, closing=closing, method=name
    )
    total = tau[0] + lw.dynamics.equivalent_force(mech, q[0], push)
    assert apart(pushed, dense(mech, q[0], v[0], total, closing)) < 1e-9


def test_each_is_one_kernel_that_costs_little_more():
    mech = lw.models.dual_arm()
    derived = closed_kernel(mech, "forward_dynamics").ops.total()
    counts = [closed_kernel(mech, name).ops.total() for name in RCCFD]
    assert all(derived < count < 1.25 * derived for count in counts) and len(set(counts)) == 3


def test_what_does_not_fit_is_refused():
    linkage, arm = lw.models.four_bar(), lw.models.pendulum(2)
    q, v = linkage.neutral(), np.zeros(3)
    with pytest.raises(lw.ModelError, match="RCCFD1 to RCCFD3"):
        lw.forward_dynamics(linkage, q, v, v, method="FD1")
    with pytest.raises(lw.ModelError, match="there are none to hold"):
        lw.forward_dynamics(arm, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], method="RCCFD1")
    with pytest.raises(lw.ModelError, match="no method called 'RCCFD4'"):
        lw.forward_dynamics(linkage, q, v, v, method="RCCFD4")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RCCFD)
def test_a_second_call_is_the_kernel_alone(name: str, monkeypatch: pytest.MonkeyPatch):
    """The first call prepares it; arguments that do not fit are still reported."""
    mech, other = lw.models.four_bar(), lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.neutral()).q
    v, tau = allowed(mech, q, 1), np.array([0.3, -0.2, 0.5])
    expected = lw.forward_dynamics(other, q, v, tau)
    first = lw.forward_dynamics(mech, q, v, tau, method=name)
    calls = list[str]()

    def careful(*arrays: object) -> None:
        calls.append(name)

    module = sys.modules["linkwise.dynamics.forward_dynamics"]  # not the function of that name
    monkeypatch.setattr(module, "accelerated", careful)
    again = lw.forward_dynamics(mech, q, v, tau, method=name)
    assert not calls and np.array_equal(first, again) and apart(again, expected) < 1e-9
    lw.forward_dynamics(mech, q, v[:2], tau, method=name)
    assert calls == [name]
