"""The errors Linkwise raises, as one tree.

A message says, in this order: what was requested, what was found, what is allowed, what to do.
Things are called by name; for an unknown name the message lists similar ones.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable


class LinkwiseError(Exception):
    """Root of every error raised on purpose by Linkwise."""


class ModelError(LinkwiseError, ValueError):
    """A mechanism that cannot exist, or a request that it cannot answer."""


class UnknownNameError(ModelError, KeyError):
    """A body, hinge, node or loop that the mechanism does not have."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class ShapeError(LinkwiseError, ValueError):
    """An array whose shape does not fit what it is meant to hold."""


class RowError(ShapeError, IndexError):
    """An index beyond the states of a batch; also Python's IndexError, which ends loops."""


class FrameError(LinkwiseError, ValueError):
    """Quantities in different frames, about different points or in different layouts were mixed."""


class ExpressionError(LinkwiseError, ValueError):
    """An operator expression without meaning: spaces that do not match, no inverse."""


class ProofError(LinkwiseError, RuntimeError):
    """A derivation that numbers contradict: a bug in Linkwise, never a result."""


class LoweringError(ExpressionError):
    """An expression that cannot be turned into sweeps; names the part that prevents it."""


class SingularHingeError(LinkwiseError, ArithmeticError):
    """A hinge without inertia: its articulated inertia D is not positive definite.

    Attributes:
        code: The status returned by a kernel, 0 for none.
        body: The index of the body, -1 if it is not known.
    """

    def __init__(self, message: str, *, code: int = 0, body: int = -1) -> None:
        super().__init__(message)
        self.code = code
        self.body = body


class TooLargeError(LinkwiseError, OverflowError):
    """Numbers so large that a result is not finite.

    Attributes:
        code: The status returned by a kernel, 0 for none.
    """

    def __init__(self, message: str, *, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SingularTaskError(LinkwiseError, ArithmeticError):
    """Tasks that the mechanism cannot perform in a state."""


class ClosureError(LinkwiseError, ArithmeticError):
    """Loops that cannot be closed, or a motion that leaves them open."""


class SimulationError(LinkwiseError, RuntimeError):
    """A motion that cannot continue: it grows without bounds, or a force on it is not finite.

    Attributes:
        recording: The motion computed so far, or None.
    """

    def __init__(self, message: str, *, recording: object = None) -> None:
        super().__init__(message)
        self.recording = recording


class StudyError(LinkwiseError, RuntimeError):
    """A study that cannot go on: its folder holds another one, a disk is full, workers are lost."""


class DeviceError(LinkwiseError, RuntimeError):
    """A computation for a GPU that is not available, or that does not fit it."""


class ViewerError(LinkwiseError, RuntimeError):
    """A page that cannot be served or written: a busy port, an address of another machine."""


class TroubleWarning(UserWarning):
    """Some states of a batch have no result; their rows are NaN."""


class StudyWarning(UserWarning):
    """Something in the folder of a study was repaired: an unreadable chunk is computed again."""


class EnergyWarning(UserWarning):
    """A motion whose energy balance fails: its steps are too long."""


class BendingWarning(UserWarning):
    """A flexible body that bends further than its modes describe."""


class UnsolvedWarning(UserWarning):
    """Implicit steps that did not find the impulses of contacts, limits and friction."""


class RankWarning(UserWarning):
    """A deficient rank: nodes that cannot move in all directions, or singular loops.

    The result is for the directions in which nodes can move, and for the given rows of loops.
    """


class ParseError(LinkwiseError, ValueError):
    """A model file that cannot be read.

    Attributes:
        file: The file, as named by the caller or by the file that includes it.
        line: Line in that file, from 1, or None.
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
    """A file that cannot be written; an existing file is unchanged.

    Attributes:
        file: The file, as named by the caller.
        reason: The reason given by the operating system.
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
"""Names longer than this [characters] are shortened in messages and not compared with others."""


def unknown_name(
    kind: str,
    name: object,
    known: Iterable[str],
    *,
    owner: str,
    compare: bool = True,
    loops: Iterable[str] = (),
) -> UnknownNameError:
    """The error for an unknown name, with similar names (or a few of all).

    Args:
        kind: What was looked up: "body", "hinge", "node" ...
        name: What the caller gave.
        known: All valid names.
        owner: Where it was looked up, for instance "mechanism 'puma560'".
        compare: False skips the search for similar names, which takes time when there are many
            errors.
        loops: Names of loops, if a hinge was looked up: a loop has no entries in q and v.
    """
    names, text = list(dict.fromkeys(known)), str(name)
    # The time of a comparison grows with the square of the length.
    short = [n for n in names if len(n) <= LONGEST_NAME] if len(text) <= LONGEST_NAME else []
    compare = compare and len(names) < 5000
    near = difflib.get_close_matches(text, short, n=4, cutoff=0.5) if compare else []
    same = [n for n in short if n.casefold() == text.casefold()]
    near = same[:4] or near
    if near:
        hint = "did you mean " + " or ".join(repr(n) for n in near) + "?"
    elif not names:
        hint = f"it has no {kind}."
    else:
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        hint = f"known: {', '.join(_cut(n) for n in names[:8])}{more}."
    if text in loops:
        hint = (
            f"{_cut(name)} is a loop, whose hinge has no entries in q and v: "
            "lw.loops.loop_coordinates gives its position, lw.loops.loop_velocities its velocity. "
            f"Among the hinges of the tree, {hint}"
        )
    return UnknownNameError(f"no {kind} called {_cut(name)} in {owner}; {hint}")


def _cut(name: object) -> str:
    text = repr(name)
    return text if len(text) <= LONGEST_NAME + 2 else f"{text[:LONGEST_NAME]}...{text[-1]}"


def caller() -> int:
    """Stack level of the first caller outside this package, for warnings."""
    import inspect  # not needed to import the package

    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("linkwise."):
        frame, level = frame.f_back, level + 1
    return level
