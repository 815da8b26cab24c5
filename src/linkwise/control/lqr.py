"""Linear-quadratic regulators: the Riccati recursion over time steps instead of bodies.

    J = ½ Σ (x* Q x + u* R u) + ½ x_N* S x_N,     x' = A x + B u
    P_N = S,   D = R + B* P B,   K = D⁻¹ B* P A,   P ← Q + A* P (A − B K)                      (1)

is the recursion of articulated inertias with time in place of the tree: P is what is left to pay as
P(k) is what is left to move, D and K are its innovation and gain. (1) runs backwards from the end
of a horizon; without an end, P is its fixed point, from SciPy's solvers. x = (q ⊖ q₀, v − v₀) is in
the tangent space of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, number
from linkwise.dynamics import inverse_dynamics, passive_force
from linkwise.dynamics.derivatives import Linearization
from linkwise.dynamics.kernels import Loops, check_mechanism, require_open, tree_of
from linkwise.dynamics.state_feedback import StateFeedback
from linkwise.errors import MissingExtraError, ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.simulation.linearize import linearize
from linkwise.spatial.array import Array, ArrayLike, floats

AT_REST = 1e-6
"""Joint forces, relative to the largest one, below which an undriven joint is in equilibrium."""

REACHED = 1e-9
"""Smallest singular value of (λ − A, B), relative to the largest, of a mode that B moves."""

NEUTRAL = 1e-5
"""Eigenvalues this close to the boundary of stability may lie on it."""

SLOWEST = 1e-10
"""Poles have to be at least this far inside of it."""

UNBALANCED = 1e-3
"""Joint forces, relative to the largest one, by which `tau` may differ from those that hold a
state."""


@dataclass(frozen=True, slots=True, eq=False)
class Regulator:
    """A linear-quadratic regulator about a state or along a motion.

    Attributes:
        law: τ = τ₀ − K (q ⊖ q₀, v − v₀), for `lw.rollout`, `lw.simulate` and C; with a horizon,
            that of the first step.
        gain: K (nv, 2 nv), or (N, nv, 2 nv) with a horizon; rows of joints that are not driven are
            zero.
        cost: P (2 nv, 2 nv), or (N + 1, 2 nv, 2 nv): what remains to be paid from x is ½ x* P x.
        A: Of the linear model, with dampers and springs.
        B: Likewise, its columns for all joints.
        poles: Eigenvalues of A − B K (2 nv,) [1/s], or of one step; None with a horizon.
        q: The states and forces about which it regulates (nq,), or (N, nq).
        v: Likewise.
        tau: Likewise.
        step: Of the discrete model [s]; None in continuous time.
    """

    law: StateFeedback
    gain: Array
    cost: Array
    A: Array
    B: Array
    poles: NDArray[np.complex128] | None
    q: Array
    v: Array
    tau: Array
    step: float | None

    @property
    def inputs(self) -> dict[str, Array]:
        """With a horizon, `inputs` of `lw.rollout` with a row for each step, besides the goal.

        lw.rollout(mech, q, v, controller=(r.law, r.q), inputs=r.inputs, duration=N * step, ...)
        """
        return {
            "velocity": self.v,
            "tau0": self.tau,
            "gain": self.gain.reshape(*self.gain.shape[:-2], -1),
        }

    def __str__(self) -> str:
        if self.poles is None:
            return f"regulator of {self.law.mech.name!r} over {len(self.gain)} steps"
        slowest = np.abs(self.poles).max() if self.step else self.poles.real.max()
        what = f"largest |pole| {slowest:.4g}" if self.step else f"slowest pole {slowest:.4g} 1/s"
        return f"regulator of {self.law.mech.name!r}, {what}"


def lqr(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    Q: ArrayLike,
    R: ArrayLike,
    driven: Sequence[str] | None = None,
    step: float | None = None,
    horizon: int | None = None,
    final: ArrayLike | None = None,
    integrator: str = "rk4",
    passive: bool = True,
    loops: Loops = "closed",
) -> Regulator:
    """The linear-quadratic regulator about a state, or along a motion.

    Expression:
        K = D⁻¹ B* P A,  P = Q + A* P (A − B K),  D = R + B* P B
    with A and B of `lw.linearize`: in continuous time, or with `step` of the step that `lw.rollout`
    makes. With `horizon` the recursion runs back over N steps from P = `final`.

    Args:
        q: Joint positions (nq,), or (N, nq) with a row for each step of a horizon [m or rad].
        v: Joint velocities, likewise; default: at rest. Other velocities need a horizon.
        tau: Joint forces that hold the state (nv,), or (N, nv); default: those of
            `lw.inverse_dynamics` with dampers and springs, which must leave joints that are not
            driven without force.
        Q: Weights of x = (q ⊖ q₀, v − v₀): a number, a diagonal (2 nv,), or (2 nv, 2 nv),
            symmetric and not negative.
        R: Weights of the joint forces: a number, one for each driven joint velocity (m,), or
            (m, m), symmetric and positive.
        driven: Names of the hinges that have a motor; default: all.
        step: Length of a step [s]; default: continuous time.
        horizon: Steps N; default: endless.
        final: Weights S of the last state, like Q; default: Q.
        integrator: With `step`, that of `lw.rollout`.
        passive: Whether dampers and springs of drives act, as in `lw.rollout`.
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.

    Returns:
        Gains, costs and poles, and the law.

    Raises:
        ModelError: The state is not an equilibrium, weights are not positive, or no gain
            stabilises the state; names the joints, or the mode that cannot be reached or that has
            no weight.
        ShapeError: Weights or a motion that do not fit.
        MissingExtraError: SciPy is not installed (extra `simulate`).
    """
    check_mechanism(mech)
    require_open(mech, loops, "lw.lqr", "lw.optimize holds them and gives gains.")
    mech, moved = tree_of(mech), moved_places(mech, driven, "driven")
    steps = None if horizon is None else count(horizon, "horizon", least=1)
    if steps is not None and step is None:
        raise ModelError("horizon counts steps, and step is missing: give the length of a step.")
    if final is not None and steps is None:
        raise ModelError("final weighs the last state of a horizon, and horizon is missing.")
    length = None if step is None else number(step, "step", above=0.0)
    n = 2 * mech.nv
    weights, prices = _weights(Q, n, "Q"), _weights(R, len(moved), "R", positive=True)
    q0, v0 = mech.check_q(q), mech.check_v(np.zeros(mech.nv) if v is None else v)
    tau0 = _holding(mech, q0, v0, moved, passive) if tau is None else mech.check_v(tau, "tau")
    q0, v0, tau0 = _rows(steps, q0, v0, tau0)
    if steps is None:
        _check_rest(mech, q0, v0, tau0, passive)
    model = _linear(mech, (q0, v0, tau0), length, integrator, passive)
    A, B = model.A, model.B[..., moved]
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        raise ModelError(
            f"the motion of {mech.name!r} cannot be linearised in every row of q, v and tau; the "
            "warning above says where and why. Shorten the step, or mend that row."
        )
    if steps is None:
        gain, cost = _endless(mech, A, B, weights, prices, discrete=length is not None)
        poles = np.linalg.eigvals(A - B @ gain).astype(np.complex128)
    else:
        last = weights if final is None else _weights(final, n, "final")
        gain, cost = riccati(A, B, weights, prices, last, steps)
        poles = None
    gains = np.zeros((*gain.shape[:-2], mech.nv, n))
    gains[..., moved, :] = gain
    first = (gains[0], q0[0], v0[0], tau0[0]) if steps is not None else (gains, q0, v0, tau0)
    law = StateFeedback.of(mech, *first)
    return Regulator(law, gains, cost, model.A, model.B, poles, q0, v0, tau0, length)


def riccati(
    A: Array, B: Array, Q: Array, R: Array, final: Array, steps: int
) -> tuple[Array, Array]:
    """The recursion (1): gains (N, m, n) and costs (N + 1, n, n) of models (n, n) or (N, n, n)."""
    A, B = (np.broadcast_to(x, (steps, *x.shape[-2:])) for x in (A, B))
    gains, costs = np.empty((steps, B.shape[-1], len(Q))), np.empty((steps + 1, *Q.shape))
    costs[-1] = final
    for k in reversed(range(steps)):
        P = costs[k + 1]
        D = R + B[k].T @ P @ B[k]
        gains[k] = np.linalg.solve(D, B[k].T @ P @ A[k])
        P = Q + A[k].T @ P @ (A[k] - B[k] @ gains[k])
        costs[k] = 0.5 * (P + P.T)
    return gains, costs


def _weights(given: ArrayLike, size: int, name: str, *, positive: bool = False) -> Array:
    """A symmetric matrix (size, size) of weights; raises unless it is positive."""
    array = floats(given, name)
    if array.ndim < 2 and array.shape in ((), (size,)):
        array = np.diag(np.broadcast_to(array, (size,)))
    if array.shape != (size, size):
        raise ShapeError(
            f"{name} has shape {array.shape}; it must be a number, ({size},) or ({size}, {size})."
        )
    if not np.isfinite(array).all() or not np.allclose(array, array.T):
        raise ModelError(f"{name} must be finite and symmetric.")
    least = float(np.linalg.eigvalsh(array)[0])
    scale = float(np.abs(array).max())
    if least < -1e-12 * scale or (positive and least <= 0.0):
        need = "positive" if positive else "zero or positive"
        raise ModelError(f"{name} has the eigenvalue {least:.3g}; all must be {need}.")
    return 0.5 * (array + array.T)


def _balance(mech: Mechanism, q: Array, v: Array, passive: bool) -> Array:
    """Joint forces without acceleration."""
    tau = inverse_dynamics(mech, q, v, np.zeros_like(v))
    return tau - passive_force(mech, q, v) if passive else tau


def _check_rest(mech: Mechanism, q: Array, v: Array, tau: Array, passive: bool) -> None:
    """Raise unless a state stays where it is."""
    if v.any():
        i = int(np.abs(v).argmax())
        raise ModelError(
            f"v of {mech.velocity_names[i]!r} is {v[i]:.4g}; without a horizon lw.lqr regulates "
            "about a state at rest. Leave out v, or give the motion with step and horizon."
        )
    needed = _balance(mech, q, v, passive)
    scale = max(float(np.abs(needed).max()), float(np.abs(tau).max()), mech.total_mass * 1e-6)
    off = np.abs(tau - needed)
    i = int(off.argmax())
    if off[i] > UNBALANCED * scale:
        raise ModelError(
            f"the state is not an equilibrium with this tau: {mech.velocity_names[i]!r} needs "
            f"{needed[i]:.4g} and gets {tau[i]:.4g}. Leave out tau, whose default holds the state."
        )


def _holding(mech: Mechanism, q: Array, v: Array, moved: list[int], passive: bool) -> Array:
    """Joint forces that hold a state at rest, or follow a motion without acceleration."""
    tau = _balance(mech, q, v, passive)
    idle = [i for i in range(mech.nv) if i not in moved]
    scale = max(float(np.abs(tau).max(initial=0.0)), mech.total_mass * 1e-6)
    for i in idle:
        force = float(np.abs(tau[..., i]).max())
        if force > AT_REST * scale:
            raise ModelError(
                f"the state is not an equilibrium: {mech.velocity_names[i]!r} needs a joint force "
                f"of {force:.4g}, and it is not driven. Give a state at rest, or `tau` of a motion."
            )
    tau[..., idle] = 0.0
    return tau


def _rows(steps: int | None, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """The same states for all steps of a horizon, where they are given once."""
    rows = {x.shape[0] for x in (q, v, tau) if x.ndim > 1}
    if steps is None:
        if rows or max(x.ndim for x in (q, v, tau)) > 1:
            raise ShapeError("q, v or tau has several rows; that is a motion: give horizon.")
        return q, v, tau
    if rows - {steps} or max(x.ndim for x in (q, v, tau)) > 2:
        shapes = ", ".join(str(x.shape) for x in (q, v, tau))
        raise ShapeError(f"q, v and tau have shapes {shapes}; a motion has {steps} rows.")
    q, v, tau = (np.broadcast_to(x, (steps, x.shape[-1])) for x in (q, v, tau))
    return q, v, tau


def _linear(
    mech: Mechanism, state: tuple[Array, Array, Array], step: float | None, *how: Any
) -> Linearization:
    """A and B about a state or a motion; equal rows are linearised once."""
    integrator, passive = how
    alike = state[0].ndim > 1 and all((x == x[0]).all() for x in state)
    state = tuple(x[0] for x in state) if alike else state  # pyright: ignore
    if step is not None:
        return linearize(mech, *state, step=step, integrator=integrator, passive=passive)
    return linearize(mech, *state, passive=passive)


def _endless(
    mech: Mechanism, A: Array, B: Array, Q: Array, R: Array, *, discrete: bool
) -> tuple[Array, Array]:
    """K and P without a horizon."""
    try:
        linalg: Any = import_module("scipy.linalg")
    except ImportError:
        raise MissingExtraError("lw.lqr", package="scipy", extra="simulate") from None
    solve = linalg.solve_discrete_are if discrete else linalg.solve_continuous_are
    problem = ""
    try:
        P: Array = solve(A, B, Q, R)
        sides = (R + B.T @ P @ B, B.T @ P @ A) if discrete else (R, B.T @ P)
        gain: Array = linalg.solve(*sides)
        poles = np.linalg.eigvals(A - B @ gain)
        slow = float(np.abs(poles).max()) - 1.0 if discrete else float(poles.real.max())
        if slow < -SLOWEST:
            return gain, P
        problem = "the gain of the solution does not make all modes decay"
    except (np.linalg.LinAlgError, ValueError) as error:  # SciPy raises either
        problem = str(error).rstrip(".")
    raise ModelError(
        _unreached(mech, A, B, discrete)
        or _unweighed(mech, A, Q, discrete)
        or f"no gain that stabilises {mech.name!r} was found: {problem}. Scale the weights so that "
        "they differ less, or drive more joints."
    )


def _unreached(mech: Mechanism, A: Array, B: Array, discrete: bool) -> str:
    """The mode that does not decay and that the joint forces cannot move, in words."""
    for value in _lasting(A, discrete):
        mode = _blocked(A.T, B.T, value)
        if mode is not None:
            return (
                f"no gain stabilises {mech.name!r} here: a mode with the eigenvalue "
                f"{_short(value)} does not decay, and the driven joints cannot move it. It "
                f"involves {_involved(mech, mode)}. Drive another joint, or remove that motion."
            )
    return ""


def _unweighed(mech: Mechanism, A: Array, Q: Array, discrete: bool) -> str:
    """The mode that neither grows nor decays, and that Q does not see, in words."""
    for value in _lasting(A, discrete):
        grows = (abs(value) - 1.0 if discrete else value.real) > NEUTRAL
        mode = None if grows else _blocked(A, Q, value)
        if mode is not None:
            return (
                f"no gain is the best one for {mech.name!r} here: a mode with the eigenvalue "
                f"{_short(value)} does not decay by itself, and Q does not weigh it. It involves "
                f"{_involved(mech, mode)}. Give these a positive weight in Q."
            )
    return ""


def _lasting(A: Array, discrete: bool) -> list[complex]:
    """Eigenvalues that do not decay. Those of drifting are several equal ones, which are rough."""
    values, still = np.linalg.eigvals(A), 1.0 if discrete else 0.0
    stays = np.abs(values) >= 1.0 - NEUTRAL if discrete else values.real >= -NEUTRAL
    drift = [complex(still)] if (np.abs(values - still) < NEUTRAL).any() else []
    return drift + [complex(x) for x in values[stays]]


def _blocked(A: Array, shown: Array, value: complex) -> NDArray[np.complex128] | None:
    """x with A x = λ x and no part in what is shown, or None."""
    both = np.vstack([A - value * np.eye(len(A)), shown]).astype(np.complex128)
    _, sizes, rows = np.linalg.svd(both)
    return rows[-1].conj() if sizes[-1] <= REACHED * sizes[0] else None


def _short(value: complex) -> str:
    return f"{value:.4g}" if value.imag else f"{value.real:.4g}"


def _involved(mech: Mechanism, mode: NDArray[np.complex128]) -> str:
    part = np.abs(mode[: mech.nv]) + np.abs(mode[mech.nv :])
    which = [mech.velocity_names[i] for i in np.flatnonzero(part > 0.1 * part.max())]
    return ", ".join(map(repr, which[:6])) + (f" and {len(which) - 6} more" if which[6:] else "")
