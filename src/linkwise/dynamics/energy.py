"""Kinetic and potential energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from linkwise.arguments import numbers
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import BatchOptions, named, written
from linkwise.dynamics.quantity import expression
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call
from linkwise.spatial.array import ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True, eq=False)
class Energy:
    """Energies of one state, or of each state of a batch (batch,).

    Attributes:
        kinetic: Energy of motion [J].
        potential: Energy in the field of gravity, zero at the origin of the world [J].
    """

    kinetic: Any
    potential: Any

    @property
    def total(self) -> Any:
        """Kinetic plus potential energy [J]."""
        return self.kinetic + self.potential


@begins_bare()
def energy(
    mech: Mechanism | Embedded, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]
) -> Energy:
    """Kinetic and potential energy; springs of the hinges are not included.

    Expressions: those of `kinetic_energy` and `potential_energy`.
    """
    kernel = written(mech, BOTH)
    if (bare := kernel.quick) is not None:

        def one_state(q: ArrayLike, v: ArrayLike) -> Energy | None:
            both = bare(q, v)
            return None if both is None else Energy(*both.tolist())

        keep_bare_call(mech, "energy", (), one_state)
    both = kernel(q, v, **options)
    return Energy(*numbers(both)) if both.ndim == 1 else Energy(both[:, 0], both[:, 1])


def _both(at: Writing) -> Any:
    exprs = [expression(name) for name in ("kinetic_energy", "potential_energy")]
    return np.concatenate([at.value(x, parameters=at.parameters_of(x)) for x in exprs])


BOTH = Formula(_both)


@begins_bare()
def kinetic_energy(
    mech: Mechanism | Embedded, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]
) -> Any:
    """Energy of motion [J], a number or (batch,).

    Expression:
        ½ V* M V + ½ v* N v with V = φ* H* v,   `0.5 * (V.T @ M @ V) + 0.5 * (v.T @ N @ v)`
    with the armature N of the mechanism. It is ½ v* 𝓜 v, in one pass.
    """
    return _number(mech, "kinetic_energy", q, v, **options)


@begins_bare()
def potential_energy(
    mech: Mechanism | Embedded, q: ArrayLike, **options: Unpack[BatchOptions]
) -> Any:
    """Energy in the field of gravity [J], a number or (batch,): −g · Σ m_k c_k.

    Expression:
        weight* X,   `weight.T @ X`
    linear in the poses X of the bodies, with −g (h*, m) of each body as its weight. It is zero with
    all mass at the origin of the world.
    """
    return _number(mech, "potential_energy", q, **options)


def _number(mech: Mechanism | Embedded, name: str, *arrays: ArrayLike, **options: Any) -> Any:
    """The value of a quantity of one row, a number or (batch,)."""
    kernel = named(mech, name)
    if (bare := kernel.quick) is not None:

        def one_state(*arrays: ArrayLike) -> Any:
            rows = bare(*arrays)
            return None if rows is None else rows[0]

        keep_bare_call(mech, name, (), one_state)
    rows = kernel(*arrays, **options)
    return rows[0] if rows.ndim == 1 else rows[:, 0]
