"""Estimates of studies against formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linkwise.errors import ModelError, StudyError
from linkwise.study import (
    Calls,
    Study,
    band,
    mean,
    optimize,
    probability,
    quantile,
    rare_event,
    sensitivity,
)

pytest.importorskip("pyarrow")
stats = pytest.importorskip("scipy.stats")


def normal(cases: int, **options) -> Study:
    work = Calls(lambda a: {"y": a}, batched=True)
    return Study(work, {"a": stats.norm()}, cases=cases, seed=7, **options)


def test_quantiles_and_means_of_a_normal_variable(tmp_path):
    results = normal(20000).run(tmp_path, progress=False)
    for share in (0.1, 0.5, 0.99):
        estimate = quantile(results, "y", share, level=0.999)
        assert estimate.low < stats.norm.ppf(share) < estimate.high
        assert estimate.high - estimate.low < 0.2
    average = mean(results, "y", level=0.999)
    assert average.low < 0.0 < average.high
    both = quantile(results, "y", [0.25, 0.75])
    assert isinstance(both, list) and both[0].value < both[1].value


@pytest.mark.prove
def test_intervals_cover_the_truth_as_often_as_they_say(tmp_path):
    """60 studies of 50 cases: 95 % intervals miss about 3 times."""
    missed = {"median": 0, "probability": 0}
    for seed in range(60):
        study = Study(
            Calls(lambda a: {"y": a}, batched=True), {"a": stats.norm()}, cases=50, seed=seed
        )
        results = study.run(tmp_path / str(seed), progress=False)
        estimate = quantile(results, "y", 0.5)
        missed["median"] += not estimate.low <= 0.0 <= estimate.high
        chance = probability(results, "y", above=1.0)
        missed["probability"] += not chance.low <= stats.norm.sf(1.0) <= chance.high
    assert missed["median"] <= 9 and missed["probability"] <= 9


def test_failed_cases_count_as_failures(tmp_path):
    def work(a: float) -> float:
        if a > 0.9:
            raise ValueError("no")
        return a

    results = Study(work, {"a": [0.1, 0.5, 0.95, 0.99]}, sampler="grid").run(
        tmp_path, progress=False
    )
    assert probability(results, "value", above=0.4).value == 0.75
    assert probability(results, "value", above=0.4, count_failed=False).value == 0.5
    with pytest.raises(ModelError, match="what is the event"):
        probability(results, "value")


def test_importance_sampling_finds_a_rare_event(tmp_path):
    study = normal(4000, propose={"a": stats.norm(4.0, 1.0)})
    estimate = probability(study.run(tmp_path, progress=False), "y", above=4.0, level=0.999)
    assert estimate.low < stats.norm.sf(4.0) < estimate.high
    assert estimate.high < 1.3 * stats.norm.sf(4.0)


def test_subset_simulation_finds_a_rare_event():
    """y = (a + b) / √2 is standard normal; P(y > 4) = 3.2e-5."""
    work = Calls(lambda a, b: {"y": (a + b) / np.sqrt(2.0)}, batched=True)
    study = Study(work, {"a": stats.norm(), "b": stats.norm()}, cases=1)
    event = rare_event(study, "y", above=4.0, cases=2000)
    truth = stats.norm.sf(4.0)
    assert 0.5 * truth < event.probability.value < 2.0 * truth
    assert event.probability.low < truth < event.probability.high
    assert event.cases < 15000 and min(event.values["a"] + event.values["b"]) > 4.0 * np.sqrt(2.0)
    with pytest.raises(ModelError, match="may be impossible"):
        rare_event(Study(Calls(lambda a: {"y": a}, batched=True), {"a": (0.0, 1.0)}, cases=1), "y",
                   above=2.0, cases=100)  # fmt: skip


def test_sobol_indices_of_the_ishigami_function(tmp_path):
    """S1 = 0.3139, 0.4424, 0; ST = 0.5576, 0.4424, 0.2437 (Ishigami, Homma 1990)."""
    pytest.importorskip("SALib")

    def ishigami(a, b, c):
        return {"y": np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)}

    vary = dict.fromkeys("abc", (-np.pi, np.pi))
    study = Study(Calls(ishigami, batched=True), vary, cases=5 * 2048, sampler="saltelli")
    indices = sensitivity(study.run(tmp_path, progress=False), "y")
    np.testing.assert_allclose(indices.first, [0.3139, 0.4424, 0.0], atol=0.03)
    np.testing.assert_allclose(indices.total, [0.5576, 0.4424, 0.2437], atol=0.03)
    assert "total" in str(indices)


def test_morris_indices_of_a_linear_function(tmp_path):
    """Elementary effects of a linear function are its slopes."""
    pytest.importorskip("SALib")
    work = Calls(lambda a, b: {"y": 3.0 * a - 5.0 * b}, batched=True)
    study = Study(work, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, cases=3 * 20, sampler="morris")
    indices = sensitivity(study.run(tmp_path, progress=False), "y")
    np.testing.assert_allclose(indices.first, [3.0, 5.0], rtol=1e-9)
    np.testing.assert_allclose(indices.total, 0.0, atol=1e-9)
    with pytest.raises(ModelError, match="saltelli"):
        sensitivity(normal(10).run(tmp_path / "x", progress=False), "y")


def test_bands_of_trajectories(tmp_path):
    for package in ("zarr", "xarray", "dask.array"):
        pytest.importorskip(package)
    t = np.linspace(0.0, 1.0, 5)
    work = Calls(lambda a: {"y": a[:, None] * t}, batched=True)
    study = Study(work, {"a": (0.0, 1.0)}, keep=["trajectory:y"], cases=2001, sampler="sobol")
    bands = band(study.run(tmp_path, progress=False), "y", q=[0.25, 0.75])
    np.testing.assert_allclose(bands.values, [0.25 * t, 0.75 * t], atol=2e-3)
    assert bands.cases == 2001 and bands.left_out == 0
    assert (bands.low[:, 1:] < bands.values[:, 1:]).all()
    assert (bands.high[:, 1:] > bands.values[:, 1:]).all()


def test_bands_of_weighted_cases_are_those_of_the_distribution(tmp_path):
    for package in ("zarr", "xarray", "dask.array"):
        pytest.importorskip(package)
    work = Calls(lambda a: {"y": a[:, None] * np.ones(3)}, batched=True)
    study = Study(work, {"a": stats.norm()}, keep=["trajectory:y"], cases=4000, seed=1,
                  propose={"a": stats.norm(1.0, 1.5)})  # fmt: skip
    bands = band(study.run(tmp_path, progress=False), "y", q=[0.2, 0.9], level=0.999)
    truth = stats.norm.ppf([0.2, 0.9])[:, None]
    assert ((bands.low <= truth) & (truth <= bands.high)).all()
    assert (bands.high - bands.low < 0.4).all()


def test_indices_leave_out_groups_that_are_not_computed_yet(tmp_path):
    pytest.importorskip("SALib")
    vary = dict.fromkeys("abc", (0.0, 1.0))
    work = Calls(lambda a, b, c: {"y": a + 10.0 * b}, batched=True)
    study = Study(work, vary, cases=5 * 512, sampler="saltelli")
    results = study.run(tmp_path, chunk=16, progress=False)
    lines = (tmp_path / "chunks.jsonl").read_text().splitlines(keepends=True)
    kept = [x for x in lines if '"chunk": 3,' not in x and '"chunk": 70,' not in x]
    assert len(kept) == len(lines) - 2
    (tmp_path / "chunks.jsonl").write_text("".join(kept))
    np.testing.assert_allclose(sensitivity(results, "y").total, [0.01, 0.99, 0.0], atol=0.03)


def test_pictures_of_everything(tmp_path):
    pytest.importorskip("matplotlib")
    for package in ("zarr", "xarray", "dask.array"):
        pytest.importorskip(package)
    import linkwise as lw

    work = Calls(lambda a: {"y": a, "path": a[:, None] * np.ones(3)}, batched=True)
    study = Study(work, {"a": stats.norm()}, keep=["y", "trajectory:path"], cases=400)
    results = study.run(tmp_path, progress=False)
    lw.plot.study_distribution(results, "y")
    lw.plot.study_scatter(results, "a", "y")
    lw.plot.study_band(results, "path")
    line = lw.plot.study_probability(results, "y").lines[0]
    bounds, chance = line.get_data()
    np.testing.assert_allclose(chance, stats.norm.sf(bounds), atol=0.1)
    event = rare_event(normal(1), "y", above=3.0, cases=200)
    levels = lw.plot.study_rare_event(event).lines[0].get_ydata()
    assert levels[-1] == event.probability.value and len(levels) == len(event.levels)
    with pytest.raises(ModelError, match=r"lw\.study\.rare_event makes it"):
        lw.plot.study_rare_event(results)


def test_design_finds_the_best_value():
    pytest.importorskip("optuna")
    work = Calls(lambda a, x: {"y": (x - 0.3) ** 2 + 0.01 * a}, batched=True)
    study = Study(work, {"a": (0.0, 1.0), "x": (0.0, 1.0)}, cases=20)
    best = optimize(study, "y", {"x": (0.0, 1.0)}, statistic="q95", trials=40)
    assert abs(best.values["x"] - 0.3) < 0.1 and best.trials == 40


class Counted:
    """A function that counts its calls, and ends the process at one of them."""

    calls, last = 0, 10**9

    def __call__(self, a, x):
        Counted.calls += 1
        if Counted.calls > Counted.last:
            raise MemoryError  # not a reason of a case: it ends the run
        return {"y": a + 0.1 * x}


def searches():
    study = Study(Calls(Counted(), batched=True), {"a": stats.norm(), "x": (0.0, 1.0)}, cases=40)

    def rare(folder, above=2.5):
        event = rare_event(study, "y", above=above, cases=100, folder=folder)
        return event.probability, event.levels, event.values["a"].tolist()

    def design(folder, trials=15):
        best = optimize(study, "y", {"x": (0.0, 1.0)}, trials=trials, folder=folder)
        return best.values, best.history.tolist()

    return rare, design


@pytest.mark.parametrize("kind", [0, 1])
def test_a_search_that_is_killed_goes_on(tmp_path, monkeypatch, kind):
    """The same bits as without a kill, and nothing is computed twice."""
    if kind:
        pytest.importorskip("optuna")
    search = searches()[kind]
    monkeypatch.setattr(Counted, "calls", 0)
    undisturbed = search(None)
    needed = Counted.calls
    assert needed > 10
    monkeypatch.setattr(Counted, "calls", 0)
    for _ in range(3):
        monkeypatch.setattr(Counted, "last", Counted.calls + needed // 3)
        with pytest.raises(MemoryError):
            search(tmp_path)
    monkeypatch.setattr(Counted, "last", 10**9)
    assert search(tmp_path) == undisturbed
    assert Counted.calls == needed + 3 * 2  # again: a call that shows the columns, and the last one
    damaged = sorted((tmp_path / "answers").iterdir())[0]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (tmp_path / "answers" / ".linkwise-0123456789abcdef").write_bytes(b"torn")
    monkeypatch.setattr(Counted, "calls", 0)
    assert search(tmp_path) == undisturbed and Counted.calls == 2
    assert not (tmp_path / "answers" / ".linkwise-0123456789abcdef").exists()
    if kind:
        lines = [json.loads(x) for x in (tmp_path / "designs.jsonl").read_text().splitlines()]
        assert [x["objective"] for x in lines] == undisturbed[1]
        assert search(tmp_path, trials=20)[1][:15] == undisturbed[1]


def test_another_search_is_refused(tmp_path):
    pytest.importorskip("optuna")
    rare, design = searches()
    rare(tmp_path / "rare")
    assert rare(tmp_path / "rare", above=2.7) == rare(None, above=2.7)
    with pytest.raises(StudyError, match=r"another search\. search: \"rare_event\" before, now"):
        design(tmp_path / "rare")
    study = Study(Calls(Counted(), batched=True), {"a": stats.norm(), "x": (0.0, 1.0)}, cases=40)
    optimize(study, "y", {"x": (0.0, 1.0)}, trials=2, folder=tmp_path / "design")
    with pytest.raises(StudyError, match=r'statistic: "mean" before, now "max"'):
        optimize(study, "y", {"x": (0.0, 1.0)}, trials=2, statistic="max",
                 folder=tmp_path / "design")  # fmt: skip
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(StudyError, match="not empty and has no search"):
        rare(tmp_path / "other")
    with pytest.raises(StudyError, match="is a file"):
        rare(tmp_path / "other" / "notes.txt")


def test_cases_that_diverge_are_reported_without_warnings(tmp_path):
    """A warning of our own lines would be an error here."""
    import linkwise as lw
    from linkwise.tour.study_page import study_page

    work = lw.study.Rollouts(lw.models.chain(2), [0.3, -0.4], duration=0.5, step=1e-2)
    keep = ["max:v", "rms:v", "energy.total", "velocity:tip"]
    study = Study(work, {"damping": (0.0, 3.0)}, keep=keep, cases=60, seed=3)
    results = study.run(tmp_path / "study", progress=False)
    worst = results["rms:v[link_2]"]
    assert results.failed > 0 and np.isinf(worst).any() and np.isfinite(worst).any()
    assert np.isinf(lw.study.mean(results, "rms:v[link_2]").value)
    page = study_page(results, tmp_path / "page.html").read_text()
    assert "Probability that" in page and "grows without bounds" in page


TIES = {
    "flat": (lambda a: {"y": np.where(a > 2.0, a, 0.0)}, 4.0, 4.0),
    "whole numbers": (lambda a: {"y": np.floor(a)}, 2.5, 3.0),
    "no ties": (lambda a: {"y": a}, 4.0, 4.0),
}


@pytest.mark.parametrize("kind", TIES)
def test_rare_events_are_not_biased_where_values_tie(kind):
    """The mean of 40 estimates is the exact probability, within three standard errors."""
    function, above, least = TIES[kind]
    study = Study(Calls(function, batched=True), {"a": stats.norm()}, cases=1)
    events = [rare_event(study, "y", above=above, cases=1000, seed=k) for k in range(40)]
    shares = np.array([x.probability.value for x in events]) / stats.norm.sf(least)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    assert abs(shares.mean() - 1.0) < 3.0 * error < 0.25
    covered = [x.probability.low <= stats.norm.sf(least) <= x.probability.high for x in events]
    assert np.mean(covered) > 0.85
    assert all(min(x.values["a"]) > least for x in events)


def test_quantiles_of_few_cases_have_open_intervals(tmp_path):
    """Of 20 cases none is above the 0.99-quantile with probability 0.82: it has no upper bound."""
    missed = 0
    for seed in range(60):
        study = Study(normal(1).work, {"a": stats.norm()}, cases=20, seed=seed)
        results = study.run(tmp_path / str(seed), progress=False)
        top, bottom = quantile(results, "y", [0.99, 0.01])
        assert top.high == np.inf and bottom.low == -np.inf
        assert np.isfinite([top.low, bottom.high]).all()
        missed += not top.low <= stats.norm.ppf(0.99) <= top.high
        missed += not bottom.low <= stats.norm.ppf(0.01) <= bottom.high
    assert missed <= 9  # of 120, at most 2.5 % each
    middle = quantile(results, "y", 0.5)
    ranked = np.sort(results["y"])
    assert (middle.low, middle.high) == (ranked[5], ranked[14])  # a table: P(6 <= K < 15) = 0.959
    assert "to inf, 95 %" in str(top)


@pytest.mark.parametrize("above", [9.0, -9.0])
def test_events_that_never_or_always_happen_have_a_bound(tmp_path, above):
    results = normal(100, propose={"a": stats.norm(0.0, 2.0)}).run(tmp_path, progress=False)
    estimate = probability(results, "y", above=above)
    assert 40.0 < estimate.cases < 100.0
    bound = 0.025 ** (1.0 / estimate.cases)  # of Clopper and Pearson
    if above > 0.0:
        assert (estimate.value, estimate.low) == (0.0, 0.0)
        assert estimate.high == pytest.approx(1.0 - bound)
    else:
        assert (estimate.value, estimate.high) == (1.0, 1.0)
        assert estimate.low == pytest.approx(bound)
