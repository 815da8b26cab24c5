"""Polynomials that tie one coordinate to others: values, slopes and curvatures."""

import numpy as np

import linkwise as lw


def test_slopes_and_curvatures_are_derivatives():
    """Of the third degree and of two coordinates, against differences."""
    terms = {"a": (0.7, -0.4, 0.9, 0.3), "b": (0.2, 0.5)}
    b = lw.Builder("three")
    for name in ("a", "b", "c"):
        b.body(name, hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    (coupling,) = b.couple("tie", "c", terms, offset=0.1).build().couplings
    names = [name for name, _ in coupling.terms]
    q, h = dict(zip(names, (0.8, -0.6), strict=True)), 1e-4

    def value(which: str, by: float) -> float:
        at = {name: np.asarray(x + by * (name == which)) for name, x in q.items()}
        return float(coupling.value(at))

    exact = 0.1 + sum(
        c * x**i
        for x, cs in zip(q.values(), terms.values(), strict=True)
        for i, c in enumerate(cs, start=1)
    )
    assert value("a", 0.0) == exact
    at = {name: np.asarray(x) for name, x in q.items()}
    for name in names:
        after, now, before = (value(name, by) for by in (h, 0.0, -h))
        slope, bend = (after - before) / (2.0 * h), (after - 2.0 * now + before) / h**2
        assert abs(slope) > 0.1 and abs(bend) > 0.1
        np.testing.assert_allclose(coupling.slopes(at)[name], slope, rtol=1e-6)
        np.testing.assert_allclose(coupling.curvatures(at)[name], bend, rtol=1e-6)
