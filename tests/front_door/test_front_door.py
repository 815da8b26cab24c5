"""Every public name, called with nonsense: an error of Linkwise's own, or a result that is right.

Walked are functions, constructors, and the methods of an object of every public class and of what
`lw.compile`, `derive`, `plan` and `prove` return. Not allowed: errors of the code itself
(AttributeError, TypeError, IndexError, ...), results and objects with NaN and no warning, masks
that are ignored, calls that hang. The walk of the suite takes a part of the cases of each, always
the same; `pytest -m slow` takes all of them.
"""

from __future__ import annotations

import inspect
import types
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import linkwise as lw
from linkwise.arguments import (
    count,
    floats,
    generator,
    itemsize,
    name,
    names,
    number,
    option,
    origin_of,
    path,
)
from linkwise.front_door import checked, fits
from tests.front_door import objects, samples, walk

PUBLIC = walk.public()
PART = 40
"""One in so many calls is made in the suite, and each right one."""

GROUPS = 12


@pytest.fixture(scope="module", autouse=True)
def no_window():
    """Pictures are drawn without a screen, and the page of the viewer is closed at the end."""
    if walk.installed("matplotlib"):
        import matplotlib

        matplotlib.use("Agg")
    yield
    if objects.OBJECTS["viewer.Viewer"].cache_info().currsize:
        objects.OBJECTS["viewer.Viewer"]().close()
        objects.OBJECTS["viewer.Viewer"].cache_clear()  # tests may come back to this module


def test_every_public_name_is_walked_or_left_out():
    known = {*samples.SAMPLES, *samples.RECORDS, *samples.LEFT_OUT}
    assert not set(PUBLIC) - known, "add a right call to tests/front_door/samples.py"
    assert not known - set(PUBLIC), "these names are no longer public"
    assert all(samples.LEFT_OUT.values()), "say why it is left out"


def test_every_public_class_has_an_object():
    classes = {name for name, value in PUBLIC.items() if inspect.isclass(value)}
    known = {*objects.OBJECTS, *objects.NO_OBJECT}
    assert not classes - known, "make one in tests/front_door/objects.py"
    assert not set(objects.NO_OBJECT) & set(objects.OBJECTS)
    for one in objects.NO_OBJECT:  # nothing of it could be called
        assert one == "Hinge" or not list(objects.methods_of(PUBLIC[one]))


def test_every_method_is_walked_or_left_out():
    every = {}
    for owner in filter(walk.possible, objects.OBJECTS):
        every |= dict(objects.methods(owner))
    missing = [x for x, bound in every.items() if objects.sample(x, bound) is None]
    assert not [x for x in missing if x not in objects.LEFT_OUT], "add a line to objects.METHODS"
    assert not set(objects.LEFT_OUT) - set(every), "these methods are no longer there"
    assert len(every) > 450


def test_what_functions_return_is_walked():
    """An object that a user gets from a public function belongs to the walk as well."""
    made = [objects.OBJECTS[owner]() for owner in filter(walk.possible, objects.OBJECTS)]
    kinds = {lw.algebra.Expr, *map(type, made)}
    strange = set()
    for one in set(walk.walked()) & set(samples.SAMPLES):
        function, (args, options) = walk.called(one)
        kind = type(walk.finished(function(*args, **options)))
        if kind.__module__.startswith("linkwise") and not issubclass(kind, tuple(kinds)):
            strange.add(f"{one} gives a {kind.__name__}")
    assert not {x for x in strange if x.split()[-1] not in objects.PLAIN}, sorted(strange)


def failures(name: str, part: int) -> list[str]:
    result, chosen = [], zlib.crc32(name.encode()) % part
    for i, outcome in enumerate(walk.walk(name, part=part, chosen=chosen)):
        right = "error" if objects.is_single(name) else "result"
        if not outcome.fine or (i == 0 and outcome.kind != right):
            result.append(str(outcome))
    return result


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_refused_by_name(group):
    result = [x for name in walk.walked()[group::GROUPS] for x in failures(name, PART)]
    assert not result, "\n".join(result)


@pytest.mark.few(0, 4)
@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.filterwarnings("ignore")
def test_all_nonsense_is_refused(group):
    result = [x for name in walk.walked()[group::GROUPS] for x in failures(name, 1)]
    assert not result, "\n".join(result)


@pytest.mark.filterwarnings("ignore")
def test_no_server_is_left_open_by_bad_arguments(monkeypatch):
    pytest.importorskip("viser")
    from linkwise.viewer import guard

    started, stopped = [], []
    start, stop = guard.start, guard.stop
    monkeypatch.setattr(guard, "start", lambda *x: started.append(start(*x)) or started[-1])
    monkeypatch.setattr(guard, "stop", lambda x: stopped.append(x) or stop(x))
    outcomes = list(walk.walk("view"))
    assert {x.kind for x in outcomes} == {"result", "error"}
    assert started and len(started) == len(stopped)
    assert len(started) == sum(x.kind == "result" for x in outcomes)


def test_the_walk_can_fail():
    def broken(mech, q):
        return mech.nothing + q

    def silent(q):
        return np.asarray(q, dtype=np.float64) * np.nan

    @dataclass
    class Keeps:
        q: object

    masked = np.ma.masked_array([1.0], mask=True)
    tried = (
        (broken, "a word", {"mech": 3, "q": 1}),
        (silent, "a word", {"q": [1.0]}),
        (Keeps, "NaN", {"q": np.nan}),
        (Keeps, "masked", {"q": masked}),
    )
    kinds = [
        walk.judged("x", "q", word, f, given, inspect.signature(f)).kind for f, word, given in tried
    ]
    assert kinds == ["AttributeError", "silent NaN", "silent NaN", "a mask is ignored"]


# --------------------------------------------------------------------------------- the front door


def test_an_error_that_is_not_about_arguments_is_passed_on():
    @checked
    def function(number: float, names: list[str]) -> float:
        return number / len(names)

    with pytest.raises(ZeroDivisionError):
        function(1.0, [])
    with pytest.raises(lw.ModelError, match=r"names of .*function must be several, each a string"):
        function(1.0, 5)
    with pytest.raises(TypeError, match="missing 1 required"):
        function(1.0)
    assert function(1.0, ["a", "b"]) == 0.5


def test_a_controller_fails_in_its_own_words():
    def controller(t, q, v):
        raise ValueError("mine")

    with pytest.raises(Exception, match="mine"):
        lw.simulate(lw.models.pendulum(1), duration=0.01, controller=controller)


def test_switches_are_true_or_false():
    with pytest.raises(lw.ModelError, match="limits of assemble must be True or False; found 'no'"):
        lw.loops.assemble(lw.models.four_bar(), limits="no")


def test_functions_keep_their_names_and_can_be_pickled():
    import pickle

    for function in (lw.simulate, lw.loops.assemble, lw.tasks.task_space, lw.forward_dynamics):
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__ and "mech" in inspect.signature(function).parameters


@pytest.mark.parametrize(
    ("check", "value", "text"),
    [
        (lambda x: count(x, "n"), 2.5, "n is 2.5; it must be a whole number, at least 0"),
        (lambda x: count(x, "n"), True, "whole number"),
        (lambda x: count(x, "n"), 10**30, "whole number"),
        (lambda x: count(x, "n", least=1), 0, "at least 1"),
        (lambda x: number(x, "t"), "1", "it must be a single number"),
        (lambda x: number(x, "t"), np.nan, "t is nan; it must be a number"),
        (lambda x: number(x, "t", above=0.0), 0.0, "positive number"),
        (lambda x: number(x, "t", below=1.0), 1.0, "less than 1"),
        (lambda x: number(x, "t"), [1.0, 2.0], "it must be a single number"),
        (generator, -1, "seed is -1"),
        (generator, "a", "seed is 'a'"),
        (lambda x: name(x, "node"), 3, "node must be a name"),
        (lambda x: option(x, ("a", "b"), "frame"), 3, "frame must be one of 'a', 'b'"),
        (lambda x: option(x, ("alpha", "beta"), "frame"), "alpa", "did you mean 'alpha'"),
        (lambda x: path(x, "file"), 3, "file must be the path of a file"),
        (lambda x: path(x, "file"), "a\0b", "file must be the path of a file"),
        (itemsize, np.int32, "float64 or float32"),
        (itemsize, np.zeros(3), "float64 or float32"),
        (lambda x: floats(x, "q"), np.ma.array([1.0, 2.0], mask=[0, 1]), "1 entries masked"),
        (lambda x: floats(x, "q"), None, "found None"),
        (lambda x: number(x, "t"), None, "t is None; it must be a single number"),
        (lambda x: floats(x, "q"), [np.ma.masked, 1.0], "masked"),
    ],
)
def test_checks_say_what_is_allowed(check, value, text):
    with pytest.raises(lw.LinkwiseError, match=text):
        check(value)


def test_right_values_pass():
    assert count(np.int64(3), "n") == 3
    assert number(np.float32(0.5), "t") == 0.5
    np.testing.assert_array_equal(floats(np.ma.array([1.0, 2.0]), "q"), [1.0, 2.0])
    assert generator(3).integers(9) == np.random.default_rng(3).integers(9)
    assert itemsize("float32") == itemsize(np.float32) == 4
    assert names("hip", "hinges") == names(["hip"], "hinges") == ("hip",)
    assert fits([1, 2], list[float]) and not fits("ab", list[str])


def test_operators_refuse_arrays():
    """Left to NumPy, `pose @ points` would fail in its words."""
    pose, part = lw.Pose.identity(), lw.SpatialInertia.solid_sphere(1.0, 0.1)
    with pytest.raises(lw.ModelError, match=r"pose\.apply\(points\)"):
        pose @ np.zeros(3)
    with pytest.raises(lw.ModelError, match="must be a SpatialInertia"):
        part + np.zeros(3)


def test_an_index_is_a_state_that_is_there():
    mech = lw.models.pendulum(2)
    both = lw.operational_space(mech, np.zeros((2, 2)), "tip")
    assert both[-1].rank == both[1].rank and len(list(both)) == 2
    for index in (2, -3, 0.5, "a", None):
        with pytest.raises(lw.errors.RowError, match="holds 2 states"):
            both[index]
    with pytest.raises(IndexError, match="single state"):
        both[0][0]
    poses = mech.poses(np.zeros(2))
    with pytest.raises(lw.errors.RowError, match="cannot be indexed by"):
        poses[..., 0]
    assert poses[1].p.shape == (3,) and poses[:1].p.shape == (1, 3)


@pytest.mark.parametrize("given", [np.zeros(3), np.array([np.nan]), "a", [np.inf]])
def test_hinges_look_at_their_coordinates(given):
    """The formulas of a pin would take the first of three, or give NaN."""
    with pytest.raises(lw.ShapeError, match=r"^q "):
        lw.hinges.Pin().pose(given)


def test_one_q_and_a_batch_of_velocities():
    hinge, v = lw.hinges.RollingBall(0.1), np.eye(3)
    q = hinge.integrate(hinge.neutral(), np.array([0.3, 0.2, 0.1]))
    rates = lw.hinges.Hinge.hinge_map_rate(hinge, q, v)
    assert rates.shape == (3, 3, 6) and np.abs(rates).max() > 0.01
    for i in range(3):
        np.testing.assert_allclose(rates[i], hinge.hinge_map_rate(q, v[i]), atol=1e-15)


@pytest.mark.parametrize("call", ["q", "v", "tau"])
def test_masked_arrays_are_refused_by_everyday_functions(call):
    mech = lw.models.pendulum(2)
    given = {"q": np.array([0.3, 0.2]), "v": np.array([0.5, -0.4]), "tau": np.ones(2)}
    right = lw.forward_dynamics(mech, **given)
    assert np.abs(right).min() > 0.1
    open_ = {**given, call: np.ma.array(given[call])}
    np.testing.assert_array_equal(lw.forward_dynamics(mech, **open_), right)
    masked = {**given, call: np.ma.array(given[call], mask=[False, True])}
    with pytest.raises(lw.ShapeError, match="masked"):
        lw.forward_dynamics(mech, **masked)


@pytest.mark.parametrize("name", ["diagonal_coriolis", "diagonal_dynamics"])
def test_overflow_of_diagonal_quantities_is_told(name):
    mech = lw.models.pendulum(2)
    q, big = np.array([0.3, 0.5]), np.full(2, 1e300)
    rest = (np.zeros(2),) if name == "diagonal_dynamics" else ()
    function = getattr(lw.papers, name)
    with pytest.raises(lw.LinkwiseError, match="not finite"):
        function(mech, q, big, *rest)
    status = np.zeros(2, np.int32)
    small = np.array([0.4, 0.7])
    both = function(mech, q, np.stack([small, big]), *rest, status=status)
    assert status[0] == 0 and status[1] != 0
    np.testing.assert_array_equal(both[0], function(mech, q, small, *rest))
    assert np.isnan(both[1]).all() and np.abs(both[0]).max() > 1e-3
    with pytest.warns(lw.errors.TroubleWarning):
        function(mech, q, np.stack([small, big]), *rest)


def test_arrays_of_a_named_alias_are_arrays() -> None:
    """NumPy 2.5 gives NDArray a name of its own, on Python 3.12 and later."""
    alias: Any = types.SimpleNamespace(__value__=NDArray[np.float64])
    named: Any = types.GenericAlias(alias, (np.float64,))
    for hint in (named, NDArray[np.float64], np.ndarray[Any, Any]):
        assert origin_of(hint) is np.ndarray
    assert origin_of(tuple[int, ...]) is tuple and origin_of(float) is None
