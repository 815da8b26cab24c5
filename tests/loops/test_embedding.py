"""Constraint embedding against the whole system solved densely; kernels and the interpreter.

Tolerances are relative to the largest entry. Dense references solve a system with condition up to
1e6 here, so that 1e-9 leaves room for them; any term left out shows up at 1e-3 or more.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, vdot
from linkwise.dynamics.kernels import kernel
from linkwise.errors import RankWarning
from linkwise.spatial.array import Array
from tests import cases as shared
from tests.loops import embedding_cases as cases
from tests.loops.embedding_cases import near, reference
from tests.loops.random_loops import KINDS, looped

close = partial(shared.close, bound="embedding", least=1.0)

CASES: dict[str, Callable[[], lw.Mechanism]] = {
    "coupled tree": lambda: cases.coupled_tree(1, 5),
    "four-bars": lambda: cases.four_bar_chain(2, 0.3),
    "parallelogram": cases.parallelogram_arm,
    "differential": cases.differential_wrist,
}
"""Compiled in every run; `test_every_quantity` has more."""

MORE: dict[str, Callable[[], lw.Mechanism]] = {
    **CASES,
    "geared chain": lambda: cases.geared_chain(3),
    "geared four-bar": cases.geared_four_bar,
    "universal loop": cases.universal_loop,
    "stewart": lw.models.stewart,
    **{f"coupled tree {i}": lambda i=i: cases.coupled_tree(i, 7) for i in range(2, 8)},
    "four-bars in a plane": lambda: cases.four_bar_chain(3),
    "delta": lw.models.delta,
}


@cache
def embedded(name: str) -> lw.loops.Embedded:
    return lw.loops.embed(MORE[name]())


def state(e: lw.loops.Embedded, seed: int) -> tuple[Array, Array, Array]:
    """q, u and τ of all hinges."""
    rng = np.random.default_rng(seed)
    return near(e.mech, seed), rng.standard_normal(e.nv), rng.standard_normal(e.mech.nv)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_forward_dynamics_is_that_of_the_constrained_mechanism(name: str) -> None:
    e = embedded(name)
    for seed in (1, 2):
        q, u, force = state(e, seed)
        ref = reference(e.mech, q, e.independent, u, force)
        close(lw.loops.full_velocity(e, q, u), ref.X @ u)
        udot = lw.forward_dynamics(e, q, u, lw.loops.independent_force(e, q, force))
        close(lw.loops.full_acceleration(e, q, u, udot), ref.vdot)


@pytest.mark.parametrize("name", ["geared four-bar", "universal loop", "differential"])
def test_interpreter_has_the_reduced_matrices(name: str) -> None:
    """No compiler: mass_r = 𝒳* 𝓜 𝒳, C_r = 𝒳* (𝓜 𝔵 + C), J_r = J 𝒳."""
    e = embedded(name)
    q, u, force = state(e, 3)
    ref = reference(e.mech, q, e.independent, u, force)
    close(lw.compile(mass, e, target="numpy")(q), ref.mass)
    close(lw.compile(bias, e, target="numpy")(q, u), ref.bias)
    node = e.mech.nodes[-1].name if e.mech.nodes else e.mech.bodies[-1].name
    result = lw.compile(J, e, nodes=(node,), target="numpy")(q)
    close(result, lw.jacobian(e.mech, q, node) @ ref.X)
    solved = lw.compile(mass.inv @ (tau - bias), e, target="numpy")(q, u, ref.X.T @ force)
    close(solved, ref.vdot[e.independent])


@pytest.mark.few(1, 10)
@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_every_quantity(name: str) -> None:
    e = embedded(name)
    m, (q, u, force) = e.mech, state(e, 4)
    ref = reference(m, q, e.independent, u, force)
    v, reduced = ref.X @ u, ref.X.T @ force
    node = m.nodes[-1].name if m.nodes else m.bodies[-1].name
    J_r = lw.jacobian(m, q, node) @ ref.X
    close(lw.mass_matrix(e, q), ref.mass)
    close(lw.mass_matrix_inverse(e, q) @ ref.mass, np.eye(e.nv))
    close(lw.dynamics.mass_matrix_inverse_product(e, q, u), np.linalg.solve(ref.mass, u))
    close(lw.bias_force(e, q, u), ref.bias)
    close(lw.gravity_force(e, q), ref.X.T @ lw.gravity_force(m, q))
    close(lw.loops.independent_force(e, q, force), reduced)
    udot = lw.forward_dynamics(e, q, u, reduced)
    close(lw.loops.full_acceleration(e, q, u, udot), ref.vdot)
    close(lw.inverse_dynamics(e, q, u, udot), reduced)
    close(lw.jacobian(e, q, node), J_r)
    close(lw.node_velocity(e, q, u, node), lw.node_velocity(m, q, v, node))
    close(lw.dynamics.kinetic_energy(e, q, u), lw.dynamics.kinetic_energy(m, q, v))
    close(lw.dynamics.potential_energy(e, q), lw.dynamics.potential_energy(m, q))
    inverse = lw.dynamics.operational_inertia_inverse(e, q, node)
    close(inverse, J_r @ np.linalg.solve(ref.mass, J_r.T))
    f = np.arange(1.0, 7.0)
    pushed = lw.forward_dynamics(e, q, u, reduced, forces={node: f})
    close(pushed, np.linalg.solve(ref.mass, reduced - ref.bias + J_r.T @ f))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3, 6, 13, 16, 17, 20, 24])
def test_random_loops(seed: int) -> None:
    """Loops between any two bodies, of any kind, sharing hinges; some leave a group no freedom."""
    rng = np.random.default_rng(seed)
    kinds = tuple(rng.choice([k for k in KINDS if k != "screws"], int(rng.integers(1, 4))).tolist())
    mech, q = looped(seed, kinds, n=7, ground=bool(seed % 2))
    e = lw.loops.embed(mech, at=q)
    u, force = rng.standard_normal(e.nv), rng.standard_normal(mech.nv)
    ref = reference(mech, q, e.independent, u, force)
    result = lw.compile(mass.inv @ (tau - bias), e, target="numpy")(q, u, ref.X.T @ force)
    close(result, ref.vdot[e.independent])


def test_kernels_are_the_interpreter() -> None:
    """One of each kind of statement, with armature, loop, universal shifts and nodes."""
    e = embedded("parallelogram")
    q, u, force = state(e, 5)
    given = {"q": q, "v": u, "tau": lw.loops.independent_force(e, q, force), "vdot": u[::-1].copy()}
    exprs = (
        *(mass.inv, mass @ vdot + bias, mass.inv @ (tau - bias)),
        J @ mass.inv @ J.T,
    )
    for expr in exprs:
        k = lw.compile(expr, e, nodes=("hand",))
        plain = lw.compile(expr, e, nodes=("hand",), target="numpy", derive=False)
        close(
            k(*[given[x] for x in k.arguments]),
            plain(*[given[x] for x in plain.arguments]),
            bound=1e-11,
        )


def test_operational_inertia_is_felt_through_the_loop() -> None:
    e = embedded("parallelogram")
    q, _, _ = state(e, 6)
    ref = reference(e.mech, q, e.independent, np.zeros(e.nv), np.zeros(e.mech.nv))
    J_r = lw.jacobian(e.mech, q, "hand") @ ref.X
    with pytest.warns(RankWarning):  # four freedoms, six directions
        inertia = lw.operational_inertia(e, q, "hand")
    close(inertia, np.linalg.pinv(J_r @ np.linalg.solve(ref.mass, J_r.T), rcond=1e-9), bound=1e-7)


def test_batches_gravity_and_single_precision() -> None:
    e = embedded("differential")
    rows = [state(e, seed) for seed in range(5)]
    q, u, force = (np.stack([row[i] for row in rows]) for i in range(3))
    reduced = lw.loops.independent_force(e, q, force)
    udot = lw.forward_dynamics(e, q, u, reduced)
    assert udot.shape == (5, e.nv) and lw.loops.full_acceleration(e, q, u, udot).shape == (
        5,
        e.mech.nv,
    )
    one = lw.forward_dynamics(e, q[2], u[2], reduced[2])
    close(udot[2], one, bound=1e-13)
    expr = mass.inv @ (tau - bias)
    moon = lw.compile(expr, e, parameters=("gravity",))
    g = np.array([0.0, 0.0, -1.62])
    other = lw.loops.embed(e.mech.with_gravity(g))
    close(moon(q, u, reduced, g), lw.forward_dynamics(other, q, u, reduced))
    single = lw.compile(expr, e, dtype=np.float32)
    close(single(q, u, reduced), udot, bound=1e-4)


def test_energy_is_power() -> None:
    """d/dt of the energy is τ_r* u, by differences along the motion: no reference but mechanics."""
    e = embedded("four-bars")
    m, (q, u, force) = e.mech, state(e, 7)
    reduced = lw.loops.independent_force(e, q, force)
    h, udot = 1e-5, lw.forward_dynamics(e, q, u, reduced)
    energies = list[float]()
    for t in (-h, h):
        v = lw.loops.full_velocity(e, q, u) + 0.5 * t * lw.loops.full_acceleration(e, q, u, udot)
        at = cases.closed(m, m.integrate(q, v, t))
        energies.append(
            float(lw.dynamics.kinetic_energy(e, at, u + t * udot))
            + float(lw.dynamics.potential_energy(e, at))
        )
    rate = (energies[1] - energies[0]) / (2.0 * h)
    assert rate == pytest.approx(float(reduced @ u), abs=1e-6 * max(1.0, abs(energies[0])))


def test_a_tree_without_constraints_stays_itself(monkeypatch) -> None:
    m = lw.models.puma560()
    e = lw.loops.embed(m)
    q, v = m.random(0), m.random_velocity(0)
    assert e.nv == m.nv and e.n_bodies == m.n_bodies
    close(lw.forward_dynamics(e, q, v, v), lw.forward_dynamics(m, q, v, v), bound=1e-12)
    ours = kernel(e, "forward_dynamics").ops.total()
    # Aggregates keep their inertias: compared is the tree with those that it has.
    monkeypatch.setattr("linkwise.codegen.scalar.trace.may_regroup", lambda program: False)
    other = lw.compile(lw.dynamics.expression("forward_dynamics"), m, cache=False).ops.total()
    assert abs(ours - other) < 0.02 * other  # sums in another order


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (cases.four_bar_chain, (2, 3, 4)),
        pytest.param(cases.geared_chain, (4, 6, 8), marks=pytest.mark.slow),  # axes alternate
    ],
)
def test_operations_grow_with_the_number_of_units(
    build: Callable[[int], lw.Mechanism], counts: tuple[int, ...]
) -> None:
    """Each unit more costs the same."""
    expr = mass.inv @ (tau - bias)
    ops = [lw.compile(expr, lw.loops.embed(build(n)), target="numpy").ops.total() for n in counts]
    assert ops[2] - ops[1] == ops[1] - ops[0] > 0


def test_groups_are_as_small_as_they_can_be() -> None:
    e = lw.loops.embed(cases.parallelogram_arm())
    assert [x.name for x in e.bodies] == ["turntable", "upper + lever + forearm + rod", "wrist"]
    assert e.bodies[1].parent == 0 and list(e.parent) == [-1, 0, 1]
    assert e.velocity_names == ("turntable", "upper", "lever", "wrist")
    chosen = lw.loops.embed(cases.parallelogram_arm(), independent=["upper", "forearm"])
    assert chosen.velocity_names == ("turntable", "upper", "forearm", "wrist")
    full = lw.loops.embed(lw.models.stewart())
    assert full.n_bodies == 1 and full.nv == 6


def test_it_survives_a_pickle() -> None:
    e = embedded("differential")
    again = pickle.loads(pickle.dumps(e))
    q, u, force = state(e, 8)
    reduced = lw.loops.independent_force(e, q, force)
    close(
        lw.forward_dynamics(again, q, u, reduced), lw.forward_dynamics(e, q, u, reduced), bound=0.0
    )
