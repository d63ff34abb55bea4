"""completion-time, job-size and goodput: trained, asked, scored, watched, compared, and believed by policies."""

import numpy as np
import pytest

from jobcast.domain.forecasts import Question
from jobcast.domain.hardware import flat_cluster
from jobcast.live.completion_forecasts import RunTimeDraws
from jobcast.models.goodput import Throughput
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.completion_meters import AtSubmission
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.sources import Ask, earlier_jobs
from jobcast.pipelines.lifecycle.promotion import out_of_bounds
from jobcast.pipelines.lifecycle.standards import LIVES
from jobcast.traces.readers import read_trace
from tests.pipelines.conftest import typed

HEADER = "job_id,pool,submit_time,duration,gpus,min_gpus,user,model"
UNTIL, SECOND = "1970-01-02T12:00:00Z", "1970-01-02T00:00:00Z"
STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time"
NOISE = "app,batch_size,epoch,progress,metric,grad_sqr,grad_var"


def write_stream(path):
    """Three hundred jobs, one every 600 s; those of user long take about 2,000 s, all others about 100 s."""
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(300) % 4 == 0, 2000.0, 100.0) * rng.uniform(0.8, 1.25, 300)
    users = ("long", "short", "short", "short")
    rows = [f"{i},vc,{600 * i},{size:.1f},{1 + i % 2},0,{users[i % 4]},a" for i, size in enumerate(sizes)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")


def write_steps(path, noise):
    """Step times and gradient noise of one application, by a throughput that is known."""
    known = Throughput(0.02, 0.001, 0.1, 0.004, 0.03, 0.002, 2.0)
    rows = [(-(-gpus // 4), gpus, size) for gpus in (1, 2, 3, 4, 8) for size in (16, 32, 64)]
    told = [(*row, float(known.step_s(*row))) for row in rows]
    path.write_text("\n".join([STEPS, *(f"net,{n},{g},{b},{s},{s / 10}" for n, g, b, s in told)]) + "\n")
    curve = [f"net,{size},{epoch},{100 * epoch},0.5,1.0,{epoch}" for size in (16, 64) for epoch in (1, 2, 3)]
    noise.write_text("\n".join([NOISE, *curve]) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A home with two versions of each of the three, and the files that they learnt from."""
    root = tmp_path_factory.mktemp("sizes")
    write_stream(root / "jobs.csv")
    write_steps(root / "steps.csv", root / "noise.csv")
    jobs = [f"{i},vc,{60 * i},60,{1 + i % 2},net" for i in range(6)]
    (root / "scaling.csv").write_text("job_id,pool,submit_time,duration,gpus,model\n" + "\n".join(jobs) + "\n")
    few = (root / "steps.csv").read_text().splitlines()
    (root / "few.csv").write_text("\n".join(line for line in few if ",8," not in line) + "\n")
    for until in (UNTIL, SECOND):
        for name in ("completion-time", "job-size"):
            typed("train", name, "--trace", root / "jobs.csv", "--until", until, home=root / "home")
    for steps in ("few.csv", "steps.csv"):
        typed("train", "goodput", "--trace", root / steps, home=root / "home")
    return root


@pytest.fixture
def shell_home(trained):
    return trained / "home"


@pytest.fixture
def jobs(trained):
    """The option that names the jobs."""
    return ("--trace", trained / "jobs.csv")


def test_they_are_registered_and_served(jobs, shell):
    registry = open_registry(shell.home)
    versions = {(name, number) for name in ("completion-time", "job-size", "goodput") for number in (1, 2)}
    assert {(one.name, one.version) for one in registry.list()} == versions
    shown = shell.json("models", "show", "job-size")
    assert shown["metrics"]["validation/skill"] > 0.5
    again = shell.json("train", "job-size", *jobs, "--until", UNTIL, "--seed", 7)
    assert (again["version"], again["new"]) == (1, False)


def test_sizes_are_forecast_by_who_submits(jobs, shell):
    told = shell.json("evaluate", "job-size", *jobs, "--from", UNTIL)
    assert told["within_2x"] == 1.0
    assert told["skill"] > 0.5
    assert "bootstrap" not in told  # nothing is drawn
    (long,) = shell.json("predict", "job-size", *jobs, "--at", "172900")["jobs"].values()
    assert 1000.0 < long["low_s"] < long["size_s"] < long["high_s"]


def test_policies_go_by_forecast_sizes(jobs, shell):
    place = (*jobs, "--from", UNTIL, "--gpus", 1)
    pinned = shell.json("simulate", *place, "--policy", "srsf", "--forecasts", "registry:job-size=1")
    assert pinned["models"] == {"job-size": 1}
    pins = "registry:job-size=1,registry:job-size=2"
    told = shell.json("backtest", *place, "--policies", "srsf,elastic_fifo", "--forecasts", pins)
    rows = [(row["policy"], row["versions"]) for row in told["rows"]]
    assert rows == [("srsf", {"job-size": 1}), ("srsf", {"job-size": 2}), ("elastic_fifo", {})]
    assert shell.json("simulate", *place, "--policy", "srsf")["models"] == {}
    line = shell.refuses("simulate", *place, "--policy", "srsf", "--forecasts", "random")
    assert "elastic policies go by declared sizes (oracle) or by those of a version of job-size" in line


def test_versions_of_sizes_are_compared_and_watched(jobs, shell):
    promoted = shell.json("models", "promote", "job-size:2", *jobs, "--gpus", 1, "--from", UNTIL, "--force")
    assert promoted["figures"]["figure"] == "mae_log10"
    assert promoted["backtests"]["srsf"]["candidate"]["jobs"] > 0
    shell.works("models", "rollback", "job-size")
    for name in ("job-size", "completion-time"):
        weeks = shell.json("drift", name, *jobs)["weeks"]
        assert weeks[0]["blocks"]["jobs"]["coverage_90"] > 0.5


def test_completions_by_a_version(jobs, trained, shell):
    place = (*jobs, "--gpus", 2, "--policy", "srsf", "--futures", 10)
    told = shell.json("evaluate", "completion-time", *place, "--every-job", 20)
    assert (told["predictor"], told["version"], told["overlap_allowed"]) == ("completion-time", 1, False)
    assert told["coverage_90_pct"] > 50.0
    line = shell.refuses("evaluate", "completion-time", *place, "--from", SECOND)
    assert "was trained on data until" in line
    asked = ("--at", "172900", "--job", "288")
    one = shell.json("predict", "completion-time:2", *place, *asked)
    assert one["version"] == 2
    assert one["answers"][0]["p5_h"] < one["answers"][0]["p95_h"]
    assert shell.json("predict", "jct:2", *place, *asked)["answers"] == one["answers"]
    alone = shell.json("predict", "completion-time", *jobs, "--at", "172900")
    assert list(alone["jobs"]) == ["288"]
    figures = shell.json("evaluate", "completion-time", *jobs, "--from", UNTIL)
    assert figures["coverage_90"] > 0.7


def test_simulations_have_intervals_where_a_version_is_pinned(jobs, trained, shell):
    place = (*jobs, "--gpus", 2, "--from", UNTIL, "--policy")
    pins = ("--baseline", "none", "--predict", "--forecasts", "registry:completion-time=1")
    assert "no model '" in shell.refuses("simulate", *place, "ssf", *pins)
    assert "jobs declare their work" in shell.refuses("simulate", *place, "srsf", *pins)
    trace, model = read_trace(trained / "jobs.csv"), open_registry(shell.home).resolve("completion-time", 1)
    model = open_registry(shell.home).load(model)
    experiment = Experiment(trace=trace, cluster=flat_cluster(2), from_s=129600.0)
    draws = RunTimeDraws(earlier_jobs(experiment.scenario("pools")), 20, 0, model)
    watch = AtSubmission(draws=draws, tracker=model.tracker())
    log = run(experiment, Ask(policy="fcfs", home=shell.home, spec=ORACLE, watching=(watch,))).log
    low_s, high_s = log.columns["predicted_jct_low_s"], log.columns["predicted_jct_high_s"]
    assert (low_s < high_s).all()
    assert ((low_s <= log.jct_s) & (log.jct_s <= high_s)).mean() > 0.7


def test_a_trace_without_a_past_has_the_versions(jobs, shell):
    """Where nothing has ended before the first job, a version's own jobs are drawn from."""
    place = (*jobs, "--gpus", 1, "--policy", "srsf", "--futures", 20)
    asked = ("--at", "10", "--job", "0")
    told = shell.json("predict", "completion-time", *place, *asked)
    assert told["overlap"] is True
    assert told["answers"][0]["p50_h"] > 0


@pytest.mark.parametrize("name", ["completion-time", "job-size"])
def test_a_window_in_which_no_job_ended_has_nothing_to_score(jobs, shell, name):
    """The job of 13:30 takes some 100 s."""
    window = ("--from", "1970-01-02T13:30:00Z", "--until", "1970-01-02T13:30:30Z")
    line = shell.refuses("evaluate", name, *jobs, *window)
    assert line == "jobs: no job of the window ended in it; widen --from and --until"
    assert shell.json("evaluate", name, *jobs, *window[:3], "1970-01-02T13:40:00Z")["n"] == 1


@pytest.mark.parametrize("name", ["completion-time", "job-size", "regime"])
@pytest.mark.parametrize("asked", [("--without", "vc"), ("--draws", 20), ("--smoothing",)])
def test_what_an_evaluation_does_not_do_is_refused(jobs, shell, name, asked):
    """Figures without a pool would be those of all, intervals would be none."""
    line = shell.refuses("evaluate", name, *jobs, *asked)
    assert line == f"{asked[0]}: does not go with the predictor {name}; leave it out"


def test_completions_are_gated_by_coverage_and_pinball_loss(jobs, shell):
    asked = (*jobs, "--gpus", 1, "--allow-overlap", "--force")
    gate = shell.json("models", "promote", "completion-time:2", *asked)
    (block,) = gate["figures"]["blocks"].values()
    assert gate["figures"]["figure"] == "pinball"
    assert {"pinball", "coverage_90", "mae_log10"} <= set(block["candidate"])
    shell.works("models", "rollback", "completion-time")


def test_a_version_whose_intervals_hold_fewer_is_refused():
    told = {"blocks": {"jobs": {"candidate": {"coverage_90": 0.80}, "champion": {"coverage_90": 0.90}}}}
    life = LIVES[Question.COMPLETIONS]
    assert out_of_bounds(life, told) == ["90 % intervals hold 80.0 % of the run times against 90.0 %"]
    told["blocks"]["jobs"]["candidate"]["coverage_90"] = 0.88
    assert out_of_bounds(life, told) == []


def test_goodput_by_a_version(trained, shell):
    told = shell.json("evaluate", "goodput:2", "--trace", trained / "steps.csv")
    assert told["mape"] < told["rule_mape"]
    # The first version has not seen eight GPUs.
    for version, learnt in ((1, "12 of 15 steps"), (2, "15 of 15 steps")):
        notes = shell.json("evaluate", f"goodput:{version}", "--trace", trained / "steps.csv")["notes"]
        assert [note.split(" are ")[0] for note in notes] == [learnt]
    steps = shell.json("predict", "goodput", "--trace", trained / "few.csv")["steps"]
    assert {step["gpus"] for step in steps} == {1.0, 2.0, 3.0, 4.0}
    assert all(step["low_s"] <= step["step_s"] <= step["high_s"] for step in steps)
    tables = (f"--set=step_times={trained / 'steps.csv'}", f"--set=training_curves={trained / 'noise.csv'}")
    place = ("--trace", trained / "scaling.csv", "--gpus", 4, "--policy", "pollux", *tables)
    pinned = shell.json("simulate", *place, "--forecasts", "registry:goodput=1")
    assert (pinned["models"], pinned["forecasts"]) == ({"goodput": 1}, "registry:goodput=1")
    assert "goodput is as measured" in shell.refuses("simulate", *place, "--forecasts", "random")
    gate = shell.json("models", "promote", "goodput:2", "--trace", trained / "steps.csv", "--force")
    assert gate["figures"]["figure"] == "mape"
    shell.works("models", "rollback", "goodput")
