"""`linkwise derive EXPR`: the cheapest equal form of an operator expression, with its proof."""

from __future__ import annotations

import argparse
import sys
from typing import Any, TextIO

from linkwise.algebra.derivation import Derivation
from linkwise.algebra.expr import Expr
from linkwise.algebra.parse import parse_kindly
from linkwise.algebra.prove import prove
from linkwise.cli.arguments import add_roots, open_robot
from linkwise.errors import ExpressionError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import derive, plan

MOST_BODIES = 200
"""Largest mechanism that steps are checked on: every operator becomes an explicit matrix."""

ACCURACY = 1e-8
"""Largest relative difference between two forms that counts as equal."""

NOTATION = """writing expressions:
  J mass^-1 J*            side by side (or @) is a product, applied from the right
  A*  A'  A^T  A.T        the adjoint, with no space in front of it
  A^-1  A.inv             the inverse
  2 H, 0.5*H, A + B - C   numbers in front; brackets ( ) [ ]
  phi, E_psi, phi_tilde, P_plus, Pi_bar, mass, bias, tau, ...   or φ, E_ψ, φ̃, P⁺, Π̄, 𝓜, C, τ
  M is the spatial inertia of the bodies, mass is the mass operator H phi M phi* H* + N with the
  armature N of the mechanism; D_0, K_0, psi_0 ... are D, K, psi without armature.
  Put an expression that begins with - after --, or in brackets.
"""

EXAMPLES = f"""examples:
  linkwise derive "J mass^-1 J*"                    the operational-space compliance
  linkwise derive "mass^-1 (tau - bias)" --plan     forward dynamics, and its sweeps
  linkwise derive "phi M phi*" --check puma560      every step compared as matrices
  linkwise derive "mass" --to "(I + H phi K) D (I + H phi K)*"
  linkwise derive "(I - H psi K) H phi = H psi"     a proof; exit status 1 if there is none
  linkwise derive "mass^-1 J*" --latex              for a paper

{NOTATION}"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "derive",
        help="the cheapest equal form of an operator expression, step by step",
        description="Rewrites an expression by identities until its recursions are cheapest, and "
        "shows every step with the identity that justifies it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("expression", metavar="EXPR", help='for instance "J mass^-1 J*"; or A = B')
    p.add_argument("--to", metavar="FORM", help="prove that it equals this form instead")
    p.add_argument("--latex", action="store_true", help="print LaTeX")
    p.add_argument("--check", metavar="ROBOT", help="evaluate every step on a mechanism")
    p.add_argument("--plan", action="store_true", help="also print the sweeps of the result")
    add_roots(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the derivation; 1 if there is no proof, or if a step fails the check."""
    mech = None if options.check is None else _small(open_robot(options.check, roots=options.roots))
    notes = sys.stderr if options.latex else sys.stdout
    derivation = _derivation(options, notes)
    if derivation is None:
        return 1
    print(derivation.latex() if options.latex else derivation)
    error = 0.0 if mech is None else derivation.check(mech)
    good = error <= ACCURACY  # a NaN is not good
    if mech is not None:
        verdict = "every step agrees" if good else "NOT EQUAL: a step differs"
        print(f"\nchecked on {mech!r}: {verdict}, {error:.1e} relative", file=notes)
    if options.plan:
        program = plan(derivation.result)
        print(f"\n{program.latex() if options.latex else program}")
    return int(not good)


def _derivation(options: argparse.Namespace, notes: TextIO) -> Derivation | None:
    """To the cheapest form, or to the form that was given; None if there is no way to that."""
    text, equals, other = options.expression.partition("=")
    target: str | None = other if equals else options.to
    if equals and options.to is not None:
        raise ExpressionError("--to goes with one expression, not with an equation.")
    expr = read(text, notes)
    if target is None:
        return derive(expr)
    proof = prove(expr, read(target, notes))
    print(f"{proof.left} = {proof.right}\n{proof.verdict}", file=notes)
    return proof.derivation


def read(text: str, notes: TextIO) -> Expr:
    """The expression; where M had to be read as the mass operator, a line says so."""
    expr, remark = parse_kindly(text)
    if remark:
        print(f"note: {remark}", file=notes)
    return expr


def _small(mech: Mechanism) -> Mechanism:
    if mech.n_bodies <= MOST_BODIES:
        return mech
    raise ModelError(
        f"{mech.name} has {mech.n_bodies} bodies; steps are checked as explicit matrices, on "
        f"mechanisms of at most {MOST_BODIES} bodies."
    )
