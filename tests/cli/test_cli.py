"""The command line, called as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import linkwise as lw
from linkwise.cli import main, parser
from linkwise.cli.info import equation, tree_table

URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.9" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="5" velocity="1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="-0.5" offset="0.1"/></joint>
  <gazebo/>
</robot>"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    return str(path)


def test_info_shows_the_tree(arm, capsys):
    assert main(["info", arm]) == 0
    out = capsys.readouterr().out
    assert "arm: 2 bodies, 2 degrees of freedom (nq = 2), 3 kg" in out
    assert "shoulder" in out
    assert "[-1, 2] rad" in out
    assert "elbow = -0.5 shoulder + 0.1" in out
    assert "error: body 'lower'" in out
    assert "4 elements are not fully used (3 motion, 1 other)" in out
    assert ":11: <gazebo>" not in out
    assert main(["info", arm, "--report"]) == 0
    assert ":11:" in capsys.readouterr().out


def test_info_json_is_complete_and_standard(arm, capsys):
    assert main(["info", arm, "--json"]) == 0
    data = json.loads(capsys.readouterr().out, parse_constant=lambda text: pytest.fail(text))
    assert (data["nq"], data["nv"], data["total_mass"]) == (2, 2, 3.0)
    assert data["bodies"][0]["hinge"]["lower"] == [-1.0]
    assert data["bodies"][1]["hinge"]["upper"] == [None]
    assert data["couplings"][0]["terms"] == {"shoulder": [-0.5]}
    assert data["findings"][0]["code"] == "triangle"
    assert [item["line"] for item in data["load_report"]] == [7, 7, 7, 11]


def test_a_coupling_as_an_equation():
    terms = (("a", (-0.5, 2.0)), ("b", (0.0,)))
    assert equation(lw.Coupling("c", "x", terms)) == "x = -0.5 a + 2 a^2"
    assert equation(lw.Coupling("c", "x", (("a", (1.0,)),), -3.0)) == "x = 1 a - 3"
    assert equation(lw.Coupling("c", "x", (("a", (0.0,)),))) == "x = 0"


def test_info_options(arm, capsys):
    assert main(["info", arm, "--base", "free", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nv"] == 8
    assert main(["info", arm, "--check"]) == 1
    assert main(["info", "puma560", "--check"]) == 0
    capsys.readouterr()
    assert main(["info", "seven_dof_arm", "--nodes"]) == 0
    assert "hand" in capsys.readouterr().out


@pytest.mark.parametrize("name", [n for n in dir(lw.models) if n[0].islower()])
def test_info_of_every_built_in_mechanism(name, capsys):
    arguments = {"chain": "(5)", "random_tree": "(12,3)", "multi_arm": "(3)", "rod": "(4)"}
    assert main(["info", name + arguments.get(name, "")]) == 0
    assert " of freedom (nq = " in capsys.readouterr().out


def test_tree_lines(capsys):
    """Branches are drawn; a serial chain stays in its column."""
    b = lw.Builder("t")
    for name, parent in [("a", "world"), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "d")]:
        b.body(name, parent, lw.hinges.Pin(), inertia=lw.SpatialInertia.solid_sphere(1, 1))
    from linkwise.cli.info import tree_table

    rows = list(tree_table(b.build()))[2:]
    assert [row[5:9].rstrip() for row in rows] == ["a", "├ b", "│ c", "└ d", "  e"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["info", "missing.urdf"], "missing.urdf"),
        (["info", "puma56"], "did you mean 'puma560'"),
        (["info", "chain(x)"], "cannot build 'chain(x)'"),
        (["info", "chain()"], "chain("),
    ],
)
def test_errors_are_one_clear_line(arguments, text, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.startswith("linkwise: ")
    assert "Traceback" not in captured.err


def test_strict_names_the_line(arm, capsys):
    assert main(["info", arm, "--strict"]) == 2
    assert f"{arm}:11" in capsys.readouterr().err


@pytest.mark.slow  # tests/tour goes on the same tour, with a report
def test_tour_passes_all_its_checks(capsys):
    assert main(["tour", "--no-report", "--quick"]) == 0
    out = capsys.readouterr().out
    assert " 0 failed" in out
    assert "FAIL " not in out


@pytest.mark.prove
def test_tour_of_a_user_robot(arm, capsys):
    """It goes through all stations; that one of its bodies cannot exist is what fails."""
    assert main(["tour", arm, "--no-report", "--quick"]) == 1
    out = capsys.readouterr().out
    assert "shoulder" in out and out.count("FAIL ") == 1
    assert "FAIL errors of body 'lower', found by validation" in out


def test_as_a_program_with_a_reader_that_stops():
    command = [sys.executable, "-m", "linkwise", "info", "chain(3000)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""


def test_help_teaches(capsys):
    for arguments in (["--help"], ["info", "--help"], ["tour", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_deep_branches_do_not_widen_the_table_without_end(capsys):
    b = lw.Builder("comb")
    for i in range(2000):
        b.body(f"tooth_{i}", "world" if i == 0 else f"spine_{i - 1}", lw.hinges.Pin())
        b.body(f"spine_{i}", "world" if i == 0 else f"spine_{i - 1}", lw.hinges.Pin())
    lines = list(tree_table(b.build()))
    assert len(lines) == 4002
    assert max(map(len, lines)) < 160


def test_a_terminal_without_our_characters_gets_others():
    command = [sys.executable, "-m", "linkwise", "info", "dual_arm"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "m/s2" in done.stdout


def test_roots_are_folders_that_files_may_come_from(tmp_path, capsys):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "robot").mkdir()
    (tmp_path / "meshes" / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    )
    path = tmp_path / "robot" / "model.xml"
    path.write_text(
        "<mujoco><asset><mesh name='m' file='../meshes/m.obj'/></asset><worldbody><body><joint/>"
        "<geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
    )
    assert main(["info", str(path)]) == 2
    assert "lies outside the model's directory" in capsys.readouterr().err
    assert main(["info", str(path), "--roots", str(tmp_path / "meshes")]) == 0
    assert "166.667 kg" in capsys.readouterr().out
    for command in ("tour", "view", "bench", "export-c"):
        words = [command, str(path), "--roots", "here", "--roots", "there"]
        words += ["--quantity", "mass_matrix"] if command == "export-c" else []
        assert parser().parse_args(words).roots == ["here", "there"]
    assert parser().parse_args(["derive", "mass", "--roots", "here"]).roots == ["here"]
