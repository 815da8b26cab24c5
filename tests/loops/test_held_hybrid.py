"""Hybrid dynamics of closed chains: one kernel, against all equations at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import closure
from linkwise.errors import ShapeError
from tests.cases import close, linkage
from tests.effort import calls


@pytest.mark.parametrize("name", ["four_bar", "dual_arm"])
def test_loops_are_held_in_one_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the equations with all λ as unknowns; rows of long mechanisms are inputs."""
    mech, q = linkage(name)
    rng = np.random.default_rng(4)
    v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
    tau = rng.standard_normal(mech.nv)
    vdot = lw.forward_dynamics(mech, q, v, rng.standard_normal(mech.nv))  # obeys the loops
    chosen = [mech.bodies[0].hinge_name]
    held = np.zeros(mech.nv, dtype=bool)
    held[mech.v_slice(chosen[0])] = True
    mass, c = lw.mass_matrix(mech, q), lw.bias_force(mech, q, v)
    J_c = lw.loops.constraint_jacobian(mech, q)
    gamma = lw.loops.constraint_bias(mech, q, v)
    n, m = mech.nv, len(J_c)
    # v̇, and τ of the hinges that are held; loops carry the least that is left open.
    both = np.block([[mass, -J_c.T, -np.eye(n)[:, held]], [J_c, np.zeros((m, m + held.sum()))]])
    both = np.concatenate([both, np.eye(n + m + int(held.sum()))[:n][held]])
    right = np.concatenate([np.where(held, 0.0, tau) - c, -gamma, vdot[held]])
    expected = np.linalg.lstsq(both, right, rcond=1e-10)[0]

    def check(motion: Any) -> None:
        close(motion.vdot, expected[:n], 1e-9)
        loads = mass @ motion.vdot + c - motion.tau  # J_c* λ
        close(J_c.T @ np.linalg.lstsq(J_c.T, loads, rcond=1e-10)[0], loads, 1e-9)
        assert np.array_equal(motion.tau[~held], tau[~held])

    def call(mech: lw.Mechanism, *state: Any, **more: Any) -> Any:
        return lw.hybrid_dynamics(mech, *state, tau=tau, vdot=vdot, prescribed=chosen, **more)

    check(call(mech, q, v))
    assert calls(lambda: call(mech, q, v)) < 80
    batch = call(mech, np.stack([q, q]), v)
    close(batch.tau[1], call(mech, q, v).tau, 1e-10)
    long = mech.with_node("here", mech.bodies[0].name, (0.0, 0.0, 0.0))  # without kernels yet
    monkeypatch.setattr(closure, "MOST_BODIES", 0)
    check(call(long, q, v))
    close(call(long, np.stack([q, q]), v).tau[0], batch.tau[0], 1e-9)


def test_arrays_of_different_batches_are_named() -> None:
    mech, q = linkage("four_bar")
    chosen, still = [mech.bodies[0].hinge_name], np.zeros(mech.nv)
    for more in ({"tau": np.zeros((3, mech.nv))}, {"forces": {"crank": np.zeros((3, 6))}}):
        given: dict[str, Any] = {"tau": still, "vdot": still, "prescribed": chosen, **more}
        with pytest.raises(ShapeError, match="has 3 rows; the batch has 2"):
            lw.hybrid_dynamics(mech, np.stack([q, q]), still, **given)
