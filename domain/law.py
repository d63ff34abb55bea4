"""Laws of progress by name: how what jobs hold becomes work done."""

RUNTIME, SPEEDUP, EPOCHS, GOODPUT, TASKS = "runtime", "speedup", "epochs", "goodput", "tasks"
"""Seconds on the GPUs that were asked for (regimes of batch sizes included); a speedup by number of GPUs; seconds an
epoch by type and number; goodput by number and batch size; graphs of tasks."""
