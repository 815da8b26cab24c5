"""Regressors: quantities that are linear in the inertial parameters of the bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.differential import differentiate
from linkwise.algebra.symbols import (
    M,
    V,
    X,
    bias,
    mass,
    phi,
    to_W,
    v as speed,
    vdot as acceleration,
)
from linkwise.arguments import generator, number
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import parameters
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.kernels import (
    HELD,
    Loops,
    Options,
    check_mechanism,
    is_closed,
    no_call,
    one_call,
    require_rigid,
    root_rows,
    tree_of,
    written,
)
from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Regressed: TypeAlias = Literal["torque", "energy", "momentum"]

PARAMETERS = ("m", "mcx", "mcy", "mcz", "Jxx", "Jyy", "Jzz", "Jxy", "Jxz", "Jyz")
"""The ten numbers of a body: mass, first moment, and tensor about its origin, in its axes."""


@begins_bare()
def regressor(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike | None = None,
    *,
    of: Regressed = "torque",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """Y(q, v, v̇) with τ = Y π + N v̇, for the inertial parameters π of all bodies.

    Expression:
        `lw.differentiate(mass @ vdot + bias, "inertia")`:   H φ (Y[α] − [V ×]* Y[V])
        where Y[x] π = M x at each body, one pass. For the energy it is ½ v* H φ Y[V] and the
        weight of the bodies, for the momentum to_W⁻* φ Y[V] of the bodies on the ground.

    π has ten numbers for each body, in the order of `mech.bodies`: m, m c (3), Jxx Jyy Jzz Jxy Jxz
    Jyz about the body's origin, in its axes (`lw.dynamics.inertial_parameters`). Armature is not
    part of it. With loops or couplings, Y π are the joint forces with which these carry no load, as
    in `lw.inverse_dynamics`; accelerations that break a loop or coupling raise. Energy and momentum
    are those of the bodies, whether loops are held or not.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²]; for the torque only.
        of: "torque", the joint forces (nv rows); "energy", kinetic and potential (1 row);
            "momentum", (angular, linear) about the origin of the world, in its axes (6 rows).

    Returns:
        (rows, 10 n) or (batch, rows, 10 n).

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its rows are NaN
            instead, reported by a warning or by `status`.
    """
    _check_kind(of)
    if of == "torque" and vdot is not None and loops is HELD and not options:  # most calls
        bare = _one_state(mech)
        keep_bare_call(mech, "regressor", (), bare)
        if (quick := bare(q, v, vdot)) is not None:
            return quick
    if (vdot is not None) != (of == "torque"):
        given = "is given" if vdot is not None else "is missing"
        raise ModelError(f"vdot {given}; the regressor of the torque takes it, no other does.")
    _require_rigid_tree(mech)

    formula = FORMULAS[of]

    def of_tree(**some: Any) -> Array:
        kernel = written(tree_of(mech), formula)
        return kernel(q, v, **some) if vdot is None else kernel(q, v, vdot, **some)

    if is_closed(mech, loops) and vdot is not None:
        return obeyed(mech, q, v, vdot, of_tree, options)
    return of_tree(**options)


def _check_kind(of: object) -> None:
    if type(of) is not str or of not in FORMULAS:
        raise ModelError(f"of is {of!r}; it must be 'torque', 'energy' or 'momentum'.")


def _require_rigid_tree(mech: Mechanism) -> None:
    """Refuse flexible bodies, and mechanisms whose loops are built in."""
    check_mechanism(mech)
    require_rigid(mech, "lw.regressor")
    if isinstance(cast(object, mech), Embedded):
        raise ModelError(
            f"lw.regressor was called for {mech.name!r} with its loops and couplings built in; its "
            "rows are those of all hinges. Use the mechanism itself, embedded.mech, with v and "
            "vdot from lw.loops.full_velocity and lw.loops.full_acceleration."
        )


@once_per_mechanism
def _one_state(mech: Mechanism) -> Callable[..., Any]:
    """The bare call of the regressor of the torque for one state."""
    _require_rigid_tree(mech)
    return no_call if is_closed(mech) else one_call(mech, FORMULAS["torque"])


def inertial_parameters(mech: Mechanism) -> Array:
    """π (10 n,): the inertial parameters of all bodies, as `regressor` takes them."""
    require_rigid(mech, "inertial_parameters")
    return parameters.nominal(mech, "inertia")


@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """The combinations of inertial parameters that a quantity depends on: π_b = K π.

    Attributes:
        matrix: K (count, 10 n).
        columns: The columns (count,) of Y that remain: Y π = Y[:, columns] π_b.
        names: Each combination in words.
    """

    matrix: Array
    columns: NDArray[np.int64]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self.names)} of {self.matrix.shape[1]}>"


def base_parameters(
    mech: Mechanism,
    *,
    of: Regressed = "torque",
    seed: int | np.random.Generator | None = 0,
    tolerance: float = 1e-10,
) -> BaseParameters:
    """The combinations of inertial parameters that joint forces, energy or momentum depend on.

    Some parameters have no influence on them, others only in sums with those of other bodies. With
    the regressors of many random states stacked, a factorisation with column pivoting finds columns
    that are independent; all others are combinations of them.

    Args:
        of: "torque", "energy" or "momentum", as in `lw.regressor`. Joint forces and momentum do not
            have the same ones: a body that turns about a fixed axis has angular momentum across it
            by its products of inertia, which no joint force shows. In energy also what is the same
            at all states counts, such as the mass of a body at a fixed height.
        tolerance: What may be left of a column that depends on others, relative to its length.
    """
    small = number(tolerance, "tolerance", least=0.0)
    _check_kind(of)
    rng, tree = generator(seed), tree_of(mech)
    width = 10 * tree.n_bodies
    if not width:
        raise ModelError(f"{mech.name!r} has no bodies, and so no inertial parameters.")
    count = 4 + 3 * width // max({"torque": tree.nv, "energy": 1, "momentum": 6}[of], 1)
    q = np.stack([tree.random(rng) for _ in range(count)])
    v, vdot = rng.standard_normal((2, count, tree.nv))
    W = regressor(tree, q, v, vdot if of == "torque" else None, of=of).reshape(-1, width)
    names = [f"{p}({body.name})" for body in tree.bodies for p in PARAMETERS]
    return independent(W, names, small)


def independent(W: Array, names: list[str], small: float) -> BaseParameters:
    """The independent columns of a matrix, and every column by them."""
    lengths = np.linalg.norm(W, axis=0)
    rest = W / np.where(lengths > small * lengths.max(initial=0.0), lengths, np.inf)
    columns = list[int]()
    while (left := np.linalg.norm(rest, axis=0)).max(initial=0.0) > small:
        j = int(np.argmax(left > 0.999 * left.max()))  # the first of those that are equally good
        columns.append(j)
        direction = rest[:, j] / left[j]
        rest = rest - np.outer(direction, direction @ rest)
    columns.sort()
    K = np.asarray(np.linalg.lstsq(W[:, columns], W, rcond=None)[0], dtype=np.float64)
    K[np.abs(K) < small * np.abs(K).max(initial=0.0)] = 0.0
    return BaseParameters(
        K, np.array(columns, dtype=np.int64), tuple(_combination(row, names) for row in K)
    )


def _combination(row: Array, names: list[str]) -> str:
    text = ""
    for i in np.flatnonzero(row):
        size = "" if abs(abs(row[i]) - 1.0) < 1e-9 else f"{abs(row[i]):.4g} "
        sign = " - " if row[i] < 0.0 else " + "
        text += f"{sign}{size}{names[i]}"
    return text.removeprefix(" + ").lstrip()


# ------------------------------------------------------------------------------------- kernels


def _torque(at: Writing) -> Any:
    state = {"q": at.q, "v": at.v, "vdot": at.read("vdot", at.mech.nv)}
    rows = differentiate(mass @ acceleration + bias, "inertia")
    return at.value(rows.T, **state).T  # columns of H* travel outwards: six numbers, not sixty


def _energy(at: Writing) -> Any:
    state = {"q": at.q, "v": at.v}
    kinetic, places = at.value(differentiate(0.5 * (speed.T @ mass @ speed), "inertia"), X, **state)
    row = kinetic.reshape(1, -1)
    up = -np.asarray(at.mech.gravity)
    for k, place in enumerate(places.reshape(-1, 3, 4)):  # U = -g* (m p + rot m c)
        for i, column in enumerate((3, 0, 1, 2)):
            row[0, 10 * k + i] = row[0, 10 * k + i] + up @ place[:, column]
    return row


def _momentum(at: Writing) -> Any:
    rows = differentiate(to_W.inv.T @ phi @ M @ V, "inertia")
    parts = at.value(rows, rows=root_rows(at.mech), q=at.q, v=at.v)
    return sum(parts[6 * i : 6 * i + 6] for i in range(len(parts) // 6))


FORMULAS = {"torque": Formula(_torque), "energy": Formula(_energy), "momentum": Formula(_momentum)}
