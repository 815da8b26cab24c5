"""The kernels behind rollouts of a mechanism: compiled once, then kept with it."""

from __future__ import annotations

from linkwise.codegen.cpu import cache
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.processor import file_of
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import is_kept, once_per_mechanism
from linkwise.simulation.motion_request import MotionRequest


def motion_kernel(request: MotionRequest, target: str = "cpu") -> MotionKernel:
    """The kernel of a request for "cpu" or "cuda", where `source` is available without a GPU.

    Raises:
        LoweringError: A hinge without a formula for its steps, or too many bodies for straight-line
            code; says which.
    """
    return _made(request.mech, request, target)


@once_per_mechanism
def _made(mech: Mechanism, request: MotionRequest, target: str) -> MotionKernel:
    return MotionKernel(request, target)


WORTH_COMPILING = 100
"""Steps per body, of all runs of a mechanism in this process, for which a kernel is compiled.

Fewer of them are faster in NumPy.
"""


def worth_compiling(request: MotionRequest, steps: int) -> bool:
    """Whether a run of this number of steps should use the kernel of such motions.

    It should if that is in memory or on disk, or if runs so far and this one together make it worth
    compiling.
    """
    made = _uncompiled(request.mech)
    made[0] += steps
    if made[0] >= WORTH_COMPILING * request.mech.n_bodies:
        return True
    return is_kept(_made, request.mech, request, "cpu") or _filed(request.mech, request)


@once_per_mechanism
def _uncompiled(mech: Mechanism) -> list[int]:
    """The number of steps of all single motions so far, as a list of one."""
    return [0]


@once_per_mechanism
def _filed(mech: Mechanism, request: MotionRequest) -> bool:
    """Whether the kernel of such a motion was on disk when this was first asked."""
    key = file_of(request)
    return key is not None and cache.holds(key)
