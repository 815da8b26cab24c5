"""A part of a result: some rows, some columns, or the blocks on the diagonal.

Rows and columns of tree spaces are named by bodies or hinges, those over nodes by nodes; a number
is a single entry. Work that the part does not need is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import (
    BODY,
    COORDINATE,
    GRAVITY,
    INBOARD,
    INERTIA,
    JOINT,
    NODE,
    NODE_INERTIA,
    NODE_PLACE,
    ONE,
    PLACE,
    Space,
)
from linkwise.errors import ExpressionError, LoweringError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism

Names: TypeAlias = str | int | Sequence[str | int]
"""A body, hinge or node, the index of an entry, or several of them."""

SIZES = {
    **{BODY: 6, INBOARD: 6, INERTIA: 10, PLACE: 12},
    **{NODE: 6, NODE_PLACE: 12, NODE_INERTIA: 10, GRAVITY: 3},
}


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A part of a result; all of it by default.

    Attributes:
        rows: Names or indices of rows, in the order of the result; None for all.
        columns: The same for columns.
        blocks: For a block-diagonal operator, its blocks (bodies, r, c), padded with zeros where
            hinges have fewer degrees of freedom than others.
    """

    rows: tuple[str | int, ...] | None = None
    columns: tuple[str | int, ...] | None = None
    blocks: bool = False

    @property
    def is_all(self) -> bool:
        """Whether it is all of the result."""
        return self.rows is None and self.columns is None and not self.blocks

    def __str__(self) -> str:
        parts = list[str]()
        if self.blocks:
            parts.append("its diagonal blocks")
        for what, names in (("rows", self.rows), ("columns", self.columns)):
            if names is not None:
                parts.append(f"the {what} of {', '.join(str(name) for name in names)}")
        return ", ".join(parts)

    def checked(self, expr: Expr, mech: Mechanism, nodes: Sequence[str]) -> ResultPart:
        """This part; raises if it makes no sense for an expression."""
        if isinstance(cast(object, mech), Embedded) and not self.is_all:
            raise ExpressionError(
                f"{self} of  {expr}  was requested for {mech.name!r} with its loops and couplings "
                "built in. Aggregate bodies give complete results only: take the part from one."
            )
        if self.blocks:
            if expr.causality != "memoryless" or expr.is_vector or _no_tree(expr):
                raise ExpressionError(
                    f"blocks=True was given for  {expr}, which is not block diagonal over the "
                    "bodies. P, D, R, G and sums and products of such are; for others, give rows "
                    "and columns."
                )
            if self.columns is not None:
                raise ExpressionError(
                    "blocks=True was given with columns; only rows= goes with it, and names bodies."
                )
        for what, names, space in (
            ("rows", self.rows, expr.range),
            ("columns", self.columns, expr.domain),
        ):
            if names is None:
                continue
            if space is ONE:
                raise ExpressionError(f"{expr} has one number where {what} names {names}.")
            if not names:
                raise ExpressionError(f"{what} is empty: name one or more, or leave it out.")
            indices = bodies(names, mech) if self.blocks else entries(names, space, mech, nodes)
            if not len(indices):
                raise ExpressionError(
                    f"{what} names {', '.join(str(name) for name in names)}: locked hinges, which "
                    "have no degree of freedom. Name some that move."
                )
            if what == "rows" and len(set(indices.tolist())) < len(indices):
                raise LoweringError(
                    f"rows names something twice ({self}): each row of a result is written once. "
                    "Name each row once."
                )
        return self


ALL = ResultPart()


def _no_tree(expr: Expr) -> bool:
    return bool({expr.range, expr.domain} - {JOINT, BODY, INBOARD})


def choice(rows: Names | None, columns: Names | None, blocks: bool) -> ResultPart:
    """The part with these rows and columns."""
    return ResultPart(_tuple(rows), _tuple(columns), bool(blocks))


def _tuple(names: Names | None) -> tuple[str | int, ...] | None:
    if names is None or isinstance(names, str):
        return names if names is None else (names,)
    given: list[Any] = list(cast("Any", np.atleast_1d(np.asarray(names, dtype=object))))
    checked = list[str | int]()
    for name in given:
        if isinstance(name, str):
            checked.append(name)
        elif isinstance(name, int | np.integer) and not isinstance(name, bool):
            checked.append(int(cast(int, name)))
        else:
            raise ExpressionError(
                f"rows or columns has {name!r}: give names of bodies, hinges or nodes, or indices "
                "of entries."
            )
    return tuple(checked)


def bodies(names: Sequence[str | int], mech: Mechanism) -> NDArray[np.int64]:
    """The indices of bodies, by name (theirs or that of their hinge) or by index."""
    for name in names:
        _check_number(name, mech.n_bodies, "bodies")
    return np.array([_body(name, mech) for name in names], dtype=np.int64)


def _body(name: str | int, mech: Mechanism) -> int:
    if isinstance(name, int):
        return name
    k = mech.body_index.get(name, -1)
    k = mech.hinge_index.get(name, -1) if k < 0 else k
    if k < 0:
        known = [*(body.name for body in mech.bodies), *mech.hinge_index]
        raise unknown_name("body or hinge", name, known, owner=f"mechanism {mech.name!r}")
    return k


def _check_number(name: str | int, count: int, what: str) -> None:
    if isinstance(name, int) and not 0 <= name < count:
        raise ExpressionError(f"{name} is out of range: there are {count} {what}, counted from 0.")


def _lumps_before(k: int, mech: Mechanism) -> int:
    """The lumps of flexible bodies before body k."""
    return sum(len(mech.bodies[j].lumps) for j in mech.flexible if j < k)


def entries(
    names: Sequence[str | int], space: Space, mech: Mechanism, nodes: Sequence[str]
) -> NDArray[np.int64]:
    """The indices of the entries of a space that have these names, in their order."""
    indices, size = list[int](), SIZES.get(space, 0)
    on_nodes = space.block == "node"
    owners = len(nodes) if on_nodes else mech.n_bodies
    if space.block == "body" and space is not INBOARD:
        owners += _lumps_before(mech.n_bodies, mech)
    count = {JOINT: mech.nv, COORDINATE: mech.nq}.get(space, size * owners)
    for name in names:
        if isinstance(name, int):
            _check_number(name, count, "velocities" if space is JOINT else f"entries of {space}")
            indices.append(name)
        elif space is JOINT:
            k = mech.hinge_index.get(name)
            k = _body(name, mech) if k is None else k
            indices += range(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        elif space is COORDINATE:
            k = mech.hinge_index.get(name)
            k = _body(name, mech) if k is None else k
            indices += range(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        elif on_nodes:
            if name not in nodes:
                raise unknown_name("node", name, nodes, owner="the nodes of this kernel")
            k = list(nodes).index(name)
            indices += range(size * k, size * k + size)
        else:
            k = _body(name, mech)
            start = size * (k + (0 if space is INBOARD else _lumps_before(k, mech)))
            indices += range(start, start + size)
    return np.array(indices, dtype=np.int64)
