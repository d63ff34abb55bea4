"""Figures of a run: pure functions of its log, and of the log of another run of the same jobs. Each stands here once.

A group of figures names the columns and totals that it needs, and every run whose log has them is given it, whatever
its policy. Sources: SIA, sections 4.1 and 6.1 (speedups, slowdowns); Shockwave, section 2.1 and appendix G.2, and
Themis, NSDI 2020 (finish-time fairness); PCS, sections 2.2 and 5.1 (errors, fair finish); MLFS, section 4.1
(deadlines, accuracy, bandwidth); ANDREAS, section V (energy, tardiness).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from jobcast.simulator.log import RunLog

UNFAIR_ABOVE = (1.00, 1.05, 1.10)
"""Thresholds of unfair jobs; the published fractions of Shockwave match its own data at the last."""
URGENT = 8.0
"""Levels of urgency above this are urgent. MLFS, section 4.1."""
SPEEDUP_TAILS = (5.0, 95.0)  # percentiles; SIA, table 17
MS_PER_S = 1e3
MB_PER_TB = 1e6

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are made together.

    Attributes
    ----------
    columns, totals : of the log, without which they cannot be made
    of : of a log, and the jobs that count
    """

    columns: tuple[str, ...]
    totals: tuple[str, ...]
    of: Callable[[RunLog, Bools], Figures]

    def known(self, log: RunLog) -> bool:
        """Whether a log tells enough."""
        return all(name in log.columns for name in self.columns) and all(name in log.totals for name in self.totals)


GROUPS: dict[str, Group] = {}
"""By name, in the order in which figures are told."""
Rule = Callable[[RunLog, Bools], Figures]


def needs(*columns: str, totals: tuple[str, ...] = ()) -> Callable[[Rule], Rule]:
    """Add a group of figures that needs these columns and totals of a log."""

    def add(rule: Rule) -> Rule:
        # A dict keeps the order of definition, which is the order of the report.
        GROUPS[rule.__name__] = Group(columns, totals, rule)
        return rule

    return add


def figures(log: RunLog, warmup_until_s: float | None = None) -> Figures:
    """All that the log of a run can tell, over the jobs submitted after the warm-up, in the order of `GROUPS`.

    Totals, and `events`, count the whole run. Jobs that never ran are left out of times. NaN where there is nothing to
    take the mean of.
    """
    counted = after_warmup(log, warmup_until_s)
    result: Figures = {}
    for group in GROUPS.values():
        if group.known(log):
            result |= group.of(log, counted)
    return result


def after_warmup(log: RunLog, warmup_until_s: float | None) -> Bools:
    """Jobs submitted at or after the end of the warm-up, (n_jobs,); all of them without one. SIA, section 6.1.

    In a closed-loop run the trace's submissions decide, so that the same jobs count whatever the policy.
    """
    return np.ones(len(log), dtype=np.bool_) if warmup_until_s is None else log.told_submit_s >= warmup_until_s


# Times, use


@needs()
def times(log: RunLog, counted: Bools) -> Figures:
    """Of every run: what became of its jobs and GPUs.

    `mean_wait_s` is the time between submission and completion in which a job held nothing, as MLFS has it: a job that
    is stopped waits again; `mean_start_wait_s` that before its first start alone. `makespan_s` is from the first
    submission to the last completion, `utilization` the share of all GPU time in that stretch that was held (by any
    job).
    """
    # A job that never ran has no end to take a mean of.
    ran = counted & np.isfinite(log.end_s)
    begin_s, end_s = _stretch(log, ran)
    return (
        {"jobs": int(counted.sum()), "makespan_s": end_s - begin_s}
        | _job_figures(log, ran)
        | {
            "utilization": _share(held_gpu_s(log, begin_s, end_s), log.total_gpus * (end_s - begin_s)),
            "events": log.events,
            "preemptions": int(log.preemptions[counted].sum()),
        }
    )


@needs("used_gpu_s")
def use(log: RunLog, counted: Bools) -> Figures:
    """`used_share`: GPU time that tasks used / all of it in the makespan."""
    begin_s, end_s = _stretch(log, counted & np.isfinite(log.end_s))
    return {"used_share": _share(float(log.columns["used_gpu_s"][counted].sum()), log.total_gpus * (end_s - begin_s))}


@needs("migrations")
def migrations(log: RunLog, counted: Bools) -> Figures:
    """Moves to other GPUs without waiting."""
    return {"migrations": int(log.columns["migrations"][counted].sum())}


def queued_s(log: RunLog) -> Floats:
    """Time between a job's submission and its completion in which it held nothing, (n_jobs,) seconds.

    Added up gap by gap, so that a job that is never stopped has exactly the time before its start.
    """
    begin_s, last_s, between_s = log.end_s.copy(), log.end_s.copy(), np.zeros(len(log))
    spans = log.spans
    if len(spans):
        job, at_s = np.tile(spans.job, 2), np.concatenate([spans.from_s, spans.until_s])
        # Edges of each job in order of time; a job is idle where no span of it is open.
        order = np.lexsort((at_s, job))
        job, at_s = job[order], at_s[order]
        # Spans of one job overlap where it lies on several nodes.
        open_spans = np.cumsum(np.where(order < len(spans), 1, -1))[:-1]
        np.add.at(between_s, job[:-1], np.where((open_spans == 0) & (job[1:] == job[:-1]), np.diff(at_s), 0.0))
        first = np.concatenate([[True], job[1:] != job[:-1]])
        last = np.roll(first, -1)
        begin_s[job[first]], last_s[job[last]] = at_s[first], at_s[last]
    return np.maximum(begin_s - log.submit_s, 0.0) + between_s + np.maximum(log.end_s - last_s, 0.0)


def held_gpu_s(log: RunLog, begin_s: float, end_s: float) -> float:
    """GPU-seconds held in [begin_s, end_s]."""
    spans = log.spans
    # Spans outside of the stretch clip to nothing.
    held_s = np.clip(spans.until_s, begin_s, end_s) - np.clip(spans.from_s, begin_s, end_s)
    return float(held_s @ spans.gpus)


def utilization_over_time(log: RunLog, step_s: float) -> tuple[Floats, Floats]:
    """Begins of steps from the first submission on, seconds, and the mean share of GPUs in use in each; (n_steps,)."""
    begin_s, end_s = _stretch(log, np.isfinite(log.end_s))
    steps = max(1, int(np.ceil((end_s - begin_s) / step_s)))
    edges = begin_s + step_s * np.arange(steps + 1, dtype=np.float64)
    instants = np.concatenate([log.spans.from_s, log.spans.until_s])
    changes = np.concatenate([log.spans.gpus, -log.spans.gpus])
    order = np.argsort(instants, kind="stable")
    instants, busy = instants[order], np.cumsum(changes[order])
    # GPU-seconds up to each edge: linear in between, so that interpolation is exact.
    used = np.concatenate([[0.0], np.cumsum(busy[:-1] * np.diff(instants))])
    shares: Floats = np.diff(np.interp(edges, instants, used)) / (step_s * log.total_gpus)
    return edges[:-1], shares


def _stretch(log: RunLog, ran: Bools) -> tuple[float, float]:
    if not ran.any():
        return np.nan, np.nan
    first_s = float(log.submit_s[ran].min())
    return first_s if log.begin_s is None else max(first_s, log.begin_s), float(log.end_s[ran].max())


def _job_figures(log: RunLog, ran: Bools) -> Figures:
    jct_s, start_wait_s = log.jct_s[ran], (log.start_s - log.submit_s)[ran]
    p50, p99 = np.percentile(jct_s, (50, 99)) if len(jct_s) else (np.nan, np.nan)
    return {
        "mean_jct_s": _mean(jct_s),
        "p50_jct_s": float(p50),
        "p99_jct_s": float(p99),
        "mean_wait_s": _mean(queued_s(log)[ran]),
        "mean_start_wait_s": _mean(start_wait_s[np.isfinite(start_wait_s)]),  # some end before all their tasks started
    }


# Fairness


def static_contention(log: RunLog) -> float:
    """Jobs / GPUs of the whole run, at least 1: nobody's fair share is more than what it asks for."""
    return max(1.0, len(log) / log.total_gpus)


def mean_active(log: RunLog) -> Floats:
    """Jobs pending or running, averaged over each job's own life, (n_jobs,). NaN for a job that never ran."""
    ran = np.isfinite(log.end_s)
    instants = np.unique(np.concatenate([log.submit_s, log.end_s[ran]]))
    # Arrivals less ends up to each instant: no loop over jobs.
    present = np.searchsorted(np.sort(log.submit_s), instants, side="right")
    present = present - np.searchsorted(np.sort(log.end_s[ran]), instants, side="right")
    summed = np.concatenate([[0.0], np.cumsum(present[:-1] * np.diff(instants))])  # job-seconds up to each instant
    lived = np.interp(log.end_s, instants, summed) - np.interp(log.submit_s, instants, summed)
    # Of a job of no length the mean is 0, not NaN.
    means: Floats = lived / np.maximum(log.jct_s, 1e-12)
    return means


def lifetime_contention(log: RunLog) -> Floats:
    """Jobs pending or running / GPUs, averaged over each job's own life, at least 1, (n_jobs,). Appendix G.2."""
    return np.maximum(1.0, mean_active(log) / log.total_gpus)


def finish_time_fairness(log: RunLog, contention: float | Floats) -> Floats:
    """JCT / (run time alone on the GPUs that it asks for x contention), (n_jobs,); above 1 is unfair.

    `contention` : jobs that share a GPU, one for all or (n_jobs,). NaN where no time alone is known.
    """
    return _ratio(log.jct_s, _shared_s(log, contention))


def _shared_s(log: RunLog, contention: float | Floats) -> Floats:
    """Run time alone, were that many jobs on each GPU; a job that takes none has no fair share of it."""
    return log.columns.get("exclusive_s", log.duration_s) * contention


@needs()
def fairness(log: RunLog, counted: Bools) -> Figures:
    """Worst and mean finish-time fairness, and the percentages of jobs above each of `UNFAIR_ABOVE`.

    By the static contention factor, and with the suffix `_lifetime` by each job's own.
    """
    result: Figures = {}
    for suffix, contention in (("", static_contention(log)), ("_lifetime", lifetime_contention(log))):
        shared_s = _shared_s(log, contention)
        rho = _ratio(log.jct_s, shared_s)
        known = counted & np.isfinite(rho)
        rho, jct_s, shared_s = rho[known], log.jct_s[known], shared_s[known]
        result |= {f"worst_ftf{suffix}": float(rho.max()) if len(rho) else np.nan, f"mean_ftf{suffix}": _mean(rho)}
        for limit in UNFAIR_ABOVE:
            # Who never waits ends when it would alone, but for rounding.
            late = jct_s > limit * shared_s + tolerance.LATER_S
            result[f"unfair_pct_{round(100 * limit)}{suffix}"] = 100.0 * _mean(late)
    return result


def fair_finish_s(log: RunLog, *, over_time: bool = False) -> Floats:
    """Run time on a fair share: work / min(GPUs / mean number of active jobs, GPUs asked for), (n_jobs,) seconds.

    The mean is over events, as in the runs that PCS published, or over time, which does not depend on how often others
    come. Work is seconds on one GPU.
    """
    active = mean_active(log) if over_time else log.columns["contention_events"]
    # Gangs are taken for perfectly scalable: all that is known of them.
    work_s = log.columns.get("work_s", log.duration_s * log.gpus)
    return work_s / np.minimum(log.total_gpus / active, np.maximum(log.gpus, 1))


def unfairness_pct(log: RunLog, *, over_time: bool = False) -> Floats:
    """By how much a job exceeds its fair finish time, % of that, 0 where it does not; (n_jobs,). PCS, section 5.1."""
    return excess_pct(log, fair_finish_s(log, over_time=over_time))


def excess_pct(log: RunLog, fair_s: Floats) -> Floats:
    """By how much completion times exceed fair ones, (n_jobs,) seconds, % of these, 0 where they do not."""
    return _ratio(100.0 * np.maximum(log.jct_s - fair_s, 0.0), fair_s)


@needs("contention_events")
def unfairness(log: RunLog, counted: Bools) -> Figures:
    """`unfairness_mean_pct` and `_p99_pct` against processor sharing, by the mean over events."""
    return _mean_and_p99("", unfairness_pct(log)[counted])


@needs()
def unfairness_over_time(log: RunLog, counted: Bools) -> Figures:
    """The same by the mean over time."""
    return _mean_and_p99("_over_time", unfairness_pct(log, over_time=True)[counted])


@needs("shared_end_s")
def unfairness_by_sharing(log: RunLog, counted: Bools) -> Figures:
    """The same against when each job would have ended if all had shared the GPUs equally."""
    return _mean_and_p99("_by_sharing", excess_pct(log, log.columns["shared_end_s"] - log.submit_s)[counted])


def _mean_and_p99(suffix: str, values: Floats) -> Figures:
    values = values[np.isfinite(values)]
    p99 = float(np.percentile(values, 99)) if len(values) else np.nan
    return {f"unfairness_mean_pct{suffix}": _mean(values), f"unfairness_p99_pct{suffix}": p99}


# Forecasts


def errors_pct(log: RunLog) -> Floats:
    """Errors of forecasts, % of the forecast: |predicted JCT - JCT| / predicted JCT, (n_jobs,). PCS, section 2.2."""
    predicted_end_s = log.columns["predicted_end_s"]
    return 100.0 * np.abs(log.end_s - predicted_end_s) / (predicted_end_s - log.submit_s)


@needs("predicted_end_s")
def forecast_errors(log: RunLog, counted: Bools) -> Figures:
    """`pred_err_*`: of the completions forecast at submission."""
    return _errors("pred_err", errors_pct(log)[counted])


@needs("worst_case_end_s")
def promises(log: RunLog, counted: Bools) -> Figures:
    """`promises_*`: worst cases told at submission, how many were kept, and how many made anew, which counts as broken.

    `worst_case_over_jct_p50`: of those, the median of the promised JCT over the true one. PCS, section 3.1.
    """
    told_s = log.columns["worst_case_end_s"]
    remade = ~np.isnan(log.columns.get("renewed_end_s", np.full(len(log), np.nan)))
    made = counted & np.isfinite(told_s)
    kept = made & ~remade & (log.end_s <= told_s + tolerance.INSTANT_S)
    over = _ratio(told_s - log.submit_s, log.jct_s)[made]
    return {
        "promises_made": float(made.sum()),
        "promises_kept": float(kept.sum()),
        "promises_remade": float((made & remade).sum()),
        "promises_broken": float((made & ~kept).sum()),
        "worst_case_over_jct_p50": float(np.nanmedian(over)) if len(over) else np.nan,
    }


@needs("forecast_duration_s")
def duration_errors(log: RunLog, counted: Bools) -> Figures:
    """`duration_err_*`: of the run times first forecast, % of the run time."""
    off_s = np.abs(log.columns["forecast_duration_s"] - log.duration_s)
    return _errors("duration_err", _no_dust(_ratio(100.0 * off_s, log.duration_s))[counted])


@needs("bins_off")
def duration_bins(log: RunLog, counted: Bools) -> Figures:
    """`duration_bin_right_pct`: jobs that end in the bin first forecast; `duration_bin_short_pct`: that outlive it."""
    off = log.columns["bins_off"][counted]
    off = off[np.isfinite(off)]
    return {"duration_bin_right_pct": 100.0 * _mean(off == 0.0), "duration_bin_short_pct": 100.0 * _mean(off > 0.0)}


@needs("forecast_accuracy", "final_accuracy")
def accuracy_errors(log: RunLog, counted: Bools) -> Figures:
    """`accuracy_err_*`: of the final accuracies first forecast."""
    off = _no_dust(np.abs(log.columns["forecast_accuracy"] - log.columns["final_accuracy"]))
    return _errors("accuracy_err", off[counted], "")


@needs("epoch_time_err_pct")
def epoch_time_errors(log: RunLog, counted: Bools) -> Figures:
    """`epoch_time_err_*`: of the seconds an epoch that were forecast."""
    return _errors("epoch_time_err", _no_dust(log.columns["epoch_time_err_pct"])[counted])


def _no_dust(errors: Floats) -> Floats:
    """Errors without what adding regimes up differently makes of none."""
    return np.where(errors < tolerance.ERRORS_PCT, 0.0, errors)


def _errors(name: str, errors: Floats, unit: str = "_pct") -> Figures:
    errors = errors[np.isfinite(errors)]
    tails = np.percentile(errors, (50, 90, 99)) if len(errors) else np.full(3, np.nan)
    named = {f"{name}_p{level}{unit}": float(tail) for level, tail in zip((50, 90, 99), tails, strict=True)}
    return {f"{name}_mean{unit}": _mean(errors)} | named


# Due dates, accuracy


def tardiness_s(log: RunLog) -> Floats:
    """tau_j: by how much jobs end after their due dates, (n_jobs,) seconds; 0 without a due date. ANDREAS, eq. 1."""
    return np.maximum(0.0, log.end_s - log.columns["due_s"])


def tardiness_eur(log: RunLog) -> Floats:
    """omega_j tau_j: what being late costs, (n_jobs,) EUR. ANDREAS, equation 1."""
    return log.columns["weight"] * (tardiness_s(log) / HOUR_S)


def in_time(log: RunLog) -> Bools:
    """Whether jobs end by their due dates, (n_jobs,)."""
    # NaN compares false: who never ended is late.
    return log.end_s <= log.columns["due_s"] + tolerance.LATER_S


@needs("due_s")
def deadlines(log: RunLog, counted: Bools) -> Figures:
    """`deadline_ratio`, the share of jobs with a due date that end by it, `late_pct`, the others.

    `tardiness_mean_s` of all with a due date, those in time counting 0.
    """
    due = counted & np.isfinite(log.columns["due_s"])
    met, late_s = _mean(in_time(log)[due]), tardiness_s(log)[due]
    return {
        "deadline_ratio": met,
        "late_pct": 100.0 * (1.0 - met),
        "tardiness_mean_s": _mean(late_s[np.isfinite(late_s)]),
    }


@needs("due_s", "weight", "target")
def urgent_deadlines(log: RunLog, counted: Bools) -> Figures:
    """`urgent_deadline_ratio`: of the urgent jobs with a due date alone."""
    due = counted & np.isfinite(log.columns["due_s"]) & (log.columns["weight"] > URGENT)
    return {"urgent_deadline_ratio": _mean(in_time(log)[due])}


@needs("target", "deadline_accuracy")
def accuracy(log: RunLog, counted: Bools) -> Figures:
    """`accuracy_mean` by the due date; `accuracy_ratio`, the share of jobs with a required one that have it by then."""
    target, reached = log.columns["target"], log.columns["deadline_accuracy"]
    required = counted & np.isfinite(target)
    return {
        "accuracy_mean": _mean(reached[counted]),
        "accuracy_ratio": _mean((reached >= target - tolerance.SHARES)[required]),
    }


@needs("iterations", "done")
def iterations(log: RunLog, counted: Bools) -> Figures:
    """`stopped_early` counts jobs with iterations left, `iterations_saved` is their share of all iterations."""
    wanted = log.columns["iterations"][counted]
    saved = wanted - log.columns["done"][counted]
    return {
        "stopped_early": int((saved > tolerance.SHARES * wanted).sum()),
        "iterations_saved": _share(float(saved.sum()), float(wanted.sum())),
    }


# Costs


@needs("edge_mb", "moved_mb")
def bandwidth(log: RunLog, counted: Bools) -> Figures:
    """`bandwidth_tb` that iterations and moves sent between servers."""
    sent_mb = log.columns["edge_mb"][counted].sum() + log.columns["moved_mb"][counted].sum()
    return {"bandwidth_tb": float(sent_mb) / MB_PER_TB}


@needs("energy_kwh", "energy_eur", totals=("energy_kwh", "energy_eur"))
def energy(log: RunLog, counted: Bools) -> Figures:
    """What nodes drew, without PUE, and its cost with it: all of it without a warm-up, the jobs' shares with one."""
    # Idle nodes draw energy that belongs to no job, so that shares do not add up to all of it.
    whole = bool(counted.all())
    return {
        name: float(log.totals[name] if whole else log.columns[name][counted].sum())
        for name in ("energy_kwh", "energy_eur")
    }


@needs("due_s", "weight", "energy_kwh", "energy_eur", totals=("energy_kwh", "energy_eur"))
def total_cost(log: RunLog, counted: Bools) -> Figures:
    """`tardiness_eur`, and `total_eur` with the energy's cost."""
    late_eur = float(tardiness_eur(log)[counted].sum())
    return {"tardiness_eur": late_eur, "total_eur": energy(log, counted)["energy_eur"] + late_eur}


@needs(totals=("overloads",))
def overloads(log: RunLog, counted: Bools) -> Figures:
    """Servers overloaded after a decision."""
    return {"overloads": int(log.totals["overloads"])}


@needs(totals=("decisions", "decision_s"))
def decisions(log: RunLog, counted: Bools) -> Figures:
    """How many decisions were asked for, and milliseconds of CPU for one."""
    asked = log.totals["decisions"]
    result = {"decisions": int(asked), "decision_ms_mean": _share(MS_PER_S * log.totals["decision_s"], asked)}
    # Laws of tasks time their decisions themselves, and keep no longest one.
    if "decision_max_s" in log.totals:
        result["decision_ms_max"] = MS_PER_S * log.totals["decision_max_s"]
    return result


# Against another run


def against(log: RunLog, base: RunLog, warmup_until_s: float | None = None) -> Figures:
    """Speedups and slowdowns of the jobs against another run of them. SIA, sections 4.1 and 6.1, table 17.

    A job's speedup is JCT under the baseline / JCT. `slowed_pct` is the share of jobs that take longer from submission
    to completion by any second (`tolerance.LATER_S`), the slowdowns are by how much, in minutes. In closed-loop runs
    a job's two submissions differ; each JCT counts from its own, and `ends_against_baseline` joins. `saving_pct` is by
    how much less energy and tardiness cost.

    Whether jobs progressed by the same law in both is the caller's to judge: `RunLog.law`.

    Raises
    ------
    ValueError
        The logs are not of the same jobs.
    """
    # By this run's submissions; `same_jobs` has made sure that the other's are the same.
    counted = after_warmup(log, warmup_until_s) & same_jobs(log, base)
    result = _speedups(log.jct_s[counted], base.jct_s[counted])
    if log.trace_submit_s is not None:
        result |= ends_against_baseline(log, base, warmup_until_s)
    if GROUPS["total_cost"].known(log) and GROUPS["total_cost"].known(base):
        cost, before = (total_cost(one, after_warmup(one, warmup_until_s))["total_eur"] for one in (log, base))
        result["saving_pct"] = saving_pct(cost, before)
    return result


def _speedups(jct_s: Floats, base_s: Floats) -> Figures:
    speedups, later_s = times_as_fast(jct_s, base_s), jct_s - base_s
    slowed = is_slowed(jct_s, base_s)
    # Numpy raises for an empty array.
    low, high = np.percentile(speedups, SPEEDUP_TAILS) if len(jct_s) else (np.nan, np.nan)
    return {
        "speedup_mean": _mean(speedups),
        "speedup_gmean": float(np.exp(_mean(np.log(speedups)))),
        "speedup_p5": float(low),
        "speedup_p95": float(high),
        "slowed_pct": 100.0 * _mean(slowed),
        "slowdown_total_min": float(later_s[slowed].sum() / MINUTE_S) if len(jct_s) else np.nan,
        "slowdown_max_min": float(later_s[slowed].max(initial=0.0) / MINUTE_S) if len(jct_s) else np.nan,
    }


def times_as_fast(jct_s: Floats, base_s: Floats) -> Floats:
    """Speedups over a baseline, (n_jobs,), of completion times in seconds.

    >>> times_as_fast(np.array([2.0, 0.0]), np.array([3.0, 0.0])).tolist()
    [1.5, 1.0]
    """
    # Who ran for less than floats tell took some time still.
    speedups: Floats = np.maximum(base_s, tolerance.EVENT_S) / np.maximum(jct_s, tolerance.EVENT_S)
    return speedups


def is_slowed(jct_s: Floats, base_s: Floats) -> Bools:
    """Whether jobs take longer than under a baseline, (n_jobs,)."""
    return jct_s - base_s > tolerance.LATER_S


def ends_against_baseline(log: RunLog, base: RunLog, warmup_until_s: float | None = None) -> Figures:
    """How much earlier jobs of closed-loop runs complete than under a baseline, whenever they were submitted.

    JCTs leave out what a closed loop adds up: a job that is submitted earlier, for what it follows ended earlier, may
    take longer and still complete before. `ends_earlier_mean_s` is the mean of (completion under the baseline -
    completion), `ends_later_pct` the share of jobs that complete later by more than `tolerance.LATER_S`. In an open
    loop they would be the difference of mean JCTs and `slowed_pct`.

    Raises
    ------
    ValueError
        The logs are not of the same jobs.
    """
    counted = after_warmup(log, warmup_until_s) & same_jobs(log, base)
    earlier_s = (base.end_s - log.end_s)[counted]
    later = -earlier_s > tolerance.LATER_S
    return {"ends_earlier_mean_s": _mean(earlier_s), "ends_later_pct": 100.0 * _mean(later)}


def saving_pct(total_eur: float, base_eur: float) -> float:
    """By how much less something costs than something else; NaN where that costs nothing.

    >>> saving_pct(38.0, 100.0)
    62.0
    """
    return 100.0 * (1.0 - total_eur / base_eur) if base_eur > 0.0 else float("nan")


def same_jobs(log: RunLog, base: RunLog) -> Bools:
    """Jobs that ran in both runs, (n_jobs,).

    Raises ValueError when the logs are not of the same jobs, or one of them is of a closed-loop replay alone. Under
    another law a job may run for another time; under one law its regimes may add up to it but for dust.
    """
    alike = (
        len(log) == len(base)
        and (log.trace_submit_s is None) == (base.trace_submit_s is None)
        and bool((np.abs(log.told_submit_s - base.told_submit_s) <= tolerance.LATER_S).all())
        # Other laws measure run times on other GPUs.
        and (log.law != base.law or _as_long(log.duration_s, base.duration_s))
    )
    if not alike:
        raise ValueError(f"runs of {log.policy} and {base.policy} are not of the same jobs; replay one workload")
    return np.isfinite(log.end_s) & np.isfinite(base.end_s)


def _as_long(one_s: Floats, other_s: Floats) -> bool:
    return bool(np.allclose(one_s, other_s, rtol=1e-6, atol=tolerance.LATER_S, equal_nan=True))


def _mean(values: Floats | Bools) -> float:
    return float(values.mean()) if len(values) else np.nan


def _ratio(parts: Floats, wholes: Floats) -> Floats:
    """NaN of what is nothing."""
    return parts / np.where(wholes > 0.0, wholes, np.nan)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else np.nan


# Against what was recorded


LEAST_WAIT_S, MONDAY_S = MINUTE_S, -3.0 * DAY_S  # 1970 began on a Thursday


def fidelity(log: RunLog, counted: Bools, by_s: float = inf) -> dict[str, Any] | None:
    """How near a run's starts are to those of its trace: |simulated - recorded| / max(recorded wait, 60 s).

    `n`, `median` and `p90` (90 % of the jobs are that near) of all jobs with both, and of those by week of submission
    (`weeks`: `from` is a Monday, UTC). None where the log has no recorded starts, or submissions are the run's own.
    As known at an instant, `by_s`: of jobs that had started by then; a later simulated start counts as one at `by_s`.
    Of a run that began amid things, jobs that ran already do not count: their starts were given to it.
    """
    if "recorded_start_s" not in log.columns or log.trace_submit_s is not None:
        return None
    recorded_s, start_s = log.columns["recorded_start_s"], np.minimum(log.start_s, by_s)
    known = counted & (recorded_s <= by_s) & np.isfinite(start_s)
    if log.begin_s is not None:
        known &= recorded_s > log.begin_s
    off_s, wait_s = np.abs(start_s - recorded_s)[known], (recorded_s - log.submit_s)[known]
    off = np.where(off_s > tolerance.LATER_S, off_s, 0.0) / np.maximum(wait_s, LEAST_WAIT_S)
    week = np.floor((log.submit_s[known] - MONDAY_S) / WEEK_S)
    weeks = [{"from": _day(MONDAY_S + WEEK_S * one), **_nearness(off[week == one])} for one in np.unique(week)]
    return {**_nearness(off), "weeks": weeks} if len(off) else None


def _nearness(off: Floats) -> dict[str, Any]:
    median, p90 = np.quantile(off, [0.5, 0.9])
    return {"n": len(off), "median": float(median), "p90": float(p90)}


def _day(at_s: float) -> str:
    return str(np.datetime64(int(at_s), "s").astype("datetime64[D]"))
