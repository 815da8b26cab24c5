"""MuJoCo as an outside reference: its conventions are converted here and nowhere else in tests.

MuJoCo puts the position before the quaternion of a free joint, keeps one entry a body (welded ones
too), and gives inertias about the centre of mass in principal axes.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.convert.libraries import mujoco_layout
from linkwise.model.hinges import Free, Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from tests.dense_kinematics import body_jacobians, mass_matrix
from tests.oracles.mujoco_inertia import inertia_gaps, place, relative


@dataclass(frozen=True, slots=True)
class Agreement:
    """Largest differences between a mechanism and MuJoCo's model of the same file.

    Attributes:
        dof: Degrees of freedom here and there.
        mass: Of everything that moves, relative [1].
        com: Centre of mass [m].
        pose: Pose of every body [1 and m].
        site: Pose of every named site.
        inertia: Of each body mass, centre of mass and trace of the inertia tensor, relative.
        axes: All of the inertia tensor, relative to its largest entry; see `mujoco_inertia`.
        drive: Armature, damping, stiffness, friction and limits, relative.
        bodies: How many bodies were compared.
    """

    dof: tuple[int, int]
    mass: float
    com: float
    pose: float
    site: float
    inertia: float
    axes: float
    drive: float
    bodies: int

    @property
    def worst(self) -> float:
        return max(self.mass, self.com, self.pose, self.site)


@contextmanager
def _elsewhere() -> Iterator[None]:
    """MuJoCo writes a log file into the current folder: let that be a temporary one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def read_model(path: str | os.PathLike[str]) -> Any:
    """MuJoCo's model of a file; raises ValueError where it refuses it."""
    import mujoco

    path = Path(path).resolve()
    with _elsewhere():
        return mujoco.MjModel.from_xml_path(str(path))


def read_what_is_there(path: str | os.PathLike[str]) -> tuple[Any, list[str]]:
    """MuJoCo's model of a file some of whose textures and meshes are missing; and missing meshes.

    Textures have no part in motion and are all left out. Geoms whose mesh file is missing are left
    out, too: compare with a mechanism that loads without it, whose inertias do not depend on it.
    Raises ValueError where MuJoCo refuses the file for another reason.
    """
    path = Path(path).resolve()
    missing = list[str]()
    with _elsewhere():
        while True:
            spec = _without_textures(path)
            for mesh in [mesh for mesh in spec.meshes if mesh.file in missing]:
                for geom in [geom for geom in spec.geoms if geom.meshname == mesh.name]:
                    spec.delete(geom)
                spec.delete(mesh)
            try:
                return spec.compile(), missing
            except ValueError as error:
                match = re.search(r"Error opening file '([^']*)'", str(error))
                names = {mesh.file for mesh in spec.meshes}
                lost = [name for name in names if match and match[1].endswith(name)]
                if not lost:
                    raise
                missing.append(max(lost, key=len))


def _without_textures(path: Path) -> Any:
    import mujoco

    spec: Any = mujoco.MjSpec.from_file(str(path))
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for texture in list(spec.textures):
        spec.delete(texture)
    return spec


def parse_model(text: str) -> Any:
    """MuJoCo's model of MJCF text; raises ValueError where it refuses it."""
    import mujoco

    with _elsewhere():
        return mujoco.MjModel.from_xml_string(text)


def moving(mech: Mechanism, model: Any) -> list[tuple[str, int]]:
    """Hinges and the joints they are, in the order both have; names are checked where given."""
    hinges = [b.hinge_name for b in mech.bodies if not isinstance(b.hinge, Locked)]
    assert len(hinges) == model.njnt, (hinges, model.njnt)
    for i, name in enumerate(hinges):
        assert model.joint(i).name in ("", name), (model.joint(i).name, name)
    return [(name, i) for i, name in enumerate(hinges)]


def to_mujoco(mech: Mechanism, model: Any, q: Array) -> Array:
    """Coordinates (nq,) of a mechanism in MuJoCo's layout."""
    qpos = np.array(model.qpos0)
    for name, i in moving(mech, model):
        ours = q[mech.q_slice(name)]
        if isinstance(mech.hinge(name).hinge, Free):
            ours = np.concatenate([ours[4:], ours[:4]])
        start = model.jnt_qposadr[i]
        qpos[start : start + len(ours)] = ours
    return qpos


def agreement(mech: Mechanism, model: Any, *, samples: int = 3) -> Agreement:
    """Compare everything that both know at random configurations."""
    import mujoco

    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    names = [place(mech, model, k) for k in range(1, model.nbody)]
    sites = {i: site_node(mech, model, i) for i in range(model.nsite) if model.site(i).name}
    com = pose = site = 0.0
    free = [k for k in range(1, model.nbody) if _moves(model, k)]
    mass = float(model.body_mass[free].sum())
    for _ in range(samples):
        q = mech.normalise(rng.uniform(-2.5, 2.5, mech.nq))
        data.qpos[:] = to_mujoco(mech, model, q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for k, name in enumerate(names, start=1):
            ours = mech.pose(q, name)
            pose = max(pose, float(np.abs(ours.rot - data.xmat[k].reshape(3, 3)).max()))
            pose = max(pose, float(np.abs(ours.p - data.xpos[k]).max()))
        for i, name in sites.items():
            ours = mech.pose(q, name)
            site = max(site, float(np.abs(ours.rot - data.site_xmat[i].reshape(3, 3)).max()))
            site = max(site, float(np.abs(ours.p - data.site_xpos[i]).max()))
        if mass > 0.0:
            theirs = model.body_mass[free] @ data.xipos[free] / mass
            com = max(com, float(np.abs(mech.center_of_mass(q) - theirs).max()))
    gap = abs(float(mech.total_mass) - mass) / max(1.0, mass)
    gaps = inertia_gaps(mech, model)
    inertia = max((max(g.mass, g.com, g.trace) for g in gaps), default=0.0)
    axes = max((g.tensor for g in gaps), default=0.0)
    drive = _drive_gap(mech, model)
    dof = (mech.nv, int(model.nv))
    return Agreement(dof, gap, com, pose, site, inertia, axes, drive, len(names))


def site_node(mech: Mechanism, model: Any, i: int) -> str:
    """Name of the node that is MuJoCo's site i; one called as a body is renamed."""
    name = model.site(i).name
    is_body = any(model.body(k).name == name for k in range(model.nbody))
    return f"{name}:site" if is_body else name


def _moves(model: Any, k: int) -> bool:
    while k > 0:
        if model.body_jntnum[k]:
            return True
        k = model.body_parentid[k]
    return False


def _drive_gap(mech: Mechanism, model: Any) -> float:
    import mujoco

    gap = 0.0
    armature, damping, friction = mech.armature, mech.damping, mech.friction
    # What actuators add to the freedoms of their joints, reflected through the gear.
    added = np.zeros((2, model.nv))
    for a in range(model.nu):
        if model.actuator_trntype[a] == mujoco.mjtTrn.mjTRN_JOINT:
            start = model.jnt_dofadr[model.actuator_trnid[a, 0]]
            ratio = model.actuator_gear[a, 0] ** 2
            added[:, start] += (
                ratio * np.ravel(model.actuator_armature)[a],
                ratio * np.ravel(model.actuator_damping)[a],
            )
    for name, i in moving(mech, model):
        body = mech.hinge(name)
        ours, start = mech.v_slice(name), model.jnt_dofadr[i]
        theirs = slice(start, start + body.hinge.nv)
        pairs = [
            (armature[ours], (model.dof_armature + added[0])[theirs]),
            (damping[ours], (np.ravel(model.dof_damping) + added[1])[theirs]),
            (friction[ours], model.dof_frictionloss[theirs]),
            (mech.stiffness[ours], np.full(body.hinge.nv, np.ravel(model.jnt_stiffness)[i])),
        ]
        if body.hinge.nq == 1:
            spring = model.qpos_spring[model.jnt_qposadr[i]]
            pairs.append((body.drive.array("rest", body.hinge), np.array([spring])))
        if model.jnt_limited[i] and body.hinge.nq == 1:
            low, high = body.drive.array("lower", body.hinge), body.drive.array("upper", body.hinge)
            pairs.append((np.concatenate([low, high]), model.jnt_range[i]))
        elif model.jnt_limited[i]:
            pairs.append((np.array([body.drive.max_angle]), model.jnt_range[i][1:]))
        else:
            assert body.drive.lower == -np.inf and body.drive.upper == np.inf
        bound = np.abs(model.jnt_actfrcrange[i]).max() if model.jnt_actfrclimited[i] else np.inf
        pairs.append((body.drive.array("effort", body.hinge), np.full(body.hinge.nv, bound)))
        for a, b in pairs:
            differ = a != b  # infinite limits are equal, their difference is not a number
            scale = np.maximum(np.abs(b[differ]), 1e-300)
            gap = max(gap, float((np.abs(a[differ] - b[differ]) / scale).max(initial=0.0)))
    return gap


def dynamics_gap(mech: Mechanism, model: Any, *, samples: int = 2) -> tuple[float, float]:
    """Mass matrix and gravity forces against MuJoCo's, each relative to its largest entry."""
    import mujoco

    layout = mujoco_layout(mech, model)
    data = mujoco.MjData(model)
    mass_gap = gravity_gap = 0.0
    for seed in range(samples):
        q = mech.normalise(np.random.default_rng(seed).uniform(-2.5, 2.5, mech.nq))
        data.qpos[:] = layout.q_to(q)
        mujoco.mj_forward(model, data)
        theirs = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, theirs)
        # v_mujoco = B v, so that B* M B and B* f are in our velocities.
        B = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)
        ours = mass_matrix(mech, q)
        mass_gap = max(mass_gap, relative(ours, B.T @ theirs @ B))
        J, poses = body_jacobians(mech, q), mech.poses(q)
        down = np.einsum("kji,j->ki", poses.rot, mech.gravity)
        lift = mech.inertias.matrix @ np.concatenate([0.0 * down, -down], axis=-1)[..., None]
        held = np.einsum("kai,ka->i", J, lift[..., 0])
        gravity_gap = max(gravity_gap, relative(held, B.T @ data.qfrc_bias))
    return mass_gap, gravity_gap


def shape_gap(mech: Mechanism, model: Any) -> tuple[float, float, int]:
    """Poses and sizes of the shapes kept, against MuJoCo's geoms; and how many were compared.

    Meshes are left out: MuJoCo moves them to their centres. So are height fields, whose sizes mean
    something else there.
    """
    import mujoco

    data = mujoco.MjData(model)
    q = mech.normalise(np.random.default_rng(0).uniform(-2.5, 2.5, mech.nq))
    data.qpos[:] = to_mujoco(mech, model, q)
    mujoco.mj_kinematics(model, data)
    shapes = {carrier.name: carrier.geometry for carrier in (*mech.bodies, *mech.nodes)}
    pose, size, count = 0.0, 0.0, 0
    for k in range(model.nbody):
        name = "worldbody" if k == 0 else place(mech, model, k)
        geoms = [i for i in range(model.ngeom) if model.geom_bodyid[i] == k]
        for shape, i in zip(shapes.get(name, ()), geoms, strict=True):
            assert shape.name == model.geom(i).name
            if shape.shape in ("mesh", "hfield"):
                continue
            ours = mech.pose(q, name) @ shape.pose
            pose = max(pose, float(np.abs(ours.p - data.geom_xpos[i]).max()))
            pose = max(pose, float(np.abs(ours.rot - data.geom_xmat[i].reshape(3, 3)).max()))
            half = {"box": (0.5, 0.5, 0.5), "capsule": (1, 0.5), "cylinder": (1, 0.5)}
            sizes = np.array(shape.size) * half.get(shape.shape, 1.0)
            size = max(size, float(np.abs(sizes - model.geom_size[i][: len(sizes)]).max()))
            count += 1
    return pose, size, count
