"""Policies: small, pure decisions over a frozen view of the cluster."""
