"""The random-field view of a mechanism: inertia is covariance, dynamics is estimation.

    field = lw.estimation.RandomField(mech, q)
    field.draw(1000), field.filter(T), field.smooth(T), field.covariance("X - f")

`OPERATORS` and `COVARIANCES` list what is available, each an expression of the algebra.
"""

from linkwise.estimation.covariance import (
    COVARIANCES as COVARIANCES,
    Covariance as Covariance,
)
from linkwise.estimation.estimate import (
    BatchEstimate as BatchEstimate,
    KalmanFilter as KalmanFilter,
    Smoother as Smoother,
)
from linkwise.estimation.operator import (
    OPERATORS as OPERATORS,
    Operator as Operator,
)
from linkwise.estimation.random_field import (
    Draws as Draws,
    RandomField as RandomField,
)
from linkwise.front_door import open_front_door

open_front_door(globals())
