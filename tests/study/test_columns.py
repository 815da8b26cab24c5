"""One column has one meaning; the number of cases is what the sampler allows."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import ModelError, ShapeError
from linkwise.study import Calls, Rollouts, Study
from tests.study.test_study import ARM, Q

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")


def test_final_values_of_what_varies_have_their_own_columns(tmp_path):
    """The table has the drawn initial value and the final one."""
    name = ARM.coordinate_names[1]
    study = Study(Rollouts(ARM, Q, duration=0.05, step=1e-2), {f"q[{name}]": (-1.0, 1.0)}, cases=9)
    results = study.run(tmp_path, progress=False)
    drawn, final = results[f"q[{name}]"], results[f"final:q[{name}]"]
    assert np.array_equal(drawn, study.values()[f"q[{name}]"])
    assert np.array_equal(final, [study.case(i).q[-1, 1] for i in range(9)])
    assert np.abs(final - drawn).min() > 1e-4
    assert f"v[{name}]" in results.columns  # velocities do not vary


@pytest.mark.parametrize(
    ("work", "vary", "keep", "reason"),
    [
        (lambda a: {"a": 2 * a}, "a", None, "'a', which is the name of what varies"),
        (lambda a: {"failed": a}, "a", None, "'failed', which is a column of every study"),
        (lambda a: {"reason": a}, "a", None, "'reason', which is a column"),
        (lambda case: case, "case", None, "vary has 'case'"),
        (lambda a: a, "a", {"stopped": lambda batch: batch["a"]}, "keep has 'stopped'"),
        (lambda a: a, "a", {"a": lambda batch: batch["a"]}, "keep has 'a', which is the name"),
        (lambda a: {"b[0]": a, "b": [a, a]}, "a", None, r"two results of the name 'b\[0\]'"),
    ],
)
def test_two_columns_of_one_name_are_refused(tmp_path, work, vary, keep, reason):
    with pytest.raises(ModelError, match=reason):
        Study(work, {vary: (0.0, 1.0)}, keep=keep, cases=3).run(tmp_path / "x", progress=False)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_a_case_that_returns_other_names_fails_alone(tmp_path, chunk):
    def work(a: float) -> dict[str, float]:
        return {"b": a} if a < 0.5 else {"b": a, "c": a} if a < 0.95 else {"c": a}

    study = Study(work, {"a": [0.1, 0.9, 0.2, 1.0]}, sampler="grid")
    results = study.run(tmp_path, chunk=chunk, progress=False)
    columns = results.table(["b", "failed", "reason"]).to_pydict()
    np.testing.assert_array_equal(columns["b"], [0.1, np.nan, 0.2, np.nan])
    assert columns["failed"] == [False, True, False, True]
    assert "a case returned 'c', which others did not" in columns["reason"][1]
    with pytest.raises(ShapeError, match=r"a case (returned|did not return)"):
        study.evaluate({"a": [0.1, 0.9]})


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("batched", [False, True])
def test_a_case_with_records_of_another_length_fails_alone(tmp_path, chunk, batched):
    def records(x: float) -> np.ndarray:
        return np.arange(1.0, 4.0) * x if x < 0.5 else np.array([x])

    def one(x: float) -> dict[str, np.ndarray]:
        return {"y": records(x)}

    def many(x: np.ndarray) -> dict[str, np.ndarray]:
        return {"y": np.stack([records(a) for a in x])}

    work = Calls(many, batched=True) if batched else Calls(one)
    study = Study(work, {"x": [0.4, 0.6, 0.45]}, keep=["trajectory:y"], sampler="grid")
    results = study.run(tmp_path, chunk=chunk, progress=False)
    y = results.trajectory("y")
    np.testing.assert_allclose(np.asarray(y)[0].ravel(), [0.4, 0.8, 1.2])
    np.testing.assert_allclose(np.asarray(y)[2].ravel(), [0.45, 0.9, 1.35])
    assert np.isnan(np.asarray(y)[1]).all()
    assert results.table(["failed"])["failed"].to_pylist() == [False, True, False]


def test_two_names_of_one_number_are_refused():
    work, name = Rollouts(ARM, Q, duration=0.02, step=1e-2), ARM.velocity_names[0]
    for other in (f"damping[{name}]", "scale:damping"):
        with pytest.raises(ModelError, match=r"'damping' and '.*', which set the same number"):
            Study(work, {"damping": (0.0, 1.0), other: (0.0, 1.0)}, cases=3)
    one = {f"damping[{name}]": (0.0, 1.0), "damping[1]": (0.0, 1.0)}
    assert Study(work, one, cases=3).names == tuple(one)


def test_the_number_of_cases_is_checked_when_it_changes():
    work = Rollouts(ARM, Q, duration=0.02, step=1e-2)
    lists, interval = {"damping": [0.0, 0.1, 0.2]}, {"damping": (0.0, 1.0)}
    with pytest.raises(ModelError, match="cases is 5; this grid has 3"):
        Study(work, lists, sampler="grid").with_cases(5)
    table = Study(work, lists, sampler="table")
    assert table.with_cases(2).values()["damping"].tolist() == [0.0, 0.1]
    with pytest.raises(ModelError, match="cases is 40; this table has 3"):
        table.with_cases(40)
    for sampler, group in (("saltelli", 3), ("morris", 2)):
        study = Study(work, interval, sampler=sampler, cases=group)
        assert study.with_cases(5 * group).cases == 5 * group
        with pytest.raises(ModelError, match=f"needs a multiple of {group}"):
            study.with_cases(5 * group + 1)
    for sampler, most in (("random", 2**32 - 1), ("sobol", 2**30)):
        study = Study(work, interval, sampler=sampler, cases=4)
        assert study.with_cases(most).cases == most
        with pytest.raises(ModelError, match=f"at most {most}"):
            study.with_cases(most + 1)
