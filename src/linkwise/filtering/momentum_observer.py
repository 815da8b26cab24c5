"""Forces from outside, from momenta: what changes the generalised momentum and is not in the model.

With p = 𝓜 v, C* the adjoint of the Coriolis matrix (𝓜̇ = C + C*) and g the gravity force,

    ṗ = τ + C* v − g + τ_ext
    p̂' = p̂ + h (τ + c + r'),    r' = K (p − p̂')                                                 (1)

with c the average of C* v − g before and after the step.
The residual r follows the joint forces τ_ext from outside, such as J* f of a push, like a low-pass
filter of first order with the bandwidth K, without accelerations and without inverting 𝓜. (1) is
solved for r', so that it is stable for any gain. Source: deluca2005sensorless.

Loops and couplings add forces J_c* λ that are not measured. P* takes them out, and with them the
part of τ_ext that the loops carry; momenta of velocities that obey are P* p = p:

    P* = 1 − J_c* (J_c 𝓜⁻¹ J_c*)⁻¹ J_c 𝓜⁻¹
    p̂' = P* (p̂ + h (τ + c + r')),    r' = K (P* p − p̂')                                         (2)

P* r' = r', so that (2) is solved for r' as (1) is. With different gains of joints it would not be,
and could be unstable: P* K need not have positive eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.symbols import mass, v as v_of
from linkwise.arguments import flag, number
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closed_derivatives import Held
from linkwise.dynamics.closure import closure_nodes, setting_of
from linkwise.dynamics.configuration import coordinates
from linkwise.dynamics.kernels import Loops, is_closed, tree_of, written
from linkwise.dynamics.passive import passive as passive_of
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, ShapeError
from linkwise.filtering.allowed import whole_mechanism
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource
    from linkwise.codegen.writing import Writing


def _observed(at: Writing, passive: bool) -> Any:
    nv = at.mech.nv
    coordinates(at)
    tau, known, gain, h = (
        at.read("tau", nv),
        at.read("momentum", nv),
        at.read("gain", nv),
        at.read("step", 1),
    )
    p, drift = _momentum(at, passive)
    rate = tau + 0.5 * (at.read("drift", nv) + drift)
    known = known + h * rate
    if is_closed(at.mech):
        p, known = _free_of_loops(at, np.stack([p, known], axis=-1)).T
    r = gain * (p - known) / (1.0 + gain * h)
    return known + h * r, r, drift


def _free_of_loops(at: Writing, x: Any) -> Any:
    """P* x of columns (nv, n): without forces of loops and couplings."""
    closed = setting_of(at.mech)
    M, J_c = at.value(mass, closed.jacobian, nodes=closure_nodes(at.mech), q=at.q)
    held = Held.of(at, M, J_c)
    rows = np.full((len(J_c), x.shape[1]), 0.0, dtype=object)
    return M @ held.solved(x, rows)[0]


def _momentum(at: Writing, passive: bool) -> Any:
    """p, and C* v − g with passive forces."""
    q, v = coordinates(at), at.v
    drift = at.value(expression("coriolis_matrix").T @ v_of - expression("gravity_force"), q=q)
    drift = passive_of(at.mech).added(at, drift, q, v) if passive else drift
    return at.value(mass @ v_of, q=q), drift


NAMES = ("momentum", "force", "drift")
OBSERVED = {x: Formula(_observed, (x,), names=NAMES) for x in (False, True)}
MOMENTUM = {x: Formula(_momentum, (x,), names=("momentum", "drift")) for x in (False, True)}


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What a momentum observer knows.

    Attributes:
        momentum: p̂ (nv,) or (batch, nv).
        force: r, joint forces from outside (nv,) or (batch, nv) [N or N m].
        drift: C* v − g and passive forces (nv,) or (batch, nv) [N or N m].
    """

    momentum: Array
    force: Array
    drift: Array


@dataclass(frozen=True, slots=True, eq=False)
class MomentumObserver:
    """An observer of joint forces from outside: `lw.filtering.momentum_observer` makes it.

    Attributes:
        mech: The mechanism.
        gain: Bandwidth K of each joint (nv,) [1/s].
        step: Length of a tick [s].
        passive: Whether dampers and springs of drives are part of the model.
    """

    mech: Mechanism
    gain: Array
    step: float
    passive: bool

    @property
    def kernel(self) -> Any:
        """The kernel of a tick, which takes plain arrays in the order of its `arguments`."""
        return written(self.mech, OBSERVED[self.passive])

    def start(self, q: ArrayLike, v: ArrayLike) -> Observation:
        """Nothing pushes in the beginning.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        """
        q, v = self.mech.check_q(q), self.mech.check_v(v)
        made = written(self.mech, MOMENTUM[self.passive])(q, v)
        return Observation(force=np.zeros_like(v), **made)

    def tick(self, before: Observation, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Observation:
        """The observation one step later.

        Args:
            before: The observation before.
            q: Measured joint positions (nq,) or (batch, nq) at the end of the step [m or rad].
            v: Measured joint velocities, likewise [m/s or rad/s].
            tau: Joint forces during the step (nv,) or (batch, nv) [N or N m].
        """
        arrays = {"q": q, "v": v, "tau": tau, "momentum": before.momentum, "gain": self.gain}
        arrays |= {"step": np.array([self.step]), "drift": before.drift}
        kernel = self.kernel
        return Observation(**kernel(*[arrays[name] for name in kernel.arguments]))

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """The tick as a C function; `.write(folder)` writes its two files.

        Args:
            name: Of the function and the files.
            dtype: float64 or float32.
        """
        code: Any = compile(OBSERVED[self.passive], self.mech, target="c", dtype=dtype)
        return code.named(name) if name else code


def momentum_observer(
    mech: Mechanism,
    *,
    gain: ArrayLike,
    step: float,
    passive: bool = True,
    loops: Loops = "closed",
) -> MomentumObserver:
    """An observer of joint forces from outside, such as contacts and pushes.

    Expression:
        r = K (p − ∫ (τ + C* v − g + r) dt),  p = 𝓜 v
    It needs positions, velocities and joint forces, no accelerations. r follows the forces from
    outside with the time constant 1/K, and contains errors of the model.

    With loops and couplings r has no part that these carry: r = P* τ_ext, whose power is that of
    τ_ext in all motions that loops allow, X* r = X* τ_ext. Its error is of the order of the step.

    Args:
        gain: Bandwidth K [1/s], a number or one for each joint velocity (nv,); with loops or
            couplings one number.
        step: Length of a tick [s].
        passive: Whether dampers and springs of drives are part of the model.
        loops: "closed" holds loops and couplings; "open" leaves them open, so that r has their
            forces, too.
    """
    whole_mechanism(mech, "a momentum observer")
    mech = mech if is_closed(mech, loops) else tree_of(mech)
    array = floats(gain, "gain")
    if array.shape not in ((), (mech.nv,)):
        raise ShapeError(f"gain has shape {array.shape}; it must be a number or ({mech.nv},).")
    if not (np.isfinite(array) & (array > 0.0)).all():
        raise ModelError("gain must be finite and positive.")
    if is_closed(mech) and np.ptp(array) > 0.0:
        raise ModelError(
            f"gain has different numbers, and {mech.name!r} has loops or couplings, by which "
            "joints share their forces; give one number for all."
        )
    each = np.broadcast_to(array, (mech.nv,)).astype(np.float64)
    return MomentumObserver(mech, each, number(step, "step", above=0.0), flag(passive, "passive"))
