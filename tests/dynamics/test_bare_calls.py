"""Later calls of a function go straight to machine code, and give what the first one gave."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
import pytest

import linkwise as lw
from linkwise.bare_call import begins_bare
from linkwise.errors import ModelError, ShapeError
from tests.cases import state, tree
from tests.effort import calls

D = lw.dynamics
CALLS = {
    "integrate": lambda m, q, v, x: lw.integrate(m, q, v),
    "difference": lambda m, q, v, x: lw.difference(m, q, q.copy()),
    "pose": lambda m, q, v, x: lw.forward_kinematics(m, q, "tool"),
    "jacobian": lambda m, q, v, x: lw.jacobian(m, q, "tool"),
    "jacobian, world": lambda m, q, v, x: lw.jacobian(m, q, "tool", frame="world"),
    "jacobian, about": lambda m, q, v, x: lw.jacobian(m, q, "tool", about="post"),
    "jacobian of two": lambda m, q, v, x: lw.jacobian(m, q, ("tool", "post")),
    "node_velocity": lambda m, q, v, x: lw.node_velocity(m, q, v, "tool"),
    "node_velocity, post": lambda m, q, v, x: lw.node_velocity(m, q, v, "tool", frame="post"),
    "jacobian_bias": lambda m, q, v, x: D.jacobian_bias(m, q, v, "tool"),
    "jacobian_bias, world": lambda m, q, v, x: D.jacobian_bias(m, q, v, "tool", frame="world"),
    "jacobian_dot": lambda m, q, v, x: lw.jacobian_dot(m, q, v, "tool"),
    "center_of_mass": lambda m, q, v, x: lw.center_of_mass(m, q),
    "velocity of it": lambda m, q, v, x: lw.center_of_mass(m, q, v, what="velocity"),
    "momentum": lambda m, q, v, x: lw.momentum(m, q, v),
    "momentum about the world": lambda m, q, v, x: lw.momentum(m, q, v, about="world"),
    "momentum_matrix": lambda m, q, v, x: lw.momentum(m, q, what="matrix"),
    "centroidal_inertia": lambda m, q, v, x: D.centroidal_inertia(m, q),
    "kinetic_energy": lambda m, q, v, x: D.kinetic_energy(m, q, v),
    "potential_energy": lambda m, q, v, x: D.potential_energy(m, q),
    "energy": lambda m, q, v, x: lw.energy(m, q, v),
    "mass_matrix": lambda m, q, v, x: lw.mass_matrix(m, q),
    "mass_matrix_inverse": lambda m, q, v, x: lw.mass_matrix_inverse(m, q),
    "its product": lambda m, q, v, x: D.mass_matrix_inverse_product(m, q, x),
    "composite_inertias": lambda m, q, v, x: D.composite_inertias(m, q),
    "articulated_inertias": lambda m, q, v, x: D.articulated_inertias(m, q),
    "inboard": lambda m, q, v, x: D.articulated_inertias(m, q, inboard=True),
    "bias_force": lambda m, q, v, x: lw.bias_force(m, q, v),
    "gravity_force": lambda m, q, v, x: lw.gravity_force(m, q),
    "coriolis_force": lambda m, q, v, x: D.coriolis_force(m, q, v),
    "coriolis_matrix": lambda m, q, v, x: lw.coriolis_matrix(m, q, v),
    "coriolis_product": lambda m, q, v, x: D.coriolis_product(m, q, v, x),
    "passive_force": lambda m, q, v, x: lw.passive_force(m, q, v),
    "inverse_dynamics": lambda m, q, v, x: lw.inverse_dynamics(m, q, v, x),
    "forward_dynamics": lambda m, q, v, x: lw.forward_dynamics(m, q, v, x),
    "FD1": lambda m, q, v, x: lw.forward_dynamics(m, q, v, x, method="FD1"),
    "open": lambda m, q, v, x: lw.forward_dynamics(m, q, v, x, loops="open"),
    "operational_inertia_inverse": lambda m, q, v, x: D.operational_inertia_inverse(m, q, "tool"),
    "its derivatives": lambda m, q, v, x: lw.forward_dynamics_derivatives(m, q, v, x),
    "derivatives": lambda m, q, v, x: lw.inverse_dynamics_derivatives(m, q, v, x),
    "regressor": lambda m, q, v, x: lw.regressor(m, q, v, x),
}
"""Those with several choices stand side by side, so that none answers for another."""

MOST = 5
"""Python functions of a later call: that of the table, the function, and three to make a result."""


def arrays(result: Any) -> list[Any]:
    """The numbers of a result."""
    if isinstance(result, np.ndarray | float):
        return [result]
    if isinstance(result, tuple):
        return list(result)
    return [getattr(result, name) for name in result.__dataclass_fields__]


@pytest.mark.parametrize("name", ["floating", "pins"])
def test_later_calls_give_the_same_numbers(name: str) -> None:
    mech = tree(name).with_gravity((0.1, 0.0, -9.0))  # without kernels yet
    states = [state(mech, seed) for seed in (0, 1)]
    first = {n: [call(mech, *s) for s in states] for n, call in CALLS.items()}
    for n, call in CALLS.items():
        for k, (q, v, x) in enumerate(states):
            kind, listed = type(first[n][k]), call(mech, q.tolist(), v.tolist(), x.tolist())
            for again in (call(mech, q, v, x), listed):
                assert type(again) is kind
                for one, other in zip(arrays(first[n][k]), arrays(again), strict=True):
                    np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13, err_msg=n)


@pytest.mark.parametrize("name", CALLS)
def test_later_calls_are_straight(name: str) -> None:
    mech = tree("floating")
    q, v, x = state(mech)
    CALLS[name](mech, q, v, x)
    assert calls(lambda: CALLS[name](mech, q, v, x)) - calls(lambda: None) <= MOST


def test_what_is_wrong_is_still_reported() -> None:
    mech = tree("pins")
    q, v, x = state(mech)
    lw.forward_dynamics(mech, q, v, x)
    lw.jacobian(mech, q, "tool")
    for wrong, kind, words in (
        (lambda: lw.forward_dynamics(mech, q[1:], v, x), ShapeError, "q has shape"),
        (lambda: lw.forward_dynamics(mech, q, v, np.nan * x), ModelError, "tau is not finite"),
        (lambda: lw.forward_dynamics(mech, q, v, x, loops="shut"), ModelError, "loops"),
        (lambda: lw.jacobian(mech, q, "hand"), ModelError, "hand"),
        (lambda: lw.jacobian(mech, q, "tool", about=3), ModelError, "about"),
        (lambda: lw.jacobian("pins", q, "tool"), ModelError, "mech is a str"),
        (lambda: lw.jacobian(mech, q), TypeError, r"jacobian\(\) missing .* 'node'"),
        (lambda: lw.forward_dynamics(mech, q, v, x, method=["FD1"]), ModelError, "method"),
    ):
        with pytest.raises(kind, match=words):
            wrong()


def test_batches_places_and_names_of_arguments() -> None:
    mech = tree("pins")
    q, v, x = state(mech)
    one = lw.inverse_dynamics(mech, q, v, x)
    out = np.empty(mech.nv)
    assert lw.inverse_dynamics(mech=mech, q=q, v=v, vdot=x, out=out) is out
    batch = lw.inverse_dynamics(mech, np.stack([q, q]), v, x)
    for again in (out, batch[0], batch[1], lw.inverse_dynamics(mech, vdot=x, v=v, q=q)):
        np.testing.assert_allclose(again, one, rtol=1e-13)


def test_loops_hold_in_later_calls() -> None:
    mech = lw.models.four_bar()
    q = lw.loops.project_position(mech, mech.neutral()).q
    v, tau = np.zeros(mech.nv), np.ones(mech.nv)
    held = lw.forward_dynamics(mech, q, v, tau)
    opened = lw.forward_dynamics(mech, q, v, tau, loops="open")
    assert np.abs(held - opened).max() > 1e-3
    for _ in range(2):
        assert np.array_equal(lw.forward_dynamics(mech, q, v, tau), held)
        assert np.array_equal(lw.forward_dynamics(mech, q, v, tau, loops="open"), opened)


def test_choices_and_defaults_of_a_function() -> None:
    made = list[Any]()

    @begins_bare("node", "kind")
    def speed(mech: Any, q: Any, v: Any = None, node: str = "a", *, kind: int = 2, **options: Any):
        made.append((q, v, node, kind, options))
        return 0.0

    class Thing:
        _memo: ClassVar[Any] = {"speed": {("b", 2): lambda *arrays: arrays}}

    assert speed(Thing(), 1, 2, "b") == (1, 2) and not made
    assert speed(Thing(), 1, node="b") == (1,) and not made
    assert speed(Thing(), 1, node="b", status=5) == speed(Thing(), 1, 3, kind=4) == 0.0
    assert made == [(1, None, "b", 2, {"status": 5}), (1, 3, "a", 4, {})]
    assert str(inspect.signature(speed)).endswith("kind: 'int' = 2, **options: 'Any')")
