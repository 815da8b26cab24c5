"""Elements and blocks of the inverse mass matrix: against the whole, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import D, mass
from linkwise.errors import ExpressionError, UnknownNameError
from tests.cases import close, state, tree


@pytest.mark.parametrize("name", ["every hinge, armature", "mass ratio of a million"])
def test_blocks_by_name(name):
    mech = tree(name)
    q, _, _ = state(mech, 1)
    full = np.linalg.inv(lw.mass_matrix(mech, q))
    moving = [body for body in mech.bodies if body.hinge.nv]
    rows, columns = (moving[-1].name, moving[0].hinge_name), (moving[0].name,)
    i = np.concatenate([np.r_[mech.v_slice(x)] for x in rows])
    j = np.r_[mech.v_slice(columns[0])]
    # An inverse is as exact as its condition allows.
    bound = max(1e-12, 1e-14 * np.linalg.cond(full))
    block = lw.dynamics.mass_matrix_inverse_block(mech, q, rows, columns)
    close(block, full[np.ix_(i, j)], bound, scale=np.abs(full).max())
    ours = lw.dynamics.mass_matrix_inverse_block(mech, q, rows)
    close(ours, full[np.ix_(i, i)], bound, scale=np.abs(full).max())


def test_every_element():
    mech = lw.models.random_tree(3, 6, hinges=("pin", "universal"), branching=0.7)
    q, _, _ = state(mech, 2)
    full = lw.mass_matrix_inverse(mech, q)
    for i in range(0, mech.nv, 3):
        for j in (0, mech.nv - 1):
            block = lw.dynamics.mass_matrix_inverse_block(mech, q, i, j)
            close(block, full[i : i + 1, j : j + 1], 1e-12, scale=np.abs(full).max())


def test_cost_grows_with_the_path_beside_the_inertias():
    """One element: articulated inertias and two ways along the path. All: n² more."""
    ones, wholes = list[int](), list[int]()
    for n in (10, 20, 30):
        mech = lw.models.chain(n)
        one = lw.compile(mass.inv, mech, rows=n // 2, columns=n - 1, target="numpy")
        ones.append(one.ops.total())
        wholes.append(lw.compile(mass.inv, mech, target="numpy").ops.total())
    inertias = lw.compile(D, lw.models.chain(30), rows=0, blocks=True, target="numpy").ops.total()
    straight = np.diff(ones)
    assert abs(straight[1] - straight[0]) < 0.01 * straight[0]  # linear in n
    assert np.diff(wholes)[1] > 1.4 * np.diff(wholes)[0]  # quadratic
    assert ones[2] - inertias < 0.1 * (wholes[2] - inertias)


def test_a_thousand_bodies():
    """In loops, O(n): against forward dynamics with a unit force, and symmetry."""
    mech = lw.models.chain(1000).with_gravity((0.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    q, e = 0.3 * rng.standard_normal(1000), np.zeros(1000)
    e[900] = 1.0
    column = lw.forward_dynamics(mech, q, np.zeros(1000), e)
    block = lw.dynamics.mass_matrix_inverse_block(mech, q, (5, 900), 900)
    close(block[:, 0], column[[5, 900]], 1e-9, scale=abs(column[900]))
    other = lw.dynamics.mass_matrix_inverse_block(mech, q, 900, 5)
    close(other[0], block[0], 1e-9, scale=abs(column[900]))


def test_batches():
    mech = tree("no armature")
    q = np.stack([state(mech, seed)[0] for seed in range(5)])
    full = lw.mass_matrix_inverse(mech, q)
    codes, out = np.full(5, 7, np.int32), np.empty((5, 2, 1))
    block = lw.dynamics.mass_matrix_inverse_block(mech, q, (0, 1), 2, out=out, status=codes)
    assert block is out and not codes.any()
    close(block, full[:, :2, 2:3], 1e-10)


@pytest.mark.parametrize(
    ("rows", "columns", "kind", "text"),
    [
        ("elbow", 0, UnknownNameError, "no body or hinge called 'elbow'"),
        (0, 6, ExpressionError, "6 is out of range: there are 6 velocities"),
        (-1, 0, ExpressionError, "-1 is out of range"),
    ],
)
def test_wrong_names(rows, columns, kind, text):
    mech = lw.models.puma560()
    with pytest.raises(kind, match=text):
        lw.dynamics.mass_matrix_inverse_block(mech, mech.neutral(), rows, columns)


def test_locked_hinges_have_no_rows():
    mech = lw.models.puma560()
    mech = mech.lock([mech.bodies[2].hinge_name])
    with pytest.raises(ExpressionError, match="locked hinges"):
        lw.dynamics.mass_matrix_inverse_block(mech, mech.neutral(), mech.bodies[2].name)
