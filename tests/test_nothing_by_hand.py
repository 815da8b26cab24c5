"""Nothing is derived by hand: only algorithms that carry a paper's name run as they are written."""

from __future__ import annotations

import ast
from pathlib import Path

import linkwise
from linkwise.algebra import J
from linkwise.algebra.expr import Symbol, nodes
from linkwise.algebra.family import family_of
from linkwise.dynamics.closure import CLOSED, Setting
from linkwise.dynamics.hybrid import hybrid_expression
from linkwise.dynamics.quantity import AS_WRITTEN, METHODS, QUANTITIES
from linkwise.dynamics.rccfd import RCCFD
from linkwise.tasks.quantity import TASK, Law, torque

SOURCES = Path(linkwise.__file__).parent
AS_PRINTED = {
    "dynamics/closure.py": "name not in RCCFD",
    "dynamics/kernels.py": "name not in AS_WRITTEN",
}
"""Where the algorithms of the papers are compiled, or what a user asks for, and what says so."""


def options(tree: ast.AST) -> list[str]:
    """What is given for `derive`: as an argument, in a dictionary, or to a name of its own."""
    result = list[ast.expr]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            result += [k.value for k in node.keywords if k.arg == "derive"]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            result += [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "derive"]
        elif isinstance(node, ast.Assign):
            named = [t.id for t in node.targets if isinstance(t, ast.Name)]
            result += [node.value] if "derive" in named else []
    return [text for text in map(ast.unparse, result) if text not in ("True", "derive")]


def test_only_the_algorithms_of_papers_run_as_they_are_written():
    result = dict[str, list[str]]()
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        texts = options(ast.parse(path.read_text(encoding="utf-8")))
        result |= {name: texts} if texts else {}
    assert result.pop("cli/plan.py") == ["options.derive"]  # whoever types it asks for it
    assert result == {name: [text] for name, text in AS_PRINTED.items()}
    assert set(METHODS) == {"FD1", "FD2", "FD3", "FD4"}
    assert AS_WRITTEN == {*METHODS, *(f"{name}_with_forces" for name in METHODS)}
    assert set(RCCFD) == {"RCCFD1", "RCCFD2", "RCCFD3"}


def test_a_derivation_by_hand_would_be_found():
    for text in ("compile(x, mech, derive=False)", "o = {'derive': False}", "derive = not stands"):
        assert options(ast.parse(text))
    assert not options(ast.parse("compile(x, mech, derive=True)"))


ASKED_FOR = {
    *("articulated_inertias", "articulated_inertias_inboard", "hinge_inertia", "kalman_gain"),
    *("shifted_gain", "articulated_shift", "coloring", "whitening"),
    *("articulated_scatter", "articulated_gather"),
    *("strict_articulated_scatter", "strict_articulated_gather"),
    # Equations of motion in the coordinates of the innovations, and the columns X of tasks.
    *("colored_force", "colored_velocity", "whitened_force", "whitened_velocity"),
    *("whitened_jacobian", "diagonal_coriolis_force", "hinge_inertia_rate", "task_columns"),
}
"""Quantities that are about the articulated recursion itself."""


def test_what_is_derived_is_written_without_the_articulated_recursion():
    """No P, D, G, K or ψ in the textbook form, unless they are what is asked for."""
    result = {name: make(J) for name, make in QUANTITIES.items() if name not in AS_WRITTEN}
    setting = Setting(couplings=True)
    result |= {name: make(setting) for name, make in {**CLOSED, **TASK}.items()}
    result |= {"torque": torque(setting, Law()), "hybrid": hybrid_expression("a", "b")}
    articulated = {
        name
        for name, expr in result.items()
        if any(isinstance(x, Symbol) and family_of(x) is not None for x in nodes(expr))
    }
    assert articulated == ASKED_FOR
