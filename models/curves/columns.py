"""Columns of what is known of a curve once it is scaled; see `scaling`."""

BASE, PER_V, NOISE_SD, LAST, LEVEL, REACHED, SHARE, ANNEALED, ORIGIN, LENGTH, ROOM, RECENT, CENTER = range(13)
"""Columns of what is known of a curve: metric at v = 0, metric per v (signed), standard deviation of noise in v, last
value seen; level in v, mean progress that was expected there, p of the last value; noise in v if annealing may give it
back; epoch - 1 at p = 0, epochs to p = 1; way from the level to the bound in v; values that the level is the
mean of, and mean p of these."""
SCALE_WIDTH = 13
