"""to_W, A_V and B_V as leaves of the algebra: dense, swept, compiled straight and in loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    A_V,
    B_V,
    JOINT,
    G,
    H,
    I,
    J,
    M,
    R,
    V,
    a,
    a_g,
    b,
    phi,
    rot_W,
    to_W,
    v,
    vector,
)
from linkwise.algebra.dense import Dense
from linkwise.errors import LoweringError
from linkwise.pipeline import plan
from linkwise.sweeps.interpret import run
from tests.algebra import trees

DRAWS = (trees.branched, trees.floating, trees.welded, trees.every_hinge)
w = vector("w", JOINT)
C = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)

EXPRESSIONS = {
    "velocities in the world": to_W @ V,
    "and back": to_W.inv @ V,
    "forces in the world": to_W.inv.T @ a,
    "adjoint": to_W.T @ a,
    "inertia in the world": to_W.inv.T @ R @ to_W.inv,
    "to_W": to_W,
    "accelerations": A_V @ w,
    "gyroscopic": B_V @ phi.T @ H.T @ w,
    "coriolis matrix": C,
    "coriolis product": C @ w,
    "node axes": rot_W.inv @ J,
}


def drawn(draw, seed):
    mech, rng = draw(seed), np.random.default_rng(seed)
    given = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
    return mech, given | {"w": rng.standard_normal(mech.nv)}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("draw", DRAWS)
def test_every_rung(draw, name):
    expr = EXPRESSIONS[name]
    mech, given = drawn(draw, 6)
    nodes = [mech.bodies[-1].name]
    rest = {"w": given["w"]}
    expected = Dense(mech, given["q"], given["v"], nodes=nodes, values=rest)(expr)
    result = [run(plan(expr), mech, given["q"], given["v"], nodes=nodes, values=rest)]
    for rolled in (False, True):
        kernel = lw.compile(expr, mech, nodes=nodes, rolled=rolled, cache=False)
        result.append(kernel(*(given[x] for x in kernel.arguments)))
    scale = np.abs(expected).max(initial=1.0)
    for value in result:
        np.testing.assert_allclose(value / scale, expected / scale, rtol=0, atol=1e-13)


@pytest.mark.parametrize("draw", DRAWS)
def test_what_they_are_for(draw):
    """a = A_V v + a_g and b = B_V V; to_W takes velocities to the world's origin."""
    mech, given = drawn(draw, 8)
    dense = Dense(mech, given["q"], given["v"])
    scale = np.abs(dense(a)).max(initial=1.0)
    np.testing.assert_allclose(dense(A_V @ v + a_g) / scale, dense(a) / scale, rtol=0, atol=1e-14)
    scale = np.abs(dense(b)).max(initial=1.0)
    np.testing.assert_allclose(dense(B_V @ V) / scale, dense(b) / scale, rtol=0, atol=1e-14)
    ours, moved = dense(V).reshape(-1, 6), dense(to_W @ V).reshape(-1, 6)
    for k, pose in enumerate(mech.pose(given["q"], body.name) for body in mech.bodies):
        turn = pose.rot @ ours[k, :3]
        np.testing.assert_allclose(moved[k, :3], turn, rtol=0, atol=1e-13)
        linear = pose.rot @ ours[k, 3:] - np.cross(turn, pose.p)  # of what is at the origin
        np.testing.assert_allclose(moved[k, 3:], linear, rtol=0, atol=1e-12)


def test_text_for_other_targets():
    """C compares the graph with the interpreter while it is written; CUDA is text of that graph."""
    mech = lw.models.puma560()
    for expr in (C @ w, to_W.inv.T @ phi @ M @ V):
        source = lw.compile(expr, mech, target="c")
        card = lw.compile(expr, mech, target="cuda")
        assert (
            source.arguments == card.arguments == (("q", "v", "w") if expr is C @ w else ("q", "v"))
        )
        assert "out[0]" in source.source and "__global__" in card.source


def test_what_is_not_symmetric_is_not_inverted_as_if_it_were():
    mech = trees.branched(3)
    with pytest.raises(LoweringError, match="not symmetric"):
        lw.compile((I + G @ H).inv, mech)


def test_they_print():
    text = str(plan(C @ w)) + str(plan(to_W @ V))
    assert "A_V(k) = V(k) × H*(k) + Ḣ*(k)" in text
    assert "B_V(k) = V(k) ×* M(k), factored" in text
    assert "to_W(k) = φ⁻* of X(k)" in text
    for expr in (C @ w, to_W @ V):
        assert "textbf{for }" in plan(expr).latex()
