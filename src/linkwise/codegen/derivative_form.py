"""Which form of a derivative runs, and what each form takes.

The derivative of a kernel along a direction, or of a weighted sum of its results, comes from its
scalar graph or from the algebra: `sensitivity.py` writes both where both exist, and keeps the one
with fewer operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class DerivativeForm:
    """The form of a derivative that runs.

    Attributes:
        taken: "graph", the derivative of the scalar graph, or "algebra", `lw.differentiate` applied
            to a vector.
        graph: Operations for one state of the first; None where straight code would be too long.
        algebra: Those of the second; None where it is not written, or for loops over bodies.
        reason: Why only one is there; "" where both are.
    """

    taken: Literal["graph", "algebra"]
    graph: int | None = None
    algebra: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        name = {"graph": "the scalar graph", "algebra": "the algebra"}
        text = f"differentiated: {name[self.taken]}"
        if not self.reason:
            counts = {"graph": self.graph, "algebra": self.algebra}
            other: Literal["graph", "algebra"] = "algebra" if self.taken == "graph" else "graph"
            return (
                f"{text}, {counts[self.taken]} operations; {name[other]} would take {counts[other]}"
            )
        return f"{text}; {self.reason}"


@dataclass(frozen=True, slots=True)
class DerivativePlan:
    """What a derivative by `lw.jvp` or `lw.vjp` runs on a mechanism; prints as such.

    Attributes:
        form: Which form runs, and what each takes.
        program: The sweeps of the algebra's form; None where there is none. With the scalar graph
            they are what does not run.
    """

    form: DerivativeForm
    program: Program | None

    def __str__(self) -> str:
        if self.program is None:
            return str(self.form)
        head = "" if self.form.taken == "algebra" else "the algebra's sweeps, which do not run:\n"
        return f"{self.form}\n{head}{self.program}"
