"""Formulas of SymPy: against equations derived by hand, and against kernels in random states."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, J, M, a_g, bias, mass, phi, tau, v
from linkwise.convert import symbolic
from linkwise.convert.trigonometric import waves
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from tests.model.hinge_cases import HINGES

sp = pytest.importorskip("sympy")

GRAVITY = H @ phi @ M @ phi.T @ a_g


def planar(name, *hinges, inboard):
    """A chain whose bodies have unit boxes, to be replaced by symbols."""
    b, parent = lw.Builder(name), "world"
    for k, (hinge, at) in enumerate(zip(hinges, inboard, strict=True), 1):
        part = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
        b.body(f"body_{k}", parent, hinge, inboard=at, inertia=part)
        parent = f"body_{k}"
    return b.build()


def rod(m, c, i):
    """A body of mass m with its centre at c on the x axis, and i about its centre."""
    return [m, m * c, 0, 0, 0, i + m * c**2, i + m * c**2, 0, 0, 0]


def assert_same(actual, expected):
    assert (actual - expected).applyfunc(sp.simplify) == sp.zeros(*actual.shape)


def test_the_double_pendulum_of_textbooks():
    """Two rods in the x-z plane from the horizontal, by Lagrange's equations."""
    length = sp.Rational(1, 2)
    m_1, m_2, c_1, c_2, i_1, i_2, g = sp.symbols("m_1 m_2 c_1 c_2 I_1 I_2 g", positive=True)
    pin = lw.hinges.Pin((0, -1, 0))  # a positive angle lifts the rod
    mech = planar("double", pin, pin, inboard=[(0, 0, 0), (0.5, 0, 0)])
    given = {"inertia": [*rod(m_1, c_1, i_1), *rod(m_2, c_2, i_2)], "gravity": [0, 0, -g]}
    formulas = lw.convert.to_sympy(
        {"M": mass, "c": bias, "g": GRAVITY}, mech, parameters=["inertia", "gravity"], given=given
    )
    (q_1, q_2), (v_1, v_2) = formulas.symbols["q"], formulas.symbols["v"]
    coupled = m_2 * length * c_2 * sp.cos(q_2)
    M_22 = i_2 + m_2 * c_2**2
    M_11 = i_1 + m_1 * c_1**2 + M_22 + m_2 * length**2 + 2 * coupled
    assert_same(formulas["M"], sp.Matrix([[M_11, M_22 + coupled], [M_22 + coupled, M_22]]))
    second = m_2 * g * c_2 * sp.cos(q_1 + q_2)
    weight = sp.Matrix([(m_1 * c_1 + m_2 * length) * g * sp.cos(q_1) + second, second])
    assert_same(formulas["g"], weight)
    h = m_2 * length * c_2 * sp.sin(q_2)
    coriolis = sp.Matrix([-h * (2 * v_1 * v_2 + v_2**2), h * v_1**2])
    assert_same(formulas["c"], weight + coriolis)
    # As short as what is written in books, without any help.
    assert formulas["M"][0, 1] == sp.expand(M_22 + coupled)
    assert sp.count_ops(formulas["g"][1]) == sp.count_ops(second)


def test_the_cart_pole_of_textbooks():
    """A cart on x and a point mass on a massless pole, up at q = 0."""
    m_c, m_p, l, g = sp.symbols("m_c m_p l g", positive=True)
    slide, pin = lw.hinges.Prismatic((1, 0, 0)), lw.hinges.Pin((0, 1, 0))
    mech = planar("cart_pole", slide, pin, inboard=[(0, 0, 0), (0, 0, 0)])
    pole = [m_p, 0, 0, m_p * l, m_p * l**2, m_p * l**2, 0, 0, 0, 0]
    given = {"inertia": [m_c, *[0] * 9, *pole], "gravity": [0, 0, -g]}
    formulas = lw.convert.to_sympy(
        {"M": mass, "c": bias, "vdot": mass.inv @ (tau - bias)},
        mech,
        parameters=["inertia", "gravity"],
        given=given,
    )
    (_, q), (_, w), (f, t) = (formulas.symbols[name] for name in ("q", "v", "tau"))
    M_12 = m_p * l * sp.cos(q)
    expected = sp.Matrix([[m_c + m_p, M_12], [M_12, m_p * l**2]])
    assert formulas["M"] == expected
    force = sp.Matrix([-m_p * l * w**2 * sp.sin(q), -m_p * g * l * sp.sin(q)])
    assert formulas["c"] == force
    assert_same(formulas["vdot"], expected.inv() * (sp.Matrix([f, t]) - force))


def test_the_shortest_form_of_a_polynomial_is_taken():
    """The inertia of a tilted rod about the vertical: m l² sin², neither 1 - cos² nor ½ - ½ cos."""
    head = planar(
        "head", lw.hinges.Pin((0, 0, 1)), lw.hinges.Pin((0, 1, 0)), inboard=[(0, 0, 0)] * 2
    )
    m = sp.Symbol("m", positive=True)
    given = {"inertia": [*[0] * 10, m, 0, 0, m, m, m, 0, 0, 0, 0]}
    formulas = lw.convert.to_sympy(mass, head, parameters=["inertia"], given=given)
    assert formulas.value[0, 0] == m * sp.sin(formulas.symbols["q"][1]) ** 2


@pytest.mark.few(2, 12)
@pytest.mark.parametrize("name", HINGES)
def test_formulas_agree_with_kernels(name):
    """Two bodies on a hinge of every kind, with numbers that are no short fractions."""
    b = lw.Builder(name)
    part = lw.SpatialInertia.from_com(1.3, (0.1, -0.2, 0.3), (0.5, 0.6, 0.7))
    b.body("one", "world", HINGES[name], inertia=part)
    b.body("two", "one", lw.hinges.Pin((0, 0.6, 0.8)), inboard=(0.1, 0.2, 0.3), inertia=part)
    mech = b.build()
    # Multiplied out, formulas of six modes have more terms than to_sympy allows.
    short = getattr(HINGES[name], "modes", np.zeros((6, 0))).shape[1] < 6
    for expr, nodes, simplify in ((mass, (), short), (J @ v, ["two"], short), (bias, (), False)):
        formulas = lw.convert.to_sympy(expr, mech, nodes=nodes, simplify=simplify)
        kernel = lw.compile(expr, mech, nodes=nodes)
        state = {"q": mech.random(seed=1), "v": mech.random_velocity(seed=1)}
        values = [state[x] for x in kernel.arguments]
        symbols = [s for x in kernel.arguments for s in formulas.symbols[x]]
        entries = sp.lambdify(symbols, list(formulas.value), modules="math", cse=True)
        actual = np.reshape(entries(*np.concatenate(values)), formulas.value.shape)
        expected = np.reshape(kernel(*values), formulas.value.shape)
        assert np.allclose(actual, expected, rtol=1e-11, atol=1e-11)


def test_symbols_are_numbered_or_called_after_hinges():
    mech = lw.models.pendulum(2)
    numbered = lw.convert.to_sympy(mass @ v, mech, parameters=["inertia"])
    assert [str(x) for x in numbered.symbols["q"]] == ["q_1", "q_2"]
    assert [str(x) for x in numbered.symbols["inertia"][:3]] == ["m_1", "mcx_1", "mcy_1"]
    named = lw.convert.to_sympy({"p": mass @ v}, mech, named=True)
    assert [str(x) for x in named.symbols["v"]] == ["v_pin_1", "v_pin_2"]
    assert r"q_{pin 2}" in named.latex("p")
    assert str(named).startswith("p = Matrix(")
    assert repr(named) == "<Symbolic: p of q (2), v (2)>"


def test_roots_and_choices_are_formulas_too():
    def length(at):
        square = at.q[0] * at.q[0] + at.q[1] * at.q[1]
        return [square.sqrt(), at.v[0].gate(at.q[1])]

    formulas = lw.convert.to_sympy(length, lw.models.pendulum(2))
    (q_1, q_2), (v_1, _) = formulas.symbols["q"], formulas.symbols["v"]
    assert formulas.value[0] == sp.sqrt(q_1**2 + q_2**2)
    assert formulas.value[1] == sp.Piecewise((q_2, v_1 > 0), (0, True))


def test_angles_of_the_caller_add_up():
    """With q₂ = β - q₁, an absolute angle, the gravity force has one angle in each term."""
    alpha, beta = sp.symbols("alpha beta", real=True)
    mech = lw.models.pendulum(2, point_masses=True)
    formulas = lw.convert.to_sympy(GRAVITY, mech, given={"q": [alpha, beta - alpha]})
    expected = sp.Rational(981, 100) * sp.Matrix([2 * sp.sin(alpha) + sp.sin(beta), sp.sin(beta)])
    assert_same(formulas.value, expected)


@pytest.mark.parametrize("turns", [((1, 0), (0, 2)), ((3, 1),), ((2, 2), (1, 1)), ((0, 0),)])
def test_products_of_waves_are_sums(turns):
    angles = np.random.default_rng(0).standard_normal(len(turns))
    product = math.prod(
        np.sin(x) ** a * np.cos(x) ** b for x, (a, b) in zip(angles, turns, strict=True)
    )
    total = sum(
        float(size) * (np.sin if is_sine else np.cos)(np.dot(multiples, angles))
        for (multiples, is_sine), size in waves(turns).items()
    )
    assert total == pytest.approx(product, abs=1e-15)


def test_what_cannot_be_given_is_refused(monkeypatch):
    mech = lw.models.pendulum(2)
    with pytest.raises(UnknownNameError, match="tau"):
        lw.convert.to_sympy(mass, mech, given={"tau": [1, 2]})
    with pytest.raises(ShapeError, match=r"given\['q'\] has 1 entries; it must have 2"):
        lw.convert.to_sympy(mass, mech, given={"q": [1]})
    with pytest.raises(ModelError, match="64 bodies at most"):
        lw.convert.to_sympy(lambda at: at.value(bias), lw.models.pendulum(65))
    monkeypatch.setattr(symbolic, "MOST_TERMS", 2)
    with pytest.raises(ModelError, match=r"more than 2 terms\. simplify=False"):
        lw.convert.to_sympy(bias, mech)
    monkeypatch.undo()
    both = lw.convert.to_sympy({"M": mass, "c": bias}, mech)
    with pytest.raises(ModelError, match="2 results, M, c; index by name"):
        both.value  # noqa: B018
    with pytest.raises(UnknownNameError, match="'N'"):
        both["N"]
