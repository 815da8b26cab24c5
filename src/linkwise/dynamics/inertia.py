"""Inertias of what hangs on a body, rigid and articulated, and the factors of the mass matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.hinge_root import root_of
from linkwise.dynamics.kernels import Status, check_mechanism, named, written
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def composite_inertias(
    mech: Mechanism,
    q: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Inertia of each body with all it carries, as if no hinge beyond its own could move.

    Expression:
        R = E_φ R E_φ* + M, the diagonal blocks of φ M φ*,   `R`
    Source: 004 Lemma 1.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        (n_bodies, 6, 6) or (batch, n_bodies, 6, 6), each about the origin of its body frame and in
        its axes, angular part first. Armature is no part of it.
    """
    return _called(mech, "composite_inertias", q, out=out, status=status, threads=threads)


def articulated_inertias(
    mech: Mechanism,
    q: ArrayLike,
    *,
    inboard: bool = False,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Inertia of each body with all it carries, its hinges giving way.

    Expression:
        P = E_φ P⁺ E_φ* + M,   P⁺ = P − P H* D⁻¹ H P,   D = H P H*,   `P`, `P_plus`
    with D = H P H* + N and the armature N of the mechanism.
    Source: 000 (4.1); 004 Lemma 3, where P is the covariance of the estimation error.

    Args:
        mech: The mechanism; loops and couplings are left open.
        inboard: P⁺ instead of P: as it is felt on the inboard side of the body's own hinge.

    Returns:
        (n_bodies, 6, 6) or (batch, n_bodies, 6, 6), each about the origin of its body frame and in
        its axes, angular part first.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    name = "articulated_inertias_inboard" if inboard else "articulated_inertias"
    return _called(mech, name, q, out=out, status=status, threads=threads)


def log_det_mass_matrix(
    mech: Mechanism,
    q: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Any:
    """Logarithm of the determinant of the mass matrix, a number or (batch,).

    Expression:
        Σ log det D(k),   since 𝓜 = (I + H φ K) D (I + H φ K)* and I + H φ K has the determinant 1;
    with the armature of the mechanism in 𝓜. One pass, O(n): there is no matrix.
    Source: 000 Lemma 4.1.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            entry is NaN instead, and a warning or `status` tells.
    """
    found = written(mech, DETERMINANTS)
    if status is threads is None:
        factors = found(q)
        if factors.ndim == 1:
            return sum(map(math.log, factors.tolist()), 0.0)
    else:
        factors = found(q, status=status, threads=threads)
    return np.log(factors).sum(axis=-1)[()]


def determinants(at: Writing) -> Any:
    """det D in factors of a dozen freedoms, so that no product over- or underflows."""
    pivots = [s[i, i] * s[i, i] for _, s in root_of(at).blocks for i in range(len(s))]
    return np.array([math.prod(pivots[i : i + 12]) for i in range(0, len(pivots), 12)])


DETERMINANTS = Formula(determinants)


@dataclass(frozen=True, eq=False)
class InnovationsFactors:
    """The factors of the mass matrix in one state or a batch, each computed when it is asked for.

    𝓜 = (I + H φ K) D (I + H φ K)* and 𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K), with
    D = H P H* + N and the armature N of the mechanism.

    Attributes:
        mech: The mechanism.
        q: The joint positions (nq,) or (batch, nq).
    """

    mech: Mechanism
    q: Array

    @cached_property
    def D(self) -> tuple[Array, ...]:
        """H P H* (+ N) of each body (..., nv_k, nv_k), the inertia that its hinge feels."""
        blocks = _called(self.mech, "hinge_inertia", self.q)
        return tuple(
            blocks[..., k, : b.hinge.nv, : b.hinge.nv] for k, b in enumerate(self.mech.bodies)
        )

    @cached_property
    def G(self) -> tuple[Array, ...]:
        """P H* D⁻¹ of each body (..., 6, nv_k), the Kalman gain."""
        return self._columns("kalman_gain")

    @cached_property
    def K(self) -> tuple[Array, ...]:
        """φ(p, k) G(k) of each body (..., 6, nv_k), in the frame of its parent p.

        A body on the ground has one too; it is no part of the operator K.
        """
        return self._columns("shifted_gain")

    @cached_property
    def psi(self) -> Array:
        """ψ(p, k) = φ(p, k) (I − G(k) H(k)) of each body (..., n_bodies, 6, 6).

        It takes a force to the parent p, the hinge giving way.
        """
        return _called(self.mech, "articulated_shift", self.q)

    @cached_property
    def P(self) -> Array:
        """Articulated inertias (..., n_bodies, 6, 6)."""
        return articulated_inertias(self.mech, self.q)

    @cached_property
    def P_plus(self) -> Array:
        """The same on the inboard side of the hinges (..., n_bodies, 6, 6)."""
        return articulated_inertias(self.mech, self.q, inboard=True)

    @cached_property
    def coloring(self) -> Array:
        """I + H φ K (..., nv, nv), which makes forces of innovations.

        It is upper triangular by blocks, since bodies are stored base first.
        """
        return _called(self.mech, "coloring", self.q)

    @cached_property
    def whitening(self) -> Array:
        """I − H ψ K (..., nv, nv), the inverse of `coloring`, which makes innovations of forces."""
        return _called(self.mech, "whitening", self.q)

    @property
    def log_det(self) -> Any:
        """Σ log det D(k), the logarithm of the determinant of the mass matrix."""
        return log_det_mass_matrix(self.mech, self.q)

    def _columns(self, name: str) -> tuple[Array, ...]:
        blocks = _called(self.mech, name, self.q)
        return tuple(blocks[..., k, :, : b.hinge.nv] for k, b in enumerate(self.mech.bodies))


def innovations_factors(mech: Mechanism, q: ArrayLike) -> InnovationsFactors:
    """The factors of the mass matrix and of its inverse: D, G, K, ψ, I + H φ K and I − H ψ K.

    Source: 000 Lemmas 4.1 to 4.3; JPL 88-11 (4.4) to (4.16), with Φ L = φ K and Ψ L = ψ K.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        An object that computes each factor when it is asked for.

    Raises:
        ShapeError: q does not fit.
    """
    check_mechanism(mech)
    return InnovationsFactors(mech, np.array(mech.check_q(q)))


def _called(mech: Mechanism, name: str, q: ArrayLike, **options: Any) -> Array:
    found = named(mech, name)
    given = {key: value for key, value in options.items() if value is not None}
    return found(q, **given)


__all__ = [
    "InnovationsFactors",
    "articulated_inertias",
    "composite_inertias",
    "innovations_factors",
    "log_det_mass_matrix",
]
