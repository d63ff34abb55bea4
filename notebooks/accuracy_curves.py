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
# # How far will a training run get?
#
# Who sees a fifth of a training run wants to know where its accuracy will end: to stop what will not reach its target, and
# to leave the GPUs to what will. `accuracy-curve` combines eleven families of curves into a forecast with an interval.
# It learns here from the runs of one workload and is asked about those of another.
#
# **The data.** Without settings, twice 60 generated runs (the generator of MLFS's workload). For your own set
# `CURVES` below, or the environment variable `JOBCAST_NOTEBOOK_TRACE`, to a table with the columns `app`, `batch_size`,
# `epoch`, `metric` ([docs/curves.md](../docs/curves.md)): it is split by batch size.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import jobcast as jc

CURVES = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV; none: generated
SEEN = 0.2  # of a run
scratch = tempfile.TemporaryDirectory()
os.environ.setdefault("JOBCAST_HOME", scratch.name)  # versions are registered there
room = Path(scratch.name)

# %% [markdown]
# ## Runs to learn from, and runs to ask about

# %%
parts = []
for seed in (0, 1):
    if CURVES:
        table = pd.read_csv(CURVES)
        parts.append(table[table["batch_size"].rank(method="dense") % 2 == seed])
    else:
        files = {
            "out": room / "jobs.parquet",
            "tasks_out": room / "tasks.parquet",
            "curves_out": room / "curves.parquet",
        }
        jc.command("trace", "generate", "mlfs", **files, seed=seed, set={"jobs": 60})
        models = pd.read_parquet(files["out"])[["job_id", "model"]].rename(columns={"model": "app"})
        runs = pd.read_parquet(files["curves_out"]).query("epoch > 0").merge(models, on="job_id")
        parts.append(runs.assign(batch_size=runs["job_id"].astype(int) + 1))  # each run has a number of its own
    parts[-1][["app", "batch_size", "epoch", "metric"]].to_csv(room / f"curves{seed}.csv", index=False)
version = jc.train("accuracy-curve", room / "curves0.csv")
scores = pd.concat(
    jc.evaluate(version, room / "curves1.csv", prefix=seen, allow_overlap=True) for seen in (0.1, SEEN, 0.35, 0.5, 0.75)
).set_index("prefix")
scores[["curves", "mae", "mae_last_value", "coverage_90", "width_90"]].round(3)

# %% [markdown]
# ## Six runs, seen to the fifth
#
# Grey: the run as it went on. The line is the forecast, the band its 90 % interval.

# %%
model = jc.load(version)
runs = [run for _, run in pd.read_csv(room / "curves1.csv").groupby(["app", "batch_size"]) if len(run) > 20]
figure, panels = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
for run, axes in zip(runs[:: max(len(runs) // 6, 1)], panels.flat, strict=False):
    metric = run["metric"].to_numpy()
    seen = max(int(SEEN * len(metric)), 2)
    epochs = np.arange(seen + 1, len(metric) + 1)
    forecast = model.forecast_arrays(metric[None], [seen], [len(metric)], apps=[str(run["app"].iloc[0])])
    low, high = forecast.interval(0.9, epochs[None])
    axes.plot(np.arange(1, len(metric) + 1), metric, color="silver")
    axes.fill_between(epochs, low[0], high[0], alpha=0.25)
    axes.plot(epochs, forecast.at(epochs[None])[0][0])
    axes.set_title(run["app"].iloc[0], fontsize=9)
figure.supxlabel("epoch")
figure.supylabel("accuracy")
plt.show()

# %% [markdown]
# ## Verdict
#
# Errors are shares of a curve's range; the last value seen is what one would say without a model.

# %% tags=["verdict"]
fifth = scores.loc[SEEN]
less = 1 - fifth["mae"] / fifth["mae_last_value"]
print(
    f"Verdict: with {SEEN:.0%} of a run seen the forecast errs by {fifth['mae']:.3f} of the range, {less:.0%} less than the last "
    f"value seen, and its 90 % intervals hold {fifth['coverage_90']:.0%} of the epochs to come: "
    f"{'stop runs by it' if less > 0.25 and fifth['coverage_90'] >= 0.85 else 'look at runs by it, and stop none'}."
)
