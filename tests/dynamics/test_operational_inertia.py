"""The operational inertia: of one node and of several, where it exists and where it does not."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.velocity_space import reach
from linkwise.errors import ModelError, RankWarning, ShapeError, TroubleWarning, UnknownNameError
from tests.algebra.trees import MOVING
from tests.cases import close, state, tree
from tests.dense_kinematics import body_jacobians, mass_matrix, node_jacobian

WRIST = np.array([0.3, 0.4, 0.5, 0.7, 0.0, 0.2])  # the axes 4 and 6 of the PUMA are one line


def stacked_jacobian(mech, q, nodes, frame="node"):
    turns = [np.eye(3) if frame == "node" else mech.pose(q, node).rot for node in nodes]
    parts = [node_jacobian(mech, q, node) for node in nodes]
    return np.vstack([np.kron(np.eye(2), rot) @ J for rot, J in zip(turns, parts, strict=True)])


def dense(mech, q, nodes, frame="node"):
    """J, rank, and Λ = U (U* J A⁻¹ J* U)⁻¹ U* with U from NumPy's own SVD of J."""
    J, A = stacked_jacobian(mech, q, nodes, frame), mass_matrix(mech, q)
    span, values, _ = np.linalg.svd(J)
    rank = int((values > 1e-9 * max(values[0], 1e-300)).sum())
    span = span[:, :rank]
    size = 1.0 / np.sqrt(np.diag(A))  # the Cholesky factor of A, scaled for any ratio of masses
    half = np.linalg.solve(np.linalg.cholesky(A * np.outer(size, size)), (J * size).T)
    triangle = np.linalg.qr(half @ span)[1]
    root = np.linalg.solve(triangle.T, span.T)
    return J, rank, root.T @ root


@pytest.mark.parametrize("frame", ["node", "world"])
def test_of_one_hand(frame):
    arm = lw.models.seven_dof_arm()
    q = arm.random(3)
    J = stacked_jacobian(arm, q, ["hand"], frame)
    expected = np.linalg.inv(J @ np.linalg.solve(mass_matrix(arm, q), J.T))
    close(lw.operational_inertia(arm, q, "hand", frame=frame), expected, 1e-9)
    space = lw.operational_space(arm, q, "hand", frame=frame)
    assert space.rank == 6 and space.lost.shape == (6, 0)
    close(space.inertia, expected, 1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "nodes", "frame"),
    [
        pytest.param(
            *("every hinge, armature", ["body_3", "body_2", "tool"], "node"),
            marks=pytest.mark.prove,
        ),
        ("no armature", ["post", "tool"], "world"),
        ("floating", ["tool", "body_1"], "node"),
        ("mass ratio of a million", ["tool", "body_3"], "node"),
        pytest.param("pins", ["tool", "body_3", "body_2"], "world", marks=pytest.mark.slow),
        pytest.param("every hinge, others", ["tool", "body_2"], "node", marks=pytest.mark.slow),
    ],
)
def test_on_trees_by_a_pseudo_inverse(name, nodes, frame):
    """Random trees of every hinge: sets of nodes over several branches, most of less than full
    rank."""
    mech = tree(name)
    q, _, _ = state(mech, 9)
    J, rank, expected = dense(mech, q, nodes, frame)
    space = lw.operational_space(mech, q, nodes, frame=frame)
    assert space.rank == rank
    # Rounding of 𝓜⁻¹ grows with its condition: the bound of the tests of the mass matrix itself.
    bound = max(1e-11, 20.0 * np.finfo(float).eps * np.linalg.cond(mass_matrix(mech, q)))
    close(space.inertia, expected, min(bound, 1e-6))
    close(space.directions.T @ space.directions, np.eye(rank), 1e-13)
    close(space.basis.T @ space.basis, np.eye(len(J)), 1e-9)
    size = np.abs(J).max() or 1.0
    close(space.lost.T @ J, np.zeros((len(J) - rank, mech.nv)), 1e-9, scale=size)
    close(space.directions @ (space.directions.T @ J), J, 1e-9)
    # Λ takes the acceleration of a force that moves something back to that force.
    push = space.inertia @ J @ np.random.default_rng(0).standard_normal(mech.nv)
    again = space.inertia @ (space.inverse @ push)
    close(again, push, 1e4 * bound)


def test_of_several_nodes_at_once():
    """Two hands on a free base: the inertia between them is not zero."""
    body = lw.models.humanoid()
    hands = ["left_hand", "right_hand"]
    q = body.random(1)
    _, rank, expected = dense(body, q, hands)
    assert rank == 12
    inertia = lw.operational_inertia(body, q, hands)
    close(inertia, expected, 1e-9)
    assert np.abs(inertia[:6, 6:]).max() > 1e-3 * np.abs(inertia).max()


def test_two_nodes_on_one_body_are_bound():
    """The second node adds nothing: the same body, felt at two places."""
    arm = lw.models.seven_dof_arm()
    arm = arm.with_node("far", arm.node("hand").body, (0.3, 0.1, 0.2))
    q = arm.random(0)
    space = lw.operational_space(arm, q, ["hand", "far"])
    assert space.rank == 6 and "6 combinations" in str(space) and repr(space) == f"<{space}>"
    _, _, expected = dense(arm, q, ["hand", "far"])
    close(space.inertia, expected, 1e-10)
    # The energy of a motion is the same, whether one node tells it or both.
    v = arm.random_velocity(0)
    both, one = (stacked_jacobian(arm, q, n) @ v for n in (["hand", "far"], ["hand"]))
    alone = one @ lw.operational_inertia(arm, q, "hand") @ one
    close(both @ space.inertia @ both, alone, 1e-10)


@pytest.mark.prove
def test_the_same_node_twice():
    arm = lw.models.seven_dof_arm()
    q = arm.random(0)
    twice = lw.operational_space(arm, q, ["hand", "hand"])
    assert twice.rank == 6
    close(twice.inertia, 0.25 * np.tile(lw.operational_inertia(arm, q, "hand"), (2, 2)), 1e-10)


@pytest.mark.filterwarnings("ignore::linkwise.errors.RankWarning")
def test_arms_of_few_freedoms():
    """A double pendulum has two motions in each state: the lost ones are told."""
    mech, q = lw.models.pendulum(2), np.array([0.4, 0.7])
    space = lw.operational_space(mech, q, "link_2")
    assert space.rank == 2
    _, _, expected = dense(mech, q, ["link_2"])
    close(lw.operational_inertia(mech, q, "link_2"), expected, 1e-13)
    close(space.inertia, expected, 1e-13)
    message = " and ".join(space.lost_in_words())
    assert "'link_2' cannot turn about x and z of its own axes" in message
    assert "'link_2' cannot move along y of its own axes" in message
    # What is left is the line from the first hinge to the second.
    assert message.endswith("cannot move along (-0.644, 0, 0.765) of its own axes")


@pytest.mark.parametrize("seed", range(4))
def test_the_wrist_of_the_puma(seed):
    """Axes 4 and 6 in one line: one screw is left that no hinge gives way to."""
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    q = np.concatenate([arm.random(seed)[:4], [0.0, 0.3 * seed]])
    space = lw.operational_space(arm, q, hand)
    assert space.rank == 5 and space.lost.shape == (6, 1)
    J, _, expected = dense(arm, q, [hand])
    close(space.inertia, expected, 1e-11)
    close(space.lost[:, 0] @ J, np.zeros(6), 1e-13, scale=1.0)


def test_the_elbow_of_the_puma_stretched():
    """Upper arm and forearm in one line: the wrist cannot come nearer or go farther."""
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name  # its origin is where the axes of the wrist meet

    def far(angle):
        q = np.array([0.3, 0.4, angle, 0.7, 0.8, 0.2])
        return q, arm.pose(q, hand).p - arm.pose(q, "link_2").p

    # The square of the distance is A + B cos + C sin of the elbow: three samples give its largest.
    at_0, at_90, at_180 = (float((far(x)[1] ** 2).sum()) for x in (0.0, np.pi / 2, np.pi))
    middle = 0.5 * (at_0 + at_180)
    q, radius = far(np.arctan2(at_90 - middle, at_0 - middle))
    space = lw.operational_space(arm, q, hand, frame="world")
    assert space.rank == 5
    assert lw.operational_space(arm, q + 0.3, hand).rank == 6
    _, rank, expected = dense(arm, q, [hand], "world")
    assert rank == 5
    close(space.inertia, expected, 1e-10)
    # A force on the wrist that meets the axes 2 and 3 and is in one plane with the axis 1.
    moment, force = space.lost[:3, 0], space.lost[3:, 0]
    close(moment, np.zeros(3), 1e-12, scale=1.0)
    normal = np.cross(arm.pose(q, "link_2").rot[:, 2], radius)
    close(force @ normal, 0.0, 1e-12, scale=1.0)
    assert abs(force @ radius) > 0.9 * np.linalg.norm(radius)


def test_a_warning_names_rank_and_direction():
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    with pytest.warns(
        RankWarning, match=rf"of '{hand}' has rank 5 of 6 here: '{hand}' cannot turn"
    ):
        inertia = lw.operational_inertia(arm, np.zeros(6), hand)
    assert np.isfinite(inertia).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these warns
        close(lw.operational_space(arm, np.zeros(6), hand).inertia, inertia, 1e-14)
        code = np.zeros((), dtype=np.int32)
        close(lw.operational_inertia(arm, np.zeros(6), hand, status=code), inertia, 1e-14)
        assert code == 3
        lw.operational_inertia(arm, WRIST + 0.3, hand)


def test_a_batch_of_singular_and_regular_states():
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    rng = np.random.default_rng(0)
    q = rng.uniform(-2.0, 2.0, (7, 6))
    q[[1, 4], 4] = 0.0
    status, out = np.zeros(7, dtype=np.int32), np.empty((7, 6, 6))
    inertia = lw.operational_inertia(arm, q, hand, status=status, out=out)
    assert inertia is out and status.tolist() == [0, 3, 0, 0, 3, 0, 0]
    space = lw.operational_space(arm, q, hand)
    assert space.rank.tolist() == [6, 5, 6, 6, 5, 6, 6] and len(space) == 7
    for i in range(7):
        _, rank, expected = dense(arm, q[i], [hand])
        close(inertia[i], expected, 1e-9)
        close(space[i].inertia, expected, 1e-9)
        assert rank == space[i].rank == 6 - space[i].lost.shape[1]
    with pytest.warns(RankWarning, match="rank 5 of 6 in row 1, and less than full in 2 of 7"):
        lw.operational_inertia(arm, q, hand)


def test_trouble_in_a_batch_is_not_a_matter_of_rank():
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    q = np.stack([WRIST, WRIST + 0.3, WRIST])
    q[2, 0] = np.nan
    status = np.zeros(3, dtype=np.int32)
    inertia = lw.operational_inertia(arm, q, hand, status=status)
    assert status.tolist() == [3, 0, 1]
    assert np.isfinite(inertia[:2]).all() and np.isnan(inertia[2]).all()
    with pytest.warns(TroubleWarning, match="1 of 3 states have no result and are NaN; row 2"):
        space = lw.operational_space(arm, q, hand)
    assert space.rank.tolist() == [5, 6, 0] and np.isnan(space.inertia[2]).all()
    with pytest.raises(ModelError, match="q is not finite"):
        lw.operational_inertia(arm, q[2], hand)
    with pytest.warns(TroubleWarning), pytest.warns(RankWarning):
        lw.operational_inertia(arm, q, hand)


@pytest.mark.shipped
def test_towards_a_singularity():
    """Λ grows as the square of what goes away is lost; the motions that stay keep their inertia."""
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    lost = lw.operational_space(arm, WRIST, hand)
    stays = lost.directions
    for step in (1e-2, 1e-4, 1e-6, 1e-8):
        q = WRIST + np.array([0.0, 0.0, 0.0, 0.0, step, 0.0])
        space = lw.operational_space(arm, q, hand)
        _, _, expected = dense(arm, q, [hand])
        assert space.rank == 6
        # One digit is lost for each of the condition's root: 1e-8 leaves half of them.
        close(space.inertia, expected, 1e-14 * np.sqrt(space.condition) + 1e-11)
        # The everyday function has as many, for one state and in a batch, and does not warn.
        close(lw.operational_inertia(arm, q, hand), space.inertia, 1e-8)
        close(lw.operational_inertia(arm, np.stack([q, q]), hand)[1], space.inertia, 1e-8)
        heavy = lost.lost[:, 0] @ space.inertia @ lost.lost[:, 0]
        assert 0.01 < heavy * step**2 < 100.0  # grows with the square
        # The inverse seen by the motions that stay is continuous: nothing jumps there.
        close(stays.T @ space.inverse @ stays, stays.T @ lost.inverse @ stays, 100.0 * step)
    beyond = WRIST + np.array([0.0, 0.0, 0.0, 0.0, 1e-13, 0.0])
    assert lw.operational_space(arm, beyond, hand).rank == 5
    assert lw.operational_space(arm, beyond, hand, tolerance=1e-14).rank == 6


def exact(matrix):
    """A matrix of floats as one of fractions: nothing is rounded from here on."""
    return [[Fraction(float(x)) for x in row] for row in matrix]


def solved(A, right):
    """A⁻¹ right by elimination with fractions."""
    rows = [[*a, *b] for a, b in zip(A, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            factor = rows[i][k] / rows[k][k] if i != k else Fraction(0)
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [[x / rows[k][k] for x in rows[k][n:]] for k in range(n)]


def product(A, B):
    columns = list(zip(*B, strict=True))
    return [[sum(x * y for x, y in zip(row, c, strict=True)) for c in columns] for row in A]


def transposed(A):
    return [list(row) for row in zip(*A, strict=True)]


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 7, 10, 11, 13)]


@pytest.mark.parametrize("seed", [5, *SLOW])
def test_mass_ratios_of_a_million_by_fractions(seed):
    """Light bodies carry heavy ones: J 𝓜⁻¹ J* and Λ against arithmetic that does not round."""
    mech = lw.models.random_tree(3 + seed % 5, seed, mass_ratio=1e6, hinges=MOVING)
    q, node = mech.random(seed), mech.bodies[-1].name
    A = [[Fraction(0)] * mech.nv for _ in range(mech.nv)]
    for J_k, M_k in zip(body_jacobians(mech, q), mech.inertias.matrix, strict=True):
        part = product(product(exact(J_k.T), exact(M_k)), exact(J_k))
        A = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, part, strict=True)]
    for i in range(mech.nv):
        A[i][i] += Fraction(float(mech.armature[i]))
    J = exact(node_jacobian(mech, q, node))
    yielding = product(J, solved(A, transposed(J)))
    space = lw.operational_space(mech, q, node)
    # 2e-12 was the worst of thirty trees, 4e-13 for Λ.
    close(space.inverse, np.array(yielding, dtype=float), 1e-11)
    basis = exact(space.directions)
    inner = product(product(transposed(basis), yielding), basis)
    inertia = product(basis, solved(inner, transposed(basis)))
    close(space.inertia, np.array(inertia, dtype=float), 1e-11)


def test_the_length_says_what_is_small_and_nothing_else():
    """Λ on the motions that exist, and the rank, are the same for every length."""
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    spaces = [lw.operational_space(arm, WRIST, hand, length=x) for x in (0.01, 1.0, 100.0)]
    assert {space.rank for space in spaces} == {5}
    assert len({round(space.condition, 6) for space in spaces}) == 3
    for space in spaces[1:]:
        close(space.inertia, spaces[0].inertia, 1e-10)
    assert lw.operational_space(arm, WRIST, hand).length == reach(arm, [hand])
    assert 0.9 < reach(arm, [hand]) < 1.5  # the arm reaches 0.9 m; offsets add
    assert reach(lw.models.chain(60), ["link_1"]) == 1.0  # nothing to measure


def test_a_long_arm():
    """A straight chain cannot stretch, however long it is."""
    chain = lw.models.chain(100)
    tip = chain.bodies[-1].name
    bent, status = chain.random(0), np.zeros(2, dtype=np.int32)
    both = np.stack([0.0 * bent, bent])
    inertia = lw.operational_inertia(chain, both, tip, status=status)
    assert (status != 0).tolist() == [True, False]
    assert np.isfinite(inertia).all()
    space = lw.operational_space(chain, both, tip)
    assert space.rank.tolist() == [4, 6]
    assert "cannot move along x" in str(space[0])


def test_what_is_refused():
    arm = lw.models.puma560()
    hand, q = arm.bodies[-1].name, np.zeros((2, 6))
    with pytest.raises(UnknownNameError, match="hnad"):
        lw.operational_space(arm, q, "hnad")
    with pytest.raises(ShapeError, match="q has shape"):
        lw.operational_space(arm, np.zeros(5), hand)
    with pytest.raises(ModelError, match=r"length is -1\.0; it must be a positive number"):
        lw.operational_space(arm, q, hand, length=-1.0)
    with pytest.raises(ModelError, match="tolerance is nan"):
        lw.operational_space(arm, q, hand, tolerance=float("nan"))
    with pytest.raises(ShapeError, match=r"select one of them first: space\[0\]"):
        _ = lw.operational_space(arm, q, hand).directions
    for call in (lw.operational_space, lw.operational_inertia):
        with pytest.raises(ModelError, match="needs a node, and none was given; name at least one"):
            call(arm, q, [])
