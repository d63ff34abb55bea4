"""Shockwave, Figure 4 (section 2.2): a makespan that is minimised with wrong run times.

The paper describes its instance and prints what comes of it, not the instance. This one is built after the description:
the first epochs of J1 and J2 make them look longer than J3; from the second epoch on they are faster and shorter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from jobcast.pipelines.report.look import PALETTE
from papers.plotting import save
from papers.results import Page, lines, result

GPUS = 2
FIRST = 1e-3
"""What settles ties between jobs of one length."""


@dataclass(frozen=True, slots=True)
class ToyJob:
    """A job of one GPU: rounds that each of its epochs takes."""

    name: str
    epochs: tuple[int, ...]

    def epoch_at(self, done: int) -> tuple[int, int]:
        """Index of the epoch in which a job is after so many rounds, and the rounds done in it."""
        for index, rounds in enumerate(self.epochs):
            if done < rounds:
                return index, done
            done -= rounds
        return len(self.epochs), 0


TOY = (ToyJob("J1", (4, 1, 1, 1)), ToyJob("J2", (4, 1, 1, 1)), ToyJob("J3", (4, 4, 4)))
"""J1 and J2 look like 16 rounds and take 7. Of small instances the one that comes nearest the printed makespans."""


def proactive(job: ToyJob, done: int) -> int:
    """Rounds left, as they will be."""
    return sum(job.epochs) - done


def reactive(job: ToyJob, done: int) -> int:
    """Rounds left if all epochs took as long as the one that runs."""
    index, inside = job.epoch_at(done)
    return job.epochs[index] * (len(job.epochs) - index) - inside if index < len(job.epochs) else 0


def agnostic(job: ToyJob, done: int) -> int:
    """Rounds left if all epochs took as long as the first; of the epoch that runs, the share that is left."""
    index, inside = job.epoch_at(done)
    if index == len(job.epochs):
        return 0
    return max(1, round(job.epochs[0] * (len(job.epochs) - index - inside / job.epochs[index])))


RULES: dict[str, Callable[[ToyJob, int], int]] = {rule.__name__: rule for rule in (proactive, reactive, agnostic)}


def plan(left: Sequence[int], gpus: int) -> list[int]:
    """Jobs that the next round of a plan of the least makespan runs; a mixed-integer programme, solved by HiGHS.

    x[j, t] says whether a job runs in a round. Jobs of one GPU that may stop at any round end within
    max(longest, ceil(sum / GPUs)) rounds and no sooner (McNaughton 1959), so that all plans of so many rounds are of
    the least makespan. Of those the one that runs the longest jobs earliest stands, as the paper's example has it;
    among equals the first.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    jobs, rounds = len(left), max(max(left), -(-sum(left) // gpus))
    x = np.arange(jobs * rounds).reshape(jobs, rounds)
    weight = np.array(left) + FIRST * np.arange(jobs, 0, -1)
    complete, room = np.zeros((jobs, x.size)), np.zeros((rounds, x.size))
    for job in range(jobs):
        complete[job, x[job]] = 1
        room[np.arange(rounds), x[job]] = 1
    answer = milp(
        np.outer(weight, np.arange(rounds)).ravel(),
        integrality=np.ones(x.size),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(complete, left, left), LinearConstraint(room, -np.inf, gpus)],
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        raise ArithmeticError(f"no plan for {list(left)} rounds on {gpus} GPUs: {answer.message}")
    return [job for job in range(jobs) if answer.x[x[job, 0]] > 0.5]


def schedule(jobs: Sequence[ToyJob], rule: Callable[[ToyJob, int], int], gpus: int = GPUS) -> list[list[str]]:
    """Names that run in each round when the programme is solved anew at every round's begin."""
    done, rounds = [0] * len(jobs), []
    while any(count < sum(job.epochs) for job, count in zip(jobs, done, strict=True)):
        active = [i for i, job in enumerate(jobs) if done[i] < sum(job.epochs)]
        chosen = [active[i] for i in plan([rule(jobs[i], done[i]) for i in active], gpus)]
        for i in chosen:
            done[i] += 1
        rounds.append([jobs[i].name for i in chosen])
    return rounds


def figure4(data: object, page: Page) -> None:
    """Write the figure's page, table and plot into a folder; nothing of `data` is read."""
    made = {name: schedule(TOY, rule) for name, rule in RULES.items()}
    save(page, "Who runs when", _paint, (7.0, 5.2), made)
    rows = [(name, i, " ".join(run)) for name, rounds in made.items() for i, run in enumerate(rounds)]
    page.csv(("run_times", "round", "jobs"), rows)
    work, span = sum(sum(job.epochs) for job in TOY), {name: len(rounds) for name, rounds in made.items()}
    used = {name: work / (GPUS * rounds) for name, rounds in span.items()}
    longer = {name: 100 * (rounds / span["proactive"] - 1) for name, rounds in span.items()}
    less = 100 * (used["proactive"] / used["reactive"] - 1)
    page.write(
        toy="; ".join(map(_said, TOY)),
        lines=lines((name, str(rounds), f"{100 * used[name]:.0f} %") for name, rounds in span.items()),
        used=result(f"{less:.0f} %", less > 0),
        **{name: result(f"{longer[name]:.0f} %", longer[name] > 0) for name in ("reactive", "agnostic")},
    )


def _said(job: ToyJob) -> str:
    return f"{job.name}: epochs of {', '.join(map(str, job.epochs))} rounds, seems to take {agnostic(job, 0)}"


def _paint(figure: Figure, made: dict[str, list[list[str]]]) -> None:
    names = [job.name for job in TOY]
    for axes, (name, rounds) in zip(figure.subplots(len(made), 1, sharex=True), made.items(), strict=True):
        for i, run in enumerate(rounds):
            for job in run:
                axes.barh(names.index(job), 1, left=i, color=PALETTE[names.index(job)], edgecolor="white")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_title(name, loc="left")
    axes.set_xlabel("round")
