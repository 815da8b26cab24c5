"""A robot in one state here and in MuJoCo, and what MuJoCo says about it.

Its velocities are T(q) v: the linear part of a free joint is in world axes there. What is not the
tree is switched off: contacts, equalities, limits, actuators, springs, damping, fluids.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from tests.oracles.compared_quantity import homogeneous
from tests.oracles.mujoco_inertia import place, same_inertias
from tests.oracles.mujoco_oracle import _moves, moving, site_node


def tree_alone(model: Any) -> None:
    """Leave nothing of a model but its tree."""
    import mujoco

    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONSTRAINT, off.mjDSBL_CONTACT, off.mjDSBL_ACTUATION):
        model.opt.disableflags |= bit
    for name in ("dof_damping", "jnt_stiffness", "tendon_stiffness", "tendon_damping"):
        getattr(model, name)[:] = 0.0
    model.body_gravcomp[:] = 0.0
    model.tendon_armature[:] = 0.0
    model.opt.density = model.opt.viscosity = 0.0


@dataclass
class MujocoCase:
    """A robot in one state in both; x are joint forces, y joint accelerations."""

    mech: lw.Mechanism
    model: Any
    q: Array
    v: Array
    x: Array
    """Attributes found: `given`, the bodies that got our inertia, within the bounds of
    `mujoco_inertia`; `before` and `after` are mass matrices."""

    def __post_init__(self) -> None:
        import mujoco

        tree_alone(self.model)
        self.layout = lw.convert.mujoco_layout(self.mech, self.model)
        self.data = mujoco.MjData(self.model)
        mech, rng = self.mech, np.random.default_rng(3)
        self.T = np.stack([self.layout.v_to(self.q, e) for e in np.eye(mech.nv)], axis=-1)
        self.T_dot = np.zeros_like(self.T)
        for name, i in moving(mech, self.model):
            body = mech.hinge(name)
            if isinstance(body.hinge, lw.hinges.Free):  # d/dt rot v = rot (ω × v)
                first, ours = int(self.model.jnt_dofadr[i]), mech.v_slice(name)
                rot, spin = mech.pose(self.q, body.name).rot, self.v[ours][:3]
                self.T_dot[first : first + 3, ours.start + 3 : ours.stop] = rot @ skew(spin)
        self.y = rng.standard_normal(mech.nv)
        self.number = {
            place(mech, self.model, k): k
            for k in range(1, self.model.nbody)
            if place(mech, self.model, k) in mech.body_index
        }
        self.bodies = [body.name for body in mech.bodies if body.name in self.number]
        self.rows = [mech.body_index[name] for name in self.bodies]
        sites = {
            site_node(mech, self.model, i): i
            for i in range(self.model.nsite)
            if self.model.site(i).name and _moves(self.model, int(self.model.site_bodyid[i]))
        }
        self.sites = dict(list(sites.items())[-1:])
        picked = [self.bodies[-1], self.bodies[len(self.bodies) // 2], *self.sites]
        self.nodes = list(dict.fromkeys(picked))
        self.f = {name: rng.standard_normal(6) for name in self.nodes}
        self.before = self.run(self.x, self.v).mass_matrix()
        self.given = same_inertias(self.mech, self.model)
        self.after = self.run(self.x, self.v).mass_matrix()

    def run(self, tau: Array, v: Array, forces: Array | None = None) -> MujocoCase:
        """Forward, driven by joint forces there."""
        import mujoco

        data = self.data
        data.qpos[:], data.qvel[:] = self.layout.q_to(self.q), self.T @ v
        data.qfrc_applied[:] = self.T @ tau + (0.0 if forces is None else forces)
        mujoco.mj_forward(self.model, data)
        mujoco.mj_rnePostConstraint(self.model, data)
        mujoco.mj_subtreeVel(self.model, data)
        return self

    def driven(self, vdot: Array) -> MujocoCase:
        """Inverse, with these joint accelerations."""
        import mujoco

        self.run(self.x, self.v)
        self.data.qacc[:] = self.T @ vdot + self.T_dot @ self.v
        mujoco.mj_inverse(self.model, self.data)
        mujoco.mj_rnePostConstraint(self.model, self.data)
        return self

    @property
    def vdot(self) -> Array:
        """Joint accelerations as they are there."""
        return self.T.T @ (np.array(self.data.qacc) - self.T_dot @ self.v)

    def place_of(self, name: str) -> tuple[int, Array, Array]:
        """Body, rotation and position of a node."""
        if name in self.sites:
            i = self.sites[name]
            rot, p = self.data.site_xmat[i].reshape(3, 3), self.data.site_xpos[i]
            return int(self.model.site_bodyid[i]), np.array(rot), np.array(p)
        k = self.number[name]
        return k, np.array(self.data.xmat[k].reshape(3, 3)), np.array(self.data.xpos[k])

    def poses(self, names: list[str]) -> Array:
        self.run(self.x, self.v)
        return np.stack([homogeneous(*self.place_of(name)[1:]) for name in names])

    def relative(self) -> Array:
        first, *rest = self.poses(self.nodes)
        return np.stack([np.linalg.inv(first) @ other for other in rest])

    def jacobian(self, frame: str = "world", *, rate: bool = False) -> Array:
        import mujoco

        self.run(self.x, self.v)
        of, out = mujoco.mj_jacDot if rate else mujoco.mj_jac, list[Array]()
        for name in self.nodes:
            k, rot, p = self.place_of(name)
            J = np.zeros((2, 3, self.model.nv))
            of(self.model, self.data, J[1], J[0], p, k)
            out.append(
                np.kron(np.eye(2), rot.T) @ J.reshape(6, -1)
                if frame == "node"
                else J.reshape(6, -1)
            )
        return np.concatenate(out)

    def jacobian_rate(self) -> Array:
        """d/dt (J T) = J̇ T + J Ṫ."""
        return self.jacobian(rate=True) @ self.T + self.jacobian() @ self.T_dot

    def object(self, function: str, name: str, *, local: bool) -> Array:
        import mujoco

        kind, six = mujoco.mjtObj.mjOBJ_XBODY, np.zeros(6)
        number = self.number.get(name, -1)
        if name in self.sites:
            kind, number = mujoco.mjtObj.mjOBJ_SITE, self.sites[name]
        getattr(mujoco, function)(self.model, self.data, kind, number, six, int(local))
        return six

    def velocities(self, names: list[str], *, local: bool) -> Array:
        self.run(self.x, self.v)
        return np.stack([self.object("mj_objectVelocity", n, local=local) for n in names])

    def accelerations(self, names: list[str], *, local: bool, classical: bool = True) -> Array:
        """Without the acceleration that stands for gravity; spatial ones without ω × v."""
        out = list[Array]()
        for name in names:
            six = self.object("mj_objectAcceleration", name, local=local)
            V = self.object("mj_objectVelocity", name, local=local)
            _, rot, _ = self.place_of(name)
            six[3:] += (rot.T if local else np.eye(3)) @ self.mech.gravity
            if not classical:
                six[3:] -= np.cross(V[:3], V[3:])
            out.append(six)
        return np.stack(out)

    def hinge_forces(self) -> Array:
        """cfrc_int, which is about the centre of mass of the tree, in world axes."""
        out = list[Array]()
        for name in self.bodies:
            k, rot, p = self.place_of(name)
            moment, force = np.split(np.array(self.data.cfrc_int[k]), 2)
            moment = moment + np.cross(self.center(k) - p, force)
            out.append(np.concatenate([rot.T @ moment, rot.T @ force]))
        return np.stack(out)

    def center(self, k: int) -> Array:
        """The point that spatial vectors of body k are about."""
        return np.array(self.data.subtree_com[self.model.body_rootid[k]])

    def composite(self) -> Array:
        """crb: ten numbers about the centre of mass of the tree, in world axes."""
        self.run(self.x, self.v)
        out = list[Array]()
        for name in self.bodies:
            k, rot, p = self.place_of(name)
            xx, yy, zz, xy, xz, yz, *h, mass = np.array(self.data.crb[k])
            J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            back = (Pose(rot, p).inverse() @ Pose(np.eye(3), self.center(k))).shift
            out.append(back @ lw.SpatialInertia(mass, np.array(h), J).matrix @ back.T)
        return np.stack(out)

    def mass_matrix(self) -> Array:
        import mujoco

        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        return self.T.T @ full @ self.T

    def solved(self, forces: Array) -> Array:
        """M⁻¹ by columns of forces here."""
        import mujoco

        self.run(self.x, self.v)
        right = np.ascontiguousarray((self.T @ forces).T)
        out = np.zeros_like(right)
        mujoco.mj_solveM(self.model, self.data, out, right)
        return self.T.T @ out.T

    def pushed(self) -> Array:
        """Forces at nodes, in world axes, as joint forces there."""
        import mujoco

        self.run(self.x, self.v)
        out = np.zeros(self.model.nv)
        for name, six in self.f.items():
            k, _, p = self.place_of(name)
            mujoco.mj_applyFT(self.model, self.data, six[3:], six[:3], p, k, out)
        return out

    @cached_property
    def roots(self) -> list[int]:
        """Bodies that move while what carries them does not."""
        parent = self.model.body_parentid
        every = [k for k in range(1, self.model.nbody) if _moves(self.model, k)]
        return [k for k in every if not _moves(self.model, int(parent[k]))]

    def masses(self) -> Array:
        return np.array(self.model.body_subtreemass[self.roots])

    def com(self) -> Array:
        return self.masses() @ self.data.subtree_com[self.roots] / self.masses().sum()

    def com_velocity(self) -> Array:
        return self.masses() @ self.data.subtree_linvel[self.roots] / self.masses().sum()

    def com_jacobian(self) -> Array:
        import mujoco

        total = np.zeros((3, self.model.nv))
        for k, mass in zip(self.roots, self.masses(), strict=True):
            jac = np.zeros((3, self.model.nv))
            mujoco.mj_jacSubtreeCom(self.model, self.data, jac, k)
            total += mass * jac
        return total @ self.T / self.masses().sum()

    def momentum(self) -> Array:
        self.run(self.x, self.v)
        total, center = np.zeros(6), self.com()
        for k, mass in zip(self.roots, self.masses(), strict=True):
            linear = mass * np.array(self.data.subtree_linvel[k])
            arm = self.data.subtree_com[k] - center
            total[:3] += self.data.subtree_angmom[k] + np.cross(arm, linear)
            total[3:] += linear
        return total

    def momentum_matrix(self) -> Array:
        import mujoco

        self.run(self.x, self.v)
        total, center = np.zeros((6, self.model.nv)), self.com()
        for k, mass in zip(self.roots, self.masses(), strict=True):
            angular, jac = np.zeros((2, 3, self.model.nv))
            mujoco.mj_angmomMat(self.model, self.data, angular, k)
            mujoco.mj_jacSubtreeCom(self.model, self.data, jac, k)
            total[:3] += angular + skew(self.data.subtree_com[k] - center) @ (mass * jac)
            total[3:] += mass * jac
        return total @ self.T

    def momentum_bias(self) -> Array:
        """What the ground and gravity do together while v̇ = 0."""
        self.driven(0.0 * self.y)
        total, center = np.zeros(6), self.com()
        for k in self.roots:
            moment, force = np.split(np.array(self.data.cfrc_int[k]), 2)
            total[:3] += moment + np.cross(self.center(k) - center, force)
            total[3:] += force
        total[3:] += self.masses().sum() * self.mech.gravity
        return total

    def potential(self) -> float:
        """Without the bodies that do not move."""
        import mujoco

        self.run(self.x, self.v)
        mujoco.mj_energyPos(self.model, self.data)
        still = [k for k in range(1, self.model.nbody) if not _moves(self.model, k)]
        held = -self.model.body_mass[still] @ self.data.xipos[still] @ self.mech.gravity
        return float(self.data.energy[0] - held)

    def kinetic(self) -> float:
        import mujoco

        self.run(self.x, self.v)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy[1])
