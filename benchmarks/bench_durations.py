r"""How good job-duration is beside the rules that learn nothing, on clusters that have little in common.

    JOBCAST_DATA=<folder that holds philly/, surf/, graham/, swf/, openb/> \
        python benchmarks/bench_durations.py [SET ...]

Each line trains on a window and scores the jobs submitted after it, as `jobcast train` and `jobcast evaluate` do. Sets
whose name ends in `dev` end before the test windows of the others begin: what is tuned is tuned on them alone. A set
`A on B` trains on that of A and scores the window of B, a cluster that it has never seen; what has ended there is its
history. Sets of which the data are not at hand are left out, and named. Without JOBCAST_DATA: the generated ones.

`if right` is the calibration error that would be measured, in the mean, if all forecasts were right and the jobs of a
burst (same user, pool and width within an hour) shared one fate: no forecast can be held to less. `long` is of P(the
last bin): area under the ROC curve, average precision, share of jobs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import average_precision_score, roc_auc_score

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.features.durations import burst_numbers
from jobcast.models import scores
from jobcast.models.duration_data import DurationData, bins_of
from jobcast.models.duration_selection import select
from jobcast.models.evaluation.durations import baseline_figures
from jobcast.models.job_duration import JobDuration
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

DATA = Path(os.environ.get("JOBCAST_DATA", "no-data"))


@dataclass(frozen=True, slots=True)
class Cut:
    """A line of the table: what is trained on, [from, until), and what is scored, [until, to).

    `taught` is the set that is trained on in its place.
    """

    trace: Callable[[], Trace]
    until: str
    to: str
    from_: str = "1970-01-01"
    taught: "Cut | None" = None


@cache
def philly() -> Trace:
    return read_trace(DATA / "philly" / "philly_jobs.csv")


@cache
def surf() -> Trace:
    return read_trace(DATA / "surf" / "jobs.parquet")


@cache
def graham(gpus: bool) -> Trace:
    """Jobs that ask for GPUs, or the others with their cores in the place of GPUs."""
    jobs = pl.read_parquet(DATA / "graham" / "snapshots.parquet").unique("job_id", keep="first", maintain_order=True)
    jobs = jobs.filter((pl.col("gpus") > 0) == gpus).with_columns(
        pl.col("account").alias("user"),
        pl.col("duration").cast(pl.Float64),
        gpus=pl.col("gpus" if gpus else "req_cpus"),
    )
    kept = ("job_id", "pool", "submit_time", "start_time", "end_time", "duration", "gpus", "user", "time_limit_s")
    return Trace.from_frame(jobs.select(kept), name="graham")


@cache
def nasa() -> Trace:
    return read_trace(DATA / "swf" / "nasa-ipsc-1993.swf")


@cache
def openb() -> Trace:
    return read_trace(DATA / "openb" / "openb_pod_list_default.csv").on_gpus


@cache
def campus(seed: int, users: bool = True) -> Trace:
    trace = generate("campus", seed, {})[0]
    return trace if users else Trace.from_frame(trace.jobs.drop("user", "tag"), name=trace.name)


OWN: Mapping[str, Cut] = {
    "philly dev": Cut(philly, "2017-10-16", "2017-11-01", "2017-09-18"),
    "philly dev 2": Cut(philly, "2017-10-23", "2017-11-06", "2017-10-02"),
    "philly": Cut(philly, "2017-11-06", "2017-11-27", "2017-10-02"),
    "surf dev": Cut(surf, "2022-09-01", "2022-10-01"),
    "surf": Cut(surf, "2022-10-01", "2022-11-02"),
    "graham gpu dev": Cut(lambda: graham(True), "2021-05-26", "2021-06-10"),
    "graham gpu": Cut(lambda: graham(True), "2021-06-10", "2021-07-02"),
    "graham cpu": Cut(lambda: graham(False), "2021-06-01", "2021-07-02"),
    "nasa dev": Cut(nasa, "1993-12-01", "1994-01-02"),
    "openb dev": Cut(openb, "1970-05-19", "1970-06-01"),
    "campus 0": Cut(lambda: campus(0), "2024-02-05", "2024-02-26"),
    "campus 1": Cut(lambda: campus(1), "2024-02-05", "2024-02-26"),
    "campus 0 no users": Cut(lambda: campus(0, users=False), "2024-02-05", "2024-02-26"),
}
SETS: Mapping[str, Cut] = OWN | {
    f"{one} on {other}": replace(OWN[other], taught=OWN[one])
    for one, other in (
        ("philly", "graham gpu"),
        ("philly", "surf"),
        ("philly", "campus 0"),
        ("campus 0", "philly"),
        ("campus 0", "graham gpu"),
        ("campus 0", "surf"),
    )
}
GENERATED = tuple(name for name in SETS if all(part.startswith("campus") for part in name.split(" on ")))
DRAWS = 200
"""Of fates, for the calibration error of right forecasts."""
SHOWN = ("accuracy", "log_loss", "ece", "under_predicted")


def instant_s(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


@cache
def trained(cut: Cut) -> tuple[JobDuration, float]:
    """The model that `auto` takes, and the seconds of CPU that it took."""
    from_s, until_s = instant_s(cut.from_), instant_s(cut.until)
    trace = cut.trace().between(None, until_s)
    began = time.process_time()
    jobs = DurationData.of(trace, DEFAULT_HORIZONS_MIN, from_s)
    chosen = select(jobs, until_s)
    model = JobDuration(DEFAULT_HORIZONS_MIN, chosen.algorithm).fit_data(jobs, until_s, chosen.calibration)
    return model, time.process_time() - began


def ece_if_right(probability: Floats, burst: Ints) -> float:
    """Mean calibration error of forecasts, (n_jobs, B), if each burst's fate were drawn from them."""
    rng, (_, which) = np.random.default_rng(0), np.unique(burst, return_inverse=True)
    sure, forecast, edges = probability.max(axis=1), probability.argmax(axis=1), probability.cumsum(axis=1)[:, :-1]
    found = []
    for _ in range(DRAWS):
        fate = rng.random(which.max() + 1)[which]
        found.append(scores.ece((edges < fate[:, None]).sum(axis=1) == forecast, sure))
    return float(np.mean(found))


def measured(cut: Cut) -> dict[str, Any]:
    """Figures of the model, and of the rules, on the window after the training."""
    until_s, to_s = instant_s(cut.until), instant_s(cut.to)
    trace = cut.trace().between(None, to_s)
    model, took_s = trained(cut.taught or cut)
    scored = (trace.submit_s >= until_s) & (trace.end_s <= to_s)
    rows, truth = model.rows(trace, scored), bins_of(trace.duration_s[scored], DEFAULT_HORIZONS_MIN)
    proba, forecast = model.predict_proba(rows), model.predict(rows)
    ours = scores.bin_scores(truth, forecast, proba, bin_labels(DEFAULT_HORIZONS_MIN))
    is_long = truth == truth.max()
    return {
        "algorithm": model.algorithm,
        "jobs": len(truth),
        "train_s": took_s,
        "ours": {name: ours[name] for name in SHOWN},
        "ece_if_right": ece_if_right(proba, burst_numbers(trace)[scored]),
        "long": {
            "auc": roc_auc_score(is_long, proba[:, -1]),
            "ap": average_precision_score(is_long, proba[:, -1]),
            "share": float(np.mean(is_long)),
        },
        "rules": {
            name: {key: figures[key] for key in SHOWN}
            for name, figures in baseline_figures(rows, truth, model.prior_, DEFAULT_HORIZONS_MIN).items()
        },
    }


def line(name: str, values: Mapping[str, Any]) -> str:
    """Ours beside the best rule of each figure, and the signs of what is reached."""
    ours, rules, long = values["ours"], values["rules"].values(), values["long"]
    accuracy, loss = max(rule["accuracy"] for rule in rules), min(rule["log_loss"] for rule in rules)
    gain = ours["accuracy"] - accuracy
    reached = f"{'A+' if gain >= 0.02 else 'A ' if gain >= 0 else '- '} {'L' if ours['log_loss'] < loss else '-'} "
    reached += "E" if ours["ece"] <= 0.05 else "-"
    calibration = f"{ours['ece']:.3f} {values['ece_if_right']:.3f}"
    figures = (
        f"{ours['accuracy']:.3f} {accuracy:.3f} {gain:+.3f} | {ours['log_loss']:.3f} {loss:.3f} | {calibration}",
        f"{long['auc']:.3f} {long['ap']:.3f} {long['share']:.3f}",
        reached,
    )
    return f"{name:24} {values['algorithm']:15} {values['jobs']:7} {values['train_s']:6.1f} | " + " | ".join(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help="beginnings of names; default all")
    parser.add_argument("--json", type=Path, help="write all figures there")
    args = parser.parse_args()
    wanted = [name for name in SETS if not args.sets or name.startswith(tuple(args.sets))]
    if not DATA.is_dir():
        print("JOBCAST_DATA is not set: generated clusters only", file=sys.stderr)
        wanted = [name for name in wanted if name in GENERATED]
    told_of = "accuracy, rule's | log loss, rule's | ece, if right | long"
    print(f"{'set':24} {'algorithm':15} {'jobs':>7} {'cpu s':>6} | {told_of}")
    result = {}
    for name in wanted:
        result[name] = measured(SETS[name])
        print(line(name, result[name]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
