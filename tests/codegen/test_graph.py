"""The scalar graph: folding, sharing, counting."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.sweeps.sparse import times


@pytest.fixture
def xy():
    graph = Graph()
    return Scalar(graph, graph.input("x")), Scalar(graph, graph.input("y"))


def evaluate(scalar: Scalar, values: dict[str, float]) -> float:
    """The value of a node, by plain recursion."""
    graph = scalar.graph

    def go(node: int) -> float:
        a, b = graph.a[node], graph.b[node]
        return {
            "const": lambda: graph.value[node],
            "input": lambda: values[graph.inputs[a]],
            "add": lambda: go(a) + go(b),
            "sub": lambda: go(a) - go(b),
            "mul": lambda: go(a) * go(b),
            "neg": lambda: -go(a),
            "inv": lambda: 1.0 / go(a),
            "sqrt": lambda: go(a) ** 0.5,
            "sin": lambda: float(np.sin(go(a))),
            "cos": lambda: float(np.cos(go(a))),
        }[graph.op[node]]()

    return go(scalar.node)


def test_constants_fold(xy):
    x, y = xy
    for folded in (x + 0.0, 1.0 * x, x - 0.0, (x * y.reciprocal()) * y, x + y - y + 0 * y):
        assert evaluate(folded, {"x": 3.0, "y": 5.0}) == 3.0
    opposite = -x
    assert (x + 0.0).node == (1.0 * x).node == (-opposite).node == x.node
    assert ((x * y.reciprocal()) * y).node == x.node
    assert x.graph.op[(x - x).node] == "const"
    assert x.graph.value[((x - y) + -(x - y)).node] == 0.0
    assert x.graph.op[(x * 0.0).node] == "const"
    assert x.graph.value[(y * y.reciprocal()).node] == 1.0
    two, three = (x.graph.constant(value) for value in (2.0, 3.0))
    assert x.graph.add(two, three) == x.graph.constant(5.0)
    assert x.graph.mul(two, three) == x.graph.constant(6.0)


def test_equal_is_the_same_node(xy):
    x, y = xy
    assert (x + y).node == (y + x).node
    assert (x * y).node == (y * x).node
    assert ((-x) * y).node == (-(x * y)).node
    assert (x - y).node == (-(y - x)).node
    assert (x.sin() * x.sin()).graph.count([(x.sin() * x.sin()).node])["sin"] == 1


def test_random_expressions_keep_their_value():
    rng = np.random.default_rng(0)
    for _ in range(300):
        graph = Graph()
        names = ["a", "b", "c"]
        values = {n: float(rng.uniform(0.5, 2.0)) for n in names}
        pool = [(Scalar(graph, graph.input(n)), values[n]) for n in names]
        pool += [(Scalar(graph, graph.constant(c)), c) for c in (0.0, 1.0, -1.0, 0.7)]
        for _ in range(12):
            (s, x), (t, y) = (pool[i] for i in rng.integers(len(pool), size=2))
            choices = [
                (s + t, x + y),
                (s - t, x - y),
                (s * t, x * y),
                (-s, -x),
                (s.cos(), np.cos(x)),
            ]
            if abs(x) > 0.1:
                choices.append((s.reciprocal(), 1.0 / x))
            pool.append(choices[rng.integers(len(choices))])
        for scalar, value in pool:
            assert evaluate(scalar, values) == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_orders_have_each_node_once_after_its_arguments():
    import linkwise as lw
    from linkwise.algebra import mass
    from linkwise.codegen.scalar.trace import needed_late
    from linkwise.codegen.stages import traced
    from linkwise.pipeline import requested

    straight = traced(requested(mass, lw.models.random_tree(6, 1), rolled=False))
    graph, needed = straight.graph, straight.graph.used(straight.roots)
    few, most = straight.in_registers()
    assert 0 < most < len(needed)
    late = needed_late(graph, straight.roots)
    for order in (straight.ordered(), few, straight.by_columns(), late):
        assert sorted(order) == needed
        place = {node: i for i, node in enumerate(order)}
        assert all(place[x] < place[node] for node in order for x in graph.arguments(node))


def test_products_of_numbers_and_nodes_leave_zeros_out():
    graph = Graph()
    x = Scalar(graph, graph.input("x"))
    column = np.array([[x], [0.0]], dtype=object)
    product = times(np.array([[0.0, 1.0], [2.0, 0.0]]), column)
    assert product[0, 0] == 0.0 and not isinstance(product[0, 0], Scalar)
    assert graph.op == ["input", "const", "mul"]
    assert times(column.T, np.array([[0.0], [3.0]]))[0, 0] == 0.0


def test_values_of_a_formula_share_their_axes_where_that_is_smaller():
    import linkwise as lw
    from linkwise.dynamics.derivative_formula import INVERSE_DERIVATIVES
    from linkwise.pipeline import requested

    request = requested(INVERSE_DERIVATIVES, lw.models.seven_dof_arm())
    both = [INVERSE_DERIVATIVES.traced(request, axes).operations() for axes in ("own", "shared")]
    assert INVERSE_DERIVATIVES.traced(request).operations() == min(both)
