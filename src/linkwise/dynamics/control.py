"""Control laws by recursion: joint forces that make a mechanism follow a motion.

Each is a function of the state (q, v) and of the motion that is wanted (q_d, v_d, v̇_d), for one
state or a batch. What is missing is

    e = difference(q, q_d),      ė = v_d - v,

which is q_d - q for hinges that turn about one axis or slide, and for quaternions the rotation that
is left, in the axes of the body. The gains K_p and K_v are numbers, one for each freedom (nv,), or
matrices (nv, nv), symmetric and positive.

The armature of the mechanism is part of 𝓜. Damping, friction and springs of the hinges
are part of none of them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from linkwise.dynamics.energy import kinetic_energy
from linkwise.dynamics.inverse_dynamics import gravity_force, inverse_dynamics
from linkwise.dynamics.kernels import called, check_mechanism, kernel
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Which: TypeAlias = Literal["actual", "desired"]
"""The motion that a term is taken from."""

_CHOICES = ("actual", "desired")


def gravity_compensation(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kv: ArrayLike,
) -> Array:
    """A spring to where it should be, a damper, and what holds the mechanism against gravity.

    Expression:
        τ = K_p e + K_v ė + H φ M φ* a_g
    It goes to any q_d that stands still; a moving one it follows with a delay.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        q_d: Where it should be, like q.
        v_d: How fast it should be there, like v; zero by default.
        kp: Stiffness [N/m or N m/rad].
        kv: Damping [N s/m or N m s/rad].

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    check_mechanism(mech)
    rest = np.zeros(mech.nv) if v_d is None else v_d
    return _pull(mech, q, v, q_d, rest, kp, kv) + gravity_force(mech, q)


def computed_torque(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike,
    vdot_d: ArrayLike,
    *,
    kp: ArrayLike,
    kv: ArrayLike,
) -> Array:
    """Inverse dynamics of the acceleration that would make the error go away as an oscillator does.

    Expression:
        τ = 𝓜 (v̇_d + K_v ė + K_p e) + C,   `mass @ vdot + bias`
    one kernel of two passes, O(n). With a model that is right, what is left is
    ë + K_v ė + K_p e = 0: each freedom for itself, and no trace of the mechanism.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        q_d: Where it should be, like q.
        v_d: How fast it should be there, like v.
        vdot_d: The acceleration it should have there, like v.
        kp: Square of the frequency [1/s²].
        kv: Damping [1/s]; 2 √K_p is critical.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    check_mechanism(mech)
    wanted = mech.check_v(vdot_d, "vdot_d") + _pull(mech, q, v, q_d, v_d, kp, kv)
    return inverse_dynamics(mech, q, v, wanted)


def wen_bayard(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike,
    vdot_d: ArrayLike,
    *,
    kp: ArrayLike,
    kv: ArrayLike,
    coriolis: tuple[Which, Which] = ("actual", "desired"),
    at: Which = "actual",
) -> Array:
    """Forces of the wanted motion plus a spring and a damper: the control laws of Wen and Bayard.

    Expression:
        τ = 𝓜(x) v̇_d + C(x, v₁) v₂ + g(x) + K_p e + K_v ė,   x is q or q_d
        C(x, v₁) v₂ = H φ (M φ* A_V v₂ + B_V φ* H* v₂)  with A_V and B_V of v₁
    where each of the velocities v₁ and v₂ is the actual or the desired one. The recursion of Newton
    and Euler knows one velocity only; here two go through it, still in two passes, O(n).

    With x = q and C(q, v) v_d, the default, the closed loop is 𝓜 ë + C(q, v) ė + K_v ė + K_p e = 0,
    so that 𝓜̇ - 2 C being skew makes

        d/dt (½ ė* 𝓜 ė + ½ e* K_p e) = - ė* K_v ė

    for any gains (with one number for all freedoms of a ball or free hinge in K_p). The other
    choices need K_v large enough for the speed that is wanted, and in return measure less or, with
    everything desired, can be computed beforehand.

    Source: 000 section 6, after Wen and Bayard (1988).

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        q_d: Where it should be, like q.
        v_d: How fast it should be there, like v.
        vdot_d: The acceleration it should have there, like v.
        kp: Stiffness [N/m or N m/rad].
        kv: Damping [N s/m or N m s/rad].
        coriolis: Which velocities: in the Coriolis matrix, and the one it is applied to.
        at: Which position the model is taken at.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    check_mechanism(mech)
    if len(coriolis) != 2 or not {*coriolis, at} <= set(_CHOICES):
        raise ModelError(
            f"coriolis is {coriolis!r} and at is {at!r}; they must be 'actual' or 'desired', "
            "two of them for coriolis."
        )
    velocity = {"actual": v, "desired": v_d}
    arrays = {
        "q": q if at == "actual" else q_d,
        "v": velocity[coriolis[0]],
        "w": velocity[coriolis[1]],
        "vdot": vdot_d,
    }
    found = kernel(mech, "two_velocity_dynamics")
    pull = _pull(mech, q, v, q_d, v_d, kp, kv)
    return pull + called(found, arrays, {})


def tracking_energy(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, q_d: ArrayLike, v_d: ArrayLike, *, kp: ArrayLike
) -> float | Array:
    """½ ė* 𝓜 ė + ½ e* K_p e: the energy of the error, which a control law has to bring down.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        q_d: Where it should be, like q.
        v_d: How fast it should be there, like v.
        kp: Stiffness [N/m or N m/rad].

    Returns:
        A number, or one for each state (batch,) [J].
    """
    missing, slower = _errors(mech, q, v, q_d, v_d)
    spring = 0.5 * (missing * _times(mech, kp, missing, "kp")).sum(axis=-1)
    return kinetic_energy(mech, q, slower) + spring


def _pull(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike,
    kp: ArrayLike,
    kv: ArrayLike,
) -> Array:
    """K_p e + K_v ė."""
    missing, slower = _errors(mech, q, v, q_d, v_d)
    return _times(mech, kp, missing, "kp") + _times(mech, kv, slower, "kv")


def _errors(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, q_d: ArrayLike, v_d: ArrayLike
) -> tuple[Array, Array]:
    """e and ė."""
    check_mechanism(mech)
    arrays = {
        "q": mech.check_q(q),
        "v": mech.check_v(v),
        "q_d": mech.check_q(q_d),
        "v_d": mech.check_v(v_d, "v_d"),
    }
    rows = {name: len(x) for name, x in arrays.items() if x.ndim == 2 and len(x) != 1}
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in rows.items())
        raise ShapeError(f"the numbers of rows do not fit: {told}; one batch is wanted for all.")
    return mech.difference(arrays["q"], arrays["q_d"]), arrays["v_d"] - arrays["v"]


def _times(mech: Mechanism, gain: ArrayLike, x: Array, name: str) -> Array:
    """A gain times a vector over the freedoms: a number, a diagonal or a matrix."""
    k, n = floats(gain, name), mech.nv
    if k.shape not in ((), (n,), (n, n)):
        raise ShapeError(
            f"{name} has shape {k.shape}; for {mech.name!r} it must be a number, ({n},) or "
            f"({n}, {n})."
        )
    if not np.isfinite(k).all():
        raise ModelError(f"{name} is not finite.")
    return x @ k.T if k.ndim == 2 else k * x
