"""What constraint embedding refuses, and states that are singular for the choice."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import A_V, bias, mass, tau, v
from linkwise.errors import (
    ClosureError,
    ExpressionError,
    LoweringError,
    ModelError,
    ShapeError,
    TroubleWarning,
    UnknownNameError,
)
from tests.loops.embedding_cases import closed, four_bar_chain, geared_chain, link

PIN = lw.hinges.Pin((0.0, 1.0, 0.0))


def slider_crank() -> lw.Mechanism:
    """Crank and rod turn, a slider on the ground follows; at q = 0 the crank is upright."""
    b = lw.Builder("slider_crank")
    link(b, "crank", "world", PIN, (0.0, 0.0, 0.0))
    link(b, "rod", "crank", PIN, (0.0, 0.0, 0.3))
    link(b, "slider", "world", lw.hinges.Prismatic((1.0, 0.0, 0.0)), (0.4, 0.0, 0.0))
    b.node("rod_end", "rod", (0.4, 0.0, -0.3))
    b.loop("pin", "rod_end", "slider", PIN)
    return b.build()


def test_a_singular_state_is_told_by_kernel_and_interpreter() -> None:
    """The slider cannot tell the crank at dead centre, where crank and rod are in line."""
    m = slider_crank()
    e = lw.loops.embed(m, independent="slider")
    assert e.velocity_names == ("slider",)
    q = m.neutral()
    q[m.q_slice("crank")] = 0.5 * np.pi  # lies along x; the rod, 0.5 m long, in line with it
    q[m.q_slice("rod")] = -np.arctan2(0.3, 0.4) - 0.5 * np.pi
    q[m.q_slice("slider")] = 0.4
    assert np.abs(lw.loops.constraint_error(m, q)).max() < 1e-12
    u = np.array([0.1])
    with pytest.raises(ClosureError, match=r"slider.*'pin'.*independent="):
        lw.forward_dynamics(e, q, u, u)
    with pytest.raises(ClosureError, match=r"do not determine"):
        lw.compile(mass.inv @ (tau - bias), e, target="numpy")(q, u, u)
    with pytest.warns(TroubleWarning, match=r"do not determine"):
        vdot = lw.forward_dynamics(e, np.stack([m.neutral(), q]), u, u)
    assert np.isfinite(vdot[0]).all() and np.isnan(vdot[1]).all()
    other = lw.loops.embed(m, independent="crank")
    assert np.isfinite(lw.forward_dynamics(other, q, u, u)).all()


def test_near_a_singular_state_results_are_still_right() -> None:
    """A thousandth of a radian from dead centre: mass_r is 1e6 of the regular one, and exact."""
    m = slider_crank()
    q = m.neutral()
    q[m.q_slice("crank")] = 0.5 * np.pi - 1e-3
    q[m.q_slice("rod")], q[m.q_slice("slider")] = -np.arctan2(0.3, 0.4) - 0.5 * np.pi, 0.4
    q = closed(m, q)
    crank, slider = lw.loops.embed(m, independent="crank"), lw.loops.embed(m, independent="slider")
    speed = lw.loops.full_velocity(crank, q, [1.0])[m.v_slice("slider")][0]
    assert abs(speed) < 1e-2
    expected = float(lw.mass_matrix(crank, q)[0, 0]) / speed**2
    assert float(lw.mass_matrix(slider, q)[0, 0]) == pytest.approx(expected, rel=1e-11)


def test_embed_refuses() -> None:
    m = slider_crank()
    q = m.neutral()
    q[0] = 0.4
    with pytest.raises(ClosureError, match=r"pin\[\d\] is off by .* Give at="):
        lw.loops.embed(m, at=q)
    with pytest.raises(ClosureError, match=r"1 independent velocities .* Name others, or fewer"):
        lw.loops.embed(m, independent=["crank", "slider"])
    with pytest.raises(UnknownNameError, match=r"crank"):
        lw.loops.embed(m, independent=["krank"])
    with pytest.raises(ModelError, match=r"at has shape \(2, 3\)"):
        lw.loops.embed(m, at=np.stack([q, q]))
    with pytest.raises(ModelError, match=r"rotor0.*coupling makes it follow"):
        lw.loops.embed(geared_chain(1), independent="rotor0")
    with pytest.raises(ModelError, match=r"lw.load"):
        lw.loops.embed("robot.urdf")  # type: ignore[arg-type]


def test_embed_refuses_loops_it_has_no_formula_for() -> None:
    b = lw.Builder("odd")
    link(b, "one", "world", lw.hinges.Free(), (0.0, 0.0, 0.0))
    b.node("end", "one")
    odd = lw.hinges.Screws(((0, 0, 1, 0, 0, 0), (0, 1, 0, 0.2, 0, 0)))
    b.loop("screwed", "world", "end", odd)
    with pytest.raises(ModelError, match=r"'screwed' is a screws hinge"):
        lw.loops.embed(b.build())
    b = lw.Builder("tied")
    link(b, "one", "world", lw.hinges.Free(), (0.0, 0.0, 0.0))
    b.node("here", "one")
    b.node("there", "one", (0.1, 0.0, 0.0))
    b.loop("itself", "here", "there", lw.hinges.Prismatic((1.0, 0.0, 0.0)))
    with pytest.raises(ModelError, match=r"'itself' .* joins two nodes of one body"):
        lw.loops.embed(b.build())


def test_what_has_no_meaning_is_refused() -> None:
    e = lw.loops.embed(four_bar_chain(1))
    q, u = e.mech.neutral(), np.zeros(1)
    with pytest.raises(ExpressionError, match=r"straight code only"):
        lw.compile(mass, e, rolled=True)
    with pytest.raises(ExpressionError, match=r"complete results only"):
        lw.compile(mass, e, rows=[0])
    with pytest.raises(ExpressionError, match=r"only 'gravity'"):
        lw.compile(mass, e, parameters=("inertia",))
    with pytest.raises(ExpressionError, match=r"the targets 'cpu' and 'numpy'"):
        lw.compile(mass, e, target="c")
    with pytest.raises(LoweringError, match=r"aggregate bodies"):
        lw.compile(A_V @ v, e)
    with pytest.raises(ModelError, match=r"single bodies|embedded\.mech|attribute mech"):
        lw.forward_kinematics(e, q)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"attribute mech"):
        e.hinge_index  # noqa: B018
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        lw.forward_dynamics(e, q, np.zeros(3), u)
    with pytest.raises(ShapeError, match=r"crank0"):
        e.check_v(np.zeros(3))
    with pytest.raises(ModelError, match=r"lw.loops.embed makes"):
        lw.loops.full_velocity(e.mech, q, u)  # type: ignore[arg-type]
