"""Whether loops and couplings are held: one keyword, with one default, in every function.

A mechanism is what it describes: with `loops="closed"`, the default, its loops and couplings are
held. With `loops="open"` a function is about the tree alone, in which each hinge moves by itself.
For a mechanism without loops and couplings, and for one that has them built in (`lw.loops.embed`),
both are the same.
"""

from __future__ import annotations

from typing import Literal, NoReturn, TypeAlias, TypeGuard, overload

from linkwise.errors import ModelError
from linkwise.model import derived
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism

Loops: TypeAlias = Literal["closed", "open"]
"""Whether loops and couplings are held."""

HELD: Loops = "closed"
"""The default: as the same string it is recognised without a comparison."""


def is_closed(mech: Mechanism | Embedded, loops: Loops = "closed") -> TypeGuard[Mechanism]:
    """Whether there are loops or couplings to hold.

    Raises:
        ModelError: `loops` is neither "closed" nor "open".
    """
    check_loops(loops)
    if loops == "open" or isinstance(mech, Embedded):
        return False
    return bool(mech.loops or mech.couplings)


def check_loops(loops: object) -> None:
    """Raise unless it is "closed" or "open"."""
    if not isinstance(loops, str) or loops not in ("closed", "open"):
        raise ModelError(
            f"loops is {loops!r}; it must be 'closed', so that loops and couplings are held, or "
            "'open', so that each hinge moves by itself."
        )


@overload
def tree_of(mech: Mechanism) -> Mechanism: ...
@overload
def tree_of(mech: Mechanism | Embedded) -> Mechanism | Embedded: ...
def tree_of(mech: Mechanism | Embedded) -> Mechanism | Embedded:
    """The mechanism without its loops and couplings; itself where it has none. Kept with it."""
    if isinstance(mech, Embedded) or not (mech.loops or mech.couplings):
        return mech
    return _tree(mech)


@once_per_mechanism
def _tree(mech: Mechanism) -> Mechanism:
    return derived.replaced(mech, loops=(), couplings=())


def require_open(
    mech: Mechanism | Embedded, loops: Loops, function: str, instead: str = ""
) -> None:
    """Refuse loops and couplings in a function that cannot hold them.

    Args:
        loops: What the caller asked for.
        function: Name of the function.
        instead: What holds them, as a sentence.
    """
    if is_closed(mech, loops):
        refuse(mech, function, instead)


def refuse(mech: Mechanism, function: str, instead: str = "") -> NoReturn:
    """Raise, since a function cannot hold the loops and couplings that the mechanism has."""
    names = [x.name for x in (*mech.loops, *mech.couplings)]
    shown = ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")
    what = f"{function} was asked of {mech.name!r}, whose loops and couplings ({shown}) it cannot"
    hint = f" {instead}" if instead else ""
    raise ModelError(
        f"{what} hold; without them the result would be that of another mechanism.{hint} "
        'loops="open" lets each hinge move by itself.'
    )


__all__ = ["Loops", "check_loops", "is_closed", "refuse", "require_open", "tree_of"]
