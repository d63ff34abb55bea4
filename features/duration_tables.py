"""Tables of jobs that the compiled loops of the duration features read and write."""

from typing import NamedTuple

from jobcast.domain.arrays import Floats, Ints


class Finished(NamedTuple):
    """Jobs that have ended, in that order, and room for more; `duration_kernels.note` enters one.

    Attributes
    ----------
    end_s, bins, logs : (N,) ends, duration bins, log run times
    before : (N, G) the job of the same group that ended before it, -1 for none
    last : (K,) the last one of each group, -1 for none
    """

    end_s: Floats
    bins: Ints
    logs: Floats
    before: Ints
    last: Ints


class Started(NamedTuple):
    """Jobs that have started, in that order, as `Finished`; `duration_kernels.begin` enters one.

    Attributes
    ----------
    start_s, end_s : (N,) starts, and ends, infinite of what runs
    """

    start_s: Floats
    end_s: Floats
    before: Ints
    last: Ints


class SweptJobs(NamedTuple):
    """Jobs of a trace, whose rows are filled in one go.

    Attributes
    ----------
    submit_s, start_s, end_s, duration_s, limit_s : (N,) seconds
    arrivals, starts, finishes : (N,) jobs in order of submission, start and end
    groups : (N, G) groups of each job
    row : (N,) of each job, -1 for none
    """

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    duration_s: Floats
    limit_s: Floats
    arrivals: Ints
    starts: Ints
    finishes: Ints
    groups: Ints
    row: Ints
