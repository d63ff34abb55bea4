"""How good JobDuration is on a later window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels
from jobcast.models import scores
from jobcast.models.duration_booster import DURATION_RULES, shares
from jobcast.models.duration_data import bins_of
from jobcast.models.evaluation.intervals import DRAWS, DayDraws, Interval, days_of
from jobcast.models.job_duration import PRIOR_WEIGHT, JobDuration
from jobcast.traces.table import Trace


def baseline_figures(
    rows: Floats, truth: Ints, prior: Floats, horizons_min: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Figures of each rule, as `scores.bin_scores` without `by_bin`.

    The bin with most votes is forecast, the longer of equals, and the training data's most frequent one where none
    votes. Probabilities are votes mixed with the training data's shares, as a rule of `JobDuration` mixes them.

    Parameters
    ----------
    rows : (n_jobs, F)
    truth : (n_jobs,) true bins
    prior : (B,) the training data's shares
    """
    result = {}
    for name, rule in DURATION_RULES.items():
        votes = rule(rows, horizons_min)
        forecast = scores.likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, prior))
        probability = shares(votes, prior, PRIOR_WEIGHT)
        result[name] = scores.bin_scores(truth, forecast, probability, bin_labels(horizons_min))
        # Rules to beat are compared as a whole.
        del result[name]["by_bin"]
    return result


def duration_intervals(
    truth: Ints, forecast: Ints, probability: Floats, submit_s: Floats, draws: int
) -> dict[str, Interval]:
    """Intervals of accuracy, macro F1, log loss, calibration error and the under-predicted share, by days.

    Parameters
    ----------
    truth, forecast, submit_s : (n_jobs,)
    probability : (n_jobs, B)
    draws : of days; 0 gives {}
    """
    if not draws or not len(truth):
        return {}
    days, row = DayDraws(days_of(submit_s), draws), np.arange(len(truth))
    sure, right, one = probability[row, forecast], forecast == truth, np.ones(len(truth))
    # F1 of a bin is 2 hits / (true + forecast), NaN in draws without the bin.
    f1 = [
        days.ratio(2.0 * (right & (truth == b)), (truth == b) + 1.0 * (forecast == b))
        for b in range(probability.shape[1])
    ]
    drawn = {
        "accuracy": days.ratio(right, one),
        "under_predicted": days.ratio(forecast < truth, one),
        "log_loss": days.ratio(-np.log(np.maximum(probability[row, truth], np.finfo(np.float64).tiny)), one),
        "macro_f1": np.nanmean(f1, axis=0),
        "ece": days.ece(right, sure),
    }
    return {name: days.interval(values) for name, values in drawn.items()}


CONFIDENT_SHARE = 0.5
"""Share of the forecasts that count as the more confident ones."""
WHOLE = ("accuracy", "macro_f1", "log_loss", "ece", "under_predicted")
"""Figures of a pool or width."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The jobs that count.

    Attributes
    ----------
    rows : (n_jobs, F)
    truth : (n_jobs,) true bins
    submit_s, pool, gpus : (n_jobs,)
    unknown : how many more there were that had not ended
    """

    rows: Floats
    truth: Ints
    submit_s: Floats
    pool: NDArray[Any]
    gpus: Ints
    unknown: int


def evaluate_durations(
    model: JobDuration,
    trace: Trace,
    from_s: float,
    until_s: float,
    pools: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> dict[str, Any]:
    """Figures of JobDuration over the jobs of a window, with the rules to beat.

    Parameters
    ----------
    trace : jobs, from before `from_s` on: what had finished by a job's submission is its history
    from_s, until_s : jobs submitted in [from_s, until_s) and ended by `until_s` are scored, seconds from the epoch
    pools : those that count; None = all
    draws : of days, for the intervals; 0 = no intervals

    Returns
    -------
    The figures of `scores.bin_scores` for the likeliest bin; `unknown`, how many jobs had not ended;
    `new_pools_share`, share of the jobs whose pools it has not learnt from: 1 on another cluster; `baselines`;
    `choose`, figures of the bin that schedulers are told; `confident_half`, accuracy of the surer half of the
    forecasts; `by_pool`, `by_width`; `intervals`, 95 % ones by drawing days.

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    scored = scored_jobs(model, trace, from_s, until_s, pools)
    labels, truth = bin_labels(model.horizons_min), scored.truth
    probability, forecast = model.predict_proba(scored.rows), model.predict(scored.rows)
    chosen = model.choose(scored.rows)
    return {
        **scores.bin_scores(truth, forecast, probability, labels),
        "unknown": scored.unknown,
        "new_pools_share": scores.mean(~np.isin(scored.pool.astype(str), model.pools_)),
        "baselines": baseline_figures(scored.rows, truth, model.prior_, model.horizons_min),
        "choose": {"under_cost": model.under_cost, **_told(truth, chosen)},
        "over_predicted": scores.mean(forecast > truth),
        "confident_half": _confident(truth, forecast, probability),
        "by_pool": _groups(scored.pool, truth, forecast, probability, labels),
        "by_width": _groups(scored.gpus, truth, forecast, probability, labels),
        "intervals": duration_intervals(truth, forecast, probability, scored.submit_s, draws),
    }


def scored_jobs(
    model: JobDuration, trace: Trace, from_s: float, until_s: float, pools: Sequence[str] | None = None
) -> Scored:
    """Jobs of a window that count; see `evaluate_durations`."""
    trace = trace.between(None, until_s)
    pool = trace.jobs["pool"].to_numpy()
    submitted = trace.submit_s >= from_s
    if pools is not None:
        submitted &= np.isin(pool, list(pools))
    # Jobs that still run have no truth yet; how many there are is told.
    scored = submitted & (trace.known_s <= until_s)
    if not scored.any():
        raise TrainingError(f"{trace.name}: no job of the window ended in it; widen --from and --until")
    return Scored(
        model.rows(trace, scored),
        bins_of(trace.duration_s[scored], model.horizons_min),
        trace.submit_s[scored],
        pool[scored],
        trace.gpus[scored],
        int((submitted & ~scored).sum()),
    )


def tag_ablation(
    model: JobDuration, trace: Trace, from_s: float, until_s: float, pools: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """What tags are worth: the model's algorithm trained anew on its own time with and without them, then scored.

    Parameters as `evaluate_durations`; the trace must hold the model's training time.

    Returns
    -------
    `with tags` and `without tags`: figures as in `scores.bin_scores`, and those of the paper's rule under `rule`.

    Raises
    ------
    TrainingError
        No job of the trace ended in the model's training time, or there is nothing to score.
    """

    def figures(algorithm: str, use_tags: bool) -> dict[str, Any]:
        # Trained anew, so that tags alone differ.
        other = JobDuration(model.horizons_min, algorithm, model.under_cost, use_tags, model.settings, model.seed)
        other.fit(trace, model.trained_until_s_, model.trained_from_s_)
        scored = scored_jobs(other, trace, from_s, until_s, pools)
        probability, forecast = other.predict_proba(scored.rows), other.predict(scored.rows)
        return scores.bin_scores(scored.truth, forecast, probability, bin_labels(other.horizons_min))

    return {
        label: {**figures(model.algorithm, use_tags), "rule": figures("tag-pool-width", use_tags)}
        for label, use_tags in {"with tags": True, "without tags": False}.items()
    }


def _told(truth: Ints, chosen: Ints) -> dict[str, Any]:
    return {
        "accuracy": scores.mean(chosen == truth),
        "under_predicted": scores.mean(chosen < truth),
        "over_predicted": scores.mean(chosen > truth),
    }


def _confident(truth: Ints, forecast: Ints, probability: Floats) -> dict[str, Any]:
    """Figures of the half of the jobs whose forecast bin is likeliest; earlier jobs first where equal."""
    sure = probability[np.arange(len(truth)), forecast]
    # Stable: of equals the earlier jobs, on every machine.
    half = np.argsort(-sure, kind="stable")[: max(1, round(CONFIDENT_SHARE * len(truth)))]
    return {"n": len(half), "accuracy": scores.mean(forecast[half] == truth[half]), "least": float(sure[half[-1]])}


def _groups(
    group: NDArray[Any], truth: Ints, forecast: Ints, probability: Floats, labels: Sequence[str]
) -> Mapping[str, Any]:
    blocks = {}
    for name in np.unique(group):
        rows = group == name
        figures = scores.bin_scores(truth[rows], forecast[rows], probability[rows], labels)
        blocks[str(name)] = {"n": figures["n"], **{key: figures[key] for key in WHOLE}}
    return blocks
