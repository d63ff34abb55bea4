"""Switches of sharing that a run throws itself, by what its gate has missed so far. SIA, section 5.3."""

from collections import deque
from dataclasses import dataclass

from jobcast.domain.jobs import Job
from jobcast.domain.switches import MINUTE_S, Switch, SwitchRule

DAY_S = 86400.0


@dataclass(slots=True)
class _Window:
    """A forecast that is held until its window is over: since when, whether it was of arrivals, whether any came."""

    from_s: float
    forecast: bool
    came: bool = False


class LiveSwitches:
    """By pool and window, whether GPUs may be lent, from the forecasts that were used and what then arrived.

    One forecast a pool and window is held at a time and scored when its window is over, so that windows do not overlap;
    those of the rule's last days count. The rule is the one by which `jobcast drift` writes its file.

    Parameters
    ----------
    rule : what may be missed

    Attributes
    ----------
    rows : switches thrown so far
    """

    def __init__(self, rule: SwitchRule) -> None:
        self._rule = rule
        self._open: dict[str, dict[float, _Window]] = {}
        self._past: dict[tuple[str, float], deque[tuple[float, bool]]] = {}  # since when, whether missed
        self._off: set[tuple[str, float]] = set()
        self.rows: list[Switch] = []

    def arrived(self, job: Job) -> None:
        """A job is submitted."""
        for horizon_s, window in self._open.get(job.pool, {}).items():
            if job.submit_s <= window.from_s + horizon_s:
                window.came = True

    def shares(self, pool: str, horizon_s: float, now_s: float, forecast: bool) -> bool:
        """Whether GPUs of a pool may be lent for a window at an instant at which arrivals are forecast, or none are."""
        windows = self._open.setdefault(pool, {})
        window = windows.get(horizon_s)
        if window is None or now_s > window.from_s + horizon_s:
            if window is not None and window.came:
                self._score(pool, horizon_s, window, now_s)
            windows[horizon_s] = _Window(now_s, forecast)
        return (pool, horizon_s) not in self._off

    def _score(self, pool: str, horizon_s: float, window: _Window, now_s: float) -> None:
        key = pool, horizon_s
        past = self._past.setdefault(key, deque())
        past.append((window.from_s, not window.forecast))
        while past and past[0][0] < now_s - DAY_S * self._rule.days:
            past.popleft()
        sharing = self._rule.shares(sum(missed for _, missed in past), len(past))
        if sharing != (key not in self._off):
            (self._off.discard if sharing else self._off.add)(key)
            self.rows.append(Switch(pool, horizon_s / MINUTE_S, now_s, sharing))
