"""A data set for learning inverse dynamics: states and torques of an arm as Parquet.

Rows are random states with the torques of `lw.inverse_dynamics`. A linear model in the columns of
the regressor, fitted to some rows, predicts the torques of others exactly: the data are right.
"""

import tempfile

import numpy as np

import linkwise as lw

ARM = lw.models.chain(3)


def sample(**x):
    """Torques of states: arrays (cases,) by name."""
    q, v, a = (np.stack([x[f"{kind}{i}"] for i in range(ARM.nv)], axis=1) for kind in "qva")
    return {"tau": lw.inverse_dynamics(ARM, q, v, a)}


def main(cases: int = 5000) -> None:
    """Write the data set, read it back, learn."""
    spans = {"q": 3.0, "v": 2.0, "a": 5.0}
    vary = {f"{kind}{i}": (-w, w) for kind, w in spans.items() for i in range(ARM.nv)}
    study = lw.Study(lw.study.Calls(sample, batched=True), vary, cases=cases, sampler="sobol")
    results = study.run(tempfile.mkdtemp(), progress=False)
    frame = results.table()
    print(frame.num_rows, "rows,", len(frame.column_names), "columns")
    parts = [np.stack([results[f"{k}{i}"] for i in range(ARM.nv)], axis=1) for k in "qva"]
    tau = np.stack([results[f"tau[{i}]"] for i in range(ARM.nv)], axis=1)
    rows = np.asarray(lw.regressor(ARM, *parts))
    half = cases // 2
    known = np.linalg.lstsq(rows[:half].reshape(-1, rows.shape[-1]), tau[:half].ravel(), rcond=None)
    error = np.abs(rows[half:] @ known[0] - tau[half:]).max()
    print(f"largest error of the model on the other half: {error:.1e} N m")
    assert error < 1e-8


if __name__ == "__main__":
    main()
