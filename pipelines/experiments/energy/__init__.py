"""Simulations of training jobs with due dates on nodes of unlike GPUs."""
