"""Run-time parameters: one kernel for many variants equals a kernel made for each variant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import N, bias, mass, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.codegen.scalar import parameters
from linkwise.errors import ExpressionError, ModelError, UnknownNameError

FORWARD = mass.inv @ (tau - bias)
INVERSE = mass @ vdot + bias


def states(mech, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([mech.random(rng) for _ in range(count)])
    return q, rng.standard_normal((count, mech.nv)), rng.standard_normal((count, mech.nv))


def variant(mech, factor, gravity):
    """Other masses and another planet."""
    bodies = tuple(
        replace(b, inertia=b.inertia.scaled(factor + 0.1 * k)) for k, b in enumerate(mech.bodies)
    )
    return replace(mech, bodies=bodies, gravity=gravity)


@pytest.mark.few(1)
@pytest.mark.parametrize("expr", [FORWARD, INVERSE, mass, mass.inv], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_of_variants_on_one_kernel(expr, seed):
    mech = lw.models.random_tree(6, seed)
    names = ("inertia", "gravity") if expr in (FORWARD, INVERSE) else ("inertia",)
    kernel = lw.compile(expr, mech, parameters=names)
    assert kernel.arguments[-len(names) :] == names
    rng = np.random.default_rng(seed)
    variants = [variant(mech, rng.uniform(0.5, 3), rng.standard_normal(3)) for _ in range(11)]
    q, v, force = states(mech, 11)
    arrays = {"q": q, "v": v, "tau": force, "vdot": force}
    for name in names:
        arrays[name] = np.array([parameters.nominal(x, name) for x in variants])
    result = kernel(**{name: arrays[name] for name in kernel.arguments})
    for i, other in enumerate(variants):
        values = {"tau": force[i], "vdot": force[i]}
        expected = Dense(other, q[i], v[i], values=values)(expr)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result[i] / scale, expected / scale, atol=1e-9)
    # Parameters without the batch axis serve all states.
    shared = {**arrays, **{name: kernel.nominal(name) for name in names}}
    result = kernel(**{name: shared[name] for name in kernel.arguments})
    plain = lw.compile(expr, mech)
    expected = plain(**{name: shared[name] for name in plain.arguments})
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_a_payload_is_a_node_with_inertia():
    mech = lw.models.seven_dof_arm()
    load = lw.SpatialInertia.from_com(2.3, (0.02, -0.01, 0.09), (0.011, 0.012, 0.007))
    node = mech.node("flange") if "flange" in mech.node_index else mech.nodes[-1]
    b_nodes = tuple(replace(n, inertia=load) if n.name == node.name else n for n in mech.nodes)
    carrying = replace(mech, nodes=b_nodes)
    name = f"payload:{node.name}"
    kernel, plain = lw.compile(FORWARD, mech, parameters=[name]), lw.compile(FORWARD, carrying)
    q, v, force = states(mech, 9)
    ten = parameters.numbers(load)
    np.testing.assert_allclose(kernel(q, v, force, ten), plain(q, v, force), rtol=1e-9, atol=1e-9)
    empty = kernel(q, v, force, np.zeros(10))
    np.testing.assert_allclose(empty, lw.compile(FORWARD, mech)(q, v, force), rtol=1e-9, atol=1e-9)
    alone = lw.compile(FORWARD, mech, parameters="payload", nodes=[node.name])
    np.testing.assert_allclose(alone(q, v, force, ten), plain(q, v, force), rtol=1e-9, atol=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_locked_hinges_at_run_time_equal_a_locked_mechanism(seed):
    """Some hinges held: the free ones move as in a mechanism in which the others are locked."""
    mech = lw.models.random_tree(7, seed)
    kernel = lw.compile(FORWARD, mech, parameters=["locked"])
    q, v, force = states(mech, 1, seed)
    rng = np.random.default_rng(seed)
    held_bodies = [k for k in range(mech.n_bodies) if rng.random() < 0.4 and k > 0]
    held = np.zeros(mech.nv)
    for k in held_bodies:
        held[mech.v_start[k] : mech.v_start[k + 1]] = 1.0
    v = np.where(held, 0.0, v)
    result = kernel(q[0], v[0], force[0], held)
    assert (result[held == 1.0] == 0.0).all()
    # The equations of the free hinges alone: 𝓜_ff v̇_f = (τ - bias)_f.
    dense = Dense(mech, q[0], v[0], values={"tau": force[0]})
    free = held == 0.0
    expected = np.linalg.solve(dense(mass)[np.ix_(free, free)], dense(tau - bias)[free])
    np.testing.assert_allclose(
        result[free], expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max()
    )
    all_free = kernel(q[0], v[0], force[0], np.zeros(mech.nv))
    plain = lw.compile(FORWARD, mech)(q[0], v[0], force[0])
    np.testing.assert_allclose(all_free, plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())


def test_single_directions_of_a_hinge_can_be_held():
    mech = lw.models.free_flyer()
    kernel = lw.compile(FORWARD, mech, parameters=["locked"])
    q, v, force = (x[0] for x in states(mech, 1))
    held = np.zeros(mech.nv)
    held[[1, 4, 5]] = 1.0  # of the base: one turn, two shifts
    v = np.where(held, 0.0, v)
    result = kernel(q, v, force, held)
    dense, free = Dense(mech, q, v, values={"tau": force}), held == 0.0
    expected = np.linalg.solve(dense(mass)[np.ix_(free, free)], dense(tau - bias)[free])
    np.testing.assert_allclose(result[free], expected, rtol=1e-8)
    assert (result[~free] == 0.0).all()


@pytest.mark.parametrize("rolled", [False, True])
def test_a_hinge_that_feels_one_kilogram_can_be_held(rolled):
    """D = 1 in every state: the inverse of one is one only while the hinge is free."""
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    builder = lw.Builder("slider").body("arm", hinge=lw.hinges.Pin((0, 0, 1)), inertia=box)
    mech = builder.body("slider", "arm", lw.hinges.Prismatic((1, 0, 0)), inertia=box).build()
    kernel = lw.compile(FORWARD, mech, parameters=["locked"], rolled=rolled)
    rest, force = np.zeros(2), np.ones(2)
    inertia = lw.mass_matrix(mech, rest)[0, 0]
    assert kernel(rest, rest, force, locked=[0.0, 0.0])[1] == pytest.approx(1.0)
    held = kernel(rest, rest, force, locked=[0.0, 1.0])
    np.testing.assert_allclose(held, [1.0 / inertia, 0.0], rtol=1e-12)


def test_armature_as_a_parameter():
    mech = lw.models.seven_dof_arm()
    kernel = lw.compile(mass.inv @ (tau - bias), mech, parameters=["armature"])
    q, v, force = (x[0] for x in states(mech, 1))
    rotors = np.linspace(0.1, 0.7, 7)
    dense = Dense(mech, q, v, values={"tau": force})
    expected = np.linalg.solve(dense(mass - N) + np.diag(rotors), dense(tau - bias))
    np.testing.assert_allclose(kernel(q, v, force, rotors), expected, rtol=1e-10)


def test_inertia_that_no_body_can_have_is_trouble():
    mech = lw.models.seven_dof_arm()
    kernel = lw.compile(FORWARD, mech, parameters=["inertia"])
    q, v, force = states(mech, 3)
    ten = np.repeat(kernel.nominal("inertia")[None], 3, axis=0)
    ten[1] *= -1.0
    codes = np.zeros(3, np.int32)
    kernel(q, v, force, ten, status=codes)
    assert codes[0] == codes[2] == 0
    assert "is singular" in kernel.describe(codes[1])


def test_parameters_that_mean_nothing_are_refused():
    mech = lw.models.seven_dof_arm()
    with pytest.raises(UnknownNameError, match="no parameter called 'weight'"):
        lw.compile(FORWARD, mech, parameters=["weight"])
    with pytest.raises(ExpressionError, match=r"'gravity', but .* does not depend on it"):
        lw.compile(mass, mech, parameters=["gravity"])
    with pytest.raises(ExpressionError, match="part of `mass`, and N by itself"):
        lw.compile(bias, mech, parameters=["armature"])
    with pytest.raises(ExpressionError, match="named twice"):
        lw.compile(FORWARD, mech, parameters=["gravity", "gravity"])
    with pytest.raises(UnknownNameError, match="no node or body called 'nose'"):
        lw.compile(FORWARD, mech, parameters=["payload:nose"])
    with pytest.raises(ExpressionError, match="Name one: 'payload:NODE'"):
        lw.compile(FORWARD, lw.models.quadruped(), parameters=["payload"])
    with pytest.raises(ModelError, match="more than ten numbers"):
        parameters.numbers(mech.inertias)
