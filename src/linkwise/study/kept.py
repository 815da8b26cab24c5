"""What is kept of each case: final values, statistics over time, functions, whole trajectories.

| in `keep` | column |
| --- | --- |
| `"position:hand"` | the channel at the end: `position:hand[x]`, ... |
| `"max:v"`, `min`, `mean`, `rms`, `peak`, `initial`, `final` | that statistic over the records |
| `"trajectory:q"` | the whole channel, in the Zarr array `q` |
| `{"error": function}` | function(batch), an array (cases,) or (cases, n) |

Where entries of a channel vary too (`q[elbow]` in `vary`), that column has what was drawn, and the
channel at the end is `final:q[elbow]`. Columns that every table has (`RESERVED`) are no names.

`peak` is the largest absolute value. Statistics look at the records: every step, unless
`record_every` is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import shown
from linkwise.errors import ModelError, ShapeError
from linkwise.spatial.array import Array

TRAJECTORY = "trajectory"

STATISTICS: dict[str, Callable[[Array], Array]] = {
    "final": lambda x: x[:, -1],
    "initial": lambda x: x[:, 0],
    "max": lambda x: x.max(axis=1),
    "min": lambda x: x.min(axis=1),
    "mean": lambda x: x.mean(axis=1),
    "rms": lambda x: np.sqrt((x * x).mean(axis=1)),
    "peak": lambda x: np.abs(x).max(axis=1),
}
"""From records (cases, k, n) to (cases, n)."""

RESERVED = ("case", "log_weight", "end_time", "failed", "stopped", "reason")
"""Columns that each table has of itself."""

Keep: TypeAlias = Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Cases that were computed together.

    Attributes:
        values: What varies, by name (cases,).
        t: Times of the records (k,) [s].
        channel: Function from the name of a channel to its values (cases, k, n) and labels.
    """

    values: Mapping[str, Array]
    t: Array
    channel: Callable[[str], tuple[Array, tuple[str, ...]]]

    def __getitem__(self, name: str) -> Array:
        """A channel (cases, k, n), or what varies (cases,)."""
        return self.values[name] if name in self.values else self.channel(name)[0]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What is kept of some cases.

    Attributes:
        columns: Numbers by name (cases,).
        trajectories: Records by name (cases, k, n).
        labels: Labels of the last axis of a trajectory, by name.
        t: Times of the records (k,) [s].
        reasons: Why a case failed, "" for one that did not.
        ends: When motions ended [s] (cases,).
        stops: Names of the conditions that ended them, "" for none.
    """

    columns: dict[str, Array]
    trajectories: dict[str, Array]
    labels: dict[str, tuple[str, ...]]
    t: Array
    reasons: list[str]
    ends: Array
    stops: list[str]

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which cases failed (cases,)."""
        return lost_cases(self.reasons)

    def failing(self, reasons: Sequence[str]) -> Evaluated:
        """The same without the cases that have a reason, which fail for it."""
        bad = lost_cases(reasons)
        each = zip(reasons, self.reasons, self.stops, strict=True)
        both = [(x or y, "" if x else z) for x, y, z in each]
        return Evaluated(
            {k: np.where(bad, np.nan, x) for k, x in self.columns.items()},
            {k: np.where(bad[:, None, None], np.nan, x) for k, x in self.trajectories.items()},
            self.labels,
            self.t,
            [x for x, _ in both],
            np.where(bad, np.nan, self.ends),
            [x for _, x in both],
        )

    def taken(self, count: int) -> Evaluated:
        """The first cases alone."""
        return Evaluated(
            {k: x[:count] for k, x in self.columns.items()},
            {k: x[:count] for k, x in self.trajectories.items()},
            self.labels,
            self.t,
            self.reasons[:count],
            self.ends[:count],
            self.stops[:count],
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """What every case of a study returns.

    Attributes:
        columns: Names of its numbers.
        records: Shapes (n, k) of its trajectories, by name.
    """

    columns: tuple[str, ...]
    records: Mapping[str, tuple[int, ...]]

    def check(self, result: Evaluated) -> None:
        """Raise a ShapeError for cases that return anything else."""
        if result.failed.all():
            return
        rule = f"all cases must return the same: {', '.join([*self.columns, *self.records])}"
        for name in (*result.columns, *result.trajectories):
            if name not in self.columns and name not in self.records:
                raise ShapeError(f"a case returned {name!r}, which others did not; {rule}.")
        for name in (*self.columns, *self.records):
            if name not in result.columns and name not in result.trajectories:
                raise ShapeError(f"a case did not return {name!r}; {rule}.")
        for name, shape in self.records.items():
            if result.trajectories[name].shape[1:] != shape:
                raise ShapeError(
                    f"a case returned records {name!r} of shape "
                    f"{result.trajectories[name].shape[1:]}, others of {shape}; all must be alike."
                )


def merged(parts: Sequence[Evaluated]) -> Evaluated:
    """Cases one after another; columns of parts in which all failed are NaN.

    Raises:
        ShapeError: Columns or records differ from part to part.
    """
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(x for part in parts for x in part.columns)
    models = {k: x for part in reversed(parts) for k, x in part.trajectories.items()}
    labels = {k: x for part in reversed(parts) for k, x in part.labels.items()}

    alike = Layout(tuple(names), {k: x.shape[1:] for k, x in models.items()})
    for part in parts:
        alike.check(part)

    def column(part: Evaluated, name: str) -> Array:
        return part.columns.get(name, np.full(len(part), np.nan))

    def records(part: Evaluated, name: str) -> Array:
        shape = models[name].shape[1:]
        return part.trajectories.get(name, np.full((len(part), *shape), np.nan))

    return Evaluated(
        {n: np.concatenate([column(x, n) for x in parts]) for n in names},
        {n: np.concatenate([records(x, n) for x in parts]) for n in models},
        labels,
        max((x.t for x in parts), key=len),
        [y for x in parts for y in x.reasons],
        np.concatenate([x.ends for x in parts]),
        [y for x in parts for y in x.stops],
    )


def lost_cases(reasons: Sequence[str]) -> NDArray[np.bool_]:
    """Which cases have a reason (cases,)."""
    if not any(reasons):
        return np.zeros(len(reasons), bool)
    return np.fromiter(map(bool, reasons), bool, len(reasons))


def lost(reasons: Sequence[str]) -> Evaluated:
    """Cases that failed, for these reasons."""
    n = len(reasons)
    return Evaluated({}, {}, {}, np.zeros(0), list(reasons), np.full(n, np.nan), [""] * n)


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing to keep.

    Attributes:
        name: Of its columns or its trajectory.
        channel: Name of the channel; "" for a function.
        statistic: One of `STATISTICS`, or "trajectory".
        function: From a `Batch` to numbers (cases,) or (cases, n); None for a channel.
    """

    name: str
    channel: str = ""
    statistic: str = "final"
    function: Any = field(default=None, compare=False)

    @property
    def needs_records(self) -> bool:
        """Whether it looks at more than the beginning and the end."""
        return self.function is not None or self.statistic not in ("final", "initial")


def checked_keep(keep: Keep | str | None, varied: Sequence[str] = ()) -> tuple[Kept, ...]:
    """What to keep, from names, or a dictionary of names and functions.

    Where entries of a channel vary, its final values are named "final:CHANNEL": the table has both.

    Args:
        varied: Names of what varies, which have columns too.

    Raises:
        ModelError: Something else, one name twice, or that of another column.
    """
    if keep is None:
        return ()
    if isinstance(keep, str):
        keep = [keep]
    pairs: Any = keep.items() if isinstance(keep, Mapping) else [(None, x) for x in keep]
    result = list[Kept]()
    for name, what in pairs:
        if callable(what):
            if not isinstance(name, str):
                raise ModelError("keep has a function without a name: {'name': function}.")
            result.append(Kept(name, function=what))
            continue
        if not isinstance(what, str) or not what:
            raise ModelError(
                f"keep has {shown(what)}; it must be the name of a channel, like 'q', "
                "'max:v' or 'trajectory:position:hand', or a function of a batch."
            )
        head, _, rest = what.partition(":")
        is_statistic = rest and (head in STATISTICS or head == TRAJECTORY)
        channel = rest if is_statistic else what
        statistic = head if is_statistic else "final"
        plain = channel if statistic == TRAJECTORY else what
        if plain == what and any(x == what or x.startswith(f"{what}[") for x in varied):
            plain = f"final:{what}"
        result.append(Kept(name or plain, channel, statistic))
    columns = [x.name for x in result if x.statistic != TRAJECTORY]
    arrays = [x.name for x in result if x.statistic == TRAJECTORY]
    for names in (columns, arrays):
        twice = [x for x in names if names.count(x) > 1]
        if twice:
            raise ModelError(f"keep has {twice[0]!r} twice; give one of them another name.")
    check_columns(columns, varied, "keep has")
    return tuple(result)


def check_columns(names: Iterable[str], varied: Sequence[str], owner: str) -> None:
    """Raise if a result has the name of another column of the table.

    Args:
        names: Of results.
        varied: Of what varies.
        owner: Who named them, with a verb.
    """
    for name in names:
        if name in varied:
            raise ModelError(
                f"{owner} {name!r}, which is the name of what varies: the table has one column of "
                "a name. Give the result another one."
            )
        if name in RESERVED:
            raise ModelError(
                f"{owner} {name!r}, which is a column of every study, like "
                f"{', '.join(x for x in RESERVED if x != name)}. Give it another name."
            )


def _called(one: Kept, batch: Batch) -> Any:
    """What a function of `keep` gives."""
    try:
        value = one.function(batch)
    except (AttributeError, LookupError, TypeError) as error:
        raise ModelError(
            f"keep[{one.name!r}] raised {type(error).__name__}: {error}. It is called with a "
            "lw.study.Batch: batch['q'] is a channel (cases, records, n), batch.values has what "
            "varies, and batch.t the times of the records."
        ) from error
    if value is None:
        raise ModelError(f"keep[{one.name!r}] returned None; it must return an array (cases,).")
    return value


@np.errstate(over="ignore", invalid="ignore")  # of cases that diverge: their numbers say so
def reduced(
    batch: Batch,
    kept: Sequence[Kept],
    reasons: Sequence[str],
    ends: Array,
    stops: Sequence[str],
) -> Evaluated:
    """What is kept of a batch; numbers of failed cases are NaN, those of trajectories stay."""
    columns, trajectories = dict[str, Array](), dict[str, Array]()
    labels, count = dict[str, tuple[str, ...]](), len(reasons)
    failed = lost_cases(reasons)
    for one in kept:
        if one.function is not None:
            value = np.asarray(_called(one, batch), np.float64)
            if value.ndim not in (1, 2) or len(value) != count:
                raise ShapeError(
                    f"keep[{one.name!r}] returned an array of shape {value.shape}; it must be "
                    f"({count},) or ({count}, n): one row for each case of the batch."
                )
            value = value if value.ndim == 2 else value[:, None]
            names = tuple(str(i) for i in range(value.shape[1]))
        else:
            records, names = batch.channel(one.channel)
            records = records.reshape(*records.shape[:2], -1)
            if one.statistic == TRAJECTORY:
                trajectories[one.name], labels[one.name] = records, names
                continue
            value = STATISTICS[one.statistic](records)
        value = np.where(failed[:, None], np.nan, value) if failed.any() else value
        single = value.shape[1] == 1
        for j in range(value.shape[1]):
            name = one.name if single else f"{one.name}[{names[j]}]"
            if name in columns:
                raise ModelError(f"keep has two results of the name {name!r}; rename one of them.")
            columns[name] = value[:, j]
    return Evaluated(columns, trajectories, labels, batch.t, list(reasons), ends, list(stops))
