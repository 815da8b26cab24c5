"""Studies: cases that depend on their numbers alone, folders that lose nothing."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, StudyError, StudyWarning, UnknownNameError
from linkwise.study import Calls, Rollouts, Simulations, Study, load
from linkwise.study.address import varied_mechanism
from linkwise.study.content import mechanism_digest

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")


ARM = lw.models.chain(2)
Q = np.array([0.3, -0.4])


def small(cases: int = 50, **options) -> Study:
    vary = {"mass:link_2": (0.5, 2.0), "damping": (0.0, 0.3), "q[hinge_1]": (-1.0, 1.0)}
    names = dict(zip(("mass:link_2", "q[hinge_1]"), (f"mass:{ARM.bodies[1].name}",
                 f"q[{ARM.coordinate_names[0]}]"), strict=True))  # fmt: skip
    vary = {names.get(k, k): x for k, x in vary.items()}
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2, integrator="euler")
    return Study(work, vary, keep=["q", "max:v"], cases=cases, seed=3, **options)


def files(folder: Path) -> dict[str, bytes]:
    """Everything that must be equal: tables and trajectories."""
    paths = [x for x in folder.rglob("*") if x.is_file()]
    return {
        str(x.relative_to(folder)): x.read_bytes()
        for x in paths
        if x.suffix == ".parquet" or "trajectories" in x.parts
    }


# ------------------------------------------------------------------------- cases and numbers


@pytest.mark.parametrize("sampler", ["random", "sobol", "latin", "saltelli", "morris"])
def test_values_of_a_case_do_not_depend_on_the_range(sampler):
    study = Study(lambda a, b: a + b, {"a": (0.0, 1.0), "b": (0.0, 1.0)},
                  cases=120, sampler=sampler, seed=5)  # fmt: skip
    full = study.sampling.values(0, 120)
    assert ((full > 0.0) & (full < 1.0)).all()
    for begin, end in ((0, 1), (17, 18), (3, 50), (119, 120), (61, 120)):
        assert np.array_equal(study.sampling.values(begin, end), full[begin:end])


def test_draws_of_a_variable_do_not_depend_on_others():
    one = Study(lambda a: a, {"a": (0.0, 1.0)}, cases=9).values()["a"]
    two = Study(lambda a, b: a, {"b": (0.0, 1.0), "a": (0.0, 1.0)}, cases=9).values()["a"]
    assert np.array_equal(one, two)


def test_random_draws_are_uniform_and_independent():
    u = Study(lambda a, b: a, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, cases=20000).sampling.values(
        0, 20000
    )
    assert np.abs(u.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / 20000)
    assert abs(np.corrcoef(u.T)[0, 1]) < 5 / np.sqrt(20000)


def test_latin_hypercube_has_one_case_in_each_stratum():
    for cases in (1, 7, 64, 1000):
        u = Study(lambda a: a, {"a": (0.0, 1.0)}, cases=cases, sampler="latin").sampling.values(
            0, cases
        )
        assert sorted(np.floor(u[:, 0] * cases).astype(int)) == list(range(cases))


def test_correlation_is_that_of_normal_scores():
    stats = pytest.importorskip("scipy.stats")
    study = Study(lambda a, b: a, {"a": stats.norm(1, 2), "b": stats.norm()}, cases=20000,
                  correlate={("a", "b"): 0.6})  # fmt: skip
    x = study.sampling.values(0, 20000)
    assert abs(np.corrcoef(x.T)[0, 1] - 0.6) < 0.02
    assert abs(x[:, 0].mean() - 1.0) < 0.07 and abs(x[:, 0].std() - 2.0) < 0.07


def test_discrete_distributions_and_proposals_that_cover():
    stats = pytest.importorskip("scipy.stats")
    a = Study(lambda a: a, {"a": stats.randint(1, 7)}, cases=6000).values()["a"]
    assert set(a) == {1.0, 2.0, 3.0, 4.0, 5.0, 6.0} and abs(a.mean() - 3.5) < 0.1
    with pytest.raises(ModelError, match="never draws some values"):
        Study(lambda a: a, {"a": (0.0, 1.0)}, cases=6, propose={"a": (0.0, 0.5)})
    with pytest.raises(ModelError, match="frozen distribution"):
        Study(lambda a: a, {"a": stats.norm}, cases=6)


class Scaled:
    """An object that can be called, with a method."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, a: float) -> float:
        return self.factor * a

    def method(self, a: float) -> float:
        return self.factor * a


def scaled(factor: float, a: float) -> float:
    return factor * a


@pytest.mark.parametrize(
    "make", [Scaled, lambda x: Scaled(x).method, lambda x: functools.partial(scaled, x)]
)
def test_numbers_of_callables_are_part_of_the_request(make):
    one, same, other = (Study(Calls(make(x)), {"a": (0.0, 1.0)}, cases=3).digest for x in (1, 1, 2))
    assert one == same != other


HELPERS = """
SCALE = {scale}

class Law:
    def __init__(self, bias):
        self.bias = bias

    def gain(self, x):
        return {gain} * x + self.bias

LAW = Law({bias})

def inner(x):
    return {inner} * x + (inner(x - 1) if x > 100 else 0)

def helper(x):
    return sum(inner(y) * SCALE for y in [x]) + LAW.gain(x)
"""


def test_functions_that_a_function_calls_are_part_of_the_request(tmp_path, monkeypatch):
    """Also in a comprehension, in a module that it names, in a method; and without source text."""
    import importlib

    given = {"scale": 1.0, "gain": 2.0, "inner": 3.0, "bias": 4.0}

    def study(path, **changes):
        text = HELPERS.format(**given | changes)
        (path / "of_the_user.py").write_text(text)
        sys.modules.pop("of_the_user", None)
        importlib.invalidate_caches()
        module = importlib.import_module("of_the_user")
        names = {"helper": module.helper}
        exec("def bare(a):\n    return helper(a)", names)
        digests = []
        for function in (lambda a: module.helper(a), names["bare"]):
            digests.append(Study(function, {"a": (0.0, 1.0)}, cases=3).digest)
        return digests

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = study(tmp_path)
    assert first == study(tmp_path)
    for change in ({"scale": 1.5}, {"gain": 2.5}, {"inner": 3.5}, {"bias": 4.5}):
        other = study(tmp_path, **change)
        assert all(a != b for a, b in zip(first, other, strict=True)), change
    monkeypatch.delitem(sys.modules, "of_the_user")


def test_numbers_of_a_function_without_source_are_part_of_the_request():
    made = []
    for factor in (2.0, 2.0, 3.0):
        names = dict[str, object]()
        exec(f"def bare(a):\n    return [{factor} * x for x in [a]][0]", names)
        made.append(Study(names["bare"], {"a": (0.0, 1.0)}, cases=3).digest)
    assert made[0] == made[1] != made[2]


def test_grid_has_all_combinations():
    study = Study(lambda a, b: a, {"a": [1, 2], "b": [5, 6, 7]}, sampler="grid")
    assert study.sampling.values(0, 6).tolist() == [[1, 5], [1, 6], [1, 7], [2, 5], [2, 6], [2, 7]]


def variational() -> Study:
    work = Rollouts(ARM, Q, duration=0.4, step=2e-2, integrator="variational")
    return Study(work, {"v[0]": (-4.0, 4.0), "v[1]": (-4.0, 4.0)}, keep=["q", "v"], cases=40)


def box() -> Study:
    solid = lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.2))
    robot = lw.Builder("box").body("box", "world", lw.hinges.Free(), inertia=solid).build()
    corners = [
        lw.simulation.ContactPoint(f"{x}{y}", "box", (x, y, -0.1))
        for x in (-0.2, 0.2)
        for y in (-0.15, 0.15)
    ]
    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.101])
    options = {"integrator": "implicit", "contacts": corners, "noise": {"tau": 2.0}}
    work = Rollouts(robot, start, duration=0.06, step=2e-3, **options)
    return Study(work, {"v[0]": (-1.0, 1.0), "v[5]": (-1.0, 0.5)}, keep=["q", "v"], cases=40)


@pytest.mark.parametrize("make", [variational, box])
def test_bits_of_a_case_do_not_depend_on_its_batch(make):
    """Some steps are solved by rounds, until all motions of a vector register are done."""
    study = make()
    full = study.evaluate(study.values(), first=0)
    for begin, end in ((0, 1), (13, 14), (5, 37)):
        part = study.evaluate(study.values(begin, end), first=begin)
        for name, column in full.columns.items():
            assert np.array_equal(part.columns[name], column[begin:end])


def test_names_mean_numbers_of_the_mechanism():
    """A rollout with numbers that vary is that of a mechanism with these numbers."""
    names = ARM.velocity_names
    load_, body = "payload:" + ARM.bodies[1].name, ARM.bodies[1].name
    vary = {f"mass:{body}": [1.7], load_: [0.8], f"damping[{names[0]}]": [0.3],
            "stiffness": [2.0], "gravity[z]": [-5.0], f"armature[{names[1]}]": [0.2]}  # fmt: skip
    work = Rollouts(ARM, Q, duration=0.2, step=1e-2)
    study = Study(work, vary, cases=1)
    row = study.evaluate(study.values())
    rec = study.case(0)
    expected = lw.rollout(rec.mech, Q, duration=0.2, step=1e-2)
    got = [row.columns[f"q[{x}]"][0] for x in ARM.coordinate_names]
    np.testing.assert_allclose(got, expected.q[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(rec.q, expected.q, rtol=0, atol=1e-12)
    assert rec.mech.total_mass == pytest.approx(ARM.total_mass - ARM.body(body).inertia.mass + 2.5)
    assert isinstance(varied_mechanism(ARM, {}), lw.Mechanism)


def test_noise_of_a_rollout_in_parts():
    options = {"duration": 0.1, "step": 1e-2, "noise": {"tau": 1.0}, "seed": 4}
    q = np.tile(Q, (9, 1))
    full = lw.rollout(ARM, q, **options)
    part = lw.rollout(ARM, q[5:], first=5, **options)
    np.testing.assert_allclose(part.q, full.q[5:], rtol=0, atol=1e-10)
    assert np.abs(lw.rollout(ARM, q[5:], **options).q - full.q[5:]).max() > 1e-3


# ------------------------------------------------------------------------------------ folders


def test_a_study_that_stops_goes_on_and_ends_equal(tmp_path):
    study = small()
    study.run(tmp_path / "a", chunk=16, progress=False)

    class StopError(Exception):
        pass

    def stop(what: object) -> None:
        if getattr(what, "done", 0) >= 16:
            raise StopError

    with pytest.raises(StopError):
        study.run(tmp_path / "b", chunk=16, progress=stop)
    assert 16 <= load(tmp_path / "b").done < 50
    results = study.run(tmp_path / "b", progress=False)
    assert results.done == 50 and files(tmp_path / "a") == files(tmp_path / "b")
    assert results["case"].tolist() == list(range(50))


def test_more_cases_extend_a_study(tmp_path):
    small(20).run(tmp_path / "a", chunk=16, progress=False)
    small(50).run(tmp_path / "a", progress=False)
    small(50).run(tmp_path / "b", chunk=16, progress=False)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_another_request_is_refused_with_the_difference(tmp_path):
    small(20).run(tmp_path, progress=False)
    vary = dict(zip(small().names, ((0.5, 2.0), (0.0, 0.7), (-1.0, 1.0)), strict=True))
    other = Study(small().work, vary, keep=["q", "max:v"], cases=20, seed=4)
    with pytest.raises(
        StudyError, match=r"vary\.damping: .*0\.3.* now .*0\.7.*seed: 3 before, now 4"
    ):
        other.run(tmp_path, progress=False)
    with pytest.raises(StudyError, match="cases: 20 before, now 10"):
        small(10).run(tmp_path, progress=False)
    fewer = Study(Rollouts(ARM, Q, duration=0.06, step=1e-2, integrator="euler"),
                  {"damping": (0.0, 0.3)}, cases=20, seed=3)  # fmt: skip
    with pytest.raises(StudyError, match=r"run\.duration: 0\.05 before, now 0\.06"):
        fewer.run(tmp_path, progress=False)


def test_damaged_chunks_are_computed_again(tmp_path):
    study = small()
    study.run(tmp_path / "a", chunk=16, progress=False)
    study.run(tmp_path / "b", chunk=16, progress=False)
    good = files(tmp_path / "a")
    lines = (tmp_path / "b" / "chunks.jsonl").read_text().splitlines()  # in any order
    first, second = (next(iter(json.loads(line)["files"])) for line in lines[:2])
    (tmp_path / "b" / first).write_bytes((tmp_path / "b" / first).read_bytes()[:-3])
    (tmp_path / "b" / second).unlink()
    with open(tmp_path / "b" / "chunks.jsonl", "rb+") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 20)  # the last line is torn
    with pytest.warns(StudyWarning, match=r"2 chunks.*computed again: .*checksum"):
        study.run(tmp_path / "b", progress=False)
    assert files(tmp_path / "b") == good


def test_only_one_process_runs_a_study(tmp_path):
    small().run(tmp_path, progress=False)
    code = ("import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); "
            "print('held', flush=True); sys.stdin.read()")  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout.readline()
        with pytest.raises(StudyError, match="in use"):
            small(70).run(tmp_path, progress=False)
        assert load(tmp_path).cases == 50  # the folder is as it was
        other.communicate()


def test_a_chunk_that_cannot_be_read_is_named(tmp_path):
    study = small()
    results = study.run(tmp_path, chunk=16, progress=False)
    good = files(tmp_path)
    (tmp_path / "table" / "part-0000001.parquet").write_bytes(b"damaged " * 40)
    with pytest.raises(StudyError, match=r"part-0000001\.parquet.*computed again"):
        results.table()
    with pytest.warns(StudyWarning, match=r"1 chunks.*checksum"):
        study.run(tmp_path, progress=False)
    assert files(tmp_path) == good


def test_a_full_disk_is_reported_and_survived(tmp_path, monkeypatch):
    import errno

    from linkwise.errors import WriteError
    from linkwise.study import folder

    real, calls = folder.write_files, [0]

    def too_much(contents):
        calls[0] += 1
        if calls[0] > 2:
            raise WriteError(next(iter(contents)), OSError(errno.ENOSPC, "No space left on device"))
        real(contents)

    monkeypatch.setattr(folder, "write_files", too_much)
    with pytest.raises(
        StudyError, match=r"No space left.*cases are safe.*the same command goes on"
    ):
        small().run(tmp_path / "a", chunk=16, progress=False)
    monkeypatch.setattr(folder, "write_files", real)
    small().run(tmp_path / "a", progress=False)
    small().run(tmp_path / "b", chunk=16, progress=False)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_failed_cases_have_a_reason_and_do_not_stop_the_rest(tmp_path):
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2)
    study = Study(
        work, {"damping": [0.1, -1.0, 0.2], "v[0]": [0.0, 1e200]}, keep=["q"], sampler="grid"
    )
    results = study.run(tmp_path, progress=False)
    reasons = results["reason"]
    assert results.failed == 4 and [bool(x) for x in reasons] == [
        False,
        True,
        True,
        True,
        False,
        True,
    ]
    assert "must not be negative" in reasons[2] and "finite" in reasons[1]
    good = np.isfinite(results[f"q[{ARM.coordinate_names[0]}]"])
    assert good.tolist() == [True, False, False, False, True, False]
    alone = Study(work, {"damping": [0.2], "v[0]": [0.0]}, keep=["q"], sampler="grid").evaluate(
        {"damping": 0.2, "v[0]": 0.0})  # fmt: skip
    assert (
        alone.columns[f"q[{ARM.coordinate_names[0]}]"][0]
        == results[f"q[{ARM.coordinate_names[0]}]"][4]
    )


def test_stop_conditions_are_events(tmp_path):
    study = Study(Rollouts(ARM, Q, duration=0.5, step=1e-2, stop={"v": (-1.0, 1.0)}),
                  {"gravity[z]": [-9.81, 0.0]}, keep=["q"], sampler="grid")  # fmt: skip
    results = study.run(tmp_path, progress=False)
    assert results["stopped"].tolist() == ["v", ""] and results["end_time"][0] < 0.5
    assert study.case(0).stopped == "v"


def test_trajectories_are_read_lazily(tmp_path):
    for package in ("zarr", "xarray", "dask.array"):
        pytest.importorskip(package)
    study = Study(Rollouts(ARM, Q, duration=0.05, step=1e-2), {"damping": (0.0, 1.0)},
                  keep=["trajectory:q", "final:v"], cases=37)  # fmt: skip
    results = study.run(tmp_path, chunk=16, progress=False)
    q = results.trajectory("q")
    assert q.shape == (37, 6, 2) and q.chunks is not None
    expected = study.case(36).q
    assert np.array_equal(q.sel(case=36).values, expected)
    assert q.entry.values.tolist() == list(ARM.coordinate_names)


# -------------------------------------------------------------------------------- other work


def test_results_follow_their_folder(tmp_path):
    study = Study(Calls(lambda a: {"square": a * a}, batched=True), {"a": (0.0, 1.0)}, cases=20)
    results = study.run(tmp_path, chunk=16, progress=False)
    before = results["square"]
    study.with_cases(40).run(tmp_path, progress=False)
    assert results.cases == results.done == 40
    assert np.array_equal(results["square"][:20], before) and len(results["square"]) == 40


def test_functions_and_their_errors(tmp_path):
    def work(a: float, b: float) -> dict[str, object]:
        if a > 2:
            raise ArithmeticError("too large")
        return {"sum": a + b, "pair": [a, b]}

    study = Study(work, {"a": [1, 2, 3], "b": [10]}, sampler="grid")
    results = study.run(tmp_path, progress=False)
    assert results["sum"][:2].tolist() == [11.0, 12.0] and np.isnan(results["sum"][2])
    assert results["pair[1]"][0] == 10.0 and results["reason"][2] == "ArithmeticError: too large"
    assert results.reasons() == [("ArithmeticError: too large", 1)]
    for frame in (results.pandas(), results.polars().collect()):
        assert frame["reason"].to_list() == results["reason"].tolist()
        np.testing.assert_array_equal(frame["sum"].to_numpy(), results["sum"])
    with pytest.raises(ModelError, match="no motion to record"):
        study.case(0)


def test_what_functions_may_return(tmp_path):
    """None is not a number; errors of any kind are reasons, in batches too; `keep` says how."""
    spread = {"a": (0.0, 1.0)}
    for work in (lambda a: None, Calls(lambda a: {"b": None}, batched=True)):
        with pytest.raises(ModelError, match=r"returned None for '(value|b)'"):
            Study(work, spread, cases=3).run(tmp_path / "none", progress=False)

    def odd(a: np.ndarray) -> dict[str, np.ndarray]:
        if (a > 0.5).any():
            raise RuntimeError("does not close")
        return {"b": a}

    study = Study(Calls(odd, batched=True), spread, cases=20)
    results = study.run(tmp_path / "odd", progress=False)
    assert results.failed == (study.values()["a"] > 0.5).sum() > 3
    assert results.reasons()[0][0] == "RuntimeError: does not close"
    work = Rollouts(ARM, Q, duration=0.02, step=1e-2)
    for function, reason in ((lambda batch: batch.q, r"no attribute 'q'.*\['q'\] is a channel"),
                             (lambda batch: None, "returned None")):  # fmt: skip
        with pytest.raises(ModelError, match=rf"keep\['tip'\] .*{reason}"):
            Study(work, {"damping": (0.0, 1.0)}, keep={"tip": function}, cases=3).trial()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StudyError, match=r"file is a file; a study needs a folder"):
        study.run(tmp_path / "file", progress=False)


def test_masses_below_zero_fail():
    """Of a body and what it carries; a payload may take away a part of the mass."""
    body, mass = ARM.bodies[1].name, float(ARM.bodies[1].inertia.mass)
    work = Rollouts(ARM, Q, duration=0.02, step=1e-2)
    vary = {f"mass:{body}": [-0.1, 0.5], f"payload:{body}": [-1.0, -0.2, 1.0]}
    study = Study(work, vary, sampler="grid")
    reasons = study.evaluate(study.values()).reasons
    assert [bool(x) for x in reasons] == [True, True, True, True, False, False]
    assert f"mass of body {body!r} is -0.1 kg; it must not be negative" in reasons[2]
    assert f"mass of body {body!r} is -0.5 kg; it must not be negative" in reasons[3]
    alone = Study(work, {f"payload:{body}": [-1.01 * mass, -0.99 * mass]}, sampler="grid")
    assert [bool(x) for x in alone.evaluate(alone.values()).reasons] == [True, False]


def test_batched_functions():
    study = Study(Calls(lambda a: {"square": a * a}, batched=True), {"a": (0.0, 1.0)}, cases=5)
    a = study.values()["a"]
    assert np.array_equal(study.evaluate(study.values()).columns["square"], a * a)


def test_simulations_with_varied_mechanisms():
    body = ARM.bodies[1].name
    study = Study(Simulations(ARM, Q, duration=0.05, step=1e-2), {f"mass:{body}": [1.0, 3.0]},
                  keep=["q", "max:energy.kinetic"], sampler="grid")  # fmt: skip
    result = study.evaluate(study.values())
    rec = study.case(1)
    assert result.columns["max:energy.kinetic"][1] == rec["energy.kinetic"].max()
    assert rec.mech.body(body).inertia.mass == pytest.approx(3.0)


def test_trajectories_of_simulations_that_end_early(tmp_path):
    for package in ("zarr", "xarray", "dask.array"):
        pytest.importorskip(package)
    watch = {"fast": lambda t, q, v, tau: 1.0 - abs(v[1])}
    work = Simulations(ARM, Q, duration=0.3, step=1e-2, watch=watch)
    keep = ["trajectory:q", "time:fast", "events"]
    study = Study(work, {"gravity[z]": [-9.81, 0.0]}, keep=keep, sampler="grid")
    results = study.run(tmp_path, progress=False)
    q = results.trajectory("q")
    assert q.shape == (2, 31, 2) and np.allclose(q.time, np.arange(31) * 1e-2)
    assert np.isnan(q[0, 1:]).all() and np.isfinite(q[1]).all()
    assert results["stopped"].tolist() == ["'fast' was lost", ""]
    assert results["events"].tolist() == [1.0, 0.0]
    assert results["time:fast"][0] == results["end_time"][0] == study.case(0).t[-1] < 0.01


def test_variables_that_nothing_takes_are_refused():
    def make(length: float) -> lw.Mechanism:
        return lw.models.chain(2, length=length)

    for kind in (Rollouts, Simulations):
        work = kind(make, Q, duration=0.02, step=1e-2)
        with pytest.raises(ModelError, match=r"missing a required argument: 'length'.*lngth"):
            Study(work, {"lngth": (0.1, 0.2)}, cases=3)
        with pytest.raises((UnknownNameError, ModelError), match=r"called .dampin.*damping"):
            Study(work, {"length": (0.1, 0.2), "dampin": (0.0, 1.0)}, cases=3).trial()


def test_mechanisms_made_from_what_varies():
    def make(count: float) -> lw.Mechanism:
        return lw.models.chain(int(count))

    work = Rollouts(make, lambda mech: np.full(mech.nq, 0.1), duration=0.02, step=1e-2)
    study = Study(work, {"count": [1, 2], "damping": [0.0, 0.5]}, sampler="grid",
                  keep={"tip": lambda batch: batch["q"][:, -1, 0]})  # fmt: skip
    result = study.evaluate(study.values())
    for i, (n, damping) in enumerate(((1, 0.0), (1, 0.5), (2, 0.0), (2, 0.5))):
        mech = make(n)
        run = lw.rollout(mech, np.full((1, n), 0.1), duration=0.02, step=1e-2,
                         parameters={"damping": np.full((1, 1, n), damping)})  # fmt: skip
        assert abs(result.columns["tip"][i] - run.q[0, -1, 0]) < 1e-13


def test_wrong_requests_are_refused_before_anything_runs(tmp_path):
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2)
    with pytest.raises(UnknownNameError, match=r"no variable called .dampnig.*damping"):
        Study(work, {"dampnig": (0.0, 1.0)}, cases=3)
    with pytest.raises(UnknownNameError, match="entry called 'elbwo'"):
        Study(work, {"q[elbwo]": (0.0, 1.0)}, cases=3)
    with pytest.raises(UnknownNameError, match="no channel called 'position'"):
        Study(work, {"damping": (0.0, 1.0)}, keep=["position"], cases=3).run(tmp_path / "x")
    with pytest.raises(ModelError, match="low must be less than high"):
        Study(work, {"damping": (1.0, 1.0)}, cases=3)
    with pytest.raises(ModelError, match="multiple of 3"):
        Study(work, {"damping": (0.0, 1.0)}, cases=4, sampler="saltelli")
    with pytest.raises(ModelError, match="called with a, c"):
        Study(lambda a, b: a, {"a": (0.0, 1.0), "c": (0.0, 1.0)}, cases=3)
    assert not (tmp_path / "x").exists()


def test_a_run_killed_before_its_manifest_goes_on(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "study.pickle").write_bytes(b"torn")
    assert small(20).run(tmp_path, progress=False).done == 20
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(StudyError, match="not empty"):
        small(20).run(tmp_path / "other", progress=False)


# ------------------------------------------------------------------------------------- kills

SCRIPT = """
import sys, time
import numpy as np
from tests.study.test_study import small
small(400).run(sys.argv[1], chunk=16, progress=lambda what: print(what, flush=True))
"""


@pytest.mark.prove
@pytest.mark.shipped  # as in the other processes
def test_kill_at_random_moments_loses_nothing(tmp_path):
    small(400).run(tmp_path / "all", chunk=16, progress=False)
    rng, kills = np.random.default_rng(0), 0
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed")]
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"}
    for _ in range(60):
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env=env) as process:
            first = process.stdout.readline()  # it has begun
            time.sleep(rng.uniform(0.0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.stdout.read()
            kills += process.wait() == -signal.SIGKILL
        if not first or kills == 5:
            break
    assert kills >= 1
    small(400).run(tmp_path / "killed", chunk=16, progress=False)
    assert files(tmp_path / "killed") == files(tmp_path / "all")
    lines = (tmp_path / "killed" / "chunks.jsonl").read_text().splitlines()
    assert len({json.loads(x)["chunk"] for x in lines if x.endswith("}")}) == 25


@pytest.mark.parametrize(
    "kills",
    [pytest.param(2, marks=pytest.mark.prove), pytest.param(50, marks=pytest.mark.nightly)],
)
def test_kills_of_client_workers_and_scheduler(kills):
    """`python tools/study_kills.py 50` writes docs/evidence/study_kills.md."""
    pytest.importorskip("distributed")
    root = Path(__file__).parents[2]
    tool = [sys.executable, str(root / "tools" / "study_kills.py"), str(kills), "--print"]
    env = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"}
    if kills < 50:
        env["STUDY_KILLS_CASES"] = "800"
    done = subprocess.run(tool, cwd=root, env=env, capture_output=True, text=True, check=False)
    shown = done.stdout + done.stderr
    assert f"{kills} kills" in done.stdout and "nothing lost" in done.stdout, shown


@pytest.mark.prove
@pytest.mark.shipped  # as in the other processes
def test_processes_of_dask_write_the_same_files(tmp_path):
    pytest.importorskip("distributed")
    study = small(60)
    study.run(tmp_path / "threads", chunk=16, progress=False)
    study.run(tmp_path / "dask", chunk=16, progress=False, workers=2)
    assert files(tmp_path / "threads") == files(tmp_path / "dask")


def below(a: float) -> float:
    """A function that fails for some numbers."""
    if a > 0.7:
        raise ValueError("too large")
    return a if a > 0.1 else np.nan


def test_numbers_stay_where_the_first_cases_fail(tmp_path):
    """Uniform a, drawn from 2 a: case 0 and the median √½ fail. Numbers are those of 0.1 to 0.7."""
    stats = pytest.importorskip("scipy.stats")
    propose = {"a": stats.beta(2, 1)}
    study = Study(Calls(below), {"a": (0.0, 1.0)}, propose=propose, cases=4000, seed=1)
    assert study.values(0, 1)["a"][0] > 0.7
    results = study.run(tmp_path / "some")
    mean = lw.study.mean(results, "value", level=0.999)
    assert mean.low < 0.4 < mean.high and mean.high - mean.low < 0.04
    middle = lw.study.quantile(results, "value", 0.5, level=0.999)
    assert middle.low < 0.4 < middle.high
    share = lw.study.probability(results, "value", below=0.35, count_failed=False, level=0.999)
    assert share.low < 0.25 / 0.7 < share.high
    with pytest.raises(ModelError, match=r"all of the first 20 cases fail.*too large"):
        Study(Calls(below), {"a": (0.8, 1.0)}, cases=20).run(tmp_path / "none")


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.study.test_study import small
small(4000).run(sys.argv[1], chunk=16, progress=lambda what: print(what, flush=True))
"""


def started(script: str, *given: object, **options) -> subprocess.Popen[str]:
    """A process that runs a script with arguments."""
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"}
    command = [sys.executable, "-c", script, *map(str, given)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=root, env=env, text=True, **options
    )


@pytest.mark.prove
@pytest.mark.shipped  # as in the other processes
def test_ctrl_c_leaves_a_study_that_goes_on(tmp_path):
    folder = tmp_path / "interrupted"
    with started(INTERRUPTED, folder, stderr=subprocess.PIPE) as process:
        for _ in range(3):  # the plan, and chunks that are done
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in err
    said = out.splitlines()[-1]
    assert said.startswith("interrupted: ") and "cases are safe in" in said
    safe = int(said.split()[1].replace(",", ""))
    assert 16 <= safe < 4000 and load(folder).done == safe
    assert small(4000).run(folder, chunk=16, progress=False).done == 4000
    small(4000).run(tmp_path / "all", chunk=16, progress=False)
    assert files(folder) == files(tmp_path / "all")


@pytest.mark.nightly
@pytest.mark.shipped  # as in the other processes
def test_a_lost_worker_of_dask_is_survived(tmp_path):
    distributed = pytest.importorskip("distributed")
    lost = list[int]()
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=2, silence_logs=50, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill(what: object) -> None:
            if not lost and hasattr(what, "done"):
                lost.append(what.done)
                os.kill(pids[0], signal.SIGKILL)

        small(400).run(tmp_path / "lost", chunk=16, progress=kill, workers=client)
    assert 0 < lost[0] < 400
    small(400).run(tmp_path / "all", chunk=16, progress=False)
    assert files(tmp_path / "lost") == files(tmp_path / "all")


MEASURED = """
import sys
from pathlib import Path
import numpy as np
import linkwise as lw
work = lw.study.Rollouts(lw.models.chain(3), np.full(3, 0.2), duration=0.1, integrator="euler")
study = lw.Study(work, {"damping": (0.0, 1.0)}, keep=["trajectory:q", "max:v"], cases=20_000)
said = []
study.run(sys.argv[1], chunk=int(sys.argv[2]), progress=said.append)
status = Path("/proc/self/status").read_text().split()
print(said[0].memory, 1024 * int(status[status.index("VmHWM:") + 1]))
"""


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_the_estimate_of_memory_is_near_the_peak(tmp_path):
    both = list[list[int]]()
    for chunk in (64, 10_000):  # little memory in chunks, and much
        with started(MEASURED, tmp_path / str(chunk), chunk) as process:
            both.append([int(x) for x in process.stdout.read().split()])
    for said, measured in both:
        assert 0.7 < said / measured < 1.5
    assert both[1][0] > 1.2 * both[0][0] and both[1][1] > 1.2 * both[0][1]


def test_shapes_of_nodes_make_another_study():
    """What touches the ground may be the shape of a node."""

    def foot(radius):
        ball = lw.Geometry("ball", "sphere", (radius,), lw.Pose.identity())
        b = lw.Builder("foot").body("leg", "world", lw.hinges.Pin())
        return b.node("toe", "leg", geometry=[ball]).build()

    assert mechanism_digest(foot(0.1)) == mechanism_digest(foot(0.1))
    assert mechanism_digest(foot(0.1)) != mechanism_digest(foot(0.2))
