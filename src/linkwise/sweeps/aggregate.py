"""The interpreter on aggregate bodies: the same statements, with blocks of other sizes.

An aggregate of m bodies is one body with 6 m velocities. Its blocks come from those of the bodies,
with (I - E)⁻¹ = φ taken inside it:

    E_φ(p, g) = E_out φ         H* = φ* H_in* 𝒳         M block diagonal
    a = φ* (a_in + H_in* 𝔵)     b stacked               N = 𝒳* N_in 𝒳

All else, sums and products and recursions over the tree of aggregates, is `interpret.py` unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import JOINT, NODE_PLACE, ONE, PLACE, TREE_JOINT, Space
from linkwise.errors import ClosureError, LoweringError
from linkwise.model.embedded import Embedded, undetermined
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross_force, cross_velocity
from linkwise.sweeps.aggregate_motion import Inside, Joint
from linkwise.sweeps.aggregate_shift import AggregateShift, block_diagonal
from linkwise.sweeps.interpret import Run, placed
from linkwise.sweeps.program import Block, Statement


class AggregateRun(Run):
    """A run over aggregate bodies."""

    itemsize = 8

    @property
    def tree(self) -> Embedded:
        """The mechanism in independent velocities."""
        return cast(Any, self.mech)

    @property
    def full(self) -> Mechanism:
        """The mechanism with all its velocities."""
        return self.tree.mech

    # ------------------------------------------------------------------------------- inside

    @cached_property
    def _insides(self) -> dict[int, Inside]:
        return {}

    @cached_property
    def _joints(self) -> dict[int, Joint]:
        return {}

    def inside(self, g: int) -> Inside:
        """How the hinges of an aggregate move."""
        found = self._insides.get(g)
        if found is None:
            start, stop = self.tree.v_start[g], self.tree.v_start[g + 1]
            state = (self.q, self.v[start:stop])
            options = (self._rigid_shift, self._check_loops, self.itemsize)
            found = self._insides[g] = Inside(self.tree, g, self.joint, *state, *options)
        return found

    def joint(self, k: int) -> Joint:
        """The hinge of a body of the mechanism."""
        found = self._joints.get(k)
        if found is None:
            pose, mech, body = self._body_pose(k), self.full, self.full.bodies[k]
            q_k = self.q[None, mech.q_start[k] : mech.q_start[k + 1]]
            away = body.outboard is not Pose.identity()
            outboard = body.outboard.shift
            H = _first(body.hinge.hinge_map(q_k), 2)

            def bias(v_k: Array) -> Array:
                rate = _first(body.hinge.bias(q_k, v_k[None]), 1)
                return outboard.T @ rate if away else rate

            found = Joint(pose, self._rigid_shift(pose), H @ outboard if away else H, bias)
            self._joints[k] = found
        return found

    def _body_pose(self, k: int) -> Pose:
        """X_pk of a body of the mechanism."""
        start, stop = self.full.q_start[k], self.full.q_start[k + 1]
        return self.full.bodies[k].pose(self.q[start:stop])

    def _rigid_shift(self, pose: Pose) -> Any:
        return pose.shift

    def _check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """Raise where the loops do not tell the dependent velocities."""
        if min(margins) <= 0.0:
            raise ClosureError(f"{undetermined(self.tree, g)}.")

    # ------------------------------------------------------------------------------- spaces

    def sizes(self, space: Space) -> list[int]:
        """Length of each block of a space."""
        groups = self.tree.bodies
        if space is JOINT:
            return [len(x.independent) for x in groups]
        if space is TREE_JOINT:
            return [len(x.velocities) for x in groups]
        if space.block == "node":
            return [12 if space is NODE_PLACE else 6] * len(self.nodes)
        if space is ONE:
            return [1]
        if space is PLACE or space.name == "BODY":
            return [(12 if space is PLACE else 6) * len(x.bodies) for x in groups]
        raise LoweringError(f"the space {space} has no blocks for aggregate bodies.")

    # ------------------------------------------------------------------------------- inputs

    def _load(self, leaf: Symbol) -> None:
        key, groups = leaf.role, self.tree.bodies
        source = getattr(key, "source", "")
        if source == "velocity_bias":  # 𝔵
            self.value[leaf, False] = [self.inside(g).x[:, None] for g in range(len(groups))]
        elif source == "armature_bias":
            self.value[leaf, False] = [self._armature_bias(g) for g in range(len(groups))]
        elif not isinstance(key, role.Memoryless | role.Gather):
            super()._load(leaf)
        elif source == "M":
            M = self.full.inertias.matrix
            self.value[leaf, True] = [block_diagonal([M[k] for k in x.bodies]) for x in groups]
        elif source == "N":
            self.value[leaf, True] = [self._armature(g) for g in range(len(groups))]
        elif source == "velocity_map":  # 𝒳
            self.value[leaf, True] = [self.inside(g).X for g in range(len(groups))]
        elif source in ("A_V", "Delta_phi") or isinstance(key, role.Selection | role.Gather):
            raise LoweringError(
                f"{leaf} has no meaning for aggregate bodies, which {self.tree.name!r} has where "
                "loops and couplings are built in. Evaluate it on the mechanism itself."
            )
        else:
            super()._load(leaf)

    def _armature(self, g: int) -> Array:
        """𝒳* N 𝒳."""
        own = self.full.armature[list(self.tree.bodies[g].velocities)]
        X = self.inside(g).X
        return X.T @ (own[:, None] * X)

    def _armature_bias(self, g: int) -> Array:
        """𝒳* N 𝔵."""
        own = self.full.armature[list(self.tree.bodies[g].velocities)]
        inside = self.inside(g)
        return inside.X.T @ (own * inside.x)[:, None]

    # ------------------------------------------------------------------------------- blocks

    def _pick_off(self, node: int) -> Array:
        """B: from a force at a node to the forces on the bodies of the aggregate."""
        g, found = max(self.node_body[node], 0), self.nodes[node]
        out = np.zeros((6 * len(self.tree.bodies[g].bodies), 6))
        if self.node_body[node] >= 0:  # a node on the ground never moves
            i = self.tree.slot[self.full.body_index[found.body]]
            out[6 * i : 6 * i + 6] = found.pose.shift
        return out

    def _from_nodes(self, blocks: list[Array], body: int, columns: int) -> Array:
        total = np.zeros((self.sizes_of_bodies[body], columns))
        for i, (g, block) in enumerate(zip(self.node_body, blocks, strict=True)):
            if g == body:
                total = total + self._pick_off(i) @ block
        return total

    @cached_property
    def sizes_of_bodies(self) -> list[int]:
        """Velocities of each aggregate."""
        return [6 * len(x.bodies) for x in self.tree.bodies]

    def _block(self, block: Block, here: int, inner: int, outer: int, node: int | None) -> Any:
        if isinstance(block.symbol.role, role.PickOff):
            assert node is not None
            matrix = self._pick_off(node)
            return matrix.T if block.adjoint else matrix
        return super()._block(block, here, inner, outer, node)

    def _dense(self, block: Any) -> Any:
        return block.dense if isinstance(block, AggregateShift) else super()._dense(block)

    # ----------------------------------------------------------------------------- specials

    def _special(self, statement: Statement, k: int) -> Any:
        match statement.special:
            case "phi(q)":
                return self._aggregate_shift(k)
            case "H(q)":
                return self._outward(k, self.inside(k).X).T
            case "a":
                return self._bias_acceleration(k, self._velocities(statement, k))
            case "b":
                V = self._velocities(statement, k)
                M = [self.full.inertias[j] for j in self.tree.bodies[k].bodies]
                forces = [
                    cross_force(x[None], m.apply(x[None]))[0] for x, m in zip(V, M, strict=True)
                ]
                return np.concatenate(forces)[:, None]
            case "B_V":
                V = self._velocities(statement, k)
                M = [self.full.inertias[j] for j in self.tree.bodies[k].bodies]
                return block_diagonal(
                    [_first(m.coriolis_factor(x[None]), 2) for x, m in zip(V, M, strict=True)]
                )
            case "to_W":
                places = self.blocks_of(statement.reads[0][0])[k].reshape(-1, 3, 4)
                return block_diagonal(
                    [
                        blocks(
                            x[:, :3], 0.0 * x[:, :3], skew(x[None, :, 3])[0] @ x[:, :3], x[:, :3]
                        )
                        for x in places
                    ]
                )
            case _:
                raise LoweringError(f"{statement.special} has no meaning for aggregate bodies.")

    def _aggregate_shift(self, g: int) -> AggregateShift:
        group, p = self.tree.bodies[g], self.tree.bodies[g].parent
        steps = tuple(self.joint(k).shift for k in group.bodies)
        if p < 0:
            return AggregateShift(steps, group.inner)
        count = len(self.tree.bodies[self.tree.group_of[p]].bodies)
        return AggregateShift(steps, group.inner, self.tree.slot[p], count)

    def _velocities(self, statement: Statement, g: int) -> Array:
        """Velocity of each body of the aggregate (m, 6)."""
        return self.blocks_of(statement.reads[0][0])[g].reshape(-1, 6)

    def _outward(self, g: int, x: Array, own: Array | None = None) -> Array:
        """φ* (H_in* x + own) inside the aggregate, for x (n, c) and own (6 m, c)."""
        group, found, at = self.tree.bodies[g], list[Array](), 0
        for i, (k, inner) in enumerate(zip(group.bodies, group.inner, strict=True)):
            joint = self.joint(k)
            part = joint.H.T @ x[at : at + len(joint.H)]
            at += len(joint.H)
            if own is not None:
                part = part + own[6 * i : 6 * i + 6]
            found.append(part if inner < 0 else joint.shift.T @ found[inner] + part)
        return np.concatenate(found)

    def _bias_acceleration(self, g: int, V: Array) -> Array:
        """φ* (V × H_in* v + Ḣ_in* v + H_in* 𝔵), the base accelerated against gravity."""
        group, inside, own, at = self.tree.bodies[g], self.inside(g), list[Array](), 0
        up = np.concatenate([np.zeros(3), -self.gravity])[:, None]
        for i, k in enumerate(group.bodies):
            joint = self.joint(k)
            v_k = inside.v[at : at + len(joint.H)]
            at += len(joint.H)
            a_k = cross_velocity(V[i][None], (joint.H.T @ v_k)[None])[0] + joint.bias(v_k)
            a_k = a_k[:, None]
            if group.parent < 0 and group.inner[i] < 0:
                a_k = a_k + joint.shift.T @ up
            own.append(a_k)
        return self._outward(g, inside.x[:, None], np.concatenate(own))

    def _place(self, statement: Statement, k: int, node: int | None = None) -> Array:
        """Poses of the bodies of an aggregate, one below the other; see `interpret.py`."""
        if node is not None:
            return self._node_place(statement, k, node)
        group = self.tree.bodies[k]
        match statement.special:
            case "a_g":
                lifted = list[Array]()
                for j, inner in zip(group.bodies, group.inner, strict=True):
                    above = -self.gravity if inner < 0 else lifted[inner]
                    lifted.append(self.joint(j).pose.rot.T @ above)
                if group.parent >= 0:
                    return np.zeros((6 * len(lifted), 1))
                still = np.zeros(3)
                return np.concatenate([x for up in lifted for x in (still, up)])[:, None]
            case "weight":
                found = list[Array]()
                for j in group.bodies:
                    m = self.full.inertias[j]
                    moment = np.concatenate([m.h, np.reshape(m.mass, (1,))])
                    found.append(np.multiply.outer(-self.gravity, moment).reshape(12, 1))
                return np.concatenate(found)
            case _:
                places = list[Array]()
                for j, inner in zip(group.bodies, group.inner, strict=True):
                    above = self._above(statement, group.parent) if inner < 0 else places[inner]
                    pose = self.joint(j).pose
                    places.append(placed(above, pose.rot, pose.p))
                return np.concatenate([x.reshape(12, 1) for x in places])

    def _above(self, statement: Statement, p: int) -> Array | None:
        if p < 0:
            return None
        return self.blocks_of(statement.target)[self.tree.group_of[p]].reshape(-1, 3, 4)[
            self.tree.slot[p]
        ]

    def _node_place(self, statement: Statement, k: int, node: int) -> Array:
        fixed, above = self.nodes[node].pose, None
        if self.node_body[node] >= 0:
            i = self.tree.slot[self.full.body_index[self.nodes[node].body]]
            above = self.blocks_of(statement.reads[0][0])[k].reshape(-1, 3, 4)[i]
        place = placed(above, fixed.rot, fixed.p)
        if statement.special == "X_B":
            return place.reshape(12, 1)
        return block_diagonal([place[:, :3], place[:, :3]])


def _first(array: Any, axes: int) -> Any:
    """Without the leading axis that formulas need; constants may come without it."""
    return array[0] if np.ndim(array) > axes else array
