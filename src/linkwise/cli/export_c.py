"""`linkwise export-c ROBOT`: a quantity of a mechanism as one header and one C99 source."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwise.algebra.derivation import leaves
from linkwise.algebra.expr import Expr
from linkwise.cli.derive import NOTATION, read
from linkwise.cli.robot import open_robot
from linkwise.codegen.c import DType, emit_c
from linkwise.codegen.c_header import MARK
from linkwise.codegen.c_text import LONGEST_IDENTIFIER, check_identifier, identifier
from linkwise.codegen.trace import trace
from linkwise.dynamics.quantity import expression
from linkwise.errors import LinkwiseError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import derive
from linkwise.sweeps.lower import lower

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
        expr: Its expression, with the armature N.
        title: In words.
        unit: Kind of the result (`c_header.KINDS`).
    """

    expr: Expr
    title: str
    unit: str


def _named(name: str, title: str, unit: str) -> Quantity:
    """A quantity of `linkwise.dynamics`, with the armature."""
    return Quantity(expression(name, armature=True), title, unit)


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
    p.add_argument("-o", "--output", metavar="DIR", default=".", help="folder, made if need be")
    p.add_argument("--name", help="of the function and the files (default: robot and quantity)")
    p.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    p.add_argument("--force", action="store_true", help="replace files of other origin")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the two files and say what they are."""
    mech = open_robot(options.robot, base=options.base)
    if options.expr is None:
        quantity = QUANTITIES[options.quantity]
    else:
        quantity = Quantity(read(options.expr, sys.stdout), "", "")
    name = options.name or default_name(mech.name, options.quantity or "expression")
    if mech.loops or mech.couplings:
        print("note: loops and couplings are left open, the function is that of the tree.")
    texts = export(quantity, mech, name, nodes=options.node, dtype=options.dtype)
    paths = [Path(options.output, f"{name}{ending}") for ending in (".h", ".c")]
    write(paths, texts, force=options.force)
    for path, text in zip(paths, texts, strict=True):
        print(f"wrote {path} ({text.count(chr(10))} lines)")
    print(f"self-test: cc -std=c99 -O2 -D{name.upper()}_SELFTEST {paths[1]} -lm && ./a.out")
    return 0


def default_name(robot: str, quantity: str) -> str:
    """A C identifier of the robot and the quantity, the quantity whole."""
    room = LONGEST_IDENTIFIER - len(quantity) - 1
    return f"{identifier(robot)[:room].rstrip('_')}_{quantity}"


def export(
    quantity: Quantity,
    mech: Mechanism,
    name: str,
    *,
    nodes: Sequence[str] = (),
    dtype: DType = "float64",
) -> tuple[str, str]:
    """Header and source of a quantity.

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
    derivation = derive(quantity.expr)
    traced = trace(lower(derivation.result), mech, chosen)
    return emit_c(
        traced,
        name,
        mech=mech,
        derivation=derivation,
        nodes=chosen,
        title=quantity.title,
        unit=quantity.unit,
        dtype=dtype,
    )


def write(paths: Sequence[Path], texts: Sequence[str], *, force: bool) -> None:
    """Write all files, or none: those that are there must be our own.

    Raises:
        LinkwiseError: A file is of other origin, or cannot be written.
    """
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not force and os.path.lexists(path) and not _is_ours(path):
                raise LinkwiseError(
                    f"{path} is there already and was not written by linkwise export-c; use "
                    "--name or -o for another place, or --force to replace it."
                )
        for path, text in zip(paths, texts, strict=True):
            _replace(path, text)
    except OSError as error:
        raise LinkwiseError(
            f"cannot write {error.filename or paths[0]}: {error.strerror}."
        ) from None


def _is_ours(path: Path) -> bool:
    """Whether the file begins as ours do."""
    if not path.is_file():
        return False
    start = f"/*\n * {MARK} "
    with path.open("rb") as file:
        return file.read(len(start)) == start.encode("ascii")


def _replace(path: Path, text: str) -> None:
    """Whole or not at all: written beside it, then moved over it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".linkwise-", suffix=path.suffix)
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # mkstemp allows the owner only
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
