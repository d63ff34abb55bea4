"""How far floats may lie apart that ought to be equal, by what they measure.

Sums in another order, products and quotients leave a few units in the last place; all of these lie above that and below
what anybody can tell apart. Some differ for the same unit where figures were made with them: they stay.
"""

# Compiled kernels keep these values in their caches, which numba renews only when their own files change.
EVENT_S = 5e-7
"""Events so close are one instant: near 1e9 s, adding floats up differently makes 2e-7 s; traces tell microseconds."""
INSTANT_S = 1e-6
"""A time so near to another is it: a completion and the decision that waits for it, an instant and one of a grid."""
LATER_S = 1e-3
"""A job starts or ends later than another, or misses its due date, by more than this."""

GPUS = 1e-9
"""GPUs below which an allocation is none, and beyond which one is more than another."""
# Coarser than GPUS: shares of many queues are added up before they are compared.
QUEUE_GPUS = 1e-7
"""GPUs that adding a queue's shares up may leave over; less is nobody's."""
# Coarser still: what policies of other people grant is not rounded as ours is.
CAPACITY_GPUS = 1e-6
"""GPUs by which shares that were added up may differ from what is asked, or there."""
LOADS = 1e-9
"""By which sums of the demands of tasks may miss a limit."""

EPOCHS = 1e-9
"""Epochs by which an iteration, or a share of the epochs, may miss the end of one."""
REGIME_EPOCHS = 1e-6
"""Share of a job's epochs by which its regimes may miss what is left."""
SHARES = 1e-9
"""Shares, of a whole or to a whole: accuracies, iterations, memory, batches, parts that add up to 1."""
WRITTEN_SHARES = 1e-6
"""The same of figures that someone wrote down, rounded."""
PROBABILITIES = 1e-3
"""By which probabilities that a model gives may miss 1 in all: they may be rounded."""

EUR = 1e-6
"""Costs of a schedule that are so close are the same."""
METRICS = 1e-9
"""By which a training metric may leave its limits."""
ERRORS_PCT = 1e-9
"""Errors of forecasts below it are none."""
COSTS = 1e-6
"""Costs, in steps of waiting, that count as equal: HiGHS answers to 1e-7."""
