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
# # What will the queue of a pool do next?
#
# A pool's GPUs can be lent while its owners need few of them. For that one has to know what comes: will any job be
# submitted to the pool within the next hour (`will-jobs-arrive`), and how many GPUs will such jobs ask for at most
# (`new-load`)? This notebook trains both on the first part of a trace, asks them hour by hour in the part after it, and
# holds their answers against what came.
#
# **The data.** Without settings, four weeks of a generated campus: three pools, 3,000 jobs. For your own trace set
# `TRACE` below, or the environment variable `JOBCAST_NOTEBOOK_TRACE`, to a file that `jobcast` reads.

# %%
import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
scratch = tempfile.TemporaryDirectory()
os.environ.setdefault("JOBCAST_HOME", scratch.name)  # versions are registered there
HOUR_S, SHOWN = 3600.0, 48

# %% [markdown]
# ## Two versions, from the first part of the trace

# %%
trace = jc.read_trace(TRACE) if TRACE else jc.generate("campus", 0, {"weeks": 4, "pools": 3, "jobs": 3000})[0]
first, last = trace.submit_s[[0, -1]]
split = (first + 0.75 * (last - first)) // (24 * HOUR_S) * (24 * HOUR_S)  # a midnight (UTC)
arrivals = jc.train("will-jobs-arrive", trace, until=split, algorithm="logistic")
load = jc.train("new-load", trace, until=split, algorithm="sliding-max")
names = trace.jobs["pool"].to_numpy()
pool = max(set(names), key=lambda name: (names == name).sum())
print(f"{trace.name}: {len(trace):,} jobs, trained on the first {(split - first) / 86400:.0f} days; asked about {pool}")

# %% [markdown]
# ## Hour by hour, in two days that neither has seen
#
# Above, the chance of an arrival within the hour; dots are hours in which one came. Below, the GPUs that jobs of the
# hour asked for (bars), and the number that was forecast not to be exceeded (line).

# %%
hours = [at for at in split + HOUR_S * np.arange(SHOWN) if at + HOUR_S <= last]


def asked(version):
    answers = jc.forecast(version, trace, at=hours)
    return answers[(answers["unique_id"] == pool) & (answers["horizon_min"] == 60)]["y_pred"].to_numpy()


chance, most = asked(arrivals), asked(load)
own = names == pool
came = np.histogram(trace.submit_s[own], [*hours, hours[-1] + HOUR_S], weights=trace.gpus[own])[0]
figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(9, 5), layout="constrained")
above.step(range(len(hours)), chance, where="mid")
above.plot(np.flatnonzero(came), np.ones((came > 0).sum()), "o")
above.set(ylabel="chance of an arrival", ylim=(0, 1.05), title=f"{pool}, hour by hour")
below.bar(range(len(hours)), came, color="silver", label="asked for")
below.step(range(len(hours)), most, where="mid", label="forecast: at most")
below.set(xlabel="hours after the end of training", ylabel="GPUs")
below.legend()
plt.show()

# %% [markdown]
# ## Verdict
#
# The Brier score is the mean squared distance of a chance from what came (0 or 1); the base rate is the share of hours
# with an arrival in training, which anybody knows without a model.

# %% tags=["verdict"]
before = np.histogram(trace.submit_s[own], np.arange(first, split + 1, HOUR_S))[0] > 0
brier, base = np.mean((chance - (came > 0)) ** 2), np.mean((before.mean() - (came > 0)) ** 2)
covered = np.mean(came <= most + 1e-9)
print(
    f"Verdict: in {len(hours)} hours of {pool} the forecast of arrivals {'beats' if brier < base else 'does not beat'} "
    f"the base rate (Brier score {brier:.3f} against {base:.3f}), and the load stayed within its forecast in "
    f"{covered:.0%} of them: {'go by both' if brier < base and covered >= 0.9 else 'do not lend by these yet'}."
)
