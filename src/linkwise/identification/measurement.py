"""Measurements from files: columns with the names of the joints.

A table has the column `t` [s], and for each joint `q[NAME]` and `tau[NAME]`, perhaps `v[NAME]` and
`vdot[NAME]`: what `Recording.save("run.csv")` writes. Where a joint has no `tau[NAME]`, its motor
current or command is `u[NAME]`. Forces at nodes, such as those of a load cell, are `f[NODE].0` to
`f[NODE].5`: a moment and a force. Units behind the name, as in `q[elbow] [rad]`, are left out; deg,
mm, ms and the like are refused. Further columns are left out, those of other joints with a warning.
Cells of a CSV file are separated by commas, semicolons or tabs. Empty cells are gaps.
"""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import path as checked_path
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import MissingExtraError, ModelError, ParseError, TroubleWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

KINDS = ("q", "v", "vdot", "tau")

HEADS = tuple(f"{kind}[" for kind in (*KINDS, "u", "f"))
"""Of the columns that are read, besides `t`."""

OTHER_UNITS = (
    "ms",
    "us",
    "min",
    "deg",
    "degree",
    "degrees",
    "°",
    "deg/s",
    "°/s",
    "rpm",
    "mm",
    "cm",
)
OTHER_UNITS += ("deg/s²", "deg/s^2", "mnm", "mn m", "ncm", "n cm", "nmm", "n mm", "knm", "kn", "mn")
"""Units behind a name that are refused, in lower case."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measured motions of a mechanism; NaN where a cell is empty.

    Attributes:
        t: Times (samples,) [s].
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv), or None if there are none in the file.
        vdot: Joint accelerations (samples, nv), or None.
        tau: Joint forces (samples, nv) [N or N m], motor currents of those that are `commanded`;
            or None.
        forces: Forces at nodes by name, (moment, force) (samples, 6) [N m, N].
        commanded: Names of the joints with motor currents or commands.
    """

    t: Array
    q: Array
    v: Array | None
    vdot: Array | None
    tau: Array | None
    forces: dict[str, Array]
    commanded: tuple[str, ...] = ()


def load_measurements(mech: Mechanism, path: str | Path) -> Measurements:
    """Read measurements from a table, CSV or Parquet.

    Args:
        mech: The mechanism whose joints were measured.
        path: A file with the columns `t`, `q[JOINT]`, `tau[JOINT]`, and perhaps `v[JOINT]` and
            `vdot[JOINT]`, such as a recording saved as CSV; `u[JOINT]` for motor currents; and
            `f[NODE].0` to `f[NODE].5` for forces at nodes.

    Raises:
        ParseError: A cell that is not a number, or a table that cannot be read.
        ModelError: A column is missing, or a node is unknown; names it.
        MissingExtraError: A Parquet file, and PyArrow is not installed (extra `study`).
    """
    check_mechanism(mech)
    if not mech.nv:
        raise ModelError(f"{mech.name!r} does not move; there is nothing to measure.")
    file = Path(checked_path(path, "path"))
    columns = _parquet(file) if file.suffix.lower() in (".parquet", ".pq") else _csv(file)
    table = _named(columns, file)
    if "t" not in table:
        raise ModelError(
            f"{file} has no column 't', the times in seconds; it has {', '.join(list(table)[:8])}."
        )
    arrays, commanded = dict[str, Array | None](), list[str]()
    for name in mech.velocity_names:
        if f"tau[{name}]" not in table and f"u[{name}]" in table:
            table[f"tau[{name}]"] = table[f"u[{name}]"]
            commanded.append(name)
    for kind in KINDS:
        names = mech.coordinate_names if kind == "q" else mech.velocity_names
        columns = [f"{kind}[{name}]" for name in names]
        missing = [x for x in columns if x not in table]
        if missing and (kind == "q" or len(missing) < len(columns)):
            raise ModelError(
                f"{file} has no column {missing[0]!r}; it has {', '.join(list(table)[:8])}. Name "
                f"the columns after the joints of {mech.name!r}: {', '.join(columns[:4])} ..."
                + (" A joint without a motor has zeros." if kind == "tau" else "")
            )
        arrays[kind] = None if missing else np.stack([table[x] for x in columns], axis=-1)
    q = arrays["q"]
    assert q is not None
    _report_unknown(mech, table, file)
    forces = _forces(mech, table, file)
    some = q, arrays["v"], arrays["vdot"], arrays["tau"]
    return Measurements(table["t"], *some, forces, tuple(commanded))


def _report_unknown(mech: Mechanism, table: dict[str, Array], file: Path) -> None:
    """Warn about columns of joints that the mechanism does not have."""
    known = {f"{kind}[{x}]" for kind in (*KINDS, "u") for x in mech.velocity_names}
    known |= {f"q[{x}]" for x in mech.coordinate_names}
    heads = tuple(f"{kind}[" for kind in (*KINDS, "u"))
    others = [x for x in table if x.startswith(heads) and x not in known]
    if others:
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        warnings.warn(
            f"{file} has columns of no joint of {mech.name!r}, which are left out: "
            f"{', '.join(others[:4])}{more}. Its joints are {', '.join(mech.velocity_names[:8])}.",
            TroubleWarning,
            stacklevel=caller(),
        )


def _forces(mech: Mechanism, table: dict[str, Array], file: Path) -> dict[str, Array]:
    """Forces at nodes (samples, 6) by name."""
    forces = dict[str, Array]()
    for column in table:
        if not (column.startswith("f[") and "]." in column):
            continue
        node = column[2:].partition("].")[0]
        if node in forces:
            continue
        mech.node(node)  # raises for an unknown name
        parts = [f"f[{node}].{i}" for i in range(6)]
        for part in parts:
            if part not in table:
                raise ModelError(f"{file} has {column!r} and no column {part!r}; give all six.")
        forces[node] = np.stack([table[part] for part in parts], axis=-1)
    return forces


def _named(columns: list[tuple[str, Array]], file: Path) -> dict[str, Array]:
    """Columns by name without unit; raises for two of a name, and for other units."""
    table = dict[str, Array]()
    for full, column in columns:
        name, unit = _bare(full)
        if name != "t" and not name.startswith(HEADS):
            table.setdefault(name, column)
            continue
        if name in table:
            raise ModelError(f"{file} has two columns {name!r}; leave one out, or rename it.")
        if unit.lower() in OTHER_UNITS:
            raise ModelError(
                f"{file} has the column {full.strip()!r}; convert it: times are in s, positions in "
                "rad or m, forces in N m or N."
            )
        table[name] = column
    return table


def _bare(name: str) -> tuple[str, str]:
    """A column without its unit, and the unit."""
    head, bracket, unit = name.strip().partition("] [")
    if bracket:
        return f"{head}]", unit.rstrip("]").strip()
    head, _, unit = name.strip().partition(" [")
    return head, unit.rstrip("]").strip()


def _csv(file: Path) -> list[tuple[str, Array]]:
    try:
        with open(file, newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            between = max(",;\t", key=first.count)
            stream.seek(0)
            rows = [row for row in csv.reader(stream, delimiter=between) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ParseError(f"cannot be read: {error}", file=str(file)) from None
    if len(rows) < 2:
        raise ParseError("has no rows below the names of columns.", file=str(file))
    numbers = np.full((len(rows) - 1, len(rows[0])), np.nan)
    for i, row in enumerate(rows[1:]):
        if len(row) != len(rows[0]):
            words = f"{len(row)} cells; the first row has {len(rows[0])}."
            raise ParseError(words, file=str(file), line=i + 2)
        for j, cell in enumerate(row):
            try:
                numbers[i, j] = float(cell) if cell.strip() else np.nan
            except ValueError:
                words = f"{cell!r} is not a number."
                words += " Write decimal points." if "," in cell else ""
                raise ParseError(words, file=str(file), line=i + 2) from None
    return [(name, numbers[:, j]) for j, name in enumerate(rows[0])]


def _parquet(file: Path) -> list[tuple[str, Array]]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("Parquet files", package="pyarrow", extra="study") from None
    try:
        table = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise ParseError(f"cannot be read: {error}", file=str(file)) from None
    out = list[tuple[str, Array]]()
    for i, name in enumerate(table.column_names):
        try:
            column = np.asarray(table.column(i).to_numpy(zero_copy_only=False), np.float64)
        except (TypeError, ValueError):
            continue  # text: another column
        out.append((name, column))
    return out
