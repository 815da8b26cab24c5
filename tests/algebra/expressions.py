"""Random well-typed expressions: a walk over the spaces, with sums, adjoints and inverses."""

from __future__ import annotations

import numpy as np

from linkwise.algebra import (
    BODY,
    INBOARD,
    JOINT,
    NODE,
    ONE,
    B,
    D,
    Delta_phi,
    Delta_psi,
    E_phi,
    E_psi,
    Expr,
    G,
    H,
    I,
    J,
    K,
    L,
    M,
    N,
    Omega,
    P,
    P_plus,
    Phi,
    Pi,
    Pi_bar,
    Psi,
    R,
    S,
    Space,
    Upsilon,
    V,
    Xi,
    a,
    b,
    bias,
    f,
    mass,
    memoryless,
    named,
    phi,
    phi_tilde,
    psi,
    psi_tilde,
    shift,
    tau,
    v,
    vdot,
    vector,
)
from linkwise.algebra.expr import product, total
from linkwise.algebra.family import resolvent, riccati

# Operators of a user, besides those of the mechanism.
OWN = memoryless("Q", BODY, BODY, definite=True)
OWN_GAIN = memoryless("C", JOINT, BODY)
OWN_SHIFT = shift("F")
OWN_VECTOR = vector("u", BODY)
OWN_NAMED = named("N_q", H @ phi @ OWN @ phi.T @ H.T)

# The articulated-body quantities of the bare tree, without armature at the hinges.
_bare = riccati(E_phi, M, H)
UNARMED: tuple[Expr, ...] = (
    *(_bare.P, _bare.D, _bare.G, _bare.K, _bare.Pi_bar, _bare.E_psi, _bare.psi),
    *(_bare.whitening, _bare.coloring, _bare.Upsilon),
)

LETTERS: tuple[Expr, ...] = (
    *(E_phi, H, M, B, phi, phi_tilde, R, P, P_plus, D, G, K, Pi, Pi_bar, E_psi, psi, psi_tilde),
    *(Upsilon, Xi, J, mass, Omega, S, Delta_phi, Delta_psi, L, Phi, Psi),
    *(N, (mass + N), *UNARMED),
    *(OWN, OWN_GAIN, OWN_SHIFT, resolvent(OWN_SHIFT), OWN_NAMED),
)
INVERSES: tuple[Expr, ...] = (
    *(M.inv, P.inv, D.inv, R.inv, OWN.inv, phi.inv, psi.inv, mass.inv, OWN_NAMED.inv),
    *((mass + N).inv, (H @ phi @ M @ phi.T @ H.T + N).inv),
    *((I - E_phi).inv, (I - E_psi).inv, (I - OWN_SHIFT).inv, (phi @ M).inv),
    *((I + H @ phi @ K).inv, (I - H @ psi @ K).inv, (H @ phi @ M @ phi.T @ H.T).inv),
    *((I + B.T @ M @ B).inv, (I + J @ mass.inv @ J.T).inv, (M @ phi.T @ psi).inv),
)
VECTORS: tuple[Expr, ...] = (tau, v, vdot, a, b, f, bias, V, OWN_VECTOR)

SPACES = (JOINT, BODY, NODE, INBOARD)


def _table() -> dict[Space, list[Expr]]:
    """The operators that give vectors of each space."""
    result: dict[Space, list[Expr]] = {space: [] for space in (*SPACES, ONE)}
    for letter in (*LETTERS, *INVERSES, *VECTORS):
        for one in dict.fromkeys((letter, letter.T)):
            result[one.range].append(one)
    return result


TABLE = _table()


def random_expression(rng: np.random.Generator, factors: int = 12, *, sums: int = 4) -> Expr:
    """A product of up to that many factors, some of them sums of shorter products.

    Args:
        rng: Where it is drawn from.
        factors: The most factors of a product.
        sums: The most sums in it: the number of words grows exponentially with it.
    """
    space = SPACES[rng.integers(len(SPACES))]
    expr = _word(rng, space, int(rng.integers(1, factors + 1)))
    for _ in range(int(rng.integers(sums + 1))):
        expr = _with_sum(rng, expr)
    if rng.random() < 0.3 and expr.domain in SPACES:
        expr = expr @ _to_vector(rng, expr.domain)
    return expr if rng.random() < 0.7 else expr.T


def _word(rng: np.random.Generator, space: Space, length: int) -> Expr:
    word = list[Expr]()
    for _ in range(length):
        options = TABLE[space]
        if space is not ONE and rng.random() < 0.85:  # a vector ends or splits a word
            options = [o for o in options if o.domain is not ONE]
        word.append(options[rng.integers(len(options))])
        space = word[-1].domain
        if space is ONE and rng.random() < 0.8:
            break
    return product(word)


def _between(rng: np.random.Generator, left: Space, right: Space) -> Expr:
    """A short product from one space to another."""
    for _ in range(1000):
        expr = _word(rng, left, int(rng.integers(1, 5)))
        if expr.domain is right:
            return expr
    raise AssertionError(f"no way from {right} to {left}")


def _to_vector(rng: np.random.Generator, space: Space) -> Expr:
    return _between(rng, space, ONE)


def _with_sum(rng: np.random.Generator, expr: Expr) -> Expr:
    """One factor, or the whole, replaced by a sum it is a term of."""
    factors = list(getattr(expr, "factors", (expr,)))
    i = int(rng.integers(len(factors)))
    count = int(rng.integers(1, 3))
    others = [_between(rng, factors[i].range, factors[i].domain) for _ in range(count)]
    numbers = rng.choice([-2.0, -1.0, -0.5, 1.0, 1.0, 1.0, 3.0], count + 1)
    terms = list(zip(numbers.tolist(), [factors[i], *others], strict=True))
    if factors[i].range is factors[i].domain and rng.random() < 0.3:
        terms.append((1.0, I))
    factors[i] = total(terms)
    return product(factors)
