"""An implicit step of a long chain or tree as one expression, which can be scanned: O(log N) deep.

    v' = v + h M̂⁻¹ (τ − C − d v − k (q + h v − rest)),    M̂ = 𝓜 + h d + h² k,    q' = q + h v'

For steps of one length, M̂ is the mass matrix of a mechanism whose armature is N + h d + h² k. The
step is `mass.inv @ (tau - bias)` of this mechanism, by any schedule and for any target, and sums of
vectors, which need no recursion.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from linkwise.algebra import bias, mass, tau as force
from linkwise.arguments import constant, number
from linkwise.codegen import arrays
from linkwise.codegen.kernel import Kernel
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.passive import Passive, passive
from linkwise.errors import ModelError
from linkwise.model.body import Body
from linkwise.model.drive import Drive
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import Schedule, compile
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.spatial.array import Array


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ImplicitStep:
    """Steps of one length; call it with q, v and joint forces.

    Attributes:
        mech: The mechanism that moves.
        step: h, the length of a step [s].
        kernel: Its accelerations with M̂, M̂⁻¹ (τ − C), with `source` and `ops`.
    """

    mech: Mechanism
    step: float
    kernel: Kernel
    _drives: Passive

    def __call__(self, q: Any, v: Any, tau: Any = None) -> tuple[Any, Any]:
        """q and v after a step.

        Args:
            q: Joint positions (nq,) [m or rad], of NumPy or, for the target "cuda", of CuPy.
            v: Joint velocities (nv,) [m/s or rad/s], likewise.
            tau: Joint forces (nv,) [N or N m], likewise; default: none.
        """
        h, library = self.step, arrays.cupy() if arrays.is_on_gpu(q) else np
        if library is np:
            q, v = constant(q, (self.mech.nq,), "q"), constant(v, (self.mech.nv,), "v")
            tau = None if tau is None else constant(tau, (self.mech.nv,), "tau")
        given = (self._drives.damping, self._drives.stiffness, self._drives.rest)
        d, k, rest = (library.asarray(x) for x in given)
        push = -d * v - k * (q + h * v - rest)
        v = v + h * self.kernel(q, v, push if tau is None else push + tau)
        return q + h * v, v


def implicit_step(
    mech: Mechanism, step: float, *, schedule: Schedule = "scan", target: str = "numpy"
) -> ImplicitStep:
    """The step of integrator="implicit" for one long chain or tree, whose bodies run in parallel.

    Dampers and springs act at the end of the step. The step is one solution of 𝓜 with a larger
    armature, by associative scans: O(log N) deep. It gives what `lw.rollout` gives, one body after
    another.

    Args:
        mech: A tree of rigid and flexible bodies for the target "numpy", a serial chain of rigid
            ones for "cuda". Its velocities are rates of its coordinates, and it has no loops,
            couplings, joint limits and Coulomb friction.
        step: Length of a step [s].
        schedule: "scan" for all bodies at once, "sweep" for one after another.
        target: "numpy" or "cuda"; with schedule="sweep" also "cpu".

    Raises:
        ModelError: The mechanism has what such a step does not include; says what.
        LoweringError: A mechanism or a target that cannot be scanned.
    """
    check_mechanism(mech)
    h, drives = number(step, "step", above=0.0), passive(mech)
    wrong = {
        "loops or couplings": bool(mech.loops or mech.couplings),
        "joint limits or Coulomb friction": bool(joints_with_rows(mech)),
        "weight that is carried from outside": drives.lifted is not None,
        "spherical, free or other hinges whose v is not the rate of q": not all(
            is_plain(body.hinge) for body in mech.bodies
        ),
    }
    for what, has in wrong.items():
        if has:
            raise ModelError(
                f"{mech.name!r} has {what}, which a step by one expression does not include. Use "
                "lw.rollout(..., integrator='implicit')."
            )
    kernel = compile(
        mass.inv @ (force - bias), _stiffened(mech, h), schedule=schedule, target=target
    )
    return ImplicitStep(mech, h, kernel, drives)


def _stiffened(mech: Mechanism, h: float) -> Mechanism:
    """The mechanism with armature N + h d + h² k."""
    known = dict[tuple[int, int], Drive]()

    def of(body: Body) -> Drive:
        key = id(body.drive), id(body.hinge)
        if key not in known:  # bodies that share a drive still do
            N, d, k = (
                body.drive.array(x, body.hinge) for x in ("armature", "damping", "stiffness")
            )
            total: Array = N + h * d + h * h * k
            known[key] = dataclasses.replace(body.drive, armature=tuple(total.tolist()))
        return known[key]

    bodies = tuple(dataclasses.replace(body, drive=of(body)) for body in mech.bodies)
    return dataclasses.replace(mech, bodies=bodies)
