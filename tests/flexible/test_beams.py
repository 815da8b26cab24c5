"""Beams: frequencies, deflections and spinning beams against formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.flexible import FlexibleBody, beam, frame

L, WIDTH, HEIGHT, YOUNG, DENSITY = 1.0, 0.02, 0.01, 70e9, 2700.0
SECTION = {
    "area": WIDTH * HEIGHT,
    "bending": (WIDTH * HEIGHT**3 / 12.0, HEIGHT * WIDTH**3 / 12.0),
    "young": YOUNG,
    "density": DENSITY,
}
EI, LINE = YOUNG * HEIGHT * WIDTH**3 / 12.0, DENSITY * WIDTH * HEIGHT
PLANE = ("y", "rz")
HEAVY = 1e9
"""Armature that keeps a hub at its speed."""


def mounted(body, hinge=None, **options):
    builder = lw.Builder("beam", gravity=(0, 0, 0))
    return body.add_to(builder, "beam", "world", hinge or lw.hinges.Locked(), **options).build()


def frequencies(mech, v=None):
    """Frequencies [rad/s] of small motions about q = 0, from differences of the acceleration."""
    v = np.zeros(mech.nv) if v is None else v

    def rate(x):
        q, speed = mech.integrate(mech.neutral(), x[0]), v + x[1]
        tau = np.zeros(mech.nv)
        tau[-len(mech.stiffness) :] = -mech.stiffness * q[-mech.nv :]
        return np.concatenate([x[1], lw.forward_dynamics(mech, q, speed, tau)])

    steps = 1e-6 * np.eye(2 * mech.nv).reshape(-1, 2, mech.nv)
    A = np.stack([(rate(x) - rate(-x)) / 2e-6 for x in steps], axis=-1)
    values = np.linalg.eigvals(A)
    return np.sort(values.imag[values.imag > 1e-2])


def test_cantilever():
    body = beam(L, **SECTION, modes=4, directions=PLANE)
    exact = np.array([1.8751040687, 4.6940911330, 7.8547574382, 10.9955407349]) ** 2
    exact *= np.sqrt(EI / (LINE * L**4))
    np.testing.assert_allclose(2 * np.pi * body.frequencies, exact, rtol=2e-5)
    np.testing.assert_allclose(frequencies(mounted(body)), exact, rtol=2e-5)
    assert not body.validate()


def test_free_beam():
    """Clamped at its frame and carried by a free hinge, it has the frequencies of a free beam."""
    body = beam(L, **SECTION, modes=5, directions=PLANE, boundary="fixed")
    mech = mounted(body, lw.hinges.Planar())

    exact = np.array([4.7300407449, 7.8532046241]) ** 2 * np.sqrt(EI / (LINE * L**4))
    np.testing.assert_allclose(frequencies(mech)[:2], exact, rtol=1e-3)


def links(n):
    """A cantilever of rigid links with springs E I / h, whose first half link is in the wall."""
    h, b, parent, x = L / n, lw.Builder("links", gravity=(0, 0, 0)), "world", 0.5 * L / n
    for i, l in enumerate([h] * (n - 1) + [0.5 * h]):
        m = LINE * l
        inertia = lw.SpatialInertia.from_com(m, (0.5 * l, 0, 0), [m * l * l / 12.0] * 3)
        drive = lw.Drive(stiffness=EI / h)
        b.body(
            f"link_{i}", parent, lw.hinges.Pin(), inboard=(x, 0, 0), inertia=inertia, drive=drive
        )
        parent, x = f"link_{i}", l
    return b.build()


@pytest.mark.prove
def test_rigid_links_with_springs_converge_to_the_beam():
    """Frequencies differ by O(1/n²) from those of the modes."""
    body = mounted(beam(L, **SECTION, modes=3, directions=PLANE))
    exact = np.array([x.frequency for x in lw.simulation.vibrations(body)])
    natural = [[x.frequency for x in lw.simulation.vibrations(links(n))][:3] for n in (4, 8, 16)]
    errors = np.abs(np.array(natural) / exact - 1.0)
    assert (errors[1:] < errors[:-1] / 3.0).all() and errors[-1].max() < 0.01


def test_torsion_and_stretch():
    body = beam(L, **SECTION, torsion=1e-9, shear_modulus=27e9, modes=1, directions=("rx",))
    polar = DENSITY * sum(SECTION["bending"])
    exact = 0.5 * np.pi / L * np.sqrt(27e9 * 1e-9 / polar) / (2 * np.pi)
    np.testing.assert_allclose(body.frequencies, exact, rtol=1e-3)
    body = beam(L, **SECTION, modes=1, directions=("x",))
    exact = 0.25 / L * np.sqrt(YOUNG / DENSITY)
    np.testing.assert_allclose(body.frequencies, exact, rtol=1e-3)


def test_tip_mass_much_heavier_than_the_beam():
    load = 1000.0 * LINE * L
    body = beam(L, **SECTION, modes=1, directions=PLANE, tip=lw.SpatialInertia.point(load))
    exact = np.sqrt(3.0 * EI / ((load + 33.0 / 140.0 * LINE * L) * L**3)) / (2.0 * np.pi)
    np.testing.assert_allclose(body.frequencies, exact, rtol=1e-5)


def test_wedge():
    """Kirchhoff's wedge: ω L² √(ρ A_0 / E I_0) = 5.315 for a depth that tapers to zero."""
    depth = np.linspace(1.0, 1e-3, 41)
    bending = np.stack([depth, depth**3], axis=1) * 1e-8
    body = beam(
        L,
        area=1e-4 * depth,
        bending=bending,
        young=YOUNG,
        density=DENSITY,
        modes=1,
        directions=PLANE,
    )
    number = 2 * np.pi * body.frequencies[0] * np.sqrt(DENSITY * 1e-4 / (YOUNG * 1e-8))
    np.testing.assert_allclose(number, 5.315, rtol=2e-3)


@pytest.mark.parametrize(("modes", "lumps"), [(1, 1), (2, 2), (4, 4)])
def test_too_few_lumps(modes, lumps):
    """Masses at few points do not have the frequencies of the beam."""
    with pytest.raises(lw.ModelError, match=r"mode \d has .* Hz, with the mass of the elements"):
        beam(L, **SECTION, modes=modes, lumps=lumps, directions=PLANE)
    exact = beam(L, **SECTION, modes=modes, directions=PLANE).frequencies
    made = beam(L, **SECTION, modes=modes, lumps=modes + 3, directions=PLANE).frequencies
    np.testing.assert_allclose(made, exact, rtol=0.1)


def test_sections_along_a_beam():
    """Two numbers are I_y and I_z; values along a beam are rows of both."""
    given = {"area": 1e-4, "young": YOUNG, "density": DENSITY, "modes": 1, "directions": PLANE}
    both = beam(L, bending=[2.5e-9, 0.5e-9], **given)
    np.testing.assert_allclose(both.frequencies, beam(L, bending=0.5e-9, **given).frequencies)
    taper = beam(L, bending=[[2.5e-9, 2.5e-9], [0.5e-9, 0.5e-9]], **given)
    assert taper.frequencies[0] > 1.5 * both.frequencies[0]
    for wrong in ([2.5e-9, 1.5e-9, 0.5e-9], [[2.5e-9], [0.5e-9]]):
        with pytest.raises(lw.ShapeError, match=r"rows of them \(stations, 2\)"):
            beam(L, bending=wrong, **given)
    with pytest.raises(lw.ShapeError, match=r"one number, or \(stations,\)"):
        beam(L, **{**given, "area": [[1e-4, 1e-4]]}, bending=1e-9)


@pytest.mark.parametrize("factor", [None, 5.0 / 6.0])
def test_static_deflection(factor):
    """With the static shapes of the tip the deflection under a tip force is exact."""
    body = beam(L, **SECTION, shear_factor=factor, modes=2, directions=PLANE, boundary="fixed")
    slope = body.modes[body.tip, 4]
    exact = L**3 / (3.0 * EI)
    if factor:
        exact += L / (factor * SECTION["area"] * YOUNG / 2.6)
    np.testing.assert_allclose(np.sum(slope**2 / body.stiffness), exact, rtol=1e-9)


@pytest.mark.parametrize(("speed", "number"), [(2.0, 4.1373), (6.0, 7.3604)])
def test_spinning_beam_stiffens(speed, number):
    """Out-of-plane frequencies of a rotating cantilever (Wright, Smith, Thresher and Wang 1982)."""
    flat = {**SECTION, "bending": (EI / YOUNG, 1.0)}
    body = beam(L, **flat, modes=4, directions=("z", "ry"))
    unit = np.sqrt(EI / (LINE * L**4))
    mech = mounted(body, lw.hinges.Pin((0, 0, 1)), drive=lw.Drive(armature=HEAVY))
    v = np.zeros(mech.nv)
    v[0] = speed * unit
    np.testing.assert_allclose(frequencies(mech, v=v)[0] / unit, number, rtol=2e-4)


def spin_up(body, duration, step=0.02):
    """The tip of a beam whose hub starts to turn (Kane, Ryan and Banerjee 1987)."""
    mech = mounted(body, lw.hinges.Pin((0, 0, 1)), drive=lw.Drive(armature=HEAVY))
    T, speed = 15.0, 6.0
    # The hub is so heavy that it follows this torque exactly.
    times = np.arange(0.0, duration, step) + 0.5 * step
    rate = np.where(times < T, speed / T * (1.0 - np.cos(2.0 * np.pi * times / T)), 0.0)
    tau = np.zeros((len(times), mech.nv))
    tau[:, 0] = HEAVY * rate
    runs = lw.rollout(
        mech, mech.neutral(), np.zeros(mech.nv), duration=duration, step=step, tau=tau
    )
    eta = runs.q[..., 1:].reshape(-1, mech.nv - 1)
    return (body.shape(eta) - body.positions)[:, body.tip, 1]


def kane(**options):
    return beam(
        10.0,
        area=1.2 / 3000.0,
        bending=2e-7,
        young=7e10,
        density=3000.0,
        directions=PLANE,
        **options,
    )


def test_spin_up():
    """The tip lags by 0.57 m and comes back; without the terms of second order it diverges."""
    body = kane(modes=2, lumps=6)
    tip = spin_up(body, 20.0)
    assert -0.60 < tip.min() < -0.55
    assert np.abs(tip[-100:]).max() < 0.02
    assert np.abs(spin_up(replace(body, second=None), 10.0)).max() > 10.0


def test_frame_of_one_member_is_a_beam():
    nodes = np.linspace((0, 0, 0), (0, L, 0), 13)
    table = (SECTION["area"], *SECTION["bending"], 1e-9)
    pairs = [(i, i + 1) for i in range(12)]
    made = frame(nodes, pairs, sections=table, young=YOUNG, density=DENSITY, modes=3)
    reference = beam(L, **SECTION, torsion=1e-9, modes=3)
    np.testing.assert_allclose(made.frequencies, reference.frequencies, rtol=1e-3)
    mech, other = (mounted(x, lw.hinges.Spherical()) for x in (made, reference))
    assert abs(mech.total_mass - other.total_mass) < 1e-12


def test_frame_starts_at_its_first_node():
    """Wherever that is: nodes are relative to it, so a beam on a pin has ∫ ρ A x² dx."""
    nodes = np.linspace((0, 0, 0), (0, L, 0), 13)
    table, pairs = (SECTION["area"], *SECTION["bending"], 1e-9), [(i, i + 1) for i in range(12)]
    given = {"sections": table, "young": YOUNG, "density": DENSITY, "modes": 2}
    body, moved = (frame(x, pairs, **given) for x in (nodes, nodes + np.array([1.0, 2.0, 0.0])))
    np.testing.assert_allclose(moved.positions, body.positions, atol=1e-15)
    mech = mounted(moved, lw.hinges.Pin())
    thickness = DENSITY * SECTION["bending"][1] * L
    inertia = LINE * L**3 / 3.0 + thickness
    np.testing.assert_allclose(lw.mass_matrix(mech, mech.neutral())[0, 0], inertia, rtol=1e-9)


def test_tables_of_elements():
    """Every node is joined to the first one, and all indices are whole numbers in range."""
    nodes = np.linspace((0, 0, 0), (L, 0, 0), 4)
    chain = [(0, 1), (1, 2), (2, 3)]

    def refused(match, pairs=chain, places=nodes, **options):
        with pytest.raises(lw.ModelError, match=match):
            table = (*(SECTION["area"], *SECTION["bending"]), 1e-9)
            frame(places, pairs, sections=table, young=YOUNG, density=DENSITY, **options)

    refused("at most 3", tip_node=30)
    refused("clamped", tip_node=0)
    refused("whole number", pairs=[(0.9, 1), *chain[1:]])
    refused("whole number", pairs=[(0, 1), (1, 4)])
    refused("pair of nodes", pairs=[(0, 1, 2)])
    refused("different nodes", pairs=[(0, 1), (2, 2)])
    refused("node 3 is not connected to node 0.*no element uses it", pairs=chain[:2])
    apart = np.concatenate([nodes, nodes[1:3] + L])
    refused("node 4 is not .*do not reach it", pairs=[*chain, (4, 5)], places=apart)


def test_frame_with_a_corner_shortens_along_both_members():
    """In a plane S = −∫ θ θ* e ds from the root: a sum over lumps, of length m_i / (ρ A) each."""
    corner, parts = np.array([1.0, 0.0, 0.0]), 4
    up = np.linspace(corner, (1, 1, 0), parts + 1)[1:]
    nodes = np.concatenate([np.linspace((0, 0, 0), corner, parts + 1), up])
    pairs = [(i, i + 1) for i in range(2 * parts)]
    pairs[parts] = pairs[parts][::-1]  # given from its far end
    table = (SECTION["area"], *SECTION["bending"], 1e-9)
    given = {"sections": table, "young": YOUNG, "density": DENSITY}
    body = frame(nodes, pairs, **given, modes=2, directions=("x", "y", "rz"))
    turn, length = body.modes[:, 2], body.masses / LINE
    along = np.where(body.positions[:, 1:2] > 0.0, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    S = -np.einsum("n,na,nb,ni->iab", length, turn, turn, along)
    np.testing.assert_allclose(np.asarray(body.second)[body.tip], S, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("directions", [("y",), ("rz",), ("z", "rz"), ("ry",), ("x", "y")])
def test_bending_needs_displacement_and_turn(directions):
    """Without one of the two a beam is clamped everywhere, and 60 times as stiff."""
    with pytest.raises(lw.ModelError, match="cannot bend"):
        beam(L, **SECTION, directions=directions)


def test_directions_of_members():
    """A plane frame along x and y needs both displacements; a string is not a list of names."""
    nodes, pairs = [(0, 0, 0), (1, 0, 0), (1, 1, 0)], [(0, 1), (1, 2)]
    given = {"sections": (1e-4, 1e-9, 1e-9, 1e-9), "young": YOUNG, "density": DENSITY}
    with pytest.raises(lw.ModelError, match="Add 'x'"):
        frame(nodes, pairs, **given, modes=1, directions=PLANE)
    frame(nodes, pairs, **given, modes=1, directions=("x", *PLANE))
    with pytest.raises(lw.ModelError, match="one by one"):
        beam(L, **SECTION, directions="y")


def test_validation():
    body = beam(L, **SECTION, modes=2, directions=PLANE)
    names = ("positions", "modes", "stiffness", "masses", "second")
    fields = {name: getattr(body, name) for name in names}

    def codes(**changes):
        return {x.code for x in FlexibleBody(**{**fields, **changes}).validate()}

    assert not codes()
    assert codes(second=None) == {"no-second"}
    mech = mounted(FlexibleBody(**{**fields, "second": None}), lw.hinges.Pin())
    (finding,) = mech.validate()
    assert (finding.severity, finding.code) == ("warning", "no-second")
    assert finding.where == "body 'beam.tip'"
    assert not mounted(body, lw.hinges.Pin()).validate()
    for along in ("x", "rx"):  # stretch and twist displace nothing to second order
        twist = {"torsion": 1e-9, "shear_modulus": 3e10}
        straight = beam(L, **SECTION, **twist, modes=2, directions=(along,))
        assert not np.asarray(straight.second).any() and not straight.validate()
    assert codes(stiffness=[-1.0, 5.0]) == {"negative-stiffness"}
    assert "unnormalised" in codes(modes=10.0 * body.modes)
    rigid = body.modes.copy()
    rigid[:, :, 0] = 0.0
    rigid[:, 4, 0], rigid[:, 2, 0] = body.positions[:, 0], 1.0
    assert "rigid-mode" in codes(modes=rigid)
    mixed = body.modes @ np.array([[1.0, 0.6], [0.0, 0.6]])
    assert "coupled" in codes(modes=mixed)
    assert "no-mass" in codes(masses=0.0 * body.masses)
    with pytest.raises(lw.ModelError, match="buckle"):
        mounted(FlexibleBody(**{**fields, "stiffness": [-1.0, 5.0]}))


def test_normalised_modes_describe_the_same_body():
    body = beam(L, **SECTION, modes=2, directions=PLANE)
    scaled = FlexibleBody(
        *(body.positions, 3.0 * body.modes, 9.0 * body.stiffness, body.masses),
        second=9.0 * np.asarray(body.second),
    )
    again = scaled.normalised()
    np.testing.assert_allclose(again.frequencies, body.frequencies, rtol=1e-12)
    np.testing.assert_allclose(np.abs(again.modes), np.abs(body.modes), atol=1e-9)
    assert not again.validate()


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_files(tmp_path, suffix):
    body = beam(L, **SECTION, modes=2, directions=PLANE, damping=0.01)
    lw.flexible.save(body, tmp_path / f"beam{suffix}")
    again = lw.flexible.load(tmp_path / f"beam{suffix}")
    for name in ("positions", "modes", "stiffness", "masses", "inertias", "damping", "second"):
        np.testing.assert_array_equal(getattr(again, name), getattr(body, name))
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(lw.ParseError, match="format"):
        lw.flexible.load(tmp_path / "bad.json")


def with_springs(mech, run):
    """Kinetic and potential energy of a recording, and that of the springs of the modes."""
    part = mech.q_start[mech.flexible[0]]
    modes = slice(part, part + mech.bodies[mech.flexible[0]].hinge.nq)
    return (
        run["energy.total"]
        + 0.5
        * run.q[:, modes] ** 2
        @ mech.stiffness[mech.v_slice(mech.bodies[mech.flexible[0]].name)]
    )


@pytest.mark.prove
def test_energy_over_a_minute():
    """A flexible pendulum keeps its energy: kinetic, of gravity and of its springs."""
    body = beam(
        1.0, area=1e-4, bending=1e-9, young=7e9, density=2700.0, modes=2, lumps=5, directions=PLANE
    )
    builder = lw.Builder("pendulum", gravity=(0.0, -9.81, 0.0))
    mech = body.add_to(builder, "beam", "world", lw.hinges.Pin((0, 0, 1))).build()
    run = lw.simulate(mech, mech.neutral(), duration=60.0, step=5e-4)
    total = with_springs(mech, run)
    assert np.abs(total - total[0]).max() < 1e-4 * np.ptp(run["energy.kinetic"])
    assert np.abs(run.q[:, 1]).max() > 1e-3  # it bends


@pytest.mark.prove
def test_slider_crank_with_a_flexible_rod():
    """A loop closes over the tip of a flexible rod: it stays closed, and energy is kept."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    rod = beam(0.3, **section, modes=1, lumps=4, directions=PLANE)
    b = lw.Builder("slider crank", gravity=(0, -9.81, 0))
    crank = lw.SpatialInertia.from_com(0.1, (0.05, 0, 0), (1e-4, 1e-4, 1e-4))
    slide, slider = lw.hinges.Prismatic((1, 0, 0)), lw.SpatialInertia.point(0.2)
    b = b.body("crank", "world", lw.hinges.Pin((0, 0, 1)), inertia=crank)
    b = rod.add_to(b, "rod", "crank", lw.hinges.Pin((0, 0, 1)), inboard=(0.1, 0, 0))
    b = b.body("slider", "world", slide, inertia=slider)
    mech = b.loop("wrist", "rod.tip", "slider", lw.hinges.Pin((0, 0, 1))).build()
    q = np.zeros(mech.nq)
    below = np.arcsin(np.sin(1.0) / 3.0)
    q[mech.q_slice("crank")], q[mech.q_slice("rod")] = 1.0, -1.0 - below
    q[mech.q_slice("slider")] = 0.1 * np.cos(1.0) + 0.3 * np.cos(below)
    run = lw.simulate(mech, q, duration=0.3, step=1e-4)
    total = with_springs(mech, run)
    assert np.abs(total - total[0]).max() < 1e-4 * np.ptp(run["energy.kinetic"])
    assert np.ptp(run.q[:, mech.q_slice("slider")]) > 0.02
    tip, end = (mech.pose(run.q, name).p for name in ("rod.tip", "slider"))
    np.testing.assert_allclose(tip, end, rtol=0, atol=1e-8)
