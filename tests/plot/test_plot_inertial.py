"""Pictures of inertial properties: what is in them, where, and that nothing is lost on the way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, ModelError, ShapeError
from tests.cases import close

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import linkwise.plot as lp  # noqa: E402
from linkwise.plot.skeleton import bones  # noqa: E402

BENT = np.array([0.5, 0.6, 0.4])
RPP = np.array([0.3, 0.6, 0.35])


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def arm():
    return lw.models.pendulum(3)


def outline(ax, color):
    """The curve of a colour, by its line."""
    expected = matplotlib.colors.to_rgba(color)
    (line,) = [x for x in ax.lines if matplotlib.colors.to_rgba(x.get_color()) == expected]
    return line.get_xydata()


def test_a_curve_is_where_the_masses_are(arm):
    ax = lp.belted_ellipsoid(arm, BENT, "tip", plane="xz", scale=0.1)
    tip = lw.forward_kinematics(arm, BENT, "tip").p[[0, 2]]
    away = outline(ax, lp.LIGHT.color(0)) - tip
    felt = lw.inertial.effective_mass(arm, BENT, "tip", np.insert(away, 1, 0.0, axis=1))
    close(np.linalg.norm(away, axis=1), 0.1 * felt, 1e-10)
    assert ax.get_aspect() in (1.0, "equal")  # circles are circles
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x [m]", "z [m]")


def test_several_postures_in_one_scale(arm):
    ax = lp.belted_ellipsoid(arm, np.stack([BENT, -BENT]), "tip", plane="xz")
    sizes = []
    for i, q in enumerate((BENT, -BENT)):
        tip = lw.forward_kinematics(arm, q, "tip").p[[0, 2]]
        lines = [x.get_xydata() for x in ax.lines if x.get_color() == lp.LIGHT.color(i)]
        curve = max(lines, key=len)
        sizes.append(np.linalg.norm(curve - tip, axis=1).max())
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-9)  # mirrored: the same mass, the same size
    assert sizes[0] > 0.1


def test_in_space_metres_are_of_one_length():
    arm = lw.models.seven_dof_arm()
    q = np.array([0.3, 0.5, 0.4, 1.4, 0.0, 0.7, 0.0])
    ax = lp.belted_ellipsoid(arm, q, "hand", scale=0.02)
    spans = [np.ptp(bounds) for bounds in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())]
    close(spans, np.full(3, spans[0]), 1e-12)
    (surface,) = ax.collections
    hand = lw.forward_kinematics(arm, q, "hand").p
    expected = lw.inertial.ellipsoid(lw.inertial.inertial_properties(arm, q, "hand"), resolution=56)
    assert len(surface.get_facecolor()) == len(expected.faces)
    vertices = expected.placed(hand, 0.02)
    everything = np.concatenate([vertices, bones(arm, q).points])
    for axis, (low, high) in enumerate((ax.get_xlim(), ax.get_ylim(), ax.get_zlim())):
        assert low < everything[:, axis].min() and everything[:, axis].max() < high


def test_dark_and_light_and_a_theme_of_ones_own(arm):
    for theme in ("light", "dark", lp.DARK):
        ax = lp.belted_ellipsoid(arm, BENT, "tip", plane="xz", theme=theme)
        paper = (lp.LIGHT if theme == "light" else lp.DARK).paper
        assert matplotlib.colors.to_hex(ax.get_facecolor()) == paper
        assert matplotlib.colors.to_hex(ax.figure.get_facecolor()) == paper
    with pytest.raises(ModelError, match="'light', 'dark'"):
        lp.skeleton(arm, BENT, theme="pink")


def test_axes_that_are_given_are_used(arm):
    figure, panels = lp.panels(1, 2)
    assert lp.belted_ellipsoid(arm, BENT, "tip", plane="xz", ax=panels[1]) is panels[1]
    assert not panels[0].has_data() and len(figure.axes) == 2
    before = len(panels[1].artists)
    lp.belted_ellipsoid(arm, -BENT, "tip", plane="xz", ax=panels[1])
    assert len(panels[1].artists) == before == 1  # one bar tells the scale
    with pytest.raises(ModelError, match="the Axes is plane"):
        lp.belted_ellipsoid(arm, BENT, "tip", ax=panels[0])
    _, (space,) = lp.panels(dimension=3)
    with pytest.raises(ModelError, match="the Axes is in space"):
        lp.skeleton(arm, BENT, plane="xz", ax=space)
    with pytest.raises(ModelError, match="2 or 3"):
        lp.panels(dimension=4)


def test_blocked_directions_leave_the_outline_open():
    rpp = lw.models.planar_rpp()
    ax = lp.belted_ellipsoid(rpp, RPP, "end_effector", plane="xz")
    curve = outline(ax, lp.LIGHT.color(0))
    assert np.isnan(curve).any() and not np.isnan(curve).all()
    with pytest.raises(ModelError, match="all are blocked"):
        lp.belted_ellipsoid(rpp, RPP, "end_effector", what="rotation", plane="xy")


def test_bones_of_sliders_and_nodes():
    rpp = lw.models.planar_rpp()
    result = bones(rpp, RPP)
    corner = lw.forward_kinematics(rpp, RPP, "link_2").p
    tip = lw.forward_kinematics(rpp, RPP, "end_effector").p
    close(result.slides, np.stack([[np.zeros(3), corner], [corner, tip]]), 1e-14)
    close(result.pins, np.zeros((1, 3)), 1e-14)
    close(result.tips[0], tip, 1e-14)
    flyer = lw.models.free_flyer()
    assert not len(bones(flyer, flyer.neutral()).ground)  # on nothing
    four_bar = lw.models.four_bar()
    closed = bones(four_bar, four_bar.neutral())
    assert np.isfinite(closed.points).all() and len(closed.links) >= 3
    with pytest.raises(ShapeError, match="one state"):
        bones(rpp, np.stack([RPP, RPP]))


@pytest.mark.parametrize("name", ["humanoid", "stewart", "seven_dof_arm", "free_flyer"])
def test_skeletons_of_samples(name):
    mech = getattr(lw.models, name)()
    ax = lp.skeleton(mech, mech.neutral())
    assert len(ax.lines) > 4
    lp.skeleton(mech, mech.neutral(), plane="xz")


def test_bars_of_one_scale_are_of_one_length(arm):
    """One posture has twice the mass of the other; their bars are the same."""
    bars = []
    for q in (BENT, [0.2, 1.6, 1.2]):
        ax = lp.belted_ellipsoid(arm, q, "tip", plane="xz", scale=0.1)
        (bar,) = [x for x in ax.get_children() if x.get_gid() == "linkwise scale"]
        bars.append((bar.txt_label.get_text(), bar.size_bar.get_children()[0].get_width()))
    masses = [
        lw.inertial.inertial_properties(arm, q, "tip").principal_masses[1]
        for q in (BENT, [0.2, 1.6, 1.2])
    ]
    assert max(masses) > 2.0 * min(masses)  # by the mass alone the bars would differ
    assert bars[0] == bars[1]
    assert bars[0][1] == pytest.approx(0.1 * float(bars[0][0].split()[0]))


def test_the_picture_takes_what_the_function_gives(arm):
    properties = lw.inertial.inertial_properties(arm, BENT, "tip")
    curve = lw.inertial.ellipsoid(properties, plane="xz", resolution=160)
    for ax in (lp.belted_ellipsoid(curve), lp.belted_ellipsoid(properties, plane="xz")):
        drawn = outline(ax, lp.LIGHT.color(0))
        close(drawn[:-1], curve.points, 1e-12)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("x [kg]", "z [kg]")
    assert lp.belted_ellipsoid(curve, scale=0.1).get_xlabel() == "x [m]"
    space = lp.belted_ellipsoid(lw.inertial.ellipsoid(np.diag([1.0, 0.5, 0.25])))
    assert space.get_zlabel() == "z [kg]"
    with pytest.raises(
        ModelError, match=r"needs its joint positions and a node.*\(mech, q, node\)"
    ):
        lp.belted_ellipsoid(arm)
    with pytest.raises(ModelError, match=r"was given a ndarray; it draws \(mech, q, node\)"):
        lp.belted_ellipsoid(np.eye(3))
    with pytest.raises(ModelError, match="q and node go with a mechanism"):
        lp.belted_ellipsoid(properties, BENT, "tip")
    with pytest.raises(ModelError, match="a shape that is made already"):
        lp.belted_ellipsoid(curve, plane="xz")


def test_shapes_alone():
    matrix = np.diag([1.0, 0.25])
    ax = lp.shape(lw.inertial.ellipsoid(matrix), (1.0, 2.0), scale=0.5, label="here")
    curve = outline(ax, lp.LIGHT.color(0))
    assert np.nanmax(curve[:, 1]) == pytest.approx(4.0, rel=1e-3)  # 2 + 4 kg of half a metre
    assert ax.get_legend_handles_labels()[1] == ["here"]
    lp.shape(lw.inertial.ellipsoid(np.diag([1.0, 0.5, 0.25])))
    with pytest.raises(ShapeError, match=r"must be \(3,\)"):
        lp.shape(lw.inertial.ellipsoid(np.eye(3)), (0.0, 0.0))


def test_a_missing_matplotlib_is_named():
    code = """
import sys
for name in ("matplotlib", "matplotlib.pyplot", "mpl_toolkits", "mpl_toolkits.mplot3d"):
    sys.modules[name] = None
import numpy as np
import linkwise as lw
import linkwise.plot as lp
try:
    lp.skeleton(lw.models.pendulum(1), [0.1])
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "MissingExtraError" in done.stdout and "linkwise[plot]" in done.stdout
    assert issubclass(MissingExtraError, ImportError)


def test_nothing_is_imported_before_it_is_drawn():
    code = "import sys, linkwise, linkwise.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False"
    code = "import sys, linkwise as lw; lw.plot.shape; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
    code = "import sys, linkwise; print('linkwise.plot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False"
