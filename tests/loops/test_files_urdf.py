"""Loops of every kind from URDF files, against Pinocchio's `constraintDynamics`.

Pinocchio has constraints for welds and balls only. For any other hinge the loop is cut elsewhere
there: the body at node b is split into two halves, one of which hangs on node a by the hinge of
the loop, and the halves are welded. It is the same mechanism, and none of our blocked directions
is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.info import as_json, as_text
from linkwise.model.body import Body, Loop, Node
from linkwise.spatial.array import Array
from tests.io.urdf_text import joint, link, read, robot
from tests.loops.dense_kkt import dense_motion
from tests.loops.pinocchio_loops import loops_in_pinocchio
from tests.oracles.pinocchio_tree import seated

AXES = ("0 1 0", "0.3 0 1", "1 0.2 0", "0 1 0.5", "0.5 0 1", "1 0 0")
INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 0.15"/><mass value="{0}"/><inertia ixx="0.03" ixy="0.001" '
    'ixz="0.002" iyy="0.04" iyz="-0.001" izz="0.02"/></inertial>'
)


def arm(prefix: str, links: int, place: str) -> list[str]:
    """A chain of links of 0.4 m on the root, joint axes in all directions."""
    text, parent = list[str](), "base"
    for k in range(links):
        name = f"{prefix}{k}"
        at = place if k == 0 else 'xyz="0.1 0 0.38" rpy="0.2 0.3 -0.5"'
        ours = f"<origin {at}/>"
        ours += f'<axis xyz="{AXES[k % len(AXES)]}"/>'
        text += [link(name, INERTIAL.format(0.5 + 0.2 * k))]
        text += [joint(f"{name}_joint", "continuous", parent, name, ours)]
        parent = name
    return text


LEFT = arm("l", 4, 'xyz="0 0 0"')
RIGHT = arm("r", 3, 'xyz="0.4 0.5 0" rpy="0 0 -2"')
END = 'xyz="0.05 0 0.35" rpy="0.4 -0.3 0.2"'


def loop(name: str, kind: str, inside: str = "", ends: tuple[str, str] = ("l3", "r2")) -> str:
    extra = {"helical": ' pitch="0.05"', "rolling_ball": ' radius="0.3"'}.get(kind, "")
    return (
        f'<loop_joint name="{name}" type="{kind}"{extra}><link1 link="{ends[0]}" {END}/>'
        f'<link2 link="{ends[1]}" xyz="0 0.05 0.4" rpy="0.1 0.2 0.9"/>{inside}</loop_joint>'
    )


def two_arms(*loops: str) -> str:
    return robot(link("base", ""), *LEFT, *RIGHT, *loops)


AXIS = '<axis xyz="0.6 0 0.8"/>'
SCREWS = (
    '<screw value="0 0 1 0.1 0 0"/><screw value="0.6 0.8 0 0 0 0.2"/><screw value="1 0 0 0 0 0"/>'
)
KINDS = {
    "fixed": "",
    "revolute": AXIS,
    "prismatic": AXIS,
    "cylindrical": AXIS,
    "helical": AXIS,
    "planar": AXIS,
    "universal": AXIS + '<axis xyz="0.1 1 0"/>',
    "gimbal": AXIS + '<axis xyz="0.1 1 0"/><axis xyz="1 0 0.5"/>',
    "spherical": "",
    "translation": "",
    "screws": SCREWS,
}
"""The types of `<loop_joint>` that are motions of a joint in Pinocchio too, with what they take."""

SEVERAL = {
    "two independent loops": robot(
        link("base", ""),
        *arm("a", 4, 'xyz="0 0 0"'),
        *arm("b", 5, 'xyz="0.4 0.5 0" rpy="0 0 -2"'),
        loop("one", "spherical", ends=("a3", "base")),
        loop("two", "universal", AXIS + '<axis xyz="0 1 0"/>', ends=("b4", "base")),
    ),
    "nested loops": robot(
        link("base", ""),
        *arm("a", 6, 'xyz="0 0 0"'),
        *arm("b", 5, 'xyz="0.4 0.5 0" rpy="0 0 -2"'),
        loop("inner", "spherical", ends=("a2", "b1")),
        loop("outer", "universal", AXIS + '<axis xyz="0 1 0"/>', ends=("a5", "b4")),
    ),
    "loop to the ground": robot(
        link("base", ""),
        *arm("a", 6, 'xyz="0 0 0"'),
        loop("one", "cylindrical", AXIS, ("a5", "base")),
    ),
    "from the ground": robot(
        link("base", ""), *arm("a", 6, 'xyz="0 0 0"'), loop("one", "planar", AXIS, ("base", "a5"))
    ),
}


def halved(mech: lw.Mechanism) -> lw.Mechanism:
    """Each loop as a weld of two halves of a body, one of which hangs on the loop's hinge.

    The ground has no halves: what is welded to it may have any inertia.
    """
    bodies, loops = list(mech.bodies), list[Loop]()
    for closure in mech.loops:
        if not closure.hinge.nv:
            loops.append(closure)
            continue
        a, b, name = mech.node(closure.node_a), mech.node(closure.node_b), f"{closure.name}.half"
        half = lw.SpatialInertia.solid_sphere(1.0, 0.1)
        if b.body != "world":
            k = mech.body_index[b.body]
            full = bodies[k].inertia
            half = lw.SpatialInertia(0.5 * full.mass, 0.5 * full.h, 0.5 * full.J)
            bodies[k] = replace(bodies[k], inertia=half)
        bodies.append(Body(name, a.body, closure.hinge, name, a.pose, b.pose.inverse(), half))
        end = "ground" if b.body == "world" else b.body
        loops.append(Loop(closure.name, name, end, lw.hinges.Locked()))
    nodes = (*mech.nodes, Node("ground", "world"))
    return lw.Mechanism(mech.name, tuple(bodies), nodes, tuple(loops), gravity=mech.gravity)


def closed_state(mech: lw.Mechanism, seed: int) -> tuple[Array, Array, Array]:
    """A state in which all loops hold: the first random one from which projection gets there.

    From far away it need not, and rounding decides whether it does.
    """
    rng = np.random.default_rng(seed)
    tries = (lw.loops.project_position(mech, 0.4 * rng.standard_normal(mech.nq)) for _ in range(20))
    q = next(result.q for result in tries if result.closed)
    v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-12
    assert np.abs(v).max() > 0.1
    return q, v, rng.standard_normal(mech.nv)


def inside(mech: lw.Mechanism, q: Array, v: Array) -> tuple[list[Array], list[Array]]:
    """Positions and velocities inside the hinges of the loops: V_ab = H* W."""
    theta, W = lw.loops.loop_coordinates(mech, q), list[Array]()
    for closure in mech.loops:
        X_ab = mech.pose(q, closure.node_a).inverse() @ mech.pose(q, closure.node_b)
        V_a, V_b = (
            np.zeros(6) if mech.node(n).body == "world" else lw.node_velocity(mech, q, v, n)
            for n in (closure.node_a, closure.node_b)
        )
        H, V_ab = closure.hinge.hinge_map(theta[closure.name]), V_b - X_ab.shift_velocity(V_a)
        W.append(np.linalg.lstsq(H.T, V_ab, rcond=None)[0] if len(H) else np.zeros(0))
        if len(H):
            assert np.abs(H.T @ W[-1] - V_ab).max() < 1e-11  # the hinge allows this motion
        else:
            assert np.abs(V_ab).max() < 1e-11
    return [theta[x.name] for x in mech.loops], W


def check(mech: lw.Mechanism, seeds: Sequence[int]) -> None:
    full = seated(halved(mech))
    for seed in seeds:
        q, v, tau = closed_state(mech, seed)
        theta, W = inside(mech, q, v)
        there = loops_in_pinocchio(
            full,
            full.normalise(np.concatenate([q, *theta])),
            np.concatenate([v, *W]),
            np.concatenate([tau, *(0.0 * w for w in W)]),
        )
        theirs = there.vdot((1e-14, 1e-8, 100))[: mech.nv]
        ours = lw.forward_dynamics(mech, q, v, tau)
        scale = max(np.abs(theirs).max(), np.abs(lw.forward_dynamics(mech, q, v, tau)).max())
        assert np.abs(ours - theirs).max() < 1e-9 * scale


@pytest.mark.few(4)
@pytest.mark.oracle
@pytest.mark.parametrize(
    "kind",
    [x if x != "screws" else pytest.param(x, marks=pytest.mark.prove) for x in KINDS],  # 10 s
)
def test_loops_of_every_kind(kind: str):
    pytest.importorskip("pinocchio")
    mech = read(two_arms(loop("c", kind, KINDS[kind])))
    assert len(mech.load_report.affecting("motion")) == 0
    check(mech, [0])


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_several_loops_and_the_ground(name: str):
    pytest.importorskip("pinocchio")
    check(read(SEVERAL[name]), [0])


@pytest.mark.parametrize("kind", ["rolling_ball", "soft_finger", "point_on_plane"])
def test_contacts_against_the_dense_system(kind: str):
    """No joints of Pinocchio's: a ball that rolls (not holonomic), a finger, a foot that slides."""
    mech = read(two_arms(loop("c", kind, "" if kind == "rolling_ball" else AXIS)))
    q, v, tau = closed_state(mech, 0)
    theta = lw.loops.loop_coordinates(mech, q)
    dense = dense_motion(mech, q, v, tau, theta).vdot
    ours = lw.forward_dynamics(mech, q, v, tau)
    assert np.abs(ours - dense).max() < 1e-9 * np.abs(dense).max()


def test_info_says_whether_loops_are_closed_at_neutral():
    text = "\n".join(as_text(read(two_arms(loop("c", "spherical")))))
    assert re.search(r"c +c\.a +c\.b +spherical +3 +open by 1\.21 m, 0 rad", text)
    assert '3 rows; held by default, loops="open" leaves them open' in text
    closed = as_json(lw.models.four_bar())["loops"][0]["open_at_neutral"]
    assert closed == [0.0, 0.0]
