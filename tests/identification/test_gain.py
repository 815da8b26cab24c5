"""Gains of motors from currents: what is known, what fixes their scale, and how well."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.identification import model
from linkwise.identification.estimate import Identification
from linkwise.identification.least_squares import Equations
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array
from tests.identification.test_measured import arm, forces, motion

KINDS = ("inertia", "armature", "damping")
ALL = (*KINDS, "gain")
GAINS = np.array([12.0, -3.0])


@cache
def truth() -> Array:
    base = base_of(arm(), KINDS, [0, 1])
    return base.matrix @ model.nominal(arm(), KINDS)


def guess() -> lw.Mechanism:
    return arm(1.3, 0.1)


def test_without_a_known_force_only_ratios_are_known() -> None:
    _, q, v, vdot = motion()
    fit = lw.identify(guess(), q, v, vdot, forces(arm()) / GAINS, parameters=ALL)
    assert fit.references == ("upper",) and "no known force fixes the scale" in str(fit)
    assert all(name.endswith("/ gain(upper)") for name in fit.names)
    assert fit.names[-1] == "(gain(lower)) / gain(upper)" and "gain(upper)" not in fit.names
    assert np.allclose(fit.estimate, np.append(truth(), GAINS[1]) / GAINS[0], atol=1e-8)
    # the mechanism has a scale near the one that was given, and the same ratios
    ratio = fit.parameters["gain(lower)"] / fit.parameters["gain(upper)"]
    assert np.isclose(ratio, GAINS[1] / GAINS[0]) and 6.0 < fit.parameters["gain(upper)"] < 24.0
    assert max(fit.validate(q, v, vdot, forces(arm()) / GAINS).values()) < 1e-6
    # any other scale fits as well: this is no choice of the search
    other = lw.identify(arm(3.0, 2.0), q, v, vdot, forces(arm()) / GAINS, parameters=ALL)
    assert np.allclose(other.estimate, fit.estimate, atol=1e-8)


def loaded() -> tuple[Array, Array]:
    """Forces of the arm with a box of 2 kg in its hand, and of the box alone."""
    _, q, v, vdot = motion()
    box = lw.SpatialInertia.solid_box(2.0, (0.1, 0.1, 0.1))
    upper, lower = arm().bodies
    carried = replace(lower, inertia=lower.inertia + box.moved(lw.Pose.translation((0.5, 0, 0))))
    heavy = replace(arm(), bodies=(upper, carried))
    load = lw.inverse_dynamics(heavy, q, v, vdot) - lw.inverse_dynamics(arm(), q, v, vdot)
    return forces(arm()) + load, load


def twice() -> tuple[tuple[Array, Array, Array], Array, Array]:
    """A motion without a load and with one: states, currents, and the known forces."""
    q, v, vdot = (np.concatenate([x, x]) for x in motion()[1:])
    heavy, load = loaded()
    u = np.concatenate([forces(arm()), heavy]) / GAINS
    return (q, v, vdot), u, -np.concatenate([0.0 * load, load])


def test_a_known_load_fixes_the_scale() -> None:
    state, u, applied = twice()
    fit = lw.identify(guess(), *state, u, parameters=ALL, applied=applied)
    assert not fit.references and fit.names[-2:] == ("gain(upper)", "gain(lower)")
    assert np.allclose(fit.estimate, [*truth(), *GAINS], atol=1e-6)
    assert max(fit.validate(*state, u, applied=applied).values()) < 1e-6
    assert min(fit.validate(*state, u).values()) > 0.01  # the load is missing
    parts = lw.identification.cross_validate(
        guess(), *state, u, folds=4, parameters=ALL, applied=applied
    )
    assert parts.error.max() < 1e-5


def test_other_forces_that_fix_the_scale() -> None:
    _, q, v, vdot = motion()
    tau = forces(arm())
    # the force of one joint was measured: the other follows, since they share inertias
    mixed = np.stack([tau[:, 0], tau[:, 1] / GAINS[1]], axis=1)
    fit = lw.identify(guess(), q, v, vdot, mixed, parameters=ALL, commanded=["lower"])
    assert not fit.references
    assert np.allclose(fit.estimate, [*truth(), GAINS[1]], atol=1e-7)
    # inertias are known, gains and dampers are not
    right = model.with_numbers(guess(), ("inertia",), model.nominal(arm(), ("inertia",)))
    fit = lw.identify(right, q, v, vdot, tau / GAINS, parameters=["damping", "gain"])
    assert np.allclose(fit.estimate, [0.4, 0.4, *GAINS])
    fit = lw.identify(arm(), q, v, vdot, tau / GAINS, parameters=["gain"])
    assert fit.names == ("gain(upper)", "gain(lower)") and np.allclose(fit.estimate, GAINS)
    # a measured push at the hand
    push = np.zeros((len(q), 6))
    push[:, 3:] = 20.0 * np.sin(np.outer(np.arange(len(q)), [0.05, 0.08, 0.11]))
    pushed = lw.inverse_dynamics(arm(), q, v, vdot, forces={"hand": push}) + arm().damping * v
    given = {"parameters": ALL, "forces": {"hand": push}}
    fit = lw.identify(guess(), q, v, vdot, pushed / GAINS, **given)  # pyright: ignore
    assert np.allclose(fit.estimate, [*truth(), *GAINS], atol=1e-6)


def test_separate_robots_have_separate_scales() -> None:
    """Two arms without a joint in common, and the force of one of them is measured."""
    b = lw.Builder("two", gravity=(0.0, -9.81, 0.0))
    rod = lw.SpatialInertia.solid_box(1.0, (0.5, 0.06, 0.06))
    rod = rod.moved(lw.Pose.translation((0.25, 0.0, 0.0)))
    for i, name in enumerate("abc"):
        b = b.body(name, "world", lw.hinges.Pin((0, 0, 1)), inertia=rod, inboard=(i, 0.0, 0.0))
    mech, t = b.build(), np.linspace(0.0, 6.0, 300)
    w = np.array([1.3, 2.1, 2.9])
    q, v, vdot = (
        np.sin(np.outer(t, w)),
        w * np.cos(np.outer(t, w)),
        -(w**2) * np.sin(np.outer(t, w)),
    )
    u = lw.inverse_dynamics(mech, q, v, vdot) / np.array([1.0, 5.0, 7.0])
    given = {"parameters": ["inertia", "gain"], "commanded": ["b", "c"]}
    fit = lw.identify(mech, q, v, vdot, u, **given)  # pyright: ignore
    assert fit.references == ("b", "c")
    ends = {name.rpartition("(")[2]: name.rpartition("/")[2].strip() for name in fit.names}
    assert ends == {"a)": "mcx(a)"} or all(
        ("/ gain(b)" in x) == ("(b)) /" in x) and ("/ gain(c)" in x) == ("(c)) /" in x)
        for x in fit.names
    )
    assert sum("/" in x for x in fit.names) == 6 and len(fit.names) == 9


@pytest.mark.prove
@pytest.mark.parametrize("case", ["ratios", "load", "one"])
def test_confidence(case: str) -> None:
    """95 % intervals on thirty seeds; noise is in the currents."""
    _, q, v, vdot = motion()
    u, options, right = forces(arm()) / GAINS, {"parameters": ALL}, np.array([*truth(), *GAINS])
    state: tuple[Array, ...] = (q, v, vdot)
    if case == "ratios":
        right = np.append(truth(), GAINS[1]) / GAINS[0]
    elif case == "load":
        state, u, applied = twice()
        options["applied"] = applied  # pyright: ignore
    else:
        u[:, 0] *= GAINS[0]
        options["commanded"], right = ("lower",), np.append(truth(), GAINS[1])
    fits = list[Identification]()
    for seed in range(30):
        noise = 0.03 * np.std(u, axis=0) * np.random.default_rng(seed).standard_normal(u.shape)
        fits.append(lw.identify(guess(), *state, u + noise, **options))  # pyright: ignore
    off = np.array([(fit.estimate - right) / fit.deviation for fit in fits])
    assert 0.92 <= np.mean(np.abs(off) < 1.96) <= 0.98
    assert 0.8 < np.mean(off**2) < 1.2
    assert np.abs(off.mean(axis=0)).max() * np.sqrt(30) < 4.0  # no bias


def test_slopes_of_the_equations() -> None:
    rng = np.random.default_rng(0)
    W, k, y = (
        rng.standard_normal((5, 3, 4)),
        rng.standard_normal((5, 3)),
        rng.standard_normal((5, 3)),
    )
    names = ("a", "b", "c", "d", "g", "h")
    eq = Equations(W, k, y, np.ones_like(y), names, [0, 2], np.array([1.0, 0.5, 1.0]))
    x, h = rng.standard_normal(6), 1e-6
    slopes = [-(eq.linear(x + h * e)[1] - eq.linear(x - h * e)[1]) / (2 * h) for e in np.eye(6)]
    assert np.allclose(eq.linear(x)[0], np.stack(slopes, axis=-1), atol=1e-7)


def test_motors_of_the_mechanism_get_their_gains() -> None:
    _, q, v, vdot = motion()
    motors = (lw.Actuator.motor("one", "upper", gear=10.0), lw.Actuator.motor("two", "lower"))
    mech = replace(guess(), actuators=motors)
    fit = lw.identify(mech, q, v, vdot, forces(arm()) / GAINS, parameters=ALL)
    assert fit.references == ("upper",)
    command, tau = np.array([0.7, -0.2]), np.zeros(2)
    made = lw.forward_dynamics(fit.mech, q[7], v[7], tau, controls=command)
    same = np.array([fit.parameters[f"gain({x})"] for x in ("upper", "lower")]) * command
    assert np.allclose(made, lw.forward_dynamics(fit.mech, q[7], v[7], same))


def test_currents_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t, q, _, _ = motion()
    tau = forces(arm())
    rows = ["t,q[upper],q[lower],tau[upper],u[lower] [A]"]
    for k, time in enumerate(t):
        rows.append(
            ",".join(repr(float(x)) for x in (time, *q[k], tau[k, 0], tau[k, 1] / GAINS[1]))
        )
    (tmp_path / "run.csv").write_text("\n".join(rows))
    lw.save(guess(), tmp_path / "arm.xml")
    assert lw.identification.load_measurements(arm(), tmp_path / "run.csv").commanded == ("lower",)
    words = ["identify", str(tmp_path / "arm.xml"), str(tmp_path / "run.csv"), "--bandwidth", "10"]
    assert main([*words, "--parameters", "inertia,damping", "--folds", "2"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("  gain(lower)")]
    assert np.isclose(float(line.split()[1]), GAINS[1], rtol=1e-3)


def test_gains_that_cannot_be_found() -> None:
    state, u, applied = twice()
    with pytest.raises(lw.ModelError, match="add 'gain' to the parameters"):
        lw.identify(guess(), *state, u, commanded=["lower"])
    still = u * [0.0, 1.0]
    with pytest.raises(lw.ModelError, match="its current is zero throughout"):
        lw.identify(guess(), *state, still, parameters=ALL, commanded=["upper"])
    rng, light = np.random.default_rng(0), u + 0.999 * applied / GAINS
    noisy = light + 0.1 * np.std(u, axis=0) * rng.standard_normal(u.shape)
    with pytest.raises(lw.ModelError, match=r"gain\(upper\) is known to ± \d+ % only"):
        lw.identify(guess(), *state, noisy, parameters=ALL, applied=1e-3 * applied)
