"""`linkwise simulate` and `linkwise plan`."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main


def test_a_robot_falls_and_the_recording_can_be_read(tmp_path, capsys):
    file = tmp_path / "run.npz"
    assert main(["simulate", "puma560", "--duration", "0.1", "--save", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "energy" in shown and "saved" in shown
    recording = lw.load_recording(file, lw.models.puma560())
    assert np.abs(recording.q[-1] - recording.q[0]).max() > 1e-3


def test_joints_are_held_where_they_begin(tmp_path, capsys):
    file, mech = tmp_path / "run.npz", lw.models.seven_dof_arm()
    arguments = ["--duration", "0.2", "--hold", "--random", "3", "--save", str(file)]
    assert main(["simulate", "seven_dof_arm", *arguments]) == 0
    recording = lw.load_recording(file, mech)
    assert np.abs(recording.q - mech.random(3)).max() < 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["puma56"], "did you mean 'puma560'"),
        (["puma560", "--integrator", "magic"], "magic"),
        (["puma560", "--save", "nowhere/run.npz"], "no folder"),
        (["puma560", "--duration", "-1"], "duration"),
        (["humanoid", "--hold"], "fixed base"),
    ],
)
def test_errors_are_clear(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *arguments]) == 2
    assert message in capsys.readouterr().err


HOPPER = """<mujoco model="hopper"><worldbody><geom name="floor" type="plane" size="0 0 0.1"/>
<body name="base" pos="0 0 0.6"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="2"/>
<body name="leg" pos="0 0 -0.05"><joint name="hip" axis="0 1 0" damping="0.1"/>
<geom type="box" pos="0 0 -0.15" size="0.05 0.1 0.15" mass="0.5"/></body></body></worldbody>
<actuator><position name="hip" joint="hip" kp="50" kv="2"/></actuator></mujoco>"""


def test_a_robot_stands_on_its_floor_with_its_actuators(tmp_path, capsys):
    (tmp_path / "hopper.xml").write_text(HOPPER)
    arguments = ["simulate", str(tmp_path / "hopper.xml"), "--duration", "0.2"]
    save = tmp_path / "run.npz"
    assert main([*arguments, "--save", str(save)]) == 0
    recording = lw.load_recording(save)
    assert recording.integrator == "implicit" and np.ptp(recording.q, axis=0).max() < 1e-5
    assert recording.q[0, 6] == pytest.approx(0.35) and "control" in recording
    assert main([*arguments, "--command", "hip=0.3", "--save", str(save)]) == 0
    assert lw.load_recording(save).q[-1, 7] > 0.1
    assert main([*arguments, "--bare", "--save", str(save)]) == 0
    bare = lw.load_recording(save)
    assert bare.integrator == "rk4" and bare.q[-1, 6] == pytest.approx(-0.5 * 9.81 * 0.2**2)
    capsys.readouterr()
    assert main([*arguments, "--command", "hop=1"]) == 2
    assert "did you mean 'hip'" in capsys.readouterr().err


def test_sweeps_are_printed_with_their_cost(capsys):
    assert main(["plan", "mass^-1 (tau - bias)", "--derive", "--robot", "puma560"]) == 0
    shown = capsys.readouterr().out
    assert "for k = tips" in shown and "3 passes" in shown and "operations" in shown
