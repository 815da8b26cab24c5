"""Contacts: what they pass, their limits against plain formulas, the grasp map against sums."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError, ModelError, ShapeError, UnknownNameError
from linkwise.grasp.force_closure import edges, extreme
from linkwise.spatial.vector import cross
from tests.grasp.grasps import KINDS, block, contact, disc, frame, random_grasp

every_kind = pytest.mark.parametrize("name", KINDS)


@every_kind
def test_forces_are_reciprocal_to_the_free_motions(name):
    """H(0) f = 0 (001-II, a.7), and S and H* span everything, in any frame."""
    for seed in range(5):
        one = random_grasp(seed, 1, (name,)).contacts["c1"]
        H, S = one.hinge.hinge_map(one.hinge.neutral()), one.passed
        assert len(S) + len(H) == 6
        np.testing.assert_allclose(H @ S.T, 0.0, atol=1e-15)
        np.testing.assert_allclose(S @ S.T, np.eye(len(S)), atol=1e-15)
        assert np.linalg.matrix_rank(np.concatenate([H, S])) == 6


def test_rows_of_each_kind():
    """001-II, Appendix A: 0, 1, 2, 3 freedoms; 000 section 6: the sliding contact has 5."""
    rows = {name: contact(name).rows for name in KINDS}
    assert rows["rigid"] == 6
    assert rows["edge"] == 5
    assert rows["soft_finger"] == 4
    assert rows["point"] == 3
    assert rows["frictionless"] == 1


def brute_force_margins(one: lw.grasp.Contact, f):
    """The limits, component by component, in the contact's own right-handed axes."""
    n = np.array(one.normal)
    m, force = f[:3], f[3:]
    f_n = force @ n
    f_t = np.linalg.norm(force - f_n * n)
    m_n, m_t = m @ n, np.linalg.norm(m - (m @ n) * n)
    holds = [f_n >= 0]
    if one.kind != "frictionless":
        gamma = one.twist_arm
        if one.law == "ellipse" and 0 < gamma < np.inf:
            holds.append(f_t**2 / (one.friction * f_n) ** 2 + m_n**2 / (gamma * f_n) ** 2 <= 1)
        else:
            holds.append(f_t <= one.friction * f_n)
            if 0 < gamma < np.inf:
                holds.append(abs(m_n) <= gamma * f_n)
        if np.isfinite(one.tip_arm):
            holds.append(m_t <= one.tip_arm * f_n)
    return all(holds)


@every_kind
def test_margins_against_plain_inequalities(name):
    rng = np.random.default_rng(3)
    one = random_grasp(7, 1, (name,)).contacts["c1"]
    inside = 0
    for _ in range(400):
        lam = rng.standard_normal(one.rows)
        f = lam @ one.passed
        f[3:] += abs(rng.standard_normal()) * 2.0 * np.array(one.normal)
        f[:3] *= 0.03
        margins = one.margins(f)
        if one.two_sided:
            assert np.isinf(margins).all()
            continue
        held = brute_force_margins(one, f)
        inside += held
        assert bool(margins.min() >= 0) == held
        # All in newtons: twice the force has twice the margin.
        np.testing.assert_allclose(one.margins(2.0 * f), 2.0 * margins, rtol=1e-12)
    assert one.two_sided or 20 < inside < 380  # both answers were tried


@every_kind
def test_margins_are_concave_and_below_their_tangents(name):
    rng = np.random.default_rng(5)
    one = random_grasp(11, 1, (name,)).contacts["c1"]
    scale = np.array([0.03] * 3 + [1.0] * 3)
    for _ in range(100):
        f, g = (scale * rng.standard_normal(6) @ one.passed.T @ one.passed for _ in range(2))
        at, there, slopes = one.margins(f), one.margins(g), one.slopes(f)
        has = np.isfinite(at)
        assert (there[has] <= (at + slopes @ (g - f))[has] + 1e-12).all()
        h = 1e-6
        ahead, behind = (one.margins(f + s * (g - f))[has] for s in (h, -h))
        np.testing.assert_allclose((slopes @ (g - f))[has], (ahead - behind) / (2 * h), atol=1e-6)


@every_kind
def test_edges_and_extreme_forces_of_the_cone(name):
    """Both are held; no edge does more work than the extreme force, nor much less."""
    rng = np.random.default_rng(1)
    one = random_grasp(13, 1, (name,)).contacts["c1"]
    rays, lines = edges(one, 24)
    H = one.hinge.hinge_map(one.hinge.neutral())
    if len(rays):
        np.testing.assert_allclose(rays[:, 3:] @ np.array(one.normal), 1.0, atol=1e-12)
        assert one.margins(rays).min() >= -1e-12
    for line in lines:  # any amount of it, both ways, changes nothing
        assert (one.margins(np.array([50.0 * line, -50.0 * line])) >= 0).all() or one.two_sided
    np.testing.assert_allclose(np.concatenate([rays, lines]) @ H.T, 0, atol=1e-12)
    for _ in range(50):
        V = rng.standard_normal(6) * np.array([30.0] * 3 + [1.0] * 3)
        f = extreme(one, V)
        np.testing.assert_allclose(f @ H.T, 0, atol=1e-12)
        assert one.margins(f).min() >= -1e-12
        if one.two_sided:
            assert f @ V == pytest.approx(np.linalg.norm(one.passed @ V))
            continue
        most = float((rays @ V).max())
        assert most <= f @ V + 1e-12
        assert most >= f @ V - 0.03 * np.linalg.norm(V)  # two circles of 24 sides: 1.7 % of 0.5


def test_grasp_map_is_the_sum_of_moved_forces():
    """(2.6), (2.9) and the power f* V(0) = f_C* V_C, against explicit cross products."""
    rng = np.random.default_rng(2)
    grasp = random_grasp(17, 4, ("rigid", "soft_finger", "point", "edge"))
    f, point = rng.standard_normal((3, 4, 6)), np.array([0.3, -0.2, 0.1])
    F = grasp.object_force(f, point)
    want = np.zeros((3, 6))
    for i, one in enumerate(grasp.contacts.values()):
        force = f[:, i, 3:] @ one.pose.rot.T
        want[:, 3:] += force
        want[:, :3] += f[:, i, :3] @ one.pose.rot.T + cross(one.pose.p - point, force)
    np.testing.assert_allclose(F, want, atol=1e-14)
    A, V_C = grasp.map(point), rng.standard_normal(6)
    np.testing.assert_allclose(f.reshape(3, -1) @ (A @ V_C), F @ V_C, atol=1e-13)
    np.testing.assert_allclose(
        A.reshape(4, 6, 6)[0] @ V_C,
        (  # V_O = φ(C, O)* V_C
            lw.Pose.translation(-point) @ grasp.contacts["c1"].pose
        ).shift_velocity(V_C),
        atol=1e-14,
    )


def test_margins_of_a_batch():
    grasp = disc(3, "soft_finger")
    f = np.random.default_rng(0).standard_normal((5, 3, 6))
    margins = grasp.margins(f)
    assert margins.values.shape == (5, 3, 4)
    assert margins.smallest.shape == (5,)
    one = grasp.margins(f[2])
    np.testing.assert_array_equal(one.values, margins.values[2])
    np.testing.assert_array_equal(margins.of("finger_2", "press"), f[:, 1, 5])
    text = str(one)
    assert "finger_3" in text
    assert "slips" in text or "breaks" in text
    assert one.weakest[0] in grasp.names


def test_derived_torsion_of_edges_and_patches():
    """Evenly pressed: ∫ μ p |s| ds over a line of half length r, and over a disc of radius r."""
    assert contact("edge", friction=0.4).twist_arm == pytest.approx(0.4 * 0.03 / 2)
    assert contact("rigid patch", friction=0.4).twist_arm == pytest.approx(0.4 * 0.02 * 2 / 3)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: lw.grasp.Contact("glue"), "kind of contact is 'glue'; it must be one of 'rigid'"),
        (lambda: lw.grasp.Contact("point", friction=-1.0), "friction of a contact is -1.0"),
        (lambda: lw.grasp.Contact("soft_finger"), "a soft finger has torsion None"),
        (lambda: lw.grasp.Contact("edge", axis=(0, 0, 1)), "not perpendicular to its normal"),
        (lambda: lw.grasp.Contact("point", normal=(0, 0, 0)), "zero vector"),
        (lambda: lw.grasp.Contact("point", law="box"), "friction law is 'box'"),
        (lambda: lw.Grasp({}), "at least one"),
        (lambda: lw.Grasp({"a": 3}), "contact 'a' is a int; it must be a Contact"),
        (
            lambda: block("point").margins(np.zeros((3, 6))),
            r"must have shape \(2, 6\)",
        ),
        (lambda: block("point").margins(np.full((2, 6), np.nan)), "must be finite"),
        (lambda: edges(contact("point"), 2), "at least 3"),
    ],
)
def test_impossible_contacts(make, text):
    with pytest.raises(LinkwiseError, match=text):
        make()


def two_fingers(hinge: lw.hinges.Hinge) -> lw.Mechanism:
    b = lw.Builder("two fingers")
    b.body("object", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    for name, x in (("left", -0.1), ("right", 0.1)):
        b.body(name, hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(0.1, 0.01))
        b.node(f"{name} touched", "object", frame((-x, 0, 0), (x, 0, 0)))
        b.loop(name, name, f"{name} touched", hinge)
    return b.build()


@every_kind
def test_a_grasp_of_loops(name):
    one = contact(name)
    grasp = lw.Grasp.of(two_fingers(one.hinge), one)
    assert grasp.names == ("left", "right")
    assert grasp.body == "object"
    np.testing.assert_allclose(grasp.points, [[-0.1, 0, 0], [0.1, 0, 0]])


def test_loops_that_are_no_such_grasp():
    mech = two_fingers(lw.hinges.Spherical())
    soft = contact("soft_finger")
    with pytest.raises(
        ModelError, match="'left' is closed by a hinge 'spherical' with 3 velocities"
    ):
        lw.Grasp.of(mech, soft)
    with pytest.raises(LinkwiseError, match=r"no loop called 'left_'.*did you mean 'left'"):
        lw.Grasp.of(mech, {"left_": contact("point")})
    with pytest.raises(ModelError, match="has its own pose"):
        lw.Grasp.of(mech, contact("point", pose=lw.Pose.translation((0, 0, 1))))
    b = lw.Builder("turned")
    b.body("object", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.body("finger", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.loop("one", "finger", "object", lw.hinges.Spherical())
    b.loop("other", "object", "finger", lw.hinges.Spherical())
    with pytest.raises(ModelError, match=r"'one' on 'object', 'other' on 'finger'.*reverse a loop"):
        lw.Grasp.of(b.build(), contact("point"))
    with pytest.raises(ModelError, match="needs a mechanism"):
        block("point").needed_wrench(np.zeros(7))
    with pytest.raises(ShapeError, match="real numbers"):
        block("point").object_force("ab")


def test_margins_by_name():
    margins = block("point", friction=0.5).margins(np.tile([0, 0, 0, 1.0, 0, 4.0], (2, 1)))
    assert margins.of("left", "slip") == pytest.approx(1.0)
    with pytest.raises(
        UnknownNameError, match="no contact called 'zz' in the grasp; known: 'left'"
    ):
        margins.of("zz", "slip")
    with pytest.raises(UnknownNameError, match=r"no limit called 'slips'.*did you mean 'slip'"):
        margins.of("left", "slips")
    with pytest.raises(UnknownNameError, match="no contact called"):
        margins.of(["left"], "slip")


def test_multipliers_that_do_not_fit():
    mech = two_fingers(contact("point").hinge)
    grasp = lw.Grasp.of(mech, contact("point"))
    q, v, m = mech.neutral(), np.zeros(mech.nv), len(lw.loops.constraint_names(mech))
    lam = np.arange(1.0, m + 1.0)
    one = grasp.contact_forces(q, v, v, multipliers=lam)
    batch = grasp.contact_forces(np.tile(q, (2, 1)), v, v, multipliers=lam)
    np.testing.assert_array_equal(batch, [one, one])
    with pytest.raises(ShapeError, match=rf"multipliers have shape \(3,\).*has {m} rows"):
        grasp.contact_forces(q, v, v, multipliers=np.zeros(3))
    with pytest.raises(ShapeError, match="multipliers must be made of real numbers"):
        grasp.contact_forces(q, v, v, multipliers="none")
    with pytest.raises(ShapeError, match="all one batch"):
        grasp.contact_forces(np.tile(q, (2, 1)), v, v, multipliers=np.zeros((3, m)))
    with pytest.raises(ShapeError, match="all one batch"):
        grasp.contact_state(np.tile(q, (2, 1)), np.zeros((3, mech.nv)))
    with pytest.raises(ModelError, match="mech is a str"):
        lw.Grasp.of("a string", contact("point"))


@pytest.mark.parametrize("kind", KINDS)
def test_axes_are_right_handed(kind):
    """First tangent × second is the normal, into the object."""
    first, second, normal = contact(kind).axes
    np.testing.assert_allclose(cross(first, second), normal, atol=1e-15)
    assert np.linalg.norm(normal) == pytest.approx(1.0)
