"""The variational integrator for rollouts: its expressions as graphs, its steps as segments."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.codegen.request import Request
from linkwise.codegen.stages import traced
from linkwise.codegen.stepping.passive import Passive
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.codegen.stepping.variational import variational
from linkwise.dynamics.quantity import Frame
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.variational.expression import MOMENTUM, SOLUTION, lagrangian_force


def variational_stepping(
    mech: Mechanism, nodes: Sequence[str], frame: Frame, itemsize: int, passive: Passive | None
) -> Stepping:
    """The segments of a mechanism.

    Args:
        mech: The mechanism, with loops and couplings left open.
        nodes: Nodes at which forces act from outside.
        frame: Axes of these forces.
        itemsize: Bytes of a number, 8 or 4.
        passive: Dampers and springs.
    """
    force = lagrangian_force(nodes=bool(nodes), frame=frame)
    both = Request((MOMENTUM, force), mech, tuple(nodes), itemsize=itemsize)
    inputs = () if passive is None else ("armature",)
    solve = Request((SOLUTION,), mech, (), inputs, itemsize)
    return variational(mech, traced(both), traced(solve), passive, itemsize)
