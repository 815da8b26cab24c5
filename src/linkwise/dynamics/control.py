"""Control laws by recursion: joint forces that make a mechanism follow a motion.

Each is a function of the state (q, v) and of the desired motion (q_d, v_d, v̇_d), for one state or a
batch. The errors are

    e = difference(q, q_d),      ė = v_d - v,

which is q_d - q for hinges that turn about one axis or slide, and for quaternions the remaining
rotation, in the axes of the body. The gains K_p and K_v are numbers, one for each joint velocity
(nv,), or matrices (nv, nv), symmetric and positive.

The armature of the mechanism is part of 𝓜. Damping, friction and springs of the hinges are not
included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.arguments import numbers
from linkwise.codegen.formula import Formula
from linkwise.dynamics.configuration import between, coordinates
from linkwise.dynamics.kernels import check_mechanism, written
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats, frozen

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Which: TypeAlias = Literal["actual", "desired"]
"""The motion that a term depends on."""

_CHOICES = ("actual", "desired")


def pd_gravity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kv: ArrayLike,
) -> Array:
    """PD control with gravity compensation: a spring to the desired position, a damper, gravity.

    Expression:
        τ = K_p e + K_v ė + H φ M φ* a_g
    It reaches any q_d at rest; it follows a moving one with a delay.

    Args:
        q_d: Desired positions, like q.
        v_d: Desired velocities, like v; default: zero.
        kp: Stiffness [N/m or N m/rad].
        kv: Damping [N s/m or N m s/rad].

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    kp, kv = _gain(kp), _gain(kv)
    kernel = _law(mech, _pd_gravity, (v_d is None,), kp.shape, kv.shape)
    if v_d is None:
        return kernel(q, v, q_d, kp.ravel(), kv.ravel())
    return kernel(q, v, q_d, v_d, kp.ravel(), kv.ravel())


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
    """Inverse dynamics of the acceleration that makes the error decay like a damped oscillator.

    Expression:
        τ = 𝓜 (v̇_d + K_v ė + K_p e) + C,   `mass @ vdot + bias`
    one kernel of two passes, O(n). With an exact model the error obeys ë + K_v ė + K_p e = 0: the
    joints are decoupled, and the mechanism no longer enters.

    Args:
        q_d: Desired positions, like q.
        v_d: Desired velocities, like v.
        vdot_d: Desired accelerations, like v.
        kp: Square of the frequency [1/s²].
        kv: Damping [1/s]; 2 √K_p is critical.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    kp, kv = _gain(kp), _gain(kv)
    kernel = _law(mech, _computed_torque, (), kp.shape, kv.shape)
    return kernel(q, v, q_d, v_d, kp.ravel(), kv.ravel(), vdot_d)


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
    """Forces of the desired motion plus a spring and a damper: the laws of Wen and Bayard.

    Expression:
        τ = 𝓜(x) v̇_d + C(x, v₁) v₂ + g(x) + K_p e + K_v ė,   x is q or q_d
        C(x, v₁) v₂ = H φ (M φ* A_V v₂ + B_V φ* H* v₂)  with A_V and B_V of v₁
    where each of the velocities v₁ and v₂ is the actual or the desired one. The recursion of Newton
    and Euler has only one velocity; here two pass through it, still in two passes, O(n).

    With x = q and C(q, v) v_d, the default, the closed loop is 𝓜 ë + C(q, v) ė + K_v ė + K_p e = 0,
    so that 𝓜̇ - 2 C being skew makes

        d/dt (½ ė* 𝓜 ė + ½ e* K_p e) = - ė* K_v ė

    for any gains (with one number for a ball or free hinge in K_p). The other choices need K_v
    large enough for the desired speed; in return they measure less or, with everything desired, can
    be computed in advance.

    Source: 000 section 6, after Wen and Bayard (1988).

    Args:
        q_d: Desired positions, like q.
        v_d: Desired velocities, like v.
        vdot_d: Desired accelerations, like v.
        kp: Stiffness [N/m or N m/rad].
        kv: Damping [N s/m or N m s/rad].
        coriolis: The velocity in the Coriolis matrix, and the one it is applied to.
        at: The position at which the model is evaluated.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    if len(coriolis) != 2 or not {*coriolis, at} <= set(_CHOICES):
        raise ModelError(
            f"coriolis is {coriolis!r} and at is {at!r}; they must be 'actual' or 'desired', "
            "two of them for coriolis."
        )
    kp, kv = _gain(kp), _gain(kv)
    kernel = _law(mech, _wen_bayard, (*coriolis, at), kp.shape, kv.shape)
    return kernel(q, v, q_d, v_d, kp.ravel(), kv.ravel(), vdot_d)


def tracking_energy(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, q_d: ArrayLike, v_d: ArrayLike, *, kp: ArrayLike
) -> float | Array:
    """½ ė* 𝓜 ė + ½ e* K_p e: the energy of the error, which a control law has to reduce.

    Args:
        q_d: Desired positions, like q.
        v_d: Desired velocities, like v.
        kp: Stiffness [N/m or N m/rad].

    Returns:
        A number, or one for each state (batch,) [J].
    """
    kp = _gain(kp)
    energy = _law(mech, _tracking_energy, (), kp.shape, ())(q, v, q_d, v_d, kp.ravel())
    return numbers(energy)[0] if energy.ndim == 1 else energy[:, 0]


def _gain(value: ArrayLike) -> Array:
    """A number as (1,), a diagonal or a matrix as it is."""
    if type(value) is float:
        return _number(value)
    return np.atleast_1d(floats(value, "a gain"))


@lru_cache(maxsize=256)
def _number(value: float) -> Array:
    return frozen(np.array([value]))


@once_per_mechanism
def _law(
    mech: Mechanism,
    write: Callable[..., Any],
    options: tuple[Any, ...],
    kp: tuple[int, ...],
    kv: tuple[int, ...],
) -> Any:
    """The kernel of a control law, for gains of these shapes."""
    check_mechanism(mech)
    return written(mech, Formula(write, (*options, kp, kv)))


def _errors(at: Writing, *, rest: bool = False) -> tuple[Any, Any]:
    """e and ė, as formulas."""
    coordinates(at)
    v = at.v
    return between(at, "q", "q_d"), -v if rest else at.read("v_d", at.mech.nv) - v


def _times(at: Writing, name: str, shape: tuple[int, ...], x: Any) -> Any:
    """A gain times a vector over the joints: a number, a diagonal or a matrix."""
    n = at.mech.nv
    if shape not in ((1,), (n,), (n, n)):
        raise ShapeError(
            f"{name} has shape {shape}; for {at.mech.name!r} it must be a number, ({n},) or "
            f"({n}, {n})."
        )
    k = at.read(name, math.prod(shape)).reshape(shape)
    return k @ x if len(shape) == 2 else k * x


def _pull(at: Writing, kp: tuple[int, ...], kv: tuple[int, ...], *, rest: bool = False) -> Any:
    """K_p e + K_v ė, as a formula."""
    e, e_dot = _errors(at, rest=rest)
    return _times(at, "kp", kp, e) + _times(at, "kv", kv, e_dot)


def _pd_gravity(at: Writing, rest: bool, *gains: tuple[int, ...]) -> Any:
    return _pull(at, *gains, rest=rest) + at.value(expression("gravity_force"))


def _computed_torque(at: Writing, *gains: tuple[int, ...]) -> Any:
    vdot = _pull(at, *gains) + at.read("vdot_d", at.mech.nv)
    return at.value(expression("inverse_dynamics"), vdot=vdot)


def _wen_bayard(at: Writing, first: Which, second: Which, where: Which, *gains: Any) -> Any:
    pull, velocity = _pull(at, *gains), {"actual": at.v, "desired": at.read("v_d", at.mech.nv)}
    place = coordinates(at, "q" if where == "actual" else "q_d")
    vdot, model = at.read("vdot_d", at.mech.nv), expression("two_velocity_dynamics")
    return pull + at.value(model, q=place, v=velocity[first], w=velocity[second], vdot=vdot)


def _tracking_energy(at: Writing, kp: tuple[int, ...], _: Any) -> Any:
    e, e_dot = _errors(at)
    spring = 0.5 * (e * _times(at, "kp", kp, e)).sum(keepdims=True)
    return at.value(expression("kinetic_energy"), v=e_dot) + spring
