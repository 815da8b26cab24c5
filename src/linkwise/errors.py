"""The errors Linkwise raises, as one tree.

A message says, in this order: what was asked, what was found, what is allowed, what to do. Things
are called by name; an unknown name is answered with the near ones.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable


class LinkwiseError(Exception):
    """Root of every error raised on purpose by Linkwise."""


class ModelError(LinkwiseError, ValueError):
    """A mechanism that cannot exist, or a question it has no answer to."""


class UnknownNameError(ModelError, KeyError):
    """A body, hinge, node or loop that the mechanism does not have."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class ShapeError(LinkwiseError, ValueError):
    """An array whose shape does not fit what it is meant to hold."""


class RowError(ShapeError, IndexError):
    """A state of a batch that is not there; also Python's IndexError, which ends loops."""


class FrameError(LinkwiseError, ValueError):
    """Quantities of different frames, points or layouts that were mixed."""


class ExpressionError(LinkwiseError, ValueError):
    """An operator expression that means nothing: spaces that do not meet, no inverse."""


class ProofError(LinkwiseError, RuntimeError):
    """A derivation that its own numbers contradict: a bug in Linkwise, never a verdict."""


class LoweringError(ExpressionError):
    """An expression that cannot be turned into sweeps, with the part that stands in the way."""


class SingularHingeError(LinkwiseError, ArithmeticError):
    """A hinge that nothing resists: its articulated inertia D is not positive definite.

    Attributes:
        code: The status that a kernel gave, 0 for none.
    """

    def __init__(self, message: str, *, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SingularTaskError(LinkwiseError, ArithmeticError):
    """Tasks ask for more than the mechanism can do in a state."""


class ClosureError(LinkwiseError, ArithmeticError):
    """Loops that cannot be closed, or a motion that leaves them open."""


class SimulationError(LinkwiseError, RuntimeError):
    """A motion that cannot go on: it grows without bounds, or what acts on it is no number.

    Attributes:
        recording: What was computed until then, or None.
    """

    def __init__(self, message: str, *, recording: object = None) -> None:
        super().__init__(message)
        self.recording = recording


class DeviceError(LinkwiseError, RuntimeError):
    """A computation for a graphics card that there is none for, or that does not fit it."""


class ViewerError(LinkwiseError, RuntimeError):
    """A page that cannot be served or written: a busy port, an address of another machine."""


class TroubleWarning(UserWarning):
    """Some states of a batch have no result; their rows are NaN."""


class EnergyWarning(UserWarning):
    """A motion whose energy does not add up: its steps are too long to be believed."""


class RankWarning(UserWarning):
    """A rank that is not full: nodes that cannot move in all directions, loops that are singular.

    The result is for the directions that nodes can move in, for the rows of loops as they stand.
    """


class ParseError(LinkwiseError, ValueError):
    """A model file that cannot be read.

    Attributes:
        file: The file, as it was named by the caller or by the file that includes it.
        line: Line in that file, counted from 1; None where no line can be told.
        reason: The message without the place.
    """

    def __init__(self, reason: str, *, file: str = "<string>", line: int | None = None) -> None:
        self.file = file
        self.line = line
        self.reason = reason
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {reason}")

    def __str__(self) -> str:  # OSError, a base of MissingFileError, prints its errno
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:  # keywords survive pickling
        return (_parse_error, (type(self), self.reason, self.file, self.line))


def _parse_error(kind: type[ParseError], reason: str, file: str, line: int | None) -> ParseError:
    return kind(reason, file=file, line=line)


class MissingFileError(ParseError, FileNotFoundError):
    """A model file that does not exist."""

    def __init__(self, reason: str, *, file: str, line: int | None = None) -> None:
        super().__init__(reason, file=file, line=line)
        self.errno, self.filename = errno.ENOENT, file


class WriteError(LinkwiseError, OSError):
    """A file that cannot be written; what was there before is there still.

    Attributes:
        file: The file, as it was named by the caller.
        reason: Why, in the words of the system.
    """

    def __init__(self, file: str | os.PathLike[str], cause: Exception) -> None:
        self.file = os.fspath(file)
        self.reason = str(getattr(cause, "strerror", None) or cause)
        super().__init__(f"cannot write '{self.file}': {self.reason}.")
        self.errno = getattr(cause, "errno", None)
        self.cause = cause

    def __reduce__(self) -> tuple[object, ...]:
        return (WriteError, (self.file, self.cause))


class MissingExtraError(LinkwiseError, ImportError):
    """A function that needs an optional dependency which is not installed."""

    def __init__(self, what: str, *, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'linkwise[{extra}]'"
        )


LONGEST_NAME = 80
"""Names longer than this [characters] are cut in messages and not compared with others."""


def unknown_name(
    kind: str,
    name: object,
    known: Iterable[str],
    *,
    owner: str,
    compare: bool = True,
    loops: Iterable[str] = (),
) -> UnknownNameError:
    """The error for a name that does not exist, with the near ones (or a few of all).

    Args:
        kind: What was looked for: "body", "hinge", "node" ...
        name: What the caller gave.
        known: All names that would have been right.
        owner: Where it was looked up, for instance "mechanism 'puma560'".
        compare: False leaves out the search for near names, which takes a moment: for the many
            that follow a first few.
        loops: Names of loops, where a hinge was looked for: those have no place in q and v.
    """
    names, text = list(dict.fromkeys(known)), str(name)
    # The time of a comparison grows with the square of the length.
    short = [n for n in names if len(n) <= LONGEST_NAME] if len(text) <= LONGEST_NAME else []
    compare = compare and len(names) < 5000
    near = difflib.get_close_matches(text, short, n=4, cutoff=0.5) if compare else []
    if near:
        hint = "did you mean " + " or ".join(repr(n) for n in near) + "?"
    elif not names:
        hint = f"it has no {kind}."
    else:
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        hint = f"known: {', '.join(_cut(n) for n in names[:8])}{more}."
    if text in loops:
        hint = (
            f"{_cut(name)} is a loop, whose hinge has no place in q and v: "
            f"lw.loops.loop_coordinates "
            f"tells where it is, lw.loops.loop_velocities how it moves. Of the tree, {hint}"
        )
    return UnknownNameError(f"no {kind} called {_cut(name)} in {owner}; {hint}")


def _cut(name: object) -> str:
    text = repr(name)
    return text if len(text) <= LONGEST_NAME + 2 else f"{text[:LONGEST_NAME]}...{text[-1]}"


def caller() -> int:
    """How far up the first line outside this package is, for a warning of the one who asks."""
    import inspect  # not needed to import the package

    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("linkwise."):
        frame, level = frame.f_back, level + 1
    return level
