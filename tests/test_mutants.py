"""The mutation tool: each mistake is one change of the text, by seed, in every package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.mutation.choice import NAMED, QUOTAS, chosen, package
from tools.mutation.equivalent import EQUIVALENT
from tools.mutation.nearest import APART, FOLDERS, KNOWN, Nearest
from tools.mutation.operators import mutants

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "linkwise"
SAMPLE = '''
"""Doc: a - b."""
HALF = 0.5

def force(parent, k, x, y):
    """Also a - b."""
    if k < 0:
        raise ValueError(f"{k - 1} is wrong")
    up = parent[k]
    for i in reversed(range(k)):
        x = x - (y + 1.0) @ x.T
    return np.cross(x, y[0]) if up and not k else -x / 2.0
'''


@pytest.fixture(scope="module")
def drawn():
    return chosen(SOURCE, seed=1)


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("constant", "0.5", "1.0"),
        ("skipped check", "k < 0", "False"),
        ("comparison", "<", ">="),
        ("parent", "parent[k]", "k"),
        ("order", "reversed(range(k))", "range(k)"),
        ("off by one", "k", "k - 1"),
        ("sign", "-", "+"),
        ("dropped term", "x - (y + 1.0) @ x.T", "x"),
        ("transpose", "x.T", "x"),
        ("transpose", "(y + 1.0) @ x.T", "((y + 1.0)).T @ x.T"),
        ("swapped cross product", "x, y[0]", "y[0], x"),
        ("off by one", "0", "1"),
        ("logic", "and", "or"),
        ("comparison", "not k", "k"),
        ("sign", "-x", "x"),
        ("factor", "/", "*"),
        ("skipped branch", "up and not k", "True"),
    ],
)
def test_mistakes_that_are_made(kind: str, before: str, after: str):
    made = [
        m for m in mutants("a.py", SAMPLE) if (m.kind, m.before, m.after) == (kind, before, after)
    ]
    assert made
    changed = made[0].applied(SAMPLE)
    assert changed != SAMPLE and len(changed) == len(SAMPLE) + len(after) - len(before)
    ast.parse(changed)


def test_text_for_people_is_left_alone():
    for mutant in mutants("a.py", SAMPLE):
        line = SAMPLE.splitlines()[mutant.line - 1]
        assert '"""' not in line and "raise" not in line


@pytest.mark.prove
def test_every_package_has_its_share_and_the_choice_is_the_same_each_time(drawn):
    assert len(drawn) >= 200 and len({m.key for m in drawn}) == len(drawn)
    counts = {name: sum(package(m.file) == name for m in drawn) for name in QUOTAS}
    assert all(counts[name] >= quota for name, quota in QUOTAS.items()), counts
    folders = {p.relative_to(SOURCE).parts[0] for p in SOURCE.glob("*/*.py")}
    assert folders == {name.split("/")[0] for name in QUOTAS if name}
    assert [m.key for m in chosen(SOURCE, seed=1)] == [m.key for m in drawn]
    assert {m.key for m in chosen(SOURCE, seed=2)} != {m.key for m in drawn}
    assert sum(m.kind == "named" for m in drawn) == len(NAMED)


@pytest.mark.prove
def test_every_mutant_can_be_made_and_has_tests_near_to_it(drawn):
    nearest = Nearest(ROOT)
    for mutant in drawn:
        text = (SOURCE / mutant.file).read_text(encoding="utf-8")
        ast.parse(mutant.applied(text))
        assert all((ROOT / file).exists() for file in nearest.files(mutant, 3)), mutant.file


def test_files_that_are_known_exist():
    modules = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    for start, tests in KNOWN.items():
        assert any(module.startswith(start) for module in modules), start
        assert all((ROOT / test).exists() for test in tests), tests
    folders = {*FOLDERS, *(x for near in FOLDERS.values() for x in near), *APART}
    assert all((ROOT / "tests" / x).exists() or (SOURCE / x).exists() for x in folders), folders


def test_tests_to_begin_with_exist():
    known = Nearest(ROOT).noticed_by
    assert known
    for test in known.values():
        file, name = test.split("[")[0].split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


@pytest.mark.prove
def test_reasons_for_equivalence_are_of_mutants_that_exist(drawn):
    keys = {m.key for m in drawn}
    assert set(EQUIVALENT) <= keys, "no such mutant any more: remove its reason"
    assert all(len(reason) > 20 for reason in EQUIVALENT.values())
