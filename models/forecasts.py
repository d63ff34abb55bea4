"""Forecasts from registered predictors, fed by the same feature code as training and by the run's own past."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from jobcast.domain.answer_checks import (
    MOST_GPUS,
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
from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import BadAnswerError, Reason
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError
from jobcast.domain.history import History
from jobcast.domain.horizons import horizon_label
from jobcast.domain.jobs import Job, Pool
from jobcast.features.finished import DurationTracker
from jobcast.features.load_features import InstantFeatures
from jobcast.models.duration_booster import LENDERS_GPUS
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
Held = TypeVar("Held")


class RegistryForecasts:
    """Implements `domain.forecasts.ForecastSource` and `UncertainForecasts`.

    An answer about a pool belongs to one instant: the latest multiple of `grid_s`, or the pool's first arrival
    since then if that came after a quiet window. It uses what had happened by that instant, nothing later, and so
    does not depend on when, or how often, it is asked for. A horizon is computed when it is first asked about, for
    all pools together, each at its own instant.
    Pools that no predictor has seen in training are answered like any other.

    What predictors say is looked at where it enters, each pool and horizon for itself (`domain.answer_checks`). One
    that is no answer is kept as such, and raised by the questions about it alone.

    Parameters
    ----------
    history : the run's past; reaches to the instant of `advance`
    arrivals, loads, durations : fitted predictors; arrivals are told by the gate's thresholds. None: nobody asks
    pools : of the cluster, whose quotas price what a job may do to the others
    grid_s : seconds between instants at which all pools are computed
    tracker : of `durations`, which has read no other history; None: a new one

    Attributes
    ----------
    durations : as given

    Raises
    ------
    RegistryError
        The predictors were trained for different horizons, or, from a question, none was trained for that one, or the
        predictor was left out.
    BadAnswerError
        From a question: a predictor gave no answer that could be used.
    """

    def __init__(
        self,
        history: History,
        arrivals: WillJobsArrive | None,
        loads: NewLoad | None,
        durations: JobDuration | None,
        pools: Sequence[Pool] = (),
        grid_s: float = GRID_S,
        tracker: DurationTracker | None = None,
    ) -> None:
        self._history = history
        self._arrivals = arrivals
        self._loads = loads
        self.durations = durations
        self._lenders_gpus = lenders_gpus(pools)
        self._grid_s = grid_s
        self._horizons_min = _shared_horizons(arrivals, loads, durations)
        self._horizons_s = np.array([MINUTE_S * k for k in self._horizons_min])
        self._columns = {horizon_s: column for column, horizon_s in enumerate(self._horizons_s.tolist())}
        # Looked at once; one that is no threshold is raised when its horizon is asked about.
        self._gates = [] if arrivals is None else [checked(_gate, gate) for gate in arrivals.thresholds_gate_.tolist()]
        self._features = InstantFeatures(self._horizons_s)
        self._tracker = durations.tracker() if tracker is None and durations is not None else tracker
        # Models of before have no spans, so that nothing of theirs is beyond them.
        self._beyond = {
            predictor.name: BeyondTraining(names, getattr(predictor, "feature_spans_", {}))
            for predictor, names in _names(arrivals, loads, durations)
        }
        self._bins: dict[int, int] = {}
        self.durations_s: dict[int, float] = {}
        self._chances: dict[int, tuple[float, ...]] = {}
        self._at_s = -np.inf  # grid instant that the answers belong to
        self._answers: dict[str, _Answer] = {}
        self._checked: set[str] = set()  # pools whose arrivals have been looked at since the last `advance`
        self._held: tuple[list[str], Floats] = ([], np.empty(0))  # pools whose rows were last asked for, and these

    @property
    def horizons_min(self) -> tuple[float, ...]:
        """Horizons of the predictors, minutes."""
        return self._horizons_min

    def beyond_training(self) -> dict[str, Any]:
        """By predictor, columns of what it was asked that lay far outside of what it was trained on."""
        found = {name: beyond.figures() for name, beyond in self._beyond.items()}
        return {name: columns for name, columns in found.items() if columns}

    def advance(self, now_s: float) -> None:
        """Move to an instant. Nothing is computed before it is asked for."""
        # The grid counts from the epoch, whenever the run begins.
        at_s = now_s - now_s % self._grid_s
        if at_s != self._at_s:
            self._at_s = at_s
            self._answers.clear()
            # No list of pools equals []: the rows are built anew when next asked for.
            self._held = ([], self._held[1])
        self._checked.clear()

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Whether the pool's probability of arrivals reaches the gate's threshold."""
        chance = self.arrival_probability(pool, horizon_s)
        gate: float = _sound(self._gates[self._columns[horizon_s]])
        return chance >= gate

    def new_load(self, pool: str, horizon_s: float) -> float:
        """GPUs that the pool is estimated to be asked for at most."""
        column = self._columns.get(horizon_s)
        if column is None or self._loads is None:
            raise _cannot_say("loads", self._loads, horizon_s)
        answer = self._answer(pool)
        if answer.load_gpus is None:
            self._compute_loads(self._loads)
        assert answer.load_gpus is not None
        return _sound(answer.load_gpus[column])

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """Probability that any job arrives, as the gate's classifier tells it."""
        column = self._columns.get(horizon_s)
        if column is None or self._arrivals is None:
            raise _cannot_say("arrivals", self._arrivals, horizon_s)
        answer = self._answer(pool)
        if answer.probability[column] is None:
            self._compute_arrivals(self._arrivals, column)
        result = answer.probability[column]
        assert result is not None
        return _sound(result)

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """GPUs that the load stays within with a probability of `level`, as `load_spread` tells it."""
        return self.load_quantiles(pool, horizon_s, (level,))[0]

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """As `load_quantile`, at each level; the levels asked for last are held as long as the answer is."""
        column = self._columns.get(horizon_s)
        if column is None or self._loads is None:
            raise _cannot_say("loads", self._loads, horizon_s)
        answer = self._answer(pool)
        # Policies ask with the same levels throughout: the last ones are enough to hold.
        if answer.levels != levels:
            self._compute_quantiles(self._loads, levels)
        return _sound(answer.quantiles[column])

    def duration_bin(self, job: Job) -> int:
        """The bin of least expected cost, from what had happened when the job was first asked about."""
        # Held for the whole run: a job is told once, when it is first asked about.
        known = self._bins.get(job.seq)
        if known is None:
            lenders = self._lenders_gpus.get(job.pool, LENDERS_GPUS)
            (result,) = each_row(self._of_jobs().choose(self._row(job), lenders), 1)
            known = self._bins[job.seq] = bin_index(result, len(self._horizons_s) + 1)
        return known

    def duration_bins(self, jobs: Sequence[Job]) -> list[int | None]:
        """Bins of many jobs as of now, (n_jobs,), none of which is held; None where the predictor gave no answer."""

        def ask(_: list[str]) -> Any:
            lenders = np.array([self._lenders_gpus.get(job.pool, LENDERS_GPUS) for job in jobs])
            return self._of_jobs().choose(np.concatenate([self._row(job) for job in jobs]), lenders)

        answers = _kept(each_row, _asked([], ask), len(jobs)) if jobs else []
        if isinstance(answers, BadAnswerError):
            return [None] * len(jobs)
        bins = (_kept(bin_index, one, len(self._horizons_s) + 1) for one in answers)
        return [None if isinstance(one, BadAnswerError) else one for one in bins]

    def duration_probabilities(self, job: Job) -> tuple[float, ...]:
        """Probabilities of its bins, from what had happened when they were first asked for."""
        known = self._chances.get(job.seq)
        if known is None:
            (result,) = each_row(self._of_jobs().predict_proba(self._row(job)), 1)
            known = self._chances[job.seq] = bin_probabilities(result, len(self._horizons_s) + 1)
        return known

    def duration_s(self, job: Job) -> float:
        """The run time that stands for the job's likeliest bin, seconds, as of when it was first asked for."""
        known = self.durations_s.get(job.seq)
        if known is None:
            (result,) = each_row(self._of_jobs().predict_duration_s(self._row(job)), 1)
            known = self.durations_s[job.seq] = run_time_s(result)
        return known

    def _of_jobs(self) -> JobDuration:
        if self.durations is None:
            raise _cannot_say("durations", None)
        return self.durations

    def _row(self, job: Job) -> Floats:
        """A job's row from what has happened so far, (1, F)."""
        assert self.durations is not None
        assert self._tracker is not None
        # Lazily: nobody may ask about durations for hours.
        self._tracker.catch_up(self._history)
        row: Floats = self._tracker.row(job)[None]
        self._beyond[self.durations.name].look(row)
        return row

    def _answer(self, pool: str) -> "_Answer":
        answer = self._answers.get(pool)
        if answer is None:
            # All pools, since they are then computed together; and one that the history may not list.
            for known in (*self._history.pools, pool):
                self._check(known)
            return self._answers[pool]
        # Most questions end here: of the other pools arrivals matter only when something is computed.
        if not answer.settled and pool not in self._checked:
            self._check(pool)
            return self._answers[pool]
        return answer

    def _lacking(self, lacks: "Callable[[_Answer], bool]") -> list[str]:
        """Pools whose answers lack something, as of now."""
        for pool in self._history.pools:
            self._check(pool)
        return [pool for pool, answer in self._answers.items() if lacks(answer)]

    def _check(self, pool: str) -> None:
        """Open a pool's answer at the grid instant, or anew at the pool's first arrival since."""
        if pool in self._checked:
            return
        self._checked.add(pool)
        answer = self._answers.get(pool)
        # Nothing can change it before the next grid instant.
        if answer is not None and answer.settled:
            return
        arrival_s = self._history.pool(pool).arrival_s
        if answer is None:
            answer = self._answers[pool] = self._opened(arrival_s, self._at_s)
        first = answer.arrivals
        # No arrival since the answer's instant.
        if len(arrival_s) == first:
            return
        answer.settled = True  # its first arrival since the grid instant has come; was that after a quiet window?
        # Of arrivals since the grid instant only the first can follow a quiet window that began before it.
        if first == 0 or arrival_s[first] - arrival_s[first - 1] > QUIET_S:
            answer = self._answers[pool] = self._opened(arrival_s, float(arrival_s[first]))
            answer.settled = True
            self._held = ([], self._held[1])

    def _opened(self, arrival_s: Floats, at_s: float) -> "_Answer":
        return _Answer(at_s, int(arrival_s.searchsorted(at_s, "right")), [None] * len(self._horizons_s))

    def _compute_arrivals(self, arrivals: WillJobsArrive, column: int) -> None:
        """Probabilities of a horizon, of all pools that lack it."""

        def ask(pools: list[str]) -> Any:
            rows = self._rows(pools)[:, column, : len(arrivals.feature_names_)]
            self._beyond[arrivals.name].look(rows)
            return arrivals.horizon_proba(rows, column)

        pools = self._lacking(lambda answer: answer.probability[column] is None)
        result = _asked(pools, ask)
        # The usual case, checked at once for all pools.
        if _within(result, (len(pools),), 1.0):
            for pool, value in zip(pools, result.tolist(), strict=True):
                self._answers[pool].probability[column] = value
            return
        for pool, row in _by_pool(pools, result, ask):
            self._answers[pool].probability[column] = _kept(probability, row)

    def _rows(self, pools: list[str]) -> Floats:
        """Features of pools, each at its instant, (n_pools, H, F), those of arrivals first; computed once an answer."""
        # Arrivals and loads are asked of the same pools one after another.
        if self._held[0] == pools:
            return self._held[1]
        answers = [self._answers[pool] for pool in pools]
        if any(answer.rows is None for answer in answers):
            histories = map(self._history.pool, pools)
            found = self._features.rows(pools, histories, [answer.at_s for answer in answers])
            for answer, rows in zip(answers, found, strict=True):
                answer.rows = rows
        else:
            found = np.array([answer.rows for answer in answers])
        self._held = (pools, found)
        return found

    def _compute_loads(self, loads: NewLoad) -> None:
        """Loads of all pools that lack them: one row costs the trees as much as ten."""

        def ask(pools: list[str]) -> Any:
            return loads.lend_rows(self._load_rows(loads, pools))

        pools = self._lacking(lambda answer: answer.load_gpus is None)
        result = _asked(pools, ask)
        if _within(result, (len(pools), len(self._horizons_s)), MOST_GPUS):
            for pool, gpus in zip(pools, result.tolist(), strict=True):
                self._answers[pool].load_gpus = gpus
            return
        for pool, row in _by_pool(pools, result, ask):
            self._answers[pool].load_gpus = [_kept(load_gpus, gpus) for gpus in self._each_horizon(row)]

    def _compute_quantiles(self, loads: NewLoad, levels: tuple[float, ...]) -> None:
        """Quantiles of the loads of all pools that lack them."""

        def ask(pools: list[str]) -> Any:
            return load_quantiles(loads, self._load_rows(loads, pools), levels)

        pools = self._lacking(lambda answer: answer.levels != levels)
        for pool, row in _by_pool(pools, _asked(pools, ask), ask):
            result = self._answers[pool]
            result.levels = levels
            result.quantiles = [_kept(rising_loads, gpus, levels) for gpus in self._each_horizon(row)]

    def _load_rows(self, loads: NewLoad, pools: list[str]) -> Floats:
        instants_s = [self._answers[pool].at_s for pool in pools]
        rows = loads.instant_rows(self._rows(pools), map(self._history.pool, pools), instants_s)
        self._beyond[loads.name].look(rows)
        return rows

    def _each_horizon(self, row: Any) -> list[Any]:
        """What is said of each horizon, or for all of them why nothing is."""
        result = _kept(each_row, row, len(self._horizons_s))
        return [result] * len(self._horizons_s) if isinstance(result, BadAnswerError) else result


def lenders_gpus(pools: Sequence[Pool]) -> dict[str, float]:
    """By pool, GPUs of all others, whom its jobs could borrow from; its own where there is no other.

    >>> lenders_gpus([Pool("a", 8), Pool("b", 4)]), lenders_gpus([Pool("a", 8)])
    ({'a': 4.0, 'b': 8.0}, {'a': 8.0})
    """
    total = sum(pool.quota for pool in pools)
    return {pool.name: float(total - pool.quota or pool.quota) for pool in pools}


@dataclass(slots=True, eq=False)
class _Answer:
    """What is held of a pool.

    Attributes
    ----------
    at_s : the instant that it belongs to
    arrivals : number of the pool's arrivals up to then
    rows : (H, F) the pool's features, once they have been asked for
    probability, load_gpus : answers by horizon, once they have been asked for
    levels, quantiles : what was last asked for of the load's distribution, and by horizon what it is
    settled : whether no arrival can bring another answer before the next grid instant
    """

    at_s: float
    arrivals: int
    probability: "list[float | BadAnswerError | None]"
    rows: Floats | None = None
    load_gpus: "list[float | BadAnswerError] | None" = None
    levels: tuple[float, ...] = ()
    quantiles: "list[tuple[float, ...] | BadAnswerError]" = field(default_factory=list)
    settled: bool = False


def _asked(pools: list[str], ask: Callable[[list[str]], Any]) -> Any:
    """What a predictor says of pools, not looked at yet, or what it raised in place of that."""
    try:
        return ask(pools)
    except MemoryError:
        raise
    except Exception as error:  # whatever a predictor does wrong is told by the question that it leaves open
        # Without its traceback, which would keep all frames alive as long as the answer.
        if isinstance(error, BadAnswerError):
            return error.with_traceback(None)
        return BadAnswerError(Reason.RAISED, " ".join(f"{type(error).__name__}: {error}".split()))


def _within(value: Any, shape: tuple[int, ...], most: float) -> bool:
    """Whether these are numbers from 0 on, all good: looked at one by one they would take longer than the predictor."""
    # Exactly an array: subclasses may answer comparisons in ways of their own. NaN fails both.
    fits = type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape
    return fits and bool(value.min() >= 0.0 and value.max() <= most)


def _by_pool(pools: list[str], value: Any, ask: Callable[[list[str]], Any]) -> list[tuple[str, Any]]:
    """What a predictor said of each pool; where it failed on all together, each is asked alone."""
    rows = value if isinstance(value, BadAnswerError) else checked(each_row, value, len(pools))
    if not isinstance(rows, BadAnswerError):
        return list(zip(pools, rows, strict=True))
    # Nobody else to blame.
    if len(pools) == 1:
        return [(pools[0], rows)]
    return [one for pool in pools for one in _by_pool([pool], _asked([pool], ask), ask)]


def _kept(check: Callable[..., Any], row: Any, *given: Any) -> Any:
    """An answer, or what makes it none, to be held."""
    return row if isinstance(row, BadAnswerError) else checked(check, row, *given)


def _sound(held: "Held | BadAnswerError") -> Held:
    """A held answer. Raises BadAnswerError where it is none."""
    if isinstance(held, BadAnswerError):
        raise held.with_traceback(None)  # as if it were new: each raising would lengthen its traceback
    return held


def _gate(value: Any) -> float:
    if abs(number(value)) > FARTHEST_GATE:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{value:g} is no threshold")
    return number(value)


def _names(
    arrivals: WillJobsArrive | None, loads: NewLoad | None, durations: JobDuration | None
) -> Iterator[tuple[Any, Sequence[str]]]:
    """Those that are there, and the names of what they read."""
    if arrivals is not None:
        yield arrivals, arrivals.feature_names_
    if loads is not None:
        yield loads, loads.columns
    if durations is not None:
        yield durations, durations.columns


def _cannot_say(what: str, predictor: WillJobsArrive | NewLoad | None, horizon_s: float = 0.0) -> RegistryError:
    if predictor is None:
        return RegistryError(f"{what} were asked for, which the policy does not say; name {what} in its `asks`")
    have = ", ".join(horizon_label(k) for k in predictor.horizons_min_)
    wanted = horizon_s / MINUTE_S
    return RegistryError(
        f"{predictor.name} knows the horizons {have}, not {horizon_label(wanted)};"
        f" train it with `--horizons ...,{wanted:g}` or ask for one of those"
    )


def _shared_horizons(
    arrivals: WillJobsArrive | None, loads: NewLoad | None, durations: JobDuration | None
) -> tuple[float, ...]:
    """Horizons of those that are there, minutes. Raises RegistryError where they differ."""
    horizons = {one.name: tuple(one.horizons_min_) for one in (arrivals, loads) if one is not None}
    if durations is not None:
        horizons[durations.name] = tuple(durations.horizons_min)
    if len(set(horizons.values())) > 1:
        text = "; ".join(f"{name}: {', '.join(map(horizon_label, of))}" for name, of in horizons.items())
        raise RegistryError(f"the predictors were trained for different horizons ({text}); train them with the same")
    return next(iter(horizons.values()))
