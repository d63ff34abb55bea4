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
# # When do jobs start and end, and are such promises kept?
#
# Who waits wants to know for how long. `predict jct` plays a few dozen futures of the queue forward from an instant and
# tells an interval for each job's start and end that should hold nine times in ten. Each answer is kept as a promise; here
# they are made at eight instants and then held against what came.
#
# **The data.** Without settings, two weeks of a generated campus: three pools, 1,500 jobs, replayed under `fcfs`. For your
# own trace set `TRACE` below, or the environment variable `JOBCAST_NOTEBOOK_TRACE` (quotas: `JOBCAST_NOTEBOOK_POOLS`).

# %%
import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
POOLS = os.environ.get("JOBCAST_NOTEBOOK_POOLS")  # CSV: pool,gpus; none: derived
POLICY, FUTURES, LOOKS = "fcfs", 40, 8
scratch = tempfile.TemporaryDirectory()
os.environ["JOBCAST_HOME"] = scratch.name  # promises of this notebook alone

# %% [markdown]
# ## What comes, and what is promised

# %%
campus = {"weeks": 2, "pools": 3, "jobs": 1500, "widest": 8}
trace, pools = (jc.read_trace(TRACE), POOLS) if TRACE else jc.generate("campus", 3, campus)
run = jc.simulate(trace, POLICY, pools, forecasts="oracle", baseline="none")
first, last = trace.submit_s[[0, -1]]
asked = np.linspace(first + 0.3 * (last - first), first + 0.8 * (last - first), LOOKS)
how = {"trace": trace, "pools": pools, "policy": POLICY, "forecasts": "oracle", "futures": FUTURES}
answers = [jc.command("predict", "jct", **how, at=at) for at in asked]
kept = jc.command("promises", trace=run, by="policy")
pd.DataFrame(kept["groups"])[["kind", "made", "kept", "broken_low", "broken_high", "coverage_90_pct"]].round(1)

# %% [markdown]
# ## One look at the queue
#
# Each line is a promise made at one instant, from the earliest to the latest end; the dot is what came.

# %%
look = max(answers, key=lambda answer: len(answer["jobs"]))
ends = dict(zip(run.jobs["job_id"], run.jobs["end_time"], strict=True))
at = pd.Timestamp(look["at"]).timestamp()
figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
for place, job in enumerate(look["jobs"][:25]):
    told = job["answers"][0]
    axes.plot([told["p5_h"], told["p95_h"]], [place, place], color="silver", linewidth=5)
    axes.plot((ends[job["job_id"]] - at) / 3600, place, "o", color="tab:blue")
axes.set(xscale="log", xlabel=f"hours after {look['at'][:16].replace('T', ' ')} (UTC)", ylabel="jobs of the queue")
plt.show()

# %% [markdown]
# ## Verdict
#
# A promise is kept where the event came within its 90 % interval; of many, nine in ten should be. Counted are those whose
# interval has ended, whether or not they were kept long before.

# %% tags=["verdict"]
due = {group["kind"]: group for group in kept["groups"] if group["due_90"]}  # no starts, where nobody waited
held = {kind: group["coverage_90_pct"] for kind, group in due.items()}
late = sum(group["broken_high"] for group in due.values()) / sum(group["due_90"] for group in due.values())
print(
    f"Verdict: of {kept['promises']:,} promises, {' and '.join(f'{share:.0f}% of the {kind}s' for kind, share in held.items())} "
    f"that are due came within their 90 % intervals, and {late:.1%} came later than told: "
    f"{'users can plan by them' if min(held.values()) >= 85 else 'they promise more than they keep'}."
)
