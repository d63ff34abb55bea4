import json
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.domain.hardware import FLAT_POOL, Cluster, PoolsTable, Quota, pools_cluster
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs, scenario_workload
from jobcast.pipelines.experiments.scenarios import ASSUMED, HELD, assumed_s, cut_scenario
from jobcast.pipelines.experiments.sources import Ask, earlier_jobs
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.history import RunHistory
from jobcast.simulator.metrics import figures
from jobcast.simulator.workload import Workload
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from tests.scenarios import pool_scenario
from tests.shared import refused


@pytest.fixture
def trace(csv):
    """Five jobs of two pools, a second apart."""
    return read_trace(csv("1,a,0,10,1", "2,b,1,10,2", "3,a,2,10,4", "4,b,3,10,1", "5,a,4,10,1"))


AB = [Pool("a", 4), Pool("b", 2)]


def ids(scenario):
    return [job.job_id for job in scenario.workload.jobs]


def test_a_window_begins_at_from_and_ends_before_until(trace):
    scenario = pool_scenario(trace, AB, from_s=1.0, until_s=4.0)
    assert ids(scenario) == ["2", "3", "4"]
    assert [job.seq for job in scenario.workload.jobs] == [0, 1, 2]
    assert (scenario.from_s, scenario.until_s) == (1.0, 4.0)
    assert scenario.earlier.jobs["job_id"].to_list() == ["1"]


def test_a_pool_that_is_gone_within_the_window_is_served_and_told(trace):
    """b is gone from 2 s on: job 4 comes later; at 2 s it has no capacity."""
    table = PoolsTable((Quota("a", 4), Quota("b", 2), Quota("b", 0, 2.0)))
    place = Cluster(quotas=table, at_s=0.0)
    told = {until_s: cut_scenario(trace, place, until_s=until_s).notes for until_s in (3.0, 5.0)}
    (line,) = told[5.0]
    assert line.startswith("warning: pools that are gone within the window keep the GPUs of its beginning: ")
    assert "b from 1970-01-01T00:00:02Z on (1 job after that); --until ends a replay before" in line
    assert told[3.0] == ()
    late = cut_scenario(trace, Cluster(quotas=table, at_s=2.0), from_s=2.0)
    assert late.notes == ()
    refused(PoolsError, "pool b has no GPUs but 1 job lies in such pools", rigid_jobs, late)
    assert ids(rigid_jobs(late, only_pools=True)) == ["3", "5"]


def test_a_limit_takes_the_first_jobs_of_the_window(trace):
    assert ids(pool_scenario(trace, AB, from_s=1.0, limit=2)) == ["2", "3"]
    assert ids(pool_scenario(trace, AB, limit=99)) == ["1", "2", "3", "4", "5"]


MIXED = ("1,a,0,10,1", "2,b,1,10,0", "3,a,2,,4", "4,b,3,10,1", "5,a,4,,0", "6,a,9,10,2")


def test_jobs_without_gpus_or_a_run_time_are_left_out_and_counted(csv):
    trace = read_trace(csv(*MIXED))
    for scenario in (pool_scenario(trace, AB), elastic_jobs(cut_scenario(trace, cluster_of(trace, gpus=8)))):
        assert scenario.job_ids == ("1", "4", "6")
        assert scenario.dropped == {"no GPUs": 2, "no run time (running or waiting)": 1}
        assert [note.partition(":")[0] for note in scenario.notes[:2]] == ["duration", "gpus"]
        assert len(scenario.trace) == 3
    assert pool_scenario(trace, AB, limit=2).dropped == scenario.dropped
    cut = pool_scenario(trace, AB, from_s=3.0)
    assert (ids(cut), cut.dropped) == (["4", "6"], {"no GPUs": 1})
    earlier = earlier_jobs(cut)
    assert [job.job_id for job in earlier.jobs] == ["1", "3"]
    assert earlier.known_s.tolist() == [10.0, float("inf")]


def test_a_window_of_jobs_that_cannot_be_replayed_is_refused(csv):
    trace = read_trace(csv(*MIXED))
    why = r"no job of \[1970-01-01T00:00:04Z, 1970-01-01T00:00:05Z\) can be replayed: 1 have no GPUs; widen"
    refused(TraceError, why, pool_scenario, trace, AB, from_s=4.0, until_s=5.0)
    refused(TraceError, "no job of the window is left", pool_scenario, trace, [Pool("c", 4)], only_pools=True)


def test_a_flat_cluster_ignores_pools(trace):
    place = cluster_of(trace, gpus=4)
    scenario = rigid_jobs(cut_scenario(trace, place))
    assert scenario.listed["pool"].to_list() == ["all"] * 5
    assert {job.pool for job in scenario.workload.jobs} == {"all"}
    assert scenario.workload.quotas() == {"all": 4}


def test_pools_of_different_gpus_are_told_apart(trace):
    """Who lends from one to the other would start jobs on GPUs that they did not ask for."""
    typed = replace(trace, jobs=trace.jobs.with_columns(gpu_type=pl.Series(["v100", "a100", "v100", None, "v100"])))
    (note,) = (one for one in pool_scenario(typed, AB).notes if one.startswith("gpu_type"))
    assert "(a100: b; v100: a)" in note
    assert not any(one.startswith("gpu_type") for one in pool_scenario(typed, [Pool("a", 4)], only_pools=True).notes)


def test_provenance_names_the_inputs(trace):
    told = rigid_jobs(cut_scenario(trace, pools_cluster(AB, "by hand"), from_s=1.0, until_s=4.0)).provenance()
    assert told["trace"] == {"path": trace.source.path, "sha256": trace.source.sha256, "rows": 5}
    assert told["window"] == {"from": "1970-01-01T00:00:01Z", "until": "1970-01-01T00:00:04Z"}
    assert told["pools"] == {"a": 4, "b": 2}
    assert told["notes"] == ["quotas: by hand"]
    assert (told["cluster"], told["gpus"], told["gpu_types"], told["nodes"]) == ("by hand", 6, {"": 6}, 0)
    assert json.loads(json.dumps(told)) == told


COUNT = 2000


@pytest.fixture(scope="module")
def made():
    """Every third job may be stopped."""
    jobs = [Job(0, f"{i:04d}", "a", float(i), 1, preemptible=i % 3 == 0) for i in range(COUNT)]
    return Workload(jobs, [Outcome(1.0)] * COUNT, [Pool("a", 1)], restart_s=5.0, resume_s=2.0)


def stoppable(workload):
    return {job.job_id for job in workload.jobs if job.preemptible}


def of(made, seed=0, **settings):
    return scenario_workload(made, own("sia_preempt", settings), seed)


def own(policy, settings):
    return split_settings(find_policy(policy), settings).own


def test_a_job_is_drawn_by_its_id_and_the_seed_alone(made):
    drawn = stoppable(of(made, preemptible_share="0.5"))
    assert stoppable(of(made, preemptible_share="0.5")) == drawn
    assert stoppable(of(made, seed=1, preemptible_share="0.5")) != drawn
    assert stoppable(of(made, preemptible_share="0.25")) < drawn
    half = replace(made, jobs=made.jobs[::2], outcomes=made.outcomes[::2])
    assert stoppable(of(half, preemptible_share="0.5")) == drawn & {job.job_id for job in half.jobs}
    # Nothing else changes.
    told, plain = of(made, preemptible_share="0.5"), [replace(job, preemptible=False) for job in made.jobs]
    assert [replace(job, preemptible=False) for job in told.jobs] == plain
    assert (told.outcomes, told.pools, told.restart_s, told.resume_s) == (made.outcomes, made.pools, 5.0, 2.0)


def test_what_the_trace_says_holds_where_no_share_is_set(made):
    told = of(made, resume_s="60")
    assert told.resume_s == 60.0
    assert stoppable(told) == stoppable(made)
    assert of(made) is made


pytestmark = pytest.mark.usefixtures("untrained")
EPOCH_S = 1.7e9
HEADER = "job_id,pool,submit_time,start_time,end_time,duration,gpus"


def trace_of(rows, **columns):
    """Rows of (pool, submit, start, end, gpus), None where they had not started or ended; seconds from an epoch."""
    pools, *at, gpus = zip(*rows, strict=True)
    submit, start, end = ([None if s is None else EPOCH_S + s for s in column] for column in at)
    duration = [None if e is None else e - s for s, e in zip(start, end, strict=True)]
    times = {"submit_time": submit, "start_time": start, "end_time": end, "duration": duration}
    names = {"job_id": [f"{row:03d}" for row in range(len(rows))], "pool": pools, "gpus": gpus}
    frame = pl.DataFrame({**names, **times, **columns}, schema_overrides=dict.fromkeys(times, pl.Float64), strict=False)
    return Trace.from_frame(frame, name="trace")


def experiment(trace, from_s, gpus=8, **rest):
    return Experiment(trace=trace, cluster=cluster_of(trace, gpus=gpus), from_s=EPOCH_S + from_s, recorded=True, **rest)


def replayed(of, policy, tmp_path):
    return run(of, Ask(policy=policy, home=tmp_path, spec=ORACLE))


JOBS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 120), st.integers(1, 8)), min_size=3, max_size=40)


@given(jobs=JOBS, policy=st.sampled_from(["fcfs", "ssf"]), at_s=st.integers(1, 400))
def test_a_replay_goes_on_from_what_a_replay_recorded(tmp_path_factory, jobs, policy, at_s):
    home = tmp_path_factory.getbasetemp()
    plain = trace_of([("a", submit, submit, submit + run_s, gpus) for submit, run_s, gpus in jobs])
    alone = Experiment(trace=plain, cluster=cluster_of(plain, gpus=8))
    whole = run(alone, Ask(policy=policy, home=home, spec=ORACLE)).log
    rows = zip(whole.submit_s, whole.start_s, whole.end_s, whole.gpus, strict=True)
    recorded = trace_of([("a", *(float(s) - EPOCH_S for s in times), int(gpus)) for *times, gpus in rows])
    left = np.flatnonzero(whole.end_s > EPOCH_S + at_s)
    if not len(left):
        return
    log = replayed(experiment(recorded, at_s), policy, home).log
    assert len(log) == len(left)
    assert log.start_s == pytest.approx(whole.start_s[left], abs=1e-5)
    assert log.end_s == pytest.approx(whole.end_s[left], abs=1e-5)
    assert log.begin_s == EPOCH_S + at_s


ROWS = [
    ("a", 0, 0, 40, 4),  # ended before
    ("a", 10, 20, 120, 4),  # runs at 60
    ("a", 30, 40, None, 2),  # runs, no end yet
    ("a", 50, None, None, 8),  # waits
    ("a", 55, 70, 90, 1),  # waited then
    ("a", 80, None, None, 1),  # comes later
]


def test_who_is_there_by_hand(tmp_path):
    of = experiment(trace_of(ROWS), 60)
    ran = replayed(of, "fcfs", tmp_path)
    scenario = of.scenario("pools")
    assert scenario.job_ids == ("001", "002", "003", "004", "005")
    # 002 has run 80 s when the trace ends at 120 s; of those that ended 001 alone ran longer.
    assert ran.log.duration_s.tolist() == [100.0, 100.0, 40.0, 20.0, 40.0]
    assert (ran.log.start_s - EPOCH_S).tolist() == [20.0, 40.0, 140.0, 180.0, 180.0]
    assert (ran.log.end_s - EPOCH_S).tolist() == [120.0, 140.0, 180.0, 200.0, 220.0]
    assert "began with the jobs of 2023-11-14T22:14:20Z: 2 running, 2 waiting" in scenario.notes
    assert [line.partition(":")[0] for line in of.assumptions("pools")] == [f"{ASSUMED}, those of 3 jobs"]
    # Figures count from the beginning on.
    told = figures(ran.log)
    assert told["makespan_s"] == 160.0
    held = 4 * 60 + 2 * 80 + 8 * 40 + 1 * 20 + 1 * 40
    assert told["utilization"] == pytest.approx(held / (8 * 160))


def test_assumed_run_times_by_hand():
    ended = [("a", 0, 0, run_s, 1) for run_s in (10, 30, 50, 70)] + [("b", 0, 0, 400, 1)]
    rows = [*ended, ("a", 0, 360, None, 1), ("a", 1, None, None, 1), ("a", 2, None, None, 1), ("b", 3, 390, None, 1)]
    rows += [("a", 4, 4, None, 1), ("a", 5, 300, None, 1), ("c", 6, None, None, 1), ("a", 7, 300, None, 1)]
    rows += [("a", 8, 404, None, 1)]
    limits = [None] * 7 + [25.0, None, None, None, None, 60.0, None]
    found = assumed_s(trace_of(rows, time_limit_s=limits), EPOCH_S)[5:]
    assert found.tolist() == [
        60.0,  # has run 44 s at the trace's end, 404 s: median of 50 and 70
        40.0,  # waits: median of all four of its pool
        25.0,  # its limit
        400.0,  # of its pool one has ended
        800.0,  # has run 400 s, as long as anybody: twice that
        400.0,  # has run 104 s: longer than its pool, not than b's
        50.0,  # no job of its pool has ended: of all
        105.0,  # has outlived its limit of 60 s, by 44 s
        40.0,  # has just begun
    ]


def test_what_has_run_counts_at_least_to_the_beginning():
    rows = [("a", 0, 0, 10, 1), ("a", 0, 0, 100, 1), ("a", 0, 0, None, 1)]
    assert assumed_s(trace_of(rows), EPOCH_S + 500)[-1] == 1000.0


def test_held_jobs_are_left_out_and_later_ones_come_when_they_may(tmp_path):
    rows = [*ROWS, ("a", 58, None, None, 1), ("a", 59, 100, 101, 1)]
    eligible = [None] * 7 + [EPOCH_S + 95.0]
    trace = trace_of(rows, priority=[None] * 6 + [0.0, 5.0], eligible_time=eligible)
    of = experiment(trace, 60)
    scenario = of.scenario("pools")
    assert scenario.job_ids == ("001", "002", "003", "004", "005", "007")
    assert scenario.workload.jobs[-1].submit_s == EPOCH_S + 95.0
    assert scenario.dropped == {HELD: 1}


def test_what_runs_for_less_than_lies_between_is_done_in_proportion():
    stopped = trace_of([("a", 0, 0, 10, 1), ("a", 0, 20, 120, 1)])
    stopped = Trace.from_frame(stopped.jobs.with_columns(duration=pl.Series([10.0, 50.0])), name="trace")
    begin = experiment(stopped, 70).scenario("pools").workload.begin
    assert begin.running == {"001": (EPOCH_S + 20.0, 25.0)}


def test_the_past_of_a_run_knows_each_job_once():
    of = experiment(trace_of(ROWS), 60)
    scenario = of.scenario("pools")
    assert [job.job_id for job in earlier_jobs(scenario).jobs] == ["000"]
    history = RunHistory([FLAT_POOL], earlier_jobs(scenario))
    jobs = scenario.workload.jobs
    history.join([(jobs[0], EPOCH_S + 20.0), (jobs[2], np.inf)])
    history.advance(EPOCH_S + 60)
    assert (history.pool(FLAT_POOL).arrival_s - EPOCH_S).tolist() == [0.0, 10.0, 50.0]
    assert (history.pool(FLAT_POOL).start_s - EPOCH_S).tolist() == [0.0, 20.0]
    history.completed(jobs[0], 100.0)
    assert (history.pool(FLAT_POOL).end_s - EPOCH_S).tolist() == [40.0, 60.0]


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"from_s": None}, "needs the instant; add --from"),
        ({"law": "epochs"}, "no progress under --law epochs"),
        ({"max_think_s": 5.0}, "--closed-loop"),
        ({"given": {"locality": "true"}}, "locality"),
    ],
)
def test_what_does_not_go_together_is_refused(how, line):
    refused(ConfigError, line, Experiment, trace=trace_of(ROWS), recorded=True, **{"from_s": EPOCH_S, **how})


def test_what_cannot_be_is_refused(tmp_path):
    trace = trace_of(ROWS)
    with pytest.raises(TraceError, match="jobs of pool all hold 6 GPUs when the run begins, its quota is 5"):
        replayed(experiment(trace_of([row for row in ROWS if row[4] < 8]), 60, gpus=5), "fcfs", tmp_path)
    with pytest.raises(ConfigError, match="policy srpt: policies by rounds begin with an empty cluster"):
        replayed(experiment(trace, 60), "srpt", tmp_path)
    bare = Trace.from_frame(trace.jobs.drop("start_time", "end_time"), name="trace")
    refused(TraceError, "tells no start_time", experiment(bare, 60).scenario, "pools")


def test_the_first_jobs_of_a_window_come_beside_those_that_are_there():
    assert experiment(trace_of(ROWS), 60, limit=1).scenario("pools").job_ids[-1] == "005"
    rows = [*ROWS, ("a", 81, 85, 95, 1)]
    assert experiment(trace_of(rows), 60, limit=1).scenario("pools").job_ids[-1] == "005"


ROWS_OF_FILE = ("a,p,0,0,50,50,1", "b,p,10,50,150,100,1", "c,p,20,150,,,1", "d,p,30,,,,1")
"""One GPU: at 60 s b runs, c and d wait; the trace ends at 150 s, when c has begun."""


def test_simulate_from_the_command_line(shell, csv):
    words = ("--trace", csv(*ROWS_OF_FILE, header=HEADER), "--gpus", "1", "--policy", "fcfs", "--begin", "recorded")
    told = shell.json("simulate", *words, "--from", "60")
    assert (told["jobs"], told["makespan_s"], told["configuration"]["begin"]) == (3, 240.0, "recorded")
    assert told["assumptions"][0].startswith(f"{ASSUMED}, those of 2 jobs")
    rows = shell.json("backtest", *words[:4], "--policies", "fcfs,srpt", *words[6:], "--from", "60")
    assert [row["figures"]["makespan_s"] for row in rows["rows"]] == [240.0]
    assert [one["policy"] for one in rows["skipped"]] == ["srpt"]


def test_predict_jct_from_the_command_line(shell, csv):
    words = ("predict", "jct", "--trace", csv(*ROWS_OF_FILE, header=HEADER), "--gpus", "1", "--policy", "fcfs")
    asked = (*words, "--at", "60", "--job", "c", "--begin", "recorded", "--forecasts", "oracle")
    told = shell.json(*asked)
    assert (told["begin"], told["state"], told["active_jobs"]) == ("recorded", "queued", 3)
    # b runs on until 150 s, c for the median of the ended, 75 s.
    assert told["answers"][0]["point_h"] * 3600 == pytest.approx(90.0 + 75.0)
    assert "--begin recorded: the run begins at --at" in shell.refuses(*asked, "--from", "5")


def test_who_waits_on_the_cluster_is_queued_though_the_policy_would_start_it_at_once(shell, csv):
    words = ("predict", "jct", "--trace", csv(*ROWS_OF_FILE, header=HEADER), "--gpus", "2", "--policy", "fcfs")
    asked = (*words, "--at", "60", "--begin", "recorded", "--forecasts", "oracle")
    told = shell.json(*asked)["jobs"]
    stands = {one["job_id"]: (one["state"], one["started"], one["held_gpus"]) for one in told}
    assert stands == {"c": ("queued", None, 0), "d": ("queued", None, 0), "b": ("running", "1970-01-01T00:00:50Z", 1)}
    assert [one["answers"][0].get("start", {}).get("point_h") for one in told[::2]] == [0, None]
    assert "starts within a minute" in told[0]["text"]
    assert "starts within a minute" in shell.json(*asked, "--job", "c")["text"]


def test_what_is_explained_of_a_run_that_began_amid_things(shell, csv):
    # b (on one GPU of two) runs until 150; c, of both, waits behind it, and d behind c.
    rows = ("b,p,10,50,150,100,1", "c,p,20,200,300,100,2", "d,p,30,180,210,30,1")
    begin = ("--begin", "recorded", "--from", "60")
    words = ("--trace", csv(*rows, header=HEADER), "--gpus", "2", *begin, "--out", "log.csv")
    shell.works("simulate", *words, "--policy", "easy_forecast", "--forecasts", "oracle", "--set", "bf_max_job_test=0")
    explained = {job: shell.json("explain", "--out", "log.csv", "--job", job) for job in "bcd"}
    told = {job: (one["summary"]["started_s"], one["summary"]["fcfs_started_s"]) for job, one in explained.items()}
    assert told == {"b": (50, 50), "c": (150, 150), "d": (60, 250)}
    assert [one["summary"]["verdict"] for one in explained.values()] == ["same", "same", "helped"]
    (wait,) = explained["c"]["waits"]
    assert (wait["from_s"], wait["until_s"], wait["quota_reason"]) == (60, 150, "quota_full")
    assert explained["c"]["while_waiting"]["seconds"] == 90
    assert explained["c"]["summary"]["wait_s"] == 130
    assert "began at 1970-01-01T00:01:00Z with recorded jobs" in explained["b"]["notes"][0]
    asked = ("explain", "--out", "log.csv", "--job")
    as_it_was, narrow = shell.json(*asked, "c", "--what-if", "gpus=1")["what_if"]
    assert (as_it_was["start_s"], as_it_was["wait_s"]) == (150, 130)
    assert (narrow["start_s"], narrow["end_s"]) == (60, 260)
    assert "job b ran when the run began" in shell.refuses(*asked, "b", "--what-if", "gpus=2")


def test_a_run_of_fcfs_amid_things_starts_jobs_as_fcfs_would(shell):
    shell.works("trace", "generate", "campus", "--out", "c.parquet", "--pools-out", "p.csv", *CAMPUS)
    words = ("--pools", "p.csv", "--policy", "fcfs", "--baseline", "none", "--out")
    shell.works("simulate", "--trace", "c.parquet", *words, "ran.csv")
    at = pl.read_csv("ran.csv").filter(pl.col("start_time") > pl.col("submit_time"))["submit_time"].median()
    shell.works("simulate", "--trace", "ran.csv", *words, "log.csv", "--begin", "recorded", "--from", str(at))
    past = ClusterPast(read_run_table(Path("log.csv")))
    assert (past.table.start_s < at).any()
    for pool in range(len(past.table.pools)):
        mine = past.members(pool)
        assert past.fcfs_s(pool)[mine] == pytest.approx(past.table.start_s[mine], abs=1e-3)


CAMPUS = ("--seed", "3", *chain.from_iterable(("--set", one) for one in ("weeks=1", "pools=2", "jobs=300", "widest=4")))
