"""How good JobDuration is on a later window."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels
from jobcast.features.corpus import Mask
from jobcast.models import baselines, scores
from jobcast.models.job_duration import JobDuration, bins_of, group_counts
from jobcast.traces.table import Trace


def evaluate_durations(
    model: JobDuration, trace: Trace, from_s: float, until_s: float, pools: Sequence[str] | None = None
) -> dict[str, Any]:
    """Figures of JobDuration over the jobs of a window, with the rules to beat.

    Parameters
    ----------
    trace : jobs, from before `from_s` on: what had finished by a job's submission is its history
    from_s, until_s : jobs submitted in [from_s, until_s) and ended by `until_s` are scored, seconds from the epoch
    pools : those that count; None = all

    Returns
    -------
    The figures of `scores.bin_scores`; `unknown`, how many jobs had not ended; `baselines`.

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    trace = trace.between(None, until_s)
    submitted = trace.submit_s >= from_s
    if pools is not None:
        submitted &= trace.jobs["pool"].is_in(list(pools)).to_numpy()
    scored = submitted & (trace.end_s <= until_s)
    if not scored.any():
        raise TrainingError(f"{trace.name}: no job of the window ended in it; widen --from and --until")
    labels = bin_labels(model.horizons_min)
    truth = bins_of(trace.duration_s, model.horizons_min)[scored]
    counts = model.counts(trace)[scored]
    forecast, probability = model.predict(counts), model.predict_proba(counts)
    return {
        **scores.bin_scores(truth, forecast, probability, labels),
        "unknown": int((submitted & ~scored).sum()),
        "baselines": _duration_baselines(model, trace, scored, truth),
    }


def _duration_baselines(
    model: JobDuration, trace: Trace, scored: Mask, truth: NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    labels = bin_labels(model.horizons_min)
    counts = group_counts(trace, model.horizons_min, baselines.LIKE_WIDTH)[scored]
    told = {
        name: scores.bin_rule_scores(truth, rule(counts, model.prior_), labels)
        for name, rule in baselines.DURATION_RULES.items()
    }
    for figures in told.values():
        del figures["by_bin"]
    return told
