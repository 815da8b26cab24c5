"""A filter with a memory: measurements that come late are taken where they belong.

A tick is a function of the estimate before it. So the filter goes back to the tick at whose end a
measurement was taken, and repeats the ticks since then: the result is the one that the measurement
would have given in time, to the last digit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from linkwise.arguments import count
from linkwise.errors import ModelError
from linkwise.filtering.filter import Estimate, Filter
from linkwise.spatial.array import ArrayLike


class Tracker:
    """The running estimate of a filter, and its last ticks.

    Attributes:
        filter: The filter.
        estimate: The estimate now.
    """

    def __init__(self, filter: Filter, start: Estimate, *, memory: int = 20) -> None:
        """A tracker that begins with an estimate.

        Args:
            filter: The filter.
            start: What is known in the beginning.
            memory: Ticks that are kept: measurements may come this late.
        """
        if not isinstance(filter, Filter) or not isinstance(start, Estimate):  # pyright: ignore
            raise ModelError("a tracker takes a filter and an estimate of it (filter.start).")
        self.filter, self.estimate = filter, start
        self._past = deque[tuple[Estimate, Any, dict[str, ArrayLike], dict[str, Any]]](
            maxlen=count(memory, "memory", least=1)
        )

    def tick(
        self,
        tau: ArrayLike,
        measured: Mapping[str, ArrayLike] | None = None,
        *,
        step: float | None = None,
        **inputs: ArrayLike,
    ) -> Estimate:
        """The estimate after one step of time and its measurements: see `Filter.tick`.

        Args:
            tau: Joint forces (nv,) or (batch, nv) during the step [N or N m].
            measured: Measurements by name of the sensor.
            step: Length of the step [s]; default: that of the filter.
            inputs: Further inputs of sensors.
        """
        now = dict(measured or {})
        before, options = self.estimate, dict[str, Any](step=step, **inputs)
        self.estimate = self.filter.tick(before, tau, now, **options)
        self._past.append((before, tau, now, options))
        return self.estimate

    def late(self, measured: Mapping[str, ArrayLike], *, ago: int) -> Estimate:
        """The estimate now, with measurements that were taken some ticks ago.

        Args:
            measured: Measurements by name of the sensor, none of which had one at that tick.
            ago: How many ticks ago: 0 for the last one.
        """
        ago = count(ago, "ago")
        if ago >= len(self._past):
            raise ModelError(
                f"a measurement of {ago} ticks ago came; {len(self._past)} ticks are kept. Make "
                "the tracker with a longer memory, or leave the measurement out."
            )
        place = len(self._past) - 1 - ago
        twice = [name for name in measured if name in self._past[place][2]]
        if twice:
            raise ModelError(
                f"{', '.join(map(repr, twice))} had a measurement {ago} ticks ago already."
            )
        for k in range(place, len(self._past)):
            before, tau, now, options = self._past[k]
            if k == place:
                now = {**now, **measured}
            else:
                before = self.estimate
            self.estimate = self.filter.tick(before, tau, now, **options)
            self._past[k] = (before, tau, now, options)
        return self.estimate
