"""Mechanisms in motion: integrators, controllers, events, recordings, rollouts as one kernel."""
