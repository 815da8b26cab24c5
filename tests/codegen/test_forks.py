"""Choices of which one side is computed: what they are, and the same numbers."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cpu import emit, packed_values
from linkwise.codegen.scalar.forks import Fork, compared, outside, steps, where_of
from linkwise.codegen.stepping import llvm_packed
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.stepping import Sketch
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.motion_request import MotionRequest
from linkwise.spatial.choice import clip, gate, maximum, minimum, root, where
from tests.codegen.test_packs import octopus
from tests.simulation.moving import Given


def planned(write):
    """The graph of a function of four numbers, its results, and the steps to them."""
    s = Sketch("test")
    s.write("out", write(*s.read("x", 4)))
    code = s.traced()
    order = code.graph.used(code.roots)
    return code.graph, code.outputs, steps(code.graph, order, set(code.outputs))


def forks_in(plan):
    return [step for step in plan if isinstance(step, Fork)]


def run(graph, outputs, plan, x):
    """Run the steps, one side of each fork; and what was computed."""
    value, made = {}, []

    def do(these):
        for step in these:
            if isinstance(step, Fork):
                assert all(n in value or n in plain for n in outside(graph, step))
                taken = 0 if of(step.condition) > 0.0 else 1
                do(step.sides[taken])
                for n in step.choices:
                    chosen = where_of(graph, n)[1 + taken]
                    value[n] = of(chosen) if chosen >= 0 else 0.0
            else:
                value[step] = of(step)
                made.append(graph.op[step])

    plain = {n for n, op in enumerate(graph.op) if op in ("const", "input")}

    def of(n):
        if n in value:
            return value[n]
        op, a, b = graph.op[n], graph.a[n], graph.b[n]
        if op == "const":
            return graph.value[n]
        if op == "input":
            return x[a]
        choice = where_of(graph, n)
        if choice is not None:
            c, first, second = choice
            return of(first) if of(c) > 0.0 else of(second)
        if op == "gate":
            return of(b) if of(a) > 0.0 else 0.0
        p = value[a] if a in value else of(a) if a in plain else pytest.fail("not computed yet")
        if op in ("neg", "inv", "sqrt"):
            return {"neg": lambda: -p, "inv": lambda: 1.0 / p, "sqrt": lambda: np.sqrt(p)}[op]()
        r = value[b] if b in value else of(b)
        return {"add": p + r, "sub": p - r, "mul": p * r}[op]

    do(plan)
    return [of(n) for n in outputs], made


def slide(a, b, c, d):
    """Three choices with one condition, and another one inside a side."""
    inner = where(c - 2.0, 1.0 / (c * c + 1.0), d)
    size = root(a * a + b * b + 1.0)
    parts = [x / size + inner for x in (a, b)]
    return [where(d - a, x, y) for x, y in zip((a + b, c), parts, strict=True)] + [a * b]


@pytest.mark.parametrize("x", [(1.0, 2.0, 3.0, 4.0), (4.0, 2.0, 3.0, 1.0), (4.0, 2.0, 1.0, 1.0)])
def test_one_side_is_computed(x):
    graph, outputs, plan = planned(slide)
    (fork,) = forks_in(plan)
    assert len(fork.choices) == 2 and len(fork.sides[0]) == 1  # the sum
    assert len(forks_in(fork.sides[1])) == 1
    results, made = run(graph, outputs, plan, x)
    np.testing.assert_allclose(results, slide(*x), rtol=1e-15)
    assert ("sqrt" in made) == (x[0] >= x[3])
    assert made.count("inv") == (0 if x[0] < x[3] else 2 if x[2] > 2.0 else 1)


@pytest.mark.parametrize("write", [
    lambda a, b, c, d: [where(a, root(b), c), root(b) + d],
    lambda a, b, c, d: [where(root(b) - a, root(b), c)],
    lambda a, b, c, d: [where(a, b * c, c * d)],  # a branch takes longer
])  # fmt: skip
def test_what_others_need_is_computed_before(write):
    _, _, plan = planned(write)
    assert not forks_in(plan)


def test_choices_that_depend_on_each_other_stay():
    def chained(a, b, c, d):
        first = where(a, root(b * b + 1.0), c)
        return [first, where(a, d, root(first * first + 1.0))]

    graph, outputs, plan = planned(chained)
    for x in ((1.0, 2.0, 3.0, 4.0), (-1.0, 2.0, 3.0, 4.0)):
        np.testing.assert_allclose(run(graph, outputs, plan, x)[0], chained(*x), rtol=1e-15)


def test_sweeps_with_forks_give_the_motion_without(monkeypatch):
    mech, ground = octopus(), Ground(friction=0.3, torsional=0.02, rolling=0.01)
    points = [ContactPoint(f"t{i}", f"tip{i}", (0.1, 0.0, 0.0), 0.02, ground) for i in range(4)]
    stepping = MotionRequest(mech, "implicit", contacts=tuple(points)).stepping("cpu")
    seen = list[int]()

    def moved():
        kernel = MotionKernel(Given(mech, stepping, alone=True))
        q, held = mech.neutral(), {x: np.zeros(size) for x, size in kernel.held}
        q[6] = 0.03
        v = np.zeros(mech.nv)
        v[3:6] = 1.0, 0.5, -0.5  # it slides
        done = kernel.run(q[None], v[None], held, 2e-3, 40, 1)
        assert not done.status.any()
        return done.records[0]

    def counted(*given):
        plan = steps(*given)
        seen.append(len(forks_in(plan)))
        return plan

    monkeypatch.setattr(llvm_packed, "steps", counted)
    with_forks = moved()
    assert sum(seen) >= 2 * len(points)  # sticking or sliding, and rolling
    monkeypatch.setattr(llvm_packed, "steps", lambda graph, order, roots: tuple(order))
    np.testing.assert_allclose(with_forks, moved(), rtol=1e-7, atol=1e-8)
    assert with_forks[-1, -1] > 0.1  # slip


LARGER = {
    "x or y": (lambda x, y: maximum(x, y), lambda x, y: max(x, y)),
    "smaller": (lambda x, y: minimum(x, y), lambda x, y: min(x, y)),
    "x or -y": (lambda x, y: maximum(x, -y), lambda x, y: max(x, -y)),
    "-x or y": (lambda x, y: maximum(-x, y), lambda x, y: max(-x, y)),
    "smaller of x and -y": (lambda x, y: minimum(x, -y), lambda x, y: min(x, -y)),
    "smaller of -x and y": (lambda x, y: minimum(-x, y), lambda x, y: min(-x, y)),
    "between": (lambda x, y: clip(x, -y, y), lambda x, y: min(max(x, -y), y)),
}


@pytest.mark.parametrize("name", LARGER)
def test_the_larger_and_the_smaller_of_two_are_compared(name):
    write, plain = LARGER[name]
    graph, (out,), plan = planned(lambda a, b, c, d: [write(a, b)])
    choice = where_of(graph, out)
    assert choice is not None and set(compared(graph, choice)) == set(choice[1:])
    for x in ((2.0, 3.0), (3.0, 2.0), (-2.0, 3.0), (3.0, -2.0), (2.0, 2.0), (-4.0, -4.0)):
        values = [*x, 0.0, 0.0]
        first, second = (run(graph, (n,), plan, values)[0][0] for n in compared(graph, choice))
        taken = choice[1] if first > second else choice[2]
        assert run(graph, (taken,), plan, values)[0][0] == plain(*x)


@pytest.mark.parametrize("write", [
    lambda x, y: where(x - y, x, -y),
    lambda x, y: where(x + y, x, y),
    lambda x, y: where(x + y, x, -x),
    lambda x, y: where(x - y, 0.0, y),
    lambda x, y: where(x, y, -y),
])  # fmt: skip
def test_other_choices_are_not(write):
    graph, (out,), _ = planned(lambda a, b, c, d: [write(a, b)])
    choice = where_of(graph, out)
    assert choice is not None and compared(graph, choice) is None


def test_a_gate_of_another_number_is_no_choice():
    graph, (out,), _ = planned(lambda a, b, c, d: [gate(a, b) - (c + gate(a, -d))])
    assert where_of(graph, out) is None


def test_comparing_changes_no_bit_of_a_motion(monkeypatch):
    b = lw.Builder("arms")
    part = lw.SpatialInertia.solid_box(0.3, [0.2, 0.05, 0.04])
    b.body("hub", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(2.0, 0.1))
    drive = lw.Drive(friction=0.05, lower=-0.1, upper=0.15)
    for i, side in enumerate((-1.0, 1.0)):
        pin, place = lw.hinges.Pin([0.0, 1.0, 0.0]), [0.0, 0.1 * side, 0.0]
        b.body(f"arm{i}", "hub", pin, inertia=part, inboard=place, drive=drive)
        pin, place = lw.hinges.Pin([1.0, 0.0, 0.0]), [0.2, 0.0, 0.0]
        b.body(f"tip{i}", f"arm{i}", pin, inertia=part, inboard=place, drive=drive)
    mech = b.build()
    points = tuple(ContactPoint(f"tip{i}", f"tip{i}", (0.1, 0.0, 0.0), 0.02) for i in range(2))
    stepping = MotionRequest(mech, "implicit", contacts=points).stepping("cpu")

    def moved():
        kernel = MotionKernel(Given(mech, stepping, alone=True))
        q, held = mech.neutral(), {x: np.zeros(size) for x, size in kernel.held}
        q[6], v = 0.05, np.linspace(-2.0, 2.0, mech.nv)
        return kernel.run(q[None], v[None], held, 2e-3, 60, 1).records[0]

    compares = moved()
    impulse = compares[:, mech.nq + mech.nv :][:, :4]
    limit = 2e-3 * 0.05
    assert (np.abs(impulse) > 1.001 * limit).any() and (np.abs(impulse) < 0.999 * limit).any()
    for module in (emit, packed_values):
        monkeypatch.setattr(module, "compared", lambda graph, choice: None)
    np.testing.assert_array_equal(compares, moved())
