"""Derivatives in singular states: an error for one state; in a batch a code and NaN for its row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vector
from linkwise.codegen.scalar import status
from linkwise.errors import SingularHingeError, SingularTaskError, TroubleWarning

FORWARD = mass.inv @ (tau - bias)


def locked_gimbal():
    """A gimbal whose first and third axes are in line."""
    box = lw.SpatialInertia.solid_box(2.0, (0.1, 0.2, 0.3))
    builder = lw.Builder("gimbal").body("rotor", hinge=lw.hinges.Gimbal(), inertia=box)
    return builder.build(), np.array([0.3, np.pi / 2, 0.2])


def massless_wrist():
    """Two axes in line, with bodies without mass between them."""
    box = lw.SpatialInertia.solid_box(2.0, (0.1, 0.2, 0.3))
    builder = lw.Builder("wrist").body("arm", hinge=lw.hinges.Pin(), inertia=box)
    builder.body("roll", "arm", lw.hinges.Pin())
    builder.body("pitch", "roll", lw.hinges.Pin((0, 1, 0)))
    builder.body("hand", "pitch", lw.hinges.Pin(), inertia=box)
    return builder.build(), np.array([0.1, 0.2, 0.0, 0.4])


DERIVATIVES: dict[str, Callable[[lw.Mechanism], object]] = {
    "along": lambda mech: lw.compile(lw.jvp(FORWARD, "q", "v", "tau"), mech),
    "along, by name": lambda mech: lw.compile(lw.jvp("forward_dynamics", "q"), mech),
    "gradient": lambda mech: lw.compile(lw.vjp(FORWARD, "q", "v", "tau"), mech),
    "gradient, raw": lambda mech: lw.compile(lw.vjp(FORWARD, "q", raw_q=True), mech),
    "Jacobian": lambda mech: lw.compile(lw.differentiate(FORWARD, "q"), mech),
    "second": lambda mech: lw.compile(
        lw.differentiate(lw.differentiate(FORWARD, "v") @ vector("dv", tau.range), "q"), mech
    ),
}


def state(mech, q):
    rng = np.random.default_rng(0)
    names = ("v", "tau", "dq", "dv", "dtau", "weight")
    return {"q": q} | dict(zip(names, rng.standard_normal((6, mech.nv)), strict=True))


def flat(result):
    parts = result.values() if isinstance(result, dict) else [result]
    return np.concatenate([np.reshape(x, (len(x), -1)) for x in parts], axis=1)


@pytest.mark.parametrize("make", [locked_gimbal, massless_wrist])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_forward_dynamics(name, make):
    mech, q = make()
    kernel, given = DERIVATIVES[name](mech), state(mech, q)
    with pytest.raises(SingularHingeError, match="singular"):
        kernel(**{n: given[n] for n in kernel.arguments})
    batch = {n: np.stack([x, x, x]) for n, x in given.items()}
    batch["q"] = q + np.array([0.3, 0.0, 0.5])[:, None]
    codes = np.zeros(3, np.int32)
    result = flat(kernel(**{n: batch[n] for n in kernel.arguments}, status=codes))
    assert codes[0] == codes[2] == 0 != codes[1]
    assert np.isnan(result[1]).all()
    for i in (0, 2):
        one = kernel(**{n: batch[n][i] for n in kernel.arguments})
        alone = flat({k: x[None] for k, x in one.items()} if isinstance(one, dict) else one[None])
        assert np.abs(alone).max() > 1e-3
        np.testing.assert_allclose(result[i], alone[0], rtol=1e-9, atol=1e-9 * np.abs(alone).max())
    with pytest.warns(TroubleWarning, match="1 of 3 states"):
        kernel(**{n: batch[n] for n in kernel.arguments})


@pytest.mark.parametrize("make", [locked_gimbal, massless_wrist])
@pytest.mark.parametrize("integrator", ["rk4", "implicit", "variational"])
def test_gradients_of_rollouts(integrator, make):
    mech, q = make()
    starts = np.stack([q + 0.3, q])
    with pytest.warns(TroubleWarning, match="1 of 2 motions"):
        runs = lw.rollout(mech, starts, duration=3e-3, step=1e-3, integrator=integrator)
    slopes = runs.gradient(q=np.ones_like(runs.q))
    assert slopes.status[0] == 0 != slopes.status[1]
    assert np.isfinite(slopes.q[0]).all() and np.isnan(slopes.q[1]).all()
    alone = lw.rollout(mech, starts[0], duration=3e-3, step=1e-3, integrator=integrator)
    np.testing.assert_allclose(slopes.q[0], alone.gradient(q=np.ones_like(alone.q)).q, rtol=1e-9)


@pytest.mark.parametrize("kind", ["position", "orientation", "pose"])
def test_singular_tasks(kind):
    """A straight arm cannot move its hand along itself."""
    arm = lw.models.seven_dof_arm()
    law = lw.control_law(arm, getattr(lw.Task, kind)("hand"), kp=4.0, kv=4.0)
    sizes = dict(law.kernel.signature.inputs)
    given = {n: np.zeros(size) for n, size in sizes.items()} | {"q": arm.neutral()}
    given |= {"kp": np.full(sizes["kp"], 4.0), "kv": np.full(sizes["kv"], 4.0)}
    with pytest.raises(SingularTaskError):
        law.kernel(**given)
    gradient = lw.compile(lw.vjp(law, "q"), arm)
    given["weight"] = np.ones(arm.nv)
    with pytest.raises(SingularHingeError, match="singular"):
        gradient(**given)
    codes = np.zeros(2, np.int32)
    q = np.stack([arm.neutral(), arm.random(seed=1)])
    slopes = gradient(**{**given, "q": q}, status=codes)["q"]
    assert codes.tolist() == [status.MATRIX, 0]
    assert np.isnan(slopes[0]).all() and np.isfinite(slopes[1]).all()
