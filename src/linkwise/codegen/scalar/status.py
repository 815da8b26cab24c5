"""The status of a sample: what went wrong with one state of a batch, as a number and in words.

Every target (CPU, CUDA, C) writes the same codes: 0 is fine, 1 to 3 concern the whole state, and
each body has two codes, for its hinge and for its quaternion. After these come codes
about loops: one for each aggregate of an embedded mechanism, and of a mechanism with loops those
for accelerations that the loops do not allow.
"""

from __future__ import annotations

from typing import Final

from linkwise.errors import (
    ClosureError,
    LinkwiseError,
    ModelError,
    SingularHingeError,
    SingularTaskError,
    TooLargeError,
)
from linkwise.model.embedded import Embedded, undetermined
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import has_tasks

FINE: Final = 0
INPUT: Final = 1
RESULT: Final = 2
MATRIX: Final = 3
HINGES: Final = 4


def hinge(k: int) -> int:
    """The code for: nothing resists the hinge of body k."""
    return HINGES + 2 * k


def quaternion(k: int) -> int:
    """The code for: the quaternion of body k is not of unit length."""
    return HINGES + 2 * k + 1


def with_quaternion(code: int, mech: Mechanism | Embedded) -> tuple[int, Mechanism] | None:
    """The body whose quaternion a code is about, and the tree it belongs to."""
    tree = mech.mech if isinstance(mech, Embedded) else mech
    k, what = divmod(code - HINGES, 2)
    return (k, tree) if what and 0 <= k < tree.n_bodies else None


def loops(tree: Embedded, g: int) -> int:
    """The code for: the loops of aggregate g do not determine its dependent velocities."""
    return HINGES + 2 * tree.mech.n_bodies + g


def turned(mech: Mechanism, k: int) -> int:
    """The code for: body k turns by more than half a turn in one step of time."""
    return HINGES + 2 * mech.n_bodies + k


def unsolved(mech: Mechanism) -> int:
    """The code for: the equations of a variational step of time were not solved."""
    return turned(mech, mech.n_bodies)


def broken(mech: Mechanism) -> int:
    """The code for: accelerations that loops and couplings do not allow."""
    return unsolved(mech) + 1


def opened(mech: Mechanism) -> int:
    """The code for: a step of time after which loops cannot be closed again."""
    return broken(mech) + 1


def singular(mech: Mechanism | Embedded) -> int:
    """The code for: fewer rows of loops are independent than in configurations nearby."""
    tree = mech.mech if isinstance(mech, Embedded) else mech
    return broken(tree) + 2


def undefined(mech: Mechanism) -> int:
    """The code for: rows of loops depend on each other only while the loops are closed."""
    return singular(mech) + 1


def stopped(mech: Mechanism, k: int) -> int:
    """The code for: condition k ended a motion."""
    return undefined(mech) + 1 + k


def describe(code: int, mech: Mechanism | Embedded) -> str:
    """The meaning of a code, naming the body."""
    if code == FINE:
        return "fine"
    if code == INPUT:
        return "an input is not finite"
    if code == RESULT:
        return "the result is not finite: numbers are too large"
    if code == MATRIX and has_tasks(mech):
        return (
            "the tasks require more than the mechanism can do in this state: their rows depend on "
            "each other, or it is singular; lw.tasks.task_space shows which directions are lost"
        )
    if code == MATRIX:
        return "a matrix that has to be inverted is singular, or not positive definite"
    if isinstance(mech, Embedded):
        g = code - loops(mech, 0)
        if 0 <= g < mech.n_bodies:
            return undetermined(mech, g)
    elif turned(mech, 0) <= code < unsolved(mech):
        return (
            f"body {mech.bodies[code - turned(mech, 0)].name!r} turns by more than half a turn at "
            "once; take shorter steps, or, in a filter, start with smaller deviations"
        )
    elif code == broken(mech):
        return (
            "the accelerations break loops or couplings, which no joint forces can do while they "
            'hold; loops="open" leaves them open'
        )
    elif code == singular(mech):
        return (
            "the loops are singular here: fewer of their rows are independent than nearby, so that "
            "accelerations are not unique; lw.loops.mobility has more"
        )
    elif code == undefined(mech):
        return (
            "rows of the loops depend on each other only while the loops are closed, so that there "
            "are no derivatives by single coordinates; lw.loops.embed builds the loops in, and its "
            "coordinates have derivatives"
        )
    elif code >= stopped(mech, 0):
        return f"condition {code - stopped(mech, 0)} of `stop` ended the motion"
    elif code == opened(mech):
        return (
            "loops cannot be closed again after a step: it is too long, or the motion grows "
            "without bounds"
        )
    k, what = divmod(code - HINGES, 2)
    if what and isinstance(mech, Embedded):
        mech = mech.mech  # whose quaternions are checked
    if not 0 <= k < mech.n_bodies:
        return f"the code {code} has no meaning for {mech.name}"
    name = mech.bodies[k].name
    if what:
        return (
            f"the quaternion of body {name!r} is not of unit length; it is (w, x, y, z). "
            "lw.convert converts other layouts, mech.normalise(q) removes rounding errors"
        )
    return (
        f"the hinge of body {name!r} is singular: nothing resists it. Give the body, or what it "
        "carries, inertia, or the hinge an armature"
    )


def error(code: int, mech: Mechanism | Embedded, where: str = "") -> LinkwiseError:
    """The exception for a code; `where` begins its message."""
    text = f"{where}{describe(code, mech)}."
    if code >= (loops(mech, 0) if isinstance(mech, Embedded) else broken(mech)):
        return ClosureError(text)
    if code == MATRIX and has_tasks(mech):
        return SingularTaskError(text)
    if code == RESULT:
        return TooLargeError(text, code=code)
    if isinstance(mech, Mechanism) and code >= turned(mech, 0):
        return ModelError(text)
    singular = code == MATRIX or (code >= HINGES and (code - HINGES) % 2 == 0)
    return SingularHingeError(text, code=code) if singular else ModelError(text)
