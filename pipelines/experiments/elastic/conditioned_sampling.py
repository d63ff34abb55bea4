"""Sizes that agree with what the scheduler is seen to do: whom a rule serves that goes by size tells who is short.

Under SRSF a job that waits is longer than those that run; under PCS a job that runs ahead of earlier ones is in another
queue. Sizes are drawn anew where the rule, asked about them, would serve a job that waits or let one wait that runs.
"""

from collections.abc import Callable

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.elastic import ElasticJobs, ElasticView, Floats, Ints
from jobcast.simulator.elastic.run import ElasticReplay
from jobcast.simulator.elastic.state import CLOCK, OVERDUE_S

SWEEPS = 60
"""Times that the rule is asked at most; the sizes that it contradicts least are kept."""
Redraw = Callable[[Ints], Floats]


def agreeing_sizes(run: ElasticReplay, jobs: ElasticJobs, active: Ints, sizes: Floats, redraw: Redraw) -> Floats:
    """Sizes under which the rule serves those jobs that hold GPUs, and no others, as far as `SWEEPS` allow.

    Under a rule that does not look at sizes, such as FIFO, they stay as they are.

    Parameters
    ----------
    run : stopped at an instant; left as it is
    jobs : the active jobs alone, numbered from 0
    active : (n_active,) their ids in the run
    sizes : (n_active,) a first draw, seconds on one GPU
    redraw : draws sizes for some of them, given as positions in `active`
    """
    held = run.state.gpus[active].sum(axis=1) > tolerance.GPUS
    best, fewest = sizes, len(sizes) + 1
    for _ in range(SWEEPS):
        wrong = np.flatnonzero(_served(run, jobs, active, sizes) != held)
        if len(wrong) < fewest:
            best, fewest = sizes, len(wrong)
        if not len(wrong):
            break
        sizes = sizes.copy()
        sizes[wrong] = redraw(wrong)
    return best


def _served(
    run: ElasticReplay, jobs: ElasticJobs, active: Ints, sizes: Floats
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whom the rule would serve now if these were the sizes, (n_active,)."""
    state, count = run.state, len(active)
    gpus = np.zeros((count, len(run.cluster.capacity)))
    view = ElasticView(
        now_s=float(state.clock[CLOCK.now]),
        capacity=run.cluster.capacity,
        active=np.arange(count),
        count=count,
        jobs=jobs._replace(size_s=sizes),
        left_s=np.maximum(sizes - state.done_s[active], OVERDUE_S),
        most=state.most[active],
        held_gpu_s=state.gpu_s[active],
        contention=state.contention[active],
    )
    run.policy.rule(view, run.policy.numbers, gpus)
    return np.asarray(gpus.sum(axis=1) > tolerance.GPUS)
