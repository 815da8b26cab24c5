"""Whether hinges move by the rules that errors on their manifold need.

    q ⊕ d = q + N d + O(d²),    (q ⊕ d) ⊖ q = d,    rank N = coordinates that are independent

with q̇ = N v. Linkwise's own hinges do. A hinge of a user is tried at some configurations.
"""

from __future__ import annotations

import numpy as np

from linkwise.codegen.stages import MOST_BODIES
from linkwise.errors import ModelError
from linkwise.model.hinges.custom import CustomHinge
from linkwise.model.hinges.hinge import Hinge, qdot_map
from linkwise.model.hinges.modified import Reversed, is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import is_traceable

STEP = 1e-4
"""Length of the displacements [rad or m] with which hinges of a user are tried."""

NEAR = 0.01
"""Largest error of q ⊕ d and of ⊖, as a part of d: what is of higher order in d is below."""


def check_hinges(mech: Mechanism) -> None:
    """Raise unless errors of configurations, and their derivatives, exist."""
    if mech.n_bodies > MOST_BODIES:
        raise ModelError(
            f"a filter of {mech.name!r} was requested; it has {mech.n_bodies} bodies, and "
            f"derivatives of steps are straight code for at most {MOST_BODIES}. Lock joints that "
            "do not matter (mech.lock) and merge the bodies behind them (merge_locked)."
        )
    for body in mech.bodies:
        hinge = body.hinge.hinge if isinstance(body.hinge, Reversed) else body.hinge
        if _is_known(hinge):
            continue
        problem = _problem(hinge)
        if problem:
            raise ModelError(
                f"a filter of {mech.name!r} was requested; hinge {body.hinge_name!r} is "
                f"{body.hinge.kind}, {problem}"
            )
    if not is_traceable(mech):
        names = [x.hinge_name for x in mech.bodies if not is_plain(x.hinge)]
        raise ModelError(
            f"a filter of {mech.name!r} was requested; one of the hinges {', '.join(names)} has an "
            "`integrate` that cannot be differentiated. Write it with + - * / and NumPy's sqrt, "
            "sin and cos on arrays, without branches."
        )


def _is_known(hinge: Hinge) -> bool:
    return type(hinge).__module__.startswith("linkwise.") or isinstance(hinge, CustomHinge)


def _problem(hinge: Hinge) -> str:
    """What a hinge of a user lacks, and what to do; "" where nothing is missing."""
    hull, rng = hinge.hull, np.random.default_rng(0)
    independent = hinge.nq - (hinge.quaternion is not None)
    if hull.nv != independent:
        return (
            f"which has {hull.nv} velocities and {independent} independent coordinates. Give it "
            "the property `hull`: the holonomic hinge with the same coordinates and as many "
            "velocities, along which errors are."
        )
    endless, off = np.full(hinge.nq, np.inf), list[tuple[bool, float, float]]()
    for _ in range(5):
        q = hull.random(rng, -endless, endless)
        N, d = qdot_map(hull, q), STEP * rng.standard_normal(hull.nv)
        there, way = hull.integrate(q, d), N @ d
        along = np.linalg.norm(there - q - way) / np.linalg.norm(way)
        back = np.linalg.norm(hull.difference(q, there) - d) / np.linalg.norm(d)
        off.append((bool(np.linalg.matrix_rank(N) < independent), float(along), float(back)))
    lost, along, back = np.min(off, axis=0)  # a few of the configurations may be singular
    if lost:
        return "whose `qdot` does not reach all directions of its coordinates. Mend it."
    if not along < NEAR:
        return (
            "whose `integrate` does not move along its `qdot`. Define both: q after v was held, "
            "and q̇ of v."
        )
    if not back < NEAR:
        return (
            "whose `difference` is not the way back of its `integrate`. Define it so that "
            "difference(q, integrate(q, v)) is v."
        )
    return ""
