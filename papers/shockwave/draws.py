"""Shockwave on draws that nothing was chosen on: against the rule that it must beat, and what forecasts are worth."""

from functools import partial
from pathlib import Path
from typing import Any

from jobcast.models.regimes import RegimePrior
from jobcast.pipelines.experiments.forecast_specs import ORACLE, RESTATEMENT
from jobcast.pipelines.experiments.rounds import Declared, round_workload
from jobcast.schedulers.policies import RoundMechanism
from jobcast.schedulers.registry import make_policy
from jobcast.simulator import metrics
from jobcast.simulator.engine import replay
from papers.results import Interval, Measure, Page, Replayed, grid, interval_of, numbers, result, run_all
from papers.shockwave.runs import JCT, MAKESPAN, RULE, SHOCKWAVE, WORST, Task, run
from papers.shockwave.workloads import drawn

SEEDS = range(700, 720)
"""Of the draws: no default and no rule was chosen on them."""
LEARNT, FINISHED = 600, 400
"""Seed and jobs of the draw that the prior learns from."""
JOBS, GPUS = 120, 32
EXACT, PRIOR = f"{SHOCKWAVE}, oracle", f"{SHOCKWAVE}, prior"
PAIRS = ((SHOCKWAVE, RULE), (EXACT, PRIOR), (PRIOR, SHOCKWAVE), (EXACT, SHOCKWAVE))
"""What is told against what, draw by draw; who names no forecasts restates."""
MOST_UNFAIR = 1.3
MOST_LATER, MOST_SLOWER = 1.0, 10.0
"""Our own bars, the latter in per cent of the rule's."""


def learned(data: Path) -> RegimePrior:
    """The prior over regimes, from jobs of another draw that have ended."""
    workload = drawn(data, LEARNT, jobs=FINISHED, gpus=GPUS).workload
    pairs = zip(workload.jobs, workload.outcomes, strict=True)
    return RegimePrior(LEARNT).fit([(job.training, outcome.regimes) for job, outcome in pairs if job.training])


def replayed(task: Task, prior: RegimePrior) -> Replayed:
    """One task; the prior answers as the registry's version of it would, without a registry."""
    if task.label != PRIOR:
        return run(task)
    workload = round_workload(task.scenario, RoundMechanism())
    source: Any = Declared(workload, prior)  # it is asked for regimes and declared run times alone
    log = replay(workload, make_policy(SHOCKWAVE, source, {}), source)
    return Replayed(task.case, PRIOR, metrics.figures(log), log=log)


def draws(data: Path, page: Page) -> None:
    """Write the page and its table into a folder."""
    scenarios = {f"seed {seed}": drawn(data, seed, jobs=JOBS, gpus=GPUS) for seed in SEEDS}
    asked = [(SHOCKWAVE, RESTATEMENT, ""), (RULE, RESTATEMENT, "")]
    asked += [(SHOCKWAVE, ORACLE, EXACT), (SHOCKWAVE, RESTATEMENT, PRIOR)]
    tasks = [Task(case, one, name, spec, label=to) for case, one in scenarios.items() for name, spec, to in asked]
    done = page.runs(run_all(partial(replayed, prior=learned(data)), tasks))
    found = {pair: (differences(done, MAKESPAN, *pair), differences(done, JCT, *pair)) for pair in PAIRS}
    (later, slower), exact = found[SHOCKWAVE, RULE], found[EXACT, SHOCKWAVE]
    worst = [one.figures[WORST.key] for one in done if one.name == SHOCKWAVE]
    adjacent = [one for pair in PAIRS[1:3] for one in found[pair]]
    page.write(
        draws=len(SEEDS),
        first=SEEDS[0],
        last=SEEDS[-1],
        jobs=JOBS,
        gpus=GPUS,
        finished=FINISHED,
        learnt=LEARNT,
        table=grid(
            ("difference", "makespan, %", "mean JCT, %"),
            [(f"`{one}` against `{other}`", *(by.text(2) for by in both)) for (one, other), both in found.items()],
        ),
        worst=numbers(sorted(worst, reverse=True)[:3]),
        later=result(f"{later.mean:+.2f} %", later.mean <= MOST_LATER),
        slower=result(f"{slower.mean:+.2f} %", slower.mean <= MOST_SLOWER),
        fair=result(f"{sum(one <= MOST_UNFAIR for one in worst)} of {len(worst)}", fair_enough(worst)),
        reversed=result(f"{sum(one.low > 0 for one in adjacent)}", all(one.low <= 0 for one in adjacent)),
        exact=result(", ".join(one.text(2) for one in exact), any(one.high < 0 for one in exact)),
    )


def fair_enough(worst: list[float]) -> bool:
    """Whether nobody is worse off than the bar in nine of ten draws: 18 of 20."""
    return sum(one <= MOST_UNFAIR for one in worst) >= 0.9 * len(worst)


def differences(done: list[Replayed], measure: Measure, name: str, other: str) -> Interval:
    """Mean over draws of how much more one has than the other, per cent of the other's, and its interval."""
    by_draw = {(one.case, one.name): one.figures[measure.key] for one in done}
    cases = dict.fromkeys(one.case for one in done)
    return interval_of([100 * (by_draw[case, name] / by_draw[case, other] - 1) for case in cases])
