"""`linkwise optimize ROBOT`: the motion of least cost that takes a node to a place."""

from __future__ import annotations

import argparse
from io import BytesIO
from typing import Any

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.cli.arguments import add_roots, check_place, open_robot

EXAMPLES = """examples:
  linkwise optimize seven_dof_arm --node hand --to 0.4 0.2 0.6
  linkwise optimize my_robot.urdf --node tool --to 0.3 0 0.5 --duration 1.5 --save motion.npz

The node reaches the place at rest, with the least joint forces, within the limits of the robot. The
file has time, q, v, tau and gain of each step.

Exit status: 0, or 2 if no such motion is reached; the message says why.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "optimize",
        help="the motion of least cost that takes a node to a place",
        description="Finds the motion and the joint forces that take a node to a place.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--node", required=True, help="the node or body that moves")
    p.add_argument(
        "--to", type=float, nargs=3, required=True, metavar=("X", "Y", "Z"), help="the place [m]"
    )
    p.add_argument("--duration", type=float, default=1.0, metavar="S", help="seconds (default: 1)")
    p.add_argument("--steps", type=int, default=50, metavar="N", help="of the motion (default: 50)")
    p.add_argument(
        "--random",
        type=int,
        metavar="SEED",
        help="seed of a random initial pose (default: neutral)",
    )
    p.add_argument("--save", metavar="FILE", help="the motion as a .npz file")
    p.add_argument("--quiet", action="store_true", help="without a line for each iteration")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Optimise, report, save."""
    from linkwise.control import Bound, Cost, optimize
    from linkwise.errors import ModelError
    from linkwise.tasks.task import Task

    if options.save is not None:
        check_place("--save", options.save, options.robot)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    if options.steps < 1:
        raise ModelError(f"--steps is {options.steps}; it must be at least 1.")
    q = mech.neutral() if options.random is None else mech.random(options.random)
    place = Task.position(options.node)
    made = optimize(
        mech,
        q,
        costs=[
            Cost.of_task(place, options.to, final=10.0),
            Cost.velocity(weight=0.1, final=1.0),
            Cost.effort(weight=1e-3),
        ],
        bounds=[Bound.on_task(place, options.to, when="final")],
        step=options.duration / options.steps,
        horizon=options.steps,
        progress=None if options.quiet else print,
    )
    print(made)
    if options.save is not None:
        stream = BytesIO()
        parts = ("time", "q", "v", "tau", "gain")
        np.savez(stream, **{name: getattr(made, name) for name in parts})
        write_file(options.save, stream.getvalue())
        print(f"saved {options.save}")
    return 0 if int(made.status) == 0 else 2
