"""`linkwise tour`: the main job on a robot, every step shown and checked, and a report of it."""

from __future__ import annotations

import argparse
from typing import Any

from linkwise.cli.robot import add_roots, open_robot

REPORT = "linkwise_tour.html"
"""Where the report goes, if nothing is said."""

EXAMPLES = f"""examples:
  linkwise tour                     on a PUMA 560; writes {REPORT}
  linkwise tour my_robot.urdf       the same for your robot
  linkwise tour seven_dof_arm --report arm.html
  linkwise tour humanoid --quick    shorter motions, fewer draws
  linkwise tour --no-report         the terminal alone; needs NumPy and llvmlite only

What it does: loads the robot, derives its forward dynamics from one line of algebra, compiles it,
checks it against explicit matrices, times it, simulates a controlled arm and a closed chain, shows
inertia as covariance, and draws belted ellipsoids. The report is one file that opens in any browser
without a network. Pictures need the extra `plot`, playback `viewer`: pip install 'linkwise[tour]'.
Exit status: 0 if every check holds, 1 if one fails, 2 for a robot that cannot be read.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "tour",
        help="a guided tour: derive, compile, check, time, simulate, draw; writes a report",
        description="A guided tour of what Linkwise does, on built-in mechanisms or on your robot.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "robot", metavar="ROBOT", nargs="?", default="puma560",
        help="URDF or MJCF file, or a built-in name (default: puma560)",
    )  # fmt: skip
    p.add_argument(
        "--report", metavar="FILE", default=REPORT, help=f"where it goes (default: {REPORT})"
    )
    p.add_argument("--no-report", action="store_true", help="write none")
    p.add_argument("--quick", action="store_true", help="leave out what takes long")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show it; 1 if a check failed."""
    from linkwise.tour.place import check_places

    report = None if options.no_report else options.report
    check_places({"--report": report}, options.robot)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    from linkwise.tour.guide import guide

    return int(guide(mech, report=report, quick=options.quick).failed > 0)
