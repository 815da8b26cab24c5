"""Derive the library's own quantities, so that no user waits for the search.

Run after a change in `algebra/`, `sweeps/` or of a quantity:  python tools/derivations.py
"""

from __future__ import annotations

from linkwise.algebra.armature import no_armature
from linkwise.algebra.budget import Budget
from linkwise.algebra.differential import differentiate
from linkwise.algebra.expr import Expr
from linkwise.codegen.cheapest import searched, ship
from linkwise.dynamics.closure import CLOSED, Setting
from linkwise.dynamics.derivative_formula import INVERSE
from linkwise.dynamics.quantity import AS_WRITTEN, FRAMES, QUANTITIES, expression


def own_expressions() -> list[Expr]:
    """All that named functions ask for, with and without armature."""
    result = [
        expression(name, frame=frame)
        for name in QUANTITIES
        if name not in AS_WRITTEN
        for frame in FRAMES
    ]
    for name, write in CLOSED.items():
        pushed = "node" if name == "tip_force_correction" else ""
        for loops, couplings in ((True, False), (False, True), (True, True)):
            result.append(write(Setting(loops, couplings, pushed)))
    result += [differentiate(INVERSE, x) for x in ("q", "v", "inertia")]
    bare = [no_armature(expr).result for expr in result]
    return list(dict.fromkeys([*result, *bare]))


def main() -> None:
    """Search for all of them and write the file."""
    expressions = own_expressions()
    size = ship([searched(expr, Budget()) for expr in expressions])
    print(f"{len(expressions)} derivations, {size:,} bytes")


if __name__ == "__main__":
    main()
