"""Learned schedulers of tasks: what the registry keeps of them, and how their networks learn."""
