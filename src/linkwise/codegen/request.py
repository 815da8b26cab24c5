"""The request for a kernel. All stages are functions of it (`stages.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import parameters
from linkwise.errors import ExpressionError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism, without_caches
from linkwise.sweeps.result_part import ALL, ResultPart

once_per_request = once_per_mechanism
"""Results that follow from a request are kept with it, as others are with a mechanism."""


@dataclass(frozen=True)
class Request:
    """A checked request for a kernel: everything another process needs to make the same one."""

    # the expressions, whose values stand one after another, or a formula
    quantity: tuple[Expr, ...] | Formula
    mech: Mechanism  # the mechanism
    nodes: tuple[str, ...] = ()  # names of the nodes of the space NODE
    parameters: tuple[str, ...] = ()  # numbers of the mechanism that stay inputs
    itemsize: int = 8  # bytes of a number
    # whether it shall have loops over bodies; None leaves it to its size
    rolled: bool | None = None
    chosen: ResultPart = ALL  # the part of the result that is wanted
    derive: bool = True  # whether the cheapest equal form runs, or the expression as it is written
    # how many rows of loops and couplings have to be independent; None leaves it out
    rank: int | None = None
    names: tuple[str, ...] = ()  # of the results, where there are several
    cache: bool = True  # whether its machine code may be on disk
    schedule: str = "sweep"  # "sweep", or "scan" for all bodies at once

    def __post_init__(self) -> None:
        given = cast("str | tuple[str, ...]", self.nodes)
        checked_schedule(self.schedule)
        nodes = (given,) if isinstance(given, str) else tuple(given)
        object.__setattr__(self, "nodes", nodes)
        named = parameters.checked(self.mech, self.parameters, nodes)
        object.__setattr__(self, "parameters", named)
        if isinstance(self.quantity, Formula):
            object.__setattr__(self, "names", self.quantity.names)
            if self.schedule == "scan":
                raise ExpressionError(
                    f"schedule='scan' was given for {self.quantity}, which is array code on top of "
                    "expressions; scans are for expressions."
                )
            return
        if not self.quantity:
            raise ExpressionError("lw.compile was given no expression; name at least one.")
        for expr in self.quantity:
            checked_expression(expr)
        self.chosen.checked(self.quantity[0], self.mech, nodes)
        if self.rolled and isinstance(self.mech, Embedded):
            raise ExpressionError(
                f"rolled=True was given for {self.mech.name!r} with its loops and couplings built "
                "in: aggregate bodies differ in size and have straight code only."
            )
        if len(self.quantity) > 1 and (self.rolled or not self.chosen.is_all):
            raise ExpressionError(
                "rolled=True, rows, columns or blocks were given for several expressions; a kernel "
                "of several computes all of them, as straight code."
            )

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions; raises for a formula."""
        if isinstance(self.quantity, Formula):
            raise ExpressionError(
                f"{self.quantity} is written in array code on top of expressions: it has no "
                "derivation."
            )
        return self.quantity

    @property
    def what(self) -> str:
        """The expressions, or the name of the formula."""
        return (
            str(self.quantity)
            if isinstance(self.quantity, Formula)
            else ", ".join(map(str, self.quantity))
        )

    def __str__(self) -> str:
        part = "" if self.chosen.is_all else f", {self.chosen}"
        nodes = f" at {', '.join(self.nodes)}" if self.nodes else ""
        inputs = f" with inputs for {', '.join(self.parameters)}" if self.parameters else ""
        return f"{self.what}{part}  of {self.mech.name}{nodes}{inputs}, float{8 * self.itemsize}"


def checked_expression(value: object) -> Expr:
    """An expression; raises for anything else."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        raise ExpressionError(
            f"{value!r} is not an expression but text: linkwise.algebra.parse.parse reads it. "
            "Quantities have names: lw.dynamics.expression('forward_dynamics'), and with loops "
            "held lw.loops.closed_expression."
        )
    raise ExpressionError(
        f"{value!r} is not an expression: write one with the symbols of linkwise.algebra, or read "
        "it from text with linkwise.algebra.parse.parse."
    )


SCHEDULES = ("sweep", "scan")


def checked_schedule(value: object) -> str:
    """A schedule; raises for unknown ones."""
    if value in SCHEDULES:
        return cast("str", value)
    raise ExpressionError(f"schedule is {value!r}; it must be 'sweep' or 'scan'.")
