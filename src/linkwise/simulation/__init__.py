"""Mechanisms in motion: integrators, controllers, events, recordings, rollouts as one kernel."""

from linkwise.front_door import open_front_door
from linkwise.model.contact import (
    ContactPair as ContactPair,
    ContactRules as ContactRules,
    Surface as Surface,
)
from linkwise.simulation.actuation import hold_commands as hold_commands
from linkwise.simulation.channel import Channel as Channel, Event as Event
from linkwise.simulation.collision import Collisions as Collisions
from linkwise.simulation.implicit.ground import (
    ContactPoint as ContactPoint,
    Ground as Ground,
    HeightField as HeightField,
)
from linkwise.simulation.implicit.step_expression import (
    ImplicitStep as ImplicitStep,
    implicit_step as implicit_step,
)
from linkwise.simulation.implicit.steps import put_on_ground as put_on_ground
from linkwise.simulation.implicit.touching import (
    contact_points as contact_points,
    ground_contacts as ground_contacts,
)
from linkwise.simulation.integrators import INTEGRATORS as INTEGRATORS
from linkwise.simulation.limits import LimitSpring as LimitSpring
from linkwise.simulation.linearize import linearize as linearize
from linkwise.simulation.recording import Recording as Recording
from linkwise.simulation.recording_file import load_recording as load_recording
from linkwise.simulation.report import Report as Report
from linkwise.simulation.rollout import rollout as rollout
from linkwise.simulation.rollout_gradient import RolloutGradient as RolloutGradient
from linkwise.simulation.rollout_result import Rollout as Rollout
from linkwise.simulation.run import simulate as simulate
from linkwise.simulation.simulator import Simulator as Simulator
from linkwise.simulation.vector_env import VectorEnv as VectorEnv
from linkwise.simulation.vibration import Vibration as Vibration, vibrations as vibrations

open_front_door(globals(), careful=("linearize", "Simulator.step"))
