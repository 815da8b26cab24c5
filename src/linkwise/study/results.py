"""Reading a study: a lazy table, trajectories, single cases, estimates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from linkwise.arguments import count
from linkwise.errors import StudyError, unknown_name
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array
from linkwise.study.chunk import loaded
from linkwise.study.folder import TRAJECTORIES, Chunk, Folder, opened
from linkwise.study.study import Study
from linkwise.study.variable import extra


class Records:
    """Records in Zarr whose chunks are compared with their checksums when they are read.

    A chunk that is not computed yet is NaN; one that was, and is damaged or missing, is an error.
    """

    def __init__(self, folder: Folder, name: str, stored: Any) -> None:
        place = f"{TRAJECTORIES}/{name}/c/"
        self.folder, self.stored = folder, stored
        self.shape: tuple[int, ...] = stored.shape
        self.dtype, self.ndim = stored.dtype, stored.ndim
        self.files = {
            k: {file: x for file, x in chunk.files.items() if file.startswith(place)}
            for k, chunk in folder.lines().items()
        }

    def __getitem__(self, key: Any) -> Array:
        """A part, as arrays of NumPy take it.

        Raises:
            StudyError: A file of it is damaged or missing.
        """
        rows: Any = cast("tuple[Any, ...]", key)[0] if isinstance(key, tuple) else key
        every = np.arange(self.shape[0]) // self.folder.chunk
        for index in set(np.atleast_1d(every[rows]).tolist()):
            for file, checksum in self.files.get(index, {}).items():
                if problem := self.folder.problem(file, checksum):
                    raise self.folder.damaged(problem)
        return self.stored[key]


class Results:
    """The results of a study in its folder, read on demand, as they are there at that time.

    results["error"]                     a column (cases,)
    results.dataset                      a lazy table of pyarrow
    results.pandas(), results.polars()   data frames
    results.trajectory("q")              records, an array of xarray
    results.case(17)                     a `lw.Recording` of one case
    """

    def __init__(self, folder: Folder) -> None:
        self._path = folder.path

    @property
    def folder(self) -> Folder:
        """The folder with its manifest, which changes when the study is extended."""
        return opened(self._path)

    @property
    def cases(self) -> int:
        """Cases that were requested."""
        return self.folder.cases

    @property
    def done(self) -> int:
        """Cases that are finished, and whose files are there."""
        return sum(x.end - x.begin for x in self._chunks())

    @property
    def failed(self) -> int:
        """Finished cases that failed; column `reason` says why."""
        return sum(x.failed for x in self._chunks())

    def _chunks(self) -> list[Chunk]:
        folder = self.folder
        missing = folder.problems(check=False)
        return [x for k, x in folder.lines().items() if k not in missing]

    def check(self) -> tuple[str, ...]:
        """What is wrong with the files of finished chunks: all are read and compared.

        Columns and trajectories are checked as they are read, by checksums of their parts; this
        also finds damage in what nobody reads. `dataset` and `polars` of large studies are lazy,
        and other programs may read without checking.

        Returns:
            A line for each damaged chunk; () if all files have their checksums.
        """
        return tuple(self.folder.problems().values())

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.dataset.schema.names)

    @property
    def study(self) -> Study:
        """The study, from its folder. It is unpickled: open only folders that you trust."""
        return loaded(str(self._path.resolve()), self.folder.stamp)[0]

    def __repr__(self) -> str:
        return f"<Results of {self}>"

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.folder.path}: {self.done} of {self.cases} cases{failed}"

    # ------------------------------------------------------------------------------- tables

    @property
    def dataset(self) -> Any:
        """The table as a `pyarrow.dataset`, which reads the requested columns and rows.

        Raises:
            StudyError: No chunk is finished, or a file is missing.
        """
        folder = self.folder
        lines = folder.lines()
        if not lines:
            raise StudyError(f"{folder.path} has no finished chunk yet.")
        names = [x for k in sorted(lines) for x in lines[k].files if x.endswith(".parquet")]
        for name in names:
            if problem := folder.problem(name):
                raise folder.damaged(problem)
        parquet: Any = extra("pyarrow", "pyarrow.dataset", "results of a study")
        options = parquet.ParquetFragmentScanOptions(page_checksum_verification=True)
        kind = parquet.ParquetFileFormat(default_fragment_scan_options=options)
        return parquet.dataset([str(folder.path / x) for x in names], format=kind)

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """Columns as a `pyarrow.Table`, in the order of the cases.

        Args:
            columns: Their names; None for all.
        """
        for name in columns or ():
            self._check(name)
        dataset = self.dataset
        try:
            return dataset.to_table(columns=None if columns is None else list(columns))
        except (OSError, ValueError) as error:  # pyarrow's own errors are these too
            raise self.folder.damaged("; ".join(self.check()[:1]) or str(error)) from None

    def __getitem__(self, name: str) -> Array:
        """A column as an array (cases,); texts as objects."""
        self._check(name)
        return self.table([name]).column(name).to_numpy()

    def _check(self, name: str) -> None:
        if name not in self.columns:
            raise unknown_name("column", name, self.columns, owner=f"{self.folder.path}")

    def pandas(self, columns: Sequence[str] | None = None) -> Any:
        """Columns as a data frame of pandas.

        Args:
            columns: Their names; None for all.
        """
        extra("pandas", "pandas", "a data frame")
        return self.table(columns).to_pandas()

    def polars(self) -> Any:
        """The table as a lazy frame of Polars."""
        polars: Any = extra("polars", "polars", "a lazy frame", named="design")
        return polars.scan_parquet(self.dataset.files)

    def trajectory(self, name: str) -> Any:
        """Records (case, time, entry) of a channel, an array of xarray that is read lazily.

        Args:
            name: The channel, as named in `keep`.
        """
        known = self.folder.manifest["trajectories"]
        if name not in known:
            raise unknown_name("trajectory", name, known, owner=f"{self.folder.path}")
        zarr: Any = extra("zarr", "zarr", "trajectories of a study")
        xarray: Any = extra("xarray", "xarray", "trajectories of a study")
        dask: Any = extra("dask", "dask.array", "trajectories of a study")
        folder = self.folder
        stored = zarr.open_array(str(folder.path / TRAJECTORIES / name), mode="r")
        records = Records(folder, name, stored)
        lazy = dask.from_array(records, chunks=stored.chunks, name=False, fancy=False)
        axes: dict[str, Any] = {
            "case": np.arange(stored.shape[0]),
            "time": np.array(folder.manifest["times"])[: stored.shape[1]],
            "entry": known[name]["labels"],
        }
        return xarray.DataArray(lazy, coords=axes, dims=tuple(axes), name=name)

    def reasons(self, most: int = 10) -> list[tuple[str, int]]:
        """Why cases failed: the most frequent reasons and how many cases each has.

        Args:
            most: How many reasons.
        """
        compute: Any = extra("pyarrow", "pyarrow.compute", "results of a study")
        each = compute.value_counts(self.table(["reason"]).column("reason")).to_pylist()
        counted = [(str(x["values"]), int(x["counts"])) for x in each if x["values"]]
        return sorted(counted, key=lambda x: -x[1])[: count(most, "most", least=1)]

    def case(self, number: int) -> Recording:
        """One case again, as a recording: `lw.view(results.case(17))`.

        Args:
            number: The number of the case, from 0.
        """
        return self.study.case(number)


def load(folder: str | os.PathLike[str]) -> Results:
    """The results of a study that was run before, finished or not.

    Args:
        folder: Its folder.
    """
    return Results(opened(folder))
