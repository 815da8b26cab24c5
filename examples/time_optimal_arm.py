"""A seven-axis arm goes from one posture to another nearly as fast as its motors allow.

    python examples/time_optimal_arm.py [figure.png]

Accelerations are linear in time between knots, so that velocities and positions follow exactly.
At the knots and halfway between them the torques, with gravity and the damping of the drives, stay
within the motors' limits, and velocities within theirs; IPOPT makes the motion as short as
possible. Inverse dynamics is a function of CasADi made by Linkwise, with exact Jacobians and
Hessians. A small price on jerk settles what time does not: motors that are not needed.

The motion is compared with the straight line between the postures, taken as fast as the same
limits allow with a smooth profile, and its torques are played to the integrator of Linkwise.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

import casadi as ca
import numpy as np

import linkwise as lw

KNOTS, JERK = 41, 1e-6
SPEED = 3.0  # times the velocity limits of the model, which are cautious
START = np.array([-1.2, 0.9, 0.3, -0.6, 0.0, 0.5, 0.0])
END = np.array([1.4, -0.4, -0.3, -1.5, 0.8, -0.6, 1.0])
OPTIONS = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "ipopt.tol": 1e-7}


def limits(arm: lw.Mechanism, name: str) -> np.ndarray:
    """A number of all drives: "effort" [N m], "velocity" [rad/s], "lower", "upper", "damping"."""
    values = np.array([getattr(body.drive, name) for body in arm.bodies])
    return SPEED * values if name == "velocity" else values


def program(arm: lw.Mechanism, f: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The nonlinear program, its bounds and a first guess; f is inverse dynamics."""
    n, k = arm.nv, KNOTS
    q, v, a = (ca.MX.sym(x, n, k) for x in "qva")
    T = ca.MX.sym("T")
    h = T / (k - 1)
    q0, v0, a0, q1, v1, a1 = (x[:, s] for s in (slice(0, -1), slice(1, None)) for x in (q, v, a))
    gaps = v1 - v0 - h / 2 * (a0 + a1), q1 - q0 - h * v0 - h**2 / 6 * (2 * a0 + a1)
    q05, v05 = q0 + h / 2 * v0 + h**2 / 48 * (5 * a0 + a1), v0 + h / 8 * (3 * a0 + a1)
    states = ca.horzcat(q, q05), ca.horzcat(v, v05), ca.horzcat(a, (a0 + a1) / 2)
    tau = f(*states) + ca.diag(limits(arm, "damping")) @ states[1]
    cost = T + JERK * ca.sumsqr(a1 - a0)
    made = {"x": ca.veccat(q, v, a, T), "f": cost, "g": ca.veccat(*gaps, tau)}

    shape, effort = (k, n), limits(arm, "effort")
    low = [np.tile(limits(arm, "lower"), (k, 1)), np.tile(-limits(arm, "velocity"), (k, 1))]
    high = [np.tile(limits(arm, "upper"), (k, 1)), np.tile(limits(arm, "velocity"), (k, 1))]
    for bound in (low, high):  # from rest to rest
        bound[0][[0, -1]], bound[1][[0, -1]] = (START, END), 0.0
    zeros, held = np.zeros(2 * n * (k - 1)), np.tile(effort, 2 * k - 1)
    guess = [np.linspace(START, END, k), np.tile((END - START) / 2.0, (k, 1)), np.zeros(shape)]
    bounds = {
        "x0": np.concatenate([*map(np.ravel, guess), [2.0]]),
        "lbx": np.concatenate([*map(np.ravel, low), np.full(n * k, -np.inf), [0.1]]),
        "ubx": np.concatenate([*map(np.ravel, high), np.full(n * k, np.inf), [10.0]]),
        "lbg": np.concatenate([zeros, -held]),
        "ubg": np.concatenate([zeros, held]),
    }
    return made, bounds


def motion(x: np.ndarray, n: int, count: int) -> tuple[np.ndarray, ...]:
    """Times and the exact q, v, a in the middle of equal steps, and the duration."""
    (q, v, a), T = x[:-1].reshape(3, KNOTS, n), x[-1]
    h, t = T / (KNOTS - 1), (np.arange(count) + 0.5) / count * T
    k = np.minimum((t / h).astype(int), KNOTS - 2)
    s = (t - k * h)[:, None]
    jerk = (a[k + 1] - a[k]) / h
    return (
        t,
        q[k] + s * v[k] + s**2 / 2 * a[k] + s**3 / 6 * jerk,
        v[k] + s * a[k] + s**2 / 2 * jerk,
        a[k] + s * jerk,
    )


def torque(arm: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Of the motors, which also overcome the damping."""
    return lw.inverse_dynamics(arm, q, v, a) + limits(arm, "damping") * v


def straight(arm: lw.Mechanism) -> float:
    """The least duration [s] of the straight line with the profile 10 s³ - 15 s⁴ + 6 s⁵."""
    s, way = np.linspace(0.0, 1.0, 201)[:, None], END - START
    q = START + (10 * s**3 - 15 * s**4 + 6 * s**5) * way
    rate, curve = (
        (30 * s**2 - 60 * s**3 + 30 * s**4) * way,
        (60 * s - 180 * s**2 + 120 * s**3) * way,
    )
    low, high = 0.1, 10.0
    for _ in range(40):
        T = (low + high) / 2
        v, tau = rate / T, torque(arm, q, rate / T, curve / T**2)
        fits = (np.abs(v) <= limits(arm, "velocity")).all()
        fits = fits and (np.abs(tau) <= limits(arm, "effort")).all()
        low, high = (low, T) if fits else (T, high)
    return high


def picture(arm: lw.Mechanism, x: np.ndarray, file: str) -> None:
    """Torques and velocities over their limits."""
    import linkwise.plot as lp

    t, q, v, a = motion(x, arm.nv, 600)
    figure, axes = lp.panels(2, 1, size=(10.0, 5.6))
    parts = (torque(arm, q, v, a), "effort", "torque / limit"), (v, "velocity", "velocity / limit")
    for ax, (values, limit, title) in zip(axes, parts, strict=True):
        for j, body in enumerate(arm.bodies):
            ax.plot(t, values[:, j] / limits(arm, limit)[j], lw=1.6, label=body.name[:-5])
        for bound in (-1, 1):
            ax.axhline(bound, color="0.6", lw=1, ls=":")
        ax.set(title=title, xlim=(0.0, x[-1]))
    axes[1].set_xlabel("t [s]")
    axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.0), frameon=False, fontsize=8)
    figure.savefig(file, dpi=120)


def main() -> None:
    """Optimize, check the limits between the knots, and play the torques."""
    arm = lw.models.seven_dof_arm()
    compiled = shutil.which("cc") is not None
    f = lw.convert.to_casadi("inverse_dynamics", arm, name="f", compiled=compiled)
    made, bounds = program(arm, f)
    solver = ca.nlpsol("solver", "ipopt", made, OPTIONS)
    x = solver(**bounds)["x"].full()[:, 0]
    stats, T, line = solver.stats(), x[-1], straight(arm)
    print(f"IPOPT: {stats['return_status']} after {stats['iter_count']} iterations")
    print(f"{T:.3f} s; along the straight line {line:.3f} s")

    steps = 2000
    _, q, v, a = motion(x, arm.nv, steps)
    tau = torque(arm, q, v, a)
    used, fast = np.abs(tau) / limits(arm, "effort"), np.abs(v) / limits(arm, "velocity")
    over = max(used.max(), fast.max()) - 1.0
    busy = np.mean((used.max(axis=1) > 0.98) | (fast.max(axis=1) > 0.98))
    print(f"a motor is at a limit for {100 * busy:.0f} % of the time")
    print(f"between knots limits are passed by {100 * over:.1f} % at most")
    rec = lw.rollout(arm, START, duration=steps * (T / steps), step=T / steps, tau=tau)
    off = np.abs(rec.q[-1] - END).max()
    print(f"played by the integrator, the end is off by {off:.1e} rad")
    assert stats["success"] and T < 0.9 * line
    assert over < 0.02 and busy > 0.8 and off < 1e-3
    if len(sys.argv) > 1:
        picture(arm, x, sys.argv[1])


if __name__ == "__main__":
    main()
