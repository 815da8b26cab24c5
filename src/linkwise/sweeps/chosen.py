"""Which part of a result is wanted: some rows, some columns, or the blocks on the diagonal.

Rows and columns of tree spaces are named by bodies or hinges, those over nodes by nodes; a number
is a single entry. What the part does not need is not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY, INBOARD, JOINT, NODE, NODE_PLACE, ONE, PLACE, Space
from linkwise.errors import ExpressionError, LoweringError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism

Names: TypeAlias = str | int | Sequence[str | int]
"""A body, hinge or node, the number of an entry, or several of them."""

SIZES = {BODY: 6, INBOARD: 6, PLACE: 12, NODE: 6, NODE_PLACE: 12}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The part of a result that is wanted; all of it by default.

    Attributes:
        rows: Names or numbers of rows, in the order they shall come; None for all.
        columns: The same for columns.
        blocks: Of a block-diagonal operator, the blocks one after the other: (bodies, r, c), with
            zeros behind where hinges have fewer freedoms than others.
    """

    rows: tuple[str | int, ...] | None = None
    columns: tuple[str | int, ...] | None = None
    blocks: bool = False

    @property
    def whole(self) -> bool:
        """Whether all of the result is wanted."""
        return self.rows is None and self.columns is None and not self.blocks

    def __str__(self) -> str:
        parts = list[str]()
        if self.blocks:
            parts.append("its diagonal blocks")
        for what, names in (("rows", self.rows), ("columns", self.columns)):
            if names is not None:
                parts.append(f"the {what} of {', '.join(str(name) for name in names)}")
        return ", ".join(parts)

    def checked(self, expr: Expr, mech: Mechanism, nodes: Sequence[str]) -> Chosen:
        """Itself; raises where it makes no sense for an expression."""
        if isinstance(cast(object, mech), Embedded) and not self.whole:
            raise ExpressionError(
                f"{self} of  {expr}  was asked for, of {mech.name!r} with its loops and couplings "
                "built in. Only whole results are had of aggregate bodies: take the part from it."
            )
        if self.blocks:
            if expr.causality != "memoryless" or expr.is_vector or _no_tree(expr):
                raise ExpressionError(
                    f"blocks=True was given for  {expr}, which is not block diagonal over the "
                    "bodies. It can be of P, D, R, G and sums and products of such; ask for rows "
                    "and columns of others."
                )
            if self.columns is not None:
                raise ExpressionError("blocks=True goes with rows= alone: the bodies of interest.")
        for what, names, space in (
            ("rows", self.rows, expr.range),
            ("columns", self.columns, expr.domain),
        ):
            if names is None:
                continue
            if space is ONE:
                raise ExpressionError(f"{expr} has one number where {what} were named: {names}.")
            if not names:
                raise ExpressionError(f"{what} is empty: name one or more, or leave it out.")
            found = bodies(names, mech) if self.blocks else entries(names, space, mech, nodes)
            if not len(found):
                raise ExpressionError(
                    f"{what} names {', '.join(str(name) for name in names)}: locked hinges, which "
                    "have no freedom. Name some that move."
                )
            if what == "rows" and len(set(found.tolist())) < len(found):
                raise LoweringError(
                    f"rows names something twice ({self}): each row of a result is written once. "
                    "Name each once."
                )
        return self


WHOLE = Chosen()


def _no_tree(expr: Expr) -> bool:
    return bool({expr.range, expr.domain} - {JOINT, BODY, INBOARD})


def choice(rows: Names | None, columns: Names | None, blocks: bool) -> Chosen:
    """What was asked for, as tuples."""
    return Chosen(_tuple(rows), _tuple(columns), bool(blocks))


def _tuple(names: Names | None) -> tuple[str | int, ...] | None:
    if names is None or isinstance(names, str):
        return names if names is None else (names,)
    given: list[Any] = list(cast("Any", np.atleast_1d(np.asarray(names, dtype=object))))
    found = list[str | int]()
    for name in given:
        if isinstance(name, str):
            found.append(name)
        elif isinstance(name, int | np.integer) and not isinstance(name, bool):
            found.append(int(cast(int, name)))
        else:
            raise ExpressionError(
                f"rows or columns has {name!r}: give names of bodies, hinges or nodes, or numbers "
                "of entries."
            )
    return tuple(found)


def bodies(names: Sequence[str | int], mech: Mechanism) -> NDArray[np.int64]:
    """Bodies by name (or that of their hinge) or by number."""
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
        raise ExpressionError(f"{name} is out of range: there are {count} {what}, from 0 on.")


def entries(
    names: Sequence[str | int], space: Space, mech: Mechanism, nodes: Sequence[str]
) -> NDArray[np.int64]:
    """The entries of a space that names stand for, in their order."""
    found, size = list[int](), SIZES.get(space, 0)
    owners = len(nodes) if _on_nodes(space) else mech.n_bodies
    count = mech.nv if space is JOINT else size * owners
    for name in names:
        if isinstance(name, int):
            _check_number(name, count, "freedoms" if space is JOINT else f"entries of {space}")
            found.append(name)
        elif space is JOINT:
            k = mech.hinge_index.get(name)
            k = _body(name, mech) if k is None else k
            found += range(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        elif _on_nodes(space):
            if name not in nodes:
                raise unknown_name("node", name, nodes, owner="the nodes of this kernel")
            k = list(nodes).index(name)
            found += range(size * k, size * k + size)
        else:
            k = _body(name, mech)
            found += range(size * k, size * k + size)
    return np.array(found, dtype=np.int64)


def _on_nodes(space: Space) -> bool:
    return space.block == "node"
