"""`linkwise tour`: everything once on a robot, each step checked, with a report."""

from __future__ import annotations

import argparse
from typing import Any

from linkwise.cli.arguments import add_roots, check_place, open_robot

REPORT = "linkwise_tour.html"
"""The default file of the report."""

EXAMPLES = f"""examples:
  linkwise tour                     on a PUMA 560; writes {REPORT}
  linkwise tour my_robot.urdf       the same for your robot
  linkwise tour seven_dof_arm --report arm.html
  linkwise tour humanoid --quick    shorter motions, fewer draws
  linkwise tour --no-report         the terminal alone; needs NumPy and llvmlite only

What it does: loads and draws the robot, simulates it, controls its hand, times the everyday
functions beside Pinocchio and MuJoCo, draws belted ellipsoids, simulates a closed chain, derives
forward dynamics from one line of algebra and shows inertia as covariance; every step is checked.
The report is one file that opens in any browser without a network. Pictures need the extras `plot`
and `video`, playback `viewer`: pip install 'linkwise[tour]'.
Exit status: 0 if every check holds, 1 if one fails, 2 if the robot cannot be read.
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
        "--report", metavar="FILE", default=REPORT, help=f"file of the report (default: {REPORT})"
    )
    p.add_argument("--no-report", action="store_true", help="write no report")
    p.add_argument("--quick", action="store_true", help="shorter motions, fewer samples")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the tour; 1 if a check failed."""
    report = None if options.no_report else options.report
    if report is not None:
        check_place("--report", report, options.robot)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    from linkwise.tour.guide import guide

    return int(guide(mech, report=report, quick=options.quick).failed > 0)
