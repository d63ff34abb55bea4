"""`jobcast simulate` by rounds: training jobs from tables, figures of fairness, options, mistakes."""

import csv as reader

import pytest

pytestmark = pytest.mark.usefixtures("untrained")
HEADER = "job_id,pool,submit_time,duration,gpus,model,batch_size,epochs,adaptation"
RATES = "gpu_type,model,batch_size,gpus,steps_per_second"
# Steps a second that make an epoch of LM's 59,675 samples 60 s long at batch size 10, and 40 s at 20.
FAST, FASTER = 59_675 / 10 / 60.0, 59_675 / 20 / 40.0


@pytest.fixture
def training(csv):
    """Two jobs on one GPU: the first doubles its batch size after two of six epochs (280 s), the second takes 120 s."""
    trace = csv("01,a,0,1000,1,LM,10,6,gns", "02,a,10,1000,1,LM,10,2,static", header=HEADER)
    rates = csv(f"v100,LM,10,1,{FAST!r}", f"v100,LM,20,1,{FASTER!r}", name="rates.csv", header=RATES)
    truth = csv("1,0,10", "1,2,20", name="truth.csv", header="job_id,epoch,batch_size")
    return ("simulate", "--trace", trace, "--gpus", "1", "--set", f"throughputs={rates}", "--set", f"regimes={truth}")


def test_figures_by_hand(shell, training):
    """The second runs in [120, 260): 20 s to start, 120 s; the first 100 s before, and 180 s from 360 + 20 s on."""
    figures = shell.json(*training, "--policy", "srpt", "--forecasts", "oracle", "--out", "done.csv")
    with open("done.csv", encoding="utf-8") as file:
        ends = {row["job_id"]: float(row["end_time"]) for row in reader.DictReader(file)}
    assert ends == {"01": pytest.approx(560.0), "02": pytest.approx(260.0)}
    assert figures["makespan_s"] == pytest.approx(560.0)
    # Two jobs a GPU: 560 / (280 x 2) and 250 / (120 x 2).
    assert figures["worst_ftf"] == pytest.approx(250 / 240)
    assert figures["mean_ftf"] == pytest.approx((1.0 + 250 / 240) / 2)
    assert figures["unfair_pct_105"] == 0.0
    assert figures["baseline"] is None
    assert figures["rounds"] == 5


@pytest.mark.parametrize("forecasts", ["restatement", "bayes", "greedy", "oracle"])
def test_every_source_of_regimes_answers(shell, training, forecasts):
    assert shell.json(*training, "--policy", "srpt", "--forecasts", forecasts)["forecasts"] == forecasts


def test_jobs_without_training_run_by_rounds_too(shell, csv):
    trace = csv("01,a,0,200,1", "02,a,0,100,1")
    figures = shell.json(
        "simulate", "--trace", trace, "--gpus", "1", "--policy", "srpt", "--forecasts", "oracle", "--set", "restart_s=0"
    )
    # The second in [0, 100), the first from the next round on, in [120, 320).
    assert (figures["forecasts"], figures["baseline"]) == ("oracle", "fcfs")
    assert figures["mean_jct_s"] == pytest.approx((100 + 320) / 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "srpt", "--forecasts", "random"), "random: says nothing of regimes"),
        (("--policy", "sia", "--forecasts", "restatement"), "restatement: forecasts regimes, which only training jobs"),
        (("--policy", "srpt", "--set", "mechanism=stage"), "mechanism must be rounds or gavel, got stage"),
        (("--policy", "las", "--set", "noise=0.1"), "setting noise: not known"),
    ],
)
def test_mistakes_get_one_line(shell, training, words, message):
    assert message in shell.refuses(*training, *words)


def test_steps_are_needed_by_the_published_mechanism(shell, csv):
    trace = csv("01,a,0,200,1")
    words = ("simulate", "--trace", trace, "--gpus", "1", "--policy", "gandiva_fair", "--set", "mechanism=gavel")
    assert "counts steps; add --set throughputs=FILE" in shell.refuses(*words)
