"""Short runs of the fuzzers, and the cases that once failed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.io.mjcf.mesh_file import read_mesh_file
from tests.fuzz import meshes
from tests.fuzz.case import run_range

CASES = {"models": 500, "meshes": 300, "recordings": 40, "kernels": 150, "commands": 60}
FEW = {"models": 60, "meshes": 60, "recordings": 8, "kernels": 30, "commands": 12}
"""Of each fuzzer, how many cases `make prove` and `make test` run."""

EXPECTED = {
    "models": {"loaded", "ParseError"},
    "meshes": {"loaded", "shown", "ParseError"},
    "recordings": {"ParseError"},
    "kernels": {"from disk", "compiled again", "compiled again and from disk"},
    "commands": {"exit 0", "exit 2"},
}
"""Verdicts that must be among them: a fuzzer must not only make rubbish."""


@pytest.mark.parametrize(
    ("target", "count"),
    [*FEW.items(), *(pytest.param(*case, marks=pytest.mark.prove) for case in CASES.items())],
)
def test_odd_files_and_arguments_never_surprise(target, count):
    outcomes = list(run_range(target, 0, count))
    failures = [f"case {o.number}: {o.trouble}" for o in outcomes if o.trouble]
    assert not failures, "\n".join(failures)
    assert EXPECTED[target] <= {o.verdict for o in outcomes}


def model_of(folder, kind, data, mode):
    (folder / f"mesh.{kind}").write_bytes(data)
    path = folder / "model.xml"
    path.write_text(
        f'<mujoco><asset><mesh name="m" file="mesh.{kind}" inertia="{mode}"/></asset><worldbody>'
        '<body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    return path


def test_a_vertex_far_away_leaves_no_body_without_mass(tmp_path):
    """About the first point the volume was one; about the centre of mass all digits were lost."""
    seed = meshes.seed("text.stl")
    before, corner, after = seed.rpartition(b"vertex 1.0 0.0 0.0")
    far = before + corner.replace(b"1.0", b"1e38") + after
    assert lw.load(model_of(tmp_path, "stl", seed, "exact")).total_mass > 5990.0
    with pytest.raises(lw.ParseError, match="the volume of the mesh is"):
        lw.load(model_of(tmp_path, "stl", far, "exact"))


@pytest.mark.parametrize(("kind", "at"), [("stl", 96), ("msh", 16)])
def test_a_number_that_signals_is_refused_without_a_warning(tmp_path, kind, at):
    """0x7f800001 is a NaN that NumPy warns of when it is converted."""
    seed = meshes.seed(kind)
    path = tmp_path / f"mesh.{kind}"
    path.write_bytes(seed[:at] + b"\x01\x00\x80\x7f" + seed[at + 4 :])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lw.ParseError, match="not finite"):
            read_mesh_file(str(path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["export-c", "pendulum", "--quantity", "mass_matrix", "-o", "a\0b"],
        ["tour", "--report", "a\0b.html"],
        ["view", "pendulum", "--html", "a\0b.html"],
    ],
)
def test_names_that_no_file_has_are_refused(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("linkwise: ")
    assert not list(tmp_path.iterdir())


def test_a_coupling_takes_no_power_beyond_its_last():
    """The square of 1e200 overflows, and a straight coupling has no square."""
    coupling = lw.Coupling("c", "b", (("a", (2.0,)),), 1.0)
    at = {"a": np.array(1e200)}
    with np.errstate(over="raise"):
        assert coupling.value(at) == 2e200
        assert coupling.slopes(at)["a"] == 2.0 and coupling.curvatures(at)["a"] == 0.0
    bent = lw.Coupling("c", "b", (("a", (2.0, 3.0, 4.0)),), 1.0)
    at = {"a": np.array(0.5)}
    assert bent.value(at) == 1.0 + 2.0 * 0.5 + 3.0 * 0.25 + 4.0 * 0.125
    assert bent.slopes(at)["a"] == 2.0 + 6.0 * 0.5 + 12.0 * 0.25
    assert bent.curvatures(at)["a"] == 6.0 + 24.0 * 0.5
