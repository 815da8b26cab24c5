"""`linkwise simulate ROBOT`: a motion, its report, and files of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.cli.arguments import VECTORS, add_roots, open_robot, positions, velocities
from linkwise.dynamics.kernels import tree_of
from linkwise.errors import ModelError, SimulationError
from linkwise.model.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.simulation.recording import Recording
    from linkwise.spatial.array import Array

EXAMPLES = f"""examples:
  linkwise simulate puma560                                   let it fall for 2 s
  linkwise simulate my_robot.urdf --controller hold --v random
  linkwise simulate my_robot.urdf --q elbow=0.5 --duration 5 --record run.parquet
  linkwise simulate four_bar --v crank=8 --plot run.png       plots of q, v and energy
  linkwise simulate humanoid --html fall.html                 playback in one file
  linkwise simulate puma560 --report run.html                 all of it on one page

controllers:
  none      joint forces are those of --tau (default: none)
  gravity   joint forces carry the weight: the robot floats
  hold      and draw it back to where it began, as a critically damped spring
  They are asked once a step; with --integrator adaptive, always.
  A free base is not driven: forces on it stay zero. Its joints keep their posture while it falls,
  and carry its weight where loops hold it to the ground.

{VECTORS}
Formats of --record: .parquet and .h5 (extra `record`), .csv, .npz; linkwise view plays them.
Exit status: 0; 2 if the motion cannot go on, 130 if Ctrl-C ended it. What was computed until then
is recorded.
"""

CONTROLLERS = ("none", "gravity", "hold")
STIFF, DAMPED = 100.0, 20.0
"""Of the controller "hold" [1/s², 1/s]: critically damped, 10 rad/s."""
INTERRUPTED = 130
"""Exit status of a motion that Ctrl-C ended."""
MANY = 1e7
"""Numbers of steps from which on a message precedes the run."""
SUFFIXES = (".parquet", ".h5", ".hdf5", ".csv", ".npz")


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "simulate",
        help="move a robot through time; record, plot and play the motion",
        description="Moves a robot through time and prints what became of energy, momentum and "
        "loops.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--duration", type=float, default=2.0, metavar="S", help="how long (2 s)")
    p.add_argument("--step", type=float, default=1e-3, metavar="S", help="step of time (0.001 s)")
    p.add_argument(
        "--integrator", default="rk4", metavar="NAME",
        help="rk4, euler, variational, rk4_mujoco or adaptive (needs SciPy)",
    )  # fmt: skip
    p.add_argument("--q", metavar="Q", help="joint positions at the beginning (neutral)")
    p.add_argument("--v", metavar="V", help="joint velocities at the beginning (at rest)")
    p.add_argument("--tau", metavar="TAU", help="joint forces that act all the time (none)")
    p.add_argument("--controller", default="none", metavar="NAME", help=", ".join(CONTROLLERS))
    p.add_argument(
        "--limits", default="ignore", metavar="HOW", help="joint limits: ignore, stop or spring"
    )
    p.add_argument(
        "--no-passive", action="store_true", help="without dampers and springs of drives"
    )
    p.add_argument(
        "--loops", choices=("closed", "open"), default="closed",
        help="hold loops and couplings, or leave them open (closed)",
    )  # fmt: skip
    p.add_argument("--record", metavar="FILE", help="write the recording, in the suffix's format")
    p.add_argument("--plot", metavar="FILE", help="draw q, v and energy (.png, .svg or .pdf)")
    p.add_argument("--html", metavar="FILE", help="write a page that plays the motion in space")
    p.add_argument("--report", metavar="FILE", help="write a page with plots, playback and figures")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate, print the report, write the requested files."""
    _check_places(options)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    if options.loops == "open":
        mech = tree_of(mech)
    from linkwise.simulation.recording import Recording
    from linkwise.simulation.run import simulate

    q, v, tau = start(mech, options)
    law = controller(mech, q, options.controller)
    ticks = None if law is None or options.integrator == "adaptive" else options.step
    _tell_length(options)
    try:
        rec = simulate(
            mech, q, v, duration=options.duration, step=options.step,
            integrator=options.integrator, tau=tau, limits=options.limits,
            controller=law, control_step=ticks, passive=not options.no_passive,
        )  # fmt: skip
    except SimulationError as error:
        if isinstance(error.recording, Recording):  # what there is
            _keep(error.recording, options)
        raise
    print(rec)
    _keep(rec, options)
    interrupted = rec.stopped is not None and rec.stopped.startswith("interrupted")
    return INTERRUPTED if interrupted else 0


def _tell_length(options: argparse.Namespace) -> None:
    """How many steps are ahead, where they are very many."""
    steps = options.duration / options.step if options.step > 0.0 else 0.0
    if options.integrator != "adaptive" and MANY <= steps < float("inf"):
        print(
            f"linkwise: {steps:.3g} steps of {options.step:.3g} s are ahead; Ctrl-C ends them, and "
            "what was computed until then is kept.",
            file=sys.stderr,
        )


def start(mech: Mechanism, options: argparse.Namespace) -> tuple[Array, Array, Array]:
    """Positions, velocities and joint forces; with loops, the nearest that close them."""
    q = positions(mech, options.q)
    v = velocities(mech, options.v, "--v")
    tau = velocities(mech, options.tau, "--tau")
    if not (mech.loops or mech.couplings):
        return q, v, tau
    from linkwise.loops import assemble, project_velocity

    q = assemble(mech, q).required()
    return q, project_velocity(mech, q, v), tau


def controller(
    mech: Mechanism, q_start: Array, name: str
) -> Callable[[float, Array, Array], Array] | None:
    """A controller by its name.

    Raises:
        ModelError: There is none of that name.
    """
    from linkwise.dynamics import computed_torque, gravity_force
    from linkwise.model.hinges import Free

    if name not in CONTROLLERS:
        raise ModelError(f"--controller is {name!r}; there are {', '.join(CONTROLLERS)}.")
    if name == "none":
        return None
    driven = [body for body in mech.bodies if body.hinge.nv and not isinstance(body.hinge, Free)]
    rest = np.zeros(mech.nv)
    if len(driven) < sum(body.hinge.nv > 0 for body in mech.bodies):
        return _floating(mech, q_start, [body.hinge_name for body in driven], hold=name == "hold")

    def carry(t: float, q: Array, v: Array) -> Array:
        del t, v
        return gravity_force(mech, q)

    def hold(t: float, q: Array, v: Array) -> Array:
        del t
        return computed_torque(mech, q, v, q_start, rest, rest, kp=STIFF, kv=DAMPED)

    return carry if name == "gravity" else hold


def _floating(
    mech: Mechanism, q_start: Array, hinges: list[str], *, hold: bool
) -> Callable[[float, Array, Array], Array]:
    """Prescribed joint accelerations on a base that nothing drives.

    Joint forces alone do it, τ = J* Λ (v̇_joints − …) of the task that the joints are, whatever the
    base does: it falls, or loops to the ground carry it (`lw.tasks.task_torque`).
    """
    from linkwise.tasks import Task, task_torque

    if not hinges:
        return lambda t, q, v: np.zeros(mech.nv)
    joints = Task.joints(*hinges)
    rows = np.concatenate([np.arange(mech.nv)[mech.v_slice(name)] for name in hinges])
    still = np.zeros(mech.nv)

    def posture(t: float, q: Array, v: Array) -> Array:
        del t
        if not hold:  # what joints at rest would need
            return task_torque(mech, q, still, joints, still[rows])
        target = STIFF * mech.difference(q, q_start) - DAMPED * v
        return task_torque(mech, q, v, joints, target[rows])

    return posture


def _check_places(options: argparse.Namespace) -> None:
    """Before anything is computed: can all be written?"""
    from linkwise.cli.arguments import check_places
    from linkwise.plot.canvas import matplotlib
    from linkwise.viewer.guard import viser

    targets = {name: getattr(options, name) for name in ("record", "plot", "html", "report")}
    check_places({f"--{name}": path for name, path in targets.items()}, options.robot)
    for option, path in targets.items():
        if path is None:
            continue
        if option == "plot":
            matplotlib("matplotlib", "--plot")
        if option == "html":
            viser("--html")
        if option == "record" and Path(path).suffix.lower() not in SUFFIXES:
            raise ModelError(f"--record {path}: a recording ends in {', '.join(SUFFIXES)}.")
        if option == "plot" and Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ModelError(f"--plot {path}: a picture ends in .png, .svg or .pdf.")


def _keep(rec: Recording, options: argparse.Namespace) -> None:
    """Write the requested files."""
    from linkwise.tour import motion_page

    if options.record is not None:
        rec.save(options.record)
        print(f"recording: {options.record} ({len(rec)} records, {len(rec.channels)} channels)")
    if options.plot is not None:
        motion_page.plot(rec, options.plot)
        print(f"plot: {options.plot}")
    if options.html is not None:
        from linkwise.viewer import export_html

        export_html(rec, options.html)
        print(f"playback: {options.html} (one file, opens in any browser)")
    if options.report is not None:
        write_file(options.report, motion_page.motion_page(rec))
        print(f"report: {options.report} (one file, opens in any browser)")
