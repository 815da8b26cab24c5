"""`linkwise optimize ROBOT`: the motion of least cost that takes a node to a place or a pose."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.cli.arguments import add_roots, check_place, open_robot

EXAMPLES = """examples:
  linkwise optimize seven_dof_arm --node hand --to 0.4 0.2 0.6
  linkwise optimize my_robot.urdf --node tool --to 0.3 0 0.5 --duration 1.5 --save motion.npz
  linkwise optimize arm.urdf --q 0 0.5 0 1.2 0 0.6 0 --node tool --to-pose 0.3 0 0.5 0 1.57 0
  linkwise optimize arm.urdf --node tool --to 0.3 0 0.5 --plot motion.png

The node reaches the place or the pose at rest, with the least joint forces, within the limits of
the robot. The file has time, q, v, tau and gain of each step.

Exit status: 0, or 2 if no such motion is reached; the message says why.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "optimize",
        help="the motion of least cost that takes a node to a place or a pose",
        description="Finds the motion and the joint forces that take a node to a place.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--node", required=True, help="the node or body that moves")
    end = p.add_mutually_exclusive_group(required=True)
    end.add_argument("--to", type=float, nargs=3, metavar=("X", "Y", "Z"), help="the place [m]")
    end.add_argument(
        "--to-pose",
        type=float,
        nargs=6,
        metavar=("X", "Y", "Z", "ROLL", "PITCH", "YAW"),
        help="the pose: place [m], and angles about the fixed axes x, y and z [rad]",
    )
    p.add_argument("--duration", type=float, default=1.0, metavar="S", help="seconds (default: 1)")
    p.add_argument("--steps", type=int, default=50, metavar="N", help="of the motion (default: 50)")
    start = p.add_mutually_exclusive_group()
    start.add_argument(
        "--q", type=float, nargs="+", metavar="Q", help="initial joint positions (default: neutral)"
    )
    start.add_argument("--random", type=int, metavar="SEED", help="seed of a random initial pose")
    p.add_argument("--save", metavar="FILE", help="the motion as a .npz file")
    p.add_argument("--plot", metavar="FILE", help="a picture of the motion: .png, .pdf")
    p.add_argument("--quiet", action="store_true", help="without a line for each iteration")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Optimise, report, save."""
    from linkwise.control import Bound, Cost, optimize
    from linkwise.errors import ModelError
    from linkwise.spatial.pose import Pose
    from linkwise.tasks.measure import task_position
    from linkwise.tasks.reach import reach
    from linkwise.tasks.task import Task

    for option in ("save", "plot"):
        if getattr(options, option) is not None:
            check_place(f"--{option}", getattr(options, option), options.robot)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    if options.steps < 1:
        raise ModelError(f"--steps is {options.steps}; it must be at least 1.")
    if not 0.0 < options.duration < np.inf:
        raise ModelError(f"--duration is {options.duration:g}; it must be a positive number [s].")
    numbers = options.to if options.to_pose is None else options.to_pose
    if not np.isfinite(numbers).all():
        given = "--to" if options.to_pose is None else "--to-pose"
        raise ModelError(f"{given} is {' '.join(map(str, numbers))}; all numbers must be finite.")
    q = mech.neutral() if options.random is None else mech.random(options.random)
    if options.q is not None:
        q = mech.check_q(options.q)
    place, goal = Task.position(options.node), options.to
    if options.to_pose is not None:
        x = options.to_pose
        place, goal = Task.pose(options.node), Pose.rpy(x[3:], x[:3])
    there = np.asarray(options.to if options.to_pose is None else options.to_pose[:3])
    first, longest = reach(mech, options.node)
    if (away := float(np.linalg.norm(there - first))) > longest + 1e-9:
        raise ModelError(
            f"{options.node!r} cannot get there: the place is {away:.4g} m from the first hinge, "
            f"and all links and travels together are {longest:.4g} m long. Give a nearer place."
        )
    made = optimize(
        mech,
        q,
        costs=[
            Cost.of_task(place, goal, final=10.0),
            Cost.velocity(weight=0.1, final=1.0),
            Cost.effort(weight=1e-3),
        ],
        bounds=[Bound.on_task(place, goal, when="final")],
        step=options.duration / options.steps,
        horizon=options.steps,
        progress=None if options.quiet else print,
    )
    print(made)
    if int(made.status):
        end = task_position(mech, made.q[-1], Task.position(options.node))
        left = float(np.linalg.norm(end - there))
        print(
            f"{options.node!r} ends {left:.3g} m from the place after {options.duration:g} s; give "
            "a longer --duration, another start, or a place that it can reach within its limits"
        )
    if options.save is not None:
        stream = BytesIO()
        parts = ("time", "q", "v", "tau", "gain")
        np.savez(stream, **{name: getattr(made, name) for name in parts})
        write_file(options.save, stream.getvalue())
        print(f"saved {options.save}")
    if options.plot is not None:
        from linkwise.plot import trajectory

        picture = BytesIO()
        kind = Path(options.plot).suffix.removeprefix(".") or "png"
        trajectory(made)[0].figure.savefig(picture, format=kind)
        write_file(Path(options.plot), picture.getvalue())
        print(f"wrote {options.plot}")
    return 0 if int(made.status) == 0 else 2
