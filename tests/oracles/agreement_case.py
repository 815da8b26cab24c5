"""The robots and trees that the tables of comparisons are evaluated on."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tools.corpus import mjcf_roots

import linkwise as lw
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from linkwise.model.derived import replaced
from linkwise.models.random_tree import HINGE_KINDS
from tests.cases import state
from tests.dynamics.oracle_state import tree_in_pinocchio
from tests.oracles.dense_quantity import DenseCase
from tests.oracles.mujoco_case import MujocoCase
from tests.oracles.mujoco_oracle import parse_model, read_model as read_mjcf, read_what_is_there
from tests.oracles.pinocchio_case import PinocchioCase
from tests.oracles.pinocchio_oracle import read_model as read_urdf
from tests.oracles.pinocchio_tree import SEATED

WRITTEN = ("pin", "prismatic", "spherical", "cylindrical", "universal", "gimbal", "translation")
"""Hinges that can be written as joints of MuJoCo, several of them in a row if need be."""

CONSTANT = tuple(kind for kind in SEATED if kind not in ("universal", "gimbal", "screws"))
"""Hinges with a constant map."""

TOOL = lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0))


class NoCaseError(Exception):
    """There is nothing to compare; says why."""


def urdf_case(path: str, *, free: bool) -> PinocchioCase:
    """A URDF in both; what mimics another joint moves on its own in both."""
    mech = lw.load(path, base="free" if free else "fixed")
    mech = mech.without(*(coupling.name for coupling in mech.couplings))
    if not mech.nv:
        raise NoCaseError("nothing moves")
    model = read_urdf(path, free=free)
    links = [node.name for node in mech.nodes if model.existBodyName(node.name)]
    nodes = [mech.bodies[-1].name, mech.bodies[mech.n_bodies // 2].name, *links[-1:]]
    return PinocchioCase(mech, model, *state(mech), nodes=list(dict.fromkeys(nodes)))


def mjcf_case(name: str, path: str, root: str = "") -> MujocoCase:
    """The tree of an MJCF in both: loops and couplings are open in both.

    Args:
        name: Of the file in its package.
        path: Of the file.
        root: A folder that its other files may be in; some of them may be missing there.
    """
    roots = [root] if root else mjcf_roots(name, path)
    mech = replaced(lw.load(path, roots=roots), loops=(), couplings=())
    if not mech.nv:
        raise NoCaseError("nothing moves")
    try:
        model = read_what_is_there(path)[0] if root else read_mjcf(path)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise NoCaseError(f"MuJoCo refuses it: {reason}") from None
    return MujocoCase(mech, model, *state(mech, 4))


def shape(seed: int, kinds: int) -> dict[str, Any]:
    """Options of a random tree: grounded or floating, a chain, branched or bushy."""
    n = kinds if seed % 2 else 2 + seed // 2
    return {"n": n, "floating": seed % 3 == 0, "branching": (0.0, 0.4, 1.0)[seed % 3]}


def pinocchio_tree(seed: int) -> PinocchioCase:
    """A random tree with armature, of every hinge that Pinocchio has.

    Every fourth has constant hinge maps: for others its Coriolis matrix lacks their rate.
    """
    kinds = CONSTANT if seed % 4 == 0 else SEATED
    it = tree_in_pinocchio(seed=seed, hinges=kinds, **shape(seed, len(kinds)))
    nodes = ["tool", it.mech.bodies[it.mech.n_bodies // 2].name]
    return PinocchioCase(it.mech, it.model, it.q, it.v, it.x, nodes=nodes)


def mujoco_tree(seed: int) -> MujocoCase:
    """A random tree of every hinge that MuJoCo has, with armature, written and read by both.

    A free base has none: N v̇ is about the axes that velocities are in, and those are not the same.
    """
    mech = lw.models.random_tree(seed=seed, hinges=WRITTEN, **shape(seed, len(WRITTEN)))
    mech = mech.with_gravity((0.3, -9.0, 2.0)).with_node("tool", mech.bodies[-1].name, TOOL)
    text = write_mjcf(_no_rotor_on_free(mech), Reporter("tree"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.xml"
        path.write_text(text, encoding="utf-8")
        mech = lw.load(path)
    return MujocoCase(mech, parse_model(text), *state(mech, seed))


def _no_rotor_on_free(mech: lw.Mechanism) -> lw.Mechanism:
    bodies = [
        replace(body, drive=lw.Drive()) if isinstance(body.hinge, lw.hinges.Free) else body
        for body in mech.bodies
    ]
    return replaced(mech, bodies=tuple(bodies))


def dense_tree(seed: int) -> DenseCase:
    """A random tree of every kind of hinge there is, with and without armature."""
    options = shape(seed, len(HINGE_KINDS))
    mech = lw.models.random_tree(seed=seed, drives=seed % 4 != 1, **options)
    mech = mech.with_gravity((0.3, -9.0, 2.0)).with_node("tool", mech.bodies[-1].name, TOOL)
    if not mech.nv:
        raise NoCaseError("nothing moves")
    rng = np.random.default_rng(seed)
    return DenseCase(mech, mech.random(rng), mech.random_velocity(rng), ("tool",))
