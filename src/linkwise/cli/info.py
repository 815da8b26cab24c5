"""`linkwise info ROBOT`: what a mechanism is, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any

from linkwise.brief import counted, extent
from linkwise.cli.arguments import add_roots, open_robot
from linkwise.model import closure
from linkwise.model.body import Loop
from linkwise.model.mechanism import Mechanism
from linkwise.tour.text import TREE_HEAD, table, tree_rows

EXAMPLES = """examples:
  linkwise info robot.urdf              the tree, loops, couplings, findings
  linkwise info robot.urdf --base free  on a floating base
  linkwise info scene.xml --report      every element that was not used, with its line
  linkwise info humanoid --json         the same for a program
  linkwise info puma560 --nodes         a built-in mechanism, with its frames
  linkwise info robot.urdf --check      exit status 1 if something is impossible
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "info",
        help="show a mechanism: tree, degrees of freedom, masses, loops, findings",
        description="Shows the tree, loops and masses of a mechanism, and what is wrong with it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("robot", metavar="ROBOT", help="URDF or MJCF file, or a built-in name")
    p.add_argument("--base", default="auto", help="auto, fixed or free (files only)")
    add_roots(p)
    p.add_argument("--strict", action="store_true", help="refuse elements that cannot be used")
    p.add_argument("--nodes", action="store_true", help="list frames, welded links and payloads")
    p.add_argument("--report", action="store_true", help="list every element that was not used")
    p.add_argument("--json", action="store_true", help="print JSON")
    p.add_argument(
        "--check", action="store_true", help="exit with status 1 if a finding is an error"
    )
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    mech = open_robot(options.robot, base=options.base, strict=options.strict, roots=options.roots)
    if options.json:
        print(json.dumps(as_json(mech), indent=2, allow_nan=False))
    else:
        print("\n".join(as_text(mech, nodes=options.nodes, report=options.report)))
    if not options.check:
        return 0
    return int(any(finding.severity == "error" for finding in mech.validate()))


# ------------------------------------------------------------------------------------- text


def as_text(mech: Mechanism, *, nodes: bool = False, report: bool = False) -> Iterator[str]:
    """The lines of the table."""
    size = f"{extent(mech.n_bodies, mech.nv)} (nq = {mech.nq})"
    yield f"{mech.name}: {size}, {mech.total_mass:.6g} kg, gravity {_vector(mech.gravity)} m/s²"
    yield ""
    yield from tree_table(mech)
    if nodes and mech.nodes:
        yield from ("", "nodes")
        rows = [[n.name, n.kind, n.body, _vector(n.pose.p), _mass(n.inertia)] for n in mech.nodes]
        yield from table(["name", "kind", "on body", "at [m]", "mass [kg]"], rows)
    elif mech.nodes:
        kinds = [counted(sum(n.kind == k for n in mech.nodes), k, f"{k}s") for k in _kinds(mech)]
        yield f"and {counted(len(mech.nodes), 'node', 'nodes')} on them ({', '.join(kinds)})"
    if mech.loops:
        yield from ("", "loops")
        rows = [
            [x.name, x.node_a, x.node_b, x.hinge.describe(), str(x.rows), gap(mech, x)]
            for x in mech.loops
        ]
        yield from table(["name", "node a", "node b", "free", "rows", "at neutral"], rows)
    if mech.couplings:
        yield from ("", "couplings")
        yield from (f"  {c.name}: {equation(c)}" for c in mech.couplings)
    if mech.loops or mech.couplings:
        rows_ = counted(sum(x.rows for x in mech.loops) + len(mech.couplings), "row")
        yield f'{rows_}; held by default, loops="open" leaves them open'
    findings = mech.validate()
    yield from ("", "findings" if findings else "findings: none")
    yield from (f"  {finding}" for finding in findings)
    if mech.load_report.source:
        yield from ("", f"from {mech.load_report.source}: {mech.load_report.summary()}")
        if report:
            yield from (f"  {item}" for item in mech.load_report)
        elif len(mech.load_report):
            yield "  (--report lists them)"


def tree_table(mech: Mechanism) -> Iterator[str]:
    """One row a body, the tree drawn with lines."""
    yield from table(TREE_HEAD, list(tree_rows(mech)))


def loop_error(mech: Mechanism, loop: Loop) -> tuple[float, float]:
    """Distance [m] and angle [rad] by which a loop is open at the neutral configuration."""
    q = mech.neutral()
    X_ab = mech.pose(q, loop.node_a).inverse() @ mech.pose(q, loop.node_b)
    error = closure.error(loop.hinge, X_ab, closure.coordinates(loop.hinge, X_ab))
    sizes = math.hypot(*error[3:]), math.hypot(*error[:3])
    distance, angle = (size if size > 1e-12 else 0.0 for size in sizes)
    return distance, angle


def gap(mech: Mechanism, loop: Loop) -> str:
    """The same in words."""
    distance, angle = loop_error(mech, loop)
    if max(distance, angle) == 0.0:
        return "closed"
    return f"open by {distance:.3g} m, {angle:.3g} rad"


def equation(coupling: Any) -> str:
    """A coupling as an equation."""
    parts = [
        f"{c:g} {name}" + (f"^{power}" if power > 1 else "")
        for name, coefficients in coupling.terms
        for power, c in enumerate(coefficients, start=1)
        if c != 0.0
    ]
    if coupling.offset or not parts:
        parts.append(f"{coupling.offset:g}")
    return f"{coupling.dependent} = " + " + ".join(parts).replace("+ -", "- ")


def _kinds(mech: Mechanism) -> list[str]:
    return sorted({n.kind for n in mech.nodes})


def _vector(p: Any) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in p) + ")"


def _mass(inertia: Any) -> str:
    return "" if inertia is None else f"{float(inertia.mass):.4g}"


# ------------------------------------------------------------------------------------- JSON


def as_json(mech: Mechanism) -> dict[str, Any]:
    """Everything in the table and more, in plain types; infinite limits are null."""
    return {
        "name": mech.name,
        "n_bodies": mech.n_bodies,
        "nq": mech.nq,
        "nv": mech.nv,
        "total_mass": mech.total_mass,
        "gravity": mech.gravity.tolist(),
        "bodies": [_body_json(mech, k) for k in range(mech.n_bodies)],
        "nodes": [
            {
                "name": n.name,
                "kind": n.kind,
                "body": n.body,
                "pose": n.pose.matrix.tolist(),
                "mass": None if n.inertia is None else float(n.inertia.mass),
            }
            for n in mech.nodes
        ],
        "loops": [
            {
                "name": x.name,
                "node_a": x.node_a,
                "node_b": x.node_b,
                "free": x.hinge.describe(),
                "rows": x.rows,
                "open_at_neutral": list(loop_error(mech, x)),
            }
            for x in mech.loops
        ],
        "couplings": [
            {
                "name": c.name,
                "dependent": c.dependent,
                "terms": {name: list(cs) for name, cs in c.terms},
                "offset": c.offset,
            }
            for c in mech.couplings
        ],
        "findings": [
            {
                "severity": f.severity,
                "where": f.where,
                "code": f.code,
                "reason": f.reason,
                "repair": f.repair,
            }
            for f in mech.validate()
        ],
        "load_report": [
            {
                "file": item.file,
                "line": item.line,
                "element": item.element,
                "effect": item.effect,
                "affects": item.affects,
                "reason": item.reason,
            }
            for item in mech.load_report
        ],
    }


def _body_json(mech: Mechanism, k: int) -> dict[str, Any]:
    body, inertia = mech.bodies[k], mech.inertias[k]
    q, v = mech.q_slice(body.hinge_name), mech.v_slice(body.hinge_name)
    return {
        "name": body.name,
        "parent": body.parent,
        "hinge": {
            "name": body.hinge_name,
            "kind": body.hinge.kind,
            "description": body.hinge.describe(),
            "q": [q.start, q.stop],
            "v": [v.start, v.stop],
            "coordinates": [[c.name, c.unit] for c in body.hinge.coordinates],
            "lower": _finite(mech.lower[q]),
            "upper": _finite(mech.upper[q]),
            "effort": _finite(mech.effort_limit[v]),
            "velocity": _finite(mech.velocity_limit[v]),
            "armature": mech.armature[v].tolist(),
            "damping": mech.damping[v].tolist(),
            "friction": mech.friction[v].tolist(),
        },
        "inboard": body.inboard.matrix.tolist(),
        "outboard": body.outboard.matrix.tolist(),
        "mass": float(inertia.mass),
        "center_of_mass": inertia.com.tolist(),
        "inertia_about_center_of_mass": inertia.J_com.tolist(),
    }


def _finite(values: Any) -> list[float | None]:
    return [float(x) if math.isfinite(x) else None for x in values]
