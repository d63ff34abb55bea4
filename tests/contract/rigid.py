"""Random jobs through the engine: policies over pools, on servers, by rounds; through published rounds and Pollux.

What holds of every run is recomputed from the log's spans and from what the policy said, not from the engine's books:
capacity (cluster, pools where nothing is lent, each GPU of each server, each node), every job once and for as long as
its work takes, nothing before its submission, and the same bits twice.
"""

import itertools
from collections import defaultdict
from dataclasses import replace
from math import ceil, nan

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.domain.training import Phase, Regime, Training
from jobcast.models.regimes import REGIME_RULES
from jobcast.pipelines.experiments.rounds import Declared
from jobcast.schedulers.cells.quotas import default_cells
from jobcast.schedulers.registry import find_policy, local_policies, make_policy, make_rule
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle, Random
from jobcast.simulator.gavel import StepRates, gavel_rounds
from jobcast.simulator.laws.goodput import ScalableWork, replay_goodput
from jobcast.simulator.workload import Beginning, Workload
from tests.contract.drawn import drawn
from tests.contract.random_jobs import (
    GPUS,
    Recorder,
    check_held,
    check_run,
    check_same,
    dust_s,
    most_held,
    rng_of,
    rows_of,
    spans_by_job,
)

BACKFILLING = ("easy", "easy_forecast", "conservative_backfill")
OVER_POOLS = (
    *("fcfs", "ssf", "sjf", "gssf", "mmfs", "karma", "themis_np", "hived", "sia", "sia_vc", "sia_risk"),
    *("sia_plan", "sia_preempt", "milp"),
    *(*BACKFILLING, "as_recorded"),
    *(f"{name} locality" for name in local_policies()),
)
NOT_LENT = (*(f"{name}{where}" for name in ("fcfs", "ssf", "sjf") for where in ("", " locality")), *BACKFILLING)
"""Policies under which a pool never holds more than its quota."""
NOT_SLOWED = {"sia_vc": ("oracle",), "sia": ("oracle", "conservative")}
"""Policies under which, by these forecasts, no job starts later than under fcfs."""
SERVER_GPUS = 8
MOST_ROUNDS = 60


def sources(rng, workload):
    """A source of forecasts by name."""
    seed = rng.randint(0, 9)
    return {
        "oracle": lambda: Oracle(workload),
        "conservative": lambda: Conservative(workload),
        "random": lambda: Random(workload, seed),
        "noisy": lambda: Noisy(workload, 0.3, seed),
    }


def settings_of(rng, name):
    """Settings that a policy knows, drawn."""
    options = {
        "fcfs": {"backfill": (True, False)},
        "ssf": {"backfill": (True, False)},
        "sjf": {"backfill": (True, False)},
        "gssf": {"backfill": (True, False)},
        "mmfs": {"strict": (True, False)},
        "karma": {"alpha": (0.0, 0.5, 1.0), "credits_h": (0.0, 1.0), "quantum_s": (1.0, 3600.0)},
        "themis_np": {"filter": (0.2, 0.8, 1.0)},
        "sia": {"tick_s": (60.0, 3600.0), "slack": (0.0, 0.3), "order": ("share", "shortest", "narrow")}
        | ({} if name.endswith("locality") else {"backfill": (True, False)}),
        "sia_risk": {"budget_min": (0.0, 5.0, 1000.0), "relief_min": (1, 4)},
        "sia_plan": {"budget_min": (0.0, 5.0, 1000.0), "relief_min": (1, 4)},
        "sia_preempt": {"resume_s": (0.0, 30.0)},
        "milp": {"time_limit_s": (600.0,), "search_tries": (200,)},
    }.get(name.removesuffix(" locality"), {})
    return {key: rng.choice(values) for key, values in options.items() if name == "milp" or rng.random() < 0.5}


def pools_case(name, seed, draw=rows_of):
    """Workload, settings and the name of the forecasts of one run over pools."""
    rng, local = rng_of(name, seed), name.endswith("locality")
    sizes = (1, 2, 4, 8, 16, 24) if local else GPUS
    pools = [Pool(f"p{i}", rng.choice(sizes)) for i in range(rng.choice((1, 1, 2, 3, 4)))]
    on_grid = {"least_s": 60.0, "most_s": 1200.0, "most_jobs": 6, "epochs_s": (0.0, 6e8)} if name == "milp" else {}
    jobs, outcomes = [], []
    for index, row in enumerate(draw(rng, max(pool.quota for pool in pools), **on_grid)):
        pool = rng.choice(pools)
        widest = max(default_cells(pool.quota, SERVER_GPUS)) if local else pool.quota
        gpus = min(row.gpus, widest)
        preemptible = name.startswith("sia_preempt") and rng.random() < 0.5
        at_s, work_s = row.submit_s, row.work_s
        if name == "milp":
            at_s, work_s = 60.0 * round(at_s / 60.0), 60.0 * ceil(work_s / 60.0)
        asked = requirements_of(rng, work_s) if name in BACKFILLING else None
        jobs.append(Job(0, f"j{index:03}", pool.name, at_s, gpus, preemptible=preemptible, requirements=asked))
        outcomes.append(Outcome(work_s, start_s=at_s + rng.choice((0.0, 600.0)) if name == "as_recorded" else nan))
    servers = (
        (SERVER_GPUS,) * ceil(sum(pool.quota for pool in pools) / SERVER_GPUS + rng.randint(0, 1)) if local else ()
    )
    settings = settings_of(rng, name)
    workload = Workload(jobs, outcomes, pools, resume_s=settings.get("resume_s", 0.0), servers=servers)
    every_job = name in ("sia_vc", "milp", "as_recorded")
    forecasts = "oracle" if every_job else rng.choice(("oracle", "conservative", "random", "noisy"))
    return workload, settings, forecasts, sources(rng, workload)[forecasts]


def requirements_of(rng, work_s):
    """A time limit that is exact, loose, too short, or none."""
    return rng.choice((None, *(Requirements(time_limit_s=share * work_s) for share in (0.5, 1.0, 3.0))))


def run_pools(name, case):
    workload, settings, _, source_of = case
    source, bare = source_of(), name.removesuffix(" locality")
    policy = Recorder(make_policy(bare, source, settings, cells={} if workload.servers else None))
    return replay(workload, policy, source), policy


def check_pools(name, seed):
    workload, settings, forecasts, source_of = pools_case(name, seed)
    case = workload, {**drawn(name, seed), **settings}, forecasts, source_of
    (log, policy), (again, _) = run_pools(name, case), run_pools(name, case)
    check_same(log, again)
    check_run(log, workload.jobs, resume_s=workload.resume_s)
    assert find_policy(name.removesuffix(" locality")).preempts or not log.preemptions.any()
    check_held(log, quotas=workload.quotas() if name in NOT_LENT else None, jobs=workload.jobs)
    if workload.servers:
        check_cells(log, workload, policy.decisions)
    # Who overtakes in a quota delays whom they pass.
    if forecasts in NOT_SLOWED.get(name, ()) and not case[1].get("backfill"):
        fcfs = replay(workload, make_policy("fcfs", None, {}))
        assert (log.start_s <= fcfs.start_s + dust_s(fcfs.start_s)).all(), "a job is slowed against fcfs"


def check_begun(name, seed):
    """As `check_pools`, but begun where fcfs stands once half of the jobs have started."""
    workload, settings, forecasts, _ = pools_case(name, seed)
    fcfs = replay(workload, make_policy("fcfs", None, {}))
    now_s = float(np.median(fcfs.start_s))
    left = [seq for seq in range(len(workload.jobs)) if fcfs.end_s[seq] > now_s]
    held = {workload.jobs[seq].job_id: fcfs.start_s[seq] for seq in left if fcfs.start_s[seq] < now_s}
    begun = replace(
        workload,
        jobs=[workload.jobs[seq] for seq in left],
        outcomes=[workload.outcomes[seq] for seq in left],
        begin=Beginning(now_s, {name: (start_s, now_s - start_s) for name, start_s in held.items()}),
    )
    source = sources(rng_of(name, seed), begun)[forecasts]()
    log = replay(begun, make_policy(name, source, settings), source)
    assert np.isfinite(log.end_s).all()
    check_held(log, quotas=begun.quotas() if name in NOT_LENT else None, jobs=begun.jobs)
    for job, start_s, end_s in zip(begun.jobs, log.start_s, log.end_s, strict=True):
        assert start_s == held.get(job.job_id, start_s)
        assert end_s >= now_s
    if name == "sia_vc":
        again = replay(begun, make_policy("fcfs", None, {}))
        assert (log.end_s <= again.end_s + dust_s(again.end_s)).all(), "a job is slowed against fcfs"


def check_cells(log, workload, decisions):
    """No GPU of a server is given twice at an instant, and each job has as many as it asked for, from what was said."""
    spans, on_gpu, cells = spans_by_job(log), defaultdict(list), {}
    for now_s, decision in decisions:
        for seq, grant in decision.change.items():
            before, cells[seq] = cells.get(seq), None if grant is None else grant.cells
            if grant is None or grant.cells == before:  # stopped, or made dedicated where it runs
                continue
            [(begin_s, end_s)] = [span for span in spans[seq] if span[0] == now_s]
            gpus = [(cell.server, gpu) for cell in grant.cells for gpu in range(cell.first, cell.first + cell.gpus)]
            assert len(set(gpus)) == len(gpus) == workload.jobs[seq].gpus
            for server, gpu in gpus:
                assert gpu < workload.servers[server]
                on_gpu[server, gpu].append((begin_s, end_s))
    for place, held in on_gpu.items():
        begins, ends = np.array(held).T
        assert most_held(begins, ends, np.ones(len(held))) <= 1, f"server, GPU {place} is given twice"


def rounds_case(name, seed, draw=rows_of):
    """Workload, settings, nodes and forecasts of one run by rounds; some jobs train and change their batch size."""
    rng, counted = rng_of(name, seed), name.endswith(" gavel")
    nodes = [rng.choice((1, 2, 4, 8)) for _ in range(rng.randint(1, 5))]
    found = draw(rng, sum(nodes), most_jobs=8)
    first_s, total_s = found[0].submit_s, sum(row.work_s for row in found[:12])
    solved = name.startswith(("shockwave", "ossp"))  # each round is a programme: few jobs, few rounds
    found = [row for row in found if row.submit_s <= first_s + 1e6][: 5 if solved else 12]
    rounds = MOST_ROUNDS // (3 if solved else 1)
    round_s = max(rng.choice((0.5, 60.0, 3600.0)), total_s / rounds, (found[-1].submit_s - first_s) / (3 * rounds))
    round_s = max(round_s, 60.0 if counted else 0.0)  # rounds that are counted in steps are told apart by 5 s
    restart_s = rng.choice((0.0, 0.1 * round_s))
    jobs, outcomes, rates = [], [], []
    for index, row in enumerate(found):
        trains = counted or rng.random() < 0.6
        training, outcome, rate = training_of(rng, row.work_s, round_s) if trains else (None, Outcome(row.work_s), None)
        stops = counted or rng.random() < 0.95
        jobs.append(Job(0, f"j{index:03}", "all", row.submit_s, row.gpus, preemptible=stops, training=training))
        outcomes.append(outcome)
        rates.append(rate)
    servers = nodes if not counted and rng.random() < 0.5 else ()
    workload = Workload(jobs, outcomes, [Pool("all", sum(nodes))], restart_s=restart_s, servers=servers)
    own = {"window": rng.choice((2, 4)), "time_limit_s": 600.0} if name.startswith("shockwave") else {}
    own |= {"window": rng.choice((2, 4))} if name.startswith("ossp") else {}
    settings = {"round_s": round_s, "restart_s": restart_s, **own}
    if not counted and rng.random() < 0.2:
        settings["solve"] = "beside"
    rule = rng.choice(("oracle", *REGIME_RULES))
    return workload, settings, servers, rule, rates


def training_of(rng, work_s, round_s):
    """A training job of one to many epochs that takes `work_s`, its truth, and how it is counted in steps."""
    sizes = sorted(rng.sample((8, 16, 32, 64, 128), rng.choice((1, 2, 3))))
    epochs = rng.choice((1, 2, 7, 40))
    cuts = sorted(rng.sample(range(1, epochs), min(len(sizes), epochs) - 1)) if epochs > 1 else []
    shown = [size for _, size in zip([0, *cuts], sizes, strict=False)]
    lengths = np.diff([0, *cuts, epochs]).tolist()
    faster = {size: 0.9**place for place, size in enumerate(sizes)}
    unit_s = work_s / sum(length * faster[size] for length, size in zip(lengths, shown, strict=True))
    epoch_s = {size: max(unit_s * share, 1e-307) for size, share in faster.items()}
    regimes = tuple(Regime(size, float(length)) for size, length in zip(shown, lengths, strict=True))
    mode = rng.choice(("static",) if len(regimes) == 1 else ("gns", "accordion"))
    training = Training("LM", shown[0], epochs, mode, epoch_s)
    work_s = training.run_time_s(regimes)
    dataset = 256
    steps_s = {size: max(ceil(dataset / size) / seconds, 4.0 / round_s) for size, seconds in epoch_s.items()}
    rates = StepRates(epochs * ceil(dataset / shown[0]), dataset, steps_s, max(2.0 * work_s, 10.0 * round_s))
    return training, Outcome(work_s, regimes), rates


def check_rounds(name, seed):
    workload, settings, nodes, rule, rates = rounds_case(name, seed)
    settings, policy = {**drawn(name, seed), **settings}, name.removesuffix(" gavel")

    def forecasts():
        return Oracle(workload) if rule == "oracle" else Declared(workload, REGIME_RULES[rule]())

    if name.endswith(" gavel"):
        times = {"round_s": settings["round_s"], "restart_s": settings["restart_s"]}
        settings = {**settings, "mechanism": "gavel"}
        rules = [make_rule(policy, forecasts(), settings) for _ in range(2)]
        log, again = (gavel_rounds(workload, rule, rates, **times) for rule in rules)
        check_counted(log, workload)
    else:
        policies = [make_policy(policy, forecasts(), settings, nodes) for _ in range(2)]
        log = replay(workload, Recorder(policies[0], seats_checked(policies[0], nodes)))
        again = replay(workload, policies[1])
        check_run(log, workload.jobs, lost_s=workload.restart_s)
    check_same(log, again)
    check_held(log)


def seats_checked(policy, nodes):
    """Looks at who sits where after each decision: each node has its GPUs, each job as many as it asked for."""

    def look(view, decision):
        if policy.seats is None:
            return
        widths = {job.seq: job.gpus for job in view.active.values()}
        gone = {seq for seq, grant in decision.change.items() if grant is None}
        runs = ({*view.running} | {*decision.change}) - gone
        used = np.zeros(len(nodes))
        for seq in runs:
            seat = policy.seats._seats[seq]
            assert sum(gpus for _, gpus in seat) == widths[seq]
            for node, gpus in seat:
                used[node] += gpus
        assert (used <= nodes).all(), f"nodes of {nodes} GPUs hold {used}"

    return look


def check_counted(log, workload):
    """Of rounds counted in steps: what ends a job is not in its log, so that its work cannot be added up again."""
    submit_s = np.array([job.submit_s for job in workload.jobs])
    dust = dust_s(submit_s, log.end_s)
    assert np.isfinite(log.end_s).all()
    assert (log.start_s >= submit_s - dust).all()
    spans = spans_by_job(log)
    for seq, mine in spans.items():
        assert mine[0][0] == log.start_s[seq]
        assert mine[-1][0] - dust <= log.end_s[seq] <= mine[-1][1] + dust
        assert all(begin_s >= end_s for (_, end_s), (begin_s, _) in itertools.pairwise(mine))
        assert len(mine) == 1 + log.preemptions[seq]
    assert len(spans) == len(workload.jobs)


def scaling_case(name, seed, draw=rows_of):
    """Jobs of one to three phases, goodput growing less than the GPUs; rounds and restarts."""
    rng = rng_of(name, seed)
    gpus = rng.choice((1, 2, 5, 16))
    found = draw(rng, gpus, most_jobs=8)[:40]
    first_s = found[0].submit_s
    found = [row for row in found if row.submit_s <= first_s + 1e5]
    longest_s = sum(row.work_s for row in found) + found[-1].submit_s - first_s
    round_s = max(rng.choice((1.0, 60.0)), longest_s / 200.0)
    works = []
    for row in found:
        width = rng.randint(1, gpus)
        until, phases = 0.0, []
        for _ in range(rng.choice((1, 1, 2, 3))):
            bend = rng.uniform(0.3, 1.0)
            until += max(row.work_s, 1e-200) * rng.choice((1e-9, 0.5, 1.0))
            goodput = tuple(float(g**bend) for g in range(1, width + 1))
            phases.append(Phase(until, goodput, tuple(32 * g for g in range(1, width + 1))))
        works.append(ScalableWork(row.submit_s, rng.randint(1, width), tuple(phases)))
    return works, gpus, {"round_s": round_s, "restart_s": rng.choice((0.0, 0.2 * round_s))}


def check_scaling(name, seed):
    works, gpus, times = scaling_case(name, seed)
    pool = Pool("all", gpus)
    settings = {**drawn(name, seed), **times}
    runs = [replay_goodput(works, make_policy(name, None, settings), pool, times["restart_s"]) for _ in range(2)]
    (log, stretches), (again, others) = runs
    assert (log.start_s.tolist(), log.end_s.tolist()) == (again.start_s.tolist(), again.end_s.tolist())
    assert stretches == others
    check_held(log)
    columns = (log.spans.job, log.spans.from_s, log.spans.until_s, log.spans.gpus)
    spans = list(zip(*(column.tolist() for column in columns), strict=True))
    for seq, (work, ran) in enumerate(zip(works, stretches, strict=True)):
        held = [span[1:] for span in spans if span[0] == seq]
        assert held[0][0] == log.start_s[seq] >= work.submit_s
        assert held[-1][1] == log.end_s[seq]
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(held))
        assert all(count <= len(work.phases[0].goodput) for _, _, count in held)
        assert sum(one.work for one in ran) == pytest.approx(work.phases[-1].until, rel=1e-8)
        for one in ran:
            inside = [count for since_s, until_s, count in held if since_s <= one.begin_s and one.end_s <= until_s]
            assert one.gpus in inside, "work without GPUs"
            rate = max(phase.goodput[one.gpus - 1] for phase in work.phases)
            assert one.work <= rate * (one.end_s - one.begin_s + dust_s(one.end_s)) * (1 + 1e-9)
