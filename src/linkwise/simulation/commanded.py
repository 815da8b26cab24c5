"""A control law in the loop: joint forces from the state at the beginning of each step, then held.

That is what a controller does that works in steps. The law is one more segment in front of those of
a step; what it takes besides the state (goals, gains) is held instead of the joint forces.
"""

from __future__ import annotations

import dataclasses

from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping.segment import Sketch
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import velocities

INTERNAL = "tau0"
"""The torque that a law takes for the null space; its own name is that of the joint forces."""


def commanded(stepping: Stepping, mech: Mechanism, law: Traced) -> Stepping:
    """A stepping whose joint forces come from a law.

    Args:
        stepping: An explicit integrator, with the state in the registers q0 and u0.
        mech: The mechanism.
        law: Joint forces from q, v and inputs of its own.
    """
    named = {name: INTERNAL if name == "tau" else name for name, _ in law.inputs}
    own = tuple((named[name], size) for name, size in law.inputs if name not in ("q", "v"))
    s = Sketch("command")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    given = {"q": q, "v": velocities(mech, q, u)}
    given |= {name: s.read(named[name], size) for name, size in law.inputs if name not in given}
    s.write("tau", s.replay(law, given))
    rest = tuple(x for x in stepping.held if x[0] != "tau")
    return dataclasses.replace(stepping, held=(*own, *rest), step=(s.segment(), *stepping.step))
