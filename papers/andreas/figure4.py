"""ANDREAS, Figures 4 and 5 (appendix B): the schedule of Table V's eight jobs, and what the nodes draw."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from jobcast.pipelines.experiments.energy.jobs import EnergyScene
from jobcast.simulator.log import RunLog, by_job
from jobcast.simulator.metrics import figures, tardiness_s
from papers.andreas.armida import PERIOD_S, armida_scenario, energy_eur, power_over_time, session
from papers.andreas.bench import ROWS, Bench
from papers.andreas.measures import ENERGY, LATE, MAKESPAN, TARDINESS, power
from papers.plotting import gantt
from papers.results import Page, lines, number, result

SHARED, TOGETHER = "armida-06", ("J6", "J10")
URGENT, GIVES_WAY, THERE = "J2", "J7", "armida-07"


def figure4(bench: Bench, page: Page) -> None:
    """Write both figures' page, table and plots into a folder."""
    scenario = armida_scenario()
    log = session(scenario).log
    nodes, cluster = scenario.place.names, scenario.facts.cluster
    held = dict(zip(nodes, cluster.kind_gpus[cluster.kind_of].tolist(), strict=True))
    gantt(page, "Figure 4: who holds which GPU", log.spans, scenario.job_ids, held)
    power(page.named("figure5"), "Figure 5: power of the nodes", *power_over_time(log.spans, cluster), nodes)
    page.csv(("job", "node", "gpus", "from_s", "until_s"), _segments(scenario, log))
    jobs, policies = lines(_jobs(scenario, log)), lines(_policies(scenario))
    page.write(jobs=jobs, policies=policies, **_found(scenario, log))


def _segments(scenario: EnergyScene, log: RunLog) -> list[tuple[str, ...]]:
    found, begin_s = by_job(log.spans), float(log.submit_s.min())
    rows = zip(found.job.tolist(), found.node.tolist(), found.gpus.tolist(), found.from_s, found.until_s, strict=True)
    jobs, nodes = scenario.job_ids, scenario.place.names
    return [
        (jobs[job], nodes[node], f"{gpus:g}", *(f"{at_s - begin_s:.3f}" for at_s in ends))
        for job, node, gpus, *ends in rows
    ]


def _jobs(scenario: EnergyScene, log: RunLog) -> list[tuple[str, ...]]:
    begin_s, columns, late_s = float(log.submit_s.min()), log.columns, tardiness_s(log)
    rows = []
    for job, name in enumerate(scenario.job_ids):
        its = np.flatnonzero(log.spans.job == job)
        where = (
            f"{scenario.place.names[node].removeprefix('armida-')} x {gpus:g}"
            for node, gpus in zip(log.spans.node[its].tolist(), log.spans.gpus[its].tolist(), strict=True)
        )
        times = (log.submit_s, log.start_s, log.end_s, columns["due_s"])
        found = (number(float(each[job]) - begin_s, 0) for each in times)
        moved = (str(int(log.preemptions[job])), str(int(columns["migrations"][job])))
        rows.append((name, *found, number(float(late_s[job]), 0), ", ".join(where), *moved))
    return rows


def _policies(scenario: EnergyScene) -> list[tuple[str, ...]]:
    measures = (replace(ENERGY, digits=5), TARDINESS, LATE, MAKESPAN)
    found = {row.title: figures(session(scenario, row.policy).log) for row in ROWS}
    return [(title, *(one.text(of) for one in measures)) for title, of in found.items()]


def shared(scenario: EnergyScene, log: RunLog, node: str) -> list[tuple[str, str, float]]:
    """Pairs of jobs that held GPUs of a node at the same time, and for how many seconds, by their first meeting."""
    found = log.spans
    its = np.flatnonzero(found.node == scenario.place.names.index(node))
    its = its[np.lexsort((found.job[its], found.from_s[its]))]
    together: dict[tuple[int, int], float] = {}
    for one, other in combinations(its.tolist(), 2):
        both_s = min(found.until_s[one], found.until_s[other]) - max(found.from_s[one], found.from_s[other])
        if both_s > 0.0:
            first, second = sorted((int(found.job[one]), int(found.job[other])))
            together[first, second] = together.get((first, second), 0.0) + float(both_s)
    return [(scenario.job_ids[one], scenario.job_ids[other], seconds) for (one, other), seconds in together.items()]


def _place_at(scenario: EnergyScene, log: RunLog, job: str, now_s: float) -> str:
    """Node of a job at an instant; empty where it waits."""
    found = log.spans
    here = (found.job == scenario.job_ids.index(job)) & (found.from_s <= now_s) & (now_s < found.until_s)
    return scenario.place.names[found.node[here][0]] if here.any() else ""


def _found(scenario: EnergyScene, log: RunLog) -> dict[str, str]:
    """What the paper tells of the schedule beside what came out."""
    met = shared(scenario, log, SHARED)
    together = ", ".join(f"{one} and {other} ({both_s / 60.0:.0f} min)" for one, other, both_s in met) or "nobody"
    share = TOGETHER in {(one, other) for one, other, _ in met}
    # What was submitted at a grid point is decided on at that very point.
    submit_s = float(log.submit_s[scenario.job_ids.index(URGENT)])
    urgent, other = (_place_at(scenario, log, job, submit_s + PERIOD_S / 2) for job in (URGENT, GIVES_WAY))
    places = ((URGENT, urgent), (GIVES_WAY, other))
    said = ", ".join(f"{job} {f'on {node}' if node else 'waits'}" for job, node in places)
    late = [name for name, late_s in zip(scenario.job_ids, tardiness_s(log), strict=True) if late_s > 0.0]
    stops = int((log.preemptions + log.columns["migrations"]).sum())
    return {
        "together": together,
        "shared": result("yes" if share else f"no: {together}", share),
        "urgent": result(said, urgent == THERE and not other),
        "moved": result(f"{stops} times", stops > 0),
        "late": result(", ".join(late) or "none", not late),
        "energy": result(number(energy_eur(log), 5)),
    }
