"""Pictures of inertial properties: belted ellipsoids at robots."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.dynamics.velocity_space import reach
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial import (
    InertialProperties,
    InertialShape,
    ellipsoid as shape_of,
    inertial_properties,
)
from linkwise.inertial.effective_mass import What
from linkwise.inertial.ellipsoid import Plane
from linkwise.inertial.response import Loops
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import (
    Axes,
    Theme,
    ThemeLike,
    axes_for,
    hold,
    is_space,
    legend,
    matplotlib,
    metres,
    once,
    opacity,
    themed,
    tint,
)
from linkwise.plot.skeleton import bones, skeleton
from linkwise.spatial.array import Array, ArrayLike, floats

LARGE = 0.28
"""Size of the largest ellipsoid, as a part of the picture's."""

SCALE = "linkwise scale"
"""Label of the scale bar."""

SHORT = 0.3
"""Length of the bar of a scale that is given, at most 0.6 of this part of the robot's reach."""


def shape(
    of: InertialShape,
    centre: ArrayLike = (0.0, 0.0, 0.0),
    *,
    scale: float = 1.0,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    color: str | None = None,
    alpha: float = 0.35,
    label: str | None = None,
) -> Axes:
    """Draw a curve or a surface of inertia.

    Where it goes to infinity, along what is blocked, the outline of a curve is left open.

    Args:
        of: What `lw.inertial.ellipsoid` returns.
        centre: Where it is: (3,), or in the plane of a curve (2,) [m].
        scale: Metres in the picture for each unit of the shape.
        color: By default the first of the theme.
        alpha: How solid it is.
        label: For a legend.

    Returns:
        The Axes.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        ShapeError: A centre that does not fit.
    """
    look = themed(theme)
    color, alpha = tint(color, look.color(0)), opacity(alpha)
    scale = number(scale, "scale", above=0.0)
    flat = _flat(of)
    middle = floats(centre, "centre")
    if flat and middle.shape == (3,):
        middle = middle @ of.plane if of.plane.shape == (3, 2) else middle[:2]
    if middle.shape != (of.points.shape[1],):
        raise ShapeError(
            f"centre has shape {middle.shape}; it must be (3,), or (2,) for a curve in a plane."
        )
    points = middle + scale * of.points
    board = axes_for(ax, 2 if flat else 3, look)
    if flat:
        around = np.concatenate([points, points[:1]])
        board.fill(*around.T, color=color, alpha=alpha, lw=0.0, zorder=2)
        line = np.where(np.append(of.cut, of.cut[0])[:, None], np.nan, around)
        board.plot(*line.T, color=color, lw=1.4, zorder=2.5, label=label)
        return board
    art = matplotlib("mpl_toolkits.mplot3d.art3d", "a belted ellipsoid")
    colors = matplotlib("matplotlib.colors", "a belted ellipsoid")
    surface = art.Poly3DCollection(points[of.faces], linewidths=0.0, label=label)
    surface.set_facecolor(_shaded(colors.to_rgb(color), of, alpha))
    board.add_collection3d(surface)
    hold(board, points)
    return board


def _shaded(rgb: tuple[float, float, float], of: InertialShape, alpha: float) -> Array:
    """Colours of triangles (f, 4), lit from above and from the left."""
    lamp = np.array([-0.35, -0.5, 0.79])
    normals = of.normals[of.faces].mean(axis=1)
    light = 0.62 + 0.38 * normals @ lamp / np.maximum(np.linalg.norm(normals, axis=1), 1e-12)
    tones = np.clip(light[:, None] * np.asarray(rgb), 0.0, 1.0)
    return np.concatenate([tones, np.full((len(tones), 1), alpha)], axis=1)


def belted_ellipsoid(
    of: Mechanism | InertialShape | InertialProperties,
    q: ArrayLike | None = None,
    node: str | None = None,
    *,
    what: What = "mass",
    plane: Plane | None = None,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    scale: float | None = None,
    robot: bool = True,
    ellipsoid: bool = False,
    color: str | None = None,
    label: str | None = None,
    alpha: float = 0.35,
    limit: float | None = None,
    resolution: int | None = None,
    loops: Loops = "closed",
) -> Axes:
    """Draw belted ellipsoids at a node of a robot: its effective mass in every direction.

    Source: 003 section 4.4, figures 6, 7, 9 and 10.

        linkwise.plot.belted_ellipsoid(arm, q, "hand")
        linkwise.plot.belted_ellipsoid(lw.inertial.inertial_properties(arm, q, "hand"))  # by
        itself, in kg

    Args:
        of: The mechanism; or, to draw it without a robot, what `lw.inertial.inertial_properties` or
            `lw.inertial.ellipsoid` gave: at the origin of axes in kg (or kg m²), if no
            `scale` is given.
        q: Joint positions (nq,), or several postures (k, nq), each in another colour.
        node: Name of a node or body.
        what: "mass", or "rotation" for rotational inertia.
        plane: "xz" or two directions (2, 3), for a plane picture; by default it is in space.
        scale: Metres in the picture for each kg (or kg m²). By default such that the largest one
            has about a quarter of the picture; to compare pictures, give it.
        robot: Whether the skeleton is drawn.
        ellipsoid: Whether the ellipsoid of gyration is drawn too, as a line, in a plane picture: at
            the root of the mass, in the same scale.
        color: Colour of the ellipsoid; default: the theme's, in turn.
        label: For a legend, of the first posture.
        alpha: How solid it is.
        limit: Where it is cut; see `lw.inertial.ellipsoid`.
        resolution: Points around.
        loops: Whether loops and couplings act.

    Returns:
        The Axes.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        ModelError: A node that cannot move in any of the directions; arguments that do not go
            together.
    """
    look = themed(theme)
    if not isinstance(of, Mechanism):
        one = _given(of, q, node, what, plane, resolution, limit)
        board = shape(one, scale=1.0 if scale is None else scale, ax=ax, theme=look,
                      color=color, alpha=alpha, label=label)  # fmt: skip
        _amounts(board, one, scale is None)
        return board
    if q is None or node is None:
        raise ModelError(
            f"a belted ellipsoid of {of.name!r} needs its joint positions and a node; "
            "give linkwise.plot.belted_ellipsoid(mech, q, node)."
        )
    mech = of
    states = np.atleast_2d(mech.check_q(q))
    points = resolution or (160 if plane is not None else 56)
    shapes = list[InertialShape]()
    for state in states:
        properties = inertial_properties(mech, state, node, loops=loops)
        shapes.append(shape_of(properties, what=what, plane=plane, resolution=points, limit=limit))
    board = axes_for(ax, 3 if plane is None else 2, look)
    largest = max(float(one.radii.max()) for one in shapes)
    scale = scale if scale is None else number(scale, "scale", above=0.0)
    unit = LARGE * _size(mech, states, node) / largest if scale is None else scale
    for i, (state, one) in enumerate(zip(states, shapes, strict=True)):
        shade = tint(color, look.color(i))
        at = forward_kinematics(mech, state, node).p
        name = label if i == 0 else None
        if robot:
            ink = look.ink if len(states) == 1 else shade
            skeleton(mech, state, plane=plane, nodes=(node,), ax=board, theme=look, color=ink)
        shape(one, at, scale=unit, ax=board, theme=look, color=shade, alpha=alpha, label=name)
        if ellipsoid and plane is not None:
            properties = inertial_properties(mech, state, node, loops=loops)
            line = shape_of(properties, "gyration", what=what, plane=plane, resolution=points)
            ring = np.where(line.cut[:, None], np.nan, line.points)
            ring = at @ line.plane + unit * np.concatenate([ring, ring[:1]])
            board.plot(*ring.T, color=look.faint, lw=1.0, ls="--", zorder=2.6)
    metres(board, plane if isinstance(plane, str) else "xyz" if plane is None else "uv")
    # A scale that is given is for comparing pictures: their bars are of one length then.
    _bar(board, unit, largest if scale is None else SHORT * reach(mech, (node,)) / unit, what, look)
    if label is not None and not is_space(board):
        legend(board, look)
    return board


def _given(
    of: object,
    q: object,
    node: object,
    what: What,
    plane: Plane | None,
    resolution: int | None,
    limit: float | None,
) -> InertialShape:
    """A shape that was computed before, or that of properties; raises for anything else."""
    if not isinstance(of, InertialShape | InertialProperties):
        raise ModelError(
            f"linkwise.plot.belted_ellipsoid was given a {type(of).__name__}; it draws (mech, q, "
            "node), or what lw.inertial.inertial_properties or lw.inertial.ellipsoid gave."
        )
    if q is not None or node is not None:
        raise ModelError(
            "q and node go with a mechanism; what was given knows its state already. Give "
            "(mech, q, node) to see the robot too."
        )
    if isinstance(of, InertialProperties):
        points = resolution or (160 if plane is not None else 56)
        return shape_of(of, what=what, plane=plane, resolution=points, limit=limit)
    if plane is not None:
        raise ModelError(
            "a plane was given for a shape that is made already; give it to lw.inertial.ellipsoid."
        )
    return of


def _amounts(ax: Axes, of: InertialShape, plain: bool) -> None:
    """Labels of a shape by itself: axes in its own unit, or in metres of the picture."""
    metres(ax, _letters(of))
    if not plain:
        return
    unit = "kg" if of.what == "mass" else "kg m²"
    for axis in (ax.xaxis, ax.yaxis, *((ax.zaxis,) if is_space(ax) else ())):
        axis.set_label_text(axis.get_label_text().replace("[m]", f"[{unit}]"))


def _flat(of: InertialShape) -> bool:
    return of.points.shape[1] == 2


def _letters(of: InertialShape) -> str:
    """Names of the axes of a shape: those of the world where it is along them."""
    if not _flat(of):
        return "xyz"
    along = [np.flatnonzero(column == 1.0) for column in of.plane.T]
    fits = of.plane.shape == (3, 2) and all(len(x) for x in along)
    return "".join("xyz"[int(x[0])] for x in along) if fits else "uv"


def _size(mech: Mechanism, states: Array, node: str) -> float:
    """How large the robot is in these postures [m]."""
    points = np.concatenate([bones(mech, state, (node,)).points for state in states])
    across = float(np.ptp(points, axis=0).max())
    return across if across > 0.0 else reach(mech, (node,))


def _bar(ax: Axes, scale: float, largest: float, what: What, theme: Theme) -> None:
    """How long a kilogram is: a bar in the corner of a plane picture, words in space; once."""
    if not once(ax, SCALE):
        return
    unit = "kg" if what == "mass" else "kg m²"
    if is_space(ax):
        words = f"1 {unit} is drawn as {scale:.2g} m"
        ax.text2D(
            0.02, 0.96, words, transform=ax.transAxes, fontsize=8, color=theme.faint, gid=SCALE
        )
        return
    longest = 0.6 * largest
    step = 10.0 ** np.floor(np.log10(longest))
    amount = step * max(x for x in (1.0, 2.0, 5.0) if x * step <= longest * (1.0 + 1e-9))
    anchored: Any = matplotlib(
        "mpl_toolkits.axes_grid1.anchored_artists", "a belted ellipsoid"
    ).AnchoredSizeBar
    bar = anchored(
        ax.transData,
        amount * scale,
        f"{amount:g} {unit}",
        "lower right",
        frameon=False,
        color=theme.faint,
        sep=3,
        fontproperties={"size": 8},
    )
    bar.set_gid(SCALE)
    ax.add_artist(bar)
