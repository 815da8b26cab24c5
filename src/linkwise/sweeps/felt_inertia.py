"""Inertias without what hinges cannot feel: the same joint forces from fewer numbers.

Masses on the axis of a pin move as if they were part of the parent: so does the rotational inertia
of a slide. With X(k) such a part of M(k),

    H(k) X(k) = 0,     φ(p,k) X(k) φ*(p,k)  the same in every position

M(k) - X(k) and M(p) + φ(p,k) X(k) φ*(p,k) describe the same mechanism: 𝓜, the bias, D, G and K keep
their values; forces at bodies do not. From the tips to the base this leaves seven of ten numbers at
each pin, and no mass, so that products with zeros fold away. The result need not be an inertia of a
body: it may have negative moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import STATE_VECTORS
from linkwise.algebra.expr import Symbol
from linkwise.errors import LinkwiseError
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.hinges import Free, Pin, Prismatic
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose
from linkwise.sweeps.bodies import Bodies
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.numbers import Numbers
from linkwise.sweeps.program import Program
from linkwise.sweeps.result_part import ALL

SAME = 1e-9
"""Largest relative difference of two results that are equal."""


@once_per_mechanism
def felt_inertias(mech: Mechanism) -> list[SpatialInertia]:
    """The inertia of each body, regrouped along pins and slides."""
    inertias = [mech.inertias[k] for k in range(mech.n_bodies)]
    for k in reversed(range(mech.n_bodies)):
        body, parent = mech.bodies[k], int(mech.parent[k])
        unfelt = _unfelt(body.hinge, inertias[k]) if body.outboard is Pose.identity() else None
        if unfelt is None:
            continue
        inertias[k] = _sum(inertias[k], unfelt, -1.0)
        if parent >= 0:
            inertias[parent] = _sum(inertias[parent], unfelt.moved(body.inboard), 1.0)
    return inertias


def _unfelt(hinge: object, inertia: SpatialInertia) -> SpatialInertia | None:
    """X of a body on a hinge; None where there is none, or where it would leave no zeros."""
    h, J = np.zeros(3), np.zeros((3, 3))
    if isinstance(hinge, Prismatic):
        return trusted_inertia(np.zeros(()), h, inertia.J)
    if not isinstance(hinge, Pin) or np.count_nonzero(hinge.axis) > 1:
        return None
    z = int(np.argmax(np.abs(hinge.axis)))
    x, y = (z + 1) % 3, (z + 2) % 3
    h[z], J[x, x], J[y, y] = inertia.h[z], inertia.J[y, y], inertia.J[y, y]
    return trusted_inertia(inertia.mass, h, J)


def _sum(one: SpatialInertia, other: SpatialInertia, sign: float) -> SpatialInertia:
    mass, h, J = (
        np.asarray(a + sign * b)
        for a, b in ((one.mass, other.mass), (one.h, other.h), (one.J, other.J))
    )
    return trusted_inertia(mass, h, J)


def may_regroup(program: Program) -> bool:
    """Whether a program gives the same with the inertias that hinges feel.

    That depends on its expressions, not on the mechanism, and numbers decide: joint forces
    as a whole, 𝓜 and the bias, do, and H φ b by itself does not.
    """
    return not program.constrained and _keeps_value(replace(program, chosen=ALL))


@lru_cache(maxsize=256)
def _keeps_value(program: Program) -> bool:
    mech, rng = _sample(), np.random.default_rng(0)
    state = (mech.random(rng), rng.standard_normal(mech.nv))
    node = mech.node("bend")
    bodies = _Chosen(mech, [node], [mech.body_index[node.body]])
    bodies.names = sorted({n for x in program.inputs for n in getattr(x.role, "hinges", ())})
    vectors = [x for x in program.inputs if isinstance(x.role, role.Vector)]
    given = {
        x.role.source: rng.standard_normal(sum(bodies.sizes(x.range)))
        for x in vectors
        if isinstance(x.role, role.Vector) and x.role.source not in STATE_VECTORS
    }
    try:
        one, other = (
            np.asarray(Interpreter(program, bodies, kind(mech, *state, given)).result())
            for kind in (Numbers, _Felt)
        )
    except (LinkwiseError, np.linalg.LinAlgError):  # it has no value here
        return False
    return bool(np.abs(one - other).max(initial=0.0) <= SAME * np.abs(one).max(initial=0.0))


class _Felt(Numbers):
    """Numbers with the inertias that hinges feel."""

    def inertia(self, k: int) -> SpatialInertia:
        """M_k."""
        return felt_inertias(self.tree)[k]


class _Chosen(Bodies):
    """Bodies whose hinges are chosen as those with `names`, which they take in turn."""

    names: Sequence[str] = ()

    def operator(self, run: Interpreter, leaf: Symbol) -> list[Any] | None:
        """The blocks of a memoryless operator; None for others."""
        if not isinstance(leaf.role, role.Selection):
            return super().operator(run, leaf)
        named = [self.names[k % len(self.names)] for k in range(self.mech.n_bodies)]
        sizes = zip(named, self.sizes(leaf.range), strict=True)
        return [float(name in leaf.role.hinges) * np.eye(size) for name, size in sizes]


@cache
def _sample() -> Mechanism:
    """Trees on a free base and on the ground, with pins and slides along all axes."""
    b, rng = Builder("felt inertia"), np.random.default_rng(0)
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    parents = {"base": "world", "turn": "base", "slide": "turn", "bend": "slide", "roll": "turn"}
    parents |= {"lift": "world", "last": "lift", "post": "world", "top": "post"}
    hinges = (Free(), Pin(z), Prismatic(x), Pin(y), Pin((-1.0, 0.0, 0.0)), Prismatic(z), Pin(z))
    for (name, parent), hinge in zip(parents.items(), (*hinges, Pin(y), Pin(x)), strict=True):
        place, moments = rng.standard_normal(3), 1.0 + 0.2 * rng.random(3)
        inertia = SpatialInertia.from_com(1.0 + rng.random(), rng.standard_normal(3), moments)
        inboard = Pose.rpy(rng.standard_normal(3), place)
        b.body(name, parent, hinge, inboard=inboard, inertia=inertia, drive=Drive(armature=0.3))
    return b.build()
