"""Settings shared by all tests.

Hypothesis profiles: `usual` is that of `make test`, `thorough` that of `make prove`, which draws
more examples of the same properties, `quick` that of `make mutants`;
`HYPOTHESIS_PROFILE=nightly make test` draws many more. Time limits for single examples are off: a
loaded machine is no failure of the code.

Most tests ask what a kernel computes: theirs are compiled at LLVM's level 0, which takes an eighth
of the time. That level 0 and the code that users get compute the same is proved by the marker
`shipped`, which the ladder, the kernels, the loops and tests that measure rounding have, and by all
of `tests/codegen` and `tests/sweeps` in `make prove`. The option `--shipped` compiles all kernels
as users get them.
"""

import gc
import os
import random
from collections import defaultdict

import pytest
from hypothesis import settings

from linkwise.codegen.cpu import machine

SHIPPED = ("codegen", "sweeps", "tests")
"""Folders of tests whose kernels are those that users get, in `make prove`."""

LARGEST = 4 << 20
"""Bytes of LLVM text above which level 0, which keeps every number on the stack, is not taken."""

LATER = ("prove", "slow", "nightly")
"""Markers of tests that `make test` leaves out."""

level, versions = machine.level, machine.versions


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew instead"
    )
    parser.addoption("--shipped", action="store_true", help="compile all kernels as users get them")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases that a test with the marker `few` leaves to `make prove` and to the night.

    Which ones stay is drawn by its name: over stacked parameters, a mixture.
    """
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("few"):
            groups[item.nodeid.split("[")[0]].append(item)
    for name, group in groups.items():
        marker = group[0].get_closest_marker("few")
        assert marker is not None
        usual, proved = (*marker.args, len(group))[:2]
        sooner = [item for item in group if not item.get_closest_marker("nightly")]
        drawn = random.Random(name).sample(sooner, len(sooner))
        free = [item for item in drawn if not any(map(item.get_closest_marker, LATER))]
        for item in free[usual:]:
            item.add_marker(pytest.mark.prove)
        rest = [item for item in drawn if item not in free[:usual]]
        for item in rest[proved:]:
            item.add_marker(pytest.mark.nightly)


def pytest_collection_finish() -> None:
    """Lets the garbage collector leave the tests themselves alone, and come seldom.

    Expressions and graphs are many small objects that stay; looking at them again and again takes
    a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Chooses how much effort LLVM puts into the kernels of a test."""
    proved = item.path.parent.name in SHIPPED and any(map(item.get_closest_marker, LATER))
    shipped = item.config.getoption("--shipped") or item.get_closest_marker("shipped") or proved
    machine.level = level if shipped else _quick_level
    machine.versions = versions if shipped else _quick_versions


def _quick_level(unit: machine.Unit) -> int:
    return 0 if len(unit.text) < LARGEST else level(unit)


def _quick_versions() -> tuple[str, ...]:
    """Kernels on disk are apart from those that users get."""
    return (*versions(), "level 0")


settings.register_profile("usual", deadline=None, print_blob=True, max_examples=30)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=70)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
settings.register_profile("quick", deadline=None, print_blob=True, max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
