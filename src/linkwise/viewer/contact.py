"""Forces of contacts in a recording, as arrows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from linkwise.spatial.array import Array
from linkwise.viewer.motion import Motion
from linkwise.viewer.overlay import Arrows

CHANNEL = re.compile(r"contact\.(?P<name>.+)\.force")
"""Forces on nodes (k, 3), in world axes [N]; what it is `about` says on which node."""

NODE = re.compile(r"\bon '(?P<node>.+)'")


def contact_arrows(
    motion: Motion | None, time: float, scale: float | None, size: float
) -> tuple[Arrows, float]:
    """Forces of contacts at a time, from channels "contact.NAME.force" of a recording.

    Args:
        scale: Metres for each newton; by default the largest force is of a good length.

    Returns:
        The arrows, from the nodes that are pushed, and the scale that was used.
    """
    none = Arrows(np.zeros((0, 2, 3)), ())
    pushed = [] if motion is None else _pushed(motion)
    largest = max(
        (float(np.linalg.norm(f, axis=1).max(initial=0.0)) for _, f in pushed), default=0.0
    )
    if motion is None or largest <= 0.0:
        return none, scale or 0.0
    used = scale or 0.25 * size / largest
    i = motion.index(time)
    q = motion.at(time)[0]  # forces are those of a record, feet are where they are seen
    starts = np.array([motion.mech.pose(q, node).p for node, _ in pushed])
    forces = np.array([values[i] for _, values in pushed])
    keep = used * np.linalg.norm(forces, axis=1) > 1e-3 * size
    points = np.stack([starts, starts + used * forces], axis=1)[keep]
    return Arrows(points, ("contact",) * len(points)), used


def _pushed(motion: Motion) -> list[tuple[str, Array]]:
    """Nodes that contacts push, and the forces on them (k, 3)."""
    channels: Any = getattr(motion.source, "channels", None) or {}
    known = {*motion.mech.node_index, *motion.mech.body_index}
    pushed = list[tuple[str, Array]]()
    for name in channels:
        match = CHANNEL.fullmatch(str(name))
        if match is None:
            continue
        about = NODE.search(str(channels[name].about))
        node = match["name"] if about is None else about["node"]
        values = np.asarray(channels[name].values, dtype=np.float64)
        if node in known and values.shape == (len(motion.t), 3):
            pushed.append((node, values))
    return pushed
