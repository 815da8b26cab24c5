"""How the cost of arms that hold an object grows with their links, and with their number.

Run with `python benchmarks/closed_chain_cost.py`; writes benchmarks/results/closed_chain_cost.md
(`--quick` counts less and writes nothing). Scalar operations are counted, not seconds: those of the
kernels of each named algorithm, and multiplications of the dense part, the solution for the contact
forces, by formula.
"""

import sys
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.grasp.multi_arm.equation import multi_arm_kernel

QUICK = "--quick" in sys.argv[1:]
LINKS = (6, 12, 24) if QUICK else (6, 12, 24, 48, 96)
ARMS = (2, 4) if QUICK else (2, 3, 4, 6, 8, 12, 16)
RESULTS = Path(__file__).parent / "results" / "closed_chain_cost.md"
METHODS = ("CCFD", "RCCFD1", "RCCFD2", "RCCFD3", "linear")
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))

Step = tuple[str, str, bool]
"""A kernel: its name, what it is about ("tips", their "bodies" or ""), and whether of arms only."""

STEPS: dict[str, tuple[Step, ...]] = {
    "CCFD": (
        ("general_free_acceleration", "tips", True),
        ("tip_acceleration", "tips", False),
        ("general_compliance", "tips", False),
        ("general_correction", "tips", True),
    ),
    "RCCFD1": (
        ("free_acceleration", "tips", True),
        ("tip_acceleration", "tips", False),
        ("own_compliance", "bodies", False),
        ("correction", "tips", True),
    ),
    "RCCFD2": (
        ("bias_acceleration", "tips", False),
        ("own_compliance", "bodies", False),
        ("filtered_force", "tips", False),
        ("acceleration", "tips", True),
    ),
    "RCCFD3": (
        ("bias_acceleration", "tips", False),
        ("own_compliance", "bodies", False),
        ("innovation", "", False),
        ("tip_of_innovation", "tips", False),
        ("smoothed", "tips", True),
        ("correction", "tips", True),
    ),
    "linear": (
        ("bias_acceleration", "tips", False),
        ("own_compliance", "bodies", False),
        ("filtered_force", "tips", False),
        ("acceleration", "tips", True),
    ),
}
"""What each runs for the arms; all of them run T′ first, and the object's part is the same."""

HEAD = """# Cost of arms that hold an object

Written by `python benchmarks/closed_chain_cost.py`. Scalar operations (additions, multiplications,
divisions, sines and cosines) of the kernels that each algorithm of `lw.papers.multi_arm_dynamics`
runs for the arms, after the compiler removed constants, zeros and duplicates. Each kernel is one
equation of the source and recomputes the poses and the articulated inertias it needs. Kernels of
more than some tens of bodies are loops, in which nothing is removed: the numbers jump there. The
general algorithm needs the complete matrix J 𝓜⁻¹ J*; as a loop that is a sweep for each of its 6 ℓ
columns. The others compute its blocks, one for each arm, from the recursion (6.10). The object is
one rigid body, grasps are rigid: six rows each. The dense part is the solution for the contact
forces: a Cholesky factor of 6 ℓ rows and two substitutions, (6 ℓ)³/6 + (6 ℓ)² multiplications; for
"linear", ℓ + 1 factors of six rows and the products of each arm with the object.
"""


def main() -> None:
    """Count everything and write the page."""
    parts = [HEAD, by_links(), by_arms()]
    text = "\n".join(parts)
    print(text)
    if not QUICK:
        RESULTS.write_text(text, encoding="utf-8")


def held(arms: int, links: int) -> lw.Mechanism:
    """Arms of `links` pins around a box; no angle or length is special."""
    rng = np.random.default_rng(1)
    b = lw.Builder(f"held_{arms}_{links}")
    b.body(
        "box", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(3.0, (0.3, 0.2, 0.1))
    )
    for k in range(arms):
        parent = "world"
        for j in range(links):
            at = lw.Pose.rpy(rng.uniform(-0.5, 0.5, 3), rng.uniform(0.05, 0.2, 3))
            ours = lw.SpatialInertia.from_com(
                float(rng.uniform(1.0, 2.0)), rng.uniform(0.02, 0.1, 3), np.diag((0.01, 0.02, 0.02))
            )
            name = f"arm_{k}_{j}"
            b.body(name, parent, lw.hinges.Pin(AXES[j % 3]), inboard=at, inertia=ours)
            parent = name
        b.node(f"tip_{k}", parent, (0.1, 0.0, 0.0))
        b.node(f"grasp_{k}", "box", lw.Pose.rpy(rng.uniform(-1, 1, 3), rng.uniform(-0.2, 0.2, 3)))
        b.loop(f"grasp_{k}", f"tip_{k}", f"grasp_{k}")
    return b.build()


def kernel_operations(mech: lw.Mechanism, method: str) -> int:
    """Of all kernels that an algorithm runs for the arms."""
    parts = lw.grasp.multi_arm_parts(mech)
    total = operations(mech, "bias_free_force", (), None)
    for name, where, arms_only in STEPS[method]:
        nodes = parts.tips if where == "tips" else ()
        if where == "bodies":
            last = tuple(mech.node(tip).body for tip in parts.tips)
            total += operations(mech, name, (), last)
            continue
        total += operations(mech, name, nodes, parts.arm_bodies if arms_only else None)
    return total


def operations(
    mech: lw.Mechanism, name: str, nodes: tuple[str, ...], rows: tuple[str, ...] | None
) -> int:
    """Scalar operations of one kernel."""
    return sum(multi_arm_kernel(mech, name, nodes, rows=rows, target="numpy").ops.values())


def dense_multiplications(method: str, arms: int) -> int:
    """Of the solution for the contact forces, for rigid grasps of a rigid object."""
    if method == "linear":  # Λ, A* Λ, A* Λ A and four products with vectors an arm; one more factor
        return arms * (216 // 6 + 2 * 216 + 4 * 36) + 216 // 6 + 36
    return (6 * arms) ** 3 // 6 + (6 * arms) ** 2


def by_links() -> str:
    """Two arms, more and more links."""
    head = "## Links: two arms\n\n| links an arm | " + " | ".join(METHODS) + " |\n"
    rows = [head + "| ---: |" + " ---: |" * len(METHODS)]
    for links in LINKS:
        mech = held(2, links)
        counts = [kernel_operations(mech, method) for method in METHODS]
        each = [f"{c:,} ({c / (2 * links):,.0f} a link)" for c in counts]
        rows.append(f"| {links} | " + " | ".join(each) + " |")
    return "\n".join(rows) + "\n"


def by_arms() -> str:
    """Arms of seven links, more and more of them."""
    head = "## Arms: seven links each\n\nKernels, and the dense part behind the plus sign.\n\n"
    head += "| arms | " + " | ".join(METHODS) + " |\n| ---: |" + " ---: |" * len(METHODS)
    rows = [head]
    for arms in ARMS:
        mech = held(arms, 7)
        each = [
            f"{kernel_operations(mech, m):,} + {dense_multiplications(m, arms):,}" for m in METHODS
        ]
        rows.append(f"| {arms} | " + " | ".join(each) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
