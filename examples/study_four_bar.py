"""Tolerances of a four-bar linkage: how the lengths of its bars move its coupler curve.

Each bar is made to ±0.1 mm (one standard deviation). A function places the crank, closes the loop
by the law of cosines and returns the point of the coupler; the nominal one is compared with
`lw.loops.assemble`. Sobol indices show which bar needs the tighter tolerance.
"""

import tempfile

import numpy as np
from scipy import stats

import linkwise as lw

LENGTHS = {"ground": 0.4, "crank": 0.1, "coupler": 0.5, "rocker": 0.4}
ANGLES = np.linspace(0.0, 2.0 * np.pi, 37)


def coupler_point(ground, crank, coupler, rocker, angle):
    """The middle of the coupler (..., 2) in the plane of the linkage [m]."""
    b = np.stack([crank * np.cos(angle), crank * np.sin(angle)], axis=-1)
    to_d = np.stack([ground - b[..., 0], -b[..., 1]], axis=-1)
    far = np.linalg.norm(to_d, axis=-1)
    bend = np.arccos((coupler**2 + far**2 - rocker**2) / (2.0 * coupler * far))
    turn = np.arctan2(to_d[..., 1], to_d[..., 0]) + bend
    return b + 0.5 * np.stack([coupler * np.cos(turn), coupler * np.sin(turn)], axis=-1)


NOMINAL = coupler_point(*LENGTHS.values(), ANGLES)


def deviation(ground, crank, coupler, rocker):
    """The largest distance from the nominal curve, for many linkages at once [m]."""
    lengths = [np.asarray(x)[:, None] for x in (ground, crank, coupler, rocker)]
    moved = coupler_point(*lengths, ANGLES[None])
    return {"deviation": np.linalg.norm(moved - NOMINAL, axis=-1).max(axis=1)}


def linkage() -> lw.Mechanism:
    """The nominal linkage as a mechanism with a loop."""
    pin = lw.hinges.Pin(axis=(0, 1, 0))
    b = lw.Builder("linkage")
    for name in ("crank", "coupler", "rocker"):
        b = b.body(name, parent=None, inertia=lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1)))
    b = b.joint("A", "world", "crank", pin)
    b = b.joint("B", "crank", "coupler", pin, at_a=(LENGTHS["crank"], 0, 0))
    at = {"at_a": (LENGTHS["coupler"], 0, 0), "at_b": (LENGTHS["rocker"], 0, 0)}
    b = b.joint("C", "coupler", "rocker", pin, **at)
    b = b.joint("D", "world", "rocker", pin, at_a=(LENGTHS["ground"], 0, 0))
    return b.node("middle", "coupler", (LENGTHS["coupler"] / 2, 0, 0)).build()


def main(groups: int = 512) -> None:
    """Compare the formula with the mechanism, run, and rank the bars."""
    mech = linkage()
    closed = lw.loops.assemble(mech, [-1.0, -0.8, 2.0], hold={"A": -1.0})
    p = lw.forward_kinematics(mech, closed.q, "middle").p
    both = [coupler_point(*LENGTHS.values(), s * 1.0) * (1, s) for s in (1.0, -1.0)]
    gap = min(np.linalg.norm(np.array([p[0], p[2]]) - x) for x in both)
    assert gap < 1e-9, f"formula and mechanism differ by {gap}"
    vary = {name: stats.norm(x, 1e-4) for name, x in LENGTHS.items()}
    work = lw.study.Calls(deviation, batched=True)
    study = lw.Study(work, vary, cases=6 * groups, sampler="saltelli")
    results = study.run(tempfile.mkdtemp(), progress=False)
    print("deviation, 99 % quantile [m]:", lw.study.quantile(results, "deviation", 0.99))
    indices = lw.study.sensitivity(results, "deviation")
    print(indices)
    assert indices.total.max() > 0.2 and 0.0 < results["deviation"].max() < 2e-3


if __name__ == "__main__":
    main()
