"""What each set of features adds to WillJobsArrive: twins trained anew on cumulative sets. SIA, Tables 20 and 23.

What SIA says to do, as a rule to beat: XGBoost's defaults for skewed data on the features of Table 9.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.horizons import horizon_label
from jobcast.features.arrivals import PAPER_SETS, TABLE_9, feature_sets
from jobcast.features.corpus import STEP_S, Corpus, Mask
from jobcast.models import scores
from jobcast.models.algorithms import PAPER, fit_classifier
from jobcast.models.evaluation.intervals import DRAWS, DayDraws, days_of, duration_groups
from jobcast.models.will_jobs_arrive import WillJobsArrive

EVEN_ODDS = 0.5
PAPER_RECIPE = "paper_recipe"


class PaperRecipe:
    """The classifiers of `algorithms.PAPER`, jobs expected from a probability of one half on.

    Parameters
    ----------
    columns : that it may look at

    Attributes
    ----------
    classifiers_ : (H,) trained on all rows
    """

    def __init__(self, columns: Sequence[str] = TABLE_9, seed: int = 0) -> None:
        self.columns = tuple(columns)
        self.seed = seed

    def fit(self, corpus: Corpus, until_s: float) -> Self:
        """Train on all rows whose windows end before an instant, seconds from the epoch."""
        self.picked_ = [corpus.feature_names.index(name) for name in self.columns if name in corpus.feature_names]
        rows = [corpus.purged(until_s, horizon) for horizon in range(len(corpus.horizons_min))]
        pairs = [corpus.horizon_matrix(horizon, mask) for horizon, mask in enumerate(rows)]
        self.classifiers_ = [fit_classifier(PAPER, X[:, self.picked_], arrives, self.seed) for X, arrives in pairs]
        return self

    def predict_proba(self, X: NDArray[Any]) -> Floats:
        """Weighted probability of arrivals, shape (n_rows, H), from rows (n_rows, H, F)."""
        each = enumerate(self.classifiers_)
        return np.stack([one.predict_proba(X[:, h, self.picked_]) for h, one in each], axis=1)


Progress = Callable[[int, int], object]


def arrival_ablation(
    model: WillJobsArrive,
    corpus: Corpus,
    train_until_s: float,
    from_s: float,
    until_s: float,
    *,
    train_step_s: float = STEP_S,
    mean_min: Mapping[str, float] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Figures of twins of a model that may look at cumulative sets of features, and of the paper's recipe.

    Parameters
    ----------
    model : whose algorithm, settings and seed the twins have
    corpus : rows from the beginning of the training window to `until_s`
    train_until_s : end of the training window; twins learn from windows that end before it
    from_s, until_s : what is scored, see `evaluate_arrivals`
    train_step_s : grid of the training rows, a multiple of the corpus's
    mean_min, draws, seed : see `evaluate_arrivals`
    progress : called with (twins done, twins in all)

    Returns
    -------
    train_step_s
    feature_sets : set -> its columns
    horizons : horizon -> set -> n, precision, recall, f1, threshold, pr_auc, `pr_auc_interval`; from the second set on
        `pr_auc_gain`, what PR-AUC gains over the set before, and its `pr_auc_gain_interval` of paired draws of days;
        `by_duration_group`: group -> precision, recall, f1, pr_auc. Last, as `paper_recipe`, XGBoost's defaults.
    closed_loop : horizon -> `pr_auc_gain` and its interval of "+ future completions" over "+ recent arrivals": what
        both sets of completions add together
    """
    sets = feature_sets(corpus.feature_names)
    # A coarser grid trains as well, and twins are many.
    known = corpus.of_rows(corpus.until(train_until_s) & (corpus.tick_s % train_step_s == 0.0))
    scored = corpus.of_rows(corpus.tick_s >= from_s)
    groups = duration_groups(corpus.pools, mean_min or {})
    benches = [
        _Bench(scored, horizon, (from_s, until_s), groups, draws, seed) for horizon in range(len(corpus.horizons_min))
    ]
    blocks: dict[str, dict[str, Any]] = {horizon_label(k): {} for k in corpus.horizons_min}
    forecasts: dict[str, Floats] = {}
    for label in (*sets, PAPER_RECIPE):
        probability, thresholds = _twin(model, known, train_until_s, sets.get(label), scored)
        # Sets are cumulative and in order; the recipe is none of them.
        before = forecasts[list(forecasts)[-1]] if forecasts and label != PAPER_RECIPE else None
        for bench, threshold, block in zip(benches, thresholds.tolist(), blocks.values(), strict=True):
            block[label] = bench.figures(probability, threshold, before)
        forecasts[label] = probability
        if progress is not None:
            progress(len(forecasts), len(sets) + 1)
    return {
        "train_step_s": train_step_s,
        "feature_sets": {label: list(columns) for label, columns in sets.items()},
        "horizons": blocks,
        "closed_loop": _closed_loop(benches, list(blocks), forecasts),
    }


def _closed_loop(benches: Sequence["_Bench"], names: Sequence[str], forecasts: Mapping[str, Floats]) -> dict[str, Any]:
    """What recent and future completions add together to what arrivals tell. SIA, section 5.4.1."""
    _, open_loop, _, closed_loop = PAPER_SETS
    if not {open_loop, closed_loop}.issubset(forecasts):
        return {}
    return {
        name: bench.gain(forecasts[closed_loop], forecasts[open_loop])
        for name, bench in zip(names, benches, strict=True)
    }


def _twin(
    model: WillJobsArrive, known: Corpus, until_s: float, columns: Sequence[str] | None, scored: Corpus
) -> tuple[Floats, Floats]:
    """Probabilities of a twin that reads some columns, (n_rows, H), and its thresholds, (H,); None: the recipe's."""
    if columns is None:
        recipe = PaperRecipe(seed=model.seed).fit(known, until_s)
        return recipe.predict_proba(scored.X), np.full(len(known.horizons_min), EVEN_ODDS)
    twin = type(model)(model.algorithm, model.miss_share, model.seed, model.settings, columns=columns)
    twin.fit(known, until_s)
    return twin.predict_proba(scored.X), twin.thresholds_f1_


class _Bench:
    """The rows on which all twins are compared at one horizon, and the days that are drawn for all of them."""

    def __init__(
        self,
        scored: Corpus,
        horizon: int,
        span: tuple[float, float],
        groups: Mapping[str, Sequence[str]],
        draws: int,
        seed: int,
    ) -> None:
        self.horizon = horizon
        self.rows = scored.scored(*span, horizon)
        self.arrives = scored.arrives[self.rows, horizon]
        index = scored.pool_index[self.rows]
        self.groups = {
            label: (list(pools), np.isin(index, [scored.pools.index(pool) for pool in pools]))
            for label, pools in groups.items()
        }
        self.days = DayDraws(days_of(scored.tick_s[self.rows]), draws, seed) if self.rows.any() else None

    def figures(self, probability: Floats, threshold: float, before: Floats | None) -> dict[str, Any]:
        """Figures of forecasts (n_rows, H), and what they gain over those of the set before."""
        mine = probability[self.rows, self.horizon]
        return {
            **self._scores(np.ones(len(mine), np.bool_), mine, threshold),
            "threshold": threshold,
            "pr_auc_interval": None if self.days is None else self.days.interval(self.days.pr_auc(self.arrives, mine)),
            **({} if before is None else self.gain(probability, before)),
            "by_duration_group": {
                label: {"pools": pools, **self._scores(members, mine, threshold)}
                for label, (pools, members) in self.groups.items()
            },
        }

    def _scores(self, picked: Mask, probability: Floats, threshold: float) -> dict[str, Any]:
        arrives, forecast = self.arrives[picked], probability[picked]
        found = scores.detection(arrives, forecast >= threshold)
        return {"n": len(arrives), **found, "pr_auc": scores.pr_auc(arrives, forecast)}

    def gain(self, probability: Floats, before: Floats) -> dict[str, Any]:
        """What PR-AUC gains from one set of forecasts (n_rows, H) to another, with its interval of paired draws."""
        # The same days are drawn for both, so that what they share cancels out.
        pair = [one[self.rows, self.horizon] for one in (probability, before)]
        now, then = (scores.pr_auc(self.arrives, one) or np.nan for one in pair)
        result: dict[str, Any] = {"pr_auc_gain": scores.defined(now - then), "pr_auc_gain_interval": None}
        if self.days is not None:
            drawn, drawn_before = (self.days.pr_auc(self.arrives, one) for one in pair)
            result["pr_auc_gain_interval"] = self.days.interval(drawn - drawn_before)
        return result
