"""Jobs that a limit of their account, QOS or user held back, or others of higher priority; what is told of those."""

from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.domain.scheduling_rules import Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.pipelines.experiments.explain.explanation import explain
from jobcast.pipelines.experiments.explain.narration import tell
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.simulator.workload import Workload

RULES = SchedulingRules(
    accounts={"A": Account(), "B": Account(limits=Limits(user_jobs=1))}, qos={"long": Qos(limits=Limits(grp_gpus=3))}
)
# job id, pool, submission, run time, GPUs, account, QOS, user
ROWS = [
    ("b", "p", 10, 500, 3, "A", "long", "u1"),
    ("z", "p", 0, 1000, 1, "A", "long", "u1"),
    ("c", "q", 20, 500, 1, "B", "", "u2"),
    ("d", "p", 30, 100, 4, "B", "", "u2"),
    ("e", "p", 40, 3000, 1, "B", "", "u2"),
]


def told_of(runs, job_id, rows=ROWS, rules=RULES):
    workload = Workload(
        [
            Job(0, name, pool, at, gpus, user=user, requirements=Requirements(account=account, qos=qos))
            for name, pool, at, _, gpus, account, qos, user in rows
        ],
        [Outcome(duration) for _, _, _, duration, *_ in rows],
        [Pool("p", 4), Pool("q", 4)],
        rules=rules,
    )
    return explain(read_run_table(runs.log(workload, "easy")), job_id)


def reasons(told):
    return [(stretch["from_s"], stretch["until_s"], stretch["quota_reason"]) for stretch in told["waits"]]


def test_a_limit_of_a_qos_names_who_holds_gpus_in_it(runs):
    told = told_of(runs, "b")
    assert reasons(told) == [(10, 1000, "limit")]
    said = "a limit held it: QOS long may hold 3 GPUs and held 1 GPU, it needs 3 GPUs: job z (1 GPU, since 1970-01-01"
    assert said in tell(told)
    assert told["slowed"]["limit"]["most_gpus"] == 3


def test_a_limit_of_jobs_reaches_across_pools_and_whoever_it_holds_blocks_nobody(runs):
    told = told_of(runs, "e")
    # Until c is over both d and e are held; then d is the head, for b before it is held until z is over.
    assert reasons(told) == [(40, 520, "limit"), (520, 1000, "behind_others")]
    assert "user u2 in account B may run 1 job at once and ran 1: job c (pool q, 1 GPU, since" in tell(told)
    behind = told["waits"][1]["details"]
    assert (behind["jobs_ahead"], behind["head"]["job_id"]) == (1, "d")


def test_before_a_job_are_those_whose_priority_let_them_start_before_it(runs):
    rows = [("a", "p", 0, 900, 4, "", "", ""), ("low", "p", 10, 600, 4, "", "", "")]
    rows += [(name, "p", at, 600, 4, "", "high", "") for name, at in (("one", 20), ("two", 30))]
    rules = SchedulingRules(weights=PriorityWeights(qos=1000.0), qos={"high": Qos(priority=1.0)})
    first = {name: told_of(runs, name, rows, rules)["waits"][0]["details"] for name in ("low", "one", "two")}
    assert {name: details["jobs_ahead"] for name, details in first.items()} == {"low": 2, "one": 0, "two": 1}
    assert first["low"]["head"]["job_id"] == first["two"]["head"]["job_id"] == "one"
    # Without weights they go by submission.
    assert told_of(runs, "one", rows, SchedulingRules(qos=rules.qos))["waits"][0]["details"]["head"]["job_id"] == "low"
