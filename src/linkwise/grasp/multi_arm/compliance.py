"""J 𝓜⁻¹ J* of the arms at their contacts, and Ω.

Arms are trees of their own: J 𝓜⁻¹ J* has a block for each arm, and an arm with one contact needs
nothing but the recursion (6.10) along it. Arms with several contacts, the hands of a torso, have
blocks between their contacts as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.grasp.multi_arm.contact import Contacts, between
from linkwise.grasp.multi_arm.evaluation import Evaluation
from linkwise.spatial.array import Array


def omega(of: Evaluation, at: Contacts, name: str) -> Array:
    """Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*   (4.9c), in the frames of the contacts.

    Args:
        of: The evaluation.
        at: Its contacts.
        name: What gives J 𝓜⁻¹ J*: "general_compliance", or "compliance" for (6.11d), which is
            (6.8) to (6.10) where each arm has one contact.
    """
    held = between(at.E_object, of.at_grasps("general_compliance"))
    blocks = own_blocks(of, at) if name == "compliance" else None
    if blocks is None:
        return held + between(at.E_arm, of.at_tips(name))
    for i in range(blocks.shape[1]):
        six = slice(6 * i, 6 * i + 6)
        held[:, six, six] += blocks[:, i]
    return held


def own_blocks(of: Evaluation, at: Contacts) -> Array | None:
    """Λ_i(0) of each contact (batch, contacts, 6, 6), if each arm has one contact, else None.

    Λ_i(0) = φ*(1, 0) Λ_i(1) φ(1, 0) with Λ_i(1) of the last body: (6.10).
    """
    mech, parts = of.mech, of.parts
    if len(parts.arms) < len(parts.tips):
        return None
    nodes = [mech.node(name) for name in parts.tips]
    at_bodies = of.run("own_compliance", rows=[node.body for node in nodes])
    shift = np.stack([node.pose.shift for node in nodes])
    carry = at.E_arm @ np.swapaxes(shift, -1, -2)
    return carry @ at_bodies.reshape(*carry.shape) @ np.swapaxes(carry, -1, -2)


def of_arms(of: Evaluation, at: Contacts) -> dict[str, Array]:
    """J 𝓜⁻¹ J* (batch, 6 k, 6 k) of each arm with its k contacts, by the arm's name."""
    blocks = own_blocks(of, at)
    if blocks is not None:
        return {arm.name: blocks[:, arm.contacts[0]] for arm in of.parts.arms}
    whole = between(at.E_arm, of.at_tips("general_compliance"))
    found = dict[str, Array]()
    for arm in of.parts.arms:
        columns = columns_of(arm.contacts)
        found[arm.name] = whole[:, columns[:, None], columns]
    return found


def columns_of(contacts: Sequence[int]) -> NDArray[np.int64]:
    """Where the six numbers of some contacts stand among all."""
    return np.concatenate([np.arange(6 * i, 6 * i + 6) for i in contacts])
