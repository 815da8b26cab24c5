"""Motions of mechanisms with loops whose numbers are given, step by step; and their gradients.

Numbers p of a mechanism change what balances joint forces, τ + passive(p) = 𝓜(p) v̇ + C(p) − J_c* λ,
and the measure of a projection, 𝓜(p) d = J_c* μ. With weights y of a force in either, gradients are

    (∂(passive − 𝓜 v̇ − C)/∂p)* y        −(∂(𝓜 d)/∂p)* y
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import mass, vdot as x_dot
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.parameters import size
from linkwise.codegen.sensitivity import pulled
from linkwise.dynamics.closure_rank import accelerated
from linkwise.dynamics.derivative_formula import INVERSE
from linkwise.dynamics.kernels import written
from linkwise.dynamics.mass_matrix import mass_matrix_inverse
from linkwise.dynamics.passive import carried_numbers
from linkwise.loops.projection import MassInverse
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.simulation.integrators.command import nodes, parted
from linkwise.simulation.motion_parameters import ACTING
from linkwise.simulation.transition import acting
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True)
class GivenNumbers:
    """The dynamics of a mechanism with loops, of numbers that are given.

    Attributes:
        mech: The mechanism.
        names: Of the numbers.
        passive: Whether dampers and springs act.
    """

    mech: Mechanism
    names: tuple[str, ...]
    passive: bool

    def acceleration(self, q: Array, v: Array, tau: Array, now: Mapping[str, Array]) -> Array:
        """v̇ with loops and couplings held, and with passive forces."""
        if acting(self.mech, self.passive, self.names) is not None:
            kernel = written(self.mech, _force_of(self.names))
            tau = tau + kernel(**_taken(kernel, {**now, "q": q, "v": v}))
        named = of_bodies(self.names)
        arrays = {"q": q, "v": v, "tau": tau} | {name: now[name] for name in named}
        return accelerated(self.mech, arrays, parameters=named)

    def inverse(self, now: Mapping[str, Array]) -> MassInverse:
        """𝓜⁻¹ as a function of q."""
        names = of_mass(self.names)
        if not names:
            return lambda q: mass_matrix_inverse(self.mech, q)
        kernel = _inverse(self.mech, names)
        return lambda q: kernel(**_taken(kernel, {**now, "q": q}))


def of_bodies(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the mechanism itself; others belong to what acts on it."""
    return tuple(name for name in names if name not in ACTING)


def of_mass(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that 𝓜 depends on."""
    return tuple(name for name in of_bodies(names) if name != "gravity")


@once_per_mechanism
def _inverse(mech: Mechanism, names: tuple[str, ...]) -> Any:
    return compile(mass.inv, mech, parameters=names)


def _taken(kernel: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those arrays that a kernel takes."""
    return {name: given[name] for name in kernel.arguments}


@cache
def _force_of(names: tuple[str, ...]) -> Formula:
    return Formula(_force, (names,))


def _force(at: Writing, names: tuple[str, ...]) -> Any:
    """Passive forces (nv,)."""
    forces, zero = acting(at.mech, True, names), np.full(at.mech.nv, 0.0, dtype=object)
    assert forces is not None
    return forces.added(at, zero, at.q, at.v, carried_numbers(at, at.mech, names))


# -------------------------------------------------------------------------------------- gradients


def gradients(
    mech: Mechanism,
    names: tuple[str, ...],
    passive: bool,
    of_step: Mapping[str, Array],
    weights: Array,
    held: Mapping[str, Array],
) -> dict[str, Array]:
    """Gradients by numbers that act in some steps (steps, n), from the weights of their forces.

    Args:
        of_step: "q", "v" and "vdot" of what the forces balance (steps, k, n): each call of the
            integrator, then the projections of q and of v.
        weights: Those of the forces (steps, k, nv).
        held: The numbers (steps, n).
    """
    steps, k = weights.shape[:2]
    out = dict[str, Array]()
    for part, chosen in ((slice(0, k - 2), names), (slice(k - 2, k), of_mass(names))):
        if not chosen:
            continue
        kernel = written(mech, _back(chosen, passive, part.start > 0))
        count = len(range(k)[part])
        given = {name: np.repeat(x, count, axis=0) for name, x in held.items()}
        for name, x in (*of_step.items(), ("weight", weights)):
            given[name] = np.ascontiguousarray(x[:, part]).reshape(steps * count, -1)
        each = kernel(**_taken(kernel, given))
        for name in chosen:
            added = each[name].reshape(steps, count, -1).sum(axis=1)
            out[name] = out[name] + added if name in out else added
    return out


@cache
def _back(names: tuple[str, ...], passive: bool, projected: bool) -> Formula:
    return Formula(_written_back, (names, passive, projected), names=names)


def _written_back(at: Writing, names: tuple[str, ...], passive: bool, projected: bool) -> Any:
    """(∂r/∂p)* weight for each p: r = passive − 𝓜 v̇ − C, or −𝓜 d of a projection."""
    mech = at.mech
    expr = mass @ x_dot if projected else INVERSE
    named = at.parameters_of(expr, among=of_bodies(names))
    r = -at.value(expr, parameters=named)
    numbers = {name: at.reads[name] for name in named}
    forces = None if projected else acting(mech, passive, names)
    if forces is not None:
        of_forces = carried_numbers(at, mech, names)
        r = forces.added(at, r, at.q, at.v, of_forces)
        numbers |= of_forces
    weight = at.read("weight", mech.nv)
    wrt = list(numbers.values())
    outputs = [at.scalar(x).node for x in r]
    by = parted(at, pulled(at.graph, outputs, nodes(weight), nodes(*wrt)), wrt)
    parts = dict(zip(numbers, by, strict=True))
    at.checks.clear()  # forward dynamics had the same
    return tuple(
        parts.get(name, np.zeros(mech.nv if name in ACTING else size(mech, name))) for name in names
    )
