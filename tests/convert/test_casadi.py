"""Functions of CasADi, symbolic and compiled: values, derivatives, sparsity, and IPOPT."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import X_B, J, bias, mass, tau, vdot
from linkwise.cli import main
from linkwise.convert import casadi_c, to_casadi
from linkwise.errors import ExpressionError, LoweringError, MissingExtraError
from tests.model.hinge_cases import HINGES

ca = pytest.importorskip("casadi")
pytestmark = pytest.mark.prove
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

FORWARD, INVERSE = mass.inv @ (tau - bias), mass @ vdot + bias
ROBOTS = {
    "pendulum": lambda: lw.models.pendulum(2),
    "tree": lambda: lw.models.random_tree(5, 7, mass_ratio=3.0, hinges=["pin", "prismatic"]),
    "floating": lambda: lw.models.random_tree(
        3, 5, mass_ratio=3.0, floating=True, hinges=["pin", "spherical"]
    ),
}


def numbers(x):
    """A matrix of CasADi with its zeros."""
    return np.array(x.full() if isinstance(x, ca.DM) else x)


def state(mech, seed=0):
    rng = np.random.default_rng(seed)
    return mech.random(rng), mech.random_velocity(rng), rng.standard_normal(mech.nv)


def velocity_map(mech, q):
    """N of q̇ = N v."""
    return np.stack([mech.qdot(q, e) for e in np.eye(mech.nv)], axis=-1)


def blocks(f, *arguments):
    """The blocks of the Jacobian, by name."""
    jacobian = f.jacobian()
    values = jacobian(*arguments, *[0] * f.n_out())
    values = values if isinstance(values, tuple) else (values,)
    return dict(zip(jacobian.name_out(), map(numbers, values), strict=True))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
@pytest.mark.parametrize("robot", ROBOTS)
def test_dynamics_and_their_derivatives(robot, compiled):
    """By the entries of q: along q̇ = N v the derivatives of the library, along quaternions none."""
    mech = ROBOTS[robot]()
    q, v, x = state(mech, 3)
    for expr, last, value, derivatives in (
        (FORWARD, "tau", lw.forward_dynamics, lw.forward_dynamics_derivatives),
        (INVERSE, "vdot", lw.inverse_dynamics, lw.inverse_dynamics_derivatives),
    ):
        f = to_casadi(expr, mech, name="dynamics", compiled=compiled, order=1)
        assert f.name_in() == ["q", "v", last]
        assert f.size1_in(0) == mech.nq
        expected = value(mech, q, v, x)
        np.testing.assert_allclose(numbers(f(q, v, x))[:, 0], expected, rtol=1e-10, atol=1e-10)
        made, exact = blocks(f, q, v, x), derivatives(mech, q, v, x)
        scale = 1e-10 * max(np.abs(a).max() for a in exact)
        N = velocity_map(mech, q)
        assert np.abs(exact[0]).max() > 0.1
        np.testing.assert_allclose(made["jac_value_q"] @ N, exact[0], atol=scale)
        np.testing.assert_allclose(made["jac_value_v"], exact[1], atol=scale)
        np.testing.assert_allclose(made[f"jac_value_{last}"], exact[2], atol=scale)
        for k, body in enumerate(mech.bodies):
            if body.hinge.quaternion is not None:
                part = slice(mech.q_start[k], mech.q_start[k] + 4)
                longer = q.copy()
                longer[part] *= 1.7
                assert np.abs(made["jac_value_q"][:, part]).max() > 1e-3
                np.testing.assert_allclose(made["jac_value_q"][:, part] @ q[part], 0, atol=scale)
                again = numbers(f(longer, v, x))[:, 0]
                np.testing.assert_allclose(again, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", HINGES)
def test_every_hinge(kind):
    """CasADi's derivatives by entries of q against differences, two hinges of a kind."""
    b, parent = lw.Builder("two"), "world"
    for k in (1, 2):
        part = lw.SpatialInertia.solid_box(1.0 + k, (0.1, 0.2, 0.3)).moved(
            lw.Pose.translation((0.1, 0.2, -0.1))
        )
        b.body(f"body_{k}", parent, HINGES[kind], inboard=(0.1, 0.3, 0.2), inertia=part)
        parent = f"body_{k}"
    b.body("last", parent, lw.hinges.Pin((0.6, 0.0, 0.8)), inboard=(0.2, 0.1, 0.3), inertia=part)
    mech = b.build()
    q, v, x = state(mech, 1)
    f = to_casadi(INVERSE, mech)
    made, h = blocks(f, q, v, x)["jac_value_q"], 1e-3
    for j, e in enumerate(np.eye(mech.nq)):
        ends = [numbers(f(q + s * h * e, v, x))[:, 0] for s in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
        size = 1.0 + np.abs(numbers(f(q, v, x))).max()
        np.testing.assert_allclose(made[:, j], slope, atol=1e-7 * size)


@needs_compiler
@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("expr", [FORWARD, INVERSE], ids=["forward", "inverse"])
def test_second_derivatives_are_those_of_casadi(robot, expr):
    mech = ROBOTS[robot]()
    rng = np.random.default_rng(2)
    symbolic = to_casadi(expr, mech, name="f")
    compiled = to_casadi(expr, mech, name="f", compiled=True)
    assert compiled.class_name() == "External"
    q, v, x = state(mech, 4)
    arguments = (q, v, x, 0, rng.standard_normal(mech.nv))
    of_both = [f.reverse(1) for f in (symbolic, compiled)]
    assert of_both[1].class_name() == "External"
    for ours, exact in zip(of_both[1](*arguments), of_both[0](*arguments), strict=True):
        np.testing.assert_allclose(numbers(ours), numbers(exact), rtol=1e-9, atol=1e-9)
    second = [f.jacobian() for f in of_both]
    assert second[1].name_out() == second[0].name_out()
    pairs = zip(*(f(*arguments, 0, 0, 0) for f in reversed(second)), strict=True)
    sizes = list[float]()
    for (ours, exact), name in zip(pairs, second[1].name_out(), strict=True):
        scale = 1.0 + np.abs(numbers(exact)).max(initial=0.0)
        np.testing.assert_allclose(numbers(ours), numbers(exact), atol=1e-9 * scale, err_msg=name)
        sizes.append(np.abs(numbers(ours)).max(initial=0.0))
    assert sizes[0] > 0.1


@needs_compiler
@pytest.mark.parametrize("robot", [*ROBOTS, "arm"])
def test_sparsity_is_true(robot):
    """Entries left out are zero; on a random tree few others are, where sums cancel."""
    mech = lw.models.seven_dof_arm() if robot == "arm" else ROBOTS[robot]()
    q, v, x = state(mech, 8)
    f = to_casadi({"M": mass, "tau": INVERSE}, mech, name="both", compiled=True, order=1)
    exact, dense = lw.mass_matrix(mech, q), lw.inverse_dynamics_derivatives(mech, q, v, x)
    M, _ = f(q, v, x)
    np.testing.assert_allclose(numbers(M), exact, atol=1e-12)
    named = dict(zip(f.jacobian().name_out(), f.jacobian()(q, v, x, 0, 0), strict=True))
    for name, matrix in (("v", dense.v), ("vdot", dense.vdot)):
        np.testing.assert_allclose(numbers(named[f"jac_tau_{name}"]), matrix, atol=1e-9)
    assert named["jac_M_v"].nnz() == 0
    if robot == "tree":
        branches = np.count_nonzero(np.abs(exact) > 1e-12)
        assert M.nnz() == named["jac_tau_vdot"].nnz() == branches < mech.nv**2
        moving = np.count_nonzero(np.abs(dense.v) > 1e-12)
        assert moving <= named["jac_tau_v"].nnz() <= moving + mech.nv  # ∂τ_k/∂v_k of single axes
    if robot == "arm":  # nothing depends on a turn about the vertical
        assert named["jac_M_q"].sparsity().get_triplet()[1].count(0) == 0
        assert named["jac_M_q"].nnz() > 150


@needs_compiler
def test_results_that_are_not_needed_and_arguments_that_are_zero():
    mech = lw.models.pendulum(2)
    f = to_casadi({"M": mass, "c": bias}, mech, name="both", compiled=True)
    buffer, run = f.buffer()
    q, out = np.array([0.3, -0.8]), np.full(2, 7.0)
    buffer.set_arg(0, memoryview(q))  # v stays out: zeros
    buffer.set_res(1, memoryview(out))  # M is not needed
    run()
    assert buffer.ret() == 0
    np.testing.assert_allclose(out, lw.bias_force(mech, q, np.zeros(2)), rtol=1e-12)


@needs_compiler
def test_states_without_a_result():
    mech = lw.models.pendulum(2)
    f = to_casadi(FORWARD, mech, name="f", compiled=True)
    with pytest.raises(RuntimeError):
        f([np.nan, 0.0], [0.0, 0.0], [0.0, 0.0])
    b = lw.Builder("weightless")
    b.body(
        "rod", "world", lw.hinges.Pin((0, 1, 0)), inertia=lw.SpatialInertia.point(0.0, (1, 0, 0))
    )
    symbolic = to_casadi(FORWARD, b.build(), parameters=["armature"])
    assert np.isfinite(numbers(symbolic(0.0, 0.0, 1.0, 0.1)))
    assert np.isnan(numbers(symbolic(0.0, 0.0, 1.0, 0.0)))
    assert np.isnan(numbers(symbolic.jacobian()(0.0, 0.0, 1.0, 0.0, 0)[2]))


@needs_compiler
def test_parameters_nodes_and_shapes():
    arm = lw.models.puma560()
    f = to_casadi(
        INVERSE, arm, name="f", parameters=["payload:link_6"], nodes=["link_6"], compiled=True,
        order=1,
    )  # fmt: skip
    assert f.name_in()[3] == "payload_link_6"
    q, v, x = state(arm)
    load = np.array([1.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.0, 0.1, 0.0])
    by_load = blocks(f, q, v, x, load)["jac_value_payload_link_6"]
    change = numbers(f(q, v, x, load)) - numbers(f(q, v, x, 0 * load))  # linear in the load
    assert np.abs(change).max() > 1.0
    np.testing.assert_allclose(by_load @ load, change[:, 0], atol=1e-10)
    poses = to_casadi(X_B, arm, nodes=["link_3", "link_6"])
    rows = numbers(poses(q)).reshape(2, 3, 4)
    for k, node in enumerate(("link_3", "link_6")):
        np.testing.assert_allclose(rows[k, :, 3], lw.forward_kinematics(arm, q, node).p, atol=1e-12)
    slope = to_casadi(J, arm, nodes=["link_6"], rows=[3, 4, 5])
    assert slope.size_out(0) == (3, 6)


@needs_compiler
@pytest.mark.parametrize("held", [True, False])
def test_closed_chains(held):
    mech = lw.models.four_bar()
    q = lw.loops.project_position(mech, mech.neutral()).required()
    v, x = np.zeros(mech.nv), np.random.default_rng(0).standard_normal(mech.nv)
    f, g = (
        to_casadi(
            "forward_dynamics" if held else FORWARD, mech, name="f", compiled=compiled, order=1
        )
        for compiled in (False, True)
    )
    expected = lw.forward_dynamics(mech, q, v, x, loops="closed" if held else "open")
    assert np.abs(expected).max() > 0.1
    for each in (f, g):
        np.testing.assert_allclose(numbers(each(q, v, x))[:, 0], expected, atol=1e-9)
    exact = blocks(f, q, v, x)
    for name, ours in blocks(g, q, v, x).items():
        np.testing.assert_allclose(ours, exact[name], atol=1e-9 * (1 + np.abs(exact[name]).max()))


@needs_compiler
def test_loops_that_are_built_in():
    mech = lw.models.four_bar()
    tree, q = lw.loops.embed(mech), mech.neutral()
    f, g = (to_casadi(FORWARD, tree, name="f", compiled=c, order=1) for c in (False, True))
    expected = lw.compile(FORWARD, tree)(q, [0.7], [2.0])
    for each in (f, g):
        np.testing.assert_allclose(numbers(each(q, 0.7, 2.0))[:, 0], expected, rtol=1e-10)
    exact = blocks(f, q, 0.7, 2.0)
    assert np.abs(exact["jac_value_q"]).max() > 0.1
    for name, ours in blocks(g, q, 0.7, 2.0).items():
        np.testing.assert_allclose(ours, exact[name], rtol=1e-9, atol=1e-9)


@needs_compiler
def test_nothing_that_moves():
    b = lw.Builder("still")
    b.body("box", "world", lw.hinges.Locked(), inertia=lw.SpatialInertia.solid_box(1.0, (1, 1, 1)))
    for compiled in (False, True):
        f = to_casadi(INVERSE, b.build(), name="f", compiled=compiled)
        assert f.size_out(0) == (0, 1)
        assert f.jacobian().size_out(0) == (0, 0)


@needs_compiler
def test_several_threads_may_call_it():
    mech = lw.models.puma560()
    f = to_casadi(FORWARD, mech, name="f", compiled=True, order=1)
    rng = np.random.default_rng(0)
    states = [rng.standard_normal((mech.nv, 64)) for _ in range(3)]
    one, many = (numbers(f.map(64, *how)(*states)) for how in ((), ("thread", 4)))
    np.testing.assert_array_equal(one, many)
    expected = lw.forward_dynamics(mech, *(x.T for x in states)).T
    np.testing.assert_allclose(many, expected, rtol=1e-9, atol=1e-9)


@needs_compiler
@pytest.mark.parametrize("hessian", ["exact", "limited-memory"])
def test_ipopt_finds_the_resting_place(hessian):
    """The static equilibrium of a pendulum under given torques, through casadi.external."""
    mech = lw.models.pendulum(3)
    f = to_casadi(INVERSE, mech, name="statics", compiled=True)
    held = lw.bias_force(mech, [0.4, -0.3, 0.2], np.zeros(3))
    q = ca.MX.sym("q", 3)
    off = f(q, 0, 0) - held
    options = {"print_time": False, "ipopt.print_level": 0, "ipopt.tol": 1e-12}
    options |= {"ipopt.hessian_approximation": hessian}
    solver = ca.nlpsol("s", "ipopt", {"x": q, "f": ca.sumsqr(q), "g": off}, options)
    result = solver(x0=[0.3, -0.2, 0.1], lbg=0, ubg=0)
    assert solver.stats()["success"]
    rest = numbers(result["x"])[:, 0]
    np.testing.assert_allclose(lw.bias_force(mech, rest, np.zeros(3)), held, atol=1e-9)


@needs_compiler
@pytest.mark.parametrize("expr", [FORWARD, INVERSE], ids=["forward", "inverse"])
def test_the_source_is_plain_c(expr, tmp_path):
    """Also long code, which is written in parts."""
    path = tmp_path / "dynamics.c"
    path.write_text(casadi_c(expr, lw.models.seven_dof_arm(), name="dynamics"))
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-c"]
    subprocess.run(["cc", *strict, str(path), "-o", str(tmp_path / "x.o")], check=True)
    assert "dynamics_hessian_part1" in path.read_text()


def test_messages(monkeypatch):
    mech = lw.models.pendulum(2)
    with pytest.raises(ExpressionError, match="order is 3"):
        to_casadi(mass, mech, order=3)
    looped = lw.compile(looping, mech).request.quantity
    with pytest.raises(LoweringError, match="a kernel with a loop"):
        to_casadi(looped, mech)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ExpressionError, match="no-such-compiler"):
        to_casadi(mass, mech, compiled=True, order=1)
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(MissingExtraError, match="casadi"):
        to_casadi(mass, mech)


def looping(at):
    """A root by Newton's method."""
    x, _ = at.loop(
        lambda at, x, given: (x - (x * x - given) / (2.0 * x), 1.0), at.q[:1], at.v[:1], most=3
    )
    return x


@needs_compiler
def test_the_command_writes_it_too(tmp_path, capsys):
    given = ["export-c", "pendulum", "--quantity", "forward_dynamics", "--dtype", "float32"]
    assert main([*given, "--casadi", "--name", "swing", "-o", str(tmp_path)]) == 0
    assert "swing_casadi.c" in capsys.readouterr().out
    source, library = tmp_path / "swing_casadi.c", tmp_path / "swing_casadi.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    f = ca.external("swing_casadi", str(library))
    mech = lw.models.pendulum()
    q, v, x = state(mech)
    np.testing.assert_allclose(numbers(f(q, v, x))[:, 0], lw.forward_dynamics(mech, q, v, x))
