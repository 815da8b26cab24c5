"""Which joint does a mimic follow in the end?"""

from __future__ import annotations

from linkwise.errors import unknown_name
from linkwise.io.urdf.joint import Joint, Mimic
from linkwise.io.urdf.tree import Robot
from linkwise.io.xml import MAX_SIZE
from linkwise.model.drive import Drive
from linkwise.model.hinges import Locked


def resolve_mimics(robot: Robot) -> dict[str, tuple[str, float, float]]:
    """For each joint that follows another: which, multiplier and offset.

    A joint that follows a fixed one, whose coordinate is zero, is locked at the offset.
    """
    found: dict[str, tuple[str, float, float]] = {}
    followers: dict[str, tuple[str, float, float]] = {}
    for joint in robot.joints.values():
        if joint.mimic is None:
            continue
        source, multiplier, offset = _followed(robot, joint.name, found)
        if robot.joints[source].hinge.nq == 1:
            followers[joint.name] = (source, multiplier, offset)
    for joint in robot.joints.values():
        if joint.mimic is not None and joint.name not in followers:
            source, _, offset = found[joint.name]
            joint.hinge, joint.drive = Locked(joint.hinge, (offset,)), Drive()
            reason = f"joint '{joint.name}' follows the fixed joint '{source}': locked at {offset}"
            robot.reporter.note(joint.mimic.element, "approximate", reason, "motion")
    return followers


def _followed(
    robot: Robot, name: str, found: dict[str, tuple[str, float, float]]
) -> tuple[str, float, float]:
    """The joint that a chain of mimics ends at, with the multiplier and offset from there."""
    chain: dict[str, Mimic] = {}
    source = name
    while source not in found:
        joint = robot.joints[source]
        if joint.mimic is None:
            found[source] = (source, 1.0, 0.0)
            break
        chain[source] = joint.mimic
        source = _source(robot, joint, joint.mimic)
        if source in chain:
            raise joint.mimic.element.error(
                f"joint '{joint.name}' follows itself by way of '{source}'; "
                "let one joint of the circle move by itself"
            )
    for follower, mimic in reversed(chain.items()):  # q = m (m' q'' + o') + o
        end, multiplier, offset = found[mimic.joint]
        m, o = mimic.multiplier * multiplier, mimic.multiplier * offset + mimic.offset
        if not (abs(m) <= MAX_SIZE and abs(o) <= MAX_SIZE):
            raise mimic.element.error(f"along the chain, q = {m:g} q + {o:g}: too large")
        found[follower] = (end, m, o)
    return found[name]


def _source(robot: Robot, joint: Joint, mimic: Mimic) -> str:
    source = robot.joints.get(mimic.joint)
    if source is None:
        reason = unknown_name("joint", mimic.joint, robot.joints, owner="the file")
        raise mimic.element.error(f"joint '{joint.name}' cannot follow it: {reason}")
    if source.hinge.nq > 1:
        raise mimic.element.error(
            f"joint '{source.name}' has {source.hinge.nq} coordinates; "
            "only a joint with one can be followed"
        )
    return source.name
