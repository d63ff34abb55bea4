"""Schedulers of jobs of tasks: which task runs on which GPU, decided once a minute."""
