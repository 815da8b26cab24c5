"""`linkwise view ROBOT|RECORDING`: a robot or a motion in space, in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from linkwise.cli.arguments import add_roots, check_place, open_robot
from linkwise.errors import LinkwiseError, ModelError

EXAMPLES = """examples:
  linkwise view puma560                        sliders for all joints, in your browser
  linkwise view my_robot.urdf --show shapes,frames,masses
  linkwise view run.npz --robot my_robot.urdf      plays a recording
  linkwise view my_robot.urdf --html robot.html        one file instead, to send by mail
  linkwise view puma560 --no-browser --port 8080       on a machine without a screen

layers of --show:
  shapes, collision, frames, axes, masses, inertia, belted, forces, traces, names, grid

The page is served to this machine only, until Ctrl-C. --host 0.0.0.0 opens it to others, without a
password.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "view",
        help="show a robot, or play a recording, in a browser",
        description="Shows a robot in space with sliders for its joints, or plays a recording. "
        "Needs the extra `viewer`.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("subject", metavar="ROBOT|RECORDING", help="a robot, or a recording (.npz)")
    p.add_argument(
        "--robot", metavar="ROBOT", help="robot of the recording, if its name does not identify it"
    )
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--show", metavar="LAYERS", default="shapes,grid", help="shapes,grid")
    p.add_argument("--node", metavar="NAME", action="append", default=[],
                   help="node of belted ellipsoids and traces; may be repeated")  # fmt: skip
    p.add_argument("--theme", default="light", help="light or dark")
    p.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    p.add_argument("--port", type=int, default=0, help="port to listen on (default: any free port)")
    p.add_argument("--no-browser", action="store_true", help="print the address only")
    p.add_argument("--html", metavar="FILE", help="write a page instead of serving one")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted, or write the page."""
    if options.html is not None:
        check_place("--html", options.html, options.subject, options.robot)
    subject = _subject(options)
    show = [layer.strip() for layer in options.show.split(",") if layer.strip()]
    look: dict[str, Any] = {
        "show": show,
        "nodes": tuple(options.node),
        "theme": options.theme,
        "roots": options.roots,
    }
    if options.html is not None:
        return _write(subject, options.html, look)
    if not 0 <= options.port < 65536:
        raise ModelError(f"--port is {options.port}; ports are from 0 (any) to 65535.")
    from linkwise.viewer import view

    browser = False if options.no_browser else None
    try:
        with view(subject, host=options.host, port=options.port, open_browser=browser, **look) as v:
            print("Ctrl-C ends it.", flush=True)
            v.block()
    except KeyboardInterrupt:  # how it is meant to end, also while the page opens
        print()
    return 0


def _write(subject: Any, path: str, look: dict[str, Any]) -> int:
    from linkwise.viewer import export_html

    file = export_html(subject, path, **look)
    size = file.stat().st_size / 1e6
    print(f"{file} ({size:.1f} MB, one file, opens in any browser)")
    return 0


def _subject(options: argparse.Namespace) -> Any:
    """The robot, or a recording."""
    if Path(options.subject).suffix.lower() != ".npz":
        return open_robot(options.subject, base=options.base, roots=options.roots)
    from linkwise.simulation.recording_file import load_recording

    if options.robot is not None:
        mech = open_robot(options.robot, base=options.base, roots=options.roots)
        return load_recording(options.subject, mech)
    name = load_recording(options.subject).name
    try:
        mech = open_robot(name)
    except LinkwiseError:
        raise ModelError(
            f"{options.subject} is a recording of {name!r}, which is no built-in mechanism; say "
            "where it is with --robot my_robot.urdf."
        ) from None
    return load_recording(options.subject, mech)
