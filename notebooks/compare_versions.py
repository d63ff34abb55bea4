# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is the new version of a predictor worth promoting?
#
# A GPU cluster is divided into *pools*: each team owns the GPUs of its pool, its *quota*. While a team's queue is
# empty its GPUs stand idle, and a scheduler may lend them to jobs of other pools, provided that they are free again
# when their owners come back. The scheduler `sia` (SIA, section 5.3) therefore asks three things of predictors:
#
# | question | predictor |
# | --- | --- |
# | Will any job arrive in this pool in the next 5, 60, 720 minutes? | `will-jobs-arrive` |
# | If so, how many GPUs will these jobs ask for? | `new-load` |
# | How long will this job run: up to 5 minutes, up to 60, up to 720, or longer? | `job-duration` |
#
# This notebook looks at a trace of jobs, trains two versions of `will-jobs-arrive`, and compares them twice on a
# part of the trace that neither has seen: by how often they are right, and by what a scheduler makes of their
# answers. Only the second tells whether to promote one. The closing paragraph is computed from the figures above it.

# %% [markdown]
# ## Settings
#
# Everything that can be changed stands here; each line can be set by an environment variable as well. Without any,
# a small campus trace is generated, and the models go into a temporary store that is gone with the notebook.

# %% tags=["parameters"]
import os


def setting(name: str, default: str) -> str:
    return os.environ.get(f"JOBCAST_NOTEBOOK_{name}") or default


TRACE = setting("TRACE", "campus")  # a CSV or Parquet file, or "campus": generated as the next three lines say
WEEKS = int(setting("WEEKS", "6"))
CAMPUS_POOLS = int(setting("CAMPUS_POOLS", "6"))
JOBS = int(setting("JOBS", "15000"))
POOLS = setting("POOLS", "")  # a file of quotas (CSV: pool,gpus); empty = the generated trace's own, else derived
POOL = setting("POOL", "")  # the pool to look at; empty = the one whose users wait most visibly for their jobs
TRAIN_SHARE = float(setting("TRAIN_SHARE", "0.625"))  # of the trace's time, snapped to midnight; the rest is the test
ALGORITHMS = setting("ALGORITHMS", "lightgbm,xgboost").split(",")  # of will-jobs-arrive: one version each
SEED = int(setting("SEED", "0"))
RANDOM_SEEDS = int(setting("RANDOM_SEEDS", "3"))  # draws of the random forecasts
HOME = os.environ.get("JOBCAST_HOME", "")  # the store: HOME/mlruns; empty = a temporary folder

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import SVG, Markdown, display

import jobcast as jc
from jobcast.domain import tolerance
from jobcast.domain.hardware import PoolsTable
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.features.corpus import build_corpus
from jobcast.models.evaluation import arrival_curves
from jobcast.pipelines.experiments.backtest import label_of, matrix, run_matrix
from jobcast.pipelines.experiments.backtest_results import gains_between
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, ForecastSpec, parse_forecasts
from jobcast.pipelines.report import backtest_charts, predictor_plots, trace_plots
from jobcast.pipelines.report.backtest_tables import summaries
from jobcast.pipelines.report.charts import looks, svg_of
from jobcast.pipelines.report.formatting import between, duration, iso, number, percent, share, signed
from jobcast.pipelines.report.plots import INK, PALETTE, WIDE, draw, legend_beside, percent_ticks, plain_ticks
from jobcast.pipelines.stages.config import Prepare
from jobcast.pipelines.stages.prepared_traces import prepare_trace
from jobcast.traces.history import pool_histories
from jobcast.traces.trace_stats import cdf

if not HOME:
    scratch = tempfile.TemporaryDirectory(prefix="jobcast-notebook-")  # removed when the kernel ends
    HOME = scratch.name
home = Path(HOME)


def table(rows: list[dict[str, object]]) -> None:
    """Show rows as a table, figures to the right."""
    looks = {
        name: "text-align: left; white-space: nowrap" if name in NAMES else "text-align: right" for name in rows[0]
    }
    aligned = {name: [{"selector": "th, td", "props": look}] for name, look in looks.items()}
    display(pd.DataFrame(rows).style.hide(axis="index").set_table_styles(aligned))


NAMES = {"pool", "version", "horizon", "rule or version", "configuration", "compared with", "predictor", "algorithm",
         "aliases", "job_id", "user", "tag", "submit_time", "state"}  # fmt: skip

# %% [markdown]
# ## The trace
#
# One row a job: which pool it was submitted to and when, how many GPUs it asked for (all at once: its *width*) and
# for how many seconds it ran on them. `user` and `tag` (an experiment) are there where the trace tells.

# %%
generator = {"weeks": WEEKS, "pools": CAMPUS_POOLS, "jobs": JOBS} if TRACE == "campus" else {}
prepared = prepare_trace(
    Prepare(trace=TRACE, pools=POOLS or None, seed=SEED, settings=generator, train_share=TRAIN_SHARE)
)
trace, pools, split = prepared.trace, prepared.pools, prepared.split
description = jc.describe(trace, pools)
first, last = iso(description.total.first_submit_s), iso(description.total.last_submit_s)
display(
    Markdown(
        f"**{trace.name}**: {number(len(trace))} jobs of {len(pools)} pools with {sum(p.quota for p in pools)} GPUs "
        f"in all, submitted from {first} to {last}. Quotas: {prepared.pools_origin}. SHA-256 "
        f"`{trace.source.sha256[:16]}…`."
    )
)
head = trace.jobs.head(5).to_dicts()
plain = [
    {"submit_time": f"{row['submit_time']:%Y-%m-%d %H:%M:%S}", "duration": f"{row['duration']:,.0f}"} for row in head
]
table([{**row, **shorter} for row, shorter in zip(head, plain, strict=True)])

# %% [markdown]
# Pools differ widely. *Utilisation* is the share of the quota that would be at work if every job ran at once: what
# lies below 100 % is what a scheduler could lend. The *largest burst* is the most GPUs that are asked for within
# five minutes, over the quota: above 100 %, the pool's own GPUs cannot serve it, so that jobs wait although the pool
# is idle at other times. Both sides of this are what SIA, section 2, sees in production.

# %%
table(
    [
        {
            "pool": name,
            "quota (GPUs)": one.quota,
            "jobs": number(one.jobs),
            "mean width (GPUs)": number(one.gpus_mean),
            "median run time": duration(one.duration_p50_s),
            "99th percentile": duration(one.duration_p99_s),
            "utilisation": share(one.utilization_mean),
            "largest burst": share(one.burst_share),
        }
        for name, one in description.pools.items()
    ]
)
display(SVG(svg_of(trace_plots.arrivals(trace.submit_s))))

# %% [markdown]
# ## One pool, closely
#
# What could a predictor of arrivals go by? First the calendar: mean jobs an hour, by hour of the day and day of the
# week (UTC).

# %%
loops = {
    name: one.followed_after_completion / one.followed_at_random
    for name, one in description.pools.items()
    if one.jobs >= description.total.jobs / len(pools) / 4
}
pool = POOL or max(loops, key=lambda name: (loops[name], name))
figures = description.pools[pool]
history = pool_histories(trace)[pool]
submit_s = history.arrival_s
display(Markdown(f"The pool looked at is **{pool}**: {number(figures.jobs)} jobs on {figures.quota} GPUs."))

# %%
HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 604800.0
MONDAY_S = 4 * DAY_S  # the epoch began on a Thursday
hour_of_week = ((submit_s - MONDAY_S) % WEEK_S // HOUR_S).astype(int)
weeks = figures.span_s / WEEK_S
by_hour = np.bincount(hour_of_week, minlength=168).reshape(7, 24) / weeks


def paint_week(figure):
    axes = figure.subplots()
    mesh = axes.pcolormesh(np.arange(25), np.arange(8), by_hour, cmap="cividis", linewidth=0)
    axes.set(xticks=range(0, 25, 3), xlabel="hour of the day (UTC)", yticks=np.arange(7) + 0.5)
    axes.set_yticklabels(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    axes.invert_yaxis()
    axes.grid(visible=False)
    figure.colorbar(mesh, ax=axes, label="jobs an hour")


display(SVG(draw(f"Submissions of {pool} by hour and weekday", paint_week, (WIDE[0], 3.4))))

# %% [markdown]
# Then how long jobs run and how wide they are. Schedulers get no exact run times from `job-duration` but one of four
# bins, whose edges (5, 60 and 720 minutes) are the dashed lines. Run times spread over several orders of magnitude,
# and wide jobs weigh more than their number suggests.

# %%
minutes, gpus = history.completion_duration_s / 60, history.arrival_gpus
widths, jobs_by_width = np.unique(gpus, return_counts=True)


def paint_jobs(figure):
    left, right = figure.subplots(1, 2)
    left.hist(minutes, bins=np.geomspace(minutes.min(), minutes.max(), 40), color=PALETTE[0])
    left.set_xscale("log")
    for edge in DEFAULT_HORIZONS_MIN:
        left.axvline(edge, color=INK, linestyle="--", linewidth=1)
    plain_ticks(left.xaxis)
    left.set(xlabel="run time, minutes (log scale)", ylabel="jobs")
    right.bar([f"{width:g}" for width in widths], jobs_by_width / len(gpus), color=PALETTE[0], label="of jobs")
    work = [float((gpus * (gpus == width)).sum()) for width in widths]
    right.plot([f"{width:g}" for width in widths], np.array(work) / gpus.sum(), "o", color=PALETTE[1],
               label="of GPUs asked for")  # fmt: skip
    percent_ticks(right.yaxis)
    right.set(xlabel="GPUs of a job", ylabel="share")
    right.legend()


display(SVG(draw(f"Run times and widths of {pool}", paint_jobs, (WIDE[0], 3.6))))

# %% [markdown]
# Jobs come in bursts: most follow the previous one within seconds, and then nothing comes for hours. If arrivals
# were independent of one another (a Poisson process), the standard deviation of the gaps would be their mean: a
# ratio of 1.

# %%
BURST_GAP_S = 60.0  # what follows within a minute belongs to the same burst
gaps_s = np.diff(submit_s)
begins = np.flatnonzero(np.concatenate(([True], gaps_s > BURST_GAP_S)))
sizes = np.diff(np.append(begins, len(submit_s)))
burst_gpus = np.add.reduceat(gpus, begins)
gaps = cdf(gaps_s)
display(SVG(svg_of(trace_plots.distribution("interarrival_s", {"x": gaps.x, "y": gaps.y}))))
display(
    Markdown(
        f"{number(len(begins))} bursts (jobs at most a minute apart) of {sizes.mean():.1f} jobs on average, "
        f"{sizes.max()} at most; the widest asks for {burst_gpus.max():g} GPUs, the quota is {figures.quota}. "
        f"Standard deviation of the gaps over their mean: {figures.interarrival_cv:.1f}."
    )
)

# %% [markdown]
# And last, people wait for results: a user's jobs end, the user looks at them, thinks, and submits the next ones.
# This *closed loop* is why completions announce arrivals (SIA, section 2). The plot takes each instant at which the
# last running job of a user ends and counts what is submitted to the pool, by anybody, in the hours before and
# after. Shortly before, that user is still waiting; then the next burst comes. A trace that names no users is taken
# to have one a pool.

# %%
STEP_MIN, SIDE_MIN = 10, 180
own = trace.jobs["pool"].to_numpy() == pool
users = trace.jobs["user"].fill_null("").to_numpy() if "user" in trace.jobs.columns else np.full(len(trace), "")
jobs = pd.DataFrame({"user": users[own], "submit_s": submit_s, "end_s": trace.end_s[own]})
busy_until_s = jobs.groupby("user")["end_s"].cummax()
next_s = jobs.groupby("user")["submit_s"].shift(-1)
results_s = busy_until_s[~(next_s <= busy_until_s)].to_numpy()  # from here on nothing of the user's runs
edges_min = np.arange(-SIDE_MIN, SIDE_MIN + STEP_MIN, STEP_MIN)
arrived = submit_s.searchsorted(results_s[:, None] + 60.0 * edges_min, side="right")
rate = np.diff(arrived, axis=1).mean(axis=0) / (STEP_MIN / 60)
average = figures.jobs / (figures.span_s / HOUR_S)


def paint_loop(figure):
    axes = figure.subplots()
    axes.bar(edges_min[:-1], rate, width=STEP_MIN * 0.9, align="edge", color=PALETTE[0])
    axes.axvline(0, color=INK, linewidth=1)
    axes.axhline(average, color=PALETTE[1], linestyle="--", label="mean of the whole trace")
    axes.set(xlabel="minutes after the last running job of a user has ended", ylabel="submissions an hour")
    axes.margins(x=0.01)
    legend_beside(axes)


display(SVG(draw(f"Submissions of {pool} around the ends of users' bursts", paint_loop, (WIDE[0], 3.4))))
display(
    Markdown(
        f"{number(len(results_s))} such instants. Over all completions of {pool}: within five minutes, another job "
        f"arrives after {share(figures.followed_after_completion)} of them, and after "
        f"{share(figures.followed_at_random)} of random instants."
    )
)

# %% [markdown]
# ## Two versions
#
# Time is split once: predictors learn from what lies before, and are judged on what lies after. Nothing at or after
# the split is read in training, and no forecast for an instant uses anything that happens later.
#
# `train` fits a predictor and registers it as a new version with the alias `challenger`; the first
# version of a name is `champion` too, which is what schedulers use unless told otherwise. The store is MLflow's.

# %%
training = {"start": split.train_from_s, "until": split.train_until_s, "seed": SEED, "home": home}
wanted = [(PREDICTORS[0], algorithm) for algorithm in ALGORITHMS] + [(name, None) for name in PREDICTORS[1:]]
trained = [jc.train(name, trace, algorithm=algorithm, **training) for name, algorithm in wanted]
registry = jc.registry(home)
numbers = {(one.name, one.algorithm): one.version for one in trained}
versions = {algorithm: numbers["will-jobs-arrive", algorithm] for algorithm in ALGORITHMS}
others = {name: number_ for (name, _), number_ in numbers.items() if name != "will-jobs-arrive"}
display(
    Markdown(
        f"Trained on {iso(split.train_from_s)} to {iso(split.train_until_s)}; tested until {iso(split.test_until_s)}."
    )
)
table(
    [
        {
            "predictor": one.name,
            "version": one.version,
            "algorithm": one.algorithm,
            "aliases": ", ".join(registry.resolve(one.name, one.version).aliases),
        }
        for one in trained
    ]
)

# %% [markdown]
# ## How often are they right?
#
# Every five minutes and for every pool the question is asked anew. *Base rate*: the share of windows in which a job
# does arrive. *F1* weighs precision (of the windows declared, how many had arrivals) and recall (of those with
# arrivals, how many were declared) at the version's own threshold, which was chosen on the end of the training time.
# *PR AUC* judges the probabilities at all thresholds; *calibration error* (ECE) says how far they are from observed
# shares.
#
# Beside them stand rules that learn nothing: jobs *always* arrive; jobs arrive when some did in the last window
# (*persistence*); when some did at this time *yesterday*; at the *trailing rate* of the last week. A version that
# does not beat them has learnt nothing of use.

# %%
testing = {"start": split.train_until_s, "until": split.test_until_s, "home": home}
scored = {
    algorithm: jc.evaluate(f"will-jobs-arrive:{version}", trace, **testing).attrs["result"]
    for algorithm, version in versions.items()
}


def name_of(algorithm: str) -> str:
    return f"{algorithm} (v{versions[algorithm]})"


def quality(horizon: str) -> list[dict[str, object]]:
    blocks = {name_of(algorithm): result["horizons"][horizon] for algorithm, result in scored.items()}
    rules = next(iter(blocks.values()))["baselines"]
    return [
        {
            "horizon": horizon,
            "rule or version": name,
            "base rate": share(block.get("base_rate")),
            "precision": number(block.get("precision")),
            "recall": number(block.get("recall")),
            "F1": number(block.get("f1")),
            "PR AUC": number(block.get("pr_auc")),
            "calibration error": number(block.get("ece")),
        }
        for name, block in {**blocks, **rules}.items()
    ]


def against_rules(algorithm: str, figure: str) -> str:
    """The horizons at which a version beats every rule."""
    blocks = scored[algorithm]["horizons"].items()
    best = {horizon: max(rule.get(figure) or 0.0 for rule in block["baselines"].values()) for horizon, block in blocks}
    return ", ".join(horizon for horizon, block in blocks if (block[figure] or 0.0) > best[horizon]) or "no horizon"


horizons = list(next(iter(scored.values()))["horizons"])
table([row for horizon in horizons for row in quality(horizon)])
for algorithm in ALGORITHMS:
    by_f1, by_auc = against_rules(algorithm, "f1"), against_rules(algorithm, "pr_auc")
    display(Markdown(f"{name_of(algorithm)} beats every rule in F1 at {by_f1}; in PR AUC at {by_auc}."))

# %% [markdown]
# Are the probabilities honest? If jobs arrive in 30 % of the windows for which a version says 30 %, its curve lies
# on the diagonal. Larger dots stand for more windows.

# %%
learnt = {name: one for name, one in pool_histories(trace).items() if name in scored[ALGORITHMS[0]]["pools"]}
corpus = build_corpus(learnt, split.train_until_s, split.test_until_s, DEFAULT_HORIZONS_MIN)
models = {algorithm: registry.load(registry.resolve("will-jobs-arrive", v)) for algorithm, v in versions.items()}
curves = {
    algorithm: arrival_curves(model, corpus, split.train_until_s, split.test_until_s)
    for algorithm, model in models.items()
}
for algorithm, by_horizon in curves.items():
    display(Markdown(f"*{name_of(algorithm)}*"))
    display(SVG(svg_of(predictor_plots.reliability({name: one["reliability"] for name, one in by_horizon.items()}))))

# %% [markdown]
# A scheduler does not use the threshold with the best F1. Lending GPUs to others while their owners are about to
# come back slows jobs down; not lending them merely leaves them idle. So the predictor carries a second threshold,
# the *gate*: the largest one that misses at most 5 % of the windows with arrivals in training. The two columns are
# its price and its yield on the test window.

# %%
table(
    [
        {
            "horizon": horizon,
            "version": name_of(algorithm),
            "windows with arrivals that it misses": share(scored[algorithm]["horizons"][horizon]["gate"]["miss_rate"]),
            "idle windows that it frees": share(scored[algorithm]["horizons"][horizon]["gate"]["freed_idle_share"]),
        }
        for horizon in horizons
        for algorithm in ALGORITHMS
    ]
)

# %% [markdown]
# The two other predictors are the same for both versions. `new-load` is conservative by design: its *coverage* is
# the share of windows in which no more GPUs were asked for than it said. `job-duration` is scored by how often it
# names the right one of the four bins; to forecast too short a bin is the costly error.

# %%
loads, durations = (jc.evaluate(f"{name}:{others[name]}", trace, **testing).attrs["result"] for name in PREDICTORS[1:])
table(
    [
        {
            "horizon": horizon,
            "coverage": share(block["coverage"]),
            "coverage of windows with arrivals": share(block["coverage_nonzero"]),
        }
        for horizon, block in loads["horizons"].items()
    ]
)
rule = durations["baselines"]["majority"]
display(
    Markdown(
        f"`job-duration` names the right bin of {', '.join(bin_labels())} for {share(durations['accuracy'])} of "
        f"{number(durations['n'])} jobs and too short a one for {share(durations['under_predicted'])}; always naming "
        f"the most frequent bin would be right for {share(rule['accuracy'])}."
    )
)

# %% [markdown]
# ## What are they worth?
#
# Now the jobs of the test window are replayed in a simulated cluster, once for each configuration, with the same
# quotas:
#
# - `fcfs`: first come, first served within each pool, nothing is lent. The yardstick.
# - `mmfs`: idle GPUs go to whoever waits, without forecasts. Fast, and owners pay for it.
# - `sia` with the forecasts of either version; with the *oracle* (exact answers to the same coarse questions, which
#   slow no job); and with *random* ones (a fair coin, a random bin). If random forecasts slowed no more jobs than exact
#   ones, the window would have too little queueing to tell good from bad.
#
# A job's *speedup* is its completion time (from submission to end) under `fcfs` divided by that under the
# configuration; means are geometric. *Slowed* jobs end later than under `fcfs`: their owners would have been better
# off not sharing.

# %%
pins = {
    algorithm: ForecastSpec("registry", versions=(("will-jobs-arrive", version), *others.items()))
    for algorithm, version in versions.items()
}
labels = {algorithm: label_of("sia", pin, name_of(algorithm)) for algorithm, pin in pins.items()}
cells = [
    ("fcfs", parse_forecasts("oracle"), "fcfs"),
    ("mmfs", parse_forecasts("oracle"), "mmfs"),
    ("sia", parse_forecasts("oracle"), "sia oracle"),
    *(("sia", pins[algorithm], labels[algorithm]) for algorithm in ALGORITHMS),
    ("sia", parse_forecasts("random"), "sia random"),
]
test = Experiment(
    trace=trace,
    cluster=jc.Cluster(quotas=PoolsTable.of(pools), origin=prepared.pools_origin),
    from_s=split.train_until_s,
    until_s=split.test_until_s,
    only_pools=True,
)
results = run_matrix([test], matrix(cells, 1, RANDOM_SEEDS), home=home)
worth = {one.label: one for one in summaries([one.row() for one in results])}

# %% tags=["worth"]
table(
    [
        {
            "configuration": label,
            "speedup (geometric mean)": number(one.get("speedup_gmean")),
            "5th to 95th percentile": between(one.get("speedup_p5"), one.get("speedup_p95")),
            "jobs slowed": percent(one.get("slowed_pct")),
            "total slowdown (h)": number((one.get("slowdown_total_min") or 0.0) / 60),
            "worst slowdown (h)": number((one.get("slowdown_max_min") or 0.0) / 60),
            "mean completion time (h)": number((one.get("mean_jct_s") or 0.0) / HOUR_S),
            "utilisation": share(one.get("utilization")),
        }
        for label, one in worth.items()
    ]
)

# %%
shown = {one.cell.label: one for one in reversed(results) if one.cell.label != "fcfs"}  # the first seed of each
shown = {label: shown[label] for label in worth if label in shown}
colours = looks(["fcfs", *shown])
speedups = {label: one.base_jct_s / one.log.jct_s for label, one in shown.items()}
later_s = {label: one.log.jct_s - one.base_jct_s for label, one in shown.items()}
later_min = {label: np.where(later > tolerance.LATER_S, later, 0.0) / 60 for label, later in later_s.items()}
display(SVG(svg_of(backtest_charts.speedups(speedups, colours, "fcfs"))))
if (late := backtest_charts.slowdowns(later_min, colours)) is not None:
    display(SVG(svg_of(late)))

# %% [markdown]
# ### Are the differences real?
#
# Each job is compared with itself under two configurations. Jobs of one day share a queue, so that days and not jobs
# are drawn for the 95 % intervals (a bootstrap). A speedup whose interval contains 1, or a change whose interval
# contains 0, tells nothing apart. Each row reads: the configuration is so many times as fast as what it is compared
# with.

# %% tags=["gains"]
gains = gains_between(results, ["mmfs"], draws=1000)
table(
    [
        {
            "configuration": gain["label"],
            "compared with": gain["against"],
            "times as fast": number(gain["ratio"]),
            "95 % interval": between(gain["low"], gain["high"]),
            "change in jobs slowed (percentage points)": signed(gain["slowed_change_pct"]),
            "interval of the change": between(gain["slowed_change_pct_low"], gain["slowed_change_pct_high"], signed),
            "days": gain["days"],
        }
        for gain in gains
    ]
)
display(SVG(svg_of(backtest_charts.gains_forest(gains))))

# %% [markdown]
# ## So, promote?
#
# The rule: promote the newest version if it is clearly faster than the oldest, or clearly slows fewer jobs, and is
# clearly worse in neither. *Clearly* means that the whole interval lies on that side. Otherwise keep what is in use:
# a change that cannot be shown to help is not worth its risk.


# %% tags=["closing"]
def side(low: float | None, high: float | None, neutral: float) -> int:
    """1 = the whole interval lies above `neutral`, -1 = below, 0 = neither (or too few days for an interval)."""
    return 0 if low is None or high is None else int(low > neutral) - int(high < neutral)


def more(points: float) -> str:
    if not points:
        return "as many of the jobs"
    return f"{number(abs(points))} percentage points {'more' if points > 0 else 'fewer'} of the jobs"


def verdict(gain: dict | None, old: str, new: str) -> str:
    if gain is None:
        return "There is one version only, so nothing was compared."
    slowed = gain["slowed_change_pct_low"], gain["slowed_change_pct_high"]
    faster, slows_fewer = -side(gain["low"], gain["high"], 1.0), side(*slowed, 0.0)  # signs are those of `old`
    text = (
        f"Over {gain['days']} days, {old} is {number(gain['ratio'])} times as fast as {new} (95 % interval "
        f"{between(gain['low'], gain['high'])}) and slows {more(gain['slowed_change_pct'])} "
        f"({between(*slowed, signed)})."
    )
    if min(faster, slows_fewer) < 0:
        return f"{text} **Keep {old}**: {new} is clearly worse in at least one respect."
    if max(faster, slows_fewer) > 0:
        return f"{text} **Promote {new}**: `jobcast models promote will-jobs-arrive:{versions[ALGORITHMS[-1]]}`."
    return f"{text} **Keep {old}**: these days do not tell the two apart."


def outcome(label: str) -> str:
    one = worth[label]
    slowed = (
        f"{percent(one.get('slowed_pct'))} slowed, by {number((one.get('slowdown_total_min') or 0.0) / 60)} h in all"
    )
    return f"{number(one.get('speedup_gmean'))} times as fast, {slowed if one.get('slowed_pct') else 'none slowed'}"


old, new = labels[ALGORITHMS[0]], labels[ALGORITHMS[-1]]
paired = next((gain for gain in gains if (gain["label"], gain["against"]) == (old, new)), None)
speed = {label: one.get("speedup_gmean") or 0.0 for label, one in worth.items()}
slowed = {label: one.get("slowed_pct") or 0.0 for label, one in worth.items()}
TOLD_APART = 0.1  # percentage points of jobs slowed
if slowed["sia random"] - slowed["sia oracle"] > TOLD_APART:
    window = f"The window can tell forecasts apart: sia with random ones slows {more(slowed['sia random'] - slowed[old])} than {old}."
else:
    window = "Beware: random forecasts slow hardly any job here. Such a window has too little queueing to judge by."
display(
    Markdown(
        f"{verdict(paired, old, new)}\n\n"
        f"Against `fcfs`, jobs finish with\n\n"
        f"- {old}: {outcome(old)};\n"
        f"- exact answers to the same questions: {outcome('sia oracle')}. {old} reaches "
        f"{share(speed[old] / speed['sia oracle'])} of that speedup; the rest is what better predictors could gain;\n"
        f"- random answers: {outcome('sia random')};\n"
        f"- sharing without forecasts (`mmfs`): {outcome('mmfs')}.\n\n"
        f"{window} All of this is simulated, on one trace."
    )
)
