"""Forecasts by HTTP: who may ask, which versions answer, what is told."""
