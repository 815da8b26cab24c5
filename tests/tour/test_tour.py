"""The tour: what it shows, what it leaves behind, and robots that nobody thought of."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from importlib import metadata

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.tour import bench
from linkwise.tour.guide import STATIONS, guide
from linkwise.tour.motion import circle, let_go, under_control
from linkwise.tour.page import Check, Missing, Picture, Playback
from linkwise.tour.posture import hand, posture
from linkwise.tour.robot import effective_mass, robot
from linkwise.tour.visit import Visit

BALL = lw.SpatialInertia.solid_sphere(1.0, 0.1)


class Links(HTMLParser):
    """Everything a page refers to, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses, self.ids, self.tags = list[str](), set[str](), list[str]()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data", "poster") and value:
                self.addresses.append(value)
            if name == "id" and value:
                self.ids.add(value)


# ------------------------------------------------------------------------------ the main tour


def test_all_checks_hold_and_nothing_is_left_out(toured):
    assert toured.visit.failed == 0
    assert toured.visit.notes == []
    assert toured.visit.missing == ()
    assert len(toured.visit.checks) >= 15
    assert len(toured.visit.sections) == len(STATIONS)


def test_the_terminal_has_derivation_sweeps_and_figures(toured):
    for text in (
        "= (I - H ψ K)* D⁻¹ (I - H ψ K) (τ - C)",
        "000 Lemma 4.3",
        "for k = tips … base",
        "P(k) = Σ_c φ(k,c) P⁺(c) φ*(k,c) + M(k)",
        "energy drift",
        "loop drift",
        " 0 failed",
    ):
        assert text in toured.printed
    assert "FAIL" not in toured.printed


def test_an_operation_is_the_same_on_every_page(toured):
    """Of the sweeps and of the compiled function, one number."""
    (said,) = re.findall(r"code of\s+(\d+)\s+operations", toured.printed)
    row = next(line for line in toured.printed.splitlines() if "lw.forward_dynamics " in line)
    assert row.split()[1] == said


def test_the_page_is_one_file(toured):
    """It refers to nothing but itself: no address of another file, no network."""
    result = Links(toured.page)
    inside = {f"#{name}" for name in result.ids}
    for address in result.addresses:
        assert address.startswith("data:") or address in inside, address[:80]
    assert "link" in result.tags  # an icon of its own, so that no browser asks for one
    style = re.search(r"<style>(.*?)</style>", toured.page, re.DOTALL)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]


def test_the_page_has_everything(toured):
    blocks = [block for section in toured.visit.sections for block in section.blocks]
    page, result = toured.page, Links(toured.page)
    pictures = [block for block in blocks if isinstance(block, Picture)]
    assert len(pictures) >= 4
    assert page.count("<picture>") == len(pictures)
    assert all(block.light != block.dark for block in pictures)
    assert sum(isinstance(block, Playback) for block in blocks) == result.tags.count("iframe") == 3
    assert result.tags.count("math") > 20
    for check in toured.visit.checks:
        assert f"{check.error:.1e}" in page
    for section in toured.visit.sections:
        assert section.title.replace("'", "&#x27;") in page or section.title in page
    for word in ("prefers-color-scheme: dark", "@media print", "Versions: Python", "core"):
        assert word in page


def test_two_motions_share_one_viewer(toured):
    """The viewer is most of a playback; it is in the page once."""
    blocks = [block for section in toured.visit.sections for block in section.blocks]
    motions = [block for block in blocks if isinstance(block, Playback)]
    alone = sum(len(block.light) + len(block.dark) for block in motions)
    assert len(toured.page) < 0.6 * alone


# ------------------------------------------------------------------------------------ failures


def test_a_check_that_fails_is_told_and_ends_with_status_one(monkeypatch, capsys, tmp_path):
    real = bench.dynamics.inverse_dynamics
    monkeypatch.setattr(
        bench.dynamics, "inverse_dynamics", lambda *a, **k: real(*a, **k) * (1.0 + 1e-6)
    )
    monkeypatch.setattr("linkwise.tour.guide.STATIONS", (bench.speed,))
    monkeypatch.setattr(
        guide, "__kwdefaults__", {**guide.__kwdefaults__, "stations": (bench.speed,)}
    )
    report = tmp_path / "tour.html"
    assert main(["tour", "pendulum", "--quick", "--report", str(report)]) == 1
    assert "FAIL inverse dynamics undoes forward dynamics" in capsys.readouterr().out
    assert "✗ fails" in report.read_text(encoding="utf-8")


def test_a_number_that_is_none_fails():
    assert not Check("x", float("nan"), 1.0).good
    assert Check("x", 1.0, 1.0).good


@pytest.mark.parametrize("package", ["matplotlib", "viser"])
def test_what_an_extra_would_draw_is_named(package, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"matplotlib": "plot", "viser": "viewer"}[package]
    visit = guide(lw.models.pendulum(2), report=tmp_path / "t.html", quick=True, stations=(let_go,))
    left = [block for block in visit.sections[0].blocks if isinstance(block, Missing)]
    assert {block.extra for block in left} == {extra}
    assert visit.failed == 0
    assert f"pip install 'linkwise[{extra}]'" in (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "linkwise[tour]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "said"), [("nowhere/tour.html", "there is no folder"), ("", "is a folder")]
)
def test_a_place_that_cannot_be_written_is_told_before_anything_runs(place, said, tmp_path, capsys):
    assert main(["tour", "--report", str(tmp_path / place)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


# ----------------------------------------------------------------------------- robots of all kinds


def slider() -> lw.Mechanism:
    return (
        lw.Builder("slider")
        .body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=BALL)
        .build()
    )


def stone() -> lw.Mechanism:
    return lw.Builder("stone").body("stone", "world", lw.hinges.Free(), inertia=BALL).build()


def statue() -> lw.Mechanism:
    return lw.Builder("statue").body("block", "world", lw.hinges.Locked(), inertia=BALL).build()


def odd_name() -> lw.Mechanism:
    b = lw.Builder("<b>a & b</b>")
    return b.body("<i>arm</i>", "world", lw.hinges.Pin((0, 1, 0)), inertia=BALL).build()


@pytest.mark.prove
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(slider, marks=pytest.mark.slow),
        pytest.param(stone, marks=pytest.mark.slow),
        statue,
        odd_name,
    ],
)
def test_robots_of_all_kinds(made, tmp_path, capsys):
    stations = (robot, bench.speed, effective_mass, let_go)
    visit = guide(made(), report=tmp_path / "tour.html", quick=True, stations=stations)
    assert visit.failed == 0, capsys.readouterr().out
    page = (tmp_path / "tour.html").read_text(encoding="utf-8")
    assert "<b>a & b</b>" not in page.partition("<script")[0]
    assert "<i>arm</i>" not in page.partition("<script")[0]


def test_a_world_without_bodies(tmp_path, capsys):
    visit = guide(lw.Builder("empty").build(), report=tmp_path / "tour.html", quick=True,
                  stations=(robot, effective_mass, let_go))  # fmt: skip
    assert visit.failed == 0


def test_a_robot_that_nothing_resists_is_told_of_and_the_tour_goes_on(capsys):
    b = lw.Builder("hollow").body("a", "world", lw.hinges.Pin((0, 1, 0)), inertia=BALL)
    mech = b.body("b", "a", lw.hinges.Pin((1, 0, 0))).build()
    visit = guide(mech, report=None, quick=True, stations=(robot, let_go))
    assert any("let go" in note for note in visit.notes)
    assert len(visit.sections) == 2


@pytest.mark.few(0, 3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in dir(lw.models) if n[0].islower()])
def test_every_built_in_mechanism(name, tmp_path, capsys):
    arguments = {"chain": "(5)", "random_tree": "(12,3)", "multi_arm": "(2)"}
    report = tmp_path / "tour.html"
    request = ["tour", name + arguments.get(name, ""), "--quick", "--report", str(report)]
    assert main(request) == 0, capsys.readouterr().out
    assert report.stat().st_size > 100_000


# ----------------------------------------------------------------------------------- its parts


def test_the_hand_is_the_node_that_is_called_so():
    assert hand(lw.models.puma560()) == "flange"
    assert hand(lw.models.seven_dof_arm()) == "hand"
    assert hand(lw.models.pendulum(3)) is not None
    assert hand(lw.Builder("empty").build()) is None


@pytest.mark.parametrize("made", [lw.models.puma560, lw.models.four_bar, lw.models.humanoid])
def test_postures_are_configurations_with_closed_loops(made):
    mech = made()
    q = mech.check_q(posture(mech))
    for loop in mech.loops:
        gap = mech.pose(q, loop.node_a).p - mech.pose(q, loop.node_b).p
        assert np.abs(gap).max() < 1e-9


def test_a_circle_begins_and_ends_at_rest_and_its_rates_are_its_own():
    mech = lw.models.puma560()
    path = circle(mech, posture(mech), "flange", 2.0, 0.4)
    for t in (0.0, 2.0):
        goal = path.goal(t)
        assert np.allclose(goal.position, path.start, atol=1e-12)
        assert np.abs(goal.velocity).max() < 1e-12
    h = 1e-5
    for t in (0.4, 1.0, 1.7):
        ahead, here, behind = (path.goal(t + s) for s in (h, 0.0, -h))
        slope = (ahead.position - behind.position) / (2.0 * h)
        growth = (ahead.velocity - behind.velocity) / (2.0 * h)
        assert np.allclose(here.velocity, slope, atol=1e-8)  # O(h²) of lengths of 0.1 m
        assert np.allclose(here.acceleration, growth, atol=1e-8)
        middle = path.start - path.radius * path.axes[0]
        assert np.isclose(np.linalg.norm(here.position - middle), path.radius, rtol=1e-12)


@pytest.mark.slow
def test_another_arm_stands_in_for_what_cannot_reach(capsys):
    visit = Visit(lw.models.pendulum(2), pictures=False)
    visit.go((under_control,))
    assert "cannot move" in capsys.readouterr().out
    assert visit.failed == 0


PUBLIC = (
    "panda",
    "solo12",
    "ur5_robot",
    "allegro_right_hand",
    "double_pendulum",
    "iris",
    "so101",
    "anymal",
)
"""Robots of example-robot-data: arms, legs, a hand, rotors without limits, mimic joints."""

IMPOSSIBLE = {"allegro_right_hand": 4}
"""How many of their bodies have moments of inertia that no body can have."""


@pytest.mark.few(0, 2)
@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("name", PUBLIC)
def test_public_robots(name, tmp_path, capsys):
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path = next(str(file.locate()) for file in files if file.name == f"{name}.urdf")
    wrong = [f.code for f in lw.load(path).validate() if f.severity == "error"]
    status = main(["tour", path, "--quick", "--report", str(tmp_path / "tour.html")])
    out = capsys.readouterr().out
    assert wrong == ["triangle"] * IMPOSSIBLE.get(name, 0)
    assert out.count("FAIL errors of") == out.count("FAIL") == len(wrong), out
    assert status == int(bool(wrong))
