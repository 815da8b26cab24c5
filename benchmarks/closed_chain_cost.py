"""How the cost of arms that hold an object grows with their links, and with their number.

Run with `python benchmarks/closed_chain_cost.py`; writes benchmarks/results/closed_chain_cost.md
(`--quick` counts less and writes nothing). Scalar operations of kernels are counted, not seconds.
"""

import sys
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.dynamics.closure import closed_kernel

QUICK = "--quick" in sys.argv[1:]
LINKS = (6, 12) if QUICK else (6, 12, 24)
ARMS = (2, 3) if QUICK else (2, 3, 4, 6)
RESULTS = Path(__file__).parent / "results" / "closed_chain_cost.md"
METHODS = ("forward_dynamics", "RCCFD1", "RCCFD2", "RCCFD3")
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
HEAD = """# Cost of arms that hold an object

Written by `python benchmarks/closed_chain_cost.py`. Scalar operations (additions, multiplications,
divisions, sines and cosines) of one kernel for one state: `lw.forward_dynamics` as it is derived,
and the algorithms of JPL 88-11, Part II, as they are written. Arms are chains of pins in changing
directions that hold one rigid body.
"""


def held(arms: int, links: int) -> lw.Mechanism:
    """Arms of some links, welded to one free body."""
    b = lw.Builder(f"{arms} arms of {links}")
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.05, 0.3)
    b.body("object", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(2.0, 0.2))
    for k in range(arms):
        parent, angle = "world", 2.0 * np.pi * k / arms
        for j in range(links):
            name, hinge = f"arm_{k}_{j}", lw.hinges.Pin(AXES[j % 3])
            inboard = (0.0, 0.0, 0.3) if j else (np.cos(angle), np.sin(angle), 0.0)
            b.body(name, parent, hinge, inboard=inboard, inertia=rod)
            parent = name
        b.node(f"tip_{k}", parent, (0.0, 0.0, 0.3))
        b.node(f"grasp_{k}", "object", (0.2 * np.cos(angle), 0.2 * np.sin(angle), 0.0))
        b.loop(f"hold_{k}", f"tip_{k}", f"grasp_{k}", lw.hinges.Locked())
    return b.build()


def main() -> None:
    """Count, print and write."""
    lines = [HEAD, "| arms | links each | " + " | ".join(METHODS) + " |"]
    lines.append("| ---: | ---: |" + " ---: |" * len(METHODS))
    for arms, links in [*((2, n) for n in LINKS), *((m, 6) for m in ARMS[1:])]:
        mech = held(arms, links)
        counts = [closed_kernel(mech, name).ops.total() for name in METHODS]
        lines.append(f"| {arms} | {links} | " + " | ".join(f"{n:,}" for n in counts) + " |")
        print(lines[-1], flush=True)
    if not QUICK:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
