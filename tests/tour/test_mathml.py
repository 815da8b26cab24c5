"""LaTeX that the algebra prints, as MathML: complete, well-formed, and with the right structure."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings

import linkwise as lw
import linkwise.algebra as algebra
from linkwise.algebra.armature import without_armature
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.rules import ALL
from linkwise.tour.mathml import mathml
from tests.algebra.test_parse import expressions
from tests.sweeps.test_golden import PLANS

SYMBOLS = {n: x for n in dir(algebra) if isinstance(x := getattr(algebra, n), Symbol)}
ONE, TWO, THREE = {"msup", "msub", "mover"}, 2, 3


def read(latex: str) -> ElementTree.Element:
    """Parsed, with every command understood and every script with its base and its mark."""
    text = mathml(latex)
    assert "\\" not in text, text
    root = ElementTree.fromstring(text)
    for element in root.iter():
        if element.tag in ONE:
            assert len(element) == TWO, text
        if element.tag == "msubsup":
            assert len(element) == THREE, text
        if element.tag in ("mi", "mo", "mn"):
            assert element.text and not len(element), text
    return root


def letters(root: ElementTree.Element) -> str:
    return "".join(x.text or "" for x in root.iter() if x.tag in ("mi", "mn", "mo", "mtext"))


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_symbol(name):
    assert letters(read(SYMBOLS[name].tex))


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_every_rule(rule):
    read(f"{rule.left.latex()} = {rule.right.latex()}")


@pytest.mark.parametrize("name", PLANS)
def test_every_plan(name):
    for loop in lw.plan(PLANS[name]).latex().split("\n\n"):
        root = read(loop)
        assert len(list(root.iter("mtr"))) == loop.count("\\\\") + 1


def test_a_derivation_has_a_row_for_each_step():
    shown = lw.derive(algebra.mass.inv @ (algebra.tau - algebra.bias))
    assert len(list(read(shown.latex()).iter("mtr"))) == len(shown) + 1


@settings(max_examples=100, deadline=None, database=None)
@given(expressions())
def test_any_expression(expr: Expr):
    latex = expr.latex()
    assume(len(latex) < 2000)
    root = read(latex)
    opened = sum((x.text == "(") - (x.text == ")") for x in root.iter("mo"))
    assert opened == 0


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("x_1", "<msub><mi>x</mi><mrow><mn>1</mn></mrow></msub>"),
        ("H^{*}", "<msup><mi>H</mi><mrow><mo>∗</mo></mrow></msup>"),
        (r"\mathcal{M}", "<mi>ℳ</mi>"),
        (r"\mathcal{C}", "<mi>𝒞</mi>"),
        (r"\mathfrak{a}", "<mi>𝔞</mi>"),
        (r"a - b", "<mi>a</mi><mo>−</mo><mi>b</mi>"),
        (r"\dot{v}", "<mover><mrow><mi>v</mi></mrow><mo>˙</mo></mover>"),
        (r"\mathrm{rot}", '<mi mathvariant="normal">rot</mi>'),
        (r"\text{a < b}", "<mtext>a\u00a0&lt;\u00a0b</mtext>"),
        ("2.5", "<mn>2.5</mn>"),
    ],
)
def test_written_as_it_should_be(latex, expected):
    assert mathml(latex) == f"<math>{expected}</math>"


def test_raised_twice_is_one_script():
    root = read(r"{D^{\prime}}^{-1}")
    outer = root[0]
    assert outer.tag == "msup"
    assert letters(outer[0]) == "D′" and letters(outer[1]) == "−1"
    both = read(r"x^{\prime}^{*}")[0]
    assert letters(both[0]) == "x′" and letters(both[1]) == "∗"


def test_a_prime_is_not_a_superscript():
    """As one it would be raised and shrunk twice."""
    (row,) = read(r"D^{\prime}")
    assert row.tag == "mrow" and [x.text for x in row] == ["D", "′"]
    (script,) = read("x_1'")
    assert script.tag == "msub" and letters(script[0]) == "x′"


def test_unknown_commands_are_shown_not_lost():
    assert "\\nonsense" in mathml(r"a \nonsense b")


def test_a_program_without_armature_has_no_double_superscript():
    """A symbol that is raised already gets braces before it is raised again."""
    bare = without_armature(algebra.mass.inv @ (algebra.tau - algebra.bias))
    latex = lw.plan(lw.derive(bare).result).latex()
    assert "^{(0)}" in latex
    assert "^{(0)}^" not in latex
