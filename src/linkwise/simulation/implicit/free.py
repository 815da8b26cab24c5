"""A step of time without its impulses, for contacts whose number is known at run time only.

One kernel computes what does not depend on them (`segments.py` has the equations):

    whitening  L = D^(-½) (I - H ψ K)      all of M̂⁻¹ = L* L, dampers, springs and servos included
    forces     e = h L (τ − ...)
    still      v of bodies that nothing pushes, in the axes before the step
    bodies     L J* of each body that may touch, in world axes, with its pose and velocities
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.codegen.writing import Writing
from linkwise.dynamics.actuator_force import with_activation
from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.actuation import SLOPES, actuate, inputs
from linkwise.simulation.implicit.segments import AT_JOINTS, FORCES, MOTION, ON_BODIES
from linkwise.simulation.integrators.traced import leave
from linkwise.simulation.rates import carried, rates, velocities


@dataclass(frozen=True)
class FreeRequest:
    """The request for such a kernel."""

    mech: Mechanism
    bodies: tuple[str, ...]  # that may touch something
    passive: bool
    actuated: bool
    integrator: str = "free"
    itemsize: int = 8
    alone: bool = False

    @property
    def content(self) -> FreeRequest:
        """Itself."""
        return self

    def stepping(self, target: str) -> Stepping:
        """The segments, alike for all targets."""
        del target
        return _stepping(self.mech, self.bodies, self.passive, self.actuated)


@once_per_mechanism
def free_kernel(
    mech: Mechanism, bodies: tuple[str, ...], with_passive: bool, actuated: bool
) -> MotionKernel:
    """The kernel; `run` of one step shows the registers of `shown`, and leaves q and v.

    Args:
        bodies: Bodies that may touch something.
    """
    return MotionKernel(FreeRequest(tree_of(mech), bodies, with_passive, actuated))


def _stepping(
    mech: Mechanism, bodies: tuple[str, ...], with_passive: bool, actuated: bool
) -> Stepping:
    count = len(with_activation(mech)) if actuated else 0
    first: tuple[Segment, ...] = (actuate(mech, 8, slopes=True),) if actuated else ()
    free = _free(mech, bodies, with_passive, actuated)
    shown = [x for x in free.writes if x[0] != "guards"]
    s = Sketch("enter")
    q, v = s.read("q", mech.nq), s.read("v", mech.nv)
    s.write("q0", q)
    s.write("u0", rates(mech, q, v))
    lasting = (("activation", count),) if count else ()
    return Stepping(
        "free",
        mech.nq,
        mech.nv,
        (("tau", mech.nv), *(inputs(mech, []) if actuated else ())),
        ("q0", "u0", *(name for name, _ in lasting)),
        (s.segment(),),
        (*first, free),
        (leave(mech),),
        (*shown, *lasting),
        lasting,
    )


def _free(mech: Mechanism, bodies: tuple[str, ...], with_passive: bool, actuated: bool) -> Segment:
    """The registers of a step without impulses."""
    at = Writing(Request((FORCES,), mech, ()), plain=True)
    q, u, (h,) = at.read("q0", mech.nq), at.read("u0", mech.nv), at.read(STEP, 1)
    v, effort = velocities(mech, q, u), at.read("tau", mech.nv)
    zero = np.zeros(mech.nv, dtype=object)
    d, k = zero, zero
    drives = dampers_and_springs(mech)
    push = effort
    if with_passive and drives.any:
        d, k = drives.slopes({})
        push = drives.added(at, push, q, v)
    servo: tuple[Any, Any] = (zero, zero)
    if actuated:
        servo = at.read(SLOPES[0], mech.nv), at.read(SLOPES[1], mech.nv)
        k, d = k + servo[0], d + servo[1]
    push = push - h * k * v
    armature = mech.armature.astype(object) + h * d + h * h * k
    given: dict[str, Any] = {"q": q, "parameters": ("armature",), "armature": armature}
    root = root_of(at, **given)
    at.write("forces", (h * root.solved(at.value(FORCES, v=v, tau=push, **given))).tolist())
    columns = list[Any]()
    for unit in np.eye(mech.nv, dtype=object):
        columns.append(root.solved(at.value(AT_JOINTS, tau=unit, **given)))
    at.write("whitening", [x for column in columns for x in column])
    still = v + h * carried(mech, v, zero)
    at.write("still", still.tolist())
    at.write("effort", effort.tolist())
    at.write("stiffness of servos", servo[0].tolist())
    at.write("damping of servos", servo[1].tolist())
    if bodies:
        poses = at.value(expression("node_poses"), nodes=bodies, q=q)
        at.write("poses", np.ravel(poses).tolist())
        for name, speed in (("now", v), ("then", still)):
            at.write(name, at.value(MOTION, nodes=bodies, q=q, v=speed).tolist())
        rows = list[Any]()
        for body in bodies:
            for unit in np.eye(6, dtype=object):
                column = at.value(ON_BODIES, nodes=(body,), f=unit, **given)
                rows += root.solved(column).tolist()
        at.write("bodies", rows)
    writes = tuple((key, len(values)) for key, values in at.writes.items())
    return Segment("free", at.traced(), writes)
