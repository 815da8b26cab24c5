"""The course, "Jacobian operator": nodes, pick-off operator, Jacobian, compensating torque."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import B, E_phi, H, J, V, phi
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.recursion import at_tip, inward, stacked
from linkwise_ledger.section import Section
from linkwise_ledger.soa_course.sweep import SWEEPS
from linkwise_ledger.soa_course.velocity import Measured, body, measured, one_by_one, turned, worst

# ------------------------------------------------------------------------------------- checks


def _nodes(case: Case) -> list[str]:
    """Two nodes, one of them on the base."""
    return [case.node, body(case, 0)]


def _at_nodes(case: Case) -> Dense:
    return Dense(case.mech, case.q, case.v, nodes=_nodes(case))


def _measured_nodes(case: Case, at: Measured) -> Array:
    """Velocities of the nodes, each in its own axes, from poses alone."""
    parts = [turned(at.pose[n], np.eye(6)).T @ at.velocity[n] for n in _nodes(case)]
    return np.concatenate(parts)


def _measured_jacobian(case: Case) -> Array:
    return np.stack([_measured_nodes(case, at) for at in one_by_one(case)], axis=-1)


def _forces(case: Case) -> Array:
    return np.random.default_rng((case.seed, 8)).standard_normal(6 * len(_nodes(case)))


def _check_compensation(case: Case, *, sign: float) -> float:
    """Hinge forces and forces at nodes together do no work, whatever hinge moves."""
    f = _forces(case)
    work = _measured_jacobian(case).T @ f
    torque = sign * _at_nodes(case)(J).T @ f
    return float(np.abs(torque + work).max() / np.abs(work).max())


# ------------------------------------------------------------------------------------ entries

NODES = Section()


@NODES("""(1.41)  velocity of a node from that of its body
    printed  V(O_k^i) = φ*(k,O_k^i) V(k)
    holds    the block of B* at the node, times V(k)
    note     The same relation is cited as (1.37) for the hinge.
""")
def _(case: Case) -> float:
    at, pairs = measured(case), list[tuple[Array, Array]]()
    for node in case.mech.nodes or [case.mech.node(case.node)]:
        computed = at.phi(node.body, node.name).T @ at.velocity[node.body]
        pairs.append((computed, at.velocity[node.name]))
    return worst(pairs)


@NODES("""Pick-Off Operator B: stack  stacked velocities of nodes
    printed  V_nd ≜ col{V_nd(k)}_i=1^n ∈ R^(6 n_nd)
    instead  V_nd ≜ col{V_nd(i)}_i=1^n_nd ∈ R^(6 n_nd)
    note     It runs over nodes, not over bodies: the index is i, and the last one n_nd.
""")
def _(case: Case, *, printed: bool = False) -> float:
    """Length of the stacked velocities of nodes: six for each node; printed, for each body."""
    count = case.mech.n_bodies if printed else len(_nodes(case))
    length = len(_at_nodes(case)(B.T @ V))
    return abs(length - 6 * count) / length


@NODES("""Pick-Off Operator B  from forces at nodes to forces on bodies, for one node on the tip
    printed  B ≜ [φ(1,O_1^0); 0; …; 0]
    means    B, for one node; a column of blocks for each one more
""")
def _(case: Case) -> float:
    k, local = at_tip(case)
    expected = np.zeros_like(case.matrix(B))
    expected[case.dense.slices(BODY)[k]] = local
    node = case.dense.nodes[0]
    at = measured(case)
    lever = turned(at.pose[node.body], local) @ turned(at.pose[node.name], np.eye(6)).T
    return max(apart(case.matrix(B), expected), apart(lever, at.phi(node.body, node.name)))


NODES("""(3.47)  velocities of nodes
    holds    V_nd = B* V
""")(lambda case: (_at_nodes(case)(B.T @ V), _measured_nodes(case, measured(case))))


@NODES("""Jacobian Matrix  the Jacobian
    printed  V_nd = J θ̇ where J ≜ B* φ* H* ∈ R^(6 n_nd × 𝒩)
    holds    J = B* φ* H*
    note     θ̇ means β.
""")
def _(case: Case) -> Errors:
    dense, expected = _at_nodes(case), _measured_jacobian(case)
    shape = dense(J).shape == (12, case.mech.nv)
    product = dense(J) @ case.v
    yield 0.0 if shape else 1.0
    yield dense(B.T @ phi.T @ H.T), expected
    yield product, _measured_nodes(case, measured(case))


@NODES("""O(N) compensating torque computation: dual  joint forces that forces at nodes are worth
    printed  J* f_ext = H φ B f_ext
    holds    J* f = H φ B f
""")
def _(case: Case) -> float:
    dense, f = _at_nodes(case), _forces(case)
    return apart(dense(J).T @ f, dense(H @ phi @ B) @ f)


NODES("""O(N) compensating torque computation  torques that counter forces on the system
    printed  δ_T ≜ J* f_ext counters forces f_ext on the system
    instead  δ_T = -J* f for forces f that act on the mechanism
    note     The sign: J* f is what forces on the mechanism are worth, so that as printed their work
             is doubled instead of cancelled. It holds for the forces that the mechanism exerts.
""")(lambda case: _check_compensation(case, sign=-1.0))
NODES.as_printed(lambda case: _check_compensation(case, sign=1.0))


@NODES("""O(N) compensating torque computation: recursion  J* f by a gather
    printed  x(0) = 0; for k = 1 … n: x(k) = φ(k,k-1) x(k-1) + Σ_i φ(B_k,O_k^i) f^i(k), δ_T(k) =
             H(k) x(k)
    holds    for k = tips … base: x(k) = Σ_c φ(k,c) x(c) + B(k) f(k), y(k) = H(k) x(k) leaves J* f
""")
def _(case: Case) -> float:
    dense, f = _at_nodes(case), _forces(case)
    x, blocks_at = dict[int, Array](), dict[int, Array]()
    for k in case.inward:
        x[k] = inward(case, E_phi, k, x)
        for i, node in enumerate(dense.nodes):
            if case.mech.body_index[node.body] == k:
                x[k] = x[k] + node.pose.shift @ f[6 * i : 6 * i + 6]
        blocks_at[k] = case.block(H, k) @ x[k]
    return max(apart(stacked(case, blocks_at), dense(J).T @ f), abs(len(f) - dense.size(B.domain)))


@NODES("""Summary  the two recursions
    holds    y = φ* x: base-to-tip O(N) scatter recursion; y = φ x: tip-to-base O(N) gather
             recursion
""")
def _(case: Case) -> float:
    loops = {"Base-to-tips scatter recursion", "Tips-to-base gather recursion"}
    checks = [entry.check for entry in SWEEPS if entry.number in loops]
    return max(check(case) for check in checks if check is not None)
