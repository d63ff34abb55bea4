"""Forecasts from registered predictors, fed by the same feature code as training and by the run's own past."""

from collections.abc import Callable, Set
from typing import Any

import numpy as np

from jobcast.domain.answer_checks import (
    bin_index,
    bin_probabilities,
    checked,
    each_row,
    load_gpus,
    number,
    probability,
    rising_loads,
    run_time_s,
)
from jobcast.domain.bad_answers import BadAnswerError, Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.history import Floats, History
from jobcast.domain.horizons import horizon_label
from jobcast.domain.jobs import Job
from jobcast.features.arrivals import arrival_features
from jobcast.models.feature_spans import BeyondTraining
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad, load_quantiles
from jobcast.models.will_jobs_arrive import WillJobsArrive

GRID_S = 300.0
"""One answer every 5 minutes a pool, held in between. SIA, appendix B."""
QUIET_S = 300.0
"""A pool's first arrival after so long without one asks its forecasts anew."""
FARTHEST_GATE = 2.0
"""A threshold on probabilities beyond it, on either side, is none."""
MINUTE_S = 60.0


class RegistryForecasts:
    """Implements `domain.forecasts.ForecastSource` and `UncertainForecasts`.

    An answer about a pool belongs to one instant: the latest multiple of `grid_s`, or the pool's first arrival
    since then if that came after a quiet window. It uses what had happened by that instant, nothing later, and so
    does not depend on when, or how often, it is asked for. A horizon is computed when it is first asked about, for
    all pools together.
    Pools that no predictor has seen in training are answered like any other.

    What predictors say is looked at where it enters, each pool and horizon for itself (`domain.answer_checks`). One
    that is no answer is kept as such, and raised by the questions about it alone.

    Parameters
    ----------
    history : the run's past; reaches to the instant of `advance`
    arrivals, loads, durations : fitted predictors; arrivals are told by the gate's thresholds
    grid_s : seconds between instants at which all pools are computed

    Raises
    ------
    RegistryError
        The predictors were trained for different horizons, or, from a question, none was trained for that one.
    BadAnswerError
        From a question: a predictor gave no answer that could be used.
    """

    def __init__(
        self,
        history: History,
        arrivals: WillJobsArrive,
        loads: NewLoad,
        durations: JobDuration,
        grid_s: float = GRID_S,
    ) -> None:
        self._history = history
        self._arrivals = arrivals
        self._loads = loads
        self._durations = durations
        self._grid_s = grid_s
        _check_alike(arrivals, loads, durations)
        self._arrival_columns = _columns(arrivals)
        self._load_columns = _columns(loads)
        self._horizons_s = np.array([MINUTE_S * k for k in arrivals.horizons_min_])
        self._gates = [checked(_gate, gate) for gate in arrivals.thresholds_gate_.tolist()]
        self._tracker = durations.tracker()
        named = ((arrivals, arrivals.feature_names_), (loads, loads.columns), (durations, durations.columns))
        self._beyond = {
            predictor.name: BeyondTraining(names, getattr(predictor, "feature_spans_", {}))
            for predictor, names in named
        }
        self._bins: dict[int, int] = {}
        self._durations_s: dict[int, float] = {}
        self._chances: dict[int, tuple[float, ...]] = {}
        self._at_s = -np.inf  # grid instant that the answers belong to
        self._answers: dict[str, _Answer] = {}
        self._checked: set[str] = set()  # pools whose arrivals have been looked at since the last `advance`

    @property
    def horizons_min(self) -> tuple[float, ...]:
        """Horizons of the predictors, minutes."""
        return tuple(self._arrivals.horizons_min_)

    def beyond_training(self) -> dict[str, Any]:
        """By predictor, columns of what it was asked that lay far outside of what it was trained on."""
        found = {name: beyond.figures() for name, beyond in self._beyond.items()}
        return {name: columns for name, columns in found.items() if columns}

    def advance(self, now_s: float) -> None:
        """Move to an instant. Nothing is computed before it is asked for."""
        at_s = now_s - now_s % self._grid_s
        if at_s != self._at_s:
            self._at_s = at_s
            self._answers.clear()
        self._checked.clear()

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Whether the pool's probability of arrivals reaches the gate's threshold."""
        column = self._arrival_columns.get(horizon_s)
        if column is None:
            raise _no_horizon(self._arrivals, horizon_s)
        told: float = _sound(self._probability(pool, column))
        gate: float = _sound(self._gates[column])
        return told >= gate

    def new_load(self, pool: str, horizon_s: float) -> float:
        """GPUs that the pool is estimated to be asked for at most."""
        column = self._load_columns.get(horizon_s)
        if column is None:
            raise _no_horizon(self._loads, horizon_s)
        answer = self._answer(pool)
        if answer.load_gpus is None:
            self._compute_loads(pool, answer)
        assert answer.load_gpus is not None
        told: float = _sound(answer.load_gpus[column])
        return told

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """Probability that any job arrives, as the gate's classifier tells it."""
        column = self._arrival_columns.get(horizon_s)
        if column is None:
            raise _no_horizon(self._arrivals, horizon_s)
        told: float = _sound(self._probability(pool, column))
        return told

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """GPUs that the load stays within with a probability of `level`, as `load_spread` tells it."""
        return self.load_quantiles(pool, horizon_s, (level,))[0]

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """As `load_quantile`, at each level; the levels asked for last are held as long as the answer is."""
        column = self._load_columns.get(horizon_s)
        if column is None:
            raise _no_horizon(self._loads, horizon_s)
        answer = self._answer(pool)
        if answer.levels != levels:
            self._compute_quantiles(pool, answer, levels)
        told: tuple[float, ...] = _sound(answer.quantiles[column])
        return told

    def duration_bin(self, job: Job) -> int:
        """The bin of least expected cost, from what had happened when the job was first asked about."""
        known = self._bins.get(job.seq)
        if known is None:
            (told,) = each_row(self._durations.choose(self._row(job)), 1)
            known = self._bins[job.seq] = bin_index(told, len(self._horizons_s) + 1)
        return known

    def duration_probabilities(self, job: Job) -> tuple[float, ...]:
        """Probabilities of its bins, from what had happened when they were first asked for."""
        known = self._chances.get(job.seq)
        if known is None:
            (told,) = each_row(self._durations.predict_proba(self._row(job)), 1)
            known = self._chances[job.seq] = bin_probabilities(told, len(self._horizons_s) + 1)
        return known

    def duration_s(self, job: Job) -> float:
        """The run time that stands for the job's likeliest bin, seconds, as of when it was first asked for."""
        known = self._durations_s.get(job.seq)
        if known is None:
            (told,) = each_row(self._durations.predict_duration_s(self._row(job)), 1)
            known = self._durations_s[job.seq] = run_time_s(told)
        return known

    def _row(self, job: Job) -> Floats:
        """A job's row from what has happened so far, (1, F)."""
        self._tracker.catch_up(self._history)
        row: Floats = self._tracker.row(job)[None]
        self._beyond[self._durations.name].look(row)
        return row

    def _answer(self, pool: str) -> "_Answer":
        if pool in self._checked:
            return self._answers[pool]
        self._checked.add(pool)
        answer = self._answers.get(pool)
        if answer is None:
            self._open_grid(pool)
            answer = self._answers[pool]
        if not answer.settled:
            self._refresh(pool, answer)
        return self._answers[pool]

    def _open_grid(self, asked: str) -> None:
        for pool in (*self._history.pools, asked):
            if pool not in self._answers:
                self._answers[pool] = self._opened(pool, self._at_s)

    def _opened(self, pool: str, at_s: float) -> "_Answer":
        seen = int(np.searchsorted(self._history.pool(pool).arrival_s, at_s, side="right"))
        return _Answer(at_s, seen, len(self._horizons_s))

    def _refresh(self, pool: str, answer: "_Answer") -> None:
        """Answer anew if the pool has had its first arrival since the grid instant, and that after a quiet window."""
        arrival_s = self._history.pool(pool).arrival_s
        first = answer.arrivals
        if len(arrival_s) == first:
            return
        answer.settled = True
        if first == 0 or arrival_s[first] - arrival_s[first - 1] > QUIET_S:
            self._answers[pool] = self._opened(pool, float(arrival_s[first]))
            self._answers[pool].settled = True

    def _probability(self, pool: str, column: int) -> "float | BadAnswerError":
        answer = self._answer(pool)
        known = answer.probability[column]
        return self._compute_arrivals(pool, answer, column) if known is None else known

    def _compute_arrivals(self, asked: str, answer: "_Answer", column: int) -> "float | BadAnswerError":
        """Probabilities of a horizon, of a pool and with it of the others of the same instant; returns the pool's."""
        tick, horizon_s = np.array([answer.at_s]), self._horizons_s[column : column + 1]

        def ask(pools: list[str]) -> Any:
            each = [arrival_features(self._history.pool(pool), tick, horizon_s)[:, 0] for pool in pools]
            rows = np.concatenate(each)
            self._beyond[self._arrivals.name].look(rows)
            return self._arrivals.horizon_proba(rows, column)

        lacking = {pool for pool, other in self._answers.items() if other.probability[column] is None}
        for pool, row in _by_pool(self._of_instant(asked, answer, lacking), ask):
            self._answers[pool].probability[column] = _kept(probability, row)
        told = self._answers[asked].probability[column]
        assert told is not None
        return told

    def _compute_loads(self, asked: str, answer: "_Answer") -> None:
        """Loads of a pool, and with it of the others of the same instant: one row costs the trees as much as ten."""
        lacking = {pool for pool, other in self._answers.items() if other.load_gpus is None}

        def ask(pools: list[str]) -> Any:
            return self._loads.lend_rows(self._load_rows(pools, answer.at_s))

        for pool, row in _by_pool(self._of_instant(asked, answer, lacking), ask):
            self._answers[pool].load_gpus = [_kept(load_gpus, gpus) for gpus in self._each_horizon(row)]

    def _compute_quantiles(self, asked: str, answer: "_Answer", levels: tuple[float, ...]) -> None:
        """Quantiles of a pool's loads, and with it of the others of the same instant."""
        lacking = {pool for pool, other in self._answers.items() if other.levels != levels}

        def ask(pools: list[str]) -> Any:
            return load_quantiles(self._loads, self._load_rows(pools, answer.at_s), levels)

        for pool, row in _by_pool(self._of_instant(asked, answer, lacking), ask):
            told = self._answers[pool]
            told.levels = levels
            told.quantiles = [_kept(rising_loads, gpus, levels) for gpus in self._each_horizon(row)]

    def _load_rows(self, pools: list[str], at_s: float) -> Floats:
        rows = np.concatenate([self._loads.rows(self._history.pool(pool), [at_s]) for pool in pools])
        self._beyond[self._loads.name].look(rows)
        return rows

    def _each_horizon(self, row: Any) -> list[Any]:
        """What is said of each horizon, or for all of them why nothing is."""
        told = _kept(each_row, row, len(self._horizons_s))
        return [told] * len(self._horizons_s) if isinstance(told, BadAnswerError) else told

    def _of_instant(self, asked: str, answer: "_Answer", lacking: Set[str]) -> list[str]:
        """A pool, and those of `lacking` whose answers belong to the same instant."""
        pools = (pool for pool in self._answers if pool in lacking and pool != asked)
        return [asked, *(pool for pool in pools if self._answers[pool].at_s == answer.at_s)]


class _Answer:
    """What is held of a pool.

    Attributes
    ----------
    at_s : the instant that it belongs to
    arrivals : number of the pool's arrivals up to then
    probability, load_gpus : answers by horizon, once they have been asked for
    levels, quantiles : what was last asked for of the load's distribution, and by horizon what it is
    settled : whether no arrival can bring another answer before the next grid instant
    """

    __slots__ = ("arrivals", "at_s", "levels", "load_gpus", "probability", "quantiles", "settled")

    def __init__(self, at_s: float, arrivals: int, horizons: int) -> None:
        self.at_s = at_s
        self.arrivals = arrivals
        self.probability: list[float | BadAnswerError | None] = [None] * horizons
        self.load_gpus: list[float | BadAnswerError] | None = None
        self.levels: tuple[float, ...] = ()
        self.quantiles: list[tuple[float, ...] | BadAnswerError] = []
        self.settled = False


def _by_pool(pools: list[str], ask: Callable[[list[str]], Any]) -> list[tuple[str, Any]]:
    """What a predictor says of each pool, not looked at yet; where it fails on all together, each is asked alone."""
    try:
        return list(zip(pools, each_row(ask(pools), len(pools)), strict=True))
    except MemoryError:
        raise
    except Exception as error:  # whatever a predictor does wrong is told by the question that it leaves open
        if len(pools) > 1:
            return [told for pool in pools for told in _by_pool([pool], ask)]
        if isinstance(error, BadAnswerError):
            return [(pools[0], error.with_traceback(None))]
        return [(pools[0], BadAnswerError(Reason.RAISED, " ".join(f"{type(error).__name__}: {error}".split())))]


def _kept(check: Callable[..., Any], row: Any, *given: Any) -> Any:
    """An answer, or what makes it none, to be held."""
    return row if isinstance(row, BadAnswerError) else checked(check, row, *given)


def _sound(held: Any) -> Any:
    """A held answer. Raises BadAnswerError where it is none."""
    if isinstance(held, BadAnswerError):
        raise held.with_traceback(None)  # as if it were new: each raising would lengthen its traceback
    return held


def _gate(value: Any) -> float:
    if abs(number(value)) > FARTHEST_GATE:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{value:g} is no threshold")
    return number(value)


def _columns(predictor: WillJobsArrive | NewLoad) -> dict[float, int]:
    """Column of each horizon, by its length in seconds."""
    return {MINUTE_S * k: column for column, k in enumerate(predictor.horizons_min_)}


def _no_horizon(predictor: WillJobsArrive | NewLoad, horizon_s: float) -> RegistryError:
    have = ", ".join(horizon_label(k) for k in predictor.horizons_min_)
    wanted = horizon_s / MINUTE_S
    return RegistryError(
        f"{predictor.name} knows the horizons {have}, not {horizon_label(wanted)};"
        f" train it with `--horizons ...,{wanted:g}` or ask for one of those"
    )


def _check_alike(arrivals: WillJobsArrive, loads: NewLoad, durations: JobDuration) -> None:
    horizons = {
        arrivals.name: tuple(arrivals.horizons_min_),
        loads.name: tuple(loads.horizons_min_),
        durations.name: tuple(durations.horizons_min),
    }
    if len(set(horizons.values())) > 1:
        told = "; ".join(f"{name}: {', '.join(map(horizon_label, of))}" for name, of in horizons.items())
        raise RegistryError(f"the predictors were trained for different horizons ({told}); train them with the same")
