"""Elastic jobs replayed: compiled, so that a completion time can be forecast by playing the cluster forward."""
