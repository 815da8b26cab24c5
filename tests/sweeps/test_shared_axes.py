"""Other frames and other inertias, the same numbers over joints: graphs against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, M, b, bias, mass, phi, tau, v, vdot
from linkwise.algebra.dense import Dense
from linkwise.codegen.scalar.arithmetic import Constants, Nodes
from linkwise.codegen.scalar.trace import traced_run
from linkwise.dynamics.kernels import expression
from linkwise.model.hinges import Free, Helical, Pin, Prismatic, Universal
from linkwise.sweeps.bodies import bodies_of
from linkwise.sweeps.felt_inertia import felt_inertias, may_regroup
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.lower import lower
from linkwise.sweeps.program import distributed
from linkwise.sweeps.shared_axes import SharedAxes, may_share, shared_limbs

X, Y, Z = np.eye(3).tolist()
INVERSE = mass @ vdot + bias
EXPRESSIONS = {
    "mass": mass,
    "inverse": mass.inv,
    "bias": bias,
    "forward": mass.inv @ (tau - bias),
    "coriolis": expression("coriolis_matrix"),
    "by q": lw.differentiate(INVERSE, "q"),
    "by v": lw.differentiate(INVERSE, "v"),
}


def machine(base: object, *, outboard: bool) -> lw.Mechanism:
    """A tree of limbs with pins, slides, a screw and a hinge of two axes."""
    rng, build = np.random.default_rng(3), lw.Builder("limbs")
    hinges = (base, Pin(Z), Prismatic(X), Pin(Y), Universal(), Pin([0.0, 0.6, 0.8]), Helical(Z))
    for k, (hinge, parent) in enumerate(zip(hinges, (-1, 0, 1, 2, 2, 4, 0), strict=True)):
        inertia = lw.SpatialInertia.from_com(
            1.0 + rng.random(), rng.standard_normal(3), 1.0 + 0.3 * rng.random(3)
        )
        place, away = (
            lw.Pose.rpy(rng.standard_normal(3), rng.standard_normal(3)) for _ in range(2)
        )
        build.body(
            f"b{k}",
            "world" if parent < 0 else f"b{parent}",
            hinge,
            inboard=place,
            outboard=away if outboard and k % 2 else None,
            inertia=inertia,
            drive=lw.Drive(armature=0.2 if k else 0.0),
        )
    return build.build()


def value(traced, given):
    """The outputs of a graph, by walking through it."""
    graph, at = traced.graph, {}
    flat = np.concatenate([given[name] for name, _ in traced.inputs])
    one = {"neg": lambda x: -x, "inv": lambda x: 1.0 / x, "sqrt": np.sqrt}
    one |= {"sin": np.sin, "cos": np.cos}
    two = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    for node in graph.used(traced.outputs):
        op, i, j = graph.op[node], graph.a[node], graph.b[node]
        if op in ("const", "input"):
            at[node] = graph.value[node] if op == "const" else flat[i]
        else:
            at[node] = two[op](at[i], at[j]) if op in two else one[op](at[i])
    return np.array([at[node] for node in traced.outputs]).reshape(traced.shape)


@pytest.mark.few(6)
@pytest.mark.parametrize("outboard", [False, True])
@pytest.mark.parametrize("base", [Free(), Pin(Y)])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_frames_and_regrouped_inertias_keep_values(name, base, outboard):
    mech, rng = machine(base, outboard=outboard), np.random.default_rng(5)
    expr = EXPRESSIONS[name]
    given = {"q": mech.random(rng)}
    given |= {x: rng.standard_normal(mech.nv) for x in ("v", "tau", "vdot")}
    values = {"tau": given["tau"], "vdot": given["vdot"]}
    expected = Dense(mech, given["q"], given["v"], values=values)(expr)
    program = distributed(lower(lw.derive(expr).result))
    assert may_share(program) and may_regroup(program)
    bodies = bodies_of(mech, ())
    shared = [
        p >= 0 and body.hinge.nv == 1 for p, body in zip(mech.parent, mech.bodies, strict=True)
    ]
    limbs = SharedAxes(mech, bodies.nodes, bodies.node_body, shared)
    assert sum(shared) == 5 and (name in ("bias", "forward") or shared_limbs(program, bodies))
    for kind in (bodies, limbs):
        for inertias in (None, felt_inertias(mech)):
            numbers = Constants(mech, 8, inertias)
            arithmetic = Nodes(program, kind, (), 8, numbers)
            result = value(traced_run(Interpreter(program, kind, arithmetic), arithmetic), given)
            assert np.abs(result - expected).max() < 2e-13 * np.abs(expected).max()
            kind = (
                SharedAxes(mech, bodies.nodes, bodies.node_body, shared) if kind is limbs else kind
            )


@pytest.mark.parametrize(
    "expr",
    [H @ phi @ b, H @ phi @ M @ phi.T @ H.T @ v + H @ phi @ b, phi @ M @ phi.T @ H.T @ v],
)
def test_parts_of_the_bias_need_all_inertia(expr):
    assert not may_regroup(lower(expr))


def test_potential_energy_needs_all_inertia():
    assert not may_regroup(lower(expression("potential_energy")))
    assert may_regroup(lower(expression("kinetic_energy")))


def test_pins_keep_seven_numbers():
    mech = lw.models.puma560()
    for inertia, body in zip(felt_inertias(mech), mech.bodies, strict=True):
        z = int(np.argmax(np.abs(body.hinge.axis)))
        assert inertia.mass == inertia.h[z] == inertia.J[(z + 2) % 3, (z + 2) % 3] == 0.0
    assert sum(lw.compile(mass, mech).ops.values()) < 400  # 590 with all of it
