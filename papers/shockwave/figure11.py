"""Shockwave, Figure 11 (section 8.7): Pollux, which changes jobs' GPUs, against Shockwave, which does not."""

from dataclasses import dataclass, replace
from pathlib import Path

from jobcast.domain.hardware import FLAT_POOL
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.forecast_specs import ORACLE, ForecastSpec
from jobcast.schedulers.pollux import Pollux
from jobcast.simulator.laws.goodput import replay_goodput
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import figures, finish_time_fairness, static_contention
from papers.plotting import distributions, save, write_cases
from papers.runs import GREEDY, SHOCKWAVE, Done, Means, Task, in_parallel, run
from papers.sheets import Claim, number, picture
from papers.shockwave.pollux_jobs import applications, draw_jobs, scenario_of
from papers.shockwave.workloads import CONTENTION

POLLUX = "pollux"
JOBS, GPUS = 120, 32
CASES = {"contention 3": CONTENTION, "contention 1": 1.0}
"""GPUs that jobs would hold at the widths that they ask for, if nobody waited, over the GPUs that there are."""
SEEDS = range(2)
ABOUT = (
    f"{JOBS} trainings of cifar10, deepspeech2 and bert, from the step times and noise curves that Pollux published, "
    f"on {GPUS} GPUs; means of {len(SEEDS)} draws of arrivals and widths (Pollux's own trace is not at hand), crowded "
    "as in the other figures and with room for all. Pollux runs first and chooses GPUs and batch sizes; Shockwave then "
    "runs the same samples at the batch sizes of that run, on the GPUs that each job asked for. It is told those batch "
    "sizes; greedy: it takes the one of the moment to stay. FTF is relative to run times on the GPUs asked for at "
    "those batch sizes, for both."
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both schedulers on one draw."""

    case: str
    seed: int
    done: tuple[Done, ...]


@dataclass(frozen=True, slots=True)
class _Both:
    data: Path

    def __call__(self, draw: tuple[str, int]) -> Pair:
        case, seed = draw
        known = applications(self.data, GPUS)
        names, works = draw_jobs(known, JOBS, GPUS, CASES[case], seed)
        log, ran = replay_goodput(works, Pollux(), Pool(FLAT_POOL, GPUS))
        scenario = scenario_of(names, works, ran, known, GPUS)
        runs = [run(Task(case, scenario, SHOCKWAVE, spec, label=_label(spec))) for spec in (ORACLE, GREEDY)]
        return Pair(case, seed, (runs[0], _done(case, log, runs[0].log), *runs[1:]))


def _label(spec: ForecastSpec) -> str:
    return SHOCKWAVE if spec == ORACLE else f"{SHOCKWAVE}, {spec.label}"


def _done(case: str, log: RunLog, like: RunLog) -> Done:
    """Pollux's replay with the run times alone of Shockwave's jobs."""
    made = replace(log, policy=POLLUX, duration_s=like.duration_s)
    return Done(case, POLLUX, figures(made), made)


def figure11(data: Path, out: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    draws = [(case, seed) for case in CASES for seed in SEEDS]
    pairs = list(in_parallel(_Both(data), draws, lambda pair: f"{pair.case}, draw {pair.seed}"))
    done = [one for pair in pairs for one in pair.done]
    _plot_ftf(out, pairs[0].done)

    def claimed(found: Means) -> list[Claim]:
        return [claim for case in CASES for claim in _claims(found, done, case)]

    title, also = "Shockwave and Pollux", [picture("figure11-ftf", "Distribution of finish-time fairness")]
    write_cases(out, "figure11", f"Figure 11: {title}", ABOUT, done, claimed, title=title, also=also)


def _claims(found: Means, done: list[Done], case: str) -> list[Claim]:
    mine, theirs = found[case, SHOCKWAVE], found[case, POLLUX]
    jct, makespan = mine["mean_jct_s"] / theirs["mean_jct_s"], theirs["makespan_s"] / mine["makespan_s"]
    pollux = [one for one in done if (one.case, one.name) == (case, POLLUX)]
    asked = sum(float(one.log.gpus @ one.log.duration_s) for one in pollux)
    held = sum(one.figures["utilization"] * one.figures["makespan_s"] * one.log.total_gpus for one in pollux)
    shown = f"{mine['worst_ftf']:.2f}, {theirs['worst_ftf']:.2f}"
    return [
        Claim(f"{case}: mean JCT of Shockwave / Pollux's", "3", number(jct), jct > 1),
        Claim(f"{case}: GPU time at the GPUs asked for / what Pollux held", "2.4", number(asked / held), asked > held),
        Claim(f"{case}: makespan of Pollux / Shockwave's", "about 1", number(makespan), None),
        Claim(
            f"{case}: worst FTF of Shockwave and Pollux",
            "Shockwave's far better",
            shown,
            mine["worst_ftf"] < theirs["worst_ftf"],
        ),
    ]


def _plot_ftf(out: Path, done: tuple[Done, ...]) -> None:
    values = {one.name: finish_time_fairness(one.log, static_contention(one.log)).tolist() for one in done}
    save(
        out,
        "figure11-ftf",
        "Finish-time fairness of one draw, contention 3",
        lambda figure: distributions(figure.subplots(), values, "FTF (above 1 is unfair)"),
    )
