"""`linkwise plan EXPR`: the sweeps over the tree that evaluate an operator expression."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from linkwise.brief import counted, extent
from linkwise.cli.arguments import add_roots, open_robot
from linkwise.cli.derive import NOTATION, read
from linkwise.pipeline import compile, derive, plan

EXAMPLES = f"""examples:
  linkwise plan "H phi M phi* H* vdot"            the Newton-Euler recursion
  linkwise plan "mass^-1 (tau - bias)"            as it is written,
  linkwise plan "mass^-1 (tau - bias)" --derive   and in its cheapest form
  linkwise plan "mass" --derive --robot puma560   with the operation count on a robot
  linkwise plan "J v" --latex                     for a paper

reading sweeps:
  for k = tips ... base   every body after its children; base ... tips: after its parent
  x(k), x(p), x(c)        at body k, at its parent, at a child; Σ_c sums over the children
  φ(p,k), ψ(p,k), K(p,k)  from body k to its parent
  The last line counts passes, and with --robot the scalar operations of a kernel for this robot, at
  the frame of its last body where nodes are meant. Without --derive products are evaluated as they
  are written, and an inverse by its recursion.

{NOTATION}"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "plan",
        help="the sweeps over the tree that evaluate an operator expression",
        description="Prints the loops that evaluate an expression, in the fewest passes over the "
        "tree, as the papers print them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("expression", metavar="EXPR", help='for instance "mass^-1 (tau - bias)"')
    p.add_argument("--derive", action="store_true", help="rewrite it to its cheapest form first")
    p.add_argument("--latex", action="store_true", help="print LaTeX")
    p.add_argument("--robot", metavar="ROBOT", help="count operations on this mechanism")
    add_roots(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the sweeps and what they cost."""
    mech = None if options.robot is None else open_robot(options.robot, roots=options.roots)
    notes = sys.stderr if options.latex else sys.stdout
    expr = read(options.expression, notes)
    program = plan(derive(expr).result if options.derive else expr)
    print(program.latex() if options.latex else program)
    amount = counted(len(program.passes), "pass", "passes")
    if mech is not None:
        nodes = [body.name for body in mech.bodies[-1:]]
        kernel = compile(expr, mech, nodes=nodes, target="numpy", derive=options.derive)
        size = extent(mech.n_bodies, mech.nv)
        amount += f", {kernel.ops.total()} operations ({mech.name}: {size})"
    print(f"\n{amount}", file=notes)
    return 0
