"""Scores of regimes, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.jobs import Job
from jobcast.domain.training import Regime, Training
from jobcast.models.evaluation.regimes import TINY, Scores, compare_rules, jittered, knowing, score_regimes
from jobcast.models.regimes import REGIME_RULES, Greedy, Restatement

EPOCH_S = {16: 60.0, 64: 30.0}
TRUTH = (Regime(16, 30.0), Regime(64, 70.0))
JOB = Job(0, "0", "a", 0.0, 1, training=Training("A", 16, 100, "accordion", EPOCH_S))


def test_scores_by_hand():
    """Forecast 50 + 50 of 30 + 70: off by 20 each; 4500 s of 3900 s; nothing was run yet."""
    scores = score_regimes(Restatement(), [JOB], [TRUTH], points=(0,))
    assert scores.regime_error.tolist() == [[20.0]]
    assert scores.misplaced.tolist() == [[20.0]]
    assert scores.total[0, 0] == pytest.approx(100 - 100 * 600 / 3900)
    assert scores.remaining[0, 0] == pytest.approx(100 - 100 * 600 / 3900)
    assert np.isnan(scores.covered).all()


def test_remaining_time_by_hand():
    """Greedy at 20 %: 80 epochs of 60 s forecast, 10 of 60 s and 70 of 30 s are left."""
    scores = score_regimes(Greedy(), [JOB], [TRUTH], points=(20,))
    assert scores.remaining[0, 0] == pytest.approx(100 - 100 * (4800 - 2700) / 2700)
    assert scores.misplaced[0, 0] == pytest.approx(70.0)
    assert scores.regime_error[0, 0] == pytest.approx(70.0)


class Guess:
    """Forecasts one course, and an interval of what is left around what is truly left."""

    def __init__(self, low_s, high_s, course=TRUTH):
        self.low_s, self.high_s, self.course, self.levels = low_s, high_s, course, set()

    def trajectory(self, training, progress):
        return self.course

    def remaining_time(self, job, progress, level):
        self.levels.add(level)
        left_s = 3900.0 - JOB.training.run_time_s(progress.regimes)
        return SimpleNamespace(low_s=left_s + self.low_s, high_s=left_s + self.high_s)


@pytest.mark.parametrize(
    ("low_s", "high_s", "covered"),
    [(-39.0, 78.0, 1.0), (0.003, 10.0, 1.0), (0.005, 10.0, 0.0), (-10.0, -0.003, 1.0), (-10.0, -0.005, 0.0)],
)
def test_intervals_hold_what_is_left_but_for_a_millionth_of_the_run_time(low_s, high_s, covered):
    rule = Guess(low_s, high_s)
    scores = score_regimes(rule, [JOB], [TRUTH], points=(0, 50))
    assert scores.covered.tolist() == [[covered, covered]]
    assert scores.width[0] == pytest.approx(100 * (high_s - low_s) / 3900)
    assert rule.levels == {0.9}


def test_figures_of_intervals_by_hand():
    """Of three points one interval is missed, one is open and holds, one is a point and holds."""
    held, width = np.array([[0.0, 1.0, 1.0]]), np.array([[2.0, 100.5 * TINY, 100 * TINY]])
    means = np.array([[1.0, 2.0, 6.0]])
    told = Scores(means, 2 * means, 3 * means, 4 * means, held, width).figures(np.array([True]))
    assert told == {
        "regime_error": 3.0,
        "misplaced": 6.0,
        "total_accuracy": 9.0,
        "remaining_accuracy": 12.0,
        "coverage": pytest.approx(200 / 3),
        "open": pytest.approx(200 / 3),
        "coverage_open": 50.0,
    }
    sure = Scores(means, means, means, means, held, 0.0 * width).figures(np.array([True]))
    assert (sure["open"], sure["coverage_open"]) == (0.0, None)


def test_a_forecast_below_the_time_spent_leaves_nothing():
    scores = score_regimes(Guess(0.0, 0.0, (Regime(16, 10.0),)), [JOB], [TRUTH], points=(50,))
    assert scores.remaining.tolist() == [[0.0]]
    assert scores.total[0, 0] == pytest.approx(100 - 100 * 3300 / 3900)


def test_groups_of_jobs():
    still = Job(1, "1", "a", 0.0, 1, training=JOB.training)
    found = compare_rules({"greedy": Greedy()}, [JOB, still], [TRUTH, (Regime(16, 100.0),)])
    assert (found["all"]["jobs"], found["changing"]["jobs"]) == (2, 1)
    assert found["all"]["rules"]["greedy"]["misplaced"] == pytest.approx(
        found["changing"]["rules"]["greedy"]["misplaced"] / 2
    )
    assert len(found["all"]["rules"]["greedy"]["by_progress"]["total"]) == 20


def test_jitter_keeps_the_epochs_and_spares_a_single_regime():
    rng = np.random.default_rng(0)
    drawn = [jittered(TRUTH, 0.3, rng) for _ in range(400)]
    assert all(sum(regime.epochs for regime in one) == pytest.approx(100) for one in drawn)
    odds = np.log([one[0].epochs / one[1].epochs for one in drawn])
    assert odds.mean() == pytest.approx(np.log(30 / 70), abs=0.05)
    assert odds.std() == pytest.approx(0.3, abs=0.04)
    assert jittered((Regime(16, 9.0),), 0.3, rng) == (Regime(16, 9.0),)


def test_ordering_on_the_published_trace(published):
    """K known: restatement, greedy, standard Bayes; K an upper bound: greedy first."""
    from jobcast.pipelines.lifecycle.recipes.regimes import training_jobs
    from jobcast.traces.readers import read_trace

    folder = published / "shockwave"
    given = {
        "throughputs": str(folder / "throughputs_tacc.csv"),
        "regimes": str(folder / "regimes_120_planned.csv"),
        "jitter": "0.3",
    }
    jobs, truth = training_jobs(read_trace(folder / "120_jobs.trace", format="shockwave"), given, 1)
    rules = {name: rule() for name, rule in REGIME_RULES.items()}
    known = compare_rules(rules, knowing(jobs, truth), truth)["all"]["rules"]
    upper = compare_rules(rules, jobs, truth)["all"]["rules"]
    assert len(jobs) == 116
    assert sorted(known, key=lambda rule: known[rule]["regime_error"]) == ["restatement", "greedy", "bayes"]
    assert sorted(upper, key=lambda rule: upper[rule]["regime_error"]) == ["greedy", "restatement", "bayes"]
