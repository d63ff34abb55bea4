"""Elastic rules where jobs hold whole GPUs of nodes, and some cannot shrink: what a rule grants, completed.

A grant below a job's width is none. What is granted in sum serves whole widths in the rule's own order: who got the
greater part of its width comes first. A job starts when it can get on for the first time.
"""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.elastic import ElasticPolicy, ElasticView
from jobcast.domain.policy import Decision, Grant, View


class WholeWidths:
    """Asks an elastic policy that deals out whole GPUs as if all were alike; where they lie the placer says.

    Parameters
    ----------
    policy : whose grants are completed
    """

    def __init__(self, policy: ElasticPolicy) -> None:
        self._policy, self.name, self.trigger = policy, policy.name, policy.trigger

    def decide(self, view: View) -> Decision:
        """Who holds another number of GPUs from now on."""
        seen = view.facts(ElasticView)
        gpus = np.zeros((len(seen.left_s), len(seen.capacity)))
        self._policy.rule(seen, self._policy.numbers, gpus)
        widths = np.array([job.min_gpus or job.gpus for job in view.active.values()])
        served = whole_widths(gpus[list(view.active)].sum(axis=1), widths)
        held = [view.running[seq].grant.gpus if seq in view.running else 0.0 for seq in view.active]
        changed = zip(view.active, held, served.tolist(), strict=True)
        return Decision({seq: Grant(new) if new else None for seq, old, new in changed if new != old})


def whole_widths(granted: Floats, widths: Ints) -> Ints:
    """(n,) GPUs that jobs hold, from those that they were granted; nobody holds fewer than its width.

    >>> whole_widths(np.array([2.0, 3.0, 3.0]), np.array([2, 4, 4])).tolist()
    [2, 4, 0]
    """
    # Less than its width is of no use to a job that cannot shrink.
    served = np.where(granted >= widths - tolerance.GPUS, np.floor(granted + tolerance.GPUS), 0.0).astype(np.int64)
    left = int(granted.sum() + tolerance.GPUS) - int(served.sum())
    for row in np.argsort(-granted / widths, kind="stable"):
        if granted[row] > tolerance.GPUS and not served[row]:
            # In the rule's order, without overtaking: else a wide job would wait for ever.
            if widths[row] > left:
                break
            served[row] = widths[row]
            left -= int(widths[row])
    return served
