"""Text to expressions: what is printed is read back as the same object, and nothing else passes."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings, strategies as st

import linkwise as lw
from linkwise.algebra import (
    NODE,
    ONE,
    VOCABULARY,
    B,
    D,
    E_phi,
    Expr,
    H,
    I,
    J,
    K,
    M,
    P_plus,
    Phi,
    bias,
    mass,
    memoryless,
    phi,
    phi_tilde,
    psi,
    tau,
    vector,
)
from linkwise.algebra.armature import without_armature
from linkwise.algebra.expr import nodes, zero
from linkwise.algebra.parse import DEEPEST, LONGEST_TEXT, parse, parse_equation, parse_kindly
from linkwise.algebra.rules import ALL
from linkwise.errors import ExpressionError
from tests.effort import at_most

# ------------------------------------------------------------------------------ round trips

LEAVES = [e for e in VOCABULARY.values() if e is not I]
NUMBERS = [2.0, -1.0, 0.5, -0.25, 3.0, 1e16, 1e-9, 1 / 3]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    """Well-typed expressions: factors that meet, sums, numbers, identities, allowed inverses."""
    expr = draw(st.sampled_from(LEAVES))
    for _ in range(draw(st.integers(0, 6))):
        expr = draw(st.sampled_from(STEPS))(draw, expr, depth)
    return expr


def _adjoint(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    return expr.T


def _inverse(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    try:
        return expr.inv
    except ExpressionError:
        return expr


def _scaled(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    return draw(st.sampled_from(NUMBERS)) * expr


def _with_identity(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    return I - expr if expr.range is expr.domain else expr


def _times(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    if depth and draw(st.booleans()):
        right = draw(expressions(depth - 1))
        for candidate in (right, right.T):
            if candidate.range is expr.domain:
                return expr @ candidate
    fitting = [f for e in LEAVES for f in (e, e.T) if f.range is expr.domain]
    return expr @ draw(st.sampled_from(fitting)) if fitting and expr.domain is not ONE else expr


def _plus(draw: st.DrawFn, expr: Expr, depth: int) -> Expr:
    if not depth:
        return expr
    other = draw(expressions(depth - 1))
    same = (other.range, other.domain) == (expr.range, expr.domain)
    return expr - other if same else expr + expr @ expr.T @ expr


STEPS = [_adjoint, _inverse, _scaled, _with_identity, _times, _times, _times, _plus]


@settings(max_examples=600, deadline=None)
@given(expressions())
@example((M.inv @ phi.T.inv + I).inv)
@example((H @ phi @ K).T - 0.5 * (psi @ K).T @ H.T)
def test_what_is_printed_is_read_back(expr: Expr):
    assume(max(len(str(expr)), len(expr.latex())) <= LONGEST_TEXT)
    assert parse(str(expr), like=expr) is expr
    assert parse(expr.latex(), like=expr) is expr


def test_the_strategy_draws_products_sums_and_inverses():
    seen = set[str]()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(expressions())
    def look(expr: Expr):
        seen.update(type(part).__name__ for part in nodes(expr))

    look()
    assert {"Product", "Sum", "Inverse", "Adjoint", "Symbol"} <= seen


@pytest.mark.parametrize("rule", ALL, ids=lambda r: r.name)
def test_every_rule_is_read_back(rule):
    assert parse_equation(str(rule)) == (rule.left, rule.right)
    latex = f"{rule.left.latex()} = {rule.right.latex()}"
    assert parse_equation(latex) == (rule.left, rule.right)


@pytest.mark.parametrize("name", VOCABULARY)
def test_every_name_is_read_as_typed_printed_and_in_latex(name):
    expr = VOCABULARY[name]
    assert parse(name) is expr
    assert parse(str(expr)) is expr
    assert parse(expr.latex()) is expr


def test_the_family_of_the_bare_tree_is_read_back():
    """What has N in it has a twin without: P₀, D₀ ... and 𝓜₀ = H φ M φ* H*."""
    derived = lw.derive((H @ phi @ M @ phi.T @ H.T).inv @ tau).result
    assert "ψ₀" in str(derived)
    assert parse(str(derived)) is derived
    assert parse(derived.latex()) is derived
    assert parse("D_0") is parse("D0") is parse("D₀") is not D
    assert parse("K'") is K.T
    twins = {name: without_armature(expr) for name, expr in VOCABULARY.items()}
    marked = {name for name, twin in twins.items() if twin is not VOCABULARY[name]}
    assert {"mass", "Omega", "P_plus", "psi_tilde", "E_psi", "Xi", "L"} <= marked
    for name in marked - {"N"}:
        twin = twins[name]
        assert parse(f"{name}_0") is parse(str(twin)) is parse(twin.latex()) is twin
    assert lw.prove(parse("mass_0"), H @ phi @ M @ phi.T @ H.T).derivation.needs == ""


# ------------------------------------------------------------------------------ the grammar


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("J mass^-1 J*", J @ mass.inv @ J.T),
        ("J 𝓜⁻¹ J*", J @ mass.inv @ J.T),
        ("J @ mass.inv @ J.T", J @ mass.inv @ J.T),
        ("B^* · phi' · H^T", B.T @ phi.T @ H.T),
        ("ψ*H*D⁻¹Hψ", psi.T @ H.T @ D.inv @ H @ psi),
        ("D^-1H", D.inv @ H),
        ("[I - H psi K] (H phi)", (I - H @ psi @ K) @ H @ phi),
        ("mass^{-1} (tau - bias)", mass.inv @ (tau - bias)),
        ("2 H", 2.0 * H),
        ("2*H", 2.0 * H),
        ("0.5*H", 0.5 * H),
        ("2 * 3 H/4", 1.5 * H),
        ("1/2 H φ", 0.5 * (H @ phi)),
        ("1e-3 H", 1e-3 * H),
        ("2E_phi", 2.0 * E_phi),
        ("-H + 3 H", 2.0 * H),
        ("−H", -H),
        ("+H", H),
        ("phi^-T", phi.T.inv),
        ("φ⁻*", phi.T.inv),
        ("H**", H),
        ("(H φ)*", phi.T @ H.T),
        ("φ̃ P⁺", phi_tilde @ P_plus),
        ("φ_t", None),
        ("P^+", P_plus),
        ("Φ", Phi),
        ("I H", H),
        ("M M⁻¹ φ", phi),
        ("0 H", zero(H.range, H.domain)),
        ("H - H", zero(H.range, H.domain)),
    ],
)
def test_grammar(text, expr):
    if expr is None:
        with pytest.raises(ExpressionError):
            parse(text)
    else:
        assert parse(text) is expr


def test_bare_identities_and_zeros_take_spaces_from_outside():
    assert parse("I") is I
    assert parse("0", like=H) is zero(H.range, H.domain)
    assert parse("2 I", like=phi) is parse("2 I + 0 phi")
    assert parse_equation("H Pi_bar = 0")[1] is zero(H.range, H.domain)
    with pytest.raises(ExpressionError, match="identity is square"):
        parse("I", like=H)


def test_own_names():
    weight = memoryless("W", NODE, NODE, definite=True)
    ours = {"W": weight, "λ": vector("λ", NODE), "weight_2": 2.0 * weight}
    assert parse("B W B*", names=ours) is B @ weight @ B.T
    assert parse("weight_2 λ", names=ours) is 2.0 * weight @ ours["λ"]
    with pytest.raises(ExpressionError, match="no operator called 'W'"):
        parse("B W B*")


# ----------------------------------------------------------------------------- M and mass


def test_m_for_the_mass_operator_is_explained():
    with pytest.raises(ExpressionError) as caught:
        parse("J M^-1 J*")
    message = str(caught.value)
    assert "cannot multiply  J  and  M⁻¹" in message
    assert "\n    J M^-1 J*\n      ^\n" in message
    assert "is written mass or 𝓜" in message


def test_m_for_the_mass_operator_is_read_kindly():
    expr, remark = parse_kindly("J M^-1 J*")
    assert expr is J @ mass.inv @ J.T
    assert remark == "M is read as 𝓜, the mass operator; M is the inertia of the bodies."
    assert parse_kindly("H phi M phi* H*") == (H @ phi @ M @ phi.T @ H.T, "")
    with pytest.raises(ExpressionError, match="cannot multiply  H  and  J"):
        parse_kindly("H J M")  # no reading helps


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("H phi M)", 7, r"no bracket is open for this \)"),
        ("(H phi", 0, r"this \( is never closed"),
        ("[H phi)", 6, r"expected '\]' here, not '\)'"),
        ("H φ̃ * M", 4, r"a separate \* .* write A\* \(no space\) or A @ B"),
        ("H 2", 2, "a number goes in front"),
        ("3 + H", 0, "3 times the identity is 3 I"),
        ("H ph M", 2, "did you mean 'phi'"),
        ("HPH*", 0, "did you mean 'H P H'"),
        ("φ̂ M", 0, "no operator called 'φ̂'"),
        ("H^2", 1, r"after \^ there can be -1"),
        ("H^-1", 0, "only an operator on one space has an inverse"),
        ("M E_phi^-1", 2, "nilpotent"),
        ("1e999 H", 0, "too large"),
        ("(1e-320 D)^-1", 0, "too large or too small"),
        ("H/0", 2, "division by zero"),
        ("H / phi", 4, r"the inverse of A is A\^-1"),
        ("H @ + K", 4, "expected an operator after the product sign"),
        ("2 *", 3, r"expected an operator after a number and \*"),
        ("H - ", 4, "the text ends where an operator"),
        ("H = phi", 2, "not an equation"),
        ("M $", 2, r"'\$' means nothing here"),
        ("phi M + H", 8, "cannot add"),
        ("H I H", 4, "cannot multiply  H  and  H"),
        ("(" * 99 + "H" + ")" * 99, 60, "60 brackets"),
    ],
)
def test_mistakes_are_shown_with_their_place(text, column, reason):
    with pytest.raises(ExpressionError, match=reason) as caught:
        parse(text)
    shown = str(caught.value).split("\n")
    assert shown[1].lstrip(" .")[0] == text[0]
    if len(text) < 90:
        assert shown[1] == f"    {text}"
        assert len(shown[2]) - len(shown[2].lstrip()) == 4 + column
        assert set(shown[2].strip()) == {"^"}


def test_empty_and_endless_texts():
    for text in ("", "  ", "\n\t"):
        with pytest.raises(ExpressionError, match="The text is empty"):
            parse(text)
    with pytest.raises(ExpressionError, match=f"at most {LONGEST_TEXT} are read"):
        parse("H" * (LONGEST_TEXT + 1))
    with pytest.raises(ExpressionError) as caught:
        parse("phi @ " * 2000 + "oops")
    assert len(str(caught.value)) < 500


def test_equations_need_two_sides():
    with pytest.raises(ExpressionError, match="expected = and the other side"):
        parse_equation("H phi")
    with pytest.raises(ExpressionError, match="not expected here"):
        parse_equation("H = H = H")


ALPHABET = [*VOCABULARY, *"+-*/^'@()[]{}.·⁻¹=_,;\\\n\0 😀̃ͅφψΠ𝓜٣²ªM", "^-1", ".T", ".inv", "1e9", " "]


@pytest.mark.prove
@settings(max_examples=1500, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(ALPHABET)).map("".join)))
@example("(((((")
@example("((0)(0))^-1")
@example("0.T")
@example("1e308 (1e308 H)")
@example("\udcff")
def test_any_text_is_an_expression_or_an_expression_error(text):
    for read in (parse, parse_kindly, parse_equation):
        try:
            read(text)
        except ExpressionError as error:
            assert str(error)


def test_long_texts_take_little_time():
    with at_most(2e6):
        assert parse("phi @ " * 3000 + "M").size == 3001
        deep = "(" * (DEEPEST - 1) + "I - H psi K" + ")*" * (DEEPEST - 1)
        assert parse(deep) is (I - H @ psi @ K).T
        assert parse(" + ".join(["H phi M"] * 2000)) is 2000.0 * (H @ phi @ M)
        with pytest.raises(ExpressionError):
            parse("M" * 19_000)
