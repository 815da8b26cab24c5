"""Matrices of expressions: what has to be given is asked for by name."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, memoryless
from linkwise.algebra.armature import without_armature
from linkwise.algebra.dense import Dense
from linkwise.algebra.selection import selection
from linkwise.algebra.symbols import D, P, mass, psi
from linkwise.errors import ExpressionError, ShapeError


def test_operators_of_the_user_need_their_blocks():
    mech = lw.models.chain(3)
    W = memoryless("W", BODY, BODY)
    with pytest.raises(ExpressionError, match=r"no value was given for W: values=\{'W': \.\.\.\}"):
        Dense(mech, mech.neutral())(W)
    with pytest.raises(ShapeError, match="W has 2 blocks; it takes one for each body, 3 here"):
        Dense(mech, mech.neutral(), values={"W": [np.eye(6)] * 2})(W)
    result = Dense(mech, mech.neutral(), values={"W": [2.0 * np.eye(6)] * 3})(W)
    np.testing.assert_array_equal(result, 2.0 * np.eye(18))


def test_a_selection_keeps_its_hinges_alone():
    mech = lw.models.random_tree(4, 1, hinges=("pin", "spherical"), drives=False)
    name = mech.bodies[2].hinge_name
    result = Dense(mech, mech.neutral())(selection("s", [name]))
    expected = np.zeros(mech.nv)
    expected[mech.v_slice(name)] = 1.0
    assert 0.0 < expected.sum() < mech.nv
    np.testing.assert_array_equal(result, np.diag(expected))


@pytest.mark.parametrize("leaf", [mass, P, D, psi], ids=str)
def test_what_is_of_the_bare_tree_is_called_otherwise(leaf):
    bare = without_armature(leaf)
    assert bare != leaf and str(bare) != str(leaf) and bare.ascii != leaf.ascii
    assert bare.range is leaf.range and bare.domain is leaf.domain
