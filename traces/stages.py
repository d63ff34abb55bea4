"""Stages of elastic jobs, as the column `stages` tells them: "0.5:16;0.25:8;0.25:4".

Each stage is a share of the job's whole work and the most GPUs that it can use meanwhile: what is left of the trials
of an AutoML app under successive halving. The shares add up to 1; a job without stages has one, of all its work.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TraceError
from jobcast.traces.table import Trace

STAGES = "stages"
Stage = tuple[float, int]
"""(share of the work, most GPUs)."""
FORM = 'write share:gpus;share:gpus as in "0.5:16;0.25:8;0.25:4"'


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """Stages of all jobs, one job after another.

    Attributes
    ----------
    stage_of : (n_jobs + 1,) those of job j are stage_of[j] .. stage_of[j + 1] - 1
    stage_end : (n_stages,) share of the job's work done at its end, 1 for a job's last one
    stage_most : (n_stages,) most GPUs that the job can use in it
    """

    stage_of: NDArray[np.int64]
    stage_end: Floats
    stage_most: Floats


def stages_of(trace: Trace) -> Stages:
    """Stages of a trace's jobs, in its order; raises TraceError where one cannot be read, naming the job."""
    texts = trace.jobs[STAGES].to_list() if STAGES in trace.jobs.columns else [None] * len(trace)
    ends: list[float] = []
    mosts: list[float] = []
    starts = [0]
    for job_id, text, gpus in zip(trace.jobs["job_id"], texts, trace.gpus.tolist(), strict=True):
        try:
            # no stages: one of all the work, at the full width
            stages = parse_stages(text) if text else ((1.0, gpus),)
            if max(most for _, most in stages) > gpus:
                raise ValueError(f"must not use more than the job's {gpus} GPUs")
        except ValueError as error:
            where = f"{trace.source.path}, job {job_id}, column {STAGES}"
            raise TraceError(f"{where}: {error}, got {text!r}; {FORM}") from None
        shares = np.cumsum([share for share, _ in stages])
        # exactly 1, whatever the sum rounds to: a replay ends there
        ends += [*shares[:-1].tolist(), 1.0]
        mosts += [float(most) for _, most in stages]
        starts.append(len(ends))
    return Stages(np.array(starts, dtype=np.int64), np.array(ends), np.array(mosts))


def parse_stages(text: str) -> tuple[Stage, ...]:
    """Read one field; raises ValueError.

    >>> parse_stages("0.5:16;0.25:8;0.25:4")
    ((0.5, 16), (0.25, 8), (0.25, 4))
    """
    stages = []
    for part in text.split(";"):
        share, colon, most = part.partition(":")
        if not colon:
            raise ValueError("a stage must be a share and a number of GPUs")
        stages.append((_share(share), _gpus(most)))
    if abs(sum(share for share, _ in stages) - 1) > tolerance.WRITTEN_SHARES:
        raise ValueError(f"shares must add up to 1, not {sum(share for share, _ in stages):g}")
    return tuple(stages)


def stages_text(stages: Sequence[Stage]) -> str:
    """Write one field, so that `parse_stages` reads the same numbers.

    >>> stages_text([(0.75, 4), (0.25, 1)])
    '0.75:4;0.25:1'
    """
    return ";".join(f"{share!r}:{most}" for share, most in stages)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise ValueError("shares must be numbers") from None
    # written shares are rounded
    if not 0 < share <= 1 + tolerance.WRITTEN_SHARES:
        raise ValueError("shares must lie in (0, 1]")
    return share


def _gpus(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("GPUs must be whole numbers >= 1")
    return int(text)
