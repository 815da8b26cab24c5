"""Sweeps over any number of impulses, against the laws as they are written; blocks of contacts."""

import numpy as np
import pytest

from linkwise.codegen.stepping.sweeps import solve_impulses
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.impulse import Sweep, block, solved, solver


@pytest.mark.parametrize("each", [3, 6])
def test_sweeps_are_those_of_the_laws(each):
    rng = np.random.default_rng(each)
    nv, joints, contacts = 8, 2, 3
    m = joints + each * contacts
    rows, b, impulse = rng.normal(size=(m, nv)), rng.normal(size=m), 0.1 * rng.random(m)
    w = rng.normal(size=nv) + impulse @ rows
    mobility = (rows * rows).sum(axis=1)
    inverse = 0.4 / mobility
    bounds = np.array([[0.1, -np.inf, 0.3], [0.0, -0.2, np.inf]])
    turns = {"torsional": 0.1, "rolling": 0.05} if each == 6 else {}
    points = [ContactPoint(str(i), "body", ground=Ground(**turns)) for i in range(contacts)]
    radii = np.tile([0.5, 0.1, 0.05], (contacts, 1))
    numbers = (dict(enumerate(x)) for x in (b, mobility, inverse, impulse, w))
    sparse = [dict(enumerate(row)) for row in rows]
    begins = [joints + each * i for i in range(contacts)]
    blocks = {i: [*block(sparse, mobility, i), *mobility[i : i + 3]] for i in begins}
    plain = Sweep(dict(enumerate(sparse)), *numbers, blocks, together=0.0)
    for _ in range(4):
        plain.worst = 0.0
        plain.joint(0, 0.1, None, 0.3)
        plain.joint(1, None, -0.2, None)
        for i, point in enumerate(points):
            plain.contact(joints + each * i, point, 0.5)
    worst, made = solve_impulses(
        rows, b, inverse, impulse, w, bounds, radii, each=each, most=4, enough=0.0
    )
    np.testing.assert_allclose(impulse, [*plain.impulse.values()], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(w, [*plain.w.values()], rtol=1e-12, atol=1e-14)
    assert made == 4 and worst == pytest.approx(plain.worst) and worst > 0.0
    _, made = solve_impulses(
        rows, b, inverse, impulse, w, bounds, radii, each=each, most=10_000, enough=1e-9
    )
    assert 1 < made < 10_000


@pytest.mark.parametrize("bounds", [(0.5, -0.3, 0.4), (0.5, None, 0.4), (None, 0.1, 0.4)])
def test_a_joint_obeys_its_law(bounds):
    """Friction against u; beyond it only a limit pushes, at which u then is."""
    rng, kinds = np.random.default_rng(7), set[str]()
    friction, low, high = bounds
    most, low, high = friction or 0.0, -np.inf if low is None else low, high
    for _ in range(400):
        b, impulse, row = 2.0 * rng.normal(), rng.normal(), {0: 0.2 + rng.random()}
        mobility = row[0] ** 2
        numbers = ({0: x} for x in (b, mobility, 1.0 / mobility, impulse, row[0] * impulse))
        sweep = Sweep({0: row}, *numbers, {})
        sweep.joint(0, friction, *(x if np.isfinite(x) else None for x in (low, high)))
        push, u = sweep.impulse[0], sweep.velocity(0)
        assert low - 1e-12 <= u <= high + 1e-12
        if abs(push) < most - 1e-12:
            assert abs(u) < 1e-12
            kinds.add("sticks")
        elif abs(push) > most + 1e-12:
            assert u == pytest.approx(low if push > 0.0 else high)
            kinds.add("limit")
        elif most:
            assert push * u <= 1e-12
            kinds.add("slides")
    assert kinds == ({"sticks", "limit", "slides"} if friction else {"limit"})
    still = Sweep({0: {0: 0.0}}, {0: 1.0}, {0: 0.0}, {0: 0.0}, {0: 0.7}, {0: 0.0}, {})
    still.joint(0, friction, *(x if np.isfinite(x) else None for x in (low, high)))
    assert still.impulse[0] == 0.0  # nothing moves it


def contact(nv: int, push: float) -> tuple[Sweep, list[dict[int, float]], np.ndarray]:
    """A contact at rest with some impulse, whose rows depend on each other."""
    rng = np.random.default_rng(nv)
    rows, impulse = rng.normal(size=(3, nv)), np.array([push, 0.0, 0.0])
    sparse = [dict(enumerate(row)) for row in rows]
    mobility, w = (rows * rows).sum(axis=1), impulse @ rows
    A = rows @ rows.T
    b = -A @ (impulse + np.array([0.1, 0.02, -0.03]))  # solved by that impulse
    numbers = (dict(enumerate(x)) for x in (b, mobility, 0.4 / mobility, impulse, w))
    solved = solver(block(sparse, mobility, 0), mobility[:3])
    return Sweep(dict(enumerate(sparse)), *numbers, {0: solved}), sparse, A


def test_a_block_is_solved_from_its_inverse_or_from_itself():
    _, sparse, A = contact(5, 1.0)
    u, diagonal = [0.3, -0.7, 0.2], list(np.diagonal(A))
    numbers_of = block(sparse, diagonal, 0)
    for numbers in (solver(numbers_of, diagonal), [*numbers_of, *diagonal]):
        regular, x = solved(numbers, u)
        assert regular > 0.0
        np.testing.assert_allclose(x, np.linalg.solve(A, u), rtol=1e-10)


def test_a_contact_that_sticks_is_solved_at_once():
    sweep, _, A = contact(5, 1.0)
    assert abs(A[0, 1]) > 0.1 * A[0, 0]  # its directions depend on each other
    sweep.contact(0, ContactPoint("foot", "body"), 0.5)
    np.testing.assert_allclose([*sweep.impulse.values()], [1.1, 0.02, -0.03], rtol=1e-12)
    np.testing.assert_allclose([sweep.velocity(i) for i in range(3)], 0.0, atol=1e-12)


@pytest.mark.parametrize(("nv", "push", "friction"), [(5, 1.0, 0.01), (2, 1.0, 0.5)])
def test_contacts_that_slide_or_lack_a_direction_are_solved_row_by_row(nv, push, friction):
    """Two columns: the block is singular."""
    sweep, rows, _ = contact(nv, push)
    assert (block(rows, [*sweep.mobility.values()], 0)[-1] == 0.0) == (nv == 2)
    other, _, _ = contact(nv, push)
    other.together = 0.0
    for one in (sweep, other):
        one.contact(0, ContactPoint("foot", "body"), friction)
    assert sweep.impulse == other.impulse and sweep.worst > 0.0
