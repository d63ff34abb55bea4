"""Experiments: a trace and a cluster as a world, a policy in it, what comes of that, and why."""
