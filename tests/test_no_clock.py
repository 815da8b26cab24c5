"""No test reads a clock: a busy machine is no failure of the code."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
    *("process_time", "process_time_ns", "thread_time", "timeit", "default_timer"),
}
PRINTED = ("fuzz",)
"""Folders of programs that print how long they took."""


def clocks(text: str) -> list[int]:
    """Lines that read a clock."""
    result = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("time", "timeit") and node.attr in CLOCKS:
                result.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "timeit"):
            result += [node.lineno for name in node.names if name.name in CLOCKS]
    return result


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(TESTS.rglob("*.py")) if p.parent.name not in PRINTED],
    ids=lambda p: p.name,
)
def test_no_test_reads_a_clock(path: Path):
    lines = clocks(path.read_text(encoding="utf-8"))
    assert not lines, (
        f"{path}:{lines[0]}: count calls (tests/effort.py), or wait (tests/waiting.py)"
    )


def test_clocks_are_found():
    assert clocks("import time\nx = time.perf_counter()") == [2]
    assert clocks("from time import monotonic") == [1]
    assert clocks("import time\ntime.sleep(1)") == []
