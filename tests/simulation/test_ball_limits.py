"""Limits, friction and springs of ball joints in implicit steps."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.io.mjcf_text import read


def hanging(attributes: str) -> lw.Mechanism:
    return read(
        f"""<mujoco><worldbody><body name="a"><joint name="j" type="ball" {attributes}/>
        <geom type="box" size="0.05 0.08 0.2" pos="0 0 0.3"/></body></worldbody></mujoco>"""
    )


def turns(q: np.ndarray) -> np.ndarray:
    return 2.0 * np.arctan2(np.linalg.norm(q[:, 1:], axis=1), np.abs(q[:, 0]))


@pytest.mark.parametrize("how", ["rollout", "simulate"])
def test_a_falling_rod_stops_at_its_largest_turn(how):
    mech, step = hanging('range="0 40" damping="6"'), 1e-3
    q = np.array([1.0, 0.01, 0.02, 0.0]) / np.linalg.norm([1.0, 0.01, 0.02, 0.0])
    options = {"duration": 6.0, "step": step, "integrator": "implicit"}
    limit = np.radians(40.0)
    if how == "rollout":
        run = lw.rollout(mech, q, **options)
        angle, v = turns(run.q), run.v
    else:
        rec = lw.simulate(mech, q, **options, progress=False)
        angle, v = turns(rec["q"]), rec["v"]
        force = rec["limit.force"][-1]  # holds it against gravity
        held = lw.gravity_force(mech, rec["q"][-1])
        np.testing.assert_allclose(force, held, rtol=1e-6, atol=1e-8)
        assert [e.name for e in rec.events] == ["j"] and "upper limit" in rec.events[0].text
        assert np.abs(rec["energy.balance"]).max() < 1e-9
    assert angle.max() < limit + 1e-3 and abs(angle[-1] - limit) < 1e-9
    assert np.abs(v[-1]).max() < 1e-9
    free = lw.rollout(hanging('damping="6"'), q, **options)
    assert turns(free.q).max() > 2.0


def test_friction_of_a_ball_holds_and_gives_way():
    """A moment below the friction moves nothing; one above it accelerates by the rest."""
    mech, h = hanging('frictionloss="0.5"'), 1e-3
    still = lw.Mechanism(mech.name, mech.bodies, gravity=(0.0, 0.0, 0.0))
    options = {"duration": h, "step": h, "integrator": "implicit"}
    held = lw.rollout(still, still.neutral(), tau=np.array([0.0, 0.0, 0.49]), **options)
    assert np.abs(held.v[-1]).max() < 1e-12
    gone = lw.rollout(still, still.neutral(), tau=np.array([0.0, 0.0, 0.8]), **options)
    inertia = lw.mass_matrix(still, still.neutral())[2, 2]
    np.testing.assert_allclose(gone.v[-1], [0.0, 0.0, h * 0.3 / inertia], rtol=1e-9, atol=1e-12)
    given = lw.rollout(
        still,
        still.neutral(),
        tau=np.array([0.0, 0.0, 0.8]),
        parameters={"friction": [0.5, 0.5, 0.7]},
        **options,
    )
    np.testing.assert_allclose(given.v[-1], gone.v[-1] / 3.0, rtol=1e-9, atol=1e-12)
