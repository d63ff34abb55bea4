"""How much more load arrives than was forecast, as a scheduler sees it."""

from dataclasses import dataclass

from jobcast.domain.jobs import Job


@dataclass(slots=True)
class _Window:
    """What is known of a pool and length of window: the forecast that is held, and sums over those that are past."""

    until_s: float
    gpus: float
    quota: float
    came: float = 0.0
    asked: float = 0.0
    left: float = 0.0

    def close(self) -> None:
        self.asked += max(0.0, min(self.came, self.quota) - self.gpus)
        self.left += max(0.0, self.quota - self.gpus)


class ObservedErrors:
    """By pool and window, which share of the GPUs that a forecast left free was asked for within the window after all.

    One forecast a pool and window is held at a time and scored when its window is over, so that windows do not
    overlap; shares are of sums over all that were scored, 0 before the first.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[float, _Window]] = {}

    def arrived(self, job: Job) -> None:
        """A job is submitted."""
        for window in self._open.get(job.pool, {}).values():
            if job.submit_s <= window.until_s:
                window.came += job.gpus

    def forecast(self, pool: str, horizon_s: float, now_s: float, gpus: float, quota: float) -> None:
        """A forecast is used: so many GPUs in (now, now + horizon_s]. Scores the one that was held, if its time is up.

        Parameters
        ----------
        quota : of the pool; what is asked for beyond it counts for nothing
        """
        windows = self._open.setdefault(pool, {})
        window = windows.get(horizon_s)
        if window is None:
            windows[horizon_s] = _Window(now_s + horizon_s, min(gpus, quota), quota)
        elif now_s >= window.until_s:
            window.close()
            window.until_s, window.gpus, window.came = now_s + horizon_s, min(gpus, quota), 0.0

    def share(self, pool: str, horizon_s: float) -> float:
        """Share in [0, 1] of what forecasts left free that was asked for."""
        window = self._open.get(pool, {}).get(horizon_s)
        return window.asked / window.left if window is not None and window.left > 0 else 0.0
