"""What goes wrong is named, and what to do: too few data, still joints, wrong signs, gaps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError, TroubleWarning
from linkwise.identification import exciting_motion, identify_rollout, load_measurements, smoothed
from linkwise.spatial.array import Array

ARM = lw.models.pendulum(2)


def recorded() -> dict[str, Any]:
    m = exciting_motion(ARM, duration=4.0, step=0.02, tries=5, rounds=0)
    tau = lw.inverse_dynamics(ARM, m.q, m.v, m.vdot)
    tau += 0.05 * np.random.default_rng(0).standard_normal(tau.shape)
    return {"q": m.q, "v": m.v, "vdot": m.vdot, "tau": tau}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: 0.0 * x, "0 measured forces are too few .* 400 more are left out.*longer"),
        (lambda x: x[:3], "6 measured forces are too few for 10 base.*Record a longer motion"),
        (lambda x: x[:0], "no samples"),
        (lambda x: np.nan * x, r"not finite \(200 in q, 200 in v.*Leave out"),
        (lambda x: x * [1.0, 0.0], r"d\(pin_2\).* cannot be separated.*Move all joints"),
    ],
)
def test_recordings_that_show_too_little(change: Any, words: str) -> None:
    with pytest.raises(LinkwiseError, match=words):
        lw.identify(ARM, **{name: change(x) for name, x in recorded().items()})


def test_arrays_of_different_lengths_are_named() -> None:
    data = recorded()
    data["q"] = data["q"][1:]
    with pytest.raises(lw.ShapeError, match=r"199 of q, 200 of v, 200 of vdot, 200 of tau"):
        lw.identify(ARM, **data)


def test_wrong_units_and_signs_are_suspected() -> None:
    data = recorded()
    fit = lw.identify(ARM, **data)
    assert fit.error.max() < 0.1 and fit.distance < 2.0  # and no warning
    with pytest.warns(TroubleWarning, match=r"76 % .*'pin_2' unexplained. Check units"):
        lw.identify(ARM, **data | {"q": np.degrees(data["q"])})
    with pytest.warns(TroubleWarning, match="far from the estimate: .*Check the signs"):
        lw.identify(ARM, **data | {"tau": -data["tau"]})


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_forces_in_other_units_are_suspected(factor: float) -> None:
    data = recorded()
    with pytest.warns(
        TroubleWarning, match=r"are about (1e.03|0\.001) times those of 'pendulum_2'.*units"
    ):
        lw.identify(ARM, **data | {"tau": factor * data["tau"]})


def test_a_recording_too_short_for_its_bandwidth() -> None:
    t = 0.02 * np.arange(30)
    with pytest.raises(lw.ModelError, match=r"30 samples .* 5 Hz.*Record for longer, or raise"):
        smoothed(ARM, t, np.zeros((30, 2)), bandwidth=5.0)


def test_rollouts_at_rest_know_what_they_knew_before() -> None:
    """Deviations of numbers that nothing shows are those of the prior, 1/√prior in x."""
    t = 0.02 * np.arange(40)
    with pytest.warns(TroubleWarning, match=r"hardly shows .*Jyy\(link_2\)"):
        fit = identify_rollout(
            ARM, t, np.zeros((40, 2)), np.zeros((40, 2)), parameters=["inertia"], window=9
        )
    assert fit.deviation.max() > 10.0 and np.isfinite(fit.deviation).all()


def test_columns_of_unknown_joints_are_named(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text("t,q[pin_1],q[pin_2],q[pin_3],temperature\n0,1,2,3,4\n1,1,2,3,4\n")
    with pytest.warns(TroubleWarning, match=r"no joint of 'pendulum_2'.*: q\[pin_3\]\. Its joints"):
        read = load_measurements(ARM, file)
    assert read.q.tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("t", "words"),
    [
        (np.zeros(1), "1 samples are too few"),
        (np.array([0.0, 0.1, 0.2, 0.5, 0.6, 0.7]), r"0\.3 s from sample 2 to the next, and 0\.1 s"),
        (-0.1 * np.arange(6.0), r"not evenly spaced: -0\.1 s"),
    ],
)
def test_times_are_named(t: Array, words: str) -> None:
    none = np.zeros((len(t), 2))
    with pytest.raises(lw.ModelError, match=words):
        smoothed(ARM, t, none, bandwidth=1.0)
    with pytest.raises(lw.ModelError, match=words):
        identify_rollout(ARM, t, none, none)


@pytest.mark.parametrize(
    ("head", "row", "words"),
    [
        ("t,q[pin_1],q[pin_1],q[pin_2]", "0,1,2,3", r"two columns 'q\[pin_1\]'; leave one out"),
        (
            "t,q[pin_1] [deg],q[pin_2] [deg]",
            "0,1,2",
            r"'q\[pin_1\] \[deg\]'; convert it.* rad or m",
        ),
        ("t [ms],q[pin_1],q[pin_2]", "0,1,2", r"'t \[ms\]'; convert it: times are in s"),
        ("time,q[pin_1],q[pin_2]", "0,1,2", "no column 't', the times in seconds; it has time"),
        ("t;q[pin_1];q[pin_2]", "0,5;1,5;2", "'0,5' is not a number. Write decimal points"),
    ],
)
def test_tables_that_cannot_be_meant(tmp_path: Path, head: str, row: str, words: str) -> None:
    file = tmp_path / "run.csv"
    file.write_text(f"{head}\n{row}\n")
    with pytest.raises(LinkwiseError, match=words):
        load_measurements(ARM, file)


@pytest.mark.parametrize("between", [";", "\t"])
def test_cells_are_separated_by_other_signs(tmp_path: Path, between: str) -> None:
    file = tmp_path / "run.csv"
    rows = [["t [s]", "q[pin_1] [rad]", "q[pin_2]", "note", "note"], ["0", "1.5", "", "7", "8"]]
    file.write_text("\n".join(between.join(row) for row in rows))
    read = load_measurements(ARM, file)
    assert read.t.tolist() == [0.0] and read.q[0, 0] == 1.5 and np.isnan(read.q[0, 1])
