"""Mechanisms in motion: integrators, controllers, events, recordings, whole rollouts as one kernel."""
