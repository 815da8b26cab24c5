"""Every named quantity against dense algebra: the same expression, as products of whole matrices.

Dense matrices come from the definitions, without sweeps: inverses are inverses of matrices. What
neither Pinocchio nor MuJoCo has is compared here, and hinges that they have not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.algebra import BODY, NODE, role
from linkwise.algebra.dense import STATE_VECTORS, Dense
from linkwise.algebra.derivation import leaves
from linkwise.algebra.expr import Expr, Symbol
from linkwise.dynamics import QUANTITIES, expression, kernel
from linkwise.dynamics.quantity import AS_BLOCKS, AT_ROOTS
from linkwise.spatial.array import Array
from tests.oracles.compared_quantity import Quantity


@dataclass
class DenseCase:
    """A mechanism in one state, with two nodes and something for every input."""

    mech: lw.Mechanism
    q: Array
    v: Array
    nodes: tuple[str, ...]

    def values(self, symbols: Iterable[Symbol]) -> dict[str, Array]:
        """A random vector for each leaf that is no state, always the same for the same name."""
        result = dict[str, Array]()
        for leaf in symbols:
            key = leaf.role
            if isinstance(key, role.Vector) and key.source not in STATE_VECTORS:
                rng = np.random.default_rng(sum(map(ord, key.source)))
                result[key.source] = rng.standard_normal(self.dense({}).size(leaf.range))
        return result

    def dense(self, values: dict[str, Array]) -> Dense:
        return Dense(self.mech, self.q, self.v, nodes=self.nodes, values=values)

    def here(self, name: str, frame: str) -> Array:
        result = kernel(self.mech, name, self.nodes, frame=frame)  # type: ignore[arg-type]
        given = {"q": self.q, "v": self.v, **self.given(name, frame)}
        return result(*(given[argument] for argument in result.arguments))

    def given(self, name: str, frame: str) -> dict[str, Array]:
        return self.values(leaves(self.expr(name, frame)))

    def expr(self, name: str, frame: str) -> Expr:
        return expression(name, frame=frame)  # type: ignore[arg-type]

    def there(self, name: str, frame: str) -> Array:
        dense = self.dense(self.given(name, frame))
        full = dense(self.expr(name, frame))
        if name in AS_BLOCKS:
            return self.blocks(full, dense, self.expr(name, frame), at_roots=name in AT_ROOTS)
        if name in AT_ROOTS:
            slices = dense.slices(BODY)
            picked = [slices[k] for k in self.roots()]
            return np.concatenate([full[s] for s in picked])
        return full

    def roots(self) -> list[int]:
        """The bodies on the ground."""
        return [k for k, parent in enumerate(self.mech.parent) if parent < 0]

    def blocks(self, full: Array, dense: Dense, expr: Expr, *, at_roots: bool) -> Array:
        """Diagonal blocks (n_bodies, r, c), with zeros behind."""
        rows, columns = dense.slices(expr.range), dense.slices(expr.domain)
        bodies = self.roots() if at_roots else range(self.mech.n_bodies)
        parts = [full[rows[k], columns[k]] for k in bodies]
        shape = np.max([part.shape for part in parts], axis=0)
        out = np.zeros((len(parts), *shape))
        for block, part in zip(out, parts, strict=True):
            block[: part.shape[0], : part.shape[1]] = part
        return out

    def hybrid_here(self) -> Array:
        given = self.joint_values()
        motion = lw.hybrid_dynamics(self.mech, self.q, self.v, prescribed=self.prescribed, **given)
        return np.concatenate([motion.vdot, motion.tau])

    def hybrid_there(self) -> Array:
        """Two blocks of 𝓜 v̇ + C = τ: one solved for accelerations, one read for forces."""
        given, held = self.joint_values(), np.zeros(self.mech.nv, dtype=bool)
        for name in self.prescribed:
            held[self.mech.v_slice(name)] = True
        A, c = self.there("mass_matrix", "node"), self.there("bias_force", "node")
        vdot, tau = given["vdot"].copy(), given["tau"].copy()
        right = tau - c - A[:, held] @ vdot[held]
        vdot[~held] = np.linalg.solve(A[np.ix_(~held, ~held)], right[~held])
        tau[held] = (A @ vdot + c)[held]
        return np.concatenate([vdot, tau])

    def joint_values(self) -> dict[str, Array]:
        return self.given("forward_dynamics", "node") | self.given("inverse_dynamics", "node")

    @property
    def prescribed(self) -> list[str]:
        return [body.hinge_name for body in self.mech.bodies if body.hinge.nv][1::2]


def _reachable(it: DenseCase) -> str | None:
    J = it.there("jacobian", "node")
    return None if np.linalg.matrix_rank(J) == len(J) else "the nodes cannot move in every way"


def _table() -> tuple[Quantity, ...]:
    rows = list[Quantity]()
    for name in QUANTITIES:
        of_nodes = any(NODE in (leaf.range, leaf.domain) for leaf in leaves(expression(name)))
        for frame in ("node", "world") if of_nodes else ("node",):
            rows.append(
                Quantity(
                    f"{name}, {frame} axes" if of_nodes else name,
                    name,
                    str(expression(name, frame=frame)),  # type: ignore[arg-type]
                    lambda it, name=name, frame=frame: it.here(name, frame),
                    lambda it, name=name, frame=frame: it.there(name, frame),
                    _reachable if name == "operational_inertia" else lambda it: None,
                )
            )
    rows.append(
        Quantity(
            "hybrid_dynamics",
            "hybrid_dynamics",
            "blocks of 𝓜 v̇ + C = τ",
            lambda it: it.hybrid_here(),
            lambda it: it.hybrid_there(),
        )
    )
    rows.append(
        Quantity(
            "log_det_mass_matrix",
            "log_det_mass_matrix",
            "log det 𝓜",
            lambda it: lw.dynamics.log_det_mass_matrix(it.mech, it.q),
            lambda it: np.linalg.slogdet(it.there("mass_matrix", "node"))[1],
            size=lambda it: float(max(it.mech.nv, 1)),
        )
    )
    return tuple(rows)


TABLE = _table()
