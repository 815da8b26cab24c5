"""The kernel behind rollouts of a mechanism: made once, then kept with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.stages import is_rolled, traced
from linkwise.codegen.stepping.cuda_kernel import CudaMotion
from linkwise.codegen.stepping.kernel import RolloutKernel
from linkwise.codegen.stepping.passive import passive
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.loops import require_open, tree_of
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import LoweringError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.commanded import commanded
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.integrators.traced import traced_stepping
from linkwise.simulation.rates import is_traceable
from linkwise.simulation.variational.segments import variational_stepping
from linkwise.tasks.law import ControlLaw

EXPLICIT = tuple(x.name for x in INTEGRATORS.values() if x.step and x.takes == "acceleration")
"""Integrators whose steps ask for accelerations only, by name."""

COMPILED = (*EXPLICIT, "variational")
"""Integrators that can be compiled, by name."""


def rollout_kernel(
    mech: Mechanism,
    integrator: str = "rk4",
    *,
    with_passive: bool = True,
    nodes: Sequence[str] = (),
    frame: Frame = "node",
    itemsize: int = 8,
    law: ControlLaw | None = None,
) -> RolloutKernel:
    """Many steps of a tree as machine code.

    Args:
        mech: The mechanism, without loops and couplings.
        integrator: "euler", "rk4", "rk4_mujoco" or "variational".
        with_passive: Whether dampers and springs of drives act.
        nodes: Nodes at which forces act from outside, held over each step like joint forces.
        frame: Axes of these forces.
        itemsize: Bytes of a number, 8 or 4.
        law: A control law that gives the joint forces at the beginning of each step.

    Raises:
        ModelError: An integrator that there is not, a law of another mechanism.
        LoweringError: A hinge that has no formula for its steps, or too many bodies for straight
            code; says which.
    """
    check_rollout(mech, integrator, law)
    return _rollout(mech, integrator, with_passive, tuple(nodes), frame, itemsize, law)


@once_per_mechanism
def _rollout(
    mech: Mechanism,
    integrator: str,
    with_passive: bool,
    nodes: tuple[str, ...],
    frame: Frame,
    itemsize: int,
    law: ControlLaw | None,
) -> RolloutKernel:
    segments, content = stepping_of(mech, integrator, with_passive, nodes, frame, itemsize, law)
    return RolloutKernel(mech, integrator, segments, content, itemsize=itemsize)


def card_kernel(
    mech: Mechanism,
    integrator: str = "rk4",
    *,
    with_passive: bool = True,
    itemsize: int = 8,
    law: ControlLaw | None = None,
) -> CudaMotion:
    """Many steps of a tree for a CUDA card; `source` can be had without one.

    Args:
        mech: The mechanism, without loops and couplings.
        integrator: "euler", "rk4", "rk4_mujoco" or "variational".
        with_passive: Whether dampers and springs of drives act.
        itemsize: Bytes of a number, 8 or 4.
        law: A control law that gives the joint forces at the beginning of each step.

    Raises:
        ModelError: An integrator that there is not, a law of another mechanism.
        LoweringError: A hinge that has no formula for its steps, or too many bodies for straight
            code; says which.
    """
    check_rollout(mech, integrator, law)
    return _on_card(mech, integrator, with_passive, itemsize, law)


@once_per_mechanism
def _on_card(
    mech: Mechanism, integrator: str, with_passive: bool, itemsize: int, law: ControlLaw | None
) -> CudaMotion:
    segments, _ = stepping_of(mech, integrator, with_passive, (), "node", itemsize, law)
    return CudaMotion(mech, segments(), np.dtype(f"float{8 * itemsize}"))


def stepping_of(
    mech: Mechanism,
    integrator: str,
    with_passive: bool,
    nodes: Sequence[str],
    frame: Frame,
    itemsize: int,
    law: ControlLaw | None,
) -> tuple[Callable[[], Stepping], tuple[object, ...]]:
    """What makes the segments of a step, and what they depend on besides the mechanism.

    Raises:
        LoweringError: A hinge that has no formula for its steps, or too many bodies for straight
            code; says which.
    """
    require_open(mech, "closed", "the kernel of a rollout", "lw.simulate holds them.")
    forces = passive(mech) if with_passive else None
    forces = forces if forces is not None and forces.any else None
    request = forward(mech, nodes, frame, itemsize)
    _check_traceable(mech)
    if is_rolled(request):
        raise LoweringError(
            f"a step of {mech.name!r} would be code of {mech.n_bodies} bodies without loops, "
            "too long to be compiled. lw.rollout and lw.simulate move it step by step."
        )

    def segments() -> Stepping:
        if integrator in EXPLICIT:
            plain = traced_stepping(INTEGRATORS[integrator], mech, traced(request), forces)
        else:
            plain = variational_stepping(mech, nodes, frame, itemsize, forces)
        return plain if law is None else commanded(plain, mech, law.kernel.traced)

    content = (request, forces)
    if law is not None:
        content = (*content, law.kernel.request)
    return segments, content


def _check_traceable(mech: Mechanism) -> None:
    """Refuse a mechanism with a hinge whose steps have branches.

    Raises:
        LoweringError: Says what to use.
    """
    if not is_traceable(mech):
        raise LoweringError(
            f"a motion of {mech.name!r} cannot be compiled: a hinge has a rule for its steps that "
            "cannot be traced on graph nodes. lw.simulate moves it step by step."
        )


def check_rollout(mech: Mechanism, integrator: str, law: ControlLaw | None) -> None:
    """Refuse what cannot be a rollout.

    Raises:
        ModelError: An integrator that there is not, a law of another mechanism.
    """
    check_mechanism(mech)
    if integrator not in COMPILED:
        told = ", ".join(repr(name) for name in COMPILED)
        raise ModelError(f"integrator={integrator!r} cannot be compiled; there are {told}.")
    _check_law(mech, integrator, law)


def _check_law(mech: Mechanism, integrator: str, law: ControlLaw | None) -> None:
    if law is None:
        return
    if law.mech is not mech and tree_of(law.mech) is not mech:
        raise ModelError(
            f"the control law is one of {law.mech.name!r}, made apart from the mechanism "
            f"{mech.name!r} that shall move: make it with lw.control_law of this one."
        )
    if integrator not in EXPLICIT:
        told = ", ".join(repr(name) for name in EXPLICIT)
        raise ModelError(f"a control law goes with {told}, not with {integrator!r}.")
    if law.kernel.request.names:
        raise ModelError("the control law gives more than joint forces; make it without `also`.")


def forward(mech: Mechanism, nodes: Sequence[str], frame: Frame, itemsize: int) -> Request:
    """How forward dynamics, with forces at these nodes, becomes a graph."""
    name = "forward_dynamics_with_forces" if nodes else "forward_dynamics"
    return Request((expression(name, frame=frame),), mech, tuple(nodes), itemsize=itemsize)
