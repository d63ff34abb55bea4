"""Whether a registered version has seen what it shall be asked about."""

import math
from collections.abc import Iterable
from typing import Any

from jobcast.domain.errors import OverlapError
from jobcast.pipelines.report.formatting import iso
from jobcast.traces.table import Trace

CALENDAR_FROM_S = 365 * 86400.0
"""Times before 1971 are seconds from a trace's own start: no cluster's calendar begins there."""


def refuse_overlap(
    version: Any, from_s: float, until_s: float | None, allowed: bool, trace_sha256: str | None = None
) -> bool:
    """Whether a version was trained on part of [from_s, until_s), or on what came after it.

    Of another trace whose times hang on no calendar either, nothing comes before or after.

    Raises OverlapError when it was and that is not allowed.
    """
    # Training that ends after the window is refused too: it has seen what came of the window's jobs.
    reaches = version.train_until_s > from_s and not apart_in_time(version, from_s, trace_sha256)
    if reaches and not allowed:
        raise OverlapError(
            f"{version.name} version {version.version} was trained on data until {iso(version.train_until_s)}, "
            f"which reaches into the window from {iso(from_s)} to {iso(_finite(until_s)) or 'the end'}; "
            "choose another version or a later --from, or pass --allow-overlap"
        )
    return bool(reaches)


def another_cluster(version: Any, predictor: Any, pools: Iterable[str]) -> list[str]:
    """A line where a version is asked about pools none of which it has learnt from; [] else."""
    learnt = getattr(predictor, "pools_", ())
    # Predictors that know no pools by name fit any cluster.
    if not learnt or not set(learnt).isdisjoint(pools):
        return []
    text = f"{version.name} {version.version} was trained on another cluster ({version.trace_name})"
    return [f"{text}: on none of these pools"]


def seen_until(version: Any, at_s: float, trace_sha256: str) -> bool:
    """Whether a version was trained on what came after an instant of a trace; see `apart_in_time`."""
    return bool(version.train_until_s > at_s and not apart_in_time(version, at_s, trace_sha256))


def seen_by(version: Any, window: Trace, allowed: bool) -> bool:
    """`refuse_overlap` of the jobs of a window."""
    return refuse_overlap(version, float(window.submit_s[0]), None, allowed, window.source.sha256)


def apart_in_time(version: Any, from_s: float, trace_sha256: str | None) -> bool:
    """Whether a version and a window are of two traces that both count seconds from their own start."""
    if trace_sha256 is None or trace_sha256 == version.trace_sha256:
        return False
    # Both must count from their own start: a calendar on one side tells which came first.
    return bool(max(version.train_from_s, from_s) < CALENDAR_FROM_S)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
