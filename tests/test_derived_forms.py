"""Derived forms in docstrings are what the library prints, with as many passes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.algebra import Expr, J, f, mass
from linkwise.dynamics import expression
from linkwise.dynamics.closure import CLOSED, Setting

SHOWN: dict[str, Expr] = {
    "forward_dynamics": expression("forward_dynamics"),
    "tip_force_correction": expression("tip_force_correction"),
    "operational_inertia": expression("operational_inertia"),
    "operational_inertia_inverse": expression("operational_inertia_inverse"),
    "mass_matrix_inverse_product": expression("mass_matrix_inverse_product"),
    "inverse_dynamics": expression("inverse_dynamics"),
    "body_accelerations": expression("body_accelerations_of_forces"),
    "hinge_forces": expression("hinge_forces"),
    "equivalent_force": J.T @ f,
    "inverse_kinematics": mass.inv @ (J.T @ f),
    "constraint_inertia_inverse": CLOSED["constraint_inertia_inverse"](Setting()),
    "accelerated": CLOSED["forward_dynamics"](Setting()),
}
SECTION = re.compile(r"^Derived form[^\n]*?, (\d) pass[^\n]*:\n((?:    \S[^\n]*\n)+)", re.MULTILINE)


def docstrings() -> Iterator[tuple[str, str]]:
    """Functions of the library whose docstrings show a derived form, and these."""
    for path in Path(lw.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "Derived form" in source else ():
            if isinstance(node, ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if "Derived form" in text:
                    yield node.name, text


def test_every_derived_form_is_looked_at():
    assert sorted(name for name, _ in docstrings()) == sorted(SHOWN)


@pytest.mark.parametrize(("name", "text"), [*docstrings()], ids=lambda x: x if x in SHOWN else "")
def test_a_docstring_shows_what_is_derived(name: str, text: str):
    (result,) = SECTION.findall(text)
    derived = lw.derive(SHOWN[name]).result
    assert " ".join(result[1].split()) == str(derived)
    assert int(result[0]) == len(lw.plan(derived).passes)
