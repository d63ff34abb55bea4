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
# # How long will jobs run, and what do mistakes cost?
#
# `job-duration` says of a job whether it will run up to 5 minutes, up to 60, up to 720, or longer. Such answers are wrong
# now and then. How often can be counted; what a mistake costs only a replay tells: the scheduler `ssf` serves the job
# with the fewest forecast GPU-hours first, so a job that is taken for short holds up others.
#
# **The data.** Without settings, four weeks of a generated campus: three pools, 3,000 jobs. For your own trace set
# `TRACE` below, or the environment variable `JOBCAST_NOTEBOOK_TRACE` (quotas: `JOBCAST_NOTEBOOK_POOLS`).

# %%
import os
import tempfile

import matplotlib.pyplot as plt

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
POOLS = os.environ.get("JOBCAST_NOTEBOOK_POOLS")  # CSV: pool,gpus; none: derived
scratch = tempfile.TemporaryDirectory()
os.environ.setdefault("JOBCAST_HOME", scratch.name)  # versions are registered there
DAY_S = 86400.0

# %% [markdown]
# ## How often is it right?
#
# The version learns from the first 70 % of the trace's time and is scored on the rest, beside rules that learn nothing.

# %%
campus = {"weeks": 4, "pools": 3, "jobs": 3000}
trace, pools = (jc.read_trace(TRACE), POOLS) if TRACE else jc.generate("campus", 0, campus)
first, last = trace.submit_s[[0, -1]]
split = (first + 0.7 * (last - first)) // DAY_S * DAY_S
version = jc.train("job-duration", trace, until=split)
scores = jc.evaluate(version, trace, draws=0).set_index("model")
scores[["accuracy", "macro_f1", "log_loss"]].round(3)

# %% [markdown]
# ## What do mistakes cost?
#
# The same jobs under `ssf` with exact answers, with those of the version, and with drawn ones: hours of waiting saved a
# week against `fcfs`, and the share of jobs that end later than there.

# %%
sources = {"oracle": "exact answers", "registry": "the version", "random": "drawn answers"}
found = jc.backtest(trace, "ssf", pools, forecasts=list(sources), start=split, jobs=1)
rows = found.rows[found.rows["policy"] == "ssf"].set_index("forecasts")
labels = [sources[name] for name in rows.index]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained", sharey=True)
left.barh(labels, rows["saved_h_week"])
left.set(xlabel="hours of waiting saved a week")
right.barh(labels, rows["slowed_pct"], color="silver")
right.set(xlabel="jobs that end later, %")
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
right_of, rule = scores["accuracy"].iloc[0], scores["accuracy"].iloc[1:].max()
saved, slowed = rows["saved_h_week"], rows["slowed_pct"]
print(
    f"Verdict: the version is right about {right_of:.0%} of the jobs, the best rule that learns nothing about {rule:.0%}. "
    f"Under ssf it saves {saved['registry']:,.0f} of the {saved['oracle']:,.0f} hours a week that exact answers save, so "
    f"that mistakes cost {saved['oracle'] - saved['registry']:,.0f} hours a week, and they slow {slowed['registry']:.0f} % of "
    f"the jobs in place of {slowed['oracle']:.0f} %: {'serve by it' if saved['registry'] > max(saved['random'], 0) else 'do not serve by it'}"
    f"{', and better durations are worth more than it is' if saved['registry'] < saved['oracle'] / 2 else ''}."
)
