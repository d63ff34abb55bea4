"""Rows whose times lie far from all others: named and refused when a trace is read, or left out and counted.

One row of 1970, what logs write for an unknown time, in a trace of weeks makes every figure over its span wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Ints
from jobcast.traces.check import Place

DROPPED = "time far from all others"
"""The reason that left-out rows are counted under."""
REMEDY = "correct the rows, or leave them out with --drop-outliers"
COLUMNS = ("submit_time", "start_time", "end_time")
LEAST_ROWS = 10
"""Fewer times than this have no bulk that one of them could lie far from."""
FEW = 0.05
"""Share of the rows, at either end, that may be odd; more of them are a part of the trace."""
FEW_INSTANTS = 100
"""More instants than this at an end are a part of the trace as well, however small: an earlier cluster, a pilot."""
SPANS = 5
"""A gap of so many spans of the bulk parts odd rows from it."""
YEAR_S = 365 * 86400.0
DAY_US = 86_400_000_000
LEAST_GAP_US = 365 * DAY_US
"""However short the trace, a gap of less is none: clusters stand still for months, and traces are put together."""
_DROPPING: ContextVar[bool] = ContextVar("dropping_outliers", default=False)


@contextmanager
def dropping_outliers() -> Iterator[None]:
    """Leave out and count, in traces read meanwhile, the rows that would be refused."""
    token = _DROPPING.set(True)
    try:
        yield
    finally:
        _DROPPING.reset(token)


def without_outliers(frame: pl.DataFrame, place: Place) -> tuple[pl.DataFrame, Place, dict[str, int]]:
    """The rows that are no outliers, where they stand, and how many others there were (none: nothing).

    A row is odd where its submission, start or end is `isolated` among those of all rows.

    Parameters
    ----------
    frame : typed columns in any order of rows; nulls are no times
    place : where the rows stand, for errors

    Raises
    ------
    TraceError
        There is such a row, and it is not to be dropped; the line names the first.
    """
    kept = np.arange(frame.height)
    while True:  # without the oddest rows others may turn out odd: what is written must be read again as it is
        odd = np.zeros(len(kept), dtype=np.bool_)
        for values in (frame[name].gather(kept) for name in COLUMNS if name in frame.columns):
            here = _odd(values)
            if not _DROPPING.get():
                _refuse(here, values, place)
            odd |= here
        if not odd.any():
            break
        kept = kept[~odd]
    if len(kept) == frame.height:
        return frame, place, {}
    there = replace(place, row=lambda index: place.row(int(kept[index])))
    return frame[kept], there, {DROPPED: frame.height - len(kept)}


def isolated(instants: Ints) -> Bools:
    """Which instants, in any order, lie far from the bulk: few, and parted from it by a long gap.

    The bulk is what is left without `FEW` of the instants at either end. From there outwards, the first gap of more
    than `SPANS` times its span, and more than a year, parts the odd ones of that side.

    >>> isolated(np.array([0, *range(1_500_000_000, 1_500_000_020)]) * 1_000_000).sum()
    np.int64(1)
    >>> isolated(np.array([*range(10), *range(1_500_000_000, 1_500_000_010)]) * 1_000_000).any()
    np.False_
    """
    count = len(instants)
    if count < LEAST_ROWS or int(instants.max()) - int(instants.min()) <= LEAST_GAP_US:
        return np.zeros(count, dtype=np.bool_)
    few, ordered = max(1, int(FEW * count)), np.sort(instants)
    far = max(LEAST_GAP_US, SPANS * int(ordered[count - 1 - few] - ordered[few]))
    wide = np.flatnonzero(np.diff(ordered) > far)
    early = [ordered[at] for at in wide[wide < few] if _are_few(ordered[: at + 1])]
    late = [ordered[at] for at in wide[wide >= count - 1 - few] if _are_few(ordered[at + 1 :])]
    odd: Bools = (instants <= early[-1]) if early else np.zeros(count, dtype=np.bool_)
    return odd | (instants > late[0]) if late else odd


def _are_few(ordered: Ints) -> bool:
    return int(np.count_nonzero(np.diff(ordered))) < FEW_INSTANTS


def _odd(times: pl.Series) -> Bools:
    """`isolated` among the times that are known, (n,)."""
    known = times.is_not_null().to_numpy()
    odd = np.zeros(len(times), dtype=np.bool_)
    odd[known] = isolated(times.drop_nulls().dt.timestamp("us").to_numpy())
    return odd


def _refuse(odd: Bools, times: pl.Series, place: Place) -> None:
    rows = np.flatnonzero(odd)
    if not len(rows):
        return
    first = int(rows[0])
    others = times.filter(~odd)
    low, high, value = others.min(), others.max(), times[first]
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    years = min(abs((value - end).total_seconds()) for end in (low, high)) / YEAR_S
    what = f"lies {years:,.0f} years from all others ({low:%Y-%m-%d} to {high:%Y-%m-%d})"
    place.fail(first, times.name, what, value, REMEDY, len(rows) - 1)
