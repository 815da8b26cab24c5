"""A cart swings up its pole with the least effort: direct collocation with CasADi and IPOPT.

    python examples/cart_pole_swing_up.py [figure.png]

Only the cart is driven. The motion is cut into intervals; in each, positions and velocities are
cubics whose slopes at both ends and in the middle are those of forward dynamics (Hermite and
Simpson). Forward dynamics is a function of CasADi made by Linkwise, with exact Jacobians and
Hessians: compiled where there is a C compiler, else of CasADi's symbols. The force is then played
to the integrator of Linkwise, whose steps are 100 times shorter: a standing pole forgives little.
"""

from __future__ import annotations

import shutil
import sys

import casadi as ca
import numpy as np

import linkwise as lw

DURATION, INTERVALS = 2.0, 100  # of the motion [s]
TRACK, FORCE = 1.0, 20.0  # the cart's range to both sides [m], and its largest force [N]
OPTIONS = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
START, END = np.array([0.0, np.pi]), np.zeros(2)  # the pole hangs; at the end it stands


def cart_pole() -> lw.Mechanism:
    """A cart of 1 kg on a rail along x, and a pole of 0.3 kg and 0.5 m, upright at q = 0."""
    build = lw.Builder("cart_pole")
    cart = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    middle = lw.Pose.translation((0.0, 0.0, 0.25))
    pole = lw.SpatialInertia.solid_box(0.3, (0.02, 0.02, 0.5)).moved(middle)
    build.body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=cart)
    build.body("pole", "cart", lw.hinges.Pin((0, 1, 0)), inertia=pole)
    return build.build()


def optimum(f: ca.Function) -> tuple[np.ndarray, np.ndarray, dict]:
    """The states (intervals + 1, 4) and the forces at the ends and middles of all intervals.

    Args:
        f: Forward dynamics of the cart and its pole.
    """
    h, n = DURATION / INTERVALS, INTERVALS
    x, u = ca.MX.sym("x", 4, n + 1), ca.MX.sym("u", 1, 2 * n + 1)

    def slope(x: ca.MX, u: ca.MX) -> ca.MX:
        return ca.vertcat(x[2:, :], f(x[:2, :], x[2:, :], ca.vertcat(u, 0 * u)))

    ends = slope(x, u[:, ::2])
    a, b, da, db = x[:, :-1], x[:, 1:], ends[:, :-1], ends[:, 1:]
    middle = slope((a + b) / 2 + h / 8 * (da - db), u[:, 1::2])
    gaps = b - a - h / 6 * (da + 4 * middle + db)
    effort = h / 6 * (ca.sumsqr(u[:, :-1:2]) + 4 * ca.sumsqr(u[:, 1::2]) + ca.sumsqr(u[:, 2::2]))
    # From rest to rest, within the track.
    low, high = np.full((4, n + 1), -np.inf), np.full((4, n + 1), np.inf)
    low[0], high[0] = -TRACK, TRACK
    low[:2, 0] = high[:2, 0] = START
    low[:2, -1] = high[:2, -1] = END
    low[2:, [0, -1]] = high[2:, [0, -1]] = 0.0
    bounds = np.concatenate([high.T.ravel(), np.full(2 * n + 1, FORCE)])
    lower = np.concatenate([low.T.ravel(), np.full(2 * n + 1, -FORCE)])
    guess = np.zeros((n + 1, 4))
    guess[:, :2] = np.linspace(START, END, n + 1)
    problem = {"x": ca.veccat(x, u), "f": effort, "g": ca.vec(gaps)}
    solver = ca.nlpsol("solver", "ipopt", problem, OPTIONS)
    begin = np.concatenate([guess.ravel(), np.zeros(2 * n + 1)])
    result = solver(x0=begin, lbx=lower, ubx=bounds, lbg=0, ubg=0)["x"].full()[:, 0]
    return result[: 4 * (n + 1)].reshape(n + 1, 4), result[4 * (n + 1) :], solver.stats()


def played(mech: lw.Mechanism, u: np.ndarray) -> lw.Rollout:
    """The motion that the forces cause, from rest, by Runge's and Kutta's method."""
    steps = 100 * INTERVALS
    t = (np.arange(steps) + 0.5) / steps * INTERVALS
    k = np.minimum(t.astype(int), INTERVALS - 1)
    s = t - k
    # The parabola through both ends and the middle.
    weights = (1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1)
    force = sum(w * u[2 * k + i] for i, w in enumerate(weights))
    tau = np.stack([force, np.zeros(steps)], axis=1)
    return lw.rollout(mech, START, duration=DURATION, step=DURATION / steps, tau=tau)


def picture(x: np.ndarray, u: np.ndarray, file: str) -> None:
    """The pole in snapshots, and the force."""
    import linkwise.plot as lp

    figure, (left, right) = lp.panels(1, 2, size=(10.0, 4.2))
    for k in range(0, INTERVALS + 1, 3):
        place, angle = x[k, :2]
        shade = 0.15 + 0.85 * k / INTERVALS
        tip = place + 0.5 * np.sin(angle), 0.5 * np.cos(angle)
        left.plot([place, tip[0]], [0.0, tip[1]], color=lp.LIGHT.colors[0], alpha=shade, lw=2)
    left.axhline(0.0, color="0.6", lw=1)
    left.set(aspect="equal", title="the pole, later ones darker", xlabel="x [m]")
    right.plot(np.linspace(0.0, DURATION, len(u)), u, color=lp.LIGHT.colors[1])
    right.set(xlabel="t [s]", title="force on the cart [N]")
    figure.savefig(file, dpi=120)


def main() -> None:
    """Optimize, play the forces, and compare."""
    mech = cart_pole()
    compiled = shutil.which("cc") is not None
    f = lw.convert.to_casadi("forward_dynamics", mech, name="f", compiled=compiled)
    x, u, stats = optimum(f)
    rec = played(mech, u)
    off = np.abs(np.concatenate([rec.q[-1] - END, rec.v[-1]])).max()
    print(f"IPOPT: {stats['return_status']} after {stats['iter_count']} iterations")
    print(f"largest force {np.abs(u).max():.1f} N, the cart moves {np.ptp(x[:, 0]):.2f} m")
    print(f"played by the integrator, the end is off by {off:.1e} (m, rad, m/s, rad/s)")
    assert stats["success"] and off < 1e-2
    assert np.abs(x[:, 0]).max() <= TRACK + 1e-6 and np.abs(u).max() <= FORCE + 1e-6
    if len(sys.argv) > 1:
        picture(x, u, sys.argv[1])


if __name__ == "__main__":
    main()
