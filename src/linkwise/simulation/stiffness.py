"""Whether an explicit method makes short steps to stay stable, and not to be accurate."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST = 6.1
"""h λ up to which DOP853 is stable."""

STIFF, PLAIN = 15, 6
"""Steps above it after which a motion is stiff; steps below it after which they no longer count."""


class Stiffness:
    """Looks at the steps of DOP853: two slopes at the end of each show the fastest rate λ.

        h λ ≈ h |f(t + h, y') − f(t + h, Y)| / |y' − Y|   with the last stage Y

    Source: Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.2.

    Attributes:
        since: When the motion became stiff [s]; None where it did not.
        rate: The largest λ while it was [1/s].
        steps: How many steps were limited.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.rate, self.steps = 0.0, 0
        self._stiff = self._plain = 0

    def look(self, solver: Any, size: int) -> None:
        """A step was made; `size` entries of y are the state."""
        h, last = float(solver.t - solver.t_old), solver.n_stages - 1
        stage = solver.y_old + h * (solver.K[:last].T @ solver.A[last, :last])
        apart = float(np.linalg.norm((solver.y - stage)[:size]))
        slopes = float(np.linalg.norm((solver.K[last + 1] - solver.K[last])[:size]))
        if apart <= 0.0:
            return
        if h * slopes > LARGEST * apart:
            self._stiff, self._plain = self._stiff + 1, 0
            self.steps, self.rate = self.steps + 1, max(self.rate, slopes / apart)
            if self._stiff == STIFF and self.since is None:
                self.since = float(solver.t_old)
        else:
            self._plain += 1
            if self._plain == PLAIN:
                self._stiff = 0

    def __str__(self) -> str:
        if self.since is None:
            return ""
        return (
            f"from t = {self.since:.6g} s; rates of {self.rate:.2g} 1/s limited {self.steps} "
            "steps: integrator='implicit' or 'rosenbrock' takes longer ones"
        )
