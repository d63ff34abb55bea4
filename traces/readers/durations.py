"""Durations held against start and end: a job may run for less than lies between them, never for longer."""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import TraceError
from jobcast.traces.check import LONGEST_NAME
from jobcast.traces.readers.reading import WITHOUT_STRICT
from jobcast.traces.table import Floats, Trace

ROUNDING_S, ROUNDING_SHARE = 2.0, 0.01
"""How much longer a duration may be: start and end are often cut to whole seconds."""
UNITS = (60.0, 1000.0, 3600.0, 86400.0, 1e6)
"""Factors between units of time: a column in another unit than seconds is off by one of them."""
NEAR, EXACT = 0.02, 0.001
"""How near to such a factor a ratio is that tells it, of a whole column and of one row."""
WHOLE_COLUMN = 0.9
"""Share of jobs that are off by one factor, from which the column is in another unit."""
FEW = 3
"""Of fewer jobs shorter durations tell no unit: they may have been preempted."""


def contradictions(trace: Trace, strict: bool) -> tuple[str, ...]:
    """A note on durations that are longer than end_time - start_time, or off by a unit of time; none where all fit.

    Shorter ones are no contradiction: preempted and suspended jobs have them. Nor are those of elastic jobs, which are
    on one GPU.

    Raises
    ------
    TraceError
        The whole column is in another unit than seconds; or there is any such job, under `strict`.
    """
    if not {"start_time", "end_time"} <= set(trace.jobs.columns):
        return ()
    known = trace.jobs["start_time"].is_not_null() & trace.jobs["end_time"].is_not_null()
    jobs = np.flatnonzero(known.to_numpy() & ~trace.elastic)
    if not len(jobs):
        return ()
    duration_s, span_s = trace.duration_s[jobs], trace.end_s[jobs] - trace.start_s[jobs]
    with np.errstate(divide="ignore"):
        ratio = duration_s / span_s
    _refuse_unit(trace, jobs, ratio)
    wrong = (duration_s - span_s > np.maximum(ROUNDING_S, ROUNDING_SHARE * span_s)) | _off_by_a_unit(ratio)
    if not wrong.any():
        return ()
    job = jobs[wrong][0]
    told = (
        f"duration: contradicts end_time - start_time in {int(wrong.sum()):,} of {len(jobs):,} jobs, "
        f"by a factor of {_factor(float(np.median(ratio[wrong])))} in the middle ({_job(trace, int(job))})"
    )
    if strict:
        raise TraceError(f"{trace.source.path}: {told}; {WITHOUT_STRICT}")
    return (told,)


def _refuse_unit(trace: Trace, jobs: NDArray[np.int64], ratio: Floats) -> None:
    """Refuse a column that is off by one factor between units of time throughout."""
    for unit in UNITS:
        for factor, remedy in ((unit, f"divide by {unit:g}"), (1.0 / unit, f"multiply by {unit:g}")):
            off = np.abs(ratio / factor - 1.0) <= NEAR
            if off.mean() >= WHOLE_COLUMN and (factor > 1.0 or len(ratio) >= FEW):
                job = int(jobs[off][0])
                raise TraceError(
                    f"{trace.source.path}: duration is {_factor(factor)} times end_time - start_time in "
                    f"{int(off.sum()):,} of {len(jobs):,} jobs ({_job(trace, job)}); give seconds: {remedy}"
                )


def _off_by_a_unit(ratio: Floats) -> NDArray[np.bool_]:
    """Which durations are shorter by a factor between units, to the point: hardly by preemption."""
    off: NDArray[np.bool_] = np.any([np.abs(ratio * unit - 1.0) <= EXACT for unit in UNITS], axis=0)
    return off


def _factor(factor: float) -> str:
    """
    >>> _factor(60.0), _factor(1 / 3600), _factor(9999.9), _factor(float("inf"))
    ('60', '1/3,600', '9,999.9', 'inf')
    """
    if factor < 1.0:
        return f"1/{_factor(1.0 / factor)}"
    return f"{factor:,.1f}".removesuffix(".0")


def _job(trace: Trace, job: int) -> str:
    name, span_s = trace.jobs["job_id"][job][:LONGEST_NAME], trace.end_s[job] - trace.start_s[job]
    return f"job {name}: {trace.duration_s[job]:,.10g} s where {span_s:,.10g} s lie between"
