"""Mechanisms in motion: integrators, controllers, events, recordings, rollouts as one kernel."""

from linkwise.front_door import open_front_door
from linkwise.simulation.channel import Channel
from linkwise.simulation.event import Event
from linkwise.simulation.files import load_recording
from linkwise.simulation.recording import Recording
from linkwise.simulation.report import Report

__all__ = ["Channel", "Event", "Recording", "Report", "load_recording"]

open_front_door(globals(), __all__)
