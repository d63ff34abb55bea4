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
# # Does a version still fit what comes?
#
# A predictor is trained once and asked for weeks. Meanwhile users come and leave, jobs get longer or wider, and answers
# may go wrong without anybody seeing it. `drift` looks week by week: how often is `job-duration` right now, how much is it
# off its own validation, which of its inputs have moved? Beside the trace as it is, the same trace is looked at with jobs
# that run eight times as long in its last part: a change that must be told.
#
# **The data.** Without settings, six weeks of a generated campus: three pools, 4,000 jobs. For your own trace set `TRACE`
# below, or the environment variable `JOBCAST_NOTEBOOK_TRACE`.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
LONGER = 8.0  # times as long as they were, in the changed trace
scratch = tempfile.TemporaryDirectory()
os.environ.setdefault("JOBCAST_HOME", scratch.name)  # versions are registered there
DAY_S = 86400.0

# %% [markdown]
# ## A version, and two futures

# %%
trace = jc.read_trace(TRACE) if TRACE else jc.generate("campus", 0, {"weeks": 6, "pools": 3, "jobs": 4000})[0]
first, last = trace.submit_s[[0, -1]]
split, changed = ((first + share * (last - first)) // DAY_S * DAY_S for share in (0.5, 0.7))
version = jc.train("job-duration", trace, until=split, algorithm="tag-pool-width")
jobs = trace.jobs.to_pandas()
late = pd.Series(trace.submit_s >= changed)
jobs.loc[late, "duration"] *= LONGER
jobs[["job_id", "pool", "user", "tag", "submit_time", "duration", "gpus"]].to_csv(
    Path(scratch.name) / "longer.csv", index=False
)
futures = {"as it is": trace, f"jobs {LONGER:g} times as long": jc.read_trace(Path(scratch.name) / "longer.csv")}
looks = {name: jc.command("drift", str(version), trace=future) for name, future in futures.items()}

# %% [markdown]
# ## Week by week

# %%
weeks = pd.DataFrame(
    {"trace": name, "week of": week["from"][:10], "jobs": week["jobs"], "verdict": week["verdict"]}
    | {figure: week["blocks"]["jobs"][figure] for figure in ("accuracy", "log_loss", "under_predicted")}
    for name, look in looks.items()
    for week in look["weeks"]
    if "jobs" in week["blocks"]
)
weeks.round(3)

# %% [markdown]
# How often the version is right, week by week. The changed trace leaves the other one where jobs begin to run longer.

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for name, rows in weeks.groupby("trace", sort=False):
    axes.plot(rows["week of"], rows["accuracy"], "o-", label=name)
axes.set(xlabel="week of", ylabel="share of jobs that it is right about", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
means = weeks.groupby("trace")["accuracy"].agg(["first", "last"])
told = "; ".join(
    f"{name}, drift says {look['verdict']!r} and the version is right about {means['last'][name]:.0%} of the last week's jobs"
    for name, look in looks.items()
)
before, after = (look["verdict"] for look in looks.values())
print(f"Verdict: {told}. The change is {'told' if after != before else 'NOT told'}.")
