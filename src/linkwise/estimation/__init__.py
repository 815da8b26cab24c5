"""The random-field view of a mechanism: inertia is covariance, dynamics is estimation.

    field = lw.estimation.RandomField(mech, q)
    field.draw(1000), field.filter(T), field.smooth(T), field.covariance("X - f")

`OPERATORS` and `COVARIANCES` list what can be asked for, each an expression of the algebra.
"""

from linkwise.estimation.batch import BatchEstimate
from linkwise.estimation.covariance import COVARIANCES, Covariance
from linkwise.estimation.kalman_filter import KalmanFilter
from linkwise.estimation.mass_matrix_sample import MassMatrixSample
from linkwise.estimation.operator import OPERATORS, Operator
from linkwise.estimation.random_field import Draws, RandomField
from linkwise.estimation.smoother import Smoother
from linkwise.front_door import open_front_door

__all__ = [
    "COVARIANCES",
    "OPERATORS",
    "BatchEstimate",
    "Covariance",
    "Draws",
    "KalmanFilter",
    "MassMatrixSample",
    "Operator",
    "RandomField",
    "Smoother",
]

open_front_door(globals(), __all__)
