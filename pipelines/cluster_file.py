"""Cluster files: YAML of nodes, GPU types and pools."""

from jobcast.traces.cluster_yaml import read_yaml, whole

__all__ = ["read_yaml", "whole"]
