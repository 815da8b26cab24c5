"""What is printed is what runs: the text of every quantity, compiled on mechanisms with armature.

`mass` is the inertia of the mechanism, armature included, in every function and on every target.
"""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, M, N, bias, mass, phi, role, tau, v
from linkwise.algebra.armature import without_armature
from linkwise.algebra.dense import STATE_VECTORS
from linkwise.algebra.derivation import leaves
from linkwise.algebra.expr import Expr
from linkwise.algebra.parse import parse
from linkwise.dynamics.kernels import kernel, root_rows
from linkwise.dynamics.quantity import AS_BLOCKS, AT_ROOTS, QUANTITIES
from linkwise.spatial.array import Array
from tests.codegen.test_c import compiled
from tests.dense_kinematics import body_jacobians, mass_matrix

FORWARD = mass.inv @ (tau - bias)
"""The README's line."""


def small_arm() -> lw.Mechanism:
    """Four bodies, seven freedoms, two branches; every hinge has armature of its own."""
    b = lw.Builder("small", gravity=(0.5, -1.0, -9.0))
    inertia = lw.SpatialInertia.from_com(2.0, (0.1, 0.05, -0.02), np.diag([0.03, 0.04, 0.05]))
    kinds = (
        lw.hinges.Universal(),
        lw.hinges.Helical((0.0, 0.6, 0.8), 0.1),
        lw.hinges.Universal(),
        lw.hinges.Cylindrical(),
    )
    for k, (hinge, parent) in enumerate(zip(kinds, ("world", "b0", "b0", "b2"), strict=True)):
        place = lw.Pose.rpy((0.2 * k, 0.3, -0.1), (0.1, 0.2, 0.3))
        ours = tuple((0.4 + 0.1 * k + 0.05 * i) for i in range(hinge.nv))
        drive = lw.Drive(armature=ours)
        b.body(f"b{k}", parent, hinge, inboard=place, inertia=inertia, drive=drive)
    b.node("tool", "b3", lw.Pose.rpy((0.3, -0.2, 0.5), (0.1, -0.1, 0.2)))
    b.node("other", "b1", lw.Pose.rpy((0.1, 0.2, 0.5), (0.0, -0.1, 0.1)))
    return b.build()


def read_back(expr: Expr) -> Expr:
    """The expression that its text means; vectors of tables that are no names of the language."""
    ours = {x.name: x for x in leaves(expr) if isinstance(x.role, role.Vector | role.Lyapunov)}
    return parse(str(expr), names=ours)


def arguments(result: object, mech: lw.Mechanism, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    given = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
    sizes = dict(result.signature.inputs)
    return [given[n] if n in given else rng.standard_normal(sizes[n]) for n in result.arguments]


@pytest.mark.few(30)
@pytest.mark.parametrize("name", QUANTITIES)
def test_the_printed_expression_of_a_quantity_is_what_its_function_gives(name: str):
    mech = SMALL
    expr, nodes = lw.dynamics.expression(name), ("tool",)
    parsed = read_back(expr)
    assert parsed is expr
    rows = root_rows(mech) if name in AT_ROOTS else None
    blocks = name in AS_BLOCKS
    printed = lw.compile(parsed, mech, nodes=nodes, rows=rows, blocks=blocks, target="numpy")
    function = kernel(mech, name, nodes)
    given = arguments(function, mech)
    expected = function(*given)
    result = printed(**dict(zip(function.arguments, given, strict=True)))
    scale = np.abs(expected).max()
    assert scale > 0.0
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11 * scale)


SMALL = small_arm()
DEPENDENT = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse")


@pytest.mark.parametrize("name", DEPENDENT)
def test_functions_count_the_armature(name: str):
    """Against matrices that are assembled from Jacobians alone; the bare tree gives others."""
    mech = SMALL
    A = mass_matrix(mech, q := mech.random(1))
    v, x = mech.random_velocity(1), np.arange(1.0, mech.nv + 1.0)
    c = lw.bias_force(mech, q, v)
    expected = {
        "forward_dynamics": lambda: np.linalg.solve(A, x - c),
        "inverse_dynamics": lambda: A @ x + c,
        "mass_matrix": lambda: A,
        "mass_matrix_inverse": lambda: np.linalg.inv(A),
    }[name]()
    values = {"q": q, "v": v, "tau": x, "vdot": x}
    expr = lw.dynamics.expression(name)
    result = lw.compile(expr, mech)
    given = [values[n] for n in result.arguments]
    np.testing.assert_allclose(result(*given), expected, rtol=1e-9, atol=1e-10)
    bare = lw.compile(without_armature(expr), mech)(*given)
    assert np.abs(bare - expected).max() > 0.05 * np.abs(expected).max()


# ---------------------------------------------------------------------------- the README's line


@pytest.mark.parametrize("target", ["cpu", "numpy", "c"])
def test_the_line_of_the_readme_is_forward_dynamics(target: str, tmp_path):
    mech = lw.models.seven_dof_arm()
    q, v, torque = mech.random(3), mech.random_velocity(3), np.linspace(-5.0, 5.0, mech.nv)
    expected = lw.forward_dynamics(mech, q, v, torque)
    made = lw.compile(FORWARD, mech, target=target)
    if target == "c":
        if shutil.which("gcc") is None and shutil.which("cc") is None:
            pytest.skip("there is no C compiler")
        code, result = compiled(tmp_path, made)([q, v, torque], (mech.nv,))
        assert code == 0
    elif target == "numpy":
        result = made(q=q, v=v, tau=torque)
    else:
        result = made(q, v, torque)
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11)
    A = mass_matrix(mech, q)
    np.testing.assert_allclose(A @ result + lw.bias_force(mech, q, v), torque, atol=1e-10)
    J = body_jacobians(mech, q)
    bare = np.einsum("kai,kab,kbj->ij", J, mech.inertias.matrix, J)
    off = np.abs(np.linalg.solve(bare, torque - lw.bias_force(mech, q, v)) - expected)
    assert off.max() > 1.0, "the armature of this arm makes a difference"


def test_the_text_for_a_graphics_card_has_the_armature_in_it():
    mech = lw.models.seven_dof_arm()
    text = lw.compile(FORWARD, mech, target="cuda").source
    without = lw.compile(FORWARD, mech.without_armature(), target="cuda").source
    numbers, others = (set(map(float, re.findall(r"\d+\.\d+", x))) for x in (text, without))
    assert set(mech.armature.tolist()) & (numbers - others)


def test_plan_and_derive_speak_of_the_mechanism_with_armature():
    derived = lw.derive(FORWARD).result
    assert "D(k) = H(k) P(k) H*(k) + N(k)" in str(lw.plan(derived))
    assert "N" not in str(lw.plan(without_armature(derived)))


def test_a_mechanism_without_armature_has_none_in_its_kernel():
    """N = 0 is the first step of the derivation, and the program has no N in it."""
    mech = lw.models.chain(3)
    assert not mech.armature.any()
    made = lw.compile(FORWARD, mech, target="numpy")
    assert made.derivation.steps[0].statement == "N = 0" and made.derivation.needs == "N = 0"
    assert made.derivation.start is FORWARD and made.derivation.replay()
    assert not _speaks_of_noise(made.program.expr)
    kept = lw.compile(FORWARD, mech, parameters=["armature"])
    assert kept.derivation.needs == "" and _speaks_of_noise(kept.program.expr)
    plain = H @ phi @ M @ phi.T @ H.T
    assert lw.compile(plain + N, mech, target="numpy").derivation.result is not plain + N


def _speaks_of_noise(expr: Expr) -> bool:
    return any(leaf is N for leaf in leaves(expr))


def test_rotors_count_in_the_mass_of_an_embedded_mechanism():
    b = lw.Builder("geared")
    inertia = lw.SpatialInertia.from_com(1.0, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    for k, parent in enumerate(("world", "b0")):
        drive = lw.Drive(armature=0.3 * (k + 1))
        place = lw.Pose.rpy((0.0, 0.0, 0.0), (0.4, 0.0, 0.0))
        b.body(
            f"b{k}",
            parent,
            lw.hinges.Pin(),
            hinge_name=f"h{k}",
            inboard=place,
            inertia=inertia,
            drive=drive,
        )
    b.couple("follows", "h1", {"h0": 2.0})
    e = lw.loops.embed(b.build())
    q = np.array([0.4, 0.8])
    X = np.array([[1.0], [2.0]])
    expected = X.T @ mass_matrix(e.mech, q) @ X
    result = lw.compile(mass, e)(q)
    np.testing.assert_allclose(np.reshape(result, (1, 1)), expected, rtol=1e-12)


def test_state_vectors_are_the_names_of_the_language():
    """So that `read_back` gives no vector of the state another meaning."""
    assert {"v", "a", "b"} <= set(STATE_VECTORS) and v.role.source in STATE_VECTORS
