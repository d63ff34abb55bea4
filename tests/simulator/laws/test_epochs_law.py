"""Jobs of epochs as elastic rules see them."""

import numpy as np

from jobcast.domain.energy import EpochTimes
from jobcast.domain.jobs import Job
from jobcast.simulator.laws.epochs import elastic_jobs


def test_beyond_the_most_gpus_of_which_a_time_is_known_jobs_gain_nothing_more():
    """Within what is known, beyond it, on nodes of a single GPU; the last one shrinks."""
    inf = np.inf
    epoch_s = np.array([[[8.0, 4.0]], [[8.0, 4.0]], [[8.0, inf]], [[8.0, 4.0]]])
    widths, least = (2, 4, 4, 4), (0, 0, 0, 1)
    jobs = [
        Job(seq, str(seq), "p", 0.0, gpus, min_gpus=fewest)
        for seq, (gpus, fewest) in enumerate(zip(widths, least, strict=True))
    ]
    seen = elastic_jobs(jobs, EpochTimes(np.full(4, 10.0), epoch_s), np.array([True]))
    assert seen.speedup[:, 0].tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 2.0]]
    assert seen.size_s.tolist() == [80.0] * 4
    assert seen.most.tolist() == [2.0, 4.0, 4.0, 4.0]
