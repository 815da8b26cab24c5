"""The public names: type checkers and the lazy loader of `__init__.py` both read this list."""

# isort: skip_file

from .algebra.differential import (
    differentiate as differentiate,
)
from .algebra.prove import (
    prove as prove,
)
from .control import (
    lqr as lqr,
    optimize as optimize,
)
from .dynamics import (
    bias_force as bias_force,
    center_of_mass as center_of_mass,
    computed_torque as computed_torque,
    coriolis_matrix as coriolis_matrix,
    difference as difference,
    energy as energy,
    forward_dynamics as forward_dynamics,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    forward_kinematics as forward_kinematics,
    pd_gravity as pd_gravity,
    gravity_force as gravity_force,
    hinge_forces as hinge_forces,
    hybrid_dynamics as hybrid_dynamics,
    integrate as integrate,
    inverse_dynamics as inverse_dynamics,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
    inverse_kinematics as inverse_kinematics,
    jacobian as jacobian,
    jacobian_dot as jacobian_dot,
    mass_matrix as mass_matrix,
    mass_matrix_inverse as mass_matrix_inverse,
    momentum as momentum,
    node_acceleration as node_acceleration,
    node_velocity as node_velocity,
    operational_inertia as operational_inertia,
    operational_space as operational_space,
    passive_force as passive_force,
    regressor as regressor,
)
from .errors import (
    ClosureError as ClosureError,
    LinkwiseError as LinkwiseError,
    ModelError as ModelError,
    ParseError as ParseError,
    ShapeError as ShapeError,
    SimulationError as SimulationError,
)
from .grasp import (
    Grasp as Grasp,
)
from .identification import (
    identify as identify,
)
from .io.load import (
    load as load,
)
from .io.save import (
    save as save,
)
from .loops.products import (
    jvp as jvp,
    vjp as vjp,
)
from .model import (
    Actuator as Actuator,
    Body as Body,
    Builder as Builder,
    Coupling as Coupling,
    Drive as Drive,
    Geometry as Geometry,
    Loop as Loop,
    Mechanism as Mechanism,
    Node as Node,
    hinges as hinges,
)
from .pipeline import (
    compile as compile,
    derive as derive,
    plan as plan,
)
from .simulation import (
    Event as Event,
    Recording as Recording,
    Simulator as Simulator,
    linearize as linearize,
    load_recording as load_recording,
    rollout as rollout,
    simulate as simulate,
)
from .spatial import (
    Pose as Pose,
    SpatialInertia as SpatialInertia,
)
from .study import (
    Study as Study,
)
from .tasks import (
    Goal as Goal,
    Task as Task,
    TaskController as TaskController,
    control_law as control_law,
)
from .viewer import (
    view as view,
)

# Last: type checkers take `dynamics.energy` for the module of that name otherwise.
from . import (
    algebra as algebra,
    control as control,
    convert as convert,
    dynamics as dynamics,
    errors as errors,
    estimation as estimation,
    filtering as filtering,
    flexible as flexible,
    grasp as grasp,
    identification as identification,
    inertial as inertial,
    loops as loops,
    models as models,
    papers as papers,
    plot as plot,
    simulation as simulation,
    study as study,
    tasks as tasks,
    viewer as viewer,
)

__version__: str
