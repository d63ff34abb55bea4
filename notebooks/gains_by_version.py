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
# `sia` lends a pool's idle GPUs where its forecasts say that the owner will not miss them. A better forecast of arrivals
# (`will-jobs-arrive`) lends more, or harms less. Two versions are trained here on the first part of a trace and compared
# on the rest twice: by how often they are right, and by what `sia` makes of their answers. Only the second tells.
#
# **The data.** Without settings, four weeks of a generated campus: three pools, 3,000 jobs. For your own trace set
# `TRACE` below, or the environment variable `JOBCAST_NOTEBOOK_TRACE` (quotas: `JOBCAST_NOTEBOOK_POOLS`).

# %%
import os
import tempfile

import matplotlib.pyplot as plt
import pandas as pd

import jobcast as jc

TRACE = os.environ.get("JOBCAST_NOTEBOOK_TRACE")  # CSV or Parquet; none: generated
POOLS = os.environ.get("JOBCAST_NOTEBOOK_POOLS")  # CSV: pool,gpus; none: derived
OLD, NEW = "logistic", "lightgbm"  # algorithms of the two versions
scratch = tempfile.TemporaryDirectory()
os.environ.setdefault("JOBCAST_HOME", scratch.name)  # versions are registered there
DAY_S = 86400.0

# %% [markdown]
# ## Two versions, and how often they are right
#
# Figures of the later part, which neither has seen, for windows of five minutes, an hour and half a day.

# %%
campus = {"weeks": 4, "pools": 3, "jobs": 3000}
trace, pools = (jc.read_trace(TRACE), POOLS) if TRACE else jc.generate("campus", 0, campus)
first, last = trace.submit_s[[0, -1]]
split = (first + 0.7 * (last - first)) // DAY_S * DAY_S
old, new = (jc.train("will-jobs-arrive", trace, until=split, algorithm=one) for one in (OLD, NEW))
jc.train("new-load", trace, until=split, algorithm="sliding-max")
jc.train("job-duration", trace, until=split, algorithm="tag-pool-width")
scores = pd.concat(jc.evaluate(one, trace, draws=0) for one in (old, new))
scores = scores[scores["model"].isin([str(old), str(new)])]
scores.pivot(index="horizon", columns="model", values=["f1", "pr_auc"]).round(3)

# %% [markdown]
# ## What a scheduler makes of them
#
# Every replay has the same jobs; only the forecasts of arrivals differ. To the right: jobs finish sooner than under
# `fcfs`, where nothing is lent. Upwards: more jobs end later than there. Drawn answers show what forecasts are good for.

# %%
pinned = {f"registry:will-jobs-arrive={one.version}": f"version {one.version} ({one.algorithm})" for one in (old, new)}
names = {"oracle": "exact answers", **pinned, "random": "drawn answers"}
found = jc.backtest(trace, "sia", pools, forecasts=list(names), start=split, jobs=1)
rows = found.rows[found.rows["policy"] == "sia"].set_index("forecasts")
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
for source, name in names.items():
    axes.plot(rows["speedup_gmean"][source], rows["slowed_pct"][source], "o", markersize=9, label=name)
axes.set(xlabel="speedup against fcfs, geometric mean", ylabel="jobs that end later, %")
axes.legend()
plt.show()

# %% [markdown]
# ## The new version against the old one
#
# Job by job, with 95 % intervals from whole days drawn anew: how many times as fast, and by how many points of a percent
# more jobs are slowed.

# %%
labels = {source: found.rows.loc[found.rows["forecasts"] == source, "label"].iloc[0] for source in pinned}
first_label, second_label = labels.values()
paired = found.gains[found.gains["label"].isin(labels.values()) & found.gains["against"].isin(labels.values())]
(_, gain), turned = next(paired.iterrows()), paired["label"].iloc[0] == first_label
ratio, low, high = (
    1 / gain[key] if turned else gain[key] for key in ("ratio", *(("high", "low") if turned else ("low", "high")))
)
more = gain["slowed_change_pct"] * (-1 if turned else 1)
pd.DataFrame({"times as fast": [ratio], "from": [low], "to": [high], "slowed, points": [more]}).round(3)

# %% [markdown]
# ## Verdict
#
# Promote where the new one is faster beyond doubt and slows no more jobs (half a point is allowed, as by `jobcast models
# promote`).

# %% tags=["verdict"]
promote = low > 1 and more <= 0.5
reached = rows["speedup_gmean"][list(pinned)[1]] / rows["speedup_gmean"]["oracle"]
print(
    f"Verdict: {'promote' if promote else 'keep'} version {(new if promote else old).version} "
    f"({(new if promote else old).algorithm}). With version {new.version} jobs end {ratio:.2f} times as fast as with version "
    f"{old.version} (95 %: {low:.2f} to {high:.2f}) and {more:+.2f} points of them are slowed more; it reaches {reached:.0%} of the "
    "speedup that exact answers give."
)
