"""What a rollout gives: the motions, and what its steps show besides."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.scalar.status import stopped
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.closed_gradient import closed_gradient
from linkwise.simulation.rollout_gradient import Origin, RolloutGradient, gradient
from linkwise.simulation.shown import Pushes
from linkwise.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Motions of a mechanism, recorded every few steps.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        step: Length of a step [s].
        t: Times of the records (k,) [s], starting with 0.
        q: Joint positions (k, nq), or (batch, k, nq); on the GPU if those given were.
        v: Joint velocities (k, nv), or (batch, k, nv), likewise.
        status: A code for each motion, () or (batch,); 0 means success.
        failed_step: The step that failed, () or (batch,); -1 for none. Records from there on are
            NaN.
        kernel: The kernel that computed it, with `ops` of a step; None where steps ran one by one,
            and in copies and pickles, since machine code cannot leave its process.
        origin: What it was made of, for `gradient`; None where there is none.
        pushes: What `contact_forces` are made of; None without contacts.
        residual: The largest change of a velocity in the last sweep over the impulses of that step
            (k,) or (batch, k) [m/s or rad/s]: what they are accurate to; None where nothing is
            solved for.
        unsolved: The largest residual of any step up to each record, likewise.
        penetration: The largest penetration of a contact up to each record (k,) or (batch, k) [m].
        slip: The largest sliding speed of a contact that pushes, up to each record, likewise [m/s].
        conditions: Names of the conditions that may end a motion.
        not_modelled: What the mechanism and its file have that did not act, one line each.
        tau: Joint forces of a receding horizon in the step before each record, zero at the first
            (k, nv), or (batch, k, nv) [N or N m]; None with anything else.
    """

    mech: Mechanism
    integrator: str
    step: float
    t: Array
    q: Array
    v: Array
    status: NDArray[np.int32]
    failed_step: NDArray[np.int64]
    kernel: Any = None
    origin: Origin | None = None
    pushes: Pushes | None = None
    residual: Array | None = None
    unsolved: Array | None = None
    penetration: Array | None = None
    slip: Array | None = None
    conditions: tuple[str, ...] = ()
    tau: Array | None = None
    not_modelled: tuple[str, ...] = ()

    @property
    def batch(self) -> int | None:
        """The number of motions; None for a single one."""
        return len(self.q) if self.q.ndim == 3 else None

    @property
    def stopped(self) -> NDArray[np.int64]:
        """The place in `conditions` of what ended each motion, or -1; () or (batch,)."""
        place = np.asarray(self.status, np.int64) - stopped(self.mech, 0)
        return np.where((place >= 0) & (place < len(self.conditions)), place, -1)

    @property
    def contact_forces(self) -> Array | None:
        """Mean forces of the ground in the step before each record, in world axes.

        (k, contacts, 3), or (batch, k, contacts, 3) [N]; None without contacts. They are made of
        recorded impulses at their first use.
        """
        return None if self.pushes is None else self.pushes.forces

    def gradient(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> RolloutGradient:
        """The gradient of a function of the records, by everything the rollout was given.

        The function is given by its slopes, a weight for each entry of each record: for
        ½ Σ |q − goal|² they are q − goal.

            runs = lw.rollout(arm, q, v, tau=tau, duration=1.0, step=1e-2)
            slopes = runs.gradient(q=runs.q - goal)
            tau -= rate * slopes.tau

        The motion is run in reverse, by one kernel, which costs about three times the rollout. It
        needs the state at every step. With `record_every=1` these are the records. Otherwise
        records are checkpoints, from which steps are made once more, part by part: a rollout of
        n steps with a record every √n of them takes memory for 2 √n states instead of n. With loops
        or couplings held by "rk4" and "euler" it is n in any case, and matrices of steps in parts
        of 64 MiB.

        Args:
            q: Weights of the positions, of the shape of `q` of this rollout, or without the axis
                of records for the last one; default: zeros. Quaternions have four weights.
            v: Weights of the velocities, likewise.

        Returns:
            The gradient by initial positions (along velocities, as in `mech.integrate`), initial
            velocities, joint forces or inputs of the law, and parameters; on the GPU where the
            records are. In a batch, motions that fail have gradients of NaN and a code.

        Raises:
            ModelError: The rollout was made step by step, or is a copy. With loops or couplings
                held by "rk4" and "euler" there are gradients for up to 10 and 24 velocities.
            ShapeError: Weights that do not fit.
            SimulationError: The gradient of a single motion grows without bounds.
        """
        if self.origin is None:
            raise ModelError(
                f"this rollout of {self.mech.name!r} by {self.integrator!r} has no gradient: it "
                "was made step by step (too many bodies, or a hinge without a formula), with noise "
                "or conditions, or is a copy."
            )
        like = arrays.foreign((self.q, self.v, q, v))
        if self.origin.projected:
            records = arrays.here("q", self.q), arrays.here("v", self.v)
            return closed_gradient(records, self.status, self.origin, (q, v), like)
        there = arrays.is_on_gpu(self.q)
        taken: Any = arrays.taken if there else arrays.here
        with arrays.stream(like) if there else nullcontext():
            records = taken("q", self.q), taken("v", self.v)
            return gradient(records, self.status, self.origin, (q, v), like)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = (self.mech, self.integrator, self.step, self.t, self.q, self.v)
        make = partial(Rollout, not_modelled=self.not_modelled)
        return make, (*kept, self.status, self.failed_step)

    def __repr__(self) -> str:
        return f"<Rollout of {self}>"

    def __str__(self) -> str:
        many = "one motion" if self.batch is None else f"{self.batch} motions"
        ends = ""
        for k, name in enumerate(self.conditions):
            if count := int(np.count_nonzero(self.stopped == k)):
                ends += f"; {count} stopped by {name!r}"
        lost = int(np.count_nonzero(self.status)) - int(np.count_nonzero(self.stopped >= 0))
        ends += f"; {lost} of them end early" if lost and self.batch is not None else ""
        if self.penetration is not None and self.slip is not None and len(self.t) > 1:
            # the last record that is not lost has the largest
            deepest, slip = (float(x[x == x].max()) for x in (self.penetration, self.slip))
            ends += f"; contacts penetrate by at most {deepest:.2g} m and slip with {slip:.2g} m/s"
        return (
            f"{self.mech.name}: {many} of {self.t[-1]:.6g} s in steps of {self.step:.3g} s by "
            f"{self.integrator}, {len(self.t)} records each{ends}"
            + "".join(f"\n  not modelled: {line}" for line in self.not_modelled)
        )
