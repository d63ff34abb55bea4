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
# # What is it worth to foresee the batch sizes of training jobs?
#
# Training jobs may enlarge their batch size on the way, and then finish an epoch sooner: a job runs through *regimes*.
# Who plans ahead has to know which regimes come: `srpt` serves the job with the least time left, `shockwave` plans a window
# of rounds (set `POLICY` to it; it takes minutes). `greedy` believes that nothing changes any more,
# `restatement` that what is left is split evenly over the regimes to come, `bayes` counts epochs; `oracle` knows.
# The market by which Shockwave weighs jobs that will speed up is looked at in [market.py](market.py).
#
# **The data.** Without settings, 200 jobs of a generated campus, enriched: models, epochs and batch sizes are supplied by
# declared rules ([docs/enrich.md](../docs/enrich.md)). For your own trace set `TRACE` below, or the environment variable
# `JOBCAST_NOTEBOOK_TRACE`; it is enriched alike.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
JOBS, GPUS, POLICY, SOURCES = 200, 4, "srpt", ["oracle", "restatement", "bayes", "greedy"]
scratch = tempfile.TemporaryDirectory()
room = Path(scratch.name)

# %% [markdown]
# ## Jobs and their batch sizes

# %%
trace = (
    jc.read_trace(TRACE) if TRACE else jc.generate("campus", 0, {"weeks": 1, "pools": 1, "jobs": 400, "widest": 4})[0]
)
trace.jobs.head(JOBS).write_parquet(room / "plain.parquet")
jc.command("trace", "enrich", str(room / "plain.parquet"), facts="training", out=room / "enriched")
regimes = pd.read_csv(room / "enriched" / "regimes.csv")
per_job = regimes.groupby("job_id").size()
print(
    f"{len(per_job)} training jobs; {(per_job > 1).mean():.0%} change their batch size, up to {per_job.max() - 1} times"
)

# %% [markdown]
# ## The same jobs, with each forecast of what comes
#
# Makespan: until the last job has ended. Worst fairness: the largest ratio of a job's time to that on its fair share.

# %%
rows = []
for source in SOURCES:
    run = jc.simulate(
        room / "enriched" / "jobs.parquet", POLICY, GPUS, forecasts=source, baseline="none", drop_wide=True
    )
    rows.append({"forecasts": source} | {name: run.result[name] for name in ("makespan_s", "mean_jct_s", "worst_ftf")})
runs = pd.DataFrame(rows).set_index("forecasts")
runs.round(2)

# %% [markdown]
# ## What each forecast loses against the truth

# %%
loss = 100 * (runs / runs.loc["oracle"] - 1).drop("oracle")
axes = loss.rename(
    columns={"makespan_s": "makespan", "mean_jct_s": "mean completion time", "worst_ftf": "worst fairness"}
).plot.barh(figsize=(9, 3))
axes.set(xlabel="% above exact forecasts", ylabel="")
axes.axvline(0, color="black", linewidth=0.8)
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
best = loss["mean_jct_s"].idxmin()
print(
    f"Verdict: of the rules that learn nothing {best} does best here: jobs take {loss['mean_jct_s'][best]:+.1f} % longer in the "
    f"mean than with exact forecasts of batch sizes, the makespan changes by {loss['makespan_s'][best]:+.1f} % and the worst "
    f"fairness by {loss['worst_ftf'][best]:+.1f} %: "
    f"{'a learned predictor of regimes has something to gain' if loss['mean_jct_s'][best] > 2 else 'a learned predictor of regimes has little to gain'}."
)
