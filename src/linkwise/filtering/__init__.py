"""Estimation in time: Kalman filters and smoothers of moving mechanisms.

sensors = [lw.filtering.encoders(arm, noise=1e-3), lw.filtering.gyroscope("hand", noise=1e-2)]
kalman = lw.filtering.kalman_filter(arm, sensors, step=1e-3)
estimate = kalman.start(q)
estimate = kalman.tick(estimate, tau, {"encoders": measured_q, "gyroscope hand": omega})
"""

from linkwise.filtering.consistency import (
    Consistency as Consistency,
    consistency as consistency,
)
from linkwise.filtering.filter import (
    Estimate as Estimate,
    Filter as Filter,
)
from linkwise.filtering.kalman import (
    kalman_filter as kalman_filter,
)
from linkwise.filtering.momentum_observer import (
    MomentumObserver as MomentumObserver,
    Observation as Observation,
    momentum_observer as momentum_observer,
)
from linkwise.filtering.sensor import (
    Sensor as Sensor,
    accelerometer as accelerometer,
    encoders as encoders,
    expression_sensor as expression_sensor,
    gyroscope as gyroscope,
    load_cell as load_cell,
    marker as marker,
    tachometers as tachometers,
)
from linkwise.filtering.smoother import (
    Filtered as Filtered,
)
from linkwise.filtering.tracker import (
    Tracker as Tracker,
)
from linkwise.front_door import open_front_door

open_front_door(globals(), records=("Sensor",))
