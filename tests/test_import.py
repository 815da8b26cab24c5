"""`import linkwise` is light: it loads NumPy and the package, and nothing heavy."""

import subprocess
import sys

import pytest

import linkwise as lw

HEAVY = (
    "scipy",
    "matplotlib",
    "mujoco",
    "pinocchio",
    "llvmlite",
    "gymnasium",
    "dm_control",
    "lxml",
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    code = f"import sys, linkwise; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code) == ""


@pytest.mark.parametrize("use", ["linkwise.models.chain(2)", "linkwise.models.puma560()"])
def test_sample_mechanisms_need_only_the_core(use):
    code = f"import sys, linkwise; {use}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code) == ""


def test_import_survives_missing_extras():
    """An optional package that cannot be imported must not stop `import linkwise`."""
    code = f"""
import sys
for name in {HEAVY!r}:
    sys.modules[name] = None  # makes `import name` raise ImportError
import linkwise
print(linkwise.models.chain(1).nv)
"""
    assert run(code) == "1"


def test_a_name_of_a_namespace_is_pointed_out():
    with pytest.raises(AttributeError, match=r"it is lw\.dynamics\.kinetic_energy"):
        lw.kinetic_energy  # noqa: B018
    with pytest.raises(AttributeError, match="'frwrd_dynamics'; dir"):
        lw.frwrd_dynamics  # noqa: B018


def test_every_public_name_exists():
    code = "import linkwise as lw; print(*[n for n in lw.__all__ if not hasattr(lw, n)])"
    assert run(code) == ""
