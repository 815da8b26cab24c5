"""Every rule of differentiation on random mechanisms: tests generated from the table.

By q and v they are compared with differences of order eight, in extended precision. Leaves are
linear in parameters, so that differences over long steps are exact there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, CONSTRAINT, JOINT, NODE, vector
from linkwise.algebra.dense import Dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.differential_rules import RULES, LeafRule
from linkwise.algebra.space import INBOARD, NODE_PLACE, PLACE
from linkwise.algebra.symbols import (
    X_B,
    B,
    J,
    M,
    Q,
    V,
    X,
    Y,
    a,
    kappa,
    kappa_g,
    mass,
    phi,
    rot_W,
    task_error,
    to_W,
)
from linkwise.codegen.scalar import parameters
from linkwise.model.task_rows import SERVO, has_tasks, random_goal
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import random_rotation
from linkwise.tasks.task_stack import task_stack
from tests.algebra.long_dense import LongDense, differences, integrate
from tests.algebra.test_differential_loops import CASES as LOOPS
from tests.algebra.trees import MOVING

STATE, PARAMETERS = ("q", "v"), ("inertia", "payload", "armature", "gravity", "a_g")
CLOSED = {Q, Q.T, Y, Y.T, kappa, kappa_g}
SPACES = {BODY: "xb", INBOARD: "xi", JOINT: "xj", NODE: "xn", CONSTRAINT: "xc", PLACE: "xp"}
SPACES[NODE_PLACE] = "xnp"


def with_armature(mech: lw.Mechanism) -> lw.Mechanism:
    bodies = [
        replace(b, drive=replace(b.drive, armature=0.1 + 0.02 * i)) if b.hinge.nv == 1 else b
        for i, b in enumerate(mech.bodies)
    ]
    mech = replace(mech, bodies=tuple(bodies), gravity=(1.0, -2.0, -9.0))
    tool = Pose(random_rotation(np.random.default_rng(1)), (0.2, -0.1, 0.3))
    return mech.with_node("tool", mech.bodies[1].name, tool)


TREES = {
    "every hinge": with_armature(lw.models.random_tree(5, 3, mass_ratio=3.0)),
    "branched": with_armature(
        lw.models.random_tree(5, 5, hinges=MOVING, branching=0.7, mass_ratio=3.0)
    ),
    "floating": with_armature(lw.models.random_tree(3, 2, hinges=MOVING, floating=True)),
}
MECHANISMS = {**TREES, "loops": LOOPS["turning directions"][0], "couplings": LOOPS["couplings"][0]}
_ground = LOOPS["ground"][0]
MECHANISMS["ground"] = replace(  # seen from the body that moves
    _ground,
    loops=tuple(replace(x, node_a=x.node_b, node_b=x.node_a) for x in _ground.loops),
)
_tree = TREES["branched"]
TASKS = [
    lw.Task.pose("tool"),
    lw.Task.pose("tool", axes="node"),
    lw.Task.orientation("tool", relative_to=_tree.bodies[-1].name),
    lw.Task.position("tool", "xz", relative_to=_tree.bodies[-1].name),
    lw.Task.direction("tool", (1.0, 2.0, 3.0)),
    lw.Task.joints(next(b.hinge_name for b in _tree.bodies if b.hinge.kind == "pin")),
]
MECHANISMS["tasks"] = task_stack(_tree, TASKS).mech


def applied(leaf) -> lw.algebra.Expr:
    """L x with a vector of its space, or the vector L."""
    return leaf if leaf.is_vector else leaf @ vector(SPACES[leaf.domain], leaf.domain)


class Varied:
    """A mechanism in a state, and what expressions are when a variable is moved."""

    def __init__(self, name: str) -> None:
        self.mech, rng = MECHANISMS[name], np.random.default_rng(5)
        mech = self.mech
        loops = tuple(n for loop in mech.loops for n in (loop.node_a, loop.node_b))
        self.nodes = loops or (mech.bodies[-1].name, "tool")
        self.q, self.v = mech.random(rng), rng.standard_normal(mech.nv)
        sizes = Dense(mech, self.q, self.v, nodes=self.nodes)
        self.values = {n: rng.standard_normal(sizes.size(s)) for s, n in SPACES.items()}
        self.rng = rng
        if has_tasks(mech):
            far_from_half_a_turn = np.random.default_rng(25)
            self.values["goal"] = random_goal(mech, far_from_half_a_turn)
            rows = sizes.size(CONSTRAINT)
            self.values |= {name: rng.standard_normal(rows) for name in SERVO if name != "goal"}

    def at(self, wrt: str, move: np.ndarray | float = 0.0, kind: type[Dense] = Dense) -> Dense:
        mech, q, v, values = self.mech, self.q, self.v, dict(self.values)
        if wrt == "q":
            q = integrate(mech, q, np.broadcast_to(move, mech.nv))
        elif wrt == "v":
            v = v + move
        elif wrt == "gravity":
            mech = replace(mech, gravity=np.asarray(mech.gravity) + move)
        elif wrt == "armature":
            mech = _armed(mech, np.broadcast_to(move, mech.nv))
        elif wrt == "inertia":
            mech = _heavier(mech, np.broadcast_to(move, 10 * mech.n_bodies).reshape(-1, 10))
        elif wrt == "payload":
            mech = _loaded(mech, self.nodes, np.broadcast_to(move, 10 * len(self.nodes)))
        elif wrt in SERVO:
            values[wrt] = values[wrt] + move
        return kind(mech, q, v, nodes=self.nodes, values=values)

    def along(self, exprs, wrt: str, way) -> list[np.ndarray]:
        """Derivatives of vectors along a direction."""
        if wrt not in (*STATE, "goal"):
            up, down = self.at(wrt, way, LongDense), self.at(wrt, -way, LongDense)
            return [0.5 * (up.matrix(x) - down.matrix(x))[:, 0] for x in exprs]
        return differences(lambda s: self.at(wrt, s * way, LongDense), exprs)


def _armed(mech: lw.Mechanism, move: np.ndarray) -> lw.Mechanism:
    bodies = list(mech.bodies)
    for k, body in enumerate(bodies):
        if body.hinge.nv == 1:
            more = body.drive.armature + move[mech.v_start[k]]
            bodies[k] = replace(body, drive=replace(body.drive, armature=more))
    return replace(mech, bodies=tuple(bodies))


def _heavier(mech: lw.Mechanism, move: np.ndarray) -> lw.Mechanism:
    bodies = [
        replace(body, inertia=parameters.inertia(parameters.numbers(body.inertia) + ten))
        for body, ten in zip(mech.bodies, move, strict=True)
    ]
    return replace(mech, bodies=tuple(bodies))


def _loaded(mech: lw.Mechanism, nodes, move: np.ndarray) -> lw.Mechanism:
    """Something welded to nodes."""
    moved = np.zeros((mech.n_bodies, 10))
    for name, ten in zip(nodes, move.reshape(-1, 10), strict=True):
        node = mech.node(name)
        if node.body in mech.body_index and node.body != "world":
            load = parameters.inertia(ten).moved(node.pose)
            moved[mech.body_index[node.body]] += parameters.numbers(load)
    return _heavier(mech, moved)


def ways(state: Varied, wrt: str) -> np.ndarray:
    mech = state.mech
    size = {"gravity": 3, "inertia": 10 * mech.n_bodies, "payload": 10 * len(state.nodes)}
    size |= {name: len(state.values[name]) for name in SERVO if name in state.values}
    way = 0.01 * state.rng.standard_normal(size.get(wrt, mech.nv))
    if wrt == "armature":  # the hinges that have one
        way *= np.concatenate([np.full(b.hinge.nv, float(b.hinge.nv == 1)) for b in mech.bodies])
    return 100.0 * way if wrt in (*STATE, *SERVO) else way


@pytest.mark.parametrize("wrt", [*STATE, "inertia", "payload", "armature", "gravity", "goal"])
def test_rules(wrt):
    """Each on every mechanism that has its leaf, and not of zeros everywhere."""
    rules: list[LeafRule] = [rule for (_, y), rule in RULES.items() if y == wrt]
    sizes = dict.fromkeys((rule.leaf for rule in rules), 0.0)
    for name in MECHANISMS if wrt != "goal" else ("tasks",):
        state = Varied(name)
        here, way = state.at(wrt), ways(state, wrt)
        chosen = [
            r
            for r in rules
            if (r.leaf in CLOSED) <= (name not in TREES)
            and (r.leaf is task_error) <= (name == "tasks")
        ]
        exprs = [applied(rule.leaf) for rule in chosen]
        every = state.along(exprs, wrt, way)
        for rule, expr, expected in zip(chosen, exprs, every, strict=True):
            size = float(np.abs(expected).max())
            sizes[rule.leaf] = max(sizes[rule.leaf], size)
            ours = here.matrix(differentiate(expr, wrt)) @ way
            error = np.abs(ours - expected).max()
            least = 1.0 if wrt in STATE else 0.01
            assert error < 1e-13 * max(size, least), f"{rule} on {name}"
    assert not [leaf for leaf, size in sizes.items() if size < 1e-6]


def test_variation_of_ground_acceleration():
    """By a_g itself: a contains it, and κ_g removes it."""
    state = Varied("ground")
    by = {x: state.at("q").matrix(differentiate(x, "a_g")) for x in (a, kappa_g)}
    assert np.array_equal(by[a], np.eye(6 * state.mech.n_bodies))
    lift = state.at("q").matrix(-(Q @ B.T @ phi.T))
    assert np.abs(lift).max() > 0.1 and np.array_equal(by[kappa_g], lift)


PLACED = {
    "bodies": X,
    "nodes": X_B,
    "momentum": to_W.inv.T @ phi @ M @ V,
    "velocity in world axes": rot_W @ J @ vector("xj", JOINT),
    "torque of a force in world axes": J.T @ rot_W.T @ vector("xn", NODE),
}


@pytest.mark.parametrize(
    "name", ["nodes", *(pytest.param(x, marks=pytest.mark.prove) for x in PLACED if x != "nodes")]
)
def test_second_derivatives_of_places(name):
    """Jacobians and Hessians: dense, compiled, and their adjoints."""
    state, expr = Varied("every hinge"), PLACED[name]
    mech, u = state.mech, vector("u", JOINT)
    state.values["u"] = way = 0.3 * state.rng.standard_normal(mech.nv)
    w = vector("w", expr.range)
    state.values["w"] = state.rng.standard_normal(state.at("q").size(expr.range))
    A, here = differentiate(expr, "q"), state.at("q")
    (first,) = state.along([expr], "q", way)
    assert np.abs(first).max() > 1e-3
    assert np.abs(here.matrix(A) @ way - first).max() < 1e-13 * np.abs(first).max()
    second = [A @ u, A.T @ w]
    given = {"q": state.q, "v": state.v, **state.values}
    for once, expected in zip(second, state.along(second, "q", way), strict=True):
        twice = differentiate(once, "q")
        assert np.abs(here.matrix(twice) @ way - expected).max() < 1e-13 * np.abs(expected).max()
        for x in (once, twice):
            kernel = lw.compile(x, mech, nodes=state.nodes)
            ours, dense = kernel(*(given[n] for n in kernel.arguments)), here.matrix(x)
            dense = dense[:, 0] if x.is_vector else dense
            assert np.abs(ours - dense).max() < 1e-11 * np.abs(dense).max()


@pytest.mark.parametrize(
    "wrt", ["gravity", *(pytest.param(x, marks=pytest.mark.prove) for x in ("payload", "inertia"))]
)
def test_parameters_compile(wrt):
    """The Jacobian of forward dynamics and its adjoint, by kernels."""
    state = Varied("branched")
    tau = vector("xj", JOINT)
    A = differentiate(mass.inv @ (tau - lw.algebra.bias), wrt)
    here, given = state.at(wrt), {"q": state.q, "v": state.v, **state.values}
    expected = here.matrix(A)
    for expr, dense in ((A, expected), (A.T @ tau, expected.T @ state.values["xj"])):
        kernel = lw.compile(expr, state.mech, nodes=state.nodes)
        ours = kernel(*(given[n] for n in kernel.arguments))
        assert np.abs(dense).max() > 1e-2
        assert np.abs(ours - dense).max() < 1e-11 * np.abs(dense).max()
    assert "∂" in str(lw.plan(A)) or "Y" in str(lw.plan(A))


def test_loops_over_bodies():
    """Derivatives of poses roll; those by parameters are straight code, also of long chains."""
    chain, rng = lw.models.chain(66), np.random.default_rng(1)
    u, node = vector("u", JOINT), (chain.bodies[-1].name,)
    given = {"q": 0.1 * rng.standard_normal(66), "u": rng.standard_normal(66)}
    short = lw.models.chain(9)
    for expr in (differentiate(X_B, "q") @ u, differentiate(rot_W @ J @ u, "q") @ u):
        kernels = [
            lw.compile(expr, short, nodes=(short.bodies[-1].name,), rolled=x) for x in (True, False)
        ]
        one, other = (k(*(given[n][:9] for n in k.arguments)) for k in kernels)
        assert np.abs(one - other).max() < 1e-13 * np.abs(other).max()
    by_gravity = differentiate(lw.algebra.H @ phi @ M @ phi.T @ lw.algebra.a_g, "gravity")
    ours = lw.compile(by_gravity, chain, nodes=node)(given["q"])
    expected = lw.dynamics.gravity_force(chain, given["q"])
    assert (
        np.abs(ours @ np.asarray(chain.gravity) - expected).max() < 1e-12 * np.abs(expected).max()
    )
    with pytest.raises(lw.errors.LoweringError, match=r"by parameters.*leave out rolled"):
        lw.compile(by_gravity, short, rolled=True)


def test_coefficients_of_dampers_and_springs():
    """They are vectors, of one's own or by name."""
    state, x = Varied("branched"), vector("xj", JOINT)
    v, diagonal = lw.algebra.v, lw.algebra.diagonal
    for d in (vector("d", JOINT), lw.algebra.damping):
        state.values[d.ascii] = np.abs(state.rng.standard_normal(state.mech.nv))
        damped = lw.algebra.bias + diagonal(v) @ d
        here = state.at("v")
        assert np.array_equal(here.matrix(differentiate(damped, d)), np.diag(state.v))
        rest = here.matrix(differentiate(damped, "v") - differentiate(lw.algebra.bias, "v"))
        assert np.abs(rest - np.diag(state.values[d.ascii])).max() < 1e-12
    assert differentiate(damped, "damping") is differentiate(damped, d) is diagonal(v)
    sprung = mass.inv @ (x - lw.algebra.bias - diagonal(x) @ lw.algebra.stiffness)
    by_stiffness = here.matrix(differentiate(sprung, "stiffness"))
    expected = -here.matrix(mass.inv) * state.values["xj"]
    assert np.abs(by_stiffness - expected).max() < 1e-12 * np.abs(expected).max()
