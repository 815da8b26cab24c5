"""The header of an emitted C function: what it computes, how, and the order of every number."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.algebra.space import BODY, INBOARD, JOINT, NODE, Space
from linkwise.brief import extent
from linkwise.codegen.c.text import comment, distinct, plain_name
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.parameters import node_of
from linkwise.codegen.scalar.trace import Traced
from linkwise.model.closure import constraint_names
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import has_tasks
from linkwise.sweeps.program import Program
from linkwise.sweeps.result_part import bodies, entries

MARK = "Written by linkwise export-c"
"""First words of every file; a file that begins with them may be replaced."""

RATES: Mapping[str, Mapping[str, str]] = {
    "velocity": {"rad": "rad/s", "m": "m/s"},
    "acceleration": {"rad": "rad/s^2", "m": "m/s^2"},
    "force": {"rad": "N m", "m": "N"},
    "armature": {"rad": "kg m^2", "m": "kg"},
}
"""Units of a velocity that turns [rad] or travels [m]."""

KINDS: Mapping[str, str] = {
    "acceleration": "acceleration",
    "force": "force",
    "inertia": "kg m^2 between turns, kg m between a turn and a travel, kg between travels",
    "inverse inertia": "1/(kg m^2) between turns, 1/(kg m) between a turn and a travel, 1/kg "
    "between travels",
    "velocity per rate": "angular rows rad/s, linear rows m/s, per rad/s or m/s of the joint",
}
"""Kinds of results, and for matrices the units of their entries."""

CODES = {
    status.FINE: "OK",
    status.INPUT: "INPUT_NOT_FINITE",
    status.RESULT: "RESULT_NOT_FINITE",
    status.MATRIX: "MATRIX_SINGULAR",
}
"""Macros of the codes that concern no body."""

INPUT_KINDS = {
    **{"v": "velocity", "vdot": "acceleration", "tau": "force", "f": "force"},
    "armature": "armature",
}
AXES = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")

MEANING = {
    "q": "coordinates",
    "v": "velocities",
    "vdot": "accelerations",
    "tau": "forces of the joints",
    "f": "forces on the nodes: moment and force, in the axes of the node",
    "gravity": "acceleration of free fall, world axes",
    "inertia": "inertias of the bodies in sequence, at their origins and in their axes",
    "payload": "inertia of something welded to {}, at its origin and in its axes",
    "armature": "diagonal of N",
    "locked": "1 where a joint velocity is held, 0 where it is free",
    "closing": "required accelerations of the rows",
    "applied": "forces along the rows",
    "goal": "where the tasks should be: pose (R | p) row by row, R, point, direction, coordinates",
    "velocity": "desired velocities at the goal",
    "acceleration": "desired accelerations at the goal",
    "kp": "stiffness of the servo, 1/s^2",
    "kv": "damping of the servo, 1/s",
}
"""Of inputs, by the name before a colon."""

ROWS = ("closing", "applied", "lam", "velocity", "acceleration", "kp", "kv")
"""Inputs with an entry for each row of constraints or tasks."""

INERTIA = (
    *(("mass", "kg"), ("mass c_x", "kg m"), ("mass c_y", "kg m"), ("mass c_z", "kg m")),
    *((f"J_{axes}", "kg m^2") for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
"""The ten numbers of an inertia: c is the centre of mass, J about the origin, J_xy = -sum x y."""


@dataclass(frozen=True, slots=True)
class Entries:
    """An input or output vector."""

    name: str  # as the algebra calls it
    identifier: str  # its name in C
    size: int  # how many numbers
    labels: tuple[tuple[str, str], ...]  # name and unit of each, ("", "") where nothing is known


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface of the function."""

    name: str  # of the function
    dtype: str  # "float64" or "float32"
    inputs: tuple[Entries, ...]  # in the order of the arguments
    rows: tuple[tuple[str, str], ...]  # names of the rows of the result
    columns: tuple[tuple[str, str], ...]  # names of its columns; empty for a vector
    shape: tuple[int, ...]  # of the result
    unit: str  # kind of the result
    # those that it may return because of what it computes, ascending (`status.py`)
    codes: tuple[int, ...]
    mark: str  # first line of the files
    part: str = ""  # the part of the expression that it computes; empty for all of it
    # whether loops and couplings, or tasks in their place, have a part in it
    constrained: bool = False
    formulas: tuple[str, ...] = ()  # of several results, each with its name

    @property
    def type(self) -> str:
        """The C type."""
        return "double" if self.dtype == "float64" else "float"

    def function(self, name: str) -> str:
        """The function of math.h for the type."""
        return name if self.dtype == "float64" else f"{name}f"

    def macro(self, *words: str) -> str:
        """A macro of this function: NAME_WORD_WORD."""
        return "_".join((self.name, *words)).upper()


def of_kernel(
    traced: Traced,
    name: str,
    mech: Mechanism,
    program: Program | None,
    nodes: Sequence[str],
    unit: str,
    dtype: str,
    names: Sequence[str] = (),
    formulas: tuple[str, ...] = (),
) -> Interface:
    """The interface of a traced expression, or of several that have names."""
    identifiers = distinct((given for given, _ in traced.inputs), taken=(name.casefold(), "out"))
    inputs = tuple(
        Entries(given, identifier, size, _labels(mech, nodes, given, size))
        for (given, size), identifier in zip(traced.inputs, identifiers, strict=True)
    )
    if traced.parts or program is None:
        parts, size = traced.parts or (traced.shape,), len(traced.outputs)
        rows, columns, shape = _named_entries(names or ("value",), parts), (), (size,)
    else:
        rows, columns, shape = _result_labels(traced.shape, mech, program, nodes, unit)
    codes = tuple(sorted({check.code for check in traced.checks}))
    mark = f"{MARK} {version()}; do not edit."
    rest = ("", False, formulas)
    if program is not None:
        rest = (str(program.chosen), program.constrained, formulas)
    return Interface(name, dtype, inputs, rows, columns, shape, unit, codes, mark, *rest)


def _named_entries(
    results: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> tuple[tuple[str, str], ...]:
    labels = list[tuple[str, str]]()
    for name, shape in zip(results, shapes, strict=True):
        for index in np.ndindex(*shape):
            labels.append((name + "".join(f"[{i}]" for i in index), ""))
    return tuple(labels)


def _result_labels(
    shape: tuple[int, ...], mech: Mechanism, program: Program, nodes: Sequence[str], unit: str
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], tuple[int, ...]]:
    """Labels of rows and columns, and the shape; blocks are stacked."""
    expr, chosen = program.expr, program.chosen
    if chosen.blocks:
        count, height, width = shape
        chosen_bodies = range(count) if chosen.rows is None else bodies(chosen.rows, mech).tolist()
        rows = [
            (f"{mech.bodies[k].name}, row {i}", "") for k in chosen_bodies for i in range(height)
        ]
        return tuple(rows), (("", ""),) * width, (count * height, width)
    sides = list[tuple[tuple[str, str], ...]]()
    for space, names, kind in (
        (expr.range, chosen.rows, unit),
        (expr.domain, chosen.columns, ""),
    ):
        labels = _space_labels(mech, nodes, space, kind)
        if names is not None and labels:
            picked: list[int] = entries(names, space, mech, nodes).tolist()
            labels = tuple(labels[i] for i in picked)
        sides.append(labels)
    return sides[0], () if expr.is_vector else sides[1], shape


def code_name(code: int) -> str:
    """The last words of the macro for a code."""
    if code < status.HINGES:
        return CODES[code]
    k, what = divmod(code - status.HINGES, 2)
    return f"{'QUATERNION_NOT_UNIT' if what else 'HINGE_SINGULAR'}({k})"


def version() -> str:
    """The version of Linkwise."""
    return sys.modules["linkwise"].__version__  # the package itself is above this layer


def _labels(
    mech: Mechanism, nodes: Sequence[str], name: str, size: int
) -> tuple[tuple[str, str], ...]:
    if name == "q":
        units = [c.unit for body in mech.bodies for c in body.hinge.coordinates]
        return tuple(zip(mech.coordinate_names, units, strict=True))
    if name == "f":
        return _space_labels(mech, nodes, NODE, "force")
    if name == "gravity":
        return tuple((axis, "m/s^2") for axis in "xyz")
    if name == "inertia":
        return tuple((f"{body.name}, {label}", u) for body in mech.bodies for label, u in INERTIA)
    if name.startswith("payload"):
        return INERTIA
    if name in ROWS and size == len(constraint_names(mech)):
        return tuple((row, "") for row in constraint_names(mech))
    labels = _space_labels(mech, nodes, JOINT, INPUT_KINDS.get(name, ""))
    return labels if len(labels) == size else (("", ""),) * size


def _space_labels(
    mech: Mechanism, nodes: Sequence[str], space: Space, kind: str
) -> tuple[tuple[str, str], ...]:
    rates = RATES.get(KINDS.get(kind, kind), {})
    if space is JOINT:
        units = [c.unit for body in mech.bodies for c in body.hinge.velocities]
        return tuple(
            (name, rates.get(unit, ""))
            for name, unit in zip(mech.velocity_names, units, strict=True)
        )
    owners = {
        BODY: [body.name for body in mech.bodies],
        INBOARD: [f"parent of {body.name}" for body in mech.bodies],
        NODE: list(nodes),
    }.get(space, [])
    return tuple(
        (f"{owner}, {axis}", rates.get("rad" if axis.startswith("a") else "m", ""))
        for owner in owners
        for axis in AXES
    )


def header(
    face: Interface,
    mech: Mechanism,
    what: str,
    derivation: str,
    nodes: Sequence[str],
    title: str,
    ops: Counter[str],
    signature: str,
) -> str:
    """The text of the header."""
    guard = face.macro("H")
    lines = [
        comment(_about(face, mech, what, derivation, nodes, title, ops)),
        f"#ifndef {guard}\n#define {guard}\n",
        *macros(face),
        "",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        f"{signature};\n",
        "#ifdef __cplusplus\n}\n#endif\n",
        f"#endif /* {guard} */\n",
    ]
    return "\n".join(lines)


def macros(face: Interface) -> Iterator[str]:
    """The sizes of inputs and result, and the codes."""
    sizes = [(face.macro(x.identifier, "SIZE"), x.size) for x in face.inputs]
    shape = face.shape if len(face.shape) == 2 else (*face.shape, 1)
    sizes += [(face.macro("OUT_ROWS"), shape[0]), (face.macro("OUT_COLUMNS"), shape[1])]
    sizes += [(face.macro("OUT_SIZE"), shape[0] * shape[1])]
    yield from (f"#define {name} {size}" for name, size in sizes)
    yield ""
    yield from (f"#define {face.macro(code)} {i}" for i, code in CODES.items())
    yield f"#define {face.macro('HINGE_SINGULAR')}(body) ({status.hinge(0)} + 2 * (body))"
    yield f"#define {face.macro('QUATERNION_NOT_UNIT')}(body) ({status.quaternion(0)} + 2 * (body))"


def _about(
    face: Interface,
    mech: Mechanism,
    what: str,
    derivation: str,
    nodes: Sequence[str],
    title: str,
    ops: Counter[str],
) -> Iterator[str]:
    yield face.mark
    yield ""
    robot = plain_name(mech.name)
    size = extent(mech.n_bodies, mech.nv)
    yield f"{face.name}: {title or 'an expression'} of {robot} ({size}), one state a call"
    yield ""
    yield from (f"    {text}" for text in face.formulas or (what,))
    yield ""
    if face.part:
        yield f"Of this: {face.part}."
        yield ""
    yield "A* is the adjoint, A^-1 the inverse; mass is the mass matrix with the armature N of the"
    yield "drives, C the Coriolis, centrifugal and gravity forces; other symbols are those of the"
    if all(x.name != "gravity" for x in face.inputs):
        number = "({}, {}, {}) m/s^2".format(*mech.gravity.tolist())
        yield f"notation page of Linkwise. Gravity is {number}."
    else:
        yield "notation page of Linkwise."
    yield "Damping, friction and springs of the drives are not part of it."
    if face.constrained:
        what = "tasks" if has_tasks(mech) else "loops and couplings"
        yield f"Q and Y are about these rows of {what}:"
        yield from _listed([(name, "") for name in constraint_names(mech)], "row {}")
    elif mech.loops or mech.couplings:
        yield f"Of the tree alone: loops ({len(mech.loops)}) and couplings ({len(mech.couplings)})"
        yield "of this mechanism are left open."
    yield from ("", "Inputs, finite, in SI units; spatial vectors are (angular, linear):")
    for x in face.inputs:
        yield from ("", f"  {x.identifier}[{x.size}]  {_meaning(x.name, mech, nodes)}")
        yield from _listed(x.labels, x.identifier + "[{}]")
    yield from ("", *_output(face))
    if any(x.name.split(":")[0] in ("inertia", "payload") for x in face.inputs):
        yield from ("", "Inertias: c is the centre of mass, J the 3 x 3 tensor about the origin.")
    if nodes:
        named = ", ".join(f"{plain_name(n)} on {plain_name(mech.node(n).body)}" for n in nodes)
        yield from ("", f"Nodes: {named}; their vectors are in their own axes.")
    yield from (
        "",
        "Returns one of these; where it is not 0 every number of out is NaN:",
        "",
        *_codes(face, mech),
        "",
        f"Scalar operations: {', '.join(f'{n} {op}' for op, n in sorted(ops.items()))}.",
        "No memory but the stack, and no state: several threads may call it. `out` may be",
        "one of the inputs. Do not compile with -ffast-math, which assumes finite numbers.",
        f"Self-test: cc -std=c99 -O2 -D{face.macro('SELFTEST')} {face.name}.c -lm, then run it.",
    )
    if derivation:
        yield from ("", "Derivation:", "", *derivation.splitlines())


def _meaning(name: str, mech: Mechanism, nodes: Sequence[str]) -> str:
    kind = name.split(":")[0]
    text = MEANING.get(kind, "a vector")
    return text.format(plain_name(node_of(mech, name, nodes))) if kind == "payload" else text


def _codes(face: Interface, mech: Mechanism) -> Iterator[str]:
    """The codes that may be returned, with the names of the bodies."""
    yield "  0  success"
    yield "  1  an input is not finite"
    yield "  2  the result is not finite: numbers are too large"
    for code in face.codes:
        if code == status.MATRIX:
            yield "  3  a matrix that has to be inverted is singular, or not positive definite"
            continue
        k, what = divmod(code - status.HINGES, 2)
        if k >= mech.n_bodies:  # about its loops
            yield f"  {code}  {status.describe(code, mech)}"
            continue
        name = plain_name(mech.bodies[k].name)
        if what:
            yield f"  {code}  the quaternion of body {k}, {name}, is not of unit length"
        else:
            yield f"  {code}  nothing resists the hinge of body {k}, {name}"


def _listed(labels: Sequence[tuple[str, str]], entry: str) -> Iterator[str]:
    for i, (name, unit) in enumerate(labels):
        shown = f" [{plain_name(unit)}]" if unit else ""
        if name:
            yield f"    {entry.format(i)}  {plain_name(name)}{shown}"


def _output(face: Interface) -> Iterator[str]:
    if not face.columns:
        yield f"Output: out[{face.shape[0]}]"
        yield from _listed(face.rows, "out[{}]")
        return
    rows, columns = face.shape
    where = f"entry (i, j) is out[{columns} * i + j]"
    yield f"Output: a matrix, {rows} x {columns}, row by row: {where}"
    if face.unit:
        yield f"  units: {KINDS.get(face.unit, face.unit)}"
    yield "  rows:"
    yield from _listed(face.rows, "i = {}")
    if face.columns == face.rows:
        yield "  columns: the same"
        return
    yield "  columns:"
    yield from _listed(face.columns, "j = {}")
