"""`linkwise simulate ROBOT`: a motion, its report, and files of it."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from linkwise.cli.arguments import add_roots, check_place, open_robot
from linkwise.errors import ModelError, SimulationError, unknown_name
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism

EXAMPLES = """examples:
  linkwise simulate puma560                               let it fall for 2 s
  linkwise simulate my_robot.urdf --hold --random 7       held in a random pose
  linkwise simulate my_robot.xml --command knee=0.3       with its actuators, on its floor
  linkwise simulate humanoid --duration 5 --save run.npz  linkwise view run.npz plays it
  linkwise simulate four_bar --save run.mp4               or .gif, .csv
  linkwise simulate puma560 --html run.html               playback in one file

Exit status: 0, or 2 if the motion cannot go on; what was computed until then is saved.
"""

STIFF, DAMPED = 100.0, 20.0
"""Of --hold [1/s², 1/s]: critically damped, 10 rad/s."""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "simulate",
        help="move a robot through time; save and play the motion",
        description="Moves a robot through time and reports energy, momentum and loops.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--duration", type=float, default=2.0, metavar="S", help="seconds (default: 2)")
    p.add_argument("--step", type=float, metavar="S", help="length of a step [s]")
    p.add_argument(
        "--integrator",
        metavar="NAME",
        help="method (default: implicit if actuators or contacts act, else rk4)",
    )
    p.add_argument(
        "--command",
        action="append",
        default=[],
        metavar="ACTUATOR=NUMBER",
        help="command of an actuator (default: servos hold the initial pose, others are off)",
    )
    p.add_argument(
        "--bare", action="store_true", help="without actuators, contacts and hard joint limits"
    )
    p.add_argument(
        "--random",
        type=int,
        metavar="SEED",
        help="seed of a random initial pose (default: neutral)",
    )
    p.add_argument("--hold", action="store_true", help="joint forces hold the initial pose")
    p.add_argument("--save", metavar="FILE", help="the recording: .npz, .csv, .mp4 or .gif")
    p.add_argument("--html", metavar="FILE", help="a page that plays it")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate, report, save."""
    from linkwise.dynamics import computed_torque
    from linkwise.dynamics.kernels import tree_of
    from linkwise.simulation import Recording, contact_points, put_on_ground, simulate

    for option in ("save", "html"):
        if getattr(options, option) is not None:
            check_place(f"--{option}", getattr(options, option), options.robot)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    q = None if options.random is None else mech.random(options.random)
    given: dict[str, Any] = {} if options.step is None else {"step": options.step}
    given |= _acting(mech, q, options)
    if q is None and given["integrator"] == "implicit" and isinstance(mech.bodies[0].hinge, Free):
        q = put_on_ground(mech) if contact_points(mech) and not options.bare else None
    if options.hold:
        if any(isinstance(body.hinge, Free) for body in mech.bodies):
            raise ModelError(f"--hold needs a fixed base; {mech.name!r} floats. Try --base fixed.")
        start, tree = mech.couple(mech.neutral()) if q is None else q, tree_of(mech)
        rest = np.zeros(mech.nv)

        def hold(t: float, q: Any, v: Any) -> Any:
            return computed_torque(tree, q, v, start, rest, rest, kp=STIFF, kv=DAMPED)

        given["controller"] = hold
    lost = None
    try:
        recording = simulate(mech, q, duration=options.duration, **given)
    except SimulationError as error:
        if not isinstance(error.recording, Recording):
            raise
        recording, lost = error.recording, error
    print(recording.report)
    if options.save is not None:
        recording.save(options.save)
        print(f"saved {options.save}")
    if options.html is not None:
        from linkwise.viewer import export_html

        print(f"wrote {export_html(recording, options.html)}")
    if lost is not None:
        raise lost
    return 0


def _acting(mech: Mechanism, q: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The integrator, and what the actuators of the mechanism do."""
    from linkwise.simulation import contact_points, hold_commands

    if options.bare and options.command:
        raise ModelError("--bare leaves out the actuators, and --command was given; choose one.")
    motors = () if options.bare or options.hold else mech.actuators
    full = bool(motors) or not (options.bare or options.hold or not contact_points(mech))
    name = options.integrator or ("implicit" if full else "rk4")
    acting: dict[str, Any] = {"integrator": name}
    if name == "implicit" and options.bare:
        acting["contacts"] = ()
    if name != "implicit" or not motors:
        if options.command:
            raise ModelError(
                "--command is for the actuators of a file, which act in implicit steps; "
                f"{mech.name!r} has {len(mech.actuators)} of them and moves by {name!r}."
            )
        return acting
    commands = dict(zip([x.name for x in motors], hold_commands(mech, q).tolist(), strict=True))
    for text in options.command:
        actuator, _, value = text.partition("=")
        if actuator not in commands:
            raise unknown_name("actuator", actuator, list(commands), owner=f"{mech.name!r}")
        try:
            commands[actuator] = float(value)
        except ValueError:
            raise ModelError(f"--command {text!r} is not ACTUATOR=NUMBER.") from None
    return acting | {"controls": commands}
