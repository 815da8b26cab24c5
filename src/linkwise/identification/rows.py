"""The equations at each sample: forces of measured hinges, or along motions that loops allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.regressor import BaseParameters, independent
from linkwise.identification import closed, model
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

SMALL = 1e-10
"""What is left of a column that depends on others, relative to its length."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Which equations there are at each sample: forces of measured hinges, or along motions.

    Attributes:
        mech: The mechanism.
        places: Places in v of the hinges of the rows.
        measured: Places of all measured hinges, with loops.
        state: q, v and v̇ that obey loops, or None.
        motions: What loops allow, or None.
    """

    mech: Mechanism
    places: list[int]
    measured: list[int] = field(default_factory=list[int])
    state: Sequence[Array] | None = None
    motions: closed.Motions | None = None

    @classmethod
    def of(cls, mech: Mechanism, given: Sequence[Array], at: list[int], driven: list[int]) -> Rows:
        """The equations of a mechanism with loops."""
        state = closed.obeying(mech, *given)
        still = [i for i in range(mech.nv) if i not in at]
        motions = closed.motions(mech, state[0], still, driven)
        return cls(mech, motions.places, at, state, motions)

    def along(self, forces: Array) -> Array:
        """Of joint forces (samples, nv, ...), those of the rows."""
        return forces[:, self.places] if self.motions is None else self.motions.along(forces)

    def equations(
        self, kinds: tuple[str, ...], state: Sequence[Array], load: Array
    ) -> tuple[Array, Array]:
        """The columns (samples, rows, columns), and known forces (samples, rows)."""
        tree = tree_of(self.mech)
        columns = model.design(tree, kinds, *state)
        return self.along(columns), self.along(model.fixed_forces(tree, kinds, *state) - load)

    def random(self, count: int) -> tuple[Rows, Sequence[Array]]:
        """Equations at random states."""
        rng, mech = np.random.default_rng(0), self.mech
        if self.state is None:
            q = np.stack([mech.random(rng) for _ in range(count)])
            return self, (q, *(2.0 * rng.standard_normal((2, count, mech.nv))))
        state = closed.random_states(mech, self.state[0], count, rng)
        still = [i for i in range(mech.nv) if i not in self.measured]
        motions = closed.motions(mech, state[0], still, [], self.places)
        return Rows(mech, self.places, self.measured, state, motions), state

    def known(self, kinds: tuple[str, ...], v: Array, slow: float) -> Array:
        """1 where an equation counts, else 0: where the direction of friction is known."""
        rubs = np.full(self.mech.nv, True) if "friction" in kinds else self.mech.friction > 0.0
        slips = (np.abs(v) <= slow) & rubs
        if self.motions is None:
            return np.where(slips[:, self.places], 0.0, 1.0)
        moves = np.abs(self.motions.maps) > 1e-9
        certain = ~(moves & slips[:, :, None]).any(axis=1) & self.motions.clear[:, None]
        return np.where(certain, 1.0, 0.0)

    def mixed(self, others: list[int]) -> Array | None:
        """X of hinges with noise, where hinges that are not among the rows have forces."""
        if self.motions is None or not others:
            return None
        return self.motions.maps[:, [*self.places, *others]]


def base_of(mech: Mechanism, kinds: tuple[str, ...], places: list[int]) -> BaseParameters:
    """What these joint forces depend on, from random states."""
    return base_and_equations(kinds, Rows(mech, places))[0]


def base_and_equations(
    kinds: tuple[str, ...], rows: Rows
) -> tuple[BaseParameters, tuple[Array, Array]]:
    """What the equations depend on; and the equations at random states, W and k."""
    names = model.column_names(rows.mech, kinds)
    drawn, state = rows.random(8 + 4 * len(names) // len(rows.places))
    W, k = drawn.equations(kinds, state, np.zeros((len(state[0]), rows.mech.nv)))
    return independent(W.reshape(len(W) * len(rows.places), len(names)), names, SMALL), (W, k)
