"""The mechanism as one body: mass, centre of mass, inertia and momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np

from linkwise.arguments import option
from linkwise.bare_call import begins_bare
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import (
    BatchOptions,
    Options,
    begun,
    check_mechanism,
    root_rows,
    written,
)
from linkwise.dynamics.quantity import expression
from linkwise.errors import ExpressionError, ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise.sweeps.embedded_expression import velocity_bias, velocity_map

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

CenterOfMass: TypeAlias = Literal["position", "velocity", "jacobian", "bias"]
Momentum: TypeAlias = Literal["momentum", "matrix", "bias"]
About: TypeAlias = Literal["com", "world"] | ArrayLike
"""The centre of mass, the origin of the world, or a point in it (3,) or (batch, 3) [m]."""


@brief
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


def whole_inertia(mech: Mechanism, q: ArrayLike, **options: Unpack[BatchOptions]) -> WholeInertia:
    """Mass, centre of mass and inertia of the whole mechanism, as if it were one rigid body.

    Expression:
        to_W⁻* R to_W⁻¹ at the bodies on the ground, summed over them: composite inertias referred
        to the origin of the world,   `to_W.inv.T @ R @ to_W.inv`

    Args:
        mech: The mechanism; all of its trees count. Armature is not included.

    Raises:
        ModelError: There is no mass, hence no centre of it.
    """
    return WholeInertia(mech.total_mass, **written(mech, WHOLE)(q, **options))


@begins_bare()
def centroidal_inertia(mech: Mechanism, q: ArrayLike, **options: Unpack[BatchOptions]) -> Array:
    """Inertia of the whole mechanism about its centre of mass, in world axes: diag(J, m).

    Returns:
        (6, 6) or (batch, 6, 6) [kg m², kg].
    """
    return begun(mech, "centroidal_inertia", (), written(mech, CENTROIDAL))(q, **options)


@begins_bare("what")
def center_of_mass(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    what: CenterOfMass = "position",
    **options: Unpack[BatchOptions],
) -> Array:
    """Centre of mass of the whole mechanism in the world, or its velocity, Jacobian or bias.

    The position is the potential energy in a unit field of gravity along each axis, divided by the
    mass: `weight.T @ X`. The others are the linear part of `momentum` divided by the mass.

    Args:
        mech: The mechanism, free or on the ground; all of its trees count.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s]; only for the velocity and the bias.
        what: "position", "velocity", "jacobian" J, or "bias": the acceleration at v̇ = 0, so that
            the acceleration is J v̇ plus the bias.

    Returns:
        (3,) or (batch, 3) [m, m/s, m/s²]; the Jacobian (3, nv) or (batch, 3, nv).

    Raises:
        ModelError: There is no mass; or v is missing, or given where it does not matter.
    """
    option(what, CENTERS, "quantity of the centre of mass")
    arrays = _state("center_of_mass", what, q, v)
    return begun(mech, "center_of_mass", what, written(mech, CENTERS[what]))(*arrays, **options)


@begins_bare("what", "about")
def momentum(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    what: Momentum = "momentum",
    about: About = "com",
    **options: Unpack[Options],
) -> Array:
    """Momentum of the whole mechanism, its matrix A, or Ȧ v: (angular about a point, linear).

    Expression, in the rows of the bodies on the ground, summed over them, in world axes:
        momentum   to_W⁻* φ M V,   `to_W.inv.T @ phi @ M @ V`
        matrix A   to_W⁻* φ M φ* H* = to_W⁻* φ R H*,   `to_W.inv.T @ phi @ R @ H.T`
        bias Ȧ v   to_W⁻* φ (M φ* (a − a_g) + b),
                   `to_W.inv.T @ phi @ (M @ phi.T @ (a - a_g) + b)`
    each O(n). They are about the origin of the world; about c they are (k − c × p, p).

    The rate of momentum is A v̇ + Ȧ v; it equals the external forces, gravity and the ground
    included, about the same point. (About the centre of mass ċ × p vanishes, so the motion of that
    point adds nothing.) Only the bodies count: rotors behind gears (armature) resist in 𝓜, but
    their spin is not included.

    Args:
        mech: The mechanism, free or on the ground; all of its trees count.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s]; not for the matrix.
        what: "momentum"; "matrix" A with momentum = A v, about the centre of mass the centroidal
            momentum matrix; or "bias" Ȧ v, the rate of momentum while no joint velocity changes.
        about: "com", "world" or a fixed point in the world (3,) or (batch, 3) [m].

    Returns:
        (6,) or (batch, 6) [kg m²/s, kg m/s], the bias in [N m, N]; the matrix (6, nv) or
        (batch, 6, nv).

    Raises:
        ModelError: `about` is "com" and there is no mass; or v is missing, or given with "matrix".
    """
    option(what, MOMENTA, "quantity of momentum")
    arrays = _state("momentum", what, q, v)
    if not isinstance(about, str):
        return written(mech, FORMULAS[what, "point"])(*arrays, about, **options)
    if about not in ("com", "world"):
        raise ModelError(f"about is {about!r}; it must be 'com', 'world' or a point (3,).")
    kernel = written(mech, FORMULAS[what, about])
    return begun(mech, "momentum", (what, about), kernel)(*arrays, **options)


def _state(name: str, what: str, q: ArrayLike, v: ArrayLike | None) -> tuple[ArrayLike, ...]:
    """q, and v if this quantity depends on it."""
    moves = what not in ("position", "jacobian", "matrix")
    if moves != (v is not None):
        say = "needs v, the joint velocities" if moves else "does not depend on v; leave it out"
        raise ModelError(f"lw.{name} with what={what!r} {say}.")
    return (q,) if v is None else (q, v)


# ------------------------------------------------------------------------------------- formulas


def check_mass(mech: Mechanism) -> float:
    """The mass of all bodies [kg]; raises where there is none."""
    check_mechanism(mech)
    mass = float(mech.total_mass)
    if not mass > 0.0:
        raise ModelError(f"{mech.name} has no mass: it has no centre of mass.")
    return mass


def about_world(at: Writing, mech: Mechanism | None = None, **given: Any) -> Any:
    """The spatial inertia of all bodies about the origin of the world (6, 6)."""
    known: Mechanism = at.mech if mech is None else mech
    roots = [body.name for k, body in enumerate(known.bodies) if known.parent[k] < 0]
    inertia = expression("inertia_in_world")
    total = at.value(inertia, rows=roots, blocks=True, mech=mech, **given).sum(axis=0)
    parts = range(0, len(total), 6)  # of flexible bodies, of which the first is the frame
    return sum(total[i : i + 6, i : i + 6] for i in parts)


def center(at: Writing) -> Any:
    """The centre of mass (3,): the potential energy in a field of unit gravity along each axis."""
    mass, energy = check_mass(at.mech), expression("potential_energy")
    try:
        each = [at.value(energy, parameters=["gravity"], gravity=-axis) for axis in np.eye(3)]
    except ExpressionError:  # it rests at the origin: gravity makes no difference
        return _within(about_world(at), mass)
    return np.concatenate(each) / mass


def center_with_slope(
    at: Writing, *, jacobian: bool = False, mech: Mechanism | None = None, **given: Any
) -> tuple[Any, Any]:
    """The centre of mass (3,) and its Jacobian (3, nv) or None, of masses that may be inputs.

    Args:
        at: The formula.
        jacobian: Whether the Jacobian is needed.
        mech: The mechanism with the masses, if it is not that of the formula.
        given: Values in place of inputs.
    """
    matrix, masses = expression("momentum_matrix"), ()
    if mech is None:
        masses = at.parameters_of(expression("inertia_in_world"))
    total = about_world(at, mech, parameters=masses, **given)
    known: Mechanism = at.mech if mech is None else mech
    mass = total[3, 3] if masses else check_mass(known)
    if not jacobian:
        return _within(total, mass), None
    inputs = at.parameters_of(matrix) if masses else ()
    rows = at.value(matrix, rows=root_rows(known), parameters=inputs, mech=mech, **given)
    return _within(total, mass), rows.reshape(-1, 6, rows.shape[-1]).sum(axis=0)[3:] / mass


def _within(inertia: Any, mass: float) -> Any:
    """The centre of mass (3,) in the inertia about the world, which contains m c~."""
    return np.array([inertia[2, 4], inertia[0, 5], inertia[1, 3]]) / mass


def _as_one_body(at: Writing) -> Any:
    mass, inertia = check_mass(at.mech), about_world(at)
    return _within(inertia, mass), inertia


def _centroidal(at: Writing) -> Any:
    mass, inertia = check_mass(at.mech), about_world(at)
    c = skew(_within(inertia, mass))
    J = inertia[:3, :3] + mass * (c @ c)
    return blocks(J, np.zeros((3, 3)), np.zeros((3, 3)), mass * np.eye(3))


def at_roots(at: Writing, name: str, about: str, **given: Any) -> Any:
    """A momentum about a point, summed over the bodies on the ground, of given q and v."""
    if not at.mech.n_bodies:
        raise ModelError(f"{at.mech.name} has no bodies: it has no momentum.")
    total = (
        _total_of_tree(at, name, given)
        if isinstance(at.mech, Embedded)
        else _total(at, name, at.mech, given)
    )
    if about == "world":
        return total
    from linkwise.sweeps.structured_block import columns_crossed

    c = center(at) if about == "com" else at.read("about", 3)
    return np.concatenate([total[:3] - columns_crossed(c, total[3:]), total[3:]])


def _total(at: Writing, name: str, mech: Mechanism, given: dict[str, Any]) -> Any:
    rows = at.value(expression(name), rows=root_rows(mech), mech=mech, **given)
    return rows.reshape(len(rows) // 6, 6, *rows.shape[1:]).sum(axis=0)


def _total_of_tree(at: Writing, name: str, given: dict[str, Any]) -> Any:
    """The same where loops are built in, of all velocities 𝒳 u of the bodies as a tree."""
    tree, order = at.mech.mech, at.mech.order
    q = given.get("q", at.q)
    X = np.full((tree.nv, at.mech.nv), 0.0, dtype=object)
    X[order] = at.value(velocity_map, q=q)
    if name == "momentum_matrix":
        return _total(at, name, tree, {"q": q}) @ X
    u = given.get("v", at.v)
    total = _total(at, name, tree, {"q": q, "v": X @ u})
    if name == "momentum":
        return total
    still = np.full(tree.nv, 0.0, dtype=object)  # 𝔵: accelerations at u̇ = 0
    still[order] = at.value(velocity_bias, q=q, v=u)
    return total + _total(at, "momentum_matrix", tree, {"q": q}) @ still


def linear(at: Writing, name: str, **given: Any) -> Any:
    """The linear part of a momentum over the mass."""
    return at_roots(at, name, "world", **given)[3:] / check_mass(at.mech)


WHOLE, CENTROIDAL = Formula(_as_one_body, (), ("com", "about_world")), Formula(_centroidal)
MOMENTA = {"momentum": "momentum", "matrix": "momentum_matrix", "bias": "momentum_bias"}
"""Expressions of the quantities of `momentum`."""

CENTERS = {
    "position": Formula(center),
    "velocity": Formula(linear, ("momentum",)),
    "jacobian": Formula(linear, ("momentum_matrix",)),
    "bias": Formula(linear, ("momentum_bias",)),
}
FORMULAS = {
    (what, about): Formula(at_roots, (name, about))
    for what, name in MOMENTA.items()
    for about in ("com", "world", "point")
}
