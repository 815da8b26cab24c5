"""Pictures of operators, of the mass matrix and its inverse, and of filter and smoother."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, J, M, mass, phi
from linkwise.algebra.dense import Dense
from linkwise.algebra.parse import parse
from linkwise.errors import ExpressionError, ModelError, ShapeError, UnknownNameError
from tests.plot.test_plot_recording import check_apart

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import linkwise.plot as lp  # noqa: E402


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def man():
    mech = lw.models.humanoid()
    return mech, mech.random(seed=1)


def picture(board):
    """The numbers behind the colours, zero where there is none."""
    return board.images[0].get_array().filled(0.0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_operator_is_drawn_as_its_matrix(man, theme):
    mech, q = man
    board = lp.operator(mech, q, H @ phi @ M @ phi.T @ H.T, theme=theme)
    bodies_alone = lw.mass_matrix(mech, q) - np.diag(mech.armature)
    large = np.abs(bodies_alone).max()
    assert np.allclose(picture(board), np.abs(bodies_alone), atol=1e-12 * large)
    assert isinstance(board.images[0].norm, matplotlib.colors.LogNorm)
    names = [x.get_text() for x in board.get_yticklabels()]
    assert names == [body.hinge_name for body in mech.bodies]
    assert board.get_title() == r"$H \\phi M \\phi^{*} H^{*}$".replace("\\\\", "\\")
    check_apart([board])


def test_names_stand_at_the_blocks_they_belong_to(man):
    mech, q = man
    board = lp.operator(mech, q, "K")  # bodies by hinges: one block of a column each
    places = board.get_yticks()
    assert np.allclose(places, 6.0 * np.arange(mech.n_bodies) + 3.0)
    middle = 0.5 * (mech.v_start[:-1] + mech.v_start[1:])
    assert np.allclose(board.get_xticks(), middle)
    sizes = picture(board)
    for k in range(mech.n_bodies):
        columns = sizes[:, mech.v_start[k] : mech.v_start[k + 1]]
        rows = {int(r) // 6 for r in np.flatnonzero(columns.max(axis=1))}
        assert rows <= {int(mech.parent[k])}  # a gain goes to the parent alone
    check_apart([board])


def test_what_is_seen_at_two_names_is_the_entry_between_them():
    """Asked as a mouse asks: by the place in the picture, so that no axis is upside down."""
    from matplotlib.backend_bases import MouseEvent

    mech = lw.models.puma560()
    q = mech.random(3)
    board = lp.operator(mech, q, "(I - H psi K)")
    board.figure.canvas.draw()
    expected = np.abs(Dense(mech, q).matrix(parse("I - H psi K")))
    for row, y in enumerate(board.get_yticks()):
        for column, x in enumerate(board.get_xticks()):
            place = board.transData.transform((x, y))
            result = board.images[0].get_cursor_data(MouseEvent("m", board.figure.canvas, *place))
            seen = 0.0 if result is np.ma.masked else float(result)
            assert seen == pytest.approx(expected[row, column], abs=1e-12)


def test_zeros_have_no_colour(man):
    mech, q = man
    board = lp.operator(mech, q, "phi")
    result = np.ma.getmaskarray(board.images[0].get_array())
    ancestors = np.eye(mech.n_bodies, dtype=bool)
    for k in range(mech.n_bodies):
        above = int(mech.parent[k])
        while above >= 0:
            ancestors[above, k], above = True, int(mech.parent[above])
    blocks = ~result.reshape(mech.n_bodies, 6, mech.n_bodies, 6).all(axis=(1, 3))
    assert np.array_equal(blocks, ancestors)  # φ takes forces from a body to those that carry it
    assert f"{100 * result.mean():.0f} % zero" in board.get_xlabel()


@pytest.mark.few(12)
@pytest.mark.parametrize(
    "text", ["H", "phi", "psi", "M", "mass", "mass^-1", "D", "K", "R", "P_plus", "(I - H psi K)",
             "E_psi", "Upsilon", "Omega", "phi_tilde", "a", "bias", "V", "G"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["pendulum", "puma560"])
def test_every_word_of_the_language_can_be_drawn(text, name):
    mech = lw.models.pendulum(1) if name == "pendulum" else lw.models.puma560()
    board = lp.operator(mech, mech.random(2), text, v=np.ones(mech.nv))
    check_apart([board])


@pytest.mark.prove
def test_sixty_bodies_stay_legible():
    mech = lw.models.chain(60)
    q = mech.random(1)
    check_apart([lp.operator(mech, q, "psi")])
    check_apart([lp.operator(mech, q, "K")])
    check_apart(lp.mass_matrix(mech, q))


def test_colours_go_down_by_decades(man):
    mech, q = man
    board = lp.operator(mech, q, "mass", decades=2.0)
    norm = board.images[0].norm
    assert norm.vmax / norm.vmin == pytest.approx(100.0)
    wide = lp.operator(mech, q, "mass").images[0].norm
    values = picture(board)
    assert wide.vmin == pytest.approx(values[values > 0.0].min())
    assert wide.vmax == pytest.approx(values.max())


def test_expressions_about_nodes(man):
    mech, q = man
    hands = [node.name for node in mech.nodes][:2]
    board = lp.operator(mech, q, J @ mass.inv @ J.T, nodes=hands)
    J_B = lw.jacobian(mech, q, hands)
    expected = J_B @ np.linalg.solve(lw.mass_matrix(mech, q), J_B.T)
    assert np.allclose(picture(board), np.abs(expected), atol=1e-9 * np.abs(expected).max())
    assert [x.get_text() for x in board.get_xticklabels()] == hands


def test_an_operator_that_cannot_be_drawn_is_told(man):
    mech, q = man
    with pytest.raises(ExpressionError, match="ph"):
        lp.operator(mech, q, "phii")
    with pytest.raises(ModelError, match=r"has no entries, \(0, 30\)\. Name nodes"):
        lp.operator(mech, q, "J")
    with pytest.raises(ExpressionError, match="tau"):
        lp.operator(mech, q, "tau")
    with pytest.raises(ShapeError, match="one state"):
        lp.operator(mech, np.stack([q, q]), "phi")
    with pytest.raises(ModelError, match="mech is a str"):
        lp.operator("arm.urdf", q, "phi")
    with pytest.raises(ModelError, match=r"has 201 bodies; .* at most 200"):
        lp.operator(lw.models.chain(201), np.zeros(201), "phi")
    with pytest.raises(ModelError, match="decades"):
        lp.operator(mech, q, "phi", decades=0.0)
    with pytest.raises(UnknownNameError, match="no node"):
        lp.operator(mech, q, "J", nodes="third_hand")


@pytest.mark.few(1)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_mass_matrix_beside_its_inverse(man, theme):
    mech, q = man
    boards = lp.mass_matrix(mech, q, theme=theme)
    for board, expected in zip(boards, (lw.mass_matrix(mech, q), lw.mass_matrix_inverse(mech, q)),
                             strict=True):  # fmt: skip
        large = np.abs(expected).max()
        assert np.allclose(picture(board), np.abs(expected), atol=2e-13 * large)
    assert [x.get_title() for x in boards] == [r"$\mathcal{M}$", r"$\mathcal{M}^{-1}$"]
    assert not any(x.get_text() for x in boards[1].get_yticklabels())  # they stand on the left
    check_apart(boards)
    given = lp.panels(1, 2)[1]
    assert lp.mass_matrix(mech, q, ax=given) == given
    with pytest.raises(ModelError, match="1 Axes were given, and the picture has 2 panels"):
        lp.mass_matrix(mech, q, ax=given[0])
    with pytest.raises(ModelError, match="no degrees of freedom"):
        lp.mass_matrix(lw.Builder("nothing").build(), [])
