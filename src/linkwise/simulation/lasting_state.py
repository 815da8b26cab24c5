"""Steps that go on where the last call ended: what lasts is read from memory and put back.

A rollout begins with q and v and forgets everything else at its end: the impulses that warm starts
need, activations, rates in place of velocities. Here the register "q" of a record is the whole
state, one register of the stepping behind the other, and "v" is what is observed. So one call with
n steps and n calls with one compute the same, bit for bit.

The first number of the state is 1 for a motion that begins: then q and v are behind it, and the
stepping's own `enter` makes the state of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from linkwise.codegen.stepping.stepping import Place, Segment, Sketch, Stepping, straight
from linkwise.spatial.choice import gate

SHOWN = {"q": "q_now", "v": "v_now"}
"""Registers of joint positions and velocities, while "q" and "v" have other contents."""


def continued(
    stepping: Stepping,
    observe: Segment,
    shapes: Mapping[str, tuple[int, ...]],
    watched: Collection[str] = (),
) -> Stepping:
    """A stepping whose "q" is the state, and whose "v" is what is observed.

    Args:
        stepping: The steps from q and v to q and v.
        observe: Writes "v", from the registers of `SHOWN` and others of the stepping.
        shapes: The shape of each observation, in their order in "v"; q and v are behind them.
        watched: Which of them, the last ones, are there for conditions only.
    """
    state, end = list[Place](), 1
    for name in stepping.state:
        size = stepping.registers[name]
        state.append(Place("state", name, end, (size,)))
        end += size
    size = end = max(end, 1 + stepping.nq + stepping.nv)
    layout = list(state)
    now = [("now", "q", (stepping.nq,)), ("now", "v", (stepping.nv,))]
    seen = (("watch" if name in watched else "seen", name, x) for name, x in shapes.items())
    for kind, name, shape in (*seen, *now):
        layout.append(Place(kind, name, end, shape))
        end += math.prod(shape)
    return replace(
        stepping,
        nq=size,
        nv=end - size,
        enter=(_resume(stepping, state, size),),
        leave=(*(x.renamed(SHOWN) for x in straight(stepping.leave)), observe, _keep(state, size)),
        shown=(),
        layout=tuple(layout),
    )


def _resume(stepping: Stepping, state: list[Place], size: int) -> Segment:
    """The state of a motion that begins from q and v, or as it was put away."""
    s = Sketch("resume")
    packed, nq = s.read("q", size), stepping.nq
    known: dict[str, Any] = {"q": packed[1 : 1 + nq], "v": packed[1 + nq : 1 + nq + stepping.nv]}
    for segment in straight(stepping.enter):
        values = iter(s.replay(segment.traced, known))
        known |= {name: [next(values) for _ in range(n)] for name, n in segment.writes}
    begins = packed[0]
    for place in state:
        kept = packed[place.begin : place.begin + place.shape[0]]
        pairs = zip(known[place.name], kept, strict=True)
        s.write(place.name, [gate(begins, x) + gate(0.5 - begins, y) for x, y in pairs])
    return s.segment()


def _keep(state: list[Place], size: int) -> Segment:
    """Everything that lasts, one register behind the other."""
    s = Sketch("keep")
    values: list[Any] = [0.0] * size
    for place in state:
        values[place.begin : place.begin + place.shape[0]] = s.read(place.name, place.shape[0])
    s.write("q", values)
    return s.segment()
