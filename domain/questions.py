"""Questions that predictors answer: what is forecast, whoever forecasts it."""

from enum import StrEnum


class Question(StrEnum):
    """A question by its name. Every predictor answers one; schedulers ask questions, not predictors."""

    ARRIVALS = "arrivals"
    """Will jobs arrive in a pool within a horizon?"""
    LOADS = "loads"
    """How many GPUs will they ask for?"""
    DURATIONS = "durations"
    """How long will a job run?"""
    REGIMES = "regimes"
    """How will a training job's batch size change?"""
    ACCURACIES = "accuracies"
    """How far will its metric get?"""
    EPOCH_TIMES = "epoch-times"
    """How long does an epoch take on other GPUs?"""
    COMPLETIONS = "completions"
    """When will a job start and finish?"""
    SIZES = "sizes"
    """How much work is in a job?"""
    WAITS = "waits"
    """How long will a pending job wait?"""
    GOODPUT = "goodput"
    """How much progress do more GPUs bring?"""
    TASK_ORDER = "task-order"
    """Which task first, and where?"""
    DEVICE_ORDER = "device-order"
    """The same, by completion times alone."""
