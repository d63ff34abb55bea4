"""Elastic jobs from files to figures: workloads, simulations, forecasts of completion times."""
