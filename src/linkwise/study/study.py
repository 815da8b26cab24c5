"""A study: what varies, what runs, what is kept, how many cases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.arguments import count, mapping, option
from linkwise.errors import ModelError, ShapeError, StudyError, unknown_name
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array, floats
from linkwise.study.address import unknown
from linkwise.study.calls import Calls, Simulations
from linkwise.study.content import described, fingerprint
from linkwise.study.kept import (
    Evaluated,
    Keep,
    Kept,
    Layout,
    check_columns,
    checked_keep,
    lost,
    merged,
)
from linkwise.study.rollouts import Rollouts, Work
from linkwise.study.sampling import (
    SAMPLERS,
    Sampler,
    Sampling,
    checked_cases,
    checked_correlation,
)
from linkwise.study.variable import EXAMPLE, Variable, Varied, variable, variables

if TYPE_CHECKING:
    from linkwise.study.plan import Plan
    from linkwise.study.results import Results

STEPS_OF_A_CHUNK = 2_000_000
"""About a second of work for a processor core; less would be spent on files and messages."""

SMALLEST, LARGEST = 16, 16384
"""Cases of a chunk."""

ON_GPU = 8
"""How much larger chunks are for a GPU, which moves some ten thousand cases at a time."""

TRIALS = 64
"""Cases that are tried until one runs and shows which columns there are."""

READ = "this study: it has no place, and `setup` does not read it"
"""Of a name that nothing takes."""

SPREAD = np.linspace(1e-9, 1.0 - 1e-9, 1001)
"""Quantiles at which a proposal must have a density."""

MEMORY = 64_000_000
"""Bytes of the records of a chunk, at most."""


@dataclass(frozen=True, eq=False)
class Study:
    """Many cases of a mechanism: what varies, what runs, what is kept, how many.

        study = lw.Study(
            lw.study.Rollouts(arm, q, duration=0.2, controller=(law, goal)),
            vary={"payload:hand": (0.0, 3.0), "scale:damping": scipy.stats.lognorm(0.3)},
            keep=["position:hand", "max:v"],
            cases=1_000_000,
        )
        results = study.run("payload_study")

    The values of a case depend on the seed and its number alone, from counters: any case can be
    computed again by itself (`study.case(17)`), with the same bits in any chunk, order and process.

    Attributes:
        work: What runs: `Rollouts`, `Simulations` or `Calls`; a function is taken as `Calls`.
        sampling: The values of what varies, by case number.
        kept: What is kept.
    """

    work: Work
    sampling: Sampling
    kept: tuple[Kept, ...]

    def __init__(
        self,
        work: Rollouts | Simulations | Calls | Any,
        vary: Mapping[str, Varied],
        *,
        keep: Keep | None = None,
        cases: int | None = None,
        seed: int = 0,
        sampler: Sampler = "random",
        correlate: Mapping[tuple[str, str], float] | None = None,
        propose: Mapping[str, Varied] | None = None,
    ) -> None:
        """Describe a study; nothing runs yet.

        Args:
            work: What runs.
            vary: What varies, by name: a frozen distribution of `scipy.stats`, (low, high), a list
                of values or a number; for "table" columns of equal length.
            keep: Names of channels with statistics, or a dictionary of names and functions of a
                batch. None keeps all results of a function, and final q and v of motions.
            cases: How many; None for all of a grid or table.
            seed: Of all random numbers, those of the noise of rollouts too.
            sampler: "random", "sobol", "latin", "grid", "table", "saltelli" (for Sobol indices) or
                "morris".
            correlate: Correlations of normal scores by pairs of names (a Gaussian copula).
            propose: Distributions to draw from instead of those in `vary`, for rare events: cases
                get a weight, and estimates stay those of `vary`.

        Raises:
            ModelError: Something that does not fit.
            UnknownNameError: A name that the work does not know.
        """
        if not isinstance(work, Rollouts | Simulations | Calls):
            if not callable(work):
                raise ModelError(
                    f"work is {type(work).__name__}; it must be lw.study.Rollouts(...), "
                    "lw.study.Simulations(...), lw.study.Calls(...) or a function."
                )
            work = Calls(cast(Any, work))
        option(sampler, SAMPLERS, "sampler")
        seed = count(seed, "seed", most=(1 << 63) - 1)
        table = None
        if sampler == "table":
            each, table = _table(vary)
        else:
            each = variables(vary)
        if not each:
            raise ModelError(f"vary is empty; it must be like {EXAMPLE}.")
        names = tuple(x.name for x in each)
        cases = checked_cases(sampler, cases, each, None if table is None else len(table))
        if table is not None:
            table = table[:cases]
        if sampler in ("grid", "table", "saltelli", "morris") and (correlate or propose):
            raise ModelError(f"correlate and propose do not go with the sampler {sampler!r}.")
        proposal = dict[int, Variable]()
        for name, given in mapping(propose or {}, "propose", EXAMPLE).items():
            if name not in names:
                raise unknown_name("variable", name, names, owner="vary")
            proposal[names.index(name)] = drawn = variable(name, given)
            if np.isneginf(drawn.log_density(each[names.index(name)].at(SPREAD))).any():
                raise ModelError(
                    f"propose[{name!r}] is {drawn.text} and never draws some values of "
                    f"{each[names.index(name)].text}: estimates would be wrong. It must cover them."
                )
        correlation = checked_correlation(names, correlate)
        if correlation is not None and proposal:
            raise ModelError("correlate and propose cannot both be given.")
        chosen: Any = keep
        if keep is None and not isinstance(work, Calls):
            chosen = ["q", "v"]
        check_columns(names, (), "vary has")
        kept = checked_keep(chosen, names)
        work.check(names, kept)
        object.__setattr__(self, "work", work)
        sampling = Sampling(each, sampler, cases, seed, correlation, proposal, table)
        object.__setattr__(self, "sampling", sampling)
        object.__setattr__(self, "kept", kept)

    # ------------------------------------------------------------------------------- reading

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return self.sampling.cases

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.sampling.seed

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what varies."""
        return self.sampling.names

    @property
    def description(self) -> dict[str, Any]:
        """The request as JSON: everything that results depend on."""
        s = self.sampling
        vary: dict[str, Any] = {x.name: x.text for x in s.variables}
        if s.table is not None:
            vary = {"columns": list(s.names), "rows": s.table}
        kept = {
            x.name if x.statistic != "trajectory" else f"trajectory:{x.name}": x.function
            or f"{x.statistic}:{x.channel}"
            for x in self.kept
        }
        request: dict[str, Any] = {
            "run": self.work.description,
            "vary": vary,
            "keep": kept,
            "sampler": s.sampler,
            "seed": s.seed,
            "cases": s.cases,
        }
        if s.correlation is not None:
            request["correlate"] = s.correlation
        if s.proposal:
            request["propose"] = {x.name: x.text for x in s.proposal.values()}
        return described(request)

    @property
    def digest(self) -> str:
        """The checksum of the request, without the number of cases."""
        return fingerprint({k: x for k, x in self.description.items() if k != "cases"})

    def __repr__(self) -> str:
        return f"<Study of {self}>"

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"{self.cases} cases ({self.sampling.sampler}, seed {self.seed}) over {names}"

    def with_cases(self, cases: int) -> Study:
        """The same study with another number of cases.

        Args:
            cases: How many; of a table at most its rows.

        Raises:
            ModelError: The sampler has another number of cases, or needs a multiple.
        """
        s = self.sampling
        table = s.table
        cases = checked_cases(s.sampler, cases, s.variables, None if table is None else len(table))
        changed = object.__new__(Study)
        object.__setattr__(changed, "work", self.work)
        sampling = replace(s, cases=cases, table=None if table is None else table[:cases])
        object.__setattr__(changed, "sampling", sampling)
        object.__setattr__(changed, "kept", self.kept)
        return changed

    # ----------------------------------------------------------------------------- computing

    def values(self, begin: int = 0, end: int | None = None) -> dict[str, Array]:
        """What varies in cases begin..end, by name (cases,).

        Args:
            begin: The first case.
            end: The case after the last one; None for all.
        """
        end = self.cases if end is None else count(end, "end", most=self.cases)
        begin = count(begin, "begin", most=end)
        array = self.sampling.values(begin, end)
        return {x: array[:, i] for i, x in enumerate(self.names)}

    def evaluate(
        self,
        values: Mapping[str, Any],
        *,
        first: int = 0,
        threads: int | None = None,
        layout: Layout | None = None,
    ) -> Evaluated:
        """Compute cases of given values, by name (cases,).

        A batch that raises is halved until the cases are found that cause it: they fail with that
        reason, and the others are computed.

        Args:
            values: What varies.
            first: Number of the first case, for the noise.
            threads: Processor cores for a batch of motions; None for a choice by its size.
            layout: What each case has to return; those that return anything else fail.

        Raises:
            UnknownNameError: A name that does not vary.
            ModelError: A name is missing.
            ShapeError: Different numbers of cases; or cases return different things.
        """
        given = mapping(values, "values", "{'payload:hand': [0.0, 1.0]}")
        for name in given:
            if name not in self.names:
                raise unknown_name("variable", name, self.names, owner="the study")
        if missing := [x for x in self.names if x not in given]:
            raise ModelError(f"values has no {missing[0]!r}; it needs {', '.join(self.names)}.")
        arrays = {x: np.atleast_1d(floats(given[x], x)) for x in self.names}
        size = max(len(x) for x in arrays.values())
        if any(x.ndim != 1 or len(x) not in (1, size) for x in arrays.values()):
            shapes = ", ".join(f"{k!r} has {x.shape}" for k, x in arrays.items())
            raise ShapeError(f"values must be one number a case each, and as many: {shapes}.")
        arrays = {k: np.ascontiguousarray(np.broadcast_to(x, size)) for k, x in arrays.items()}
        if not size:
            raise ModelError("values are empty: there is no case to compute.")
        return self._computed(arrays, first, threads, layout)

    def _computed(
        self,
        values: dict[str, Array],
        first: int,
        threads: int | None,
        layout: Layout | None = None,
    ) -> Evaluated:
        try:
            result = self.work.batch(values, first, self.kept, threads, self.seed)
            if layout is not None:
                layout.check(result)
            return result
        except (MemoryError, OSError, StudyError):  # not of a case
            raise
        except Exception as error:
            n = len(next(iter(values.values())))
            if n == 1:
                return lost([f"{type(error).__name__}: {error}"])
            half = n // 2
            parts = [
                self._computed({k: x[:half] for k, x in values.items()}, first, threads, layout),
                self._computed(
                    {k: x[half:] for k, x in values.items()}, first + half, threads, layout
                ),
            ]
            return merged(parts)

    def trial(self) -> Evaluated:
        """One case, to learn columns and sizes: case 0, else the medians, else the next that runs.

        Raises:
            LinkwiseError: The medians and the first cases fail: the request itself is wrong. Or a
                result has the name of another column, or nothing takes something that varies.
        """
        sample = self._sample()
        for name in self.work.unread(self.values(0, min(self.cases, TRIALS))):
            raise unknown(name, READ)
        check_columns(sample.columns, self.names, "a case returns")
        return sample

    def _sample(self) -> Evaluated:
        first = self._computed(self.values(0, 1), 0, 1)
        if not first.reasons[0] or first.columns:
            return first
        s = self.sampling
        row = (
            s.values(0, 1)
            if s.sampler in ("grid", "table")
            else s.at(np.full((1, len(s.names)), 0.5))
        )
        values = {x: row[:, i] for i, x in enumerate(self.names)}
        middle = self._computed(values, 0, 1)
        if not middle.reasons[0] or middle.columns:
            return middle
        for i in range(1, min(self.cases, TRIALS)):
            sample = self._computed(self.values(i, i + 1), i, 1)
            if not sample.reasons[0] or sample.columns:
                return sample
        self.work.batch(values, 0, self.kept, 1)  # raises the error itself, unless cases run alone
        raise ModelError(
            f"the medians and all of the first {min(self.cases, TRIALS)} cases fail, case 0 with: "
            f"{first.reasons[0]}"
        )

    def case(self, number: int) -> Recording:
        """One case again, as a recording with everything that happens: `lw.view(study.case(17))`.

        Args:
            number: The number of the case, from 0.
        """
        number = count(number, "the number of a case", most=self.cases - 1)
        return self.work.recording(self.values(number, number + 1), number, self.seed)

    @property
    def on_gpu(self) -> bool:
        """Whether kernels of CUDA move the cases."""
        return isinstance(self.work, Rollouts) and self.work.options.get("target") == "cuda"

    def chunk_size(self, sample: Evaluated) -> int:
        """Cases of a chunk: about a second of work, and at most `MEMORY` bytes of records."""
        steps = max(1, self.work.steps)
        more = ON_GPU if self.on_gpu else 1
        size = more * STEPS_OF_A_CHUNK // steps
        records = len(sample.t) if any(x.needs_records for x in self.kept) else 2
        wide = sum(x.shape[-1] for x in sample.trajectories.values()) + len(sample.columns) + 16
        size = min(size, MEMORY // (8 * wide * max(records, 2)))
        least = 1 if isinstance(self.work, Simulations) else SMALLEST
        size = max(least, min(size, more * LARGEST))
        return size // SMALLEST * SMALLEST or size

    def plan(self, *, workers: int | str | Any = None, chunk: int | None = None) -> Plan:
        """What `run` with these arguments will need: chunks, memory and disk. One case is computed.

        Args:
            workers: As for `run`.
            chunk: As for `run`.

        Returns:
            The estimate, which is printed as a sentence.
        """
        from linkwise.study.engine import plan

        return plan(self, workers=workers, chunk=chunk)

    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        workers: int | str | Any = None,
        chunk: int | None = None,
        progress: Any = None,
    ) -> Results:
        """Compute all cases that the folder does not have yet, and read the results.

        A study that was interrupted, by Ctrl-C, an error or kill -9, goes on with the same call and
        ends with the same files as one that was not. With more cases the same study is extended.

        Args:
            folder: Where results go; made if it does not exist.
            workers: None for this process: all of its cores for rollouts, one for simulations and
                functions, which run Python; a number of processes, on a `LocalCluster` of Dask; the
                address of a scheduler, a cluster or a `dask.distributed.Client`, of any cluster
                whose workers see the folder.
            chunk: Cases of a chunk; default: about a second of work. A folder keeps the size it was
                begun with.
            progress: True prints a line with rate and time left; a function is called with a
                `Progress`; None prints if the terminal is one.

        Returns:
            The results.

        Raises:
            StudyError: The folder has another study (says what differs), is in use, or chunks could
                not be computed.
        """
        from linkwise.study.engine import run

        return run(self, folder, workers=workers, chunk=chunk, progress=progress)


def _table(vary: Any) -> tuple[tuple[Variable, ...], Array]:
    """Columns of equal length, from a dictionary or a data frame."""
    keys: Any = cast(Any, vary) if isinstance(vary, Mapping) else getattr(vary, "columns", None)
    if keys is None:
        raise ModelError("vary must be a dictionary of columns or a data frame for a table.")
    rows = cast(Any, vary)
    columns = {str(k): floats(np.asarray(rows[k]), f"column {k!r}") for k in keys}
    lengths = {x.shape for x in columns.values()}
    if len(lengths) != 1 or any(len(x) != 1 or not x[0] for x in lengths):
        shapes = ", ".join(f"{k!r} {x.shape}" for k, x in columns.items())
        raise ModelError(f"the columns of a table must have one length: {shapes}.")
    each = tuple(Variable(name) for name in columns)
    return each, np.stack(list(columns.values()), axis=1)
