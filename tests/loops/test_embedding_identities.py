"""The identities of the algebra on trees of aggregate bodies, and their blocks from definitions.

Blocks are checked against explicit matrices of the mechanism itself (`algebra/dense.py`): with E_in
the steps inside aggregates and E_out those between them, E = E_in + E_out,

    φ_in = (I - E_in)⁻¹,   E_g = E_out φ_in,   H_g = 𝒳* H φ_in,   H_g φ_g = 𝒳* H φ

Tolerances: matrices have entries up to 1e2 and conditions up to 1e4, so 1e-10 of the largest.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    B,
    D,
    E_phi,
    E_psi,
    G,
    H,
    I as one,
    K,
    M,
    Omega,
    P,
    P_plus,
    R,
    a,
    b,
    mass,
    phi,
    psi,
    psi_tilde,
)
from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import phi_tilde
from linkwise.spatial.array import Array
from tests import cases as shared
from tests.loops import embedding_cases as cases
from tests.loops.embedding_cases import near, reference

close = partial(shared.close, bound="closed chains", least=1.0)

CASES = {"four-bars": lambda: cases.four_bar_chain(2, 0.3), "geared": cases.geared_four_bar}


@cache
def case(name: str) -> tuple[lw.loops.Embedded, Array, Array]:
    e = lw.loops.embed(CASES[name]())
    return e, near(e.mech, 1), np.random.default_rng(1).standard_normal(e.nv)


def value(name: str, expr: Expr, target: str = "numpy") -> Array:
    """As it is written, no identity used."""
    e, q, u = case(name)
    k = lw.compile(expr, e, target=target, derive=False)  # type: ignore[call-overload]
    given = {"q": q, "v": u}
    return k(*[given[x] for x in k.arguments])


@pytest.mark.parametrize("name", CASES)
def test_blocks_come_from_those_of_the_bodies(name: str) -> None:
    e, q, u = case(name)
    ref = reference(e.mech, q, e.independent, u, np.zeros(e.mech.nv))
    dense = Dense(e.mech, q, ref.X @ u, nodes=("hand",))
    group = np.repeat(e.group_of, 6)
    order = np.concatenate([np.arange(6) + 6 * k for x in e.bodies for k in x.bodies])
    E, same = dense(E_phi), group[:, None] == group[None, :]
    inside = np.linalg.inv(np.eye(len(E)) - np.where(same, E, 0.0))
    between = np.where(same, 0.0, E)
    close(value(name, E_phi), (between @ inside)[np.ix_(order, order)])
    close(value(name, H), (ref.X.T @ dense(H) @ inside)[:, order])
    close(value(name, M), dense(M)[np.ix_(order, order)])
    close(value(name, b), dense(b)[order])
    close(value(name, a), (inside.T @ (dense(a) + dense(H).T @ ref.x))[order])
    close(value(name, H @ phi), (ref.X.T @ dense(H) @ dense(phi))[:, order])
    k = lw.compile(B, e, nodes=("hand",), target="numpy")
    close(k(q), dense(B)[order])


IDENTITIES: dict[str, tuple[Expr, Expr]] = {
    "phi": (phi @ (one - E_phi), one + 0.0 * phi),
    "decomposition": (phi @ M @ phi.T, R + phi_tilde @ R + R @ phi_tilde.T),
    "articulated": (P, E_phi @ P_plus @ E_phi.T + M),
    "gain": (G @ D, P @ H.T),
    "shifted": (K, E_phi @ G),
    "psi": (psi @ (one - E_psi), one + 0.0 * psi),
    "resolvents": (psi @ (one - E_phi + K @ H), one + 0.0 * psi),
    "mixed": (psi @ M @ phi.T, P + psi_tilde @ P + P @ phi_tilde.T),
    "factors": (mass, (one + H @ phi @ K) @ D @ (one + H @ phi @ K).T),
    "inverse factor": ((one + H @ phi @ K) @ (one - H @ psi @ K), one + 0.0 * mass),
    "through": ((one - H @ psi @ K) @ H @ phi, H @ psi),
    "kernel": (Omega @ M, phi.T @ H.T @ mass.inv @ H @ phi @ M),
}


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identities_hold(identity: str) -> None:
    left, right = IDENTITIES[identity]
    for name in CASES:
        close(value(name, left), value(name, right), bound=1e-9)


def test_articulated_inertia_of_a_kernel_is_multiplied_out_where_asked_for() -> None:
    for expr in (P, P_plus, K, psi @ H.T):
        close(value("four-bars", expr, "cpu"), value("four-bars", expr))
