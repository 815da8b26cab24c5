"""Operators on numbers: sweeps in NumPy for a few vectors, kernels for many.

A random field has one configuration, so that most quantities are computed once: the interpreter of
the sweeps does that. Batches of vectors go through compiled kernels, which are made on first use
and kept with the mechanism.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import BODY, JOINT, role, tau, vector
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.space import Space
from linkwise.algebra.symbols import articulated, bare_tree
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.estimation.operator import Form
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile, plan
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import interpreted, run
from linkwise.sweeps.program import Program

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

FEW = 16
"""Largest number of vectors for which sweeps are faster than compiling a kernel."""

_x = vector("x", BODY)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluates forms of one mechanism in one configuration.

    Attributes:
        mech: The mechanism.
        q: The configuration (nq,).
        noise: Variances of the measurement noise (nv,), or None.
    """

    mech: Mechanism
    q: Array
    noise: Array | None

    def expression(self, form: Form) -> Expr:
        """A form in the family of this noise."""
        return form(bare_tree if self.noise is None else articulated)

    def applied(self, form: Form, x: Array) -> Array:
        """A form applied to x (n,) or (count, n)."""
        operator = self.expression(form)
        if x.ndim == 1:
            return self._run(operator @ _argument(operator), {"x": x, "tau": x})
        if 0 < len(x) <= FEW:
            return np.stack([self.applied(form, row) for row in x])
        return self._batch(operator, x, self.noise is not None and depends_on_noise(form))

    def matrix(self, form: Form) -> Array:
        """A form as a matrix (rows, columns)."""
        return self._run(self.expression(form), {})

    def blocks(self, form: Form) -> tuple[Array, ...]:
        """The blocks of a block diagonal form, one per body, without its matrix.

        A vector with a unit vector at every body shows one column of all blocks at once.
        """
        operator = self.expression(form)
        rows, columns = self.places(operator.range), self.places(operator.domain)
        widths = [s.stop - s.start for s in columns]
        blocks = [np.zeros((s.stop - s.start, n)) for s, n in zip(rows, widths, strict=True)]
        for j in range(max(widths, default=0)):
            probe = np.zeros(columns[-1].stop)
            probe[[s.start + j for s, n in zip(columns, widths, strict=True) if j < n]] = 1.0
            seen = self._run(operator @ _argument(operator), {"x": probe, "tau": probe})
            for block, s, n in zip(blocks, rows, widths, strict=True):
                if j < n:
                    block[:, j] = seen[s]
        return tuple(blocks)

    def places(self, space: Space) -> list[slice]:
        """The places of each body in a vector: six per body, or those of its hinge."""
        if space is not JOINT:
            return [slice(6 * k, 6 * k + 6) for k in range(self.mech.n_bodies)]
        start = self.mech.v_start.tolist()
        return [slice(start[k], start[k + 1]) for k in range(self.mech.n_bodies)]

    # ------------------------------------------------------------------------------ sweeps

    def _run(self, expr: Expr, values: dict[str, Array]) -> Array:
        program, by_riccati = _program(expr)
        if by_riccati:
            self.require_resistance()
        return run(program, self._with_noise, self.q, values=values)

    @cached_property
    def _with_noise(self) -> Mechanism:
        """The mechanism with the noise as its armature, which the sweeps call N."""
        mech, noise = self.mech, self.noise
        if noise is None or noise is mech.armature:
            return mech
        plain = {"rotor_inertia": 0.0, "gear_ratio": 1.0}
        bodies = [
            dataclasses.replace(
                body,
                drive=dataclasses.replace(body.drive, armature=tuple(noise[s].tolist()), **plain),
            )
            if s.stop > s.start
            else body
            for body, s in zip(mech.bodies, self.places(JOINT), strict=True)
        ]
        return dataclasses.replace(mech, bodies=tuple(bodies))

    def require_resistance(self) -> None:
        """Raise where nothing resists a hinge, by the same measure as kernels.

        Raises:
            SingularHingeError: Some D(k) is not positive definite; names the body.
        """
        assert self._resisted

    @cached_property
    def _resisted(self) -> bool:
        D = self.expression(lambda F: F.D)
        program, still = _program(D.inv @ tau)[0], {"tau": np.zeros(self.mech.nv)}
        swept = interpreted(program, self._with_noise, self.q, values=still)
        swept.result()
        for k in reversed(range(self.mech.n_bodies)):  # tips first: the others depend on them
            if not (_pivots(swept.value[D, True][k]) > thresholds(self.mech, k)).all():
                raise status.error(status.hinge(k), self.mech)
        return True

    # ----------------------------------------------------------------------------- kernels

    def _batch(self, operator: Expr, x: Array, with_noise: bool) -> Array:
        kernel = _kernel(self.mech, operator, with_noise)
        if not len(x):
            return np.zeros((0, *kernel.signature.shape))
        given: dict[str, Any] = {"q": self.q, "x": x, "tau": x, "armature": self.noise}
        inputs = {name: given[name] for name in kernel.arguments}
        codes = np.zeros(len(x), dtype=np.int32)
        result = kernel(**inputs, status=codes)
        if codes.any():  # q is the same for all: report the first
            raise status.error(int(codes[np.argmax(codes != 0)]), self.mech)
        return result


def depends_on_noise(form: Form) -> bool:
    """Whether measurement noise changes a form: equal expressions are one object."""
    return form(articulated) is not form(bare_tree)


def _argument(operator: Expr) -> Symbol:
    return _x if operator.domain is BODY else tau


def _pivots(D: Array) -> Array:
    try:
        return np.asarray(np.diag(np.linalg.cholesky(D)) ** 2, dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros(len(D))


@cache
def _program(expr: Expr) -> tuple[Program, bool]:
    """The sweeps of an expression, and whether there is a Riccati recursion in them."""
    program = plan(expr)
    targets = [s.target.key for step in program.passes for s in step.statements]
    return program, any(isinstance(x, Symbol) and isinstance(x.role, role.Riccati) for x in targets)


@once_per_mechanism
def _kernel(mech: Mechanism, operator: Expr, with_noise: bool) -> Kernel:
    """The kernel that applies an operator; with noise it takes that as `armature`."""
    parameters = ("armature",) if with_noise else ()
    return compile(operator @ _argument(operator), mech, parameters=parameters)
