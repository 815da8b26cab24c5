"""A control law as part of a step, and in reverse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linkwise.codegen.scalar import trace
from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.sensitivity import pulled
from linkwise.codegen.stepping.stepping import Segment, Sketch

INTERNAL = "tau0"
"""The register of a law's null-space torque, which the law itself calls tau."""

Inputs = tuple[tuple[str, int], ...]
"""Names and lengths."""


def held_inputs(held: Inputs, law: Traced | None) -> Inputs:
    """What is held over a step: with a law, its inputs besides the state in place of tau."""
    if law is None:
        return held
    inputs = tuple((_register(name), n) for name, n in law.inputs if name not in ("q", "v"))
    return (*inputs, *(x for x in held if x[0] != "tau"))


def command(s: Sketch, law: Traced, q: Any, v: Any) -> Segment:
    """tau of a law at a state; its other inputs are registers."""
    s.write("tau", s.replay(law, law_given(s, law, q, v)))
    return s.segment()


def command_back(s: Sketch, law: Traced, q: Any, v: Any) -> Segment:
    """In reverse: gradients by the state and by the inputs of a law, from those by tau.

    Those by inputs are added to what is in their registers.
    """
    given = law_given(s, law, q, v)
    tau, weights = s.replay(law, given), s.read("g_tau", len(law.outputs))
    wrt = list(given.values())
    parts = parted(s, pulled(s.graph, nodes(tau), nodes(weights), nodes(*wrt)), wrt)
    state = {"q": "law_q", "v": "law_v"}
    for name, part in zip(given, parts, strict=True):
        add_to(s, _register(name), part) if name not in state else s.write(state[name], part)
    s.checks.clear()  # the law itself had the same
    return s.segment()


def law_given(s: trace.Sketch, law: Traced, q: Any, v: Any) -> dict[str, Any]:
    """The inputs of a law by its own names."""
    return {"q": q, "v": v} | {
        name: s.read(_register(name), n) for name, n in law.inputs if name not in ("q", "v")
    }


def _register(name: str) -> str:
    return INTERNAL if name == "tau" else name


# ------------------------------------------------------------------------------- arrays of nodes


def add_to(s: Sketch, name: str, gradient: Any) -> None:
    """Add to the gradient by an input, in its register."""
    register = f"g_{name}"
    s.write(register, s.read(register, len(gradient)) + gradient)


def nodes(*arrays: Any) -> list[int]:
    """The nodes of arrays of `Scalar`, in sequence."""
    return [x.node for array in arrays for x in array]


def parted(s: trace.Sketch, indices: Sequence[int], like: Iterable[Any]) -> list[Any]:
    """Nodes as arrays of `Scalar`, with the lengths of other arrays."""
    out, start = list[Any](), 0
    for array in like:
        part = np.empty(len(array), dtype=object)
        part[:] = [Scalar(s.graph, node) for node in indices[start : start + len(array)]]
        out.append(part)
        start += len(array)
    return out
