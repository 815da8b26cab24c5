"""The Riccati recursion as a scan of Kalman elements.

Along a path, from its tip to its base, S is what reaches body k from its child on the path:

    P = S + M,     D = H P H* + N,     G = P H* D⁻¹,     S(p) = E (P - G H P) E*

with M including what other children hand on. A run of bodies turns the S at its outboard end into
one at its inboard end (`element.kalman`), and grows by one body at its inboard end as

    P₀ -> S(p) from P₀,     A -> E (I - G H) A,     J -> J + A* H* D⁻¹ H A

that is by the sweep itself, begun with P₀ = 0, and two lines more. A run is one body, unless the
inertia of the body alone does not resist its hinge, as that of a massless frame between two pins:
it then joins the run of its child. All runs grow at once, then they are scanned, then each is
swept with the right S.

A flexible body hangs its children on its frame, and is itself hung on the frame of its parent
(`sweeps/flexible.py`): S, A and J are those of frames, (6, 6), the first entries of longer blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.space import JOINT
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import family_of_part
from linkwise.sweeps.program import Block
from linkwise.sweeps.scan import element
from linkwise.sweeps.scan.element import prefixes, star
from linkwise.sweeps.scan.path import Indices
from linkwise.sweeps.scan.plan import Group

if TYPE_CHECKING:
    from linkwise.algebra.family import Family
    from linkwise.sweeps.scan.run import Stacked

RESISTS = 1e-2
"""The least part of what resists a hinge, with its child in place, that is of the body itself."""


def scanned_riccati(run: Stacked, group: Group) -> None:
    """P, D, G and P⁺ of all bodies."""
    first, *local = group.statements
    family = family_of_part(first.target.key)
    assert family is not None
    carried = next(t for t in first.terms if t.operand is not None)
    others = [t for t in first.terms if t.operand is None]
    room = run.room(first.target)
    for s in local:
        run.room(s.target)
    light = run.everybody[run.paths.top == run.everybody]
    shift, H_all = run.value[family.E, True], run.value[family.H, True]

    def filtered(ks: Indices, S: Array) -> Array:
        """S at the next body inboard, from that at bodies `ks`."""
        total = M[row[ks]]
        total[:, :6, :6] += S
        room[ks] = total
        for statement in local:
            run.set(statement, ks)
        E = shift[ks][:, :6]
        return E @ run.value[family.P_plus, True][ks] @ star(E)

    for ks in run.levels(group):
        M = run.total(first, others, ks)
        run.add_children(M, carried, ks, light)
        row = np.full(run.n, -1)
        row[ks] = np.arange(len(ks))
        begins = run.ends(group, ks)[:, 0, 0] == 0.0
        start = np.flatnonzero(begins | resists(run, family, ks, M, begins))
        length = np.diff(np.append(start, len(ks)))
        P_0, J = np.zeros((len(start), 6, 6)), np.zeros((len(start), 6, 6))
        A = np.broadcast_to(np.eye(6), J.shape).copy()
        for i in range(int(length.max())):  # grow
            g = np.flatnonzero(length > i)
            at = ks[start[g] + i]
            P_0[g] = filtered(at, P_0[g])
            seen = H_all[at][:, :, :6] @ A[g]
            through = run.times(Block(family.D, inverse=True), at, at, at, seen)
            J[g] += star(seen) @ through
            left = -run.value[family.G, True][at] @ seen
            left[:, :6] += A[g]
            A[g] = shift[at][:, :6] @ left
        keep = (~begins[start]).astype(float)[:, None, None]
        elements = A * keep, element.root(P_0), element.root(J * keep)
        lower = prefixes(elements, element.kalman)[1][:-1]
        S = np.concatenate([np.zeros((1, 6, 6)), lower @ star(lower)]) * keep
        for i in range(int(length.max())):  # sweep with what comes in
            g = np.flatnonzero(length > i)
            S[g] = filtered(ks[start[g] + i], S[g])


def resists(
    run: Stacked, family: Family, ks: Indices, M: Array, begins: NDArray[np.bool]
) -> NDArray[np.bool]:
    """Whether the inertia of a body resists its hinge, also compared with that of its child."""
    H = run.value[family.H, True][ks]
    if not H.size:
        return np.ones(len(ks), dtype=bool)
    alone = H @ M @ star(H)
    if family.noise is not None:
        alone = alone + run.value[family.noise, True][ks]
    child = H[1:] @ run.value[family.E, True][ks[:-1]]
    carried = alone.copy()
    carried[1:] += np.where(begins[1:, None, None], 0.0, child @ M[:-1] @ star(child))
    scale = np.sqrt(np.einsum("nii->ni", carried))
    scale = np.where(scale > 0.0, scale, 1.0)
    filler = run.filler(JOINT, ks)
    alone, carried = (
        x / (scale[:, :, None] * scale[:, None, :]) + filler for x in (alone, carried)
    )
    return np.linalg.eigvalsh(alone - RESISTS * carried)[:, 0] > 0.0
