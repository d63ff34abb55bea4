"""Lives of the predictors of SIA: arrivals and loads of pools, run times of jobs."""

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import polars as pl

from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.features.arrivals import arrival_features
from jobcast.features.corpus import COPIES, SCORED, STEP_S, build_corpus
from jobcast.models.baselines import EWMA, ewma_arrivals, of_rows
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.evaluation.ablation import PAPER_RECIPE, PaperRecipe, arrival_ablation
from jobcast.models.evaluation.durations import tag_ablation
from jobcast.models.evaluation.intervals import mean_durations_min
from jobcast.models.evaluation.loads import ChosenMax
from jobcast.models.evaluation.smoothing import MODELS, Smoothing
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.predictors import ours_for
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.lifecycle.predictors.life import M, Told
from jobcast.pipelines.lifecycle.predictors.traces import Scoring, TraceLife
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.predictor_plots import CurvePoints, by_kind
from jobcast.traces.history import TraceHistory, histories_of, pool_histories
from jobcast.traces.table import Trace


class PoolLife(TraceLife[M]):
    """Answers by pool and horizon."""

    def report(self, rows: pl.DataFrame) -> Told:
        """`pools`: name -> horizon -> answers."""
        pools: dict[str, dict[str, Any]] = {}
        for row in rows.iter_rows(named=True):
            pools.setdefault(row.pop("pool"), {})[horizon_label(row.pop("horizon_min"))] = row
        return {"pools": pools}

    def _rows(self, pools: list[str], **columns: Any) -> pl.DataFrame:
        """A row a pool and horizon, of answers (P, H)."""
        # Answers are (P, H): ravelled, horizons change fastest.
        horizons = [float(k) for k in self.model_.horizons_min_]
        keys = {"pool": np.repeat(pools, len(horizons)), "horizon_min": np.tile(horizons, len(pools))}
        return pl.DataFrame(keys | {name: values.ravel() for name, values in columns.items()})


class Arrivals(PoolLife[WillJobsArrive]):
    """Will jobs arrive? SIA, section 5.4.1."""

    ablates: ClassVar[bool] = True

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Probability, and what both thresholds make of it."""
        model, histories = self.model_, pool_histories(known)
        horizons_s = [60.0 * k for k in model.horizons_min_]
        # The rows of training, by the same function: a model would not notice another order of columns.
        X = np.concatenate([arrival_features(one, np.array([at_s]), horizons_s) for one in histories.values()])
        result = model.predict_proba(X)
        arrives, gate = result >= model.thresholds_f1_, result >= model.thresholds_gate_
        return self._rows(list(histories), probability=result, arrives=arrives, gate=gate)

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """See `TraceLife`."""
        histories = histories_of(trace, pools)
        corpus = build_corpus(histories, from_s, until_s, self.model_.horizons_min_, copies=SCORED)
        return evaluate_arrivals(self.model_, corpus, from_s, until_s, draws=0)

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """See `TraceLife`."""
        model, wishes, version = self.model_, data.wishes, data.version
        known = data.holds_training
        # It is trained here on the version's training time, which must not reach into what it is scored on.
        recipe = wishes.paper_recipe and known and version.train_until_s <= data.from_s
        # Twins need rows of the training time; without any, a year of features is not built for nothing.
        begin_s = version.train_from_s if recipe or wishes.ablation else data.from_s
        histories = histories_of(data.trace, data.pools)
        copies = COPIES if wishes.ablation else SCORED
        whole = build_corpus(histories, begin_s, data.until_s, model.horizons_min_, STEP_S, data.progress, copies)
        corpus = whole.of_rows(whole.tick_s >= data.from_s)
        # Groups of pools are by what was known in training, where the trace still tells it.
        mean_min = mean_durations_min(data.training if known else data.trace)
        rules = {}
        if recipe:
            until_s = version.train_until_s
            learnt = PaperRecipe(seed=model.seed).fit(whole.of_rows(whole.until(until_s)), until_s)
            rules[PAPER_RECIPE] = learnt.predict_proba(corpus.X)
        rules[EWMA] = of_rows(ewma_arrivals, corpus, histories)
        longest_s = MINUTE_S * max(model.horizons_min_)
        for name in MODELS if wishes.smoothing else ():
            rules[name] = of_rows(Smoothing(name, longest_s, of_gpus=False), corpus, histories)
        span = (data.from_s, data.until_s)
        shared: dict[str, Any] = {"mean_min": mean_min, "draws": wishes.draws, "seed": wishes.seed}
        figures = evaluate_arrivals(model, corpus, *span, wishes.without, rules=rules, **shared)
        if wishes.ablation:
            figures["ablation"] = arrival_ablation(
                model,
                whole,
                version.train_until_s,
                *span,
                train_step_s=data.train_step_s,
                progress=data.progress,
                **shared,
            )
        curves = by_kind(arrival_curves(model, corpus, *span), model.feature_importances) if wishes.curves else None
        return figures, curves or CurvePoints()


class Loads(PoolLife[NewLoad]):
    """How many GPUs will they ask for? SIA, section 5.4.1."""

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """GPUs at most."""
        histories = pool_histories(known)
        gpus = [self.model_.predict(history, np.array([at_s]))[0] for history in histories.values()]
        return self._rows(list(histories), gpus=np.array(gpus))

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """See `TraceLife`."""
        return evaluate_loads(self.model_, histories_of(trace, pools), from_s, until_s, draws=0)

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """See `TraceLife`; with the champion of arrivals, where there is one, the total load too."""
        model, histories = self.model_, histories_of(data.trace, data.pools)
        window, version = (data.from_s, data.until_s), data.version
        chosen = None
        # The rule of the paper chooses by the training time, so it is only fair where that is over.
        if data.holds_training and version.train_until_s <= data.from_s:
            with suppress(TrainingError):  # this trace may have too little of it
                chosen = ChosenMax.on(histories, version.train_from_s, version.train_until_s, model)
        gate, name, note = gate_of(model, data)
        longest_s = MINUTE_S * max(model.horizons_min_)
        rules = {name: Smoothing(name, longest_s, of_gpus=True) for name in MODELS if data.wishes.smoothing}
        shared: dict[str, Any] = {"arrivals": gate, "chosen_max": chosen, "rules": rules, "seed": data.wishes.seed}
        figures = evaluate_loads(model, histories, *window, draws=data.wishes.draws, **shared)
        figures["total"] = {"arrivals": name, "note": note, **figures.get("total", {})}
        if data.wishes.without:
            # Intervals are of the whole window alone.
            fewer = evaluate_loads(model, {name: histories[name] for name in data.others}, *window, draws=0, **shared)
            figures["without"] = {"pools": list(data.wishes.without), **fewer}
        return figures, CurvePoints()


def gate_of(model: NewLoad, data: Scoring) -> tuple[WillJobsArrive | None, str | None, str | None]:
    """The champion of arrivals and its name, with which TotalNewLoad is made; or, in words, why there is none."""
    try:
        version = data.registry.resolve(ours_for(Question.ARRIVALS))
        gate: WillJobsArrive = data.registry.load(version)
    except RegistryError as error:
        return None, None, str(error)
    # A product of forecasts of different windows would mean nothing.
    if tuple(gate.horizons_min_) != tuple(model.horizons_min_):
        have = ", ".join(map(horizon_label, gate.horizons_min_))
        return None, str(version), f"{version}, the champion, forecasts other horizons: {have}"
    # A gate that has seen the window would flatter the product.
    if version.train_until_s > data.from_s:
        ended = iso(version.train_until_s)
        return None, str(version), f"{version}, the champion, was trained until {ended}, which reaches into this window"
    return gate, str(version), None


class Durations(TraceLife[JobDuration]):
    """How long will a job run? SIA, section 5.4.2."""

    ablates: ClassVar[bool] = True

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Bins of the jobs that have not ended, from what had ended by the instant."""
        model, labels = self.model_, bin_labels(self.model_.horizons_min)
        history = TraceHistory(known, at_s)
        tracker = model.tracker()
        # As in a replay: the tracker has seen every end up to the instant, and none after.
        tracker.catch_up(history)
        # Jobs that wait or run; an ended one needs no forecast.
        asked = history.active
        rows = tracker.rows(asked)
        bins, shares = model.predict(rows), model.predict_proba(rows)
        keys = {"job_id": [job.job_id for job in asked], "pool": [job.pool for job in asked]}
        result = {"bin": [labels[int(b)] for b in bins], **dict(zip(labels, np.transpose(shares), strict=True))}
        return pl.DataFrame(keys | result, schema_overrides={"job_id": pl.String, "pool": pl.String, "bin": pl.String})

    def report(self, rows: pl.DataFrame) -> Told:
        """`jobs`: id -> pool, likeliest bin, probabilities."""
        jobs = {}
        for row in rows.iter_rows(named=True):
            job_id, pool, likeliest = (row.pop(name) for name in ("job_id", "pool", "bin"))
            jobs[job_id] = {"pool": pool, "bin": likeliest, "probabilities": row}
        return {"jobs": jobs}

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """See `TraceLife`."""
        return evaluate_durations(self.model_, trace, from_s, until_s, pools, draws=0)

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """See `TraceLife`."""
        model, window = self.model_, (data.from_s, data.until_s)
        figures = evaluate_durations(model, data.trace, *window, data.pools, draws=data.wishes.draws)
        if data.wishes.without:
            fewer = evaluate_durations(model, data.trace, *window, data.others, draws=0)
            figures["without"] = {"pools": list(data.wishes.without), **fewer}
        if data.wishes.ablation:
            figures["ablation"] = tag_ablation(model, data.trace, *window, data.pools)
        return figures, CurvePoints()
