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
# # Which schedule costs least in energy and lateness?
#
# Training jobs with due dates share nodes whose GPUs differ: a V100 is fast and draws much, a T4 is slow and draws little.
# A schedule costs what its nodes draw, and what its jobs come late: so many EUR an hour, by a job's weight. `andreas`
# weighs both at each call; `edf` (earliest due date), `ps` (greatest weight) and `energy_fifo` (first come) give each job
# the cheapest configuration that is in time, and never move it.
#
# **The data.** Five generated workloads as in the paper of ANDREAS (section V.B): 60 jobs on six nodes. For your own set
# `TRACE`, or the environment variable `JOBCAST_NOTEBOOK_ENERGY`, to a folder with `jobs.parquet`, `profiles.csv` and
# `cluster.yaml` ([docs/energy.md](../docs/energy.md) says what stands in them).

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_ENERGY")  # a folder; none: generated
DRAWS, POLICIES = 1 if TRACE else 5, ["energy_fifo", "ps", "edf", "andreas"]
scratch = tempfile.TemporaryDirectory()

# %% [markdown]
# ## Every policy on every workload

# %%
rows = []
for draw in range(DRAWS):
    folder = Path(TRACE or scratch.name)
    files = {
        "out": folder / "jobs.parquet",
        "profiles_out": folder / "profiles.csv",
        "cluster_out": folder / "cluster.yaml",
    }
    if not TRACE:
        jc.command("trace", "generate", "andreas", **files, seed=draw, set={"nodes": 6, "jobs": 60})
    trace, profiles, cluster = files.values()
    for policy in POLICIES:
        told = {"forecasts": "oracle", "baseline": "none", "set": {"profiles": profiles}}
        run = jc.simulate(trace, policy, cluster, **told)
        figures = ("energy_eur", "tardiness_eur", "total_eur", "late_pct")
        rows.append({"draw": draw, "policy": policy} | {name: run.result[name] for name in figures})
runs = pd.DataFrame(rows)
means = runs.groupby("policy")[["energy_eur", "tardiness_eur", "total_eur", "late_pct"]].mean().loc[POLICIES]
means.round(2)

# %% [markdown]
# ## What the costs are made of
#
# Means over the workloads, EUR.

# %%
axes = means[["energy_eur", "tardiness_eur"]].plot.barh(stacked=True, figsize=(9, 3))
axes.set(xlabel="EUR a workload", ylabel="")
axes.legend(["energy", "lateness"])
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
total = runs.pivot(index="draw", columns="policy", values="total_eur")
best, second = means["total_eur"].nsmallest(2).index
saving = 1 - means["total_eur"][best] / means["total_eur"][second]
energy = means["energy_eur"][best] / means["energy_eur"][second] - 1
print(
    f"Verdict: {best} costs least, {means['total_eur'][best]:.2f} EUR in the mean, {saving:.0%} below {second}; it is the "
    f"cheapest in {(total.idxmin(axis=1) == best).sum()} of {len(total)} workloads. Its energy differs by {energy:+.1%}: "
    f"the saving is mostly {'energy' if abs(energy) > saving / 2 else 'lateness'}."
)
