"""A learned scheduler of tasks that the rule whose place it takes decides for, wherever it cannot."""

import numpy as np

from jobcast.domain.answer_checks import failed
from jobcast.domain.bad_answers import BadAnswerError, BadAnswers, Reason
from jobcast.domain.tasks import TaskDecision, TaskPolicy, TaskView
from jobcast.schedulers.tasks.network import Networks

DECISIONS = "decisions"
"""What bad answers are counted as."""
MOST_WEIGHT = 1e6
"""Trained weights are some tens; sums of so large ones are still far from infinite, so that all scores are numbers."""


class GuardedPolicy:
    """A learned policy's decisions, the rule's where its networks score no numbers or anything is raised.

    Parameters
    ----------
    learned, rule : neither remembers earlier decisions
    networks : of the learned policy
    told : where decisions of the rule are counted
    """

    def __init__(self, learned: TaskPolicy, rule: TaskPolicy, networks: Networks, told: BadAnswers) -> None:
        self.name, self._learned, self._rule, self._told = learned.name, learned, rule, told
        self._fault = fault_of(networks)

    def decide(self, view: TaskView) -> TaskDecision:
        """See `domain.tasks.TaskPolicy`."""
        self._told.checked(DECISIONS)
        try:
            if self._fault is not None:
                raise BadAnswerError(*self._fault)
            return self._learned.decide(view)
        except Exception as error:  # whatever a learned policy does wrong, the run goes on without it
            failed(self._told, DECISIONS, error, f"at {view.now_s:.0f} s: ")
            return self._rule.decide(view)


def fault_of(networks: Networks) -> tuple[Reason, str] | None:
    """Why scores of networks may be no numbers; None where they are."""
    for head, layers in (("jobs", networks.jobs), ("hosts", networks.hosts)):
        for name, weights in zip(layers._fields, layers, strict=True):
            if not np.isfinite(weights).all():
                return Reason.NOT_FINITE, f"weights of {head}.{name} are no numbers"
            if (np.abs(weights) > MOST_WEIGHT).any():
                return Reason.OUT_OF_RANGE, f"weights of {head}.{name} are beyond {MOST_WEIGHT:g}"
    return None
