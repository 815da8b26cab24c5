"""`linkwise identify ROBOT DATA`: parameters of a robot from a table of measurements."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

from linkwise.atomic_file import write_file
from linkwise.cli.arguments import add_roots, check_place, open_robot
from linkwise.errors import ModelError

EXAMPLES = """examples:
  linkwise identify arm.urdf run.csv --bandwidth 10           from positions and joint forces
  linkwise identify arm.urdf run.parquet --bandwidth 10 --robust
  linkwise identify arm.urdf run.csv --folds 5                with cross-validation
  linkwise identify arm.urdf run.csv --save identified.urdf --plot fit.png

The table has a column t, and q[JOINT] and tau[JOINT] for each joint, as recordings saved by
`linkwise simulate ROBOT --save run.csv` have. Joints of which the motor current or command was
measured have u[JOINT] instead, and their gains are identified. Forces at nodes are f[NODE].0 to
f[NODE].5. Loops and couplings of the robot are held; joints without a motor have no force. If the
table has v[JOINT] and vdot[JOINT] as well, these are used; else positions are filtered and
differentiated.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "identify",
        help="inertias, friction, armature and motor gains from measurements",
        description="Identifies the parameters of a robot from measured motions and joint forces.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("data", metavar="DATA", help="CSV or Parquet file with the measurements")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument(
        "--bandwidth", type=float, metavar="HZ", help="of the filter (default: a tenth of sampling)"
    )
    p.add_argument(
        "--parameters",
        metavar="NAMES",
        default="inertia,damping,friction",
        help="what to identify: inertia, armature, damping, friction, stiffness, offset, gain",
    )
    p.add_argument("--robust", action="store_true", help="outliers weigh less")
    p.add_argument(
        "--slow", type=float, metavar="SPEED", help="leave out friction below this speed"
    )
    p.add_argument(
        "--forces-frame", choices=("node", "world"), default="node", help="axes of forces at nodes"
    )
    p.add_argument("--folds", type=int, metavar="N", help="cross-validation with N parts")
    p.add_argument("--save", metavar="FILE", help="the identified robot: .urdf or .xml")
    p.add_argument("--plot", metavar="FILE", help="a picture of forces and parameters: .png, .pdf")
    p.add_argument("--report", metavar="FILE", help="all of it with pictures: .html")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, filter, identify, report."""
    import numpy as np

    from linkwise.identification import cross_validate, identify, load_measurements, smoothed
    from linkwise.identification.samples import known_forces
    from linkwise.io.save import save

    for option in ("save", "plot", "report"):
        if getattr(options, option) is not None:
            check_place(f"--{option}", getattr(options, option), options.robot, options.data)
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    data = load_measurements(mech, options.data)
    if data.tau is None:
        raise ModelError(
            f"{options.data} has no joint forces, columns like tau[JOINT], nor motor currents, "
            "columns like u[JOINT]."
        )
    arrays: list[Any] = [data.q, data.v, data.vdot, data.tau]
    forces = data.forces
    if data.v is None or data.vdot is None:
        step = float(np.median(np.diff(data.t))) if len(data.t) > 1 else 1.0
        band = 0.1 / step if options.bandwidth is None else options.bandwidth
        made = smoothed(mech, data.t, data.q, data.tau, bandwidth=band)
        arrays = [made.q, made.v, made.vdot, made.tau]
        forces = {node: f[made.kept] for node, f in forces.items()}
        complete = int(np.isfinite(made.q).all(axis=1).sum())
        print(f"filtered at {band:g} Hz, {complete} of {len(data.t)} samples kept")
        if made.outliers.any():
            print(f"{int(made.outliers.sum())} outlying positions replaced")
    elif options.bandwidth is not None:
        raise ModelError("--bandwidth is for positions alone; the table has v and vdot, too.")
    load = known_forces(mech, arrays[0], None, forces, options.forces_frame)
    kinds = [x.strip() for x in options.parameters.split(",")]
    given: dict[str, Any] = {"robust": options.robust, "applied": load}
    if data.commanded:
        given["commanded"] = data.commanded
        kinds += [] if "gain" in kinds else ["gain"]
    given["parameters"] = tuple(kinds)
    given |= {} if options.slow is None else {"slow": options.slow}
    fit = identify(mech, *arrays, **given)
    print(fit)
    if options.folds is not None:
        print(cross_validate(mech, *arrays, folds=options.folds, **given))
    if options.save is not None:
        print(save(fit.mech, options.save))
        print(f"saved {options.save}")
    if options.plot is not None:
        from linkwise.plot import identification

        picture = BytesIO()
        kind = Path(options.plot).suffix.removeprefix(".") or "png"
        identification(fit, *arrays, applied=load)[0].figure.savefig(picture, format=kind)
        write_file(Path(options.plot), picture.getvalue())
        print(f"wrote {options.plot}")
    if options.report is not None:
        from linkwise.plot import identification_report

        page = identification_report(fit, *arrays, applied=load, file=options.report)
        print(f"wrote {page}")
    return 0
