"""A policy of each kind, as small as they can be."""
