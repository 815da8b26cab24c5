"""Identification: parameters of a mechanism from measurements.

motion = lw.identification.smoothed(arm, t, q, tau, bandwidth=10.0)
fit = lw.identify(arm, motion.q, motion.v, motion.vdot, motion.tau)
print(fit), fit.mech, fit.interval()
"""

from linkwise.front_door import open_front_door
from linkwise.identification.cross_validation import (
    CrossValidation as CrossValidation,
    cross_validate as cross_validate,
)
from linkwise.identification.estimate import (
    Identification as Identification,
)
from linkwise.identification.excitation import (
    exciting_motion as exciting_motion,
)
from linkwise.identification.fit import (
    identify as identify,
)
from linkwise.identification.measurement import (
    Measurements as Measurements,
    load_measurements as load_measurements,
)
from linkwise.identification.motion import (
    SmoothMotion as SmoothMotion,
    smoothed as smoothed,
)
from linkwise.identification.progress import (
    Progress as Progress,
)
from linkwise.identification.rollout_fit import (
    RolloutFit as RolloutFit,
    identify_rollout as identify_rollout,
)

open_front_door(globals())
