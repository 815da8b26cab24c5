"""Functions of Torch: against differences, against the algebra, and under its transformations."""

from __future__ import annotations

import gc
import pickle
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, v
from linkwise.errors import ExpressionError, LinkwiseError, ShapeError, TroubleWarning
from linkwise.loops import project_position, project_velocity

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # small tensors: threads would wait for each other
pytestmark = pytest.mark.prove

FORWARD = mass.inv @ (tau - bias)
to_torch = lw.convert.to_torch


def tensor(x, grad=True):
    return torch.tensor(np.asarray(x, dtype=np.float64), requires_grad=grad)


def state(mech, seed=0, grad=True, lead=()):
    """q, v, τ with closed loops."""
    rng = np.random.default_rng(seed)
    q = np.array([mech.random(rng) for _ in range(int(np.prod(lead)))]).reshape(*lead, mech.nq)
    speed, force = rng.standard_normal((2, *lead, mech.nv))
    if mech.loops or mech.couplings:
        q = project_position(mech, q).required()
        speed = project_velocity(mech, q, speed)
    return [tensor(x, grad) for x in (q, speed, force)]


MECHANISMS = {
    "branches": lw.models.random_tree(4, 3, mass_ratio=3.0),
    "floating": lw.models.random_tree(3, 5, mass_ratio=3.0, floating=True),
    "every hinge": lw.models.random_tree(5, 11, mass_ratio=3.0),
    "four-bar": lw.models.four_bar(),
}
LINKAGE = MECHANISMS["four-bar"]


# --------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", MECHANISMS)
def test_derivatives_pass_the_checks_of_torch(name):
    mech = MECHANISMS[name]
    f, x = to_torch("forward_dynamics", mech), state(mech)
    plain = [y.detach().numpy() for y in x]
    assert np.allclose(f(*x).detach().numpy(), lw.forward_dynamics(mech, *plain), rtol=1e-12)
    batched = {"check_batched_grad": True}
    forward = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(f, x, **forward, **batched)
    assert torch.autograd.gradgradcheck(f, x, check_fwd_over_rev=True, **batched)


def test_jacobians_are_those_of_the_algebra():
    mech = lw.models.puma560()
    f, x = to_torch("forward_dynamics", mech), state(mech, grad=False)
    expected = lw.forward_dynamics_derivatives(mech, *(y.numpy() for y in x))
    for make in (torch.func.jacrev, torch.func.jacfwd):
        for matrix, other in zip(make(f, argnums=(0, 1, 2))(*x), expected, strict=True):
            assert np.allclose(matrix.numpy(), other, rtol=1e-11, atol=1e-12)


def test_gradients_by_quaternions_are_tangent_and_agree_with_velocities():
    mech = MECHANISMS["floating"]
    f, (q, speed, force) = to_torch("forward_dynamics", mech), state(mech, seed=4)
    weight = torch.arange(1.0, mech.nv + 1, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(f(q, speed, force) @ weight, q)
    assert abs(gradient[:4] @ q[:4].detach()) < 1e-12 < 1.0 < gradient.abs().max()
    # along a velocity: q̇ of `mech.integrate`, where the algebra differentiates by velocities
    along = lw.compile(lw.vjp(FORWARD, "q"), mech)
    numbers = [y.detach().numpy() for y in (q, speed, force)]
    by_velocity = along(*numbers, weight.numpy())["q"]
    for k in range(mech.nv):
        e = np.eye(mech.nv)[k] * 1e-6
        rate = (mech.integrate(numbers[0], e) - mech.integrate(numbers[0], -e)) / 2e-6
        assert gradient.numpy() @ rate == pytest.approx(by_velocity[k], rel=1e-6, abs=1e-7)
    longer = q.detach().clone()
    longer[:4] *= 1.3  # after a step of a descent, say
    assert torch.allclose(f(longer, speed, force), f(q, speed, force), rtol=1e-12)


def test_hessians_of_all_kinds_agree():
    mech = lw.models.pendulum(3)
    f, (q, speed, force) = to_torch("forward_dynamics", mech), state(mech, grad=False)

    def loss(q):
        return f(q, speed, force).square().sum()

    H = torch.func.hessian(loss)(q)
    assert H.abs().max() > 1.0
    assert torch.allclose(H, H.T, rtol=1e-11)
    assert torch.allclose(H, torch.autograd.functional.hessian(loss, q), rtol=1e-11)
    assert torch.allclose(H, torch.func.jacrev(torch.func.jacrev(loss))(q), rtol=1e-11)
    third = torch.func.jacrev(torch.func.hessian(loss))(q)
    assert torch.allclose(third, third.permute(2, 0, 1), rtol=1e-9, atol=1e-9)


def test_parameters_several_results_and_formulas():
    mech = lw.models.pendulum(2)
    q, speed, force = state(mech)
    node = mech.bodies[-1].name
    f = to_torch(FORWARD, mech, parameters=(f"payload:{node}",))
    payload = tensor([0.4, 0.01, 0.02, 0.1, 0.02, 0.02, 0.02, 0.001, 0.0, 0.0])
    assert f.arguments == ("q", "v", "tau", f"payload:{node}")
    assert torch.autograd.gradcheck(f, (q, speed, force, payload))
    falling = to_torch(FORWARD, mech, parameters=("gravity",))
    assert torch.autograd.gradcheck(falling, (q, speed, force, tensor([0.5, -0.3, -9.0])))
    several = to_torch({"M": mass, "c": bias}, mech)
    result = several(v=speed, q=q)
    assert {n: tuple(x.shape) for n, x in result.items()} == {"M": (2, 2), "c": (2,)}
    assert several.shapes == {"M": (2, 2), "c": (2,)}
    assert torch.autograd.gradcheck(lambda q, v: tuple(several(q, v).values()), (q, speed))

    def speed_squared(at):
        V = at.value(J @ v, nodes=(node,))
        return (V[3:] * V[3:]).sum()

    g = to_torch(speed_squared, mech)
    assert g(q, speed).shape == ()
    assert torch.autograd.gradcheck(g, (q, speed))


def test_inputs_that_need_no_gradient_get_none():
    mech = lw.models.pendulum(3)
    f, x = to_torch("forward_dynamics", mech), state(mech, grad=False)
    for chosen in ((0,), (1,), (2,), (0, 2)):
        given = [y.clone().requires_grad_(i in chosen) for i, y in enumerate(x)]
        f(*given).sum().backward()
        assert [y.grad is not None for y in given] == [i in chosen for i in range(3)]
        everything = [y.clone().requires_grad_() for y in x]
        f(*everything).sum().backward()
        for i in chosen:
            assert torch.allclose(given[i].grad, everything[i].grad, rtol=1e-12)
            assert given[i].grad.abs().max() > 1e-3
    assert not f(*x).requires_grad
    with torch.no_grad():
        assert not f(*everything).requires_grad


# --------------------------------------------------------------------------- axes, kinds, memory


def test_leading_axes_are_broadcast():
    mech = MECHANISMS["floating"]
    f = to_torch("forward_dynamics", mech)
    q, speed, force = state(mech, lead=(2, 3))
    speed, force = speed[:, :1].detach().requires_grad_(), force[0, 0].detach().requires_grad_()
    result = f(q, speed, force)
    assert result.shape == (2, 3, mech.nv)
    for i in np.ndindex(2, 3):
        one = f(q[i], speed[i[0], 0], force)
        assert torch.allclose(result[i], one, rtol=1e-12)
    assert torch.autograd.gradcheck(f, (q, speed, force))
    assert f(q[:0], speed[:0], force).shape == (0, 3, mech.nv)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kind_of_number_is_that_of_the_tensors(dtype):
    mech = lw.models.puma560()
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(5,))
    expected = torch.autograd.grad(f(*x).square().sum(), x)
    given = [y.detach().to(dtype).requires_grad_() for y in x]
    result = f(*given)
    gradients = torch.autograd.grad(result.square().sum(), given)
    rtol = 1e-3 if dtype is torch.float32 else 1e-12
    assert result.dtype is dtype
    for a, b in zip(gradients, expected, strict=True):
        assert a.dtype is dtype
        assert (a - b).abs().max() < rtol * b.abs().max()
    mixed = f(given[0], given[1].detach().double(), given[2])
    assert mixed.dtype is torch.float64
    with pytest.raises(ShapeError, match="float32 or float64"):
        f(*(y.detach().half() for y in given))


def test_contiguous_tensors_are_not_copied(monkeypatch):
    mech = lw.models.puma560()
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(4,))
    f(*x)  # compiled
    kernel = f._function.kernel(8, "cpu")
    taken = list[int]()
    run = type(kernel.device)._part

    def watched(self, machines, place, *rest):
        taken.extend([*place.addresses, place.output])
        return run(self, machines, place, *rest)

    monkeypatch.setattr(type(kernel.device), "_part", watched)
    result = f(*x)
    assert taken == [*(y.data_ptr() for y in x), result.data_ptr()]


def test_tensors_that_are_not_contiguous():
    mech = lw.models.puma560()
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(4,), grad=False)
    expected = f(*x)
    turned = [y.T.contiguous().T for y in x]
    wide = [torch.cat([y, y], -1)[:, : y.shape[1]] for y in x]
    back = [y.flip(0).contiguous().flip(0) for y in x]
    for given in (turned, wide, back, [y[:1].expand(4, -1) for y in x]):
        result = f(*(y.requires_grad_() if y.is_leaf else y for y in given))
        rows = 1 if given[0].stride(0) == 0 else 4
        assert torch.allclose(result[:rows], expected[:rows], rtol=1e-12)
    assert torch.autograd.gradcheck(lambda *y: f(*(z.T for z in y)), [
        y.T.contiguous().requires_grad_() for y in x
    ])  # fmt: skip


# ---------------------------------------------------------------------------- transformations


def test_vmap_is_one_call(monkeypatch):
    mech = lw.models.puma560()
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(3, 4), grad=False)
    calls, kernel = list[int](), f._function.kernel(8, "cpu")
    run = type(kernel.device).run

    def watched(self, rows, batch, *rest):
        calls.append(batch)
        return run(self, rows, batch, *rest)

    monkeypatch.setattr(type(kernel.device), "run", watched)
    monkeypatch.setattr(type(kernel.device), "whole_batch", lambda *_: None)
    twice = torch.func.vmap(torch.func.vmap(f))(*x)
    assert calls == [12]
    assert torch.allclose(twice, f(*x), rtol=1e-13)
    # other axes, inputs that all share, and an axis that f itself broadcasts
    other = torch.func.vmap(f, in_dims=(1, None, 2))(x[0], x[1][0, 0], x[2].movedim(1, 2))
    assert torch.allclose(other, f(x[0], x[1][0, 0], x[2]).movedim(1, 0), rtol=1e-13)
    calls.clear()
    gradients = torch.func.vmap(torch.func.grad(lambda q, v, t: f(q, v, t).square().sum(), (0, 1)),
                                in_dims=(0, None, 0))(x[0][0], x[1][0, 0], x[2][0])  # fmt: skip
    assert calls == [4, 4]  # the value, and its pullback
    q, speed = x[0][0].clone().requires_grad_(), x[1][0, :1].expand(4, -1).clone().requires_grad_()
    f(q, speed, x[2][0]).square().sum().backward()
    assert torch.allclose(gradients[0], q.grad, rtol=1e-12)
    assert torch.allclose(gradients[1], speed.grad, rtol=1e-12)


def test_compile_makes_one_graph():
    mech = MECHANISMS["floating"]
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(3,))

    def loss(q, v, tau):
        return (f(q, v, tau * 2.0).sin() + q.sum()).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(loss(*x), x)
    for a, b in zip(torch.autograd.grad(compiled(*x), x), expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-12)
    mapped = torch.compile(torch.func.vmap(f), fullgraph=True, backend="aot_eager")
    assert torch.allclose(mapped(*x), f(*x), rtol=1e-13)
    other = [y[:2] for y in x]  # another batch: the same graph, or one more
    assert torch.allclose(compiled(*other), loss(*other), rtol=1e-12)


def test_the_operator_passes_the_checks_of_torch():
    from linkwise.codegen import torch_call

    mech = lw.models.pendulum(2)
    f, x = to_torch("forward_dynamics", mech), state(mech, lead=(2,))
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch_call.operator, (f._number, x), test_utils=tests)


# ------------------------------------------------------------------------------------- trouble


def test_states_without_a_result_are_nan_and_so_are_their_gradients():
    mech = lw.models.pendulum(2)
    f = to_torch("forward_dynamics", mech)
    q, speed, force = state(mech, lead=(3,))
    with torch.no_grad():
        speed[1, 0] = float("inf")
    with pytest.warns(TroubleWarning, match="1 of 3 states"):
        result = f(q, speed, force)
    assert torch.isnan(result[1]).all() and torch.isfinite(result[[0, 2]]).all()
    with pytest.warns(TroubleWarning):
        result[[0, 2]].sum().backward()  # that row has the weight zero
    for x in (q, speed, force):
        assert torch.isnan(x.grad[1]).all() and torch.isfinite(x.grad[[0, 2]]).all()
    quiet = to_torch("forward_dynamics", mech, status=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, codes = quiet(q, speed, force)
        again.nansum().backward()
        one, code = quiet(q[1], speed[1], force[1])
    assert codes.dtype is torch.int32 and codes.tolist() == [0, 1, 0] and code == 1
    assert torch.isnan(one).all() and torch.isnan(q.grad[1]).all()
    with pytest.warns(TroubleWarning, match="1 of 1"):
        f(q[1], speed[1], force[1])
    codes = torch.func.vmap(lambda *x: quiet(*x)[1])(q, speed, force)
    assert codes.tolist() == [0, 1, 0]


def test_bad_calls():
    mech = lw.models.pendulum(2)
    f = to_torch("forward_dynamics", mech)
    q, speed, force = state(mech)
    with pytest.raises(ShapeError, match=r"v has shape \(3,\).* length 2"):
        f(q, torch.zeros(3, dtype=torch.float64), force)
    with pytest.raises(ShapeError, match=r"takes q, v, tau, each once"):
        f(q, speed)
    with pytest.raises(ShapeError, match=r"takes q, v, tau, each once"):
        f(q, speed, force, q=q)
    with pytest.raises(ShapeError, match="cannot be combined"):
        f(q.expand(3, 2), speed.expand(4, 2), force)
    with pytest.raises(ExpressionError, match=r"rows.*lw\.dynamics\.expression"):
        to_torch("forward_dynamics", mech, rows=[0])
    with pytest.raises(ExpressionError, match=r"too long.*lw\.differentiate"):
        to_torch("forward_dynamics", lw.models.pendulum(70))
    assert torch.equal(f(q.tolist(), speed, force.detach().numpy()), f(q, speed, force))


def test_functions_are_pickled_and_forgotten():
    from linkwise.codegen import torch_call

    mech = lw.models.pendulum(2)
    f, x = to_torch("forward_dynamics", mech), state(mech)
    again = pickle.loads(pickle.dumps(f))
    assert torch.equal(again(*x), f(*x)) and again.arguments == f.arguments
    assert "forward" not in repr(f) and "(q, v, tau)" in repr(f)
    number, result = f._number, f(*x)
    del f
    gc.collect()
    result.sum().backward()  # what is left to be differentiated keeps its function
    del result
    gc.collect()
    assert number not in torch_call._functions


# --------------------------------------------------------------------- the functions of every day


def test_everyday_functions_and_kernels_follow_gradients():
    mech = lw.models.puma560()
    q, speed, force = state(mech)
    node = mech.bodies[-1].name
    kernel = lw.compile({"a": FORWARD, "M": mass}, mech)
    cases = {
        "forward": lambda q, v, t: lw.forward_dynamics(mech, q, v, t),
        "inverse": lambda q, v, t: lw.inverse_dynamics(mech, q, v, t),
        "kernel": lambda q, v, t: tuple(kernel(q, v, t).values()),
        "pose": lambda q: (lw.forward_kinematics(mech, q, node).p,),
        "jacobian": lambda q: lw.jacobian(mech, q, node, frame="world"),
        "energy": lambda q, v: lw.energy(mech, q, v).total,
        "determinant": lambda q: lw.dynamics.log_det_mass_matrix(mech, q),
        "integrate": lambda q, v: lw.integrate(mech, q, v, 0.1),
        "linearize": lambda q, v, t: lw.linearize(mech, q, v, t)[0],
    }
    for name, f in cases.items():
        given = (q, speed, force)[: f.__code__.co_argcount]
        assert torch.autograd.gradcheck(f, given), name
    result = torch.func.jacrev(lambda q: lw.forward_dynamics(mech, q, speed, force))(q.detach())
    expected = lw.forward_dynamics_derivatives(
        mech, *(x.detach().numpy() for x in (q, speed, force))
    )
    assert np.allclose(result.detach().numpy(), expected.q, rtol=1e-11, atol=1e-12)
    plain = lw.forward_dynamics(mech, *(x.detach() for x in (q, speed, force)))
    assert isinstance(plain, torch.Tensor) and not plain.requires_grad


@pytest.mark.parametrize("name", ["floating", "four-bar"])
def test_everyday_functions_of_other_mechanisms(name):
    mech = MECHANISMS[name]
    x = state(mech, lead=(2,))
    f = to_torch("forward_dynamics", mech)
    expected = torch.autograd.grad(f(*x).square().sum(), x)
    result = lw.forward_dynamics(mech, *x)
    for a, b in zip(torch.autograd.grad(result.square().sum(), x), expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-11)
    mapped = torch.func.vmap(lambda *y: lw.forward_dynamics(mech, *y))(*(y.detach() for y in x))
    assert torch.allclose(mapped, result, rtol=1e-12)


def test_a_step_on_the_manifold_is_differentiable():
    mech = MECHANISMS["floating"]
    q, speed, _ = state(mech)

    # as functions of normalised quaternions, which `to_torch` takes at any length
    def step(q, v):
        return lw.integrate(mech, torch.cat([q[:4] / q[:4].norm(), q[4:]]), v)

    assert torch.autograd.gradcheck(step, (q, speed))
    goal = tensor(mech.random(np.random.default_rng(9)), grad=False)
    lw.difference(mech, step(q, speed), goal).square().sum().backward()
    assert torch.isfinite(q.grad).all() and q.grad.abs().max() > 1e-2


# ------------------------------------------------------------------------------------- rollouts


@pytest.mark.parametrize("integrator", ["rk4", "euler", "variational"])
def test_rollouts_are_differentiated_by_everything_they_are_given(integrator):
    mech = MECHANISMS["floating"]
    q, speed, _ = state(mech, lead=(2,))
    force = tensor(np.random.default_rng(1).standard_normal((4, mech.nv)))

    def records(q, v, tau):
        q = torch.cat([q[:, :4] / q[:, :4].norm(dim=-1, keepdim=True), q[:, 4:]], -1)
        runs = lw.rollout(
            mech, q, 0.3 * v, tau=tau, duration=0.04, step=0.01, integrator=integrator
        )
        return runs.q, runs.v

    assert torch.autograd.gradcheck(records, (q, speed, force))
    with torch.no_grad():
        q, speed, force = (x.detach() for x in (q, speed, force))
        plain = lw.rollout(mech, q, 0.3 * speed, tau=force, duration=0.04, step=0.01,
                           integrator=integrator)  # fmt: skip
    assert torch.allclose(records(q, speed, force)[0], plain.q, atol=1e-12)


def test_rollouts_are_differentiated_by_parameters_and_gains():
    arm = lw.models.seven_dof_arm()
    q, speed, _ = state(arm, lead=(3,))
    payload = tensor([1.0, 0.0, 0.02, 0.1, 0.02, 0.02, 0.02, 0.001, 0.0, 0.0])

    def last(q, v, payload):
        return lw.rollout(arm, q, v, duration=0.02, step=0.01, integrator="euler",
                          parameters={"payload:hand": payload}).q[:, -1]  # fmt: skip

    assert torch.autograd.gradcheck(last, (q, speed[0].detach().requires_grad_(), payload))
    with pytest.raises(lw.errors.ModelError, match=r"torch\.func"):
        torch.func.grad(lambda q: last(q, speed, payload).sum())(q.detach())
    with pytest.raises(lw.errors.ModelError, match="second derivative"):
        torch.autograd.grad(last(q, speed, payload).sum(), q, create_graph=True)
    q, speed = LINKAGE.neutral(), np.zeros(LINKAGE.nv)
    tau = torch.linspace(0.1, 0.3, LINKAGE.nv, dtype=torch.float64, requires_grad=True)
    runs = lw.rollout(LINKAGE, q, speed, tau=tau, duration=0.01)  # with its loop held
    slopes = lw.rollout(LINKAGE, q, speed, tau=tau.detach(), duration=0.01).gradient(v=speed + 1.0)
    (by_tau,) = torch.autograd.grad(runs.v[-1].sum(), tau)
    np.testing.assert_allclose(by_tau.numpy(), slopes.tau, rtol=1e-12)
    with pytest.raises(lw.errors.ModelError, match="has no gradient"):
        lw.rollout(arm, q=[0.0] * 7, tau=torch.zeros(7, requires_grad=True), duration=0.01,
                   noise={"tau": 0.1})  # fmt: skip
    with pytest.raises(TypeError, match="unexpected keyword"):
        lw.rollout(arm, q, speed, length=1.0)


def test_errors_are_those_without_a_gradient():
    mech = lw.models.pendulum(2)
    q, speed, force = state(mech)
    with pytest.raises(ShapeError, match="v has shape"):
        lw.forward_dynamics(mech, q, speed[:1], force)
    with pytest.raises(lw.errors.ModelError, match="v is not finite"):
        lw.forward_dynamics(mech, q, speed * float("inf"), force)
    kernel = lw.compile(FORWARD, mech)
    with pytest.raises(ShapeError, match=r"out was given.*gradient"):
        kernel(q, speed, force, out=torch.empty(2, dtype=torch.float64))
    codes = np.full((), -1, np.int32)
    kernel(q, speed * float("nan"), force, status=codes)
    assert codes == 1
    with pytest.raises(ShapeError, match=r"status.*torch\.func"):
        torch.func.vmap(lambda q: kernel(q, speed, force, status=codes))(torch.zeros(3, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, q, v: lw.simulate(m, q, v, duration=0.01),
        lambda m, q, v: m.check_q(q),
        lambda m, q, v: lw.inverse_dynamics(LINKAGE, *state(LINKAGE)),
        lambda m, q, v: lw.loops.constraint_forces(LINKAGE, *state(LINKAGE)),
        lambda m, q, v: lw.dynamics.operational_inertia(m, q, m.bodies[-1].name),
        lambda m, q, v: lw.forward_dynamics(m, q, v, v, forces={
            b.name: tensor(np.ones(6)) for b in m.bodies}),
        lambda m, q, v: lw.Pose(np.eye(3), tensor(np.ones(3))),
    ],
)  # fmt: skip
def test_what_is_not_differentiated_says_so(call):
    mech = lw.models.puma560()
    q, speed, _ = state(mech)
    with pytest.raises(LinkwiseError, match=r"gradient.*to_torch.*detach"):
        call(mech, q, speed)
