"""Derivatives by the entries of q, quaternions among them: `lw.differentiate(..., raw_q=True)`.

The reference is differences of order eight of inverse dynamics, with quaternions scaled to unit
length, good to 1e-11; and the scalar graph (`lw.jvp`), to rounding.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, v, vdot, vector
from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Zero
from linkwise.codegen.tangents import quaternions
from linkwise.errors import ExpressionError, LoweringError
from linkwise.model.body import Lump
from tests.algebra.test_differential import STENCIL
from tests.cases import close
from tests.flexible.cases import inertia, node, place

INVERSE = mass @ vdot + bias


@pytest.mark.parametrize("name", ["quadruped", "every hinge", "branches"])
def test_entries_of_q(name):
    """By nq entries: differences of order eight, with quaternions scaled to unit length."""
    mech = {
        "quadruped": lw.models.quadruped,
        "every hinge": lambda: lw.models.random_tree(5, 3, floating=True),
        "branches": lambda: lw.models.random_tree(4, 2, mass_ratio=3.0),
    }[name]()
    rng = np.random.default_rng(4)
    q, (speed, x) = mech.random(rng), rng.standard_normal((2, mech.nv))
    given = {"q": q, "v": speed, "vdot": x}
    A = lw.differentiate(INVERSE, "q", raw_q=True)
    kernel = lw.compile(A, mech)
    ours = kernel(*(given[n] for n in kernel.arguments))
    assert ours.shape == (mech.nv, mech.nq)
    h, columns = 1e-3, []
    steps = [(c, s * h) for c, s in zip(STENCIL, range(-4, 5), strict=True) if c]
    for e in np.eye(mech.nq):
        forces = [
            c * lw.inverse_dynamics(mech, mech.normalise(q + s * e), speed, x) for c, s in steps
        ]
        columns.append(sum(forces) / h)
    close(ours, np.stack(columns, axis=-1), 1e-9)
    plain = lw.compile(A, mech, target="numpy")
    close(plain(*(given[n] for n in plain.arguments)), ours, 1e-11)
    close(Dense(mech, q, speed, values={"vdot": x}).matrix(A), ours, 1e-10)
    graph = lw.compile(lw.jvp(INVERSE, "q", raw_q=True), mech)
    each = [graph(*({**given, "dq": e}[n] for n in graph.arguments)) for e in np.eye(mech.nq)]
    close(ours, np.stack(each, axis=-1), 1e-11)
    d, weight = rng.standard_normal(mech.nq), rng.standard_normal(mech.nv)
    along = lw.compile(A @ vector("d", A.domain), mech)
    close(along(*({**given, "d": d}[n] for n in along.arguments)), ours @ d, 1e-11)
    back = lw.compile(A.T @ vector("load", A.range), mech)
    close(back(*({**given, "load": weight}[n] for n in back.arguments)), ours.T @ weight, 1e-11)
    last = [body.hinge_name for body in mech.bodies if body.hinge.nv][-1]
    part = lw.compile(A, mech, columns=[last])
    close(part(*(given[n] for n in part.arguments)), ours[:, mech.q_slice(last)], 1e-12)


def bending():
    """A free base with a flexible body of one mode."""
    rng = np.random.default_rng(0)
    b = lw.Builder("bending").body("root", "world", lw.hinges.Free(), inertia=inertia(rng))
    lumps = [Lump(node(rng, 1), inertia(rng))]
    b.body("tip", "root", node(rng, 1), inboard=place(rng), inertia=inertia(rng), lumps=lumps)
    return b.build()


@pytest.mark.parametrize("name", ["free", "every hinge", "flexible"])
def test_second_derivatives(name):
    """Along raw entries, twice and three times: differences of the derivative before."""
    mech = {
        "free": lambda: lw.models.random_tree(2, 3, floating=True),
        "every hinge": lambda: lw.models.random_tree(4, 2, mass_ratio=3.0),
        "flexible": bending,
    }[name]()
    rng = np.random.default_rng(4)
    q, (speed, x, load) = mech.random(rng), rng.standard_normal((3, mech.nv))
    d, e = rng.standard_normal((2, mech.nq))
    given = {"q": q, "v": speed, "vdot": x, "d": d, "e": e, "load": load}

    def value(expr, q, target="cpu"):
        kernel = lw.compile(expr, mech, target=target)
        return kernel(*(q if n == "q" else given[n] for n in kernel.arguments))

    A = lw.differentiate(INVERSE, "q", raw_q=True)
    once = {"along": A @ vector("d", A.domain), "gradient": A.T @ vector("load", A.range)}
    once["energy"] = lw.differentiate(0.5 * v.T @ mass @ v, "q", raw_q=True).T
    B = lw.differentiate(once["along"], "q", raw_q=True)
    once["twice"] = B @ vector("e", B.domain)
    tangent = d.copy()
    for part in quaternions(mech):
        tangent[part] -= (q[part] @ tangent[part]) * q[part]
    for what, expr in once.items():
        if (what == "twice" and name != "free") or (what, name) == ("gradient", "flexible"):
            continue  # some take long enough
        second = lw.differentiate(expr, "q", raw_q=True)
        ours = value(second, q)
        assert ours.shape[-1] == mech.nq and np.abs(ours).max() > 1e-3
        h = 1e-3
        steps = [(c, s * h) for c, s in zip(STENCIL, range(-4, 5), strict=True) if c]
        slope = sum(c * value(expr, mech.normalise(q + s * tangent)) for c, s in steps) / h
        close(ours @ d, slope, 1e-8)
        close(value(second, q, "numpy"), ours, 1e-11)
        if name != "flexible":
            values = {n: given[n] for n in ("vdot", "d", "e", "load")}
            close(Dense(mech, q, speed, values=values).matrix(second), ours, 1e-9)


def test_entries_of_q_that_have_no_derivative():
    A = lw.differentiate(INVERSE, "q", raw_q=True)
    assert not isinstance(lw.differentiate(A @ vector("d", A.domain), "v"), Zero)
    with pytest.raises(ExpressionError, match="raw_q was given for the derivative by v"):
        lw.differentiate(INVERSE, "v", raw_q=True)
    with pytest.raises(LoweringError, match="rolling ball hinge"):
        lw.compile(A, lw.models.random_tree(6, 11))
    with pytest.raises(LoweringError, match="𝒬 has no meaning for aggregate bodies"):
        lw.compile(A, lw.loops.embed(lw.models.four_bar()))
    chain = lw.models.chain(70)  # no loops over bodies
    q = chain.neutral()
    along = lw.compile(A @ vector("d", A.domain), chain)
    plain = lw.compile(lw.differentiate(INVERSE, "q") @ vector("d", v.range), chain)
    given = {"q": q, "v": q + 0.1, "vdot": q, "d": q + 1.0}
    close(*(k(*(given[n] for n in k.arguments)) for k in (along, plain)), 1e-9)
