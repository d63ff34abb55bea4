from dataclasses import replace
from random import Random as Draws

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.domain.jobs import Pool
from jobcast.domain.policy import Cell, RunningJob
from jobcast.schedulers.cells.buddy import sizes_of
from jobcast.schedulers.cells.quotas import default_cells, servers_for
from jobcast.schedulers.registry import local_policies, make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle, Random
from tests.contract.random_jobs import Recorder
from tests.simulator.pool_cases import workload_of

MINUTE_S = 60.0


def on_servers(jobs, pools):
    """A workload of rows in minutes, on servers of eight GPUs."""
    servers = servers_for([Pool(name, quota) for name, quota in pools.items()], 8)
    return workload_of(jobs, pools, unit_s=MINUTE_S, servers=servers)


def drawn(seed, widths=(1, 1, 2, 4, 8, 16), count=40, quotas=(1, 3, 4, 8, 8, 12, 16, 21)):
    """Jobs that fit, in pools of several quotas; many wait."""
    rng = Draws(seed)
    pools = {f"p{i}": rng.choice(quotas) for i in range(rng.randint(1, 4))}
    jobs = []
    while len(jobs) < count:
        pool = rng.choice(list(pools))
        row = (f"j{len(jobs):02}", pool, rng.randint(0, 60), rng.choice((1, 2, 3, 6, 12, 30)), rng.choice(widths))
        cells, needed = default_cells(pools[pool], 8), sizes_of(row[4], 8)
        if sum(gpus >= needed[0] for gpus in cells) >= len(needed):
            jobs.append(row)
    return on_servers(jobs, pools)


def placed_run(workload, policy, source=None):
    """Start seconds by job id, and what was started where."""
    found = []

    def started(view, decision):
        found.extend(RunningJob(view.active[seq], view.now_s, grant) for seq, grant in decision.change.items())

    log = replay(workload, Recorder(policy, started), source)
    return dict(zip((job.job_id for job in workload.jobs), log.start_s.tolist(), strict=True)), found


def on_cells(name, source=None, **settings):
    return make_policy(name, source, settings, cells={})


HORIZONS_MIN = (4.0, 15.0)  # short, so that small workloads have jobs of every bin
SEEDS = st.integers(0, 10**6)


@given(seed=SEEDS, draws=st.randoms(use_true_random=False))
def test_exact_forecasts_slow_nobody(seed, draws):
    """No job waits for fragmentation, or anything else, that private servers would not have caused."""
    workload = drawn(seed)
    base, _ = placed_run(workload, on_cells("fcfs"))
    oracle = Oracle(workload, HORIZONS_MIN)
    found, _ = placed_run(workload, on_cells("sia", oracle, **tunables(draws)), oracle)
    assert all(found[job] <= base[job] for job in base)


def tunables(draws):
    return {
        "apart": draws.choice(("cell", "buddy", "none")),
        "order": draws.choice(("share", "submission", "shortest", "narrow")),
        "slack": draws.choice((0.0, 0.0, 0.25)),
        "windows_min": draws.choice((HORIZONS_MIN, HORIZONS_MIN[:1], HORIZONS_MIN[1:])),
    }


@pytest.mark.parametrize("policy", ["sia", "sia_risk"])
@given(seed=SEEDS)
@settings(max_examples=30)
def test_conservative_forecasts_give_fcfs(policy, seed):
    workload = drawn(seed)
    source = Conservative(workload, HORIZONS_MIN)
    found, _ = placed_run(workload, on_cells(policy, source), source)
    assert found == placed_run(workload, on_cells("fcfs"))[0]


@pytest.mark.parametrize("policy", [*local_policies(), "sia follow=false", "ssf backfill=true", "mmfs strict=true"])
@given(seed=SEEDS)
@settings(max_examples=12)
def test_jobs_lie_together(policy, seed):
    """Under wrong forecasts too, and widths that are no powers of two; the engine refuses cells that are taken."""
    workload = drawn(seed, widths=(1, 2, 3, 5, 8, 12, 16))
    source = Random(workload, seed, horizons_min=HORIZONS_MIN)
    name, *words = policy.split(" ")
    made = on_cells(name, source, **dict(word.split("=") for word in words))
    _, starts = placed_run(workload, made, source)
    assert len(starts) == len(workload.jobs)
    for start in starts:
        size = sizes_of(start.job.gpus, 8)[0]
        assert all(cell.first % size == 0 for cell in start.cells)
        assert len({cell.server for cell in start.cells}) == len(start.cells) == -(-start.job.gpus // 8)


@pytest.mark.parametrize("policy", ["fcfs", "ssf", "sjf", "gssf", "mmfs", "karma", "hived", "themis_np"])
@given(seed=SEEDS)
@settings(max_examples=10)
def test_jobs_of_one_gpu_are_never_in_pieces(policy, seed):
    """Then cells are GPUs, and who starts when is as without locality.

    Of HiveD's lent GPUs one may lie in the only free cell of another pool: there quotas are whole servers.
    """
    workload = drawn(seed, widths=(1,), **({"quotas": (8, 16)} if policy == "hived" else {}))
    source = Oracle(workload, HORIZONS_MIN)
    found, _ = placed_run(workload, on_cells(policy, source), source)
    loose = replace(workload, servers=())
    assert found == placed_run(loose, make_policy(policy, source), source)[0]


def test_a_private_server_in_pieces_makes_jobs_wait():
    # a and c stay in different halves when b ends: 6 GPUs are free, but no 4 of them together
    jobs = [("a", "p", 0, 10, 1), ("b", "p", 0, 5, 4), ("c", "p", 0, 20, 2), ("d", "p", 0, 9, 1), ("e", "p", 1, 1, 8)]
    found, starts = placed_run(on_servers(jobs, {"p": 8}), on_cells("fcfs"))
    assert {job: at / MINUTE_S for job, at in found.items()} == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 20}
    assert {start.job.job_id: start.cells for start in starts} == {
        "a": (Cell(0, 0, 1),), "b": (Cell(0, 4, 4),), "c": (Cell(0, 2, 2),), "d": (Cell(0, 1, 1),),
        "e": (Cell(0, 0, 8),),
    }  # fmt: skip


LENT = [
    ("a", "p", 0, 30, 1),  # holds a quarter of p's 4-GPU buddy for long; its own buddy is GPU 1
    ("b", "q", 0, 30, 8),
    ("c", "q", 1, 3, 1),
    ("d", "q", 1, 3, 2),
]


@pytest.mark.parametrize(
    ("apart", "expected"), [("cell", {"c": 30, "d": 30}), ("buddy", {"c": 1, "d": 1}), ("none", {"c": 1, "d": 1})]
)
def test_how_far_spare_jobs_keep_away(apart, expected):
    workload = on_servers(LENT, {"p": 8, "q": 8})
    oracle = Oracle(workload, HORIZONS_MIN)
    found, starts = placed_run(workload, on_cells("sia", oracle, apart=apart), oracle)
    assert {job: found[job] / MINUTE_S for job in expected} == expected
    cells = {start.job.job_id: start.cells[0] for start in starts if not start.dedicated}
    if apart == "buddy":
        assert cells == {"c": Cell(0, 2, 1), "d": Cell(0, 4, 2)}
    if apart == "none":
        assert cells == {"c": Cell(0, 1, 1), "d": Cell(0, 2, 2)}


def test_a_reservation_that_cannot_be_met_stops_lending():
    # p needs its server from 2 on; q's short job would end at 4 and must wait, though p's server idles at 1
    jobs = [("a", "q", 0, 30, 8), ("b", "q", 1, 3, 1), ("c", "p", 2, 5, 8)]
    workload = on_servers(jobs, {"p": 8, "q": 8})
    oracle = Oracle(workload, HORIZONS_MIN)
    found, _ = placed_run(workload, on_cells("sia", oracle), oracle)
    assert {job: at / MINUTE_S for job, at in found.items()} == {"a": 0, "b": 7, "c": 2}
    hived, _ = placed_run(workload, on_cells("hived"))
    assert {job: at / MINUTE_S for job, at in hived.items()} == {"a": 0, "b": 1, "c": 4}  # reserves nothing


@pytest.mark.parametrize("name", ["sia", "sia_preempt"])
def test_a_turn_keeps_the_place_of_a_job_that_ran_early(name):
    # w starts early on q's server; without its turn y and z would lie in different halves, and v would wait for both
    jobs = [
        ("x", "p", 0, 10, 8), ("w", "p", 1, 3, 1), ("y", "p", 2, 40, 1), ("z", "p", 2, 40, 1), ("q", "q", 100, 1, 8),
    ]  # fmt: skip
    workload = on_servers(jobs, {"p": 8, "q": 8})
    oracle = Oracle(workload, HORIZONS_MIN)
    found, starts = placed_run(workload, on_cells(name, oracle), oracle)
    assert (found["w"], found["y"], found["z"]) == (60.0, 600.0, 600.0)
    firsts = {start.job.job_id: start.cells[0].first for start in starts}
    assert (firsts["y"], firsts["z"]) == (1, 2)  # w's place is kept until it would have ended


def test_settings_and_their_errors():
    workload = on_servers([("a", "p", 0, 1, 1)], {"p": 8})
    with pytest.raises(ConfigError, match=r"policy milp knows no locality \(it plans GPUs ahead by number"):
        on_cells("milp", Oracle(workload))
    with pytest.raises(ConfigError, match="sia with locality: setting apart must be cell or buddy or none, got far"):
        on_cells("sia", Oracle(workload), apart="far")
    with pytest.raises(ConfigError, match="policy sia needs forecasts"):
        on_cells("sia")
    with pytest.raises(PoolsError, match="pool p: its cells have 4 GPUs, its quota is 8"):
        placed_run(workload, make_policy("hived", cells={"p": (4,)}))


def stoppable(made, share, seed):
    draws = Draws(seed)
    return replace(made, jobs=[replace(job, preemptible=draws.random() < share) for job in made.jobs])


def log_of(made, name, source, **settings):
    return replay(made, make_policy(name, source, settings, cells={}), source)


@given(seed=SEEDS, share=st.sampled_from((0.2, 0.5, 1.0)), apart=st.sampled_from(("cell", "buddy", "none")))
def test_with_exact_forecasts_and_free_resuming_nobody_ends_later(seed, share, apart):
    made = stoppable(drawn(seed), share, seed)
    log = log_of(made, "sia_preempt", Oracle(made, HORIZONS_MIN), apart=apart)
    assert (log.end_s <= log_of(made, "fcfs", None).end_s + 1e-6).all()


@given(seed=SEEDS)
@settings(max_examples=30)
def test_without_jobs_that_may_be_stopped_it_is_sia(seed):
    made = drawn(seed)
    ours = log_of(made, "sia_preempt", Oracle(made, HORIZONS_MIN))
    assert ours.start_s.tolist() == log_of(made, "sia", Oracle(made, HORIZONS_MIN)).start_s.tolist()


def minutes(made, names=(), name="sia_preempt"):
    made = replace(made, jobs=[replace(job, preemptible=job.job_id in names) for job in made.jobs])
    log = log_of(made, name, Oracle(made, HORIZONS_MIN))
    rows = zip(log.start_s / MINUTE_S, log.end_s / MINUTE_S, log.preemptions, strict=True)
    return {job.job_id: tuple(map(int, row)) for job, row in zip(made.jobs, rows, strict=True)}


@pytest.mark.parametrize(("names", "a"), [((), (60, 90, 0)), (("a",), (1, 41, 1))])
def test_a_job_that_may_be_stopped_gives_reserved_cells_back(names, a):
    # q's server is needed at 4; a, 30 minutes long, borrows it at 1 only if it can be stopped
    rows = [("x", "p", 0, 60, 8), ("a", "p", 1, 30, 8), ("b", "q", 4, 10, 8)]
    assert minutes(on_servers(rows, {"p": 8, "q": 8}), names) == {"x": (0, 60, 0), "a": a, "b": (4, 14, 0)}


def test_a_job_stopped_after_its_turn_goes_on_in_its_place():
    # a's turn comes at 10, while it runs on q's server, and y's beside it; b stops it at 12, and it moves next to y
    rows = [("x", "p", 0, 10, 8), ("a", "p", 1, 30, 4), ("y", "p", 2, 500, 4), ("b", "q", 12, 50, 8)]
    found = minutes(on_servers(rows, {"p": 8, "q": 8}), ("a",))
    assert (found["a"], found["y"][0], found["b"][0]) == ((1, 31, 1), 10, 12)


@pytest.mark.parametrize("name", ["sia", "sia_preempt"])
def test_turns_are_taken_as_of_then_where_no_job_was_left(name):
    # a runs early from 4 to 5, v until 10: no job is left then, nobody is asked, and z's turn is at 11 all the same
    rows = [
        ("x", "p", 0, 10, 4), ("v", "p", 0, 10, 4), ("a", "p", 4, 1, 8), ("z", "p", 11, 30, 8), ("q", "q", 200, 1, 8),
    ]  # fmt: skip
    found = minutes(on_servers(rows, {"p": 8, "q": 8}), name=name)
    assert (found["a"], found["z"]) == ((4, 5, 0), (11, 41, 0))
