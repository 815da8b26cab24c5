"""A Stewart platform follows a circle while it tilts, driven by the six sliders in its legs.

    python examples/stewart_tracking.py [figure.png]

The tree has 24 degrees of freedom, of which the loops leave six, and six motors drive them. Every
five milliseconds the controller computes

    1. the acceleration of the platform,       V̇ = V̇_ref + K_d (V_ref - V) + K_p e,
    2. the resulting 24 accelerations,         `lw.loops.independent_coordinates`, and
    3. the forces of the sliders,              `lw.loops.drive_forces`,

and holds these forces. `lw.simulate` computes the motion and keeps the loops closed. In a second
run the platform carries a load that the controller does not know.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.spatial.pose import log

RADIUS, TILT, PERIOD, RAMP = 0.08, np.deg2rad(10.0), 2.5, 1.5  # m, rad, s, s to begin smoothly
K_P, K_D = 400.0, 40.0  # of the platform's error [1/s², 1/s]
SLIDERS = [f"slider_{k}" for k in range(1, 7)]
LOAD = lw.SpatialInertia.from_com(6.0, (0.05, 0.0, 0.08), (0.05, 0.05, 0.04))  # kg, m, kg m²


def desired(t: float) -> lw.Pose:
    """Pose of the platform relative to its neutral pose: along a circle, leaning outwards."""
    s = min(t / RAMP, 1.0)
    part = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3)  # smooth up to the third derivative
    angle = 2.0 * np.pi * t / PERIOD
    out = np.array([np.cos(angle), np.sin(angle), 0.0])
    lean = part * TILT * np.array([-out[1], out[0], 0.0])
    return lw.Pose.rotation(_turn(lean), part * RADIUS * out)


def _turn(vector: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(vector)
    if angle == 0.0:
        return np.eye(3)
    return lw.hinges.Pin(tuple(vector / angle)).pose(np.array([angle])).rot


def desired_motion(t: float, h: float = 1e-3) -> tuple[lw.Pose, np.ndarray, np.ndarray]:
    """Pose, velocity and acceleration in the platform's own axes, by central differences."""
    before, now, after = (desired(max(t + d, 0.0)) for d in (-h, 0.0, h))
    ahead, back = log(now.inverse() @ after), log(now.inverse() @ before)
    return now, (ahead - back) / (2.0 * h), (ahead + back) / h**2


class Controller:
    """Forces in the sliders that move the platform along the path."""

    def __init__(self, mech: lw.Mechanism) -> None:
        self.mech = mech
        self.q, self.v = mech.q_slice("platform"), mech.v_slice("platform")

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint forces (24,), zero except for the sliders."""
        X_ref, V_ref, A_ref = desired_motion(t)
        off = lw.hinges.Free().pose(q[self.q]).inverse() @ X_ref
        # The desired motion, carried to the platform and into its axes.
        V, A = (off.inverse().shift_velocity(x) for x in (V_ref, A_ref))
        accelerate = A + K_D * (V - v[self.v]) + K_P * log(off)
        platform = lw.loops.independent_coordinates(self.mech, q, prefer=["platform"])
        return lw.loops.drive_forces(
            self.mech, q, v, accelerate, independent=platform, actuated=SLIDERS
        ).tau


@dataclass(frozen=True)
class Tracking:
    """A run, and its distance from the path (k,) [m], [rad]."""

    run: lw.Recording
    distance: np.ndarray
    angle: np.ndarray

    @property
    def forces(self) -> np.ndarray:
        """Of the six sliders (k, 6) [N]."""
        mech = lw.models.stewart()
        return self.run.tau[:, [mech.v_slice(name).start for name in SLIDERS]]


def track(duration: float, *, step: float = 5e-3, loaded: bool = False) -> Tracking:
    """Follow the path from rest, as modelled or with an unknown load."""
    model = lw.models.stewart()
    real = model.with_payload("centre", LOAD) if loaded else model
    run = lw.simulate(
        real,
        real.neutral(),
        np.zeros(real.nv),
        controller=Controller(model),
        control_step=step,
        passive=False,
        duration=duration,
        step=step,
    )
    place = lw.hinges.Free().pose(run.q[:, real.q_slice("platform")])
    errors = [log(place[i].inverse() @ desired(float(t))) for i, t in enumerate(run.t)]
    size = np.linalg.norm(np.reshape(errors, (-1, 2, 3)), axis=-1)
    return Tracking(run, size[:, 1], size[:, 0])


def main(duration: float = 6.0, figure: str | None = None) -> None:
    """Track, report, and check against the motor limits."""
    exact, loaded = track(duration), track(duration, loaded=True)
    for name, result in (("as modelled", exact), ("with 6 kg more", loaded)):
        print(f"{name}: error at most {result.distance.max():.1e} m, {result.angle.max():.1e} rad;")
        print(f"  forces from {result.forces.min():.0f} to {result.forces.max():.0f} N")
        print(f"  {str(result.run).splitlines()[1].strip()}")
        assert result.run.report.loop[0] < 1e-9
        assert np.abs(result.forces).max() < 2000.0  # the limit of the sliders
    # The remaining error is due to held forces; the load makes the platform sag.
    assert exact.distance.max() < 1e-3 and exact.angle.max() < 3e-3
    assert exact.distance.max() < loaded.distance.max() < 0.05
    if figure is not None:
        plot(exact, loaded, figure)


def plot(exact: Tracking, loaded: Tracking, file: str) -> None:
    """The platform on its path, tracking errors, forces in the legs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig = plt.figure(figsize=(13.0, 5.6), facecolor="#fbfaf7")
    grid = fig.add_gridspec(
        2, 2, left=0.0, right=0.97, bottom=0.17, top=0.93, hspace=0.5, wspace=0.14
    )
    sketch(fig.add_subplot(grid[:, 0], projection="3d"), exact)
    errors, forces = fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, 1])
    t = exact.run.t
    errors.semilogy(
        t[1:], 1e3 * loaded.distance[1:], color="#c8553d", label="6 kg more than modelled"
    )
    errors.semilogy(t[1:], 1e3 * exact.distance[1:], color="#2f6690", label="as modelled")
    errors.set_ylabel("error [mm]")
    errors.legend(frameon=False, loc="lower right")
    errors.set_ylim(1e-4, 30.0)
    errors.set_title("Distance of the platform from its path", loc="left")
    for k, f in enumerate(exact.forces.T):
        forces.plot(t, f, color=plt.get_cmap("viridis")(k / 6.0), label=f"leg {k + 1}")
    forces.set_ylabel("force [N]")
    forces.set_title("Forces of the six motors, as modelled", loc="left")
    forces.legend(frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, -0.3),
                  columnspacing=1.0, handlelength=1.2)  # fmt: skip
    for ax in (errors, forces):
        ax.set_facecolor("none")
        ax.set_xlabel("time [s]", loc="right")
        ax.grid(alpha=0.25)
    fig.savefig(file, dpi=96, facecolor=fig.get_facecolor(), metadata={"Software": None})


def sketch(ax: object, result: Tracking) -> None:
    """Base, legs and platform at a few instants of the last round, and the path of its centre."""
    from matplotlib.colors import to_rgba

    mech, run = lw.models.stewart(), result.run
    path = np.array([mech.pose(q, "centre").p for q in run.q])
    ax.plot(*path.T, color="#c8553d", lw=1.6)
    last = int(np.searchsorted(run.t, run.t[-1] - PERIOD))
    picks = np.linspace(last, len(run.t) - 1, 4).astype(int)[1:]
    for shade, i in zip((0.15, 0.3, 1.0), picks, strict=True):
        feet = np.array([mech.pose(run.q[i], f"lower_{k}").p for k in range(1, 7)])
        heads = np.array([mech.pose(run.q[i], f"anchor_{k}").p for k in range(1, 7)])
        for foot, head in zip(feet, heads, strict=True):
            ax.plot(*np.array([foot, head]).T, color=to_rgba("#2f6690", shade), lw=3.0)
        ax.plot(*np.array([*heads, heads[0]]).T, color=to_rgba("#e0812a", shade), lw=3.0)
    ax.plot(*np.array([*feet, feet[0]]).T, color="#47596d", lw=3.0)
    ax.set_box_aspect((1.0, 1.0, 0.75))
    ax.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), zlim=(0.0, 0.75))
    ax.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    ax.view_init(elev=22.0, azim=-58.0)
    ax.set_facecolor("none")
    ax.set_title("The platform on its path", loc="left")


if __name__ == "__main__":
    main(figure=sys.argv[1] if len(sys.argv) > 1 else None)
