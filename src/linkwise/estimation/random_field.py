"""The random-field model of a mechanism: inertia as covariance.

The process noise is white noise with the covariance of spatial inertia. A body of mass m, centre of
mass c and rotational inertia J_c about it has

    M = L L*,   L = [ J_c^½   √m c~ ]     W = L w,   w white
                [  0      √m 1  ]

A random force of variance m in every direction acts at the centre of mass, and a random moment of
covariance J_c. Without mass there is no force: M may be singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from linkwise import arguments
from linkwise.algebra import BODY
from linkwise.algebra.expr import Expr
from linkwise.algebra.family import Family
from linkwise.algebra.symbols import articulated, bare_tree
from linkwise.arguments import generator
from linkwise.brief import brief, counted
from linkwise.errors import ModelError, ShapeError
from linkwise.estimation.covariance import covariance
from linkwise.estimation.estimate import BatchEstimate, KalmanFilter, Smoother
from linkwise.estimation.evaluate import Evaluation
from linkwise.estimation.operator import MODEL, block, estimate, operator
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats, frozen
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Realisations of the random field, one per row.

    Attributes:
        W: Process noise at each body, (moment, force) (count, n, 6) [N m, N].
        X: State φ W: forces that hold each subtree, (count, n, 6).
        n: Measurement noise (count, nv); zero without noise.
        T: Measurement H X + n: joint forces (count, nv) [N or N m].
    """

    W: Array
    X: Array
    n: Array
    T: Array


class RandomField:
    """A mechanism in one configuration, seen as a linear system driven by white noise.

    Model:
        X = φ W,   T = H X + n,   E[W W*] = M,   E[n n*] = N
    Each body feels a random inertial force W whose covariance is its spatial inertia; φ gathers
    them, and joint forces T are what is measured. Then E[T T*] = H φ M φ* H* + N is the mass
    matrix, the best estimate of X from T is the force that acts in the mechanism, and the filter
    and smoother that find it are forward dynamics.
    Source: 004 (5.1)-(5.4), Lemma 2.
    Departs: measurement noise n, which the document has none of; trees instead of chains.

    All spatial vectors are about the frame of their body, in its axes, (angular, linear); bodies
    are ordered base first. Velocities do not enter: with velocities, give T = τ - C.

    Attributes:
        mech: The mechanism; loops and couplings are left open.
        q: The configuration (nq,).
        noise: Variance of the measurement noise of each joint velocity (nv,), or None. In mechanics
            it is armature: it adds to the diagonal of the mass matrix.
        numbers: Evaluates operators of the field.
    """

    def __init__(
        self,
        mech: Mechanism,
        q: ArrayLike,
        *,
        noise: Literal["armature"] | ArrayLike | None = "armature",
    ) -> None:
        """The random field of a mechanism.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) [m or rad].
            noise: "armature": that of the mechanism, none if it has none; None: measurements
                without noise, so that E[T T*] is the mass matrix of the bodies alone; or variances
                (nv,), or one number for all [kg m² or kg].

        Raises:
            ShapeError: q or noise does not fit.
            ModelError: q is off the manifold or not finite, or a variance is negative.
        """
        if mech.flexible:
            raise ModelError(
                f"{mech.name!r} has flexible bodies; a random field takes rigid bodies only."
            )
        self.mech = mech
        self.q = mech.check_q(q)
        if self.q.ndim != 1:
            raise ShapeError(
                f"a random field is that of one configuration, q ({mech.nq},); found "
                f"{self.q.shape}. Make one for each."
            )
        self.noise = _variances(mech, noise)
        self.numbers = Evaluation(mech, self.q, self.noise)

    def __repr__(self) -> str:
        noise = "no measurement noise" if self.noise is None else "with measurement noise"
        bodies = counted(self.mech.n_bodies, "body", "bodies")
        return f"RandomField({self.mech.name!r}, {bodies}, {noise})"

    @property
    def family(self) -> Family:
        """The Riccati family of this field, with P, D, G, K, ψ as symbols of the algebra."""
        return bare_tree if self.noise is None else articulated

    # ------------------------------------------------------------------------------- draws

    def draw(self, count: int, *, seed: int | np.random.Generator | None = None) -> Draws:
        """Realisations of the random field.

        Args:
            count: Number of draws.
            seed: For the random numbers; the same seed gives the same draws.
        """
        white = self._white(arguments.count(count, "count", least=1), generator(seed))
        W, n = self._noises(white)
        shape = (len(W), self.mech.n_bodies, 6)
        X, T = (self.numbers.applied(entry.form, W) for entry in MODEL)
        return Draws(W.reshape(shape), X.reshape(shape), n, T + n)

    def draw_measurements(
        self, count: int, *, seed: int | np.random.Generator | None = None
    ) -> Array:
        """T alone (count, nv): the same as `draw(count, seed=seed).T`, with less memory."""
        W, n = self._noises(self._white(arguments.count(count, "count", least=1), generator(seed)))
        return self.numbers.applied(MODEL[1].form, W) + n

    def _white(self, count: int, rng: np.random.Generator) -> Array:
        width = 6 * self.mech.n_bodies + (0 if self.noise is None else self.mech.nv)
        return rng.standard_normal((count, width))

    def _noises(self, white: Array) -> tuple[Array, Array]:
        """W (count, 6 n) and n (count, nv)."""
        size = 6 * self.mech.n_bodies
        W = draw_process(self._root, np.ascontiguousarray(white[:, :size]))
        if self.noise is None:
            return W, np.zeros((len(white), self.mech.nv))
        return W, white[:, size:] * np.sqrt(self.noise)

    @cached_property
    def _root(self) -> Array:
        return inertia_root(self.mech)

    # --------------------------------------------------------------------------- estimates

    def filter(self, T: ArrayLike) -> KalmanFilter:
        """The Kalman filter run over measurements, from the tips to the base.

        Args:
            T: Joint forces (nv,) or (batch, nv) [N or N m].
        """
        return KalmanFilter(self, self.measurement(T))

    def smooth(self, T: ArrayLike) -> Smoother:
        """The Bryson-Frazier smoother: the filter, and then from the base to the tips.

        Args:
            T: Joint forces (nv,) or (batch, nv) [N or N m].
        """
        return Smoother(self.filter(T))

    def batch(self, T: ArrayLike) -> BatchEstimate:
        """The same estimates by the full covariance of T at once: dense, the slow reference.

        Args:
            T: Joint forces (nv,) or (batch, nv) [N or N m].
        """
        return BatchEstimate(self, self.measurement(T))

    def log_likelihood(self, T: ArrayLike) -> Array:
        """Logarithm of the probability density of T, a number or (batch,); see `KalmanFilter`."""
        return self.filter(T).log_likelihood

    def measurement(self, T: ArrayLike) -> Array:
        """T as float64 (nv,) or (batch, nv), checked."""
        checked = self.mech.check_v(T, "T")
        if checked.ndim > 2:
            raise ShapeError(
                f"T has shape {checked.shape}; it must be ({self.mech.nv},) or "
                f"(batch, {self.mech.nv})."
            )
        return checked

    # --------------------------------------------------------------------------- operators

    def expression(self, name: str) -> Expr:
        """The expression of an operator: "z", "f", "G" ... (`linkwise.estimation.OPERATORS`)."""
        return operator(name).form(self.family)

    def apply(self, name: str, T: ArrayLike) -> Array:
        """An operator applied to measurements: (..., n, 6) or (..., nv).

        Args:
            name: One that takes T: "z", "z_plus", "eps", "nu", "alpha", "vdot", "f", "W_hat".
            T: Joint forces (nv,) or (batch, nv) [N or N m].
        """
        measured = self.measurement(T)
        result = self.numbers.applied(estimate(name).form, measured)
        if self.expression(name).range is BODY:
            return result.reshape(*measured.shape[:-1], self.mech.n_bodies, 6)
        return result

    def blocks(self, name: str) -> tuple[Array, ...]:
        """The blocks of a block diagonal operator, one per body: "P", "D", "G", "Upsilon" ..."""
        return self.numbers.blocks(block(name).form)

    # ------------------------------------------------------------------------- covariances

    def covariance(self, name: str) -> Array:
        """A covariance of the problem as a matrix: (6 n, 6 n), or (nv, nv) for joint vectors.

        Args:
            name: "W", "X", "T", "z", "X - z", "eps", "nu", "alpha", "vdot", "f", "X - f", "f - z",
                "W_hat" or "W - W_hat": `linkwise.estimation.COVARIANCES` describes each.
        """
        matrix = self.numbers.matrix(covariance(name).form)
        return 0.5 * (matrix + matrix.T)

    def covariance_blocks(self, name: str) -> tuple[Array, ...]:
        """The diagonal blocks of a covariance, one per body: that of each body's vector.

        O(n), except for "vdot", where they are taken from the full matrix.
        """
        entry = covariance(name)
        if entry.diagonal is None:
            matrix = self.covariance(name)
            return tuple(matrix[s, s] for s in self.numbers.places(entry.space))
        return self.numbers.blocks(entry.diagonal)

    def deviation(self, name: str) -> Array:
        """Standard deviations: (n, 6), or (nv,) for joint vectors."""
        diagonals = [np.diag(block) for block in self.covariance_blocks(name)]
        # A vector that is known exactly has variance zero, up to rounding.
        deviations = np.sqrt(np.maximum(np.concatenate([np.zeros(0), *diagonals]), 0.0))
        return deviations.reshape(-1, 6) if covariance(name).space is BODY else deviations


def _variances(mech: Mechanism, noise: str | ArrayLike | None) -> Array | None:
    if noise is None:
        return None
    if isinstance(noise, str):
        if noise != "armature":
            raise ModelError(
                f"noise is {noise!r}; it must be 'armature', None, or variances ({mech.nv},)."
            )
        return mech.armature if mech.armature.any() else None
    given = floats(noise, "noise")
    variances = np.full(mech.nv, given) if given.ndim == 0 else given
    if variances.shape != (mech.nv,):
        raise ShapeError(
            f"noise has shape {given.shape}; it must be one number, or a variance for each "
            f"velocity ({mech.nv},)."
        )
    for name, variance in zip(mech.velocity_names, variances.tolist(), strict=True):
        if not (np.isfinite(variance) and variance >= 0.0):
            raise ModelError(
                f"the measurement noise of {name!r} has variance {variance}; it must be finite and "
                "not negative."
            )
    return frozen(variances.copy())


def inertia_root(mech: Mechanism) -> Array:
    """L (n, 6, 6) with M = L L* of every body."""
    inertias = mech.inertias
    moments, axes = np.linalg.eigh(inertias.J_com)
    # Rounding may leave moments of rods and points below zero.
    J_root = axes * np.sqrt(np.maximum(moments, 0.0))[..., None, :]
    m_root = np.sqrt(inertias.mass)[..., None, None]
    zero = np.zeros_like(J_root)
    return blocks(J_root, m_root * skew(inertias.com), zero, m_root * np.eye(3))


def draw_process(root: Array, white: Array) -> Array:
    """W (count, 6 n) from white numbers of that shape."""
    return np.einsum("kij,ckj->cki", root, white.reshape(len(white), -1, 6)).reshape(white.shape)
