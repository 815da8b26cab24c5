"""Watching a grasp while it moves: the instant at which it would slip or break."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError
from linkwise.grasp.contact import LIMITS
from linkwise.grasp.contact_state import contact_forces
from linkwise.grasp.effort import mechanism_of
from linkwise.grasp.grasp import Grasp
from linkwise.grasp.margin import WORDS, GraspMargins, grasp_margins
from linkwise.spatial.array import Array, ArrayLike


def grasp_watch(
    grasp: Grasp,
    *,
    reserve: float = 0.0,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
) -> dict[str, Callable[[float, Array, Array, Array], float]]:
    """Margins for `simulate(..., watch=...)`, one for each limit of each contact.

        motion = lw.simulate(mech, q, v, duration=2.0, watch=lw.grasp.grasp_watch(grasp))
        motion.events[0].name            "left slips"

    The contact forces are those that hold the loops at that instant. They are computed once for
    all margins of an instant.

    Args:
        grasp: The grasp, of a mechanism.
        reserve: What has to be left of each margin [N].
        forces: Forces from outside, those given to `simulate`.
        forces_frame: Axes of those.

    Returns:
        Margins by name, like "left slips", "left breaks", "right twists": functions of the time, q,
        v and tau, negative from the instant on at which the contact would.

    Raises:
        ModelError: No contact has a limit, so that there is nothing to watch.
    """
    mechanism_of(grasp, "grasp_watch")
    last: list[tuple[tuple[bytes, bytes, bytes], GraspMargins]] = []

    def margins(q: Array, v: Array, tau: Array) -> GraspMargins:
        key = (q.tobytes(), v.tobytes(), tau.tobytes())
        if not last or last[0][0] != key:
            found = contact_forces(grasp, q, v, tau, forces=forces, forces_frame=forces_frame)
            last[:] = [(key, grasp_margins(grasp, found))]
        return last[0][1]

    def watched(i: int, k: int) -> Callable[[float, Array, Array, Array], float]:
        def margin(t: float, q: Array, v: Array, tau: Array) -> float:
            return float(margins(q, v, tau).values[i, k]) - reserve

        return margin

    found = dict[str, Callable[[float, Array, Array, Array], float]]()
    for i, (name, contact) in enumerate(grasp.contacts.items()):
        has = np.isfinite(contact.margins(np.zeros(6)))
        for k in np.flatnonzero(has):
            found[f"{name} {WORDS[LIMITS[k]]}"] = watched(i, int(k))
    if not found:
        raise ModelError(
            f"grasp_watch was asked to watch {', '.join(grasp.names)}: two-sided contacts, which "
            "have no limits to watch. A contact that can be lost has `two_sided=False`."
        )
    return found
