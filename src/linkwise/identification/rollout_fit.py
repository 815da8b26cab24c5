"""Parameters from positions and joint forces alone: motions are simulated, not differentiated.

The recording is cut into windows. Each is simulated from its first sample with the measured joint
forces, and

    Σ |q̂_k(θ, x_w) ⊖ q_k|² / σ²   is least over the parameters θ and the first states x_w.

A window is short, so that errors of the model do not run away; its first state is free, so that
noise of one sample does not count. Derivatives by all parameters and states are differences, the
columns of one batch of rollouts. σ follows from what is left.

Steps have errors, too. With d the difference of positions between steps of h and h/2, estimates are
off by about

    (J* J)⁻¹ J* d / (1 − 2⁻ᵖ)          of an integrator of order p

and steps are halved until that is small beside the deviations. Friction acts in implicit steps, in
which loops hold as well; first states then move along what loops allow. These steps are of order
one, and positions q(h) after them are replaced by 2 q(h/2) − q(h), of order two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import count, number, option
from linkwise.dynamics.kernels import check_mechanism, is_closed, tree_of
from linkwise.dynamics.regressor import BaseParameters
from linkwise.errors import ModelError, TroubleWarning, caller
from linkwise.identification import model
from linkwise.identification.estimate import interval
from linkwise.identification.progress import Progress, Reporter
from linkwise.identification.rollout_search import Search, covariance_of, settled
from linkwise.identification.rollout_windows import ORDERS, Windows
from linkwise.identification.rows import Rows, base_and_equations, base_of
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

SIMULATED = ("inertia", "armature", "damping", "friction", "stiffness")
"""What steps take as numbers of each motion; friction those of "implicit" alone."""

FINE = 0.2
"""Part of a deviation by which an estimate may be off because of the steps."""

UNSEEN = 0.5
"""Part of the variance of the prior that a variance has where measurements add little."""

MOST = 64
"""Steps between two samples."""


@dataclass(frozen=True, slots=True, eq=False)
class RolloutFit:
    """Parameters identified through simulated motions.

    Attributes:
        mech: The mechanism with the identified numbers.
        names: The base parameters, combinations that joint forces depend on.
        estimate: Their values (count,).
        deviation: Their standard deviations (count,).
        parameters: The numbers of `mech` by name.
        noise: Standard deviation of the residuals of positions [m or rad].
        before: The same before the search, with the first states fitted.
        rounds: How many the search took.
        converged: Whether it ended where nothing is left to gain; a `TroubleWarning` if not.
        gaps: Windows with numbers that are not finite, which were left out.
        substeps: Steps of the simulation between two samples.
        step_error: How far the length of the steps moves an estimate, in deviations, at most.
    """

    mech: Mechanism
    names: tuple[str, ...]
    estimate: Array
    deviation: Array
    parameters: dict[str, float]
    noise: float
    before: float
    rounds: int
    converged: bool
    gaps: int
    substeps: int
    step_error: float

    def interval(self, level: float = 0.95) -> Array:
        """Confidence interval of each base parameter (count, 2).

        Args:
            level: Probability that an interval contains the true value, for normal noise.
        """
        return interval(self.estimate, self.deviation, level)

    def __str__(self) -> str:
        end = "" if self.converged else ", not converged"
        lines = [
            f"{len(self.names)} base parameters of {self.mech.name!r} through rollouts: residual "
            f"{self.before:.3g} before, {self.noise:.3g} after {self.rounds} rounds{end}",
            f"{self.substeps} steps between samples move estimates by {self.step_error:.2g} "
            "deviations at most",
        ]
        if self.gaps:
            lines.append(f"{self.gaps} windows with gaps left out")
        rows = zip(self.names, self.estimate, self.deviation, strict=True)
        lines += [f"  {name[:48]:48} {x:11.4g} ± {s:8.2g}" for name, x, s in rows]
        return "\n".join(lines)


def identify_rollout(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    parameters: Sequence[str] = ("inertia", "damping"),
    window: int = 25,
    prior: float = 1e-3,
    integrator: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> RolloutFit:
    """Identify parameters where velocities and accelerations are not measured.

    Windows of the recording are simulated from free first states with the measured joint forces,
    which are held from each sample to the next; the sum of squares of the errors of positions is
    least. Nothing is differentiated or filtered. What is not identified keeps the value it has in
    `mech`. Steps between samples are halved until their errors are small beside the deviations.

    Args:
        t: Times of the samples (samples,) [s], evenly spaced.
        q: Measured positions (samples, nq) [m or rad]. Windows with a NaN are left out.
        tau: Joint forces (samples, nv) [N or N m], each held until the next sample; likewise.
        parameters: What to identify: "inertia", "armature", "damping", "friction", "stiffness".
        window: Steps in a window, which has one sample more; no sample is in two windows.
        prior: How strongly the numbers are pulled to those of `mech`, as in `lw.identify`.
        integrator: "rk4", "euler" or "implicit"; default: "implicit" with friction, loops or
            couplings, which the others do not have, else "rk4".
        progress: Called after each round of the search with a `Progress`, such as `print`.

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: Times that are not evenly spaced, gaps in all windows, too few samples, or a
            motion that cannot be simulated; friction or loops with explicit steps.
        ClosureError: Positions break loops by more than noise does.
        ShapeError: Arrays that do not fit.
    """
    check_mechanism(mech)
    kinds, gained = model.checked_kinds(parameters)
    for kind in (*kinds, *([model.GAIN] if gained else [])):
        option(kind, SIMULATED, "parameters")
    scheme, report = _integrator(mech, kinds, integrator), Reporter(progress)
    length, pull = count(window, "window", least=4), number(prior, "prior", above=0.0)
    problem = Windows.of(mech, kinds, t, q, tau, length, scheme)
    free = model.FreeNumbers.of(tree_of(mech), kinds, straight=True)
    base = _base(mech, kinds, problem)
    x, weight = free.first.copy(), np.sqrt(pull)
    while not problem.is_finite(x, free) and 2 * problem.substeps <= MOST:
        problem = problem.finer()
    states = settled(problem, free, x, problem.first)
    before, total = None, 0
    while True:
        linear = problem.linear(free, x, states)
        search = Search(problem, free, weight, x, states, *linear, report)
        before = search.scale if before is None else before
        rounds, converged = search.run()
        x, states, J, scale, total = search.x, search.states, search.J, search.scale, total + rounds
        seen, covariance = covariance_of(J, len(x), scale, pull)
        values, slopes = free.numbers(x)
        rows = base.matrix @ slopes
        spread = np.einsum("ij,jk,ik->i", rows, covariance, rows)
        deviation = np.sqrt(np.maximum(spread, 0.0))
        off = search.miss - problem.finer().misses(values[None], states[None])[0]
        off /= 1.0 - 0.5 ** ORDERS[scheme]
        moved = rows @ (covariance @ (seen.T @ off)) / scale**2
        step_error = float(np.max(np.abs(moved) / np.maximum(deviation, 1e-300), initial=0.0))
        if step_error <= FINE or 2 * problem.substeps > MOST:
            break
        problem = problem.finer()
    if not converged:
        warnings.warn(
            f"the search over the numbers of {mech.name!r} ended where the errors could still be "
            "smaller: take shorter windows, better first numbers, or fewer parameters.",
            TroubleWarning,
            stacklevel=caller(),
        )
    prior_only = np.einsum("ij,ij->i", rows, rows) / pull
    weak = [
        x for x, s, p in zip(base.names, spread, prior_only, strict=True) if s > UNSEEN * p > 0.0
    ]
    if weak:
        warnings.warn(
            f"the recording hardly shows {'; '.join(weak[:4])}: what is known comes from the "
            f"numbers of {mech.name!r} (prior={pull:g}). Move all joints in more ways "
            "(lw.identification.exciting_motion), or identify fewer parameters.",
            TroubleWarning,
            stacklevel=caller(),
        )
    if step_error > FINE:
        warnings.warn(
            f"{problem.substeps} steps between samples move an estimate by {step_error:.1f} of its "
            "standard deviations: intervals are too narrow by that. Sample more often, or take "
            "integrator='rk4' if there is no friction.",
            TroubleWarning,
            stacklevel=caller(),
        )
    named = dict(zip(model.column_names(tree_of(mech), kinds), values.tolist(), strict=True))
    return RolloutFit(
        model.with_numbers(mech, kinds, values),
        base.names,
        base.matrix @ values,
        deviation,
        named,
        scale,
        before,
        total,
        converged,
        problem.left_out,
        problem.substeps,
        step_error,
    )


def _integrator(mech: Mechanism, kinds: tuple[str, ...], given: str | None) -> str:
    """The integrator, which has to have what acts on the mechanism."""
    rubs = "friction" in kinds or bool(mech.friction.any())
    if given is None:
        return "implicit" if rubs or is_closed(mech) else "rk4"
    name = option(given, tuple(ORDERS), "integrator")
    if name != "implicit" and (rubs or is_closed(mech)):
        what = "friction" if rubs else "loops or couplings"
        raise ModelError(
            f"{mech.name!r} has {what}, which do not act in steps of {name!r}; take 'implicit'."
        )
    return name


def _base(mech: Mechanism, kinds: tuple[str, ...], problem: Windows) -> BaseParameters:
    """The combinations that motions depend on."""
    everything = list(range(mech.nv))
    if not is_closed(mech):
        return base_of(mech, kinds, everything)
    nq, none = mech.nq, np.zeros((len(problem.first), mech.nv))
    driven = [i for i in everything if problem.tau[..., i].any()]
    rows = Rows.of(mech, (problem.first[:, :nq], none, none), everything, driven)
    return base_and_equations(kinds, rows)[0]
