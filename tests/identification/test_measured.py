"""Measurements from files, forces from outside, parts of a recording, and simulated motions."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.identification import model
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array

KINDS = ("inertia", "damping")


def arm(scale: float = 1.0, damping: float = 0.4) -> lw.Mechanism:
    """Two links in a vertical plane."""
    b = lw.Builder("arm", gravity=(0.0, -9.81, 0.0))
    inboard, parent = (0.0, 0.0, 0.0), "world"
    for name, m in (("upper", 2.0 * scale), ("lower", 1.0 / scale)):
        rod = lw.SpatialInertia.solid_box(m, (0.5, 0.06, 0.06))
        rod = rod.moved(lw.Pose.translation((0.25, 0.0, 0.0)))
        pin, drive = lw.hinges.Pin((0, 0, 1)), lw.Drive(damping=damping)
        b = b.body(name, parent, pin, inertia=rod, inboard=inboard, drive=drive)
        inboard, parent = (0.5, 0.0, 0.0), name
    return b.node("hand", "lower", (0.5, 0.0, 0.0)).build()


@cache
def motion() -> tuple[Array, Array, Array, Array]:
    m = lw.identification.exciting_motion(
        arm(), duration=4.0, step=0.01, parameters=KINDS, tries=6, rounds=0
    )
    return m.t, m.q, m.v, m.vdot


def forces(mech: lw.Mechanism) -> Array:
    _, q, v, vdot = motion()
    return lw.inverse_dynamics(mech, q, v, vdot) + mech.damping * v


def true_base() -> Array:
    base = base_of(arm(), KINDS, [0, 1])
    return base.matrix @ model.nominal(arm(), KINDS)


def table(path: Path, *, gap: bool = False, push: Array | None = None) -> Path:
    t, q, v, vdot = motion()
    tau = forces(arm())
    rows = ["t [s],q[upper] [rad],q[lower] [rad],tau[upper],tau[lower],note [1]"]
    if push is not None:
        tau = lw.inverse_dynamics(arm(), q, v, vdot, forces={"hand": push}) + arm().damping * v
        rows[0] += "".join(f",f[hand].{i} [N]" for i in range(6))
    for k, time in enumerate(t):
        cells = [time, *q[k], *tau[k], 0.0, *([] if push is None else push[k])]
        words = [repr(float(x)) for x in cells]
        if gap and k == 100:
            words[1] = ""
        rows.append(",".join(words))
    path.write_text("\n".join(rows))
    return path


def test_tables_of_both_kinds(tmp_path: Path) -> None:
    data = lw.identification.load_measurements(arm(), table(tmp_path / "run.csv", gap=True))
    t, q, _, _ = motion()
    assert np.isnan(data.q[100, 0]) and data.v is None and data.vdot is None
    assert np.array_equal(np.delete(data.q, 100, axis=0), np.delete(q, 100, axis=0))
    assert data.tau is not None and np.array_equal(data.tau, forces(arm()))
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"t": t, "q[upper]": q[:, 0], "q[lower]": q[:, 1], "who": ["x"] * len(t)}
    parquet.write_table(pa.table(columns), tmp_path / "run.parquet")
    other = lw.identification.load_measurements(arm(), tmp_path / "run.parquet")
    assert np.array_equal(other.q, q) and np.array_equal(other.t, t) and other.tau is None


def test_tables_that_are_wrong(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("t,q[upper]\n0,1\n")
    with pytest.raises(lw.ModelError, match=r"no column 'q\[lower\]'"):
        lw.identification.load_measurements(arm(), bad)
    bad.write_text("t,q[upper],q[lower]\n0,1,2\n0.1,one,2\n")
    with pytest.raises(lw.ParseError, match=r"bad.csv:3: 'one' is not a number"):
        lw.identification.load_measurements(arm(), bad)
    with pytest.raises(lw.ParseError, match="cannot be read"):
        lw.identification.load_measurements(arm(), tmp_path / "none.csv")


def test_the_command_identifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lw.save(arm(1.3, 0.1), tmp_path / "arm.xml")
    run, out = table(tmp_path / "run.csv"), tmp_path / "identified.xml"
    words = ["identify", str(tmp_path / "arm.xml"), str(run), "--bandwidth", "8"]
    words += ["--parameters", "inertia,damping", "--folds", "2", "--save", str(out)]
    assert main([*words, "--plot", str(tmp_path / "fit.png")]) == 0
    said = capsys.readouterr().out
    assert "filtered at 8 Hz" in said and "base parameters" in said and "2 parts" in said
    assert (tmp_path / "fit.png").stat().st_size > 1e4
    mech = lw.load(out)
    q, v, tau = np.array([0.3, -0.4]), np.array([0.5, 0.2]), np.array([1.0, 2.0])
    ours, true = (lw.forward_dynamics(x, q, v, tau) for x in (mech, arm()))
    assert np.allclose(ours, true, rtol=0.03)


def test_forces_at_nodes_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same numbers from pushed and free motions; with a report."""
    t = motion()[0]
    push = np.zeros((len(t), 6))
    push[:, 3], push[:, 4] = 20.0 * np.sin(2.0 * t), 10.0 * np.cos(3.0 * t)
    run = table(tmp_path / "run.csv", push=push)
    data = lw.identification.load_measurements(arm(), run)
    assert np.array_equal(data.forces["hand"], push)
    lw.save(arm(1.3, 0.1), tmp_path / "arm.xml")
    page = tmp_path / "fit.html"
    words = ["identify", str(tmp_path / "arm.xml"), str(run), "--bandwidth", "10"]
    words += ["--parameters", "inertia,damping", "--folds", "2", "--report", str(page)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    errors = [float(x) for x in re.findall(r": \S+, (\S+) % of its force", shown)]
    assert len(errors) == 2 and max(errors) < 0.1
    low_high = re.findall(r": (\S+) to (\S+) % of its force", shown)
    assert len(low_high) == 2 and max(float(x[1]) for x in low_high) < 0.2
    text = page.read_text()
    assert "data:image/png;base64," in text and "mcx(lower)" in text and "95 % from" in text
    few = run.read_text().replace("f[hand].5", "g").splitlines()
    (tmp_path / "few.csv").write_text("\n".join(few))
    with pytest.raises(lw.ModelError, match=r"no column 'f\[hand\]\.5'"):
        lw.identification.load_measurements(arm(), tmp_path / "few.csv")
    (tmp_path / "few.csv").write_text("\n".join(few).replace("f[hand]", "f[nose]"))
    with pytest.raises(lw.ModelError, match="nose"):
        lw.identification.load_measurements(arm(), tmp_path / "few.csv")


def test_forces_from_outside_are_taken_away() -> None:
    _, q, v, vdot = motion()
    rng = np.random.default_rng(0)
    push = 5.0 * rng.standard_normal((len(q), 6))
    tau = lw.inverse_dynamics(arm(), q, v, vdot, forces={"hand": push}, forces_frame="world")
    tau = tau + arm().damping * v
    fit = lw.identify(
        arm(1.3, 0.1),
        q,
        v,
        vdot,
        tau,
        parameters=KINDS,
        forces={"hand": push},
        forces_frame="world",
    )
    assert np.allclose(fit.estimate, true_base(), rtol=1e-6, atol=1e-8)
    without = lw.identify(arm(1.3, 0.1), q, v, vdot, tau, parameters=KINDS)
    assert np.abs(without.estimate - true_base()).max() > 1e-2
    parts = lw.identification.cross_validate(
        arm(1.3, 0.1),
        q,
        v,
        vdot,
        tau,
        folds=2,
        parameters=KINDS,
        forces={"hand": push},
        forces_frame="world",
    )
    assert parts.error.max() < 1e-5
    with pytest.raises(lw.ShapeError, match="force on 'hand'"):
        lw.identify(arm(), q, v, vdot, tau, forces={"hand": np.zeros(6)})


def test_each_part_is_predicted_from_the_others() -> None:
    _, q, v, vdot = motion()
    rng, tau = np.random.default_rng(1), forces(arm())
    tau = tau + 0.1 * rng.standard_normal(tau.shape)
    result = lw.identification.cross_validate(arm(1.3), q, v, vdot, tau, folds=4, parameters=KINDS)
    noise = 0.1 / np.std(tau, axis=0)
    assert result.error.shape == (4, 2)
    assert np.all(result.error > 0.5 * noise) and np.all(result.error < 4.0 * noise)
    assert np.all(result.spread < 0.1 * np.abs(true_base()).max())
    # a model without dampers predicts worse than its residual says
    bare = lw.identification.cross_validate(
        arm(1.3, 0.0), q, v, vdot, tau, folds=4, parameters=["inertia"]
    )
    assert bare.error.mean() > 1.5 * result.error.mean()


def test_positions_and_forces_without_derivatives() -> None:
    """Through rollouts: a coarse recording, where differences would be useless."""
    rng = np.random.default_rng(3)
    steps, h = 400, 0.01
    t = h * np.arange(steps + 1)
    push = np.stack([8.0 * np.sin(3.1 * t) + 5.0 * np.sin(7.7 * t), 4.0 * np.sin(5.3 * t)], axis=1)
    hold = lw.gravity_force(arm(), np.zeros(2)) * 0.5
    tau = push + hold
    truth = lw.rollout(arm(), [-1.0, 0.3], [0.0, 0.0], tau=tau[:-1], duration=steps * h, step=h)
    q = truth.q + 1e-3 * rng.standard_normal(truth.q.shape)
    fit = lw.identification.identify_rollout(arm(1.25, 0.2), t, q, tau, parameters=KINDS, window=40)
    assert fit.converged and fit.before > 5.0 * fit.noise
    assert np.isclose(fit.noise, 1e-3, rtol=0.1)
    off = (fit.estimate - true_base()) / fit.deviation
    assert np.allclose(np.diff(fit.interval(0.95))[:, 0], 2 * 1.96 * fit.deviation, rtol=1e-3)
    assert np.abs(off).max() < 4.0
    assert np.allclose(fit.estimate, true_base(), atol=0.05 * np.abs(true_base()).max())
    # a gap costs one window: the same as leaving its samples out at the end
    short, holes = q[:123], q[:164].copy()
    holes[130, 1] = np.nan
    less, few = (
        lw.identification.identify_rollout(
            arm(1.25, 0.2), t[: len(x)], x, tau[: len(x)], parameters=KINDS, window=40
        )
        for x in (short, holes)
    )
    assert (less.gaps, few.gaps) == (0, 1) and "1 windows with gaps" in str(few)
    assert np.allclose(few.estimate, less.estimate, rtol=1e-9)
    with pytest.raises(lw.ModelError, match="each window of 40 samples has a gap"):
        lw.identification.identify_rollout(arm(), t, q + np.nan, tau, parameters=KINDS, window=40)
    with pytest.raises(lw.ModelError, match="friction, which do not act in steps of 'rk4'"):
        lw.identification.identify_rollout(
            arm(), t, q, tau, parameters=["friction"], integrator="rk4"
        )
