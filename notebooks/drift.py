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
# without starts and ends, which the longer durations would contradict; a trace need not tell users and tags
told = [name for name in ("job_id", "pool", "user", "tag", "submit_time", "duration", "gpus") if name in jobs]
jobs[told].to_csv(Path(scratch.name) / "longer.csv", index=False)
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
    if week["complete"]
)
weeks.round(3)

# %% [markdown]
# ## What the change costs
#
# Log loss of the answers, week by week: lower is better. The changed trace leaves the other one where jobs begin to run
# longer; the version hears of jobs that end, and may find its way back without being trained again.

# %%
loss = weeks.pivot(index="week of", columns="trace", values="log_loss")[list(looks)]
axes = loss.plot(marker="o", figsize=(9, 3), ylabel="log loss")
axes.set_ylim(bottom=0)
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
gap = loss.iloc[:, 1] - loss.iloc[:, 0]
worst = gap.idxmax()
said = weeks.set_index(["trace", "week of"])["verdict"]
plain, longer = looks
print(
    f"Verdict: of the trace as it is, drift calls the last whole week {said[plain, loss.index[-1]]!r}. Jobs {LONGER:g} times as long "
    f"cost the version {gap[worst]:.2f} of log loss in the week of {worst}, which drift calls {said[longer, worst]!r}; in the last "
    f"whole week {gap.iloc[-1]:.2f} of it are left: {'it finds its way back by itself' if gap.iloc[-1] < gap[worst] / 2 else 'train it again'}."
)
