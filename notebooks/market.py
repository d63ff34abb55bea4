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
# Training jobs enlarge their batch size on the way: Accordion between two sizes, gradient noise scale (GNS) by
# doubling. An epoch then takes less time, and a GPU is worth more to the job than before. Shockwave (section 4)
# therefore sells GPUs in a *Volatile Fisher Market*: each job has one budget for all rounds, each round has a price of
# its own, and at the equilibrium every budget buys as much progress as it can while every GPU that has a price is sold.
#
# | term | meaning |
# | --- | --- |
# | utility | progress that a job makes in a round with what it bought; the rounds add up |
# | rho | utility of an equal share of everything in every round / utility that the job has; above 1 is unfair |
# | welfare | geometric mean of the jobs' utilities, weighted by budgets |
#
# This notebook solves small markets: a job alone, prices around a change of the batch size, a market that knows of
# the changes against markets that do not, budgets as priorities, and changes that only come by chance. Each resource is
# one divisible unit a round; the scheduler `shockwave` deals with whole GPUs. All sentences with figures are computed.

# %% tags=["parameters"]
import os


def setting(name: str, default: str) -> str:
    return os.environ.get(f"JOBCAST_NOTEBOOK_{name}") or default


ROUNDS = int(setting("MARKET_ROUNDS", "20"))  # of two minutes each, as Shockwave plans them; at least 10
CHANCES = int(setting("MARKET_CHANCES", "11"))  # points of the curves over the chance of a change

# %%
import numpy as np
import pandas as pd
from IPython.display import SVG, Markdown, display

from jobcast.pipelines.report.plots import PALETTE, WIDE, draw, legend_beside, styles
from jobcast.schedulers.market import finish_time_fairness, make_market, nash_welfare, solve
from jobcast.schedulers.market_expected import Chain, solve_expected


def table(rows: list[dict[str, object]]) -> None:
    """Show rows as a table, figures to the right."""
    columns = {name: "left" if isinstance(rows[0][name], str) else "right" for name in rows[0]}
    looks = {name: [{"selector": "th, td", "props": f"text-align: {side}"}] for name, side in columns.items()}
    display(pd.DataFrame(rows).style.hide(axis="index").format(precision=3).set_table_styles(looks))


half = ROUNDS // 2

# %% [markdown]
# ## A job alone
#
# Section 1 of the paper: a job's batch size doubles half way, and so does what a GPU is worth to it. A static market
# takes today's utility for all rounds; the dynamic one adds up what will be. With 20 rounds: 20 against 30.

# %% tags=["alone"]
doubling = np.array([1.0] * half + [2.0] * (ROUNDS - half))
alone = solve(make_market([doubling]))
table(
    [
        {"market": "static", "utility over time": float(solve(make_market([np.ones(ROUNDS)])).utilities[0])},
        {"market": "dynamic", "utility over time": float(alone.utilities[0])},
    ]
)
display(
    Markdown(
        f"The job pays {alone.prices[0, 0]:.4f} of its budget for each early round and {alone.prices[0, -1]:.4f} for "
        "each late one: the price of a round follows what it is worth."
    )
)

# %% [markdown]
# ## Prices around a change of the batch size
#
# Now ten jobs of equal budgets. Some of them double their batch size half way, the rest stay as they are. As long as
# the late rounds suffice for those who prefer them, all rounds cost the same: the steady jobs do not care when they
# run and make room early on. When too many want the late rounds, these get dearer, up to twice the early ones, where
# the growing jobs no longer care either.

# %% tags=["prices"]
JOBS = 10
grown = {
    growing: solve(make_market([doubling] * growing + [np.ones(ROUNDS)] * (JOBS - growing)))
    for growing in (0, 3, 5, 6, 7, 10)
}
SHOWN = {5: "up to 5 of 10 jobs double", 6: "6 of 10 jobs double", 7: "7 of 10 jobs double, or more"}


def paint_prices(figure):
    axes = figure.subplots()
    for (growing, label), style in zip(SHOWN.items(), styles(list(SHOWN.values())).values(), strict=True):
        axes.step(range(ROUNDS), grown[growing].prices[0], where="mid", label=label, **style.line)
    axes.set(xlabel="round", ylabel="price of a round, in budgets")
    axes.set_ylim(bottom=0.0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend_beside(axes)


display(SVG(draw("Prices of rounds by how many jobs double their batch size half way", paint_prices, (WIDE[0], 3.4))))
table(
    [
        {
            "doubling jobs": str(growing),
            "early price": float(found.prices[0, 0]),
            "late price": float(found.prices[0, -1]),
            "rho of a doubling job": f"{found.ftf[0]:.3f}" if growing else "none",
            "rho of a steady job": f"{found.ftf[-1]:.3f}" if growing < JOBS else "none",
        }
        for growing, found in grown.items()
    ]
)

# %% [markdown]
# ## A market that knows, and markets that do not
#
# Two resources: GPUs, and CPUs that read the data. A larger batch needs more CPUs for each GPU. The jobs need both in
# proportion (Leontief utilities, as in DRF): demands are what one unit of progress takes.
#
# - *static*: solved once, for the demands of the first round, and kept;
# - *round by round*: a market of its own in each round, for the demands of that round, as instantaneous fairness does;
# - *dynamic*: one market for all rounds, which knows when the demands will change. Before the first change it leaves CPUs
#   over, which are then free.


# %% tags=["static"]
BEFORE, AFTER = [[1.0], [0.5]], [[0.5], [1.0]]  # a larger batch: progress on half the GPU time, on twice the CPUs
CHANGES = {"changes early": ROUNDS // 4, "changes half way": half, "changes late": 3 * ROUNDS // 4}
NAMES = [*CHANGES, "reads little"]


def demands() -> np.ndarray:
    """(jobs, 2, rounds): GPUs and CPUs for a unit of progress."""
    made = np.empty((len(NAMES), 2, ROUNDS))
    for job, change in enumerate(CHANGES.values()):
        made[job, :, :change], made[job, :, change:] = BEFORE, AFTER
    made[-1] = [[1.0], [0.25]]
    return made


market = make_market(demands(), kind="leontief")
dynamic = solve(market)
by_round = [solve(make_market(market.coefficients[:, :, t : t + 1], kind="leontief")) for t in range(ROUNDS)]
plans = {
    "equal shares": np.full(market.coefficients.shape, 1.0 / len(NAMES)),
    "static": np.repeat(by_round[0].allocation, ROUNDS, axis=2),
    "round by round": np.concatenate([found.allocation for found in by_round], axis=2),
    "dynamic": dynamic.allocation,
}
outcomes = {name: market.utilities(plan) for name, plan in plans.items()}
fairness = {name: finish_time_fairness(market, reached) for name, reached in outcomes.items()}
table(
    [
        {"market": name}
        | {f"rho, {job}": float(rho) for job, rho in zip(NAMES, fairness[name], strict=True)}
        | {"welfare": nash_welfare(outcomes[name], market.budgets)}
        for name in plans
    ]
)
worst = {name: float(rho.max()) for name, rho in fairness.items()}
welfare = {name: nash_welfare(reached, market.budgets) for name, reached in outcomes.items()}
gain = 100.0 * (welfare["dynamic"] / welfare["round by round"] - 1.0)
display(
    Markdown(
        f"Worst rho: {worst['static']:.3f} static, {worst['round by round']:.3f} round by round, "
        f"{worst['dynamic']:.3f} dynamic. The static market "
        + ("leaves a job with less than an equal share would give it" if worst["static"] > 1.0 else "stays fair")
        + f"; the dynamic one cannot (Corollary 4.0.1), and its welfare is {gain:.1f} % above that of a market a round."
    )
)


# %% tags=["dynamic"]
def paint_two_resources(figure):
    left, right = figure.subplots(1, 2)
    for prices, (resource, style) in zip(dynamic.prices, styles(["GPUs", "CPUs"]).items(), strict=True):
        dashes = {"GPUs": "-", "CPUs": "--"}[resource]
        left.step(range(ROUNDS), prices, where="mid", label=resource, color=style.color, linestyle=dashes)
    left.set(xlabel="round", ylabel="price in budgets")
    left.set_ylim(bottom=-0.005)
    left.legend()
    bottom = np.zeros(ROUNDS)
    for job, name in enumerate(NAMES):
        bought = dynamic.allocation[job, 0]
        right.bar(range(ROUNDS), bought, bottom=bottom, width=1.0, color=PALETTE[job], label=name)
        bottom += bought
    right.set(xlabel="round", ylabel="share of the GPUs", ylim=(0.0, 1.02))
    legend_beside(right)


display(SVG(draw("Prices of GPUs and CPUs, and who buys GPUs in the dynamic market", paint_two_resources)))

# %% [markdown]
# ## Budgets as priorities
#
# The same market with a budget of 1, 2 or 4 for the first job. Everybody has at least what the budget's share of
# everything would give; with unequal budgets rho above 1 is possible and meant. The equilibrium minimizes the product
# of the jobs' rho, each to the power of its budget.

# %% tags=["budgets"]
table(
    [
        {"budget of the first job": f"{budget:g}"}
        | {f"rho, {job}": float(rho) for job, rho in zip(NAMES, found.ftf, strict=True)}
        for budget in (1.0, 2.0, 4.0)
        for found in [solve(make_market(market.coefficients, [budget, 1.0, 1.0, 1.0], kind="leontief"))]
    ]
)

# %% [markdown]
# ## Changes by chance
#
# When a batch size changes depends on gradients. Appendix F maximizes welfare in expectation over policies that see
# each job's state. Here one job stays as it is; another may enlarge its batch before any of the rounds but the first,
# each time with the same chance, whether it runs or not, and then makes four times the progress. Four rounds, and three
# ways to deal with it:
#
# - *equal shares* in every round;
# - *plan for the mean*: a market with the expected utilities of each round. The scheduler does the like: it plans for
#   one trajectory, the mean of its forecast (section 5);
# - *policy*: the programme of appendix F, which waits and sees.

# %% tags=["uncertainty"]
FEW_ROUNDS = 4
LARGE = 4.0


def by_chance(chance: float) -> Chain:
    """Two states, small and large batch; the change does not depend on what the job receives."""
    transitions = np.zeros((2, 2, 2))
    transitions[0], transitions[1] = [1.0 - chance, chance], [0.0, 1.0]
    gains = np.zeros((2, 2, 2))
    gains[0, 1], gains[1, 1] = 1.0, LARGE
    return Chain(np.array([1.0, 0.0]), transitions, gains)


chances = np.linspace(0.0, 1.0, CHANCES)
curves: dict[str, list[float]] = {"equal shares": [], "plan for the mean": [], "policy": []}
for chance in chances:
    large = 1.0 - (1.0 - chance) ** np.arange(FEW_ROUNDS)
    planned = make_market([np.ones(FEW_ROUNDS), 1.0 + large * (LARGE - 1.0)])
    curves["equal shares"].append(nash_welfare(planned.utilities(np.full((2, 1, FEW_ROUNDS), 0.5)), planned.budgets))
    curves["plan for the mean"].append(solve(planned).welfare)
    chosen = solve_expected([by_chance(0.0), by_chance(float(chance))], 1, FEW_ROUNDS)
    curves["policy"].append(nash_welfare(chosen.utilities, np.ones(2)))


def paint_chances(figure):
    axes = figure.subplots()
    for (name, values), style in zip(curves.items(), styles(list(curves)).values(), strict=True):
        axes.plot(chances, values, "o", markersize=3, label=name, **style.line)
    axes.set(xlabel="chance of a change before a round", ylabel="welfare in expectation")
    legend_beside(axes)


display(SVG(draw("Welfare over the chance that the batch size grows", paint_chances, (WIDE[0], 3.6))))
worth = 100.0 * (np.array(curves["policy"]) / np.array(curves["plan for the mean"]) - 1.0)
best = int(worth.argmax())
display(
    Markdown(
        f"Seeing the state is worth most at a chance of {chances[best]:.2f}: {worth[best]:.1f} % of welfare over the "
        "plan for the mean. Where nothing is uncertain, at 0 and 1, the two are the same market "
        f"(difference {max(abs(worth[0]), abs(worth[-1])):.3f} %). The scheduler plans for the mean and closes part of "
        "the gap by planning again when a batch size changes."
    )
)

# %% [markdown]
# Two limits of the theory show in such toys. The market of section 4 takes the utility of each round as given, but a
# batch size changes after so many epochs, that is, by what the job received: only appendix F can say that. And the best
# policy of appendix F may draw lots between allocations, while the paper limits itself to policies that do not:

# %% tags=["lots"]
transitions = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
gains = np.zeros((2, 2, 2))
gains[0, 1], gains[1, 1] = 1.0, 3.0
by_service = Chain(np.array([1.0, 0.0]), transitions, gains)
drawn = solve_expected([by_service, by_chance(0.0)], 1, 2)
odds = drawn.policy(0, (0, 0))
display(
    Markdown(
        "One GPU for two rounds; a job gains 1 in its first round of running and 3 in the next, another gains 1 in each. "
        "Without lots the jobs reach (4, 0), (1, 1) or (0, 2), welfare 1 at most. The best policy gives the GPU to the "
        f"first with probability {odds[(1, 0)]:.2f} and then keeps to that: ({drawn.utilities[0]:.2f}, "
        f"{drawn.utilities[1]:.2f}), welfare {nash_welfare(drawn.utilities, np.ones(2)):.3f}."
    )
)
