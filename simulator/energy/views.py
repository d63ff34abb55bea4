"""What a policy is shown: the engine's own arrays, which it cannot write to."""

from typing import NamedTuple, TypeVar

import numpy as np

from jobcast.domain.energy import EnergyJobs
from jobcast.simulator.energy.workload import EnergyWorkload, runs_on

Columns = TypeVar("Columns", bound=NamedTuple)


def read_only(columns: Columns) -> Columns:
    """The same columns, over the same memory; arrays refuse to be written to."""
    shown = []
    for column in columns:
        if isinstance(column, np.ndarray):
            column = column.view()
            column.flags.writeable = False
        shown.append(column)
    return type(columns)(*shown)


def shown_jobs(workload: EnergyWorkload) -> EnergyJobs:
    """Jobs as policies see them: times are infinite for more GPUs than nodes have."""
    jobs = workload.jobs
    return read_only(jobs._replace(epoch_s=jobs.epoch_s * runs_on(workload.cluster)))
