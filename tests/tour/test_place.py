"""Files that must not be overwritten, and places that cannot be written."""

from __future__ import annotations

import os

import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.cli.arguments import check_place
from linkwise.errors import ModelError


@pytest.fixture
def robot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lw.save(lw.models.pendulum(), tmp_path / "mine.urdf")
    return tmp_path / "mine.urdf"


def test_a_trial_leaves_nothing_behind(tmp_path):
    new, old = tmp_path / "new.html", tmp_path / "old.html"
    old.write_text("kept")
    check_place("--html", str(new), "puma560", None)
    check_place("--report", str(old), "puma560", None)
    assert not new.exists()
    assert old.read_text() == "kept"


@pytest.mark.parametrize("alias", ["mine.urdf", "./mine.urdf", "link.urdf", "hard.urdf"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["tour", "mine.urdf", "--report"],
        ["view", "mine.urdf", "--html"],
    ],
)
def test_what_is_read_is_not_overwritten(arguments, alias, robot, capsys):
    (robot.parent / "link.urdf").symlink_to(robot)
    os.link(robot, robot.parent / "hard.urdf")
    before = robot.read_bytes()
    assert main([*arguments, alias]) == 2
    captured = capsys.readouterr()
    assert "would overwrite mine.urdf" in captured.err and arguments[-1] in captured.err
    assert captured.out == ""
    assert robot.read_bytes() == before


@pytest.mark.parametrize("option", [[], ["--robot", "mine.urdf"]])
def test_neither_the_recording_nor_its_robot_is_overwritten(option, robot, capsys):
    mech = lw.load(robot)
    lw.simulate(mech, duration=0.01).save(robot.parent / "run.npz")
    files = {"run.npz": (robot.parent / "run.npz").read_bytes(), "mine.urdf": robot.read_bytes()}
    target = "mine.urdf" if option else "run.npz"
    assert main(["view", "run.npz", *option, "--html", target]) == 2
    assert f"would overwrite {target}" in capsys.readouterr().err
    assert {name: (robot.parent / name).read_bytes() for name in files} == files


@pytest.mark.parametrize(
    ("place", "said"), [("", "is a folder"), ("nowhere/x.html", "there is no folder")]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["tour", "--report"],
        ["view", "pendulum", "--html"],
    ],
)
def test_a_place_that_cannot_be_is_told_first(arguments, place, said, tmp_path, capsys):
    assert main([*arguments, str(tmp_path / place)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_what_the_system_forbids_is_told(tmp_path):
    """A name longer than any file system has is refused to everybody, the administrator too."""
    with pytest.raises(ModelError, match=r"--report .* cannot be written: File name too long"):
        check_place("--report", str(tmp_path / ("x" * 300)))


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no such device here")
def test_a_device_may_be_read_and_written():
    check_place("--html", os.devnull, os.devnull)
