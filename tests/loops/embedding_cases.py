"""Mechanisms with loops and couplings for the tests of constraint embedding, and their reference.

The reference knows nothing of aggregates: the tree's own mass matrix and bias force with the
constraints as they stand, J_c v̇ = -γ, solved as one dense system. Null vectors of J_c come from
its singular values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array

ROD = lw.SpatialInertia.solid_cylinder(1.3, 0.03, 0.4).moved(lw.Pose.translation((0, 0, 0.2)))
"""A rod along z, from its inner end."""


def link(
    b: lw.Builder, name: str, parent: str, hinge: lw.hinges.Hinge, at: object, **more: object
) -> None:
    """A rod on a hinge; `at` is where it stands on its parent."""
    inertia = more.pop("inertia", ROD)
    b.body(name, parent, hinge, inboard=at, inertia=inertia, **more)  # type: ignore[arg-type]


def coupled_tree(seed: int, n: int = 9) -> lw.Mechanism:
    """A random tree with random couplings, linear and polynomial, some in a chain."""
    rng = np.random.default_rng(seed)
    tree = lw.models.random_tree(n, seed)
    scalar = [b.hinge_name for b in tree.bodies if b.hinge.nv == 1 and b.hinge.nq == 1]
    rng.shuffle(scalar)
    couplings = list[lw.Coupling]()
    known, rest = scalar[: max(1, len(scalar) // 2)], scalar[max(1, len(scalar) // 2) :]
    for name in rest:
        count = min(len(known), int(rng.integers(1, 3)))
        others = rng.choice(known, size=count, replace=False).tolist()
        degree = int(rng.integers(1, 4))
        terms = tuple((x, tuple(rng.uniform(-0.8, 0.8, degree).tolist())) for x in others)
        couplings.append(lw.Coupling(f"c_{name}", name, terms, float(rng.uniform(-0.3, 0.3))))
        known.append(name)
    rng.shuffle(couplings)  # type: ignore[arg-type]
    bodies = tuple(
        _with_armature(body, float(rng.uniform(0.0, 0.2))) if rng.random() < 0.5 else body
        for body in tree.bodies
    )
    return lw.Mechanism(f"coupled_{seed}", bodies, tree.nodes, (), tuple(couplings), tree.gravity)


def _with_armature(body: lw.Body, armature: float) -> lw.Body:
    from dataclasses import replace

    return replace(body, drive=lw.Drive(armature=armature))


def geared_chain(n: int) -> lw.Mechanism:
    """n joints, each with a rotor on its inboard link that a gear ties to it."""
    b = lw.Builder(f"geared_{n}")
    parent, at = "world", (0.0, 0.0, 0.0)
    rotor = lw.SpatialInertia.solid_cylinder(0.2, 0.03, 0.05)
    for i in range(n):
        axis = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))[i % 2]
        link(b, f"link{i}", parent, lw.hinges.Pin(axis), at)
        link(b, f"rotor{i}", parent, lw.hinges.Pin((0.0, 0.6, 0.8)), at, inertia=rotor)
        b.couple(f"gear{i}", f"rotor{i}", {f"link{i}": 30.0 + i})
        parent, at = f"link{i}", (0.0, 0.0, 0.4)
    b.node("hand", parent, (0.0, 0.05, 0.4))
    return b.build()


def four_bar_chain(n: int, tilt: float = 0.0) -> lw.Mechanism:
    """n four-bars, each standing on the coupler of the one before; one freedom each.

    Args:
        n: How many.
        tilt: How far each stands out of the plane of the one before [rad].
    """
    b = lw.Builder(f"four_bars_{n}")
    pin, parent, foot = lw.hinges.Pin((0.0, 1.0, 0.0)), "world", lw.Pose.identity()
    for i in range(n):
        p_B, p_C = np.array([0.0, 0.0, 0.3]), np.array([0.25, 0.0, 0.35])
        p_D = np.array([0.2, 0.0, 0.0])
        link(b, f"crank{i}", parent, pin, foot)
        link(b, f"coupler{i}", f"crank{i}", pin, lw.Pose.translation(p_B))
        link(b, f"rocker{i}", parent, pin, foot @ lw.Pose.translation(p_D))
        b.node(f"coupler_end{i}", f"coupler{i}", lw.Pose.translation(p_C - p_B))
        b.node(f"rocker_end{i}", f"rocker{i}", lw.Pose.translation(p_C - p_D))
        b.loop(f"loop{i}", f"coupler_end{i}", f"rocker_end{i}", pin)
        parent, foot = f"coupler{i}", lw.Pose.rpy((tilt, 0.1, 0.5 * tilt), (0.1, 0.0, 0.1))
    b.node("hand", parent, (0.1, 0.02, 0.3))
    return b.build()


def parallelogram_arm() -> lw.Mechanism:
    """A palletising arm: turntable, upper arm and forearm driven over a parallelogram, wrist."""
    b = lw.Builder("parallelogram_arm")
    y = lw.hinges.Pin((0.0, 1.0, 0.0))
    link(b, "turntable", "world", lw.hinges.Pin((0.0, 0.0, 1.0)), (0.0, 0.0, 0.3))
    link(b, "upper", "turntable", y, (0.1, 0.0, 0.2), drive=lw.Drive(armature=0.3))
    link(b, "lever", "turntable", y, (0.1, 0.0, 0.2))
    link(b, "forearm", "upper", y, (0.0, 0.0, 0.6))
    link(b, "rod", "lever", y, (-0.2, 0.0, 0.05))
    b.node("forearm_pin", "forearm", (-0.2, 0.0, 0.05))
    b.node("rod_end", "rod", (0.0, 0.0, 0.6))
    b.loop("parallelogram", "forearm_pin", "rod_end", lw.hinges.Pin((0.0, 1.0, 0.0)))
    link(b, "wrist", "forearm", lw.hinges.Pin((1.0, 0.0, 0.0)), (0.5, 0.0, 0.0))
    b.node("hand", "wrist", (0.1, 0.0, 0.1))
    return b.build()


def differential_wrist() -> lw.Mechanism:
    """Two motors beside each other drive pitch and roll of a hand by a bevel differential."""
    b = lw.Builder("differential_wrist")
    link(b, "arm", "world", lw.hinges.Pin((0.0, 1.0, 0.0)), (0.0, 0.0, 0.0))
    for side, y in (("left", 0.05), ("right", -0.05)):
        rotor = lw.SpatialInertia.solid_cylinder(0.3, 0.03, 0.02)
        pin = lw.hinges.Pin((0.0, 1.0, 0.0))
        link(b, side, "arm", pin, (0.0, y, 0.4), inertia=rotor, drive=lw.Drive(armature=0.02))
    link(b, "pitch", "arm", lw.hinges.Pin((0.0, 1.0, 0.0)), (0.0, 0.0, 0.4))
    link(b, "roll", "pitch", lw.hinges.Pin((0.0, 0.0, 1.0)), (0.0, 0.0, 0.1))
    b.couple("half sum", "pitch", {"left": 0.5, "right": 0.5})
    b.couple("half difference", "roll", {"left": 0.5, "right": -0.5})
    b.node("hand", "roll", (0.03, 0.0, 0.15))
    return b.build()


def geared_four_bar() -> lw.Mechanism:
    """A four-bar inside an arm whose crank and rocker a polynomial cam and a gear tie further."""
    b = lw.Builder("geared_four_bar")
    pin = lw.hinges.Pin((0.0, 1.0, 0.0))
    link(b, "base", "world", lw.hinges.Free(), (0.0, 0.0, 0.0))
    link(b, "crank", "base", pin, (0.0, 0.0, 0.1))
    link(b, "coupler", "crank", pin, (0.0, 0.0, 0.3))
    link(b, "rocker", "base", pin, (0.2, 0.0, 0.1))
    b.node("coupler_end", "coupler", (0.25, 0.0, 0.05))
    b.node("rocker_end", "rocker", (0.05, 0.0, 0.35))
    b.loop("loop", "coupler_end", "rocker_end", pin)
    link(b, "tool", "coupler", lw.hinges.Pin((0.3, 0.2, 0.9)), (0.1, 0.0, 0.2))
    link(b, "flap", "tool", lw.hinges.Prismatic((0.0, 0.6, 0.8)), (0.0, 0.0, 0.3))
    b.couple("cam", "flap", {"tool": (0.2, 0.1, -0.05), "crank": 0.1})
    link(b, "motor", "base", lw.hinges.Pin((1.0, 0.0, 0.0)), (0.0, 0.1, 0.0))
    b.couple("gear", "motor", {"rocker": -3.0})
    link(b, "hand", "flap", lw.hinges.Spherical(), (0.0, 0.0, 0.2))
    return b.build()


def universal_loop() -> lw.Mechanism:
    """A spatial loop closed by a universal hinge: 7 freedoms in the tree, 4 rows, 3 left."""
    b = lw.Builder("universal_loop")
    link(b, "one", "world", lw.hinges.Pin((0.0, 1.0, 0.0)), (0.0, 0.0, 0.0))
    link(b, "two", "one", lw.hinges.Spherical(), (0.0, 0.0, 0.4))
    link(b, "three", "two", lw.hinges.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), (0.3, 0.0, 0.3))
    link(b, "four", "three", lw.hinges.Pin((0.0, 0.0, 1.0)), (0.1, 0.0, 0.3))
    b.node("end", "four", (0.1, 0.2, 0.3))
    neutral = b.build()
    at = neutral.pose(neutral.neutral(), "end")
    b.node("post", "world", at)
    b.loop("joint", "post", "end", lw.hinges.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    return b.build()


def closed(mech: lw.Mechanism, q: Array) -> Array:
    """The configuration with loops and couplings closed, by Newton's steps from a near one."""
    for _ in range(60):
        error = lw.loops.constraint_error(mech, q)
        if np.abs(error).max(initial=0.0) < 1e-13:
            return q
        q = mech.integrate(
            q, -np.linalg.pinv(lw.loops.constraint_jacobian(mech, q), rcond=1e-9) @ error
        )
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-10, (
        "the loops do not close from there"
    )
    return q


def near(mech: lw.Mechanism, seed: int, size: float = 0.3) -> Array:
    """A closed configuration that is not far from the neutral one; anywhere without loops."""
    rng = np.random.default_rng(seed)
    if not mech.loops:
        return mech.random(rng)
    q = mech.neutral()
    J_c = lw.loops.constraint_jacobian(mech, q)
    wish = size * rng.standard_normal(mech.nv)
    along = wish - np.linalg.pinv(J_c, rcond=1e-9) @ (J_c @ wish)
    for _ in range(5):
        q = closed(mech, mech.integrate(q, along, 0.2))
    return q


@dataclass(frozen=True)
class Reference:
    """What a dense solution of the whole system says."""

    X: Array
    x: Array
    mass: Array
    bias: Array
    vdot: Array


def reference(mech: lw.Mechanism, q: Array, free: Array, u: Array, tau: Array) -> Reference:
    """𝒳, 𝔵, mass_r, C_r and v̇ of a state, with u = v[free].

    v̇ solves  [𝓜 -J_c*; J_c 0] (v̇, λ) = (τ - C, -γ)  in the sense of least squares, which is exact
    for v̇ where the rows of J_c repeat each other.
    """
    J_c = lw.loops.constraint_jacobian(mech, q)
    values, rows = np.linalg.svd(J_c)[1:] if len(J_c) else (np.zeros(0), np.eye(mech.nv))
    basis = rows[int((values > 1e-9).sum()) :].T
    X = basis @ np.linalg.inv(basis[free])
    v = X @ u
    gamma, force = lw.loops.constraint_bias(mech, q, v), lw.bias_force(mech, q, v)
    M = lw.mass_matrix(mech, q)
    kkt = np.block([[M, -J_c.T], [J_c, np.zeros((len(J_c), len(J_c)))]])
    vdot = np.linalg.lstsq(kkt, np.concatenate([tau - force, -gamma]), rcond=1e-13)[0][: mech.nv]
    some = np.linalg.lstsq(J_c, -gamma, rcond=1e-10)[0] if len(J_c) else np.zeros(mech.nv)
    x = some - X @ some[free]
    return Reference(X, x, X.T @ M @ X, X.T @ (M @ x + force), vdot)
