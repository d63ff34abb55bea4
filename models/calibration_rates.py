"""How fast `duration_calibration` learns, and what it mixes: read by its compiled steps as well."""

FORECASTS = ("booster", "tag_pool_width", "last_20_pool_width", "last_finished", "majority")
"""What is mixed: the booster, and the rules of `models.evaluation.durations`."""
HEAD_START = 1.0
"""Log weight of the booster before anything is known: small, so that on a small cluster, where little is learnt of its
bursts, the rules are heard; thousands of jobs soon outweigh it (Graham until 10 June 2021, Philly until 6 November)."""
LEAST_TEMPER, MOST_TEMPER = 0.3, 1.3
"""Powers that a mixture is raised to lie in between."""
TRUST_RATE = 0.1
"""Of log weights: how much a difference of log loss of 1 moves them."""
SHIFT_RATE = 0.01
"""Step of the shifts of bins, in log odds."""
TEMPER_RATE = 0.003
"""Step of the power."""
FORGOTTEN = 0.002
"""Share of log weights, power and shifts that is forgotten with each job."""
LEAST = 1e-9
