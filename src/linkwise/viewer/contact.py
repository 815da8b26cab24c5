"""Forces of contacts in a recording, as arrows."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.spatial.array import Array
from linkwise.viewer.motion import Motion
from linkwise.viewer.overlay import Arrows


def contact_arrows(
    motion: Motion | None, time: float, scale: float | None, size: float
) -> tuple[Arrows, float]:
    """Forces of contacts at a time, from channels "contact.NAME.force" of a recording.

    Args:
        motion: What is played; None for a pose.
        time: When [s].
        scale: Metres for each newton; by default the largest force is of a good length.
        size: Reach of the mechanism [m].

    Returns:
        The arrows, and the scale that was used.
    """
    none = Arrows(np.zeros((0, 2, 3)), ())
    channels: Any = getattr(getattr(motion, "source", None), "channels", None)
    if motion is None or not channels:
        return none, scale or 0.0
    i = motion.index(time)
    starts, forces, largest = list[Array](), list[Array](), 0.0
    for name in channels:
        if not (name.startswith("contact.") and name.endswith(".force")):
            continue
        values = np.asarray(channels[name].values, float)
        place = channels.get(name[: -len("force")] + "point") if hasattr(channels, "get") else None
        if values.ndim != 2 or values.shape[1] != 3 or place is None:
            continue
        starts.append(np.asarray(place.values, float)[i])
        forces.append(values[i])
        largest = max(largest, float(np.linalg.norm(values, axis=1).max(initial=0.0)))
    if not starts or largest <= 0.0:
        return none, scale or 0.0
    used = scale or 0.25 * size / largest
    begin, arrows = np.array(starts), np.array(forces)
    points = np.stack([begin, begin + used * arrows], axis=1)
    keep = np.linalg.norm(arrows, axis=1) * used > 1e-3 * size
    return Arrows(points[keep], ("contact",) * int(keep.sum())), used
