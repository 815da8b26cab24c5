"""Derivatives of expressions: against differences of the dense reference, on every hinge.

Differences are taken in extended precision (`long_dense.py`).
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, JOINT, H, I, J, M, V, a, b, bias, mass, phi, tau, v, vdot, vector
from linkwise.algebra.dense import Dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.differential_form import decomposed, tidied
from linkwise.algebra.differential_leaf import cross, swap
from linkwise.algebra.symbols import A_V, B_V, D, E_phi, a_g, f, phi_tilde
from tests.algebra.long_dense import LongDense, differences, integrate
from tests.algebra.trees import MOVING

STENCIL = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Central differences of order eight."""

x, u, w = vector("x", BODY), vector("u", JOINT), vector("w", JOINT)

INVERSE = mass @ vdot + bias
FORWARD = mass.inv @ (tau - bias)

EXPRESSIONS = {
    "V": V,
    "a": a,
    "b": b,
    "a_g": a_g,
    "E_phi": E_phi @ x,
    "E_phi*": E_phi.T @ x,
    "phi": phi @ x,
    "phi*": phi.T @ x,
    "phi_tilde": phi_tilde @ x,
    "H": H @ x,
    "H*": H.T @ u,
    "A_V": A_V @ u,
    "A_V*": A_V.T @ x,
    "B_V": B_V @ x,
    "B_V*": B_V.T @ x,
    "node velocity": J @ v,
    "force at a node": J.T @ f,
    "inverse dynamics": INVERSE,
    "forward dynamics": FORWARD,
    "kinetic energy": 0.5 * (v.T @ mass @ v),
    "difference": mass.inv @ tau - (I - H @ phi @ M @ H.T) @ tau,
}
OF_VELOCITY = (
    *("V", "a", "b", "node velocity", "inverse dynamics", "forward dynamics", "kinetic energy"),
    *("A_V", "A_V*", "B_V", "B_V*"),
)
TREES = {
    "branched": lw.models.random_tree(4, 5, hinges=MOVING, branching=0.7, mass_ratio=3.0),
    "every hinge": lw.models.random_tree(5, 3, mass_ratio=3.0),
    "floating": lw.models.random_tree(3, 2, hinges=MOVING, floating=True, mass_ratio=3.0),
}


class State:
    """A mechanism in a state, with values for all vectors."""

    def __init__(self, mech: lw.Mechanism) -> None:
        rng = np.random.default_rng(7)
        self.mech, self.nodes = mech, (mech.bodies[-1].name,)
        self.q, self.v = mech.random(rng), mech.random_velocity(rng)
        self.values = {
            **{name: rng.standard_normal(mech.nv) for name in ("tau", "vdot", "u", "w")},
            **{"x": rng.standard_normal(6 * mech.n_bodies), "f": rng.standard_normal(6)},
        }

    def dense(self, q=None, v=None, kind: type[Dense] = Dense) -> Dense:
        q, v = self.q if q is None else q, self.v if v is None else v
        return kind(self.mech, q, v, nodes=self.nodes, values=self.values)

    def at(self, expr):
        return self.dense().matrix(expr)

    def differences(self, exprs, wrt: str):
        """∂ of each vector, by central differences along each velocity."""
        columns = [self.along(exprs, wrt, e) for e in np.eye(self.mech.nv)]
        return [np.stack(part, axis=-1) for part in zip(*columns, strict=True)]

    def along(self, exprs, wrt: str, e, kind: type[Dense] = LongDense):
        """The derivatives of vectors along e (nv,)."""

        def moved(s) -> Dense:
            q = integrate(self.mech, self.q, s * e) if wrt == "q" else self.q
            return self.dense(q, self.v + s * e if wrt == "v" else self.v, kind)

        return differences(moved, exprs)


@pytest.mark.few(2)
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("wrt", ["q", "v"])
def test_derivatives_are_those_of_differences(tree, wrt):
    state, here = State(TREES[tree]), State(TREES[tree]).dense()
    every = state.differences(list(EXPRESSIONS.values()), wrt)
    for (name, expr), expected in zip(EXPRESSIONS.items(), every, strict=True):
        result, size = here.matrix(differentiate(expr, wrt)), np.abs(expected).max()
        if name not in ("H", "H*"):  # constant in most hinges
            assert (size > 1e-3) == (wrt == "q" or name in OF_VELOCITY), name
        assert np.abs(result - expected).max() <= 1e-12 * max(size, 1.0), name


@pytest.mark.few(1)
@pytest.mark.parametrize("tree", TREES)
def test_second_derivatives_are_those_of_differences(tree):
    """Leaves of derivatives are closed under differentiation, and mixed derivatives commute."""
    state, here = State(TREES[tree]), State(TREES[tree]).dense()
    way, first = state.values["u"], {x: differentiate(INVERSE, x) for x in ("q", "v")}
    for wrt in ("q", "v"):
        exprs = [e for A in first.values() for e in (A @ w, A.T @ w)]
        for expr, expected in zip(exprs, state.along(exprs, wrt, way), strict=True):
            result = here(differentiate(expr, wrt) @ u)
            assert np.abs(expected).max() > 1e-3
            assert np.abs(result - expected).max() <= 1e-12 * np.abs(expected).max(), (wrt, expr)
    mixed = here(differentiate(first["q"] @ u, "v") @ w)
    swapped = here(differentiate(first["v"] @ w, "q") @ u)
    assert np.abs(mixed - swapped).max() < 1e-12 * np.abs(mixed).max()


def test_second_derivatives_compile():
    tree = TREES["every hinge"]
    state = State(tree)
    given = {"q": state.q, "v": state.v, **state.values}
    for expr in (
        differentiate(differentiate(INVERSE, "q") @ w, "v") @ u,
        differentiate(differentiate(FORWARD, "q") @ w, "tau"),
    ):
        kernel, expected = lw.compile(expr, tree), state.dense()(expr)
        result = kernel(*(given[name] for name in kernel.arguments))
        assert np.abs(result - expected).max() < 1e-10 * np.abs(expected).max()


def test_other_variables():
    assert differentiate(INVERSE, "vdot") is mass
    assert differentiate(FORWARD, "tau") is mass.inv
    assert differentiate(FORWARD, tau) is mass.inv
    state = State(TREES["branched"])
    assert not state.at(differentiate(INVERSE, "tau")).any()
    assert np.abs(state.at(differentiate(u.T @ w, u)) - state.values["w"]).max() == 0.0


def test_the_transport_identity_holds():
    for tree in TREES.values():
        state = State(tree)
        ours, turn = cross(H.T @ v), cross(V)
        left = state.at(phi.T @ ours @ phi_tilde.T)
        assert np.abs(left).max() > 1e-2
        right = state.at(turn @ phi.T - phi.T @ turn)
        assert np.abs(left - right).max() < 1e-12 * np.abs(left).max()


@pytest.mark.parametrize("wrt", ["q", "v"])
def test_normal_form_and_decomposition_change_nothing(wrt):
    for tree in TREES.values():
        state, A = State(tree), differentiate(INVERSE, wrt)
        expected = state.at(A)
        for form in (tidied(A), decomposed(A), decomposed(-(mass.inv @ A)), lw.derive(A).result):
            factor = -state.at(mass.inv) if "𝓜" in str(form) else np.eye(tree.nv)
            error = np.abs(state.at(form) - factor @ expected).max()
            assert error < 1e-12 * np.abs(factor @ expected).max()


def test_cross_products():
    state = State(TREES["branched"])
    n = TREES["branched"].n_bodies
    X, Y = state.values["x"].reshape(n, 6), np.random.default_rng(3).standard_normal((n, 6))
    turned = (state.at(cross(x)) @ Y.ravel()).reshape(n, 6)
    expected = np.hstack(
        [np.cross(X[:, :3], Y[:, :3]), np.cross(X[:, 3:], Y[:, :3]) + np.cross(X[:, :3], Y[:, 3:])]
    )
    assert np.abs(turned - expected).max() < 1e-14
    # y ×* x = -(y×)* x, with the factors swapped
    swapped = (state.at(swap(x)) @ Y.ravel()).reshape(n, 6)
    expected = np.hstack(
        [np.cross(Y[:, :3], X[:, :3]) + np.cross(Y[:, 3:], X[:, 3:]), np.cross(Y[:, :3], X[:, 3:])]
    )
    assert np.abs(swapped - expected).max() < 1e-14


def test_kernels_sweeps_and_dense_matrices_agree():

    for tree in TREES.values():
        state = State(tree)
        given = {"q": state.q, "v": state.v, **state.values}
        for A in (differentiate(INVERSE, "q"), differentiate(INVERSE, "v")):
            for expr in (A, A @ u, A.T @ w):
                expected = state.at(expr)
                expected = expected[:, 0] if expr.is_vector else expected
                kernel = lw.compile(expr, tree)
                result = kernel(*(given[name] for name in kernel.arguments))
                assert np.abs(result - expected).max() < 1e-11 * np.abs(expected).max()


def test_directional_derivatives_and_gradients_are_adjoint():
    state = State(TREES["every hinge"])
    A = differentiate(FORWARD, "q")
    forward, backward = state.at(w.T @ A @ u), state.at(u.T @ A.T @ w)
    assert np.abs(forward) > 1e-3
    assert np.abs(forward - backward) < 1e-12 * np.abs(forward)


def test_derivatives_cost_a_few_evaluations():
    """In operations: a JVP or VJP of forward dynamics at most 2.5 times forward dynamics."""
    arm = lw.models.seven_dof_arm()
    count = lambda expr: sum(lw.compile(expr, arm).ops.values())  # noqa: E731
    forward, A = count(FORWARD), differentiate(FORWARD, "q")
    assert count(A @ u) < 2.5 * forward
    assert count(A.T @ w) < 2.5 * forward


diff = differentiate(D @ u, "q").T @ w  # in reverse, column by column


@pytest.mark.parametrize(
    "expr, wrt, message",
    [
        (mass, "q", "takes a stacked vector or a number"),
        (diff, "q", r"∂\[P H\* u\]/∂q cannot be differentiated by q"),
        (V, "damping", r"of  V  by damping.*diagonal\(v\) @ lw.algebra.damping"),
        (bias, "stiffness", r"does not contain.*, with the deflection x"),
        (V, "nothing", r'by nothing; it must be "q"'),
        (V, mass, r'by 𝓜; it must be "q"'),
    ],
)
def test_what_has_no_rule_is_named(expr, wrt, message):
    with pytest.raises(lw.errors.ExpressionError, match=message):
        differentiate(expr, wrt)


def test_derivatives_print():
    A = differentiate(INVERSE, "v")
    assert "[2 φ* H* v - H* v ×]" in str(A)
    assert r"\times" in A.latex()
    assert "×" in str(lw.plan(A))
