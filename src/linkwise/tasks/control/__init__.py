"""Control in task space: servos, priorities, postures, joint limits, singularities."""
