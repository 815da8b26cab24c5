"""The mechanism taken as one rigid body: its mass, its centre of mass, its inertia."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Status, check_mechanism, roots, written
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True, eq=False)
class WholeInertia:
    """Inertia of all bodies frozen together, in world axes; batches have (batch,) in front.

    Attributes:
        mass: Of all bodies [kg].
        com: Centre of mass in the world (3,) [m].
        about_world: Spatial inertia about the origin of the world (6, 6).
    """

    mass: float
    com: Array
    about_world: Array

    @property
    def about_com(self) -> Array:
        """Centroidal inertia (6, 6): diag(J, m), J about the centre of mass."""
        c = skew(self.com)
        out = np.zeros(self.about_world.shape)
        out[..., :3, :3] = self.about_world[..., :3, :3] + self.mass * (c @ c)
        out[..., 3:, 3:] = self.mass * np.eye(3)
        return out


def whole_inertia(
    mech: Mechanism,
    q: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> WholeInertia:
    """Mass, centre of mass and inertia of the whole mechanism, as if it were one rigid body.

    Expression:
        to_W⁻* R to_W⁻¹ at the bodies on the ground, summed over them: composite inertias referred
        to the origin of the world,   `to_W.inv.T @ R @ to_W.inv`

    Args:
        mech: The mechanism; of several trees all are counted. Armature is no part of it.

    Raises:
        ModelError: There is no mass, hence no centre of it.
    """
    found = written(mech, WHOLE)
    parts = found(q) if status is threads is None else found(q, status=status, threads=threads)
    return WholeInertia(mech.total_mass, **parts)


def check_mass(mech: Mechanism) -> float:
    """The mass of all bodies [kg]; raises where there is none."""
    check_mechanism(mech)
    mass = float(mech.total_mass)
    if not mass > 0.0:
        raise ModelError(f"{mech.name} has no mass: it has no centre of mass.")
    return mass


def about_world(at: Writing) -> Any:
    """The spatial inertia of all bodies about the origin of the world (6, 6), as a formula."""
    return at.value(expression("inertia_in_world"), rows=roots(at.mech), blocks=True).sum(axis=0)


def center(at: Writing) -> Any:
    """The centre of mass (3,), as a formula: the inertia about the world has m c~ in it."""
    whole = about_world(at)
    return np.array([whole[2, 4], whole[0, 5], whole[1, 3]]) / check_mass(at.mech)


def _whole(at: Writing) -> Any:
    return center(at), about_world(at)


WHOLE = Formula(_whole, (), ("com", "about_world"))


def centroidal_inertia(
    mech: Mechanism,
    q: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Inertia of the whole mechanism about its centre of mass, in world axes: diag(J, m).

    Arguments are those of `whole_inertia`.

    Returns:
        (6, 6) or (batch, 6, 6) [kg m², kg].
    """
    found = written(mech, CENTROIDAL)
    if status is threads is None:
        return found(q)
    return found(q, status=status, threads=threads)


def _centroidal(at: Writing) -> Any:
    mass, whole, c = check_mass(at.mech), about_world(at), skew(center(at))
    J = whole[:3, :3] + mass * (c @ c)
    return blocks(J, np.zeros((3, 3)), np.zeros((3, 3)), mass * np.eye(3))


CENTROIDAL = Formula(_centroidal)
