"""`linkwise bench [ROBOT]`: times of the everyday functions on your robot and your machine."""

from __future__ import annotations

import argparse
from typing import Any

from linkwise.brief import extent
from linkwise.cli.arguments import add_roots, open_robot
from linkwise.errors import ModelError
from linkwise.tour.text import table

EXAMPLES = """examples:
  linkwise bench                        on a PUMA 560
  linkwise bench my_robot.urdf          on your robot
  linkwise bench humanoid --quick       rough figures in a few seconds
  linkwise bench "chain(100)" --batch 256

reading the table:
  operations    of the machine code, after constants of the robot were folded
  first call    derives, plans and compiles, or reads machine code that was kept on disk
  one call      one state, called from Python, on one core: the best of many
  in a batch    one of many states in one call, on all cores this process may use
  ratio         the other library's time over ours, for one call; it has the same robot, read from
                a file that Linkwise wrote, and the same results. MuJoCo's functions do more than
                ours: they compute everything that a step needs.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "bench",
        help="time the everyday functions on a robot, beside Pinocchio and MuJoCo",
        description="Times the everyday functions on a robot, and those of Pinocchio and MuJoCo "
        "where they are installed, in the same run.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "robot", metavar="ROBOT", nargs="?", default="puma560",
        help="URDF or MJCF file, or a built-in name (default: puma560)",
    )  # fmt: skip
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument(
        "--batch", type=int, default=1024, metavar="N", help="states per batch (default: 1024)"
    )
    p.add_argument("--quick", action="store_true", help="rough figures, sooner")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print."""
    if options.batch < 1:
        raise ModelError(f"--batch is {options.batch}; a batch has at least one state.")
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    from linkwise.tour.bench import bench
    from linkwise.tour.measure import processor, versions

    result = bench(mech, quick=options.quick, batch=options.batch)
    print(f"{mech.name}: {extent(mech.n_bodies, mech.nv)}; {processor()}")
    print(", ".join(f"{name} {version}" for name, version in versions().items()) + "\n")
    print("\n".join(table(result.head, [line.cells(result.libraries) for line in result.lines])))
    for note in result.notes:
        print(f"\n{note}")
    return 0
