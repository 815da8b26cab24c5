"""Values, Jacobians, gradients and Hessians of a kernel by all entries of its inputs, as graphs.

Optimizers change each entry of q by itself, so derivatives here are by entries, not along
velocities as in `mech.integrate`. Quaternions are divided by their length first: every q but zero
is then a configuration, and lengthening a quaternion changes nothing. With q̇ = N(q) v the two are
related by

    ∂y/∂q N = A,     A = lw.differentiate(y, "q"),     at unit quaternions

A Jacobian is written in up to three ways: from the derivative of the expression, forward along the
graph for each input, and in reverse for each result. The one with the fewest operations is chosen.
Entries that are zero in every state are left out of all matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from linkwise.algebra.differential import differentiate
from linkwise.codegen.c.text import distinct
from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.trace import Sketch, Traced
from linkwise.codegen.sensitivity import pulled, pushed
from linkwise.codegen.stages import MOST_BODIES, traced as traced_of
from linkwise.codegen.tangents import quaternions
from linkwise.dynamics.derivative_formula import FORWARD_DERIVATIVES
from linkwise.dynamics.kernels import is_closed
from linkwise.dynamics.quantity import expression
from linkwise.errors import ExpressionError, LoweringError, ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.hinges.hinge import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.factored import factored

KNOWN = {expression("forward_dynamics"): FORWARD_DERIVATIVES}
"""Formulas that compute all derivatives of an expression with less work than each alone."""

Nodes = Any
"""An array of graph nodes (dtype int)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A matrix without the entries that are zero in every state."""

    name: str
    shape: tuple[int, int]
    entries: tuple[tuple[int, int], ...]  # (row, column) of the others, column by column

    @property
    def columns(self) -> list[int]:
        """For each column, how many entries stand before it; then how many there are."""
        counts = np.bincount([c for _, c in self.entries], minlength=self.shape[1])
        return [0, *np.cumsum(counts).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Several matrices as one graph, whose outputs are their entries, one after another."""

    traced: Traced
    blocks: tuple[Block, ...]

    def __getitem__(self, name: str) -> Block:
        return next(block for block in self.blocks if block.name == name)

    def slices(self) -> Iterator[tuple[Block, slice]]:
        """Each matrix, and where its entries are."""
        start = 0
        for block in self.blocks:
            yield block, slice(start, start + len(block.entries))
            start += len(block.entries)


class Smooth:
    """A kernel and its derivatives.

    Args:
        request: The request of the kernel, for float64.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        try:
            self.traced = traced_of(request)
        except TooLongError:
            raise ModelError(
                f"a function of CasADi was requested for {request.mech.name!r} with "
                f"{request.mech.n_bodies} bodies; it must have {MOST_BODIES} at most."
            ) from None
        self.results = distinct(request.names or ("value",))
        shapes = self.traced.parts or (self.traced.shape,)
        self.shapes = [(prod(x[:-1]), x[-1]) if len(x) > 1 else (*x, 1, 1)[:2] for x in shapes]
        self.inputs = self.traced.inputs
        self.labels = distinct(name for name, _ in self.inputs)

    # ------------------------------------------------------------------------------ matrices

    @cached_property
    def value(self) -> Blocks:
        """The results: vectors are columns; of more than two axes, all but the last are rows."""
        at = _At(self)
        return at.blocks(zip(self.results, at.results, strict=True))

    @cached_property
    def jacobian(self) -> Blocks:
        """The derivatives "jac_o_i" of each result o, column by column, by each input i."""
        forward, algebra = self._forward(), self._algebra()
        zero = np.array([forward[0].is_zero(x) for x in forward[1].flat], dtype=bool)
        zero = zero.reshape(forward[1].shape)
        costs = list[tuple[int, _At, Nodes]]()
        for at, J in (forward, self._reverse(), *([] if algebra is None else [algebra])):
            J[zero] = at.graph.constant(0.0)  # the algebra does not know all zeros
            costs.append((sum(at.graph.count(J.ravel().tolist()).values()), at, J))
        _, at, J = min(costs, key=lambda x: x[0])
        rows = np.split(J, np.cumsum([r * c for r, c in self.shapes])[:-1])
        return at.blocks(
            (f"jac_{o}_{i}", part)
            for o, of_result in zip(self.results, rows, strict=True)
            for i, part in self._by_input(of_result, axis=1)
        )

    @cached_property
    def gradient(self) -> Blocks:
        """The gradients "adj_i" of a sum of the entries of all results by each input i.

        The weights are inputs "adj_o", one for each entry of result o.
        """
        at, gradient = self._weighted()
        columns = gradient[:, None]
        parts = ((f"adj_{i}", part) for i, part in self._by_input(columns, axis=0))
        return at.blocks(parts, full=True)

    @cached_property
    def hessian(self) -> Blocks:
        """The second derivatives "jac_adj_i_j" of the same sum."""
        at, gradient = self._weighted()
        size, one = len(gradient), at.graph.constant(1.0)
        H = np.empty((size, size), dtype=int)
        for j, x in enumerate(at.variables):
            H[j, j:] = H[j:, j] = pushed(at.graph, gradient[j:].tolist(), {x: one})
        return at.blocks(
            (f"jac_adj_{i}_{j}", part)
            for i, rows in self._by_input(H, axis=0)
            for j, part in self._by_input(rows, axis=1)
        )

    def _by_input(self, matrix: Nodes, axis: int) -> Iterable[tuple[str, Nodes]]:
        ends = np.cumsum([size for _, size in self.inputs])[:-1]
        return zip(self.labels, np.split(matrix, ends, axis=axis), strict=True)

    # ---------------------------------------------------------------------- three Jacobians

    def _forward(self) -> tuple[_At, Nodes]:
        at = _At(self)
        one = at.graph.constant(1.0)
        columns = [pushed(at.graph, at.outputs, {x: one}) for x in at.variables]
        shape = len(at.variables), len(at.outputs)
        return at, np.array(columns, dtype=int).reshape(shape).T.copy()

    def _reverse(self) -> tuple[_At, Nodes]:
        at = _At(self)
        one = at.graph.constant(1.0)
        rows = [pulled(at.graph, [y], [one], at.variables) for y in at.outputs]
        return at, np.array(rows, dtype=int).reshape(len(at.outputs), len(at.variables))

    def _algebra(self) -> tuple[_At, Nodes] | None:
        """From `lw.differentiate`; None where it has no rule or cannot give derivatives by q."""
        request = self.request
        if isinstance(request.quantity, Formula) or not request.chosen.is_all:
            return None
        if any(name == "q" for name, _ in self.inputs) and not _follows(request.mech):
            return None
        try:
            parts = self._derivatives()
            at = _At(self)
            at.checks.clear()  # those of the derivatives say the same
            arrays = at.replayed(parts)
        except (ExpressionError, LoweringError):
            return None
        names, columns = [name for name, _ in self.inputs], list[Any]()
        for k, name in enumerate(names):
            matrix = np.concatenate(arrays[k :: len(names)])
            columns.append(at.by_entries(matrix) if name == "q" else matrix)
        J = np.concatenate(columns, axis=1)
        return at, np.reshape([at.scalar(x).node for x in J.flat], J.shape)

    def _derivatives(self) -> Traced:
        """The graph of all derivatives of the expressions, for each by each input."""
        request, quantity = self.request, self.request.quantity
        assert not isinstance(quantity, Formula)
        known = KNOWN.get(quantity[0]) if len(quantity) == 1 and request.derive else None
        names = tuple(name for name, _ in self.inputs)
        if known is not None and known.names == names and not is_closed(request.mech):
            return traced_of(replace(request, quantity=known))
        exprs = tuple(differentiate(y, name) for y in quantity for name in names)
        made = traced_of(replace(request, quantity=exprs, names=tuple(map(str, range(len(exprs))))))
        return made if made.parts else replace(made, parts=(made.shape,))

    def _weighted(self) -> tuple[_At, Nodes]:
        """The gradient of the weighted sum of all results."""
        at = _At(self)
        kept, weights = list[int](), list[int]()
        for name, nodes in zip(self.results, at.results, strict=True):
            entries = [x for x in nodes.T.ravel().tolist() if not at.is_zero(x)]
            kept += entries
            weights += [x.node for x in at.read(f"adj_{name}", len(entries))]
        return at, np.array(pulled(at.graph, kept, weights, at.variables), dtype=int)


class _At(Sketch):
    """The kernel in a new graph, as a function of the entries of q."""

    def __init__(self, smooth: Smooth) -> None:
        super().__init__()
        self.tree = _tree(smooth.request)
        arrays = {name: self.read(name, size) for name, size in smooth.inputs}
        self.variables = [x.node for array in arrays.values() for x in array]
        self.given = dict(arrays)
        if "q" in arrays:
            self.given["q"] = self._unit(arrays["q"])
        flat = np.array([x.node for x in self.replay(smooth.traced, self.given)], dtype=int)
        ends = np.cumsum([prod(shape) for shape in smooth.shapes])[:-1]
        parts = zip(np.split(flat, ends), smooth.shapes, strict=True)
        self.results: list[Nodes] = [x.reshape(shape) for x, shape in parts]
        self.outputs = [n for x in self.results for n in x.T.ravel().tolist()]

    def is_zero(self, node: int) -> bool:
        """Whether it is zero in every state."""
        return self.graph.op[node] == "const" and self.graph.value[node] == 0.0

    def blocks(self, matrices: Iterable[tuple[str, Nodes]], *, full: bool = False) -> Blocks:
        """Matrices of nodes without their zeros, or with them."""
        blocks, outputs = list[Block](), list[int]()
        for name, nodes in matrices:
            rows, columns = nodes.shape
            places = [(r, c) for c in range(columns) for r in range(rows)]
            kept = tuple(place for place in places if full or not self.is_zero(nodes[place]))
            blocks.append(Block(name, (rows, columns), kept))
            outputs += [int(nodes[place]) for place in kept]
        checks = tuple(c for c in self.checks if status.with_quaternion(c.code, self.tree) is None)
        inputs = tuple((name, len(values)) for name, values in self.reads.items())
        made = Traced(self.graph, inputs, outputs, (len(outputs),), checks)
        return Blocks(made, tuple(blocks))

    def replayed(self, traced: Traced) -> list[Any]:
        """The results of another graph of the same state."""
        flat = np.empty(len(traced.outputs), dtype=object)
        flat[:] = self.replay(traced, self.given)
        ends = np.cumsum([prod(shape) for shape in traced.parts])[:-1]
        return [
            x.reshape((1, *shape)[-2:])
            for x, shape in zip(np.split(flat, ends), traced.parts, strict=True)
        ]

    def _unit(self, q: Any) -> Any:
        """q with quaternions of unit length."""
        out, self._lengths = q.copy(), dict[int, Any]()
        for place in quaternions(self.tree):
            self._lengths[place.start] = length = (q[place] @ q[place]).sqrt()
            out[place] = q[place] / length
        return out

    def by_entries(self, A: Any) -> Any:
        """∂y/∂q (n, nq) from A (n, nv), its derivative along velocities: A N⁺."""
        tree, columns = self.tree, list[Any]()
        for k, body in enumerate(tree.bodies):
            part = A[:, tree.v_start[k] : tree.v_start[k + 1]]
            place = body.hinge.quaternion
            if place is not None:
                q = self.given["q"][tree.q_start[k] : tree.q_start[k + 1]]
                rates = [body.hinge.qdot(q[None], e[None])[0] for e in np.eye(body.hinge.nv)]
                N = np.stack(rates, axis=-1)
                inverse = factored(N.T @ N) @ N.T  # N⁺ takes away what lengthens the quaternion
                inverse[:, place] /= self._lengths[tree.q_start[k] + place.start]
                part = part @ inverse
            columns.append(part)
        return np.concatenate(columns, axis=1)


def _tree(request: Request) -> Mechanism:
    return getattr(request.mech, "mech", request.mech)  # or an embedded one's


def _follows(mech: Mechanism | Embedded) -> bool:
    """Whether velocities reach every q nearby, and determine q̇ in a way that can be inverted."""
    return isinstance(mech, Mechanism) and all(
        type(hinge).qdot is Hinge.qdot
        or (hinge.quaternion is not None and hinge.nq == hinge.nv + 1)
        for hinge in (body.hinge for body in mech.bodies)
    )
