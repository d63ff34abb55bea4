"""Training curves: how far a run's validation metric will get, when it converges, when to stop it."""
