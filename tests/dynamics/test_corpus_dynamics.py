"""Forward and hybrid dynamics, accelerations and hinge forces: all robot files, random trees.

Robots with light fingers are stiff: accelerations are judged by the forces that the other library
needs for them, everything else directly.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tools.corpus import find_mjcf, find_urdf, mjcf_roots

import linkwise as lw
from linkwise.dynamics import hybrid_expression
from linkwise.errors import SingularHingeError
from linkwise.sweeps.interpret import run
from tests.cases import close, state
from tests.dynamics.oracle_state import InPinocchio, spatial_force, tree_in_pinocchio
from tests.io.test_mjcf_corpus import GOOD, HERE_ONLY, _in
from tests.io.test_urdf_corpus import BROKEN
from tests.oracles.mujoco_oracle import moving, read_model
from tests.oracles.pinocchio_oracle import read_model as read_urdf

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

URDF, MJCF = find_urdf(), find_mjcf()
BOUND = 1e-10


@cache
def planned(name):
    return lw.plan(lw.dynamics.expression(name))


def evaluated(mech, name, q, v, **values):
    return run(planned(name), mech, q, v, values=values)


def singular(A):
    """Whether some motion has no inertia, so that an error that says so is right."""
    size = np.sqrt(np.diag(A))
    return bool((size == 0.0).any()) or np.linalg.eigvalsh(A / np.outer(size, size))[0] < 1e-12


def mixed(mech, q, v, x, y):
    """Hybrid dynamics, every other hinge prescribed: all accelerations and all forces."""
    names = [body.hinge_name for body in mech.bodies if body.hinge.nv]
    expr = hybrid_expression(names[::2], names[1::2])
    result = run(lw.plan(lw.derive(expr).result), mech, q, v, values={"tau": x, "vdot": y})
    held = np.zeros(mech.nv, dtype=bool)
    for name in names[1::2]:
        held[mech.v_slice(name)] = True
    return np.where(held, y, result), np.where(held, result, x)


@pytest.mark.parametrize("name", [n for n in URDF if n.rsplit("/", 1)[-1] not in BROKEN])
def test_with_pinocchio(name):
    pytest.importorskip("pinocchio")
    mech = lw.load(URDF[name])
    mech = mech.without(*(coupling.name for coupling in mech.couplings))
    if not mech.nv:
        pytest.skip("nothing moves")
    compared(InPinocchio(mech, read_urdf(URDF[name]), *state(mech)))


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_with_pinocchio(seed):
    """One to twenty bodies, every hinge that Pinocchio has, armature, free bases, branches."""
    pytest.importorskip("pinocchio")
    options = {"floating": seed % 3 == 0, "branching": (0.0, 0.4, 1.0)[seed % 3]}
    compared(tree_in_pinocchio(1 + seed // 2, seed, **options))


def compared(it: InPinocchio) -> None:
    """All there is to compare in one state."""
    import pinocchio as pin

    mech, y = it.mech, np.random.default_rng(3).standard_normal(it.mech.nv)

    def needed(vdot):
        forces = pin.rnea(it.model, it.data, it.q_pin, it.v_pin, it.accelerated(vdot))
        return it.layout.force_from(it.q, forces)

    def agree(result, expected, vdot):
        """Forces, measured by what is added up to them."""
        size = np.abs(needed(0.0 * y)).max() + np.abs(expected).max()
        close(result, expected, BOUND, scale=float(size + np.abs(needed(vdot)).max()))

    try:
        vdot = evaluated(mech, "FD4", it.q, it.v, tau=it.x)
    except SingularHingeError:
        assert singular(evaluated(mech, "mass_matrix", it.q, it.v))
        pytest.skip("nothing resists some hinge")
    agree(needed(vdot), it.x, vdot)
    agree(needed(evaluated(mech, "FD1", it.q, it.v, tau=it.x)), it.x, vdot)
    through = evaluated(mech, "hinge_forces", it.q, it.v, tau=it.x).reshape(-1, 6)
    alpha = evaluated(mech, "body_accelerations", it.q, it.v, vdot=vdot).reshape(-1, 6)
    of_forces = evaluated(mech, "body_accelerations_of_forces", it.q, it.v, tau=it.x)
    close(of_forces.reshape(-1, 6), alpha, 1e-8)  # two ways to one motion: as far as it is stiff
    needed(vdot)
    for k, body in enumerate(mech.bodies):
        if body.hinge.nv:
            joint, place = it.joint(body.name), it.placed(body.name)
            theirs = spatial_force(place.actInv(it.data.f[joint]).vector)
            close(through[k], theirs, BOUND, scale=float(np.abs(through).max()))
    pin.forwardKinematics(it.model, it.data, it.q_pin, it.v_pin, it.accelerated(vdot))
    for k, body in enumerate(mech.bodies):
        if body.hinge.nv:
            theirs = it.placed(body.name).actInv(it.data.a[it.joint(body.name)])
            close(alpha[k], spatial_force(theirs.vector), BOUND, scale=float(np.abs(alpha).max()))
    motion, force = mixed(mech, it.q, it.v, it.x, y)
    agree(needed(motion), force, motion)


@pytest.mark.parametrize("name", [n for n in GOOD if _in(n, HERE_ONLY) is None])
def test_with_mujoco(name):
    mujoco = pytest.importorskip("mujoco")
    mech = lw.load(MJCF[name], roots=mjcf_roots(name, MJCF[name]))
    model = read_model(MJCF[name])
    if not mech.nv:
        pytest.skip("nothing moves")
    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONSTRAINT, off.mjDSBL_CONTACT, off.mjDSBL_ACTUATION):
        model.opt.disableflags |= bit
    for field in (model.dof_damping, model.jnt_stiffness, model.tendon_stiffness):
        field[:] = 0.0
    model.tendon_damping[:] = 0.0
    model.body_gravcomp[:] = 0.0
    model.opt.density = model.opt.viscosity = 0.0
    layout, data = lw.convert.mujoco_layout(mech, model), mujoco.MjData(model)
    q, v, x = state(mech, 4)
    y = np.random.default_rng(3).standard_normal(mech.nv)
    T = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)

    def needed(vdot):
        data.qpos[:], data.qvel[:], data.qacc[:] = layout.q_to(q), layout.v_to(q, v), T @ vdot
        for hinge, number in moving(mech, model):
            body, ours = mech.hinge(hinge), v[mech.v_slice(hinge)]
            if isinstance(body.hinge, lw.hinges.Free):  # its linear part is in world axes there
                turned = mech.pose(q, body.name).rot @ np.cross(ours[:3], ours[3:])
                first = model.jnt_dofadr[number]
                data.qacc[first : first + 3] += turned
        mujoco.mj_inverse(model, data)
        return layout.force_from(q, np.array(data.qfrc_inverse))

    try:
        vdot = evaluated(mech, "FD4", q, v, tau=x)
    except SingularHingeError:
        assert singular(evaluated(mech, "mass_matrix", q, v))
        pytest.skip("nothing resists some hinge")
    size = float(np.abs(needed(0.0 * y)).max() + np.abs(x).max())
    A = np.abs(evaluated(mech, "mass_matrix", q, v))
    close(needed(vdot), x, BOUND, scale=size + float((A @ np.abs(vdot)).max()))
    motion, force = mixed(mech, q, v, x, y)
    size = size + float((A @ np.abs(motion)).max() + np.abs(force).max())
    close(needed(motion), force, BOUND, scale=size)
