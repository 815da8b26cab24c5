"""Parameters of a mechanism from measured motions and joint forces.

    τ = W θ + noise                                                      linear in θ (`model.py`)
    W θ = W_b b,   b = K θ                               what can be identified: base parameters
    b̂ = argmin Σ_j |τ_j − W_bj b|² / σ_j²                `least_squares.py`; with gains of motors
                                                         (`gain.py`), along loops (`closed.py`)
    θ̂ = argmin |b̂ − K θ|² in the metric of b̂'s covariance,   over inertias that bodies can have

The last step needs no measurement any more: it is a small problem in free coordinates
(`pseudo_inertia.py`), with a weak pull towards the numbers that the mechanism came with, which
decides what the measurements leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwise.arguments import flag, number
from linkwise.dynamics.kernels import Forces, Loops, check_mechanism, is_closed, tree_of
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.regressor import BaseParameters
from linkwise.errors import ModelError
from linkwise.identification import model
from linkwise.identification.estimate import Identification
from linkwise.identification.gain import Gains, gains_of, nominal_gain, with_gains
from linkwise.identification.least_squares import Equations, least_squares, noise_of
from linkwise.identification.possible import distance, possible
from linkwise.identification.rows import Rows, base_and_equations
from linkwise.identification.samples import complete_samples, known_forces
from linkwise.identification.suspicion import check_explained, check_possible, check_size
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.spatial.array import Array, ArrayLike


def identify(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    *,
    parameters: Sequence[str] = ("inertia", "damping", "friction"),
    measured: Sequence[str] | None = None,
    weighted: bool = True,
    robust: bool = False,
    slow: float = model.STILL,
    prior: float = 1e-3,
    commanded: Sequence[str] | None = None,
    applied: ArrayLike | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
) -> Identification:
    """Identify inertias, friction, armature and springs from measured motions and joint forces.

    Joint forces are linear in all of them: τ = Y π + N v̇ + d v + f sign(v) + k (q − rest) + offset.
    Least squares find the combinations that joint forces depend on, the base parameters, with
    standard deviations; what is not identified keeps the value it has in `mech`. The mechanism of
    the result has inertias with a positive definite pseudo-inertia. Where the measurements leave a
    choice, it stays near `mech`.

    With "gain" among the parameters, `tau` has motor currents or commands u, τ = g u, and the
    gains g of motors with their gears are identified as well. A known force must fix their scale:
    inertias or springs that are not identified, `applied`, `forces`, or a hinge whose force is
    measured. Else only ratios are known, to the gain of one hinge in `references`.

    With loops and couplings, forces along the motions that they allow are compared, which have no
    part of the forces within loops. Hinges without a motor are measured, too: their force is zero.

    Args:
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv) [m/s or rad/s].
        vdot: Joint accelerations (samples, nv) [m/s² or rad/s²]; `lw.identification.smoothed` finds
            v and vdot of measured positions.
        tau: Measured joint forces (samples, nv) [N or N m]. A sample with a number that is not
            finite anywhere is a gap, and left out; columns of hinges that are not `measured` may
            have any numbers.
        parameters: What to identify: "inertia", "armature", "damping", "friction", "stiffness",
            "offset" of force sensors.
        measured: Names of the hinges whose forces were measured; default: all.
        weighted: Whether joints weigh by the noise of their forces, found from the residuals.
        robust: Whether outliers weigh less (Huber's function ψ); deviations are those of
            (A* ψ' A)⁻¹ A* ψ² A (A* ψ' A)⁻¹.
        slow: Speed [m/s or rad/s] up to which forces of a joint with friction are left out, since
            its direction is uncertain. More than the default after a filter, which blurs reversals.
        prior: How strongly θ̂ is pulled to the numbers of `mech`, in free coordinates: one standard
            deviation of the measurements is worth a change by 1/√prior.
        commanded: With "gain": names of the hinges for which `tau` has currents or commands u;
            default: the measured ones, but those for which it is zero.
        applied: Known joint forces that act besides the motors (samples, nv) [N or N m], such as
            the weight of a known load, -lw.inverse_dynamics(load_alone, q, v, vdot).
        forces: Measured forces from outside by node name, (moment, force) (samples, 6) each, such
            as those of a load cell at the hand.
        forces_frame: Their axes, "node" or "world".
        loops: "closed" holds loops and couplings; "open" takes the tree, whose joints move freely.

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: The motion does not show all base parameters; names those it does not show.
            A gain whose scale is hardly known.
        ClosureError: Measured motions break loops or couplings by more than noise does.
        ShapeError: Arrays that do not fit.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    held = is_closed(mech, loops)
    mech, tree = mech if held else tree_of(mech), tree_of(mech)
    kinds, gained = model.checked_kinds(parameters)
    weighted, robust = flag(weighted, "weighted"), flag(robust, "robust")
    pull, least = number(prior, "prior", above=0.0), number(slow, "slow", least=0.0)
    load = known_forces(tree, q, applied, forces, forces_frame)
    at = moved_places(tree, measured, "measured")
    arrays, good = complete_samples(tree, q, v, vdot, tau, load, places=at)
    *state, force, load = arrays
    others = [i for i in range(tree.nv) if i not in at]
    force[:, others] = load[:, others] = 0.0  # any numbers
    driven = [i for i in at if force[:, i].any()]
    rows = Rows.of(mech, state, at, driven) if held else Rows(tree, at)
    state, places = rows.state or state, rows.places
    columns, k = rows.equations(kinds, state, load)
    base, drawn = base_and_equations(kinds, rows)
    known = rows.known(kinds, state[1], least)
    mixed = rows.mixed([i for i in driven if i not in places])
    if mixed is not None:
        known = known * known.min(axis=1)[:, None]
    gains = _gains(tree, rows, gained, commanded, driven, base, drawn, load)
    y = rows.along(force)
    y[:, gains.rows] = force[:, [places[i] for i in gains.rows]]
    if mixed is not None and (robust or gains.rows):
        what = "robust=True" if robust else "gains"
        raise ModelError(
            f"{mech.name!r} has more driven hinges than degrees of freedom: their noise is mixed. "
            f"{what} cannot be had from such measurements; leave it out."
        )
    share = np.ones(len(places))
    share[gains.rows] = 1.0 / gains.nominal
    free = [gains.rows[i] for i in gains.free]
    each = [*base.names, *(gains.names[i] for i in gains.free)]
    eq = Equations(columns[..., base.columns], k, y, known, each, free, share, mixed)
    fit = least_squares(eq, weighted, robust, good)
    factors = gains.scales(fit.estimate, base.matrix @ model.nominal(tree, kinds), eq.W)
    fit, sizes = fit.scaled(factors), gains.sizes * factors
    for i in gains.reference:
        share[gains.rows[i]] /= factors[gains.unit.index(i)]
    eq = replace(eq, share=share)
    values, motors = possible(tree, kinds, base, fit, pull)
    used = np.concatenate([base.matrix @ values, motors])
    gain, share = np.ones(tree.nv), 1.0 / share
    share[free] = motors
    gain[[places[i] for i in gains.rows]] = share[gains.rows]
    x = fit.estimate.copy()
    x[len(base.names) :] = 1.0 / x[len(base.names) :]
    miss = eq.linear(x)[1]
    noise = noise_of(miss, known, 1.0, robust) * np.abs(share)
    force = y - miss if robust else y  # outliers are no part of the force
    spread = np.maximum(np.std(force * share, axis=0), 1e-300)
    named = dict(zip(model.column_names(tree, kinds), values.tolist(), strict=True))
    named |= dict(zip(gains.names, share[gains.rows].tolist(), strict=True))
    joints = tuple(tree.velocity_names[i] for i in places)
    check_explained(mech, joints, noise, spread)
    if not gains.rows:
        if "inertia" in kinds:
            check_size(mech, joints, k + columns @ model.nominal(tree, kinds), y)
        check_possible(mech, joints, eq.W @ (used - fit.estimate), spread)
    return Identification(
        with_gains(model.with_numbers(mech, kinds, values), places, gains, share),
        tuple(gains.in_units(each)),
        fit.estimate / sizes,
        fit.deviation / np.abs(sizes),
        used / sizes,
        distance(base, fit, values, motors),
        named,
        fit.condition,
        noise,
        noise / spread,
        joints,
        len(y),
        int(len(good) - good.sum()),
        fit.outliers,
        np.array([named.get(f"offset({name})", 0.0) for name in joints]),
        fit.memory,
        tuple(joints[gains.rows[i]] for i in gains.reference),
        tuple(at),
        gain,
        base.matrix,
    )


def _gains(
    mech: Mechanism,
    rows: Rows,
    gained: bool,
    commanded: Sequence[str] | None,
    driven: list[int],
    base: BaseParameters,
    drawn: tuple[Array, Array],
    load: Array,
) -> Gains:
    """The gains that are identified, and what is known of their scale."""
    if not gained:
        if commanded is not None:
            raise ModelError("commanded is for gains; add 'gain' to the parameters.")
        return Gains([], [], np.zeros(0), [], [-1] * len(base.names))
    places = driven if commanded is None else moved_places(mech, commanded, "commanded")
    for i in places:
        if i not in rows.places or i not in driven:
            why = "zero throughout" if i not in driven else "not measured by itself"
            raise ModelError(
                f"the gain of {mech.velocity_names[i]!r} was requested, but its current is {why}. "
                f"Gains can be found of {', '.join(mech.velocity_names[j] for j in driven)}."
            )
    some = [rows.places.index(i) for i in places]
    names = [f"gain({mech.velocity_names[i]})" for i in places]
    nominal = np.array([nominal_gain(mech, i) for i in places])
    W, k = drawn
    outside = np.abs(rows.along(load)).max(axis=0) > 0.0
    k = k + outside * np.random.default_rng(2).standard_normal(k.shape) * np.abs(W).max(initial=1.0)
    return gains_of(W[..., base.columns], k, some, names, nominal)
