"""The figures of MLFS, made anew."""
