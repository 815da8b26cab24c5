"""A mechanism with loops and couplings in one state here and in MuJoCo: there, equalities.

MuJoCo holds an equality by a force that gives way: its solver minimises

    ½ (a - a_f)* M (a - a_f) + ½ Σ_i (J_i a - aref_i)² / R_i

where aref is -J̇ v in a state in which the equalities hold, and R at least 1e-4 of the diagonal of
J M⁻¹ J*. (Of a joint equality with a polynomial MuJoCo leaves J̇ v out; it is taken from differences
of its J here.) Three views of the same state, from the farthest to MuJoCo's own:

    jacobian            its rows J, of our velocities
    rigid               M a + C = τ + J* λ, J a + J̇ v = 0 with its M, C, J, J̇ v, solved densely
    solved(softness)    its own Newton solver, with R scaled down: rigid in the limit

The state is found by MuJoCo alone, by Gauss and Newton on its residuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.convert.libraries import mujoco_layout
from linkwise.spatial.array import Array
from tests.oracles.mujoco_inertia import same_inertias

RANK = 1e-7
"""Rows whose singular value is below this part of the largest say nothing new: planar linkages that
are closed in space repeat themselves, up to the six or seven digits of a file."""


SOFTNESS = 1e-9
"""R is scaled by this for MuJoCo's solver to be rigid; the result is off by about this times the
condition of J M⁻¹ J*, and by what its Newton steps round."""


def equalities_alone(model: Any) -> None:
    """Leave nothing of a model but its tree and its equalities."""
    import mujoco

    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_FRICTIONLOSS):
        model.opt.disableflags |= bit
    # Without islands the solver reads efc_D, which `solved` sets.
    model.opt.disableflags |= off.mjDSBL_ACTUATION | off.mjDSBL_ISLAND | off.mjDSBL_WARMSTART
    for name in ("dof_damping", "jnt_stiffness", "tendon_stiffness", "tendon_damping"):
        getattr(model, name)[:] = 0.0
    model.body_gravcomp[:] = 0.0
    model.tendon_armature[:] = 0.0
    model.opt.density = model.opt.viscosity = 0.0
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.iterations, model.opt.tolerance = 100, 0.0
    model.eq_solimp[:, :3] = (0.9999, 0.9999, 1e-3)  # as stiff as MuJoCo lets it be
    model.eq_solref[:] = (
        1.0,
        1.0,
    )  # a residual of 1e-15 is pulled back slowly, not by 1e8 times it


@dataclass
class EqualityCase:
    """One state in both, with equalities that hold, driven by joint forces.

    Attributes:
        mech: Ours.
        model: Theirs, of the same file; changed to have nothing but tree and equalities.
        seed: Of the state.
        spread: How far from the pose in the file to look for it [rad or m].
    """

    mech: lw.Mechanism
    model: Any
    seed: int = 0
    spread: float = 0.3

    def __post_init__(self) -> None:
        import mujoco

        self.model = self.model.__copy__()
        equalities_alone(self.model)
        same_inertias(self.mech, self.model)
        self.data = mujoco.MjData(self.model)
        self.layout = mujoco_layout(self.mech, self.model)
        rng = np.random.default_rng(self.seed)
        self._close(rng)
        J, nv = self._rows(), self.model.nv
        speed = rng.standard_normal(nv)
        self.data.qvel[:] = speed - np.linalg.pinv(J, rcond=RANK) @ (J @ speed)
        self.data.qfrc_applied[:] = rng.standard_normal(nv) * self._weights()
        mujoco.mj_forward(self.model, self.data)
        self.q = self.mech.normalise(self.layout.q_from(self.data.qpos))
        self.v = self.layout.v_from(self.q, self.data.qvel)
        self.tau = self.layout.force_from(self.q, self.data.qfrc_applied)
        self.T = np.stack([self.layout.v_to(self.q, e) for e in np.eye(nv)], axis=-1)
        points = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
        direct = np.isin(self.model.eq_type[self.data.efc_id], points)
        self.required = np.where(direct, self.data.efc_aref, -self.rate())

    def _close(self, rng: np.random.Generator) -> None:
        """Where all residuals vanish, near a random place: by Gauss and Newton."""
        import mujoco

        start = np.array(self.data.qpos)
        for spread in (self.spread, 0.2 * self.spread, 0.05 * self.spread, 0.0):
            self.data.qpos[:] = start
            step = spread * rng.standard_normal(self.model.nv)
            mujoco.mj_integratePos(self.model, self.data.qpos, step, 1.0)
            for _ in range(40):
                mujoco.mj_normalizeQuat(self.model, self.data.qpos)
                mujoco.mj_fwdPosition(self.model, self.data)
                if self.residual < 1e-13:
                    return
                step = -np.linalg.pinv(self._rows(), rcond=RANK) @ self.data.efc_pos
                mujoco.mj_integratePos(self.model, self.data.qpos, step, 1.0)
            if self.residual < 1e-11:
                return

    @property
    def residual(self) -> float:
        """Largest violation of an equality [m or rad]."""
        return float(np.abs(self.data.efc_pos).max(initial=0.0))

    def _rows(self) -> Array:
        m, nv = self.data.nefc, self.model.nv
        return np.array(self.data.efc_J)[: m * nv].reshape(m, nv)

    def rate(self) -> Array:
        """J̇ v (m,) by differences of their J along the motion, of eighth order."""
        import mujoco

        apart, start = mujoco.MjData(self.model), np.array(self.data.qpos)
        v = np.array(self.data.qvel)

        def speeds(t: float) -> Array:
            apart.qpos[:] = start
            mujoco.mj_integratePos(self.model, apart.qpos, v, t)
            mujoco.mj_fwdPosition(self.model, apart)
            J = np.array(apart.efc_J)[: apart.nefc * self.model.nv].reshape(apart.nefc, -1)
            return J @ v

        h = 2e-3  # s, for speeds of about 1 rad/s
        weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
        return sum(w * (speeds(i * h) - speeds(-i * h)) for i, w in weights.items()) / h

    def _weights(self) -> Array:
        """Joint forces that make accelerations of about one."""
        return np.sqrt(np.diag(self._mass()))

    def _mass(self) -> Array:
        import mujoco

        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M

    @property
    def jacobian(self) -> Array:
        """Their rows (m, nv), of our velocities."""
        return self._rows() @ self.T

    def rigid(self) -> Array:
        """Accelerations with exactly rigid equalities, in their layout, by dense algebra."""
        J, free = self._rows(), self.free()
        ease = np.linalg.solve(self._mass(), J.T)
        request = self.required - J @ free
        return free + ease @ (np.linalg.pinv(J @ ease, rcond=1e-11, hermitian=True) @ request)

    def free(self) -> Array:
        """Accelerations without the equalities, in their layout."""
        return np.linalg.solve(self._mass(), self.data.qfrc_applied - self.data.qfrc_bias)

    def solved(self, softness: float = 1.0) -> Array:
        """Accelerations by MuJoCo's own solver, with R scaled by `softness`, in their layout."""
        import mujoco

        mujoco.mj_fwdPosition(self.model, self.data)
        soft = softness * np.array(self.data.efc_R)
        self.data.efc_R[:], self.data.efc_D[:] = soft, 1.0 / soft
        mujoco.mj_fwdVelocity(self.model, self.data)
        self.data.efc_aref[:] = self.required
        mujoco.mj_fwdActuation(self.model, self.data)
        mujoco.mj_fwdAcceleration(self.model, self.data)
        mujoco.mj_fwdConstraint(self.model, self.data)
        return np.array(self.data.qacc)

    def ours(self) -> Array:
        """`lw.forward_dynamics` in their layout."""
        vdot = lw.forward_dynamics(self.mech, self.q, self.v, self.tau)
        return self.layout.vdot_to(self.q, self.v, vdot)


@dataclass(frozen=True, slots=True)
class EqualityGap:
    """Differences between a mechanism and MuJoCo about loops and couplings, in one state.

    Attributes:
        rows: Of the constraints here and there.
        rank: Of their Jacobians here and there.
        residual: How well the equalities hold there [m or rad].
        error: Ours of the same state [m or rad].
        span: Sine of the largest angle between the motions that the two Jacobians allow.
        velocity: J_c v of the velocities that MuJoCo finds allowed.
        rigid: Accelerations against rigid equalities, relative to the largest.
        solver: Against MuJoCo's solver with R scaled by `SOFTNESS`, relative.
        soft: Against its solver as stiff as it can be set, relative.
    """

    rows: tuple[int, int]
    rank: tuple[int, int]
    residual: float
    error: float
    span: float
    velocity: float
    rigid: float
    solver: float
    soft: float


def equality_gap(case: EqualityCase) -> EqualityGap:
    """Compare everything."""
    ours, theirs = lw.loops.constraint_jacobian(case.mech, case.q), case.jacobian
    bases = [_rows_of(J) for J in (ours, theirs)]
    rank = (len(bases[0]), len(bases[1]))
    span = np.inf
    if rank[0] == rank[1]:
        left = bases[0] - bases[0] @ bases[1].T @ bases[1]
        span = float(np.linalg.norm(left, 2)) if left.size else 0.0
    direct, rigid = case.ours(), case.rigid()
    # What is held still by its equalities is compared with how it would fall.
    scale = max(float(np.abs(x).max(initial=0.0)) for x in (rigid, case.free()))
    error = lw.loops.constraint_error(case.mech, case.q)
    return EqualityGap(
        rows=(len(ours), len(theirs)),
        rank=rank,
        residual=case.residual,
        error=float(np.abs(error).max(initial=0.0)),
        span=span,
        velocity=float(np.abs(ours @ case.v).max(initial=0.0)),
        rigid=float(np.abs(direct - rigid).max()) / scale,
        solver=float(np.abs(direct - case.solved(SOFTNESS)).max()) / scale,
        soft=float(np.abs(direct - case.solved()).max()) / scale,
    )


def _rows_of(J: Array) -> Array:
    """Orthonormal rows with the span of J's."""
    _, s, rows = np.linalg.svd(J, full_matrices=False)
    return rows[s > RANK * s.max(initial=0.0)]
