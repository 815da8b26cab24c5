"""Files of a study that are damaged or missing: nothing is read as if it were right."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import StudyError, StudyWarning
from linkwise.study import Rollouts, Study, load
from tests.study.test_study import ARM, Q, files

for package in ("pyarrow", "cloudpickle", "zarr", "xarray", "dask.array"):
    pytest.importorskip(package)

COLUMN = f"v[{ARM.velocity_names[1]}]"
PART, RECORDS = "table/part-0000001.parquet", "trajectories/q/c/1/0/0"


def computed(folder: Path) -> tuple[Study, lw.study.Results]:
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2, integrator="euler")
    study = Study(work, {"damping": (0.0, 0.3)}, keep=["v", "trajectory:q"], cases=64)
    return study, study.run(folder, chunk=16, progress=False)


def flipped(path: Path, number: float) -> None:
    """A bit of a number in a file."""
    content = bytearray(path.read_bytes())
    place = bytes(content).index(np.float64(number).tobytes())
    content[place + 6] ^= 0x10
    path.write_bytes(content)


def test_a_flipped_bit_is_an_error(tmp_path):
    study, results = computed(tmp_path)
    assert results.check() == () and (results.done, str(results)[-14:]) == (64, "64 of 64 cases")
    good, right = files(tmp_path), results[COLUMN]
    flipped(tmp_path / PART, right[20])
    flipped(tmp_path / RECORDS, float(results.trajectory("q")[20, 3, 1]))
    again = load(tmp_path)
    readers = [
        lambda: again[COLUMN],
        lambda: again.pandas(),
        lambda: lw.study.quantile(again, COLUMN),
        lambda: again.trajectory("q").values,
        lambda: again.trajectory("q").sel(case=20).values,
        lambda: lw.study.band(again, "q"),
    ]
    for read in readers:
        with pytest.raises(StudyError, match=r"cannot be read.*Run the study again"):
            read()
    with pytest.raises(StudyError, match=f"{PART} does not have its checksum"):
        again.table()
    assert np.isfinite(again.trajectory("q")[:16].values).all()  # others are right
    assert again["damping"].shape == (64,)
    problems = again.check()
    assert len(problems) == 1 and f"{PART} does not have its checksum" in problems[0]
    with pytest.warns(StudyWarning, match="1 chunks .* are damaged"):
        study.run(tmp_path, progress=False)
    assert files(tmp_path) == good and again.check() == ()
    assert np.array_equal(again[COLUMN], right)


def test_missing_files_are_errors(tmp_path):
    study, results = computed(tmp_path)
    (tmp_path / RECORDS).unlink()
    with pytest.raises(StudyError, match=f"{RECORDS} is missing"):
        results.trajectory("q").values  # noqa: B018
    assert results.done == 48 and results.check() == (f"{RECORDS} is missing",)
    (tmp_path / PART).unlink()
    for read in (lambda: results.columns, lambda: results[COLUMN], lambda: results.polars()):
        with pytest.raises(StudyError, match=f"{PART} is missing.*Run the study again"):
            read()
    assert str(results).endswith("48 of 64 cases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StudyWarning)
        assert study.run(tmp_path, progress=False).check() == ()


def test_records_that_are_not_computed_yet_are_nan(tmp_path):
    _, results = computed(tmp_path)
    lines = (tmp_path / "chunks.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / RECORDS).unlink()
    (tmp_path / "chunks.jsonl").write_text("".join(x for x in lines if '"chunk": 1,' not in x))
    q = results.trajectory("q").values
    assert np.isnan(q[16:32]).all() and np.isfinite(np.delete(q, slice(16, 32), axis=0)).all()
    assert results.done == 48 and results.check() == ()


def test_files_that_a_kill_left_are_removed(tmp_path):
    """In every folder: before the first chunk is computed, and those of lost workers at the end."""
    study, _ = computed(tmp_path / "a")
    good = {x.relative_to(tmp_path / "a") for x in (tmp_path / "a").rglob("*")}
    places = ["", "table", "trajectories/q", "trajectories/q/c", "trajectories/q/c/2/0"]
    torn = [tmp_path / "a" / x / ".linkwise-0123456789abcdef" for x in places]

    def tear(what: object = None) -> None:
        for place in torn:
            place.write_bytes(b"torn")

    tear()
    study.run(tmp_path / "a", progress=False)
    assert {x.relative_to(tmp_path / "a") for x in (tmp_path / "a").rglob("*")} == good
    (tmp_path / "a" / PART).unlink()
    with pytest.warns(StudyWarning, match="1 chunks"):
        study.run(tmp_path / "a", progress=tear)
    assert {x.relative_to(tmp_path / "a") for x in (tmp_path / "a").rglob("*")} == good
