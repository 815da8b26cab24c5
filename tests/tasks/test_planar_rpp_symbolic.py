"""The closed-form example of Khatib 1995, section 5.2, exactly.

`to_sympy` evaluates the scalar graph of a kernel, which is what gets compiled: what is compared
with the printed matrices is the code that runs, and no tolerance is needed.
"""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise import models
from linkwise.algebra import J, mass, rot_W

sp = pytest.importorskip("sympy")

q_1, q_2, q_3 = sp.symbols("q_1 q_2 q_3", real=True)
I_1, m_1, m_2, m_3 = sp.symbols("I_1 m_1 m_2 m_3", positive=True)


def ten_numbers(m, i):
    """A body whose centre of mass is in its frame, with the same inertia about all axes."""
    return [m, 0, 0, 0, i, i, i, 0, 0, 0]


GIVEN = {
    "q": [q_1, q_2, q_3],
    "inertia": [*ten_numbers(m_1, I_1), *ten_numbers(m_2, 0), *ten_numbers(m_3, 0)],
}


def exactly(expr, *, nodes=(), parameters=("inertia",), derive=True):
    """What the kernel of an expression computes for `planar_rpp`, as a matrix of symbols."""
    given = {name: GIVEN[name] for name in ("q", *parameters)}
    return lw.convert.to_sympy(
        expr, models.planar_rpp(), nodes=nodes, parameters=parameters, derive=derive, given=given
    ).value


def of_the_tip(expr, **options):
    """Its rows and columns for motions of the end effector in the plane, x and y."""
    result = exactly(expr, nodes=["end_effector"], **options)
    return result[3:5, 3:5] if result.shape == (6, 6) else result[3:5, :]


def assert_same(result, expected):
    assert (result - expected).applyfunc(sp.simplify) == sp.zeros(*expected.shape)


ETA = (I_1 + m_2 * q_2**2) / (I_1 + m_2 * (q_2**2 + q_3**2))


def test_the_printed_jacobian():
    result = of_the_tip(J, parameters=())
    assert_same(result, sp.Matrix([[-q_3, 1, 0], [q_2, 0, 1]]))


def test_the_printed_kinetic_energy_matrix():
    first = I_1 + m_2 * q_2**2 + m_3 * (q_2**2 + q_3**2)
    printed = [[first, -m_3 * q_3, m_3 * q_2], [-m_3 * q_3, m_2 + m_3, 0], [m_3 * q_2, 0, m_3]]
    assert_same(exactly(mass), sp.Matrix(printed))


def test_the_printed_inertia_of_the_mini():
    """Λ_m = J_m⁻* A_22 J_m⁻¹, with A_22 of the whole: Lemma 1."""
    J_m = of_the_tip(J, parameters=())[:, 1:]
    result = J_m.T.inv() * exactly(mass)[1:, 1:] * J_m.inv()
    assert_same(result, sp.diag(m_2 + m_3, m_3))


@pytest.mark.parametrize("derive", [True, False], ids=["derived", "as written"])
def test_the_inertia_of_the_whole_is_not_what_is_printed(derive):
    """Printed: m₂ + m₃ η. It is η m₂ + m₃; the two differ by (m₂ - m₃)(1 - η)."""
    Lambda = of_the_tip(J @ mass.inv @ J.T, derive=derive).inv()
    assert_same(Lambda, sp.diag(ETA * m_2 + m_3, m_3))
    printed = m_2 + m_3 * ETA
    assert sp.simplify(printed - Lambda[0, 0] - (m_2 - m_3) * (1 - ETA)) == 0
    there = {I_1: 1, m_2: 2, m_3: 1, q_2: 0, q_3: 1}
    assert Lambda[0, 0].subs(there) == sp.Rational(5, 3)
    assert printed.subs(there) == sp.Rational(7, 3)


def test_eta_is_never_above_one_and_the_whole_never_above_the_mini():
    """1 - η is a quotient of what is positive, so Λ_m - Λ = (1 - η) m₂ on the first axis."""
    assert sp.simplify(1 - ETA - m_2 * q_3**2 / (I_1 + m_2 * (q_2**2 + q_3**2))) == 0
    Lambda = of_the_tip(J @ mass.inv @ J.T).inv()
    assert sp.simplify((m_2 + m_3) - Lambda[0, 0] - (1 - ETA) * m_2) == 0


def test_lemma_2_with_the_formula_of_42():
    """(41), (42): Λ⁻¹ = Λ_m⁻¹ + Λ̄_C, and Ā_11 of (44) is a block of the inverse of A."""
    A, full = exactly(mass), of_the_tip(J, parameters=())
    V_J_M, J_m = full[:, :1], full[:, 1:]
    A_11, A_21, A_22 = A[:1, :1], A[1:, :1], A[1:, 1:]
    A_11_bar = (A_11 - A_21.T * A_22.inv() * A_21).inv()
    assert_same(A_11_bar, exactly(mass.inv)[:1, :1])
    free = V_J_M - J_m * A_22.inv() * A_21
    inverse = J_m * A_22.inv() * J_m.T + free * A_11_bar * free.T
    assert_same(of_the_tip(J @ mass.inv @ J.T), inverse)


def test_in_the_frame_of_the_base():
    """Λ₀ = Ω Λ₀₍₁₎ Ω* with the rotation Ω by q₁."""
    turn = sp.Matrix([[sp.cos(q_1), -sp.sin(q_1)], [sp.sin(q_1), sp.cos(q_1)]])
    J_W = rot_W @ J
    inverse = of_the_tip(J_W @ mass.inv @ J_W.T).applyfunc(sp.expand_trig)
    rest = inverse * turn * sp.diag(ETA * m_2 + m_3, m_3) * turn.T - sp.eye(2)
    c, s = sp.symbols("c s")
    for entry in rest.subs({sp.cos(q_1): c, sp.sin(q_1): s}):
        numerator = sp.fraction(sp.together(entry))[0].expand()
        assert sp.rem(numerator, c**2 + s**2 - 1, c) == 0
