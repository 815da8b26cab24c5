"""`linkwise export-c ROBOT`: a quantity of a mechanism as one header and one C99 source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linkwise.algebra.derivation import leaves
from linkwise.algebra.expr import Expr
from linkwise.cli.arguments import add_roots, open_robot
from linkwise.cli.derive import NOTATION, read
from linkwise.codegen.c.emit import DType
from linkwise.codegen.c.source import CSource, default_name, write_files
from linkwise.codegen.c.text import check_identifier
from linkwise.codegen.request import Request
from linkwise.convert.external import casadi_source
from linkwise.dynamics.closure import closed_expression
from linkwise.dynamics.kernels import is_closed, refuse, tree_of
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError
from linkwise.model.closure import closure_nodes, is_traceable
from linkwise.model.mechanism import Mechanism

EXAMPLES = f"""examples:
  linkwise export-c puma560 --quantity forward_dynamics -o generated/
  linkwise export-c robot.urdf --base free --quantity mass_matrix
  linkwise export-c robot.urdf --quantity jacobian --node tool
  linkwise export-c puma560 --expr "mass^-1 (tau - bias + J* f)" --node link_6 --name pushed

then:
  cc -std=c99 -O2 -march=native -c generated/puma560_forward_dynamics.c
  cc -std=c99 -O2 -DPUMA560_FORWARD_DYNAMICS_SELFTEST generated/puma560_forward_dynamics.c -lm
  ./a.out

{NOTATION}"""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity with a name.

    Attributes:
        expr: Its expression.
        title: In words.
        unit: Kind of the result (`c_header.KINDS`).
    """

    expr: Expr
    title: str
    unit: str


def _named(name: str, title: str, unit: str) -> Quantity:
    """A quantity of `linkwise.dynamics`."""
    return Quantity(expression(name), title, unit)


QUANTITIES = {
    "forward_dynamics": _named(
        "forward_dynamics", "accelerations caused by forces", "acceleration"
    ),
    "inverse_dynamics": _named(
        "inverse_dynamics", "forces that cause given accelerations", "force"
    ),
    "mass_matrix": _named("mass_matrix", "mass matrix", "inertia"),
    "mass_matrix_inverse": _named(
        "mass_matrix_inverse", "inverse of the mass matrix", "inverse inertia"
    ),
    "bias_force": _named("bias_force", "Coriolis, centrifugal and gravity forces", "force"),
    "gravity_force": _named("gravity_force", "forces that hold it at rest", "force"),
    "node_poses": _named("node_poses", "poses of the nodes in the world, rows of (rot | p)", ""),
    "jacobian": _named("jacobian", "Jacobian of the nodes", "velocity per rate"),
    "operational_space_compliance": _named(
        "operational_inertia_inverse",
        "operational-space compliance of the nodes",
        "inverse inertia",
    ),
    "operational_space_inertia": _named(
        "operational_inertia", "operational-space inertia of the nodes", "inertia"
    ),
}


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "export-c",
        help="a quantity of a mechanism as C99 source, with a self-test",
        description="Writes NAME.h and NAME.c: one function, straight-line code, no allocation, "
        "no library but math.h. Armature is part of the mass matrix.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--quantity", metavar="NAME", choices=tuple(QUANTITIES), help=", ".join(QUANTITIES)
    )
    what.add_argument("--expr", metavar="EXPR", help="an expression of your own")
    p.add_argument("--node", metavar="NODE", action="append", default=[], help="may be repeated")
    p.add_argument(
        "--parameter",
        metavar="NAME",
        action="append",
        default=[],
        help="a number of the robot that stays an input: gravity, inertia, payload:NODE, armature, "
        "locked; may be repeated",
    )
    p.add_argument(
        "--loops",
        choices=("closed", "open"),
        default="closed",
        help="hold loops and couplings, or leave them open (default: closed)",
    )
    p.add_argument(
        "-o", "--output", metavar="DIR", default=".", help="output folder, created if missing"
    )
    p.add_argument("--name", help="of the function and the files (default: robot and quantity)")
    p.add_argument("--dtype", choices=("float64", "float32"), default="float64",
                   help="number type of the C function (default: float64)")  # fmt: skip
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument(
        "--casadi",
        action="store_true",
        help="also write NAME_casadi.c, with derivatives, for casadi.external",
    )
    p.add_argument(
        "--force", action="store_true", help="overwrite files that linkwise did not write"
    )
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the two files and say what they are."""
    mech = open_robot(options.robot, base=options.base, roots=options.roots)
    if options.expr is None:
        quantity = QUANTITIES[options.quantity]
    else:
        quantity = Quantity(read(options.expr, sys.stdout), "", "")
    name = options.name or default_name(mech.name, options.quantity or "expression")
    if options.loops == "open":
        mech = tree_of(mech)
    elif is_closed(mech):
        print(_held(mech, options.quantity))
    made = export(
        quantity,
        mech,
        name,
        nodes=options.node,
        parameters=options.parameter,
        dtype=options.dtype,
    )
    paths = made.write(options.output, force=options.force)
    for path, text in zip(paths, made.texts, strict=True):
        print(f"wrote {path} ({text.count(chr(10))} lines)")
    if options.casadi:
        path = Path(options.output, f"{name}_casadi.c")
        text = casadi_source(replace(made.request, itemsize=8), f"{name}_casadi")
        write_files([path], [text], force=options.force)
        print(f"wrote {path} ({text.count(chr(10))} lines)")
    print(f"self-test: cc -std=c99 -O2 -D{name.upper()}_SELFTEST {paths[1]} -lm && ./a.out")
    return 0


def _held(mech: Mechanism, name: str | None) -> str:
    """What becomes of loops and couplings in a quantity; raises where they cannot be held."""
    if name == "forward_dynamics":
        return "note: loops and couplings are held."
    if name in ("operational_space_compliance", "operational_space_inertia"):
        refuse(
            mech,
            f"export-c --quantity {name}",
            "From Python, lw.operational_inertia holds them.",
        )
    if name == "inverse_dynamics":
        return "note: accelerations must obey loops and couplings, which then carry nothing."
    return "note: this is about the tree; loops and couplings add J_c* lambda to its equation."


def export(
    quantity: Quantity,
    mech: Mechanism,
    name: str,
    *,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    dtype: DType = "float64",
) -> CSource:
    """A quantity as C.

    Raises:
        ModelError: The quantity needs nodes and there are none, or the name is no C identifier.
    """
    check_identifier(name)
    spaces = {space for leaf in leaves(quantity.expr) for space in (leaf.range, leaf.domain)}
    needs = any(space.block == "node" for space in spaces)
    if needs and not nodes:
        known = ", ".join([*mech.node_index, *mech.body_index][:12])
        raise ModelError(
            f"{quantity.expr} is about nodes, and none is given; give --node, for instance one of "
            f"{known}."
        )
    chosen = [mech.node(node).name for node in nodes] if needs else []
    itemsize = 8 if dtype == "float64" else 4
    expr = quantity.expr
    if quantity is QUANTITIES["forward_dynamics"] and is_closed(mech):
        if not all(map(is_traceable, mech.loops)):
            refuse(mech, "export-c of loops with hinges of one's own")
        expr = closed_expression(mech, "forward_dynamics")
        chosen = list(closure_nodes(mech))
    request = Request((expr,), mech, tuple(chosen), tuple(parameters), itemsize)
    return CSource(request, name, quantity.title, quantity.unit)
