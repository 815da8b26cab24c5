"""`linkwise simulate` and the joint vectors it reads."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import arguments, main
from linkwise.cli.simulate import controller
from linkwise.errors import LinkwiseError
from linkwise.simulation import timetable

ARM = lw.models.planar_rpp()


def run(*arguments: str) -> int:
    return main(["simulate", *arguments])


def test_it_prints_what_the_recording_tells(capsys):
    assert run("pendulum", "--q", "0.5", "--duration", "0.05") == 0
    out = capsys.readouterr().out
    assert "0.05 s in 50 steps of 0.001 s, rk4" in out
    assert "energy drift" in out


def test_the_motion_is_that_of_simulate(tmp_path):
    file = tmp_path / "run.npz"
    options = ("--q", "0.4,0.2,-0.1", "--v=-1,0.5,0", "--tau", "0.1,0,0", "--record", str(file))
    assert run("planar_rpp", "--duration", "0.1", "--step", "0.002", *options) == 0
    found = lw.load_recording(file, ARM)
    expected = lw.simulate(
        ARM, [0.4, 0.2, -0.1], [-1.0, 0.5, 0.0], tau=[0.1, 0.0, 0.0], duration=0.1, step=0.002
    )
    assert np.array_equal(found.q, expected.q)
    assert found.name == "planar_rpp" and found.step == 0.002


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet", "h5"])
def test_every_format(suffix, tmp_path, capsys):
    pytest.importorskip({"parquet": "pyarrow", "h5": "h5py"}.get(suffix, "numpy"))
    file = tmp_path / f"run.{suffix}"
    assert run("pendulum", "--duration", "0.02", "--record", str(file)) == 0
    assert lw.load_recording(file).duration == pytest.approx(0.02)
    assert str(file) in capsys.readouterr().out


def test_pictures_and_pages(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("viser")
    plot, html, report = (tmp_path / name for name in ("run.png", "run.html", "report.html"))
    wanted = ("--plot", str(plot), "--html", str(html), "--report", str(report))
    assert run("pendulum", "--q", "0.5", "--duration", "0.1", *wanted) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "<html" in html.read_text(encoding="utf-8")
    page = report.read_text(encoding="utf-8")
    assert page.count("<picture>") == 2 and page.count("<iframe") == 1
    assert "relative energy drift" in page
    assert ">Linkwise, a motion<" in page and "a tour" not in page.partition("<main>")[0]


def test_loops_are_closed_first(capsys):
    assert run("four_bar", "--q", "crank_pin=0.3", "--v", "crank=2", "--duration", "0.01") == 0
    assert "loop drift" in capsys.readouterr().out


# ---------------------------------------------------------------------------------- controllers


def test_gravity_carries_the_weight():
    mech = lw.models.puma560()
    q = mech.random(1)
    law = controller(mech, q, "gravity")
    assert law is not None
    vdot = lw.forward_dynamics(mech, q, np.zeros(6), law(0.0, q, np.zeros(6)))
    assert np.abs(vdot).max() < 1e-10


def test_hold_draws_back_as_an_oscillator_does():
    """ë + 20 ė + 100 e = 0 from e = 0, ė = -1: e = -t exp(-10 t)."""
    mech = lw.models.puma560()
    q, v = mech.random(1), np.ones(6)
    law = controller(mech, q, "hold")
    rec = lw.simulate(mech, q, v, duration=0.3, controller=law, passive=False)
    away = rec.q - q
    assert np.allclose(away, (rec.t * np.exp(-10.0 * rec.t))[:, None], atol=1e-6)


def test_a_free_base_is_not_driven():
    mech = lw.models.quadruped()
    q = mech.neutral()
    for name in ("gravity", "hold"):
        law = controller(mech, q, name)
        assert law is not None
        tau = law(0.0, q, np.zeros(mech.nv))
        assert np.array_equal(tau[mech.v_slice(mech.bodies[0].hinge_name)], np.zeros(6))
        assert np.abs(tau).max() > 0.0


# -------------------------------------------------------------------------------- joint vectors


def test_vectors_by_number_and_by_name():
    mech = lw.models.puma560()
    assert np.array_equal(arguments.positions(mech, None), mech.neutral())
    assert np.array_equal(arguments.positions(mech, "1,2,3,4,5,6"), np.arange(1.0, 7.0))
    some = arguments.positions(mech, "joint_3=0.5,joint_1=-1")
    assert np.array_equal(some, [-1.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    assert np.array_equal(arguments.velocities(mech, "link_2=3", "--v"), 3.0 * np.eye(6)[1])
    assert np.array_equal(arguments.positions(mech, "random:4"), mech.random(4))
    assert np.array_equal(arguments.velocities(mech, "random", "--v"), mech.random_velocity(0))


def test_a_coordinate_of_a_hinge_with_several():
    mech = lw.models.humanoid()
    name = mech.velocity_names[8]
    v = arguments.velocities(mech, f"{name}=2", "--v")
    assert np.array_equal(np.flatnonzero(v), [8])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2", "--q has 2 numbers"),
        ("1", "--q has 1 number, '1'; there are 6"),
        ("abc", "--q has 'abc', which is not a number"),
        ("joint_1", "NAME=VALUE"),
        ("joint_9=1", "did you mean"),
        ("joint_1=x", "'x'"),
        ("joint_1=nan", "finite"),
        ("joint_1=1,2", "mixes"),
        ("random:x", "random:7"),
        ("1,2,3,4,5,inf", "finite"),
    ],
)
def test_bad_vectors_are_told(text, said):
    with pytest.raises(LinkwiseError, match="--q") as caught:
        arguments.positions(lw.models.puma560(), text)
    assert said in str(caught.value)


def test_a_hinge_with_several_numbers_is_asked_for_by_one_of_them():
    with pytest.raises(LinkwiseError, match=r"waist.*which has 2 numbers: waist.angle_1"):
        arguments.positions(lw.models.humanoid(), "waist=1")


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.urdf"], "nothing.urdf"),
        (["pendulum", "--duration", "-1"], "duration"),
        (["pendulum", "--step", "0"], "step"),
        (["pendulum", "--integrator", "rk5"], "use one of 'euler', 'rk4'"),
        (["pendulum", "--controller", "pid"], "none, gravity, hold"),
        (["pendulum", "--limits", "perhaps"], "limits"),
        (["pendulum", "--record", "run.txt"], ".parquet"),
        (["pendulum", "--record", "nowhere/run.csv"], "no folder"),
        (["pendulum", "--plot", "run.bmp"], ".png"),
        (["pendulum", "--html", "nowhere/run.html"], "no folder"),
        (["pendulum", "--q", "1,2,3"], "--q"),
    ],
)
def test_errors_are_clear_and_end_with_status_two(arguments, said, capsys):
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("linkwise: ") and said in err
    assert "Traceback" not in err


def test_what_was_computed_before_it_diverged_is_recorded(tmp_path, capsys):
    """Euler's steps of half a second make a pendulum that spins faster and faster."""
    file = tmp_path / "run.csv"
    options = ("--v", "1000,-900", "--step", "0.2", "--duration", "400", "--integrator", "euler")
    status = run("pendulum(2)", *options, "--record", str(file))
    err = capsys.readouterr().err
    assert status == 2 and err.startswith("linkwise: ")
    assert len(lw.load_recording(file)) >= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pendulum", "--duration", "long"], "--duration: invalid float value: 'long'"),
        (["planar_rpp", "--q", "-0.1,0.2,0"], "is written --q=-0.1,0.2,0;"),
        (["planar_rpp", "--tau", "-.1,0,0", "--step", "1"], "--tau=-.1,0,0;"),
        (["planar_rpp", "--q", "--step", "1"], "argument --q: expected one argument;"),
        (["planar_rpp", "--record"], "--record: expected one argument;"),
        ([], "required: ROBOT"),
        (["pendulum", "--durations", "1"], "unrecognized arguments: --durations 1"),
    ],
)
def test_what_cannot_be_parsed_is_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("linkwise: ") and err.count("\n") == 1
    assert said in err
    assert err.endswith("; see linkwise simulate --help\n")


@pytest.mark.parametrize("arguments", [["simulat"], []])
def test_without_a_command_the_help_of_all_is_named(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.endswith("; see linkwise --help\n")
    assert "simulate" in err or "COMMAND" in err


def test_a_motion_that_was_interrupted_is_kept_and_ends_with_status_130(
    tmp_path, capsys, monkeypatch
):
    """Half of 10¹² steps of a millisecond are a long time: the number is told first."""
    file, bar = tmp_path / "run.csv", timetable.Progress.__call__

    def impatient(self, t: float) -> None:
        bar(self, t)
        raise KeyboardInterrupt

    monkeypatch.setattr(timetable.Progress, "__call__", impatient)
    asked = ("--duration", "5e8", "--integrator", "euler", "--record", str(file))
    assert run("pendulum", "--q", "0.5", *asked) == 130
    captured = capsys.readouterr()
    assert "5e+11 steps of 0.001 s are ahead; Ctrl-C" in captured.err
    assert "interrupted at t" in captured.out
    assert len(lw.load_recording(file)) >= 2


def test_short_motions_are_not_counted_aloud(capsys):
    assert run("pendulum", "--duration", "0.01") == 0
    assert capsys.readouterr().err == ""
