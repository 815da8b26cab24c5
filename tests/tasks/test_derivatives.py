"""Derivatives of Λ, J̄, μ and p: against differences, and against those of their expressions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.symbols import vector
from linkwise.model.closure import closure_nodes
from linkwise.tasks import derivatives
from linkwise.tasks.quantity import TASK
from linkwise.tasks.task_stack import task_stack
from tests.algebra.trees import MOVING
from tests.cases import close, tree
from tests.codegen.test_c import compiled
from tests.dynamics.test_derivatives import differences

PARTS = {
    "inertia_q": lambda x: x.inertia,
    "consistent_inverse_q": lambda x: x.space.consistent_inverse,
    "coriolis_q": lambda x: x.coriolis,
    "gravity_q": lambda x: x.gravity,
}
NAMES = {
    "inertia_q": "task_inertia",
    "consistent_inverse_q": "consistent_inverse",
    "coriolis_q": "task_coriolis",
    "gravity_q": "task_gravity",
}


def small():
    """A floating body that carries another."""
    mech = lw.models.random_tree(2, 4, floating=True, hinges=("pin",))
    tip = mech.bodies[-1]
    return mech, lw.Task.position(tip.name)


def branched():
    mech = lw.models.random_tree(5, 5, hinges=MOVING, branching=0.7, mass_ratio=3.0)
    return mech, (lw.Task.joints(mech.bodies[0].hinge_name), lw.Task.position(mech.bodies[-1].name))


CASES = {
    "small": small,
    "branched, joints first": branched,
    "every hinge": lambda: (tree("every hinge, others"), lw.Task.position("tool")),
    "floating": lambda: (tree("floating"), lw.Task.pose("tool")),
    "seven axes": lambda: (lw.models.seven_dof_arm(), lw.Task.pose("hand")),
}
FEW = ["small", *(pytest.param(x, marks=pytest.mark.prove) for x in CASES if x != "small")]


def state_of(mech):
    rng = np.random.default_rng(2)
    return mech.random(rng), mech.random_velocity(rng)


@pytest.mark.parametrize("name", FEW)
def test_differences(name):
    mech, tasks = CASES[name]()
    q, v = state_of(mech)
    ours = lw.tasks.task_dynamics_derivatives(mech, q, v, tasks)
    for part, of in PARTS.items():
        expected = differences(
            lambda d, of=of: of(lw.tasks.task_dynamics(mech, mech.integrate(q, d), v, tasks)), mech
        )
        close(getattr(ours, part), expected, 1e-8)
    expected = differences(lambda d: lw.tasks.task_dynamics(mech, q, v + d, tasks).coriolis, mech)
    close(ours.coriolis_v, expected, 1e-9)


@pytest.mark.parametrize("name", FEW)
def test_expressions(name):
    """`lw.differentiate` of the expressions, as matrices and as a kernel."""
    mech, tasks = CASES[name]()
    (q, v), stack = state_of(mech), task_stack(mech, tasks)
    setting, nodes = stack.setting, closure_nodes(stack.mech)
    u = np.random.default_rng(3).standard_normal(stack.size)
    ours = lw.tasks.task_dynamics_derivatives(mech, q, v, tasks)
    x = vector("x", CONSTRAINT)
    dense = Dense(stack.mech, q, v, nodes=nodes, values={"x": stack.unsorted(u)})
    for part, quantity in NAMES.items():
        expr, expected = TASK[quantity](setting), getattr(ours, part)
        if not expr.is_vector:
            expr, expected = expr @ x, np.einsum("imk,m->ik", expected, u)
        A = lw.differentiate(expr, "q")
        matrix = dense.matrix(A)
        if quantity != "consistent_inverse":  # of joints, not of rows
            matrix = stack.sorted(matrix, 0)
        close(matrix, expected, 1e-9)
        if part in ("inertia_q", "coriolis_q"):
            kernel = lw.compile(A, stack.mech, nodes=nodes)
            given = {"q": q, "v": v, "x": stack.unsorted(u)}
            again = kernel(*(given[n] for n in kernel.arguments))
            close(stack.sorted(again, 0), expected, 1e-9)


@pytest.mark.parametrize("many", [False, True])
def test_batches_and_singular_states(many, monkeypatch):
    """Each state of a batch, and a code where two rows depend on each other."""
    if many:  # along one direction after the other
        monkeypatch.setattr(derivatives, "STRAIGHT", 0)
    arm = lw.models.pendulum(2)
    tasks = lw.Task.position("tip", along="xz")
    v, codes = np.array([1.0, 2.0]), np.zeros(3, np.int32)
    q = np.array([[0.3, 0.4], [0.3, 0.0], [0.3, np.nan]])  # bent, stretched, nonsense
    every = lw.tasks.task_dynamics_derivatives(arm, q, v, tasks, status=codes, threads=2)
    assert codes.tolist() == [0, 3, 1]
    assert np.isnan(every.inertia_q[1:]).all() and np.isfinite(every.inertia_q[0]).all()
    one = lw.tasks.task_dynamics_derivatives(arm, q[0], v, tasks)
    for name in PARTS:
        close(getattr(every, name)[0], getattr(one, name))
    again = lw.tasks.task_dynamics_derivatives(arm, q[0], 2.0 * v, tasks, out=one)
    assert again.coriolis_v is one.coriolis_v
    close(again.coriolis_v, 2.0 * every.coriolis_v[0])
    with pytest.raises(lw.errors.SingularTaskError, match="require more than the mechanism can do"):
        lw.tasks.task_dynamics_derivatives(arm, q[1], v, tasks)
    with pytest.warns(lw.errors.TroubleWarning, match="2 of 3 states"):
        lw.tasks.task_dynamics_derivatives(arm, q, v, tasks)


def test_tasks_that_are_always_singular():
    arm = lw.models.pendulum(2)
    state = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    with pytest.raises(lw.errors.SingularTaskError, match="directions are lost"):
        lw.tasks.task_dynamics_derivatives(arm, *state, lw.Task.pose("tip"))
    with pytest.raises(lw.errors.ModelError, match="task_dynamics_derivatives was called"):
        lw.tasks.task_dynamics_derivatives(
            lw.models.four_bar(), np.zeros(3), np.zeros(3), lw.Task.joints("crank")
        )


def test_single_precision_and_c(tmp_path):
    arm = lw.models.pendulum(2)
    stack = task_stack(arm, lw.Task.position("tip", along="xz"))
    formula, nodes = derivatives._of_all(None), closure_nodes(stack.mech)
    state = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    expected = lw.tasks.task_dynamics_derivatives(arm, *state, stack.tasks)
    single = lw.compile(formula, stack.mech, nodes=nodes, dtype=np.float32)
    close(single(*(x.astype("f4") for x in state))["coriolis_q"], expected.coriolis_q, 1e-4)
    source = lw.compile(formula, stack.mech, nodes=nodes, target="c")
    code, flat = compiled(tmp_path, source)(state, source.shape)
    assert not code
    close(np.ravel(flat), np.concatenate([x.ravel() for x in expected]), 1e-11)
    assert "__global__" in lw.compile(formula, stack.mech, nodes=nodes, target="cuda").source
