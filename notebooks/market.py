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
# # What does a market make of jobs that speed up while they train?
#
# Training jobs enlarge their batch size on the way, and then a GPU is worth more to them. Shockwave (section 4) sells GPUs
# in a *Volatile Fisher Market*: each job has one budget for all rounds, each round a price of its own, and at the
# equilibrium every budget buys as much progress as it can while all that has a price is sold. *Rho* of a job is the
# utility of an equal share of everything over the utility that it has; above 1 is unfair.
#
# **The data.** Ten jobs of equal budgets for twenty rounds; some of them are worth twice as much from the middle on.
# `JOBS`, `ROUNDS` and `GROWTH` below may be changed. Solving needs the extra `market` (CVXPY).

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from jobcast.schedulers.market import finish_time_fairness, make_market, nash_welfare, solve
from jobcast.schedulers.market_expected import Chain, solve_expected

JOBS, ROUNDS, GROWTH = 10, 20, 2.0
steady = np.ones(ROUNDS)
growing = np.where(np.arange(ROUNDS) < ROUNDS // 2, 1.0, GROWTH)

# %% [markdown]
# ## A job alone
#
# A static market takes today's utility for all rounds; the dynamic one adds up what will be.

# %% tags=["alone"]
pd.Series(
    {"static": solve(make_market([steady])).utilities[0], "dynamic": solve(make_market([growing])).utilities[0]}
).round(3)

# %% [markdown]
# ## Prices around a change of the batch size
#
# As long as the late rounds suffice for those who prefer them, all rounds cost the same: steady jobs do not care when they
# run. When too many want the late rounds these get dearer, up to where growing jobs no longer care either.

# %% tags=["prices"]
found = {
    several: solve(make_market([growing] * several + [steady] * (JOBS - several))) for several in (0, 3, 5, 6, 7, 10)
}
prices = pd.DataFrame(
    {several: {"early": one.prices[0, 0], "late": one.prices[0, -1]} for several, one in found.items()}
).T
axes = prices.plot(marker="o", figsize=(9, 3), xlabel="jobs that double their batch size half way, of ten")
axes.set(ylabel="price of a round, in budgets", ylim=(0, 1.1 * prices.to_numpy().max()))
plt.show()
prices.round(3)

# %% [markdown]
# ## A market that knows, and one that does not
#
# GPUs, and CPUs that read the data: from its change on (a quarter, a half, three quarters of the rounds) a job makes
# progress on half the GPU time and twice the CPUs. The static market is solved for the first round and kept; *round by
# round* solves one for each round; the dynamic one knows when demands change.

# %% tags=["static"]
demands = np.tile(np.array([[1.0], [0.5]]), (4, 1, ROUNDS))
for job, change in enumerate((ROUNDS // 4, ROUNDS // 2, 3 * ROUNDS // 4)):
    demands[job, :, change:] = [[0.5], [1.0]]
demands[3] = [[1.0], [0.25]]
market = make_market(demands, kind="leontief")
single = [solve(make_market(market.coefficients[:, :, t : t + 1], kind="leontief")) for t in range(ROUNDS)]
plans = {
    "static": np.repeat(single[0].allocation, ROUNDS, axis=2),
    "round by round": np.concatenate([one.allocation for one in single], axis=2),
    "dynamic": solve(market).allocation,
}
reached = {name: market.utilities(plan) for name, plan in plans.items()}
outcomes = pd.DataFrame(
    {
        "worst rho": {name: finish_time_fairness(market, one).max() for name, one in reached.items()},
        "welfare": {name: nash_welfare(one, market.budgets) for name, one in reached.items()},
    }
)
outcomes.round(3)

# %% [markdown]
# ## Changes by chance
#
# When a batch size changes depends on gradients. One job stays as it is; another may enlarge its batch before any round
# but the first, each time with the same chance, and then makes four times the progress. A market may plan for the mean, as
# the scheduler does, or wait and see (the programme of appendix F).

# %% tags=["uncertainty"]
LARGE, FEW = 4.0, 4


def by_chance(chance):
    moves, gains = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    moves[0], moves[1] = [1.0 - chance, chance], [0.0, 1.0]
    gains[0, 1], gains[1, 1] = 1.0, LARGE
    return Chain(np.array([1.0, 0.0]), moves, gains)


rows = {}
for chance in np.linspace(0.0, 1.0, 5):
    mean = 1.0 + (1.0 - (1.0 - chance) ** np.arange(FEW)) * (LARGE - 1.0)
    seen = solve_expected([by_chance(0.0), by_chance(chance)], 1, FEW).utilities
    rows[chance] = {
        "plan for the mean": solve(make_market([np.ones(FEW), mean])).welfare,
        "wait and see": nash_welfare(seen, np.ones(2)),
    }
by_chances = pd.DataFrame(rows).T.rename_axis("chance")
by_chances.round(3)

# %% [markdown]
# ## Verdict

# %% tags=["verdict"]
gain = outcomes["welfare"]["dynamic"] / outcomes["welfare"]["round by round"] - 1
waiting = (by_chances["wait and see"] / by_chances["plan for the mean"] - 1).max()
fair = outcomes.index[outcomes["worst rho"] <= 1.0 + 1e-3]
print(
    f"Verdict: a market that knows of the changes has {gain:.1%} more welfare than one solved round by round; fair to every job "
    f"(rho at most 1) {'is' if len(fair) == 1 else 'are'} {' and '.join(fair)}, while a static one reaches {outcomes['worst rho']['static']:.2f}. "
    f"Where changes come by chance, waiting for them is worth up to {waiting:.1%}."
)
