"""A small workload to learn on."""

import numpy as np

from tests.simulator.tasks.task_cases import TaskJob, cluster_of, workload_of


def small_workload(count=24, servers=3, seed=0):
    """Jobs of one to four workers, submitted a few minutes apart, of some minutes to an hour."""
    rng = np.random.default_rng(seed)
    rows = [
        TaskJob(
            submit_s=240.0 * number,
            iterations=float(rng.integers(60, 600)),
            epochs=10,
            workers=int(rng.choice([1, 2, 4])),
            gpu=0.6,
            volume_mb=40.0,
            chain=bool(rng.integers(2)),
            server=bool(rng.integers(2)),
            compute_s=4.0,
            deadline_s=240.0 * number + float(rng.uniform(1800.0, 9000.0)),
            urgency=float(rng.integers(1, 11)),
            target=0.7,
            algorithm=int(rng.integers(5)),
        )
        for number in range(count)
    ]
    return workload_of(rows, cluster_of(servers, 2))
