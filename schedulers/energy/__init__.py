"""Policies that weigh the price of energy against due dates, on nodes with unlike GPUs."""
