"""Pictures of recordings: the numbers with their units, and labels that stay apart."""

import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, ModelError, UnknownNameError
from linkwise.simulation import Channel, Event, Recording, recording
from linkwise.simulation.report import Notes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import linkwise.plot as lp  # noqa: E402


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def made(mech, *, count=40, tau=0.0, **more):
    """A recording of a smooth motion that obeys no law: pictures do not mind."""
    t = np.linspace(0.0, 2.0, count)
    phase = np.arange(mech.nv)
    v = np.cos(2.0 * t[:, None] + phase)
    q = [mech.neutral()]
    for a, b in zip(v[:-1], np.diff(t), strict=True):
        q.append(mech.integrate(q[-1], a, float(b)))
    force = tau * np.sin(3.0 * t[:, None] - phase)
    return Recording.of(mech, t, np.array(q), v, force, **more)


def long_chain(count):
    """Of many joints, without a mechanism: as it comes from a file."""
    t, names = np.linspace(0.0, 1.0, 30), tuple(f"joint_{i}" for i in range(count))
    values = np.sin(t[:, None] + np.arange(count))
    units = {"q": "rad", "v": "rad/s", "tau": "N m"}
    channels = [Channel(x, unit, "", values, names) for x, unit in units.items()]
    return recording.made(None, "long", t, channels, Notes(), integrator="", step=1e-3, steps=9,
                          events=(), stopped=None)  # fmt: skip


@pytest.fixture(scope="module")
def man():
    return made(lw.models.humanoid())


@pytest.fixture(scope="module")
def arm():
    events = [Event(0.5, "watch", "reach"), Event(0.51, "watch", "near"), Event(2.0, "stop", "end")]
    return made(lw.models.puma560(), tau=2.0, events=events)


def drawn(board):
    """The lines with labels, by label."""
    return {x.get_label(): x.get_ydata() for x in board.lines if not x.get_label().startswith("_")}


def texts(board):
    """Boxes of all letters of a panel, in pixels."""
    shown = [*board.get_xticklabels(), *board.get_yticklabels(), board.xaxis.label,
             board.yaxis.label, board.title, *board.texts]  # fmt: skip
    if board.get_legend() is not None:
        shown += board.get_legend().get_texts()
    result = [x for x in shown if x.get_visible() and x.get_text()]
    limits = [*board.get_xlim()], [*board.get_ylim()]
    inside = list[object]()
    for x in result:  # ticks beyond the limits are not drawn
        if x in board.get_xticklabels() and not min(limits[0]) <= x.get_position()[0] <= max(
            limits[0]
        ):
            continue
        if x in board.get_yticklabels() and not min(limits[1]) <= x.get_position()[1] <= max(
            limits[1]
        ):
            continue
        inside.append(x)
    return [(x.get_text(), x.get_window_extent()) for x in inside]


def check_apart(boards):
    """No letters over others, and none outside of the figure."""
    figure = boards[0].figure
    figure.draw_without_rendering()
    result = [box for board in boards for box in texts(board)]
    width, height = figure.get_size_inches() * figure.dpi
    for i, (text, box) in enumerate(result):
        assert box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1, text
        for other, beside in result[i + 1 :]:
            across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
            along = min(box.y1, beside.y1) - max(box.y0, beside.y0)
            assert across < 1.0 or along < 1.0, (text, other)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_history_draws_the_channels_with_units(arm, theme):
    boards = lp.history(arm, theme=theme)
    assert [x.get_ylabel() for x in boards] == ["q [rad]", "v [rad/s]", "tau [N m]"]
    assert [x.get_xlabel() for x in boards] == ["", "", "t [s]"]
    for board, name in zip(boards, ("q", "v", "tau"), strict=True):
        lines = drawn(board)
        assert list(lines) == list(arm.channels[name].labels)
        assert np.array_equal(np.stack(list(lines.values()), -1), arm[name])
        assert board.get_xlim() == (0.0, 2.0)
        assert len({(x.get_color(), x.get_linestyle()) for x in board.lines[:6]}) == 6
    look = getattr(lp, theme.upper())
    assert matplotlib.colors.to_hex(boards[0].figure.get_facecolor()) == look.paper
    check_apart(boards)
    assert [x.get_text() for x in boards[0].texts] == ["reach", "end"]  # "near" would touch


def test_history_puts_units_apart_and_few_lines_in_a_panel(man):
    rec = man
    boards = lp.history(rec)
    assert all(len(drawn(x)) <= 8 for x in boards)
    of = [label for x in boards for label in drawn(x)]
    assert sorted(of) == sorted([*rec.channels["q"].labels, *rec.channels["v"].labels])
    assert {x.get_ylabel() for x in boards} == {"q", "q [m]", "q [rad]", "v [rad/s]", "v [m/s]"}
    check_apart(boards)
    few = lp.history(rec, "v", lines=3)
    assert len(few) == 10 and all(len(drawn(x)) <= 3 for x in few)


def test_history_of_sixty_joints_stays_legible():
    rec = long_chain(60)
    boards = lp.history(rec, ["q"])
    assert len(boards) == 8 and sum(len(drawn(x)) for x in boards) == 60
    check_apart(boards)


def test_history_of_single_channels_and_patterns(arm):
    boards = lp.history(arm, ["energy.*", "q[joint_2]", "momentum.linear"])
    assert [x.get_ylabel() for x in boards] == ["energy [J]", "q[joint_2] [rad]",
                                                "momentum.linear [kg m/s]"]  # fmt: skip
    energies = [x for x in arm.channels if x.startswith("energy.")]
    assert list(drawn(boards[0])) == energies
    assert np.array_equal(boards[1].lines[0].get_ydata(), arm["q[joint_2]"])
    (ours,) = lp.history(arm, "energy.total", events=False)
    assert len(ours.lines) == 1 and not ours.texts
    lp.history(arm, "v", ax=ours, events=False)
    assert len(ours.lines) == 7


def test_history_refuses_what_it_cannot_draw(arm):
    with pytest.raises(UnknownNameError, match=r"no channel called 'energy.totl'.*energy.total"):
        lp.history(arm, ["q", "energy.totl"])
    with pytest.raises(UnknownNameError, match=r"no channel called 'power.\*'"):
        lp.history(arm, "power.*")
    with pytest.raises(ModelError, match=r"given a Mechanism; lw.simulate"):
        lp.history(arm.mech)
    with pytest.raises(ModelError, match="1 Axes were given, and the picture has 3 panels"):
        lp.history(arm, ax=lp.panels()[1])
    with pytest.raises(ModelError, match="is in space"):
        lp.history(arm, "v", ax=lp.panels(dimension=3)[1])
    with pytest.raises(ModelError, match="one or more"):
        lp.history(arm, lines=0)
    nothing = lw.Builder("nothing").build()
    still = Recording.of(nothing, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    with pytest.raises(ModelError, match="have no columns to draw"):
        lp.history(still)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_energy_budget_adds_up(arm, theme):
    boards = lp.energy_budget(arm, theme=theme)
    assert [x.get_ylabel() for x in boards] == ["energy [J]", "work [J]", "drift [J]"]
    lines = drawn(boards[0])
    assert np.array_equal(lines["kinetic"], arm["energy.kinetic"])
    stored = arm["energy.potential"] - arm["energy.potential"][0]
    assert np.array_equal(lines["potential − start"], stored)
    assert np.allclose(lines["sum"] - lines["start + works"], arm["energy.balance"])
    assert np.array_equal(boards[2].lines[0].get_ydata(), arm["energy.balance"])
    check_apart(boards)


def test_works_stand_one_on_the_other():
    t = np.linspace(0.0, 2.0, 40)
    works = {"joints": 2.0 * t, "contacts": 3.0 * t, "passive": -t, "brakes": -4.0 * t}
    _, board, _ = lp.energy_budget(made(lw.models.pendulum(1), works=works))
    areas = [np.concatenate([p.vertices for p in x.get_paths()])[:, 1] for x in board.collections]
    assert max(a.max() for a in areas) == pytest.approx(10.0)  # 4 and 6 at the end
    assert min(a.min() for a in areas) == pytest.approx(-10.0)  # 2 and 8
    named = [x.get_text() for x in board.get_legend().get_texts()]
    assert named == ["joint forces", "dampers, springs", "contacts", "brakes"]


def test_energy_budget_without_work_and_with_work_that_is_not_known():
    rec = made(lw.models.pendulum(2))
    boards = lp.energy_budget(rec)
    assert [x.get_ylabel() for x in boards] == ["energy [J]", "drift [J]"]
    unknown = made(lw.models.pendulum(2), works={"forces": None})
    boards = lp.energy_budget(unknown)
    assert "work of forces that is not counted" in boards[-1].get_title(loc="right")


def test_a_machine_without_a_display_draws_all_the_same(tmp_path):
    """A backend that needs windows, and no screen: no error, and a picture that can be saved."""
    code = f"""
import os
os.environ.pop("DISPLAY", None); os.environ.pop("WAYLAND_DISPLAY", None)
os.environ["MPLBACKEND"] = "TkAgg"
import numpy as np, linkwise as lw
from linkwise.simulation import Recording
rec = Recording.of(lw.models.pendulum(1), [0.0, 1.0], [[0.1], [0.2]], [[0.1], [0.1]])
lw.plot.history(rec)[0].figure.savefig({str(tmp_path / "a.png")!r})
print("drawn")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "drawn", done.stderr
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_a_backend_that_fails_is_done_without(monkeypatch, arm, tmp_path):
    import matplotlib.pyplot as plt

    def fails(*_, **__):
        raise RuntimeError("no screen")

    monkeypatch.setattr(plt, "figure", fails)
    (board,) = lp.history(arm, "v")
    board.figure.savefig(tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 1000


def test_the_backend_of_the_user_is_left_alone():
    code = """
import matplotlib; matplotlib.use("svg")
import linkwise as lw
from linkwise.simulation import Recording
rec = Recording.of(lw.models.pendulum(1), [0.0, 1.0], [[0.1], [0.2]], [[0.1], [0.1]])
lw.plot.history(rec); lw.plot.operator(rec.mech, rec.q[0], "mass")
print(matplotlib.get_backend())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "svg", done.stderr


def test_matplotlib_is_named_with_its_extra(monkeypatch, arm):
    for name in [x for x in sys.modules if x.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    for draw in (lp.history, lp.energy_budget):
        with pytest.raises(MissingExtraError, match=r"linkwise\[plot\]"):
            draw(arm)
