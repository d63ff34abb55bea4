"""Jobs as they were known when training ended: what sizes are drawn from, kept with a model."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import TrainingError
from jobcast.traces.table import Trace

MOST = 4_000
"""The last so many jobs are kept; those before hardly weigh."""
ALIKE = ("user", "tag", "model")
"""Columns by which jobs of a width are alike, from the coarsest on."""
FEWEST = 2
"""Jobs that must have ended to learn from."""
Key = tuple[int, str, str, str]
"""Width, and what a job says in the columns of `ALIKE`; empty where it says nothing."""


def keys_of(trace: Trace) -> list[Key]:
    """(n_jobs,) whom each job is alike."""
    names = ([str(name or "") for name in trace.values(column)] for column in ALIKE)
    return list(zip(trace.gpus.tolist(), *names, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class KnownJobs:
    """Jobs in order of submission; arrays (n_jobs,).

    Attributes
    ----------
    submit_s : seconds from the end of training, less than 0
    known_s : when the end was known, alike; infinite of those that had not ended
    run_s : seconds, of those that had not ended as far as they ran for sure
    least, most : GPUs that a job needs and can use
    run_gpus : that its run time holds for
    keys : whom it is alike
    """

    submit_s: Floats
    known_s: Floats
    run_s: Floats
    least: Ints
    most: Ints
    run_gpus: Ints
    keys: tuple[Key, ...]

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, trace: Trace, from_s: float, until_s: float) -> Self:
        """The last jobs that were submitted in [from_s, until_s), and what was known of them at its end."""
        # The window's end is exclusive: what becomes known at that instant is not.
        known = trace.as_of(float(np.nextafter(until_s, -np.inf))).between(from_s, until_s)
        known = known.between(float(known.submit_s[-MOST]) if len(known) > MOST else None, None)
        # One of which nothing is heard may have ended as long ago as ends take to be told.
        so_far_s = np.clip(until_s - known.lag_s - known.start_s, 0.0, None)
        # 0 where the trace does not say: the job then needs what it has asked for.
        least = known.numbers("min_gpus", 0.0).astype(np.int64)
        return cls(
            known.submit_s - until_s,
            np.where(known.ended, known.known_s - until_s, np.inf),
            np.where(known.ended, known.duration_s, np.where(np.isfinite(so_far_s), so_far_s, 0.0)),
            np.where(least > 0, least, known.gpus),
            known.gpus,
            known.duration_gpus,
            tuple(keys_of(known)),
        )

    @classmethod
    def enough(cls, trace: Trace, from_s: float, until_s: float) -> Self:
        """`of`. Raises TrainingError where fewer than two had ended."""
        past = cls.of(trace, from_s, until_s)
        if past.ended.sum() < FEWEST:
            text = f"{trace.source.path}: {past.ended.sum()} jobs had ended"
            raise TrainingError(f"{text}; run times are learnt from two on, take a longer window")
        return past

    @property
    def ended(self) -> NDArray[np.bool_]:
        """(n_jobs,) whose run time was known."""
        return np.isfinite(self.known_s)

    @property
    def work_s(self) -> Floats:
        """(n_jobs,) seconds on one GPU where g GPUs are g times as fast, of those that had not ended as far as done."""
        return self.run_s * self.run_gpus

    def as_dict(self) -> dict[str, list[Any]]:
        """Columns as JSON can hold them."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)[:-1]}
        result = {name: values.tolist() for name, values in columns.items()}
        # JSON has no infinity.
        result["known_s"] = [value if np.isfinite(value) else None for value in result["known_s"]]
        names = {name: [key[place] for key in self.keys] for place, name in enumerate(ALIKE, 1)}
        return {**result, **names}

    @classmethod
    def read(cls, saved: Mapping[str, list[Any]]) -> Self:
        """From what `told` gave."""
        submit_s, known_s, run_s = (
            np.array(saved[name], dtype=np.float64) for name in ("submit_s", "known_s", "run_s")
        )
        least, most, run_gpus = (np.array(saved[name], dtype=np.int64) for name in ("least", "most", "run_gpus"))
        keys = zip(saved["most"], *(saved[name] for name in ALIKE), strict=True)
        # null becomes NaN in an array of floats.
        known_s = np.where(np.isnan(known_s), np.inf, known_s)
        return cls(submit_s, known_s, run_s, least, most, run_gpus, tuple(keys))
