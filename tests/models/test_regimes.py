"""Rules in closed form; values by hand from Shockwave, section 5."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.evaluation.regimes import TINY, Scores, compare_rules, jittered, knowing, score_regimes
from jobcast.models.regimes import REGIME_RULES, Greedy, RegimePrior, Restatement, StandardBayes
from jobcast.models.regimes.ahead import mean_regimes, running, shortest
from jobcast.models.regimes.guarded import ServedRegimePrior
from jobcast.models.regimes.numbers import NOTHING_KNOWN, Piece, survival
from jobcast.models.regimes.trajectories import ADAPTATIONS, Accordion, Gns, progress_at, sizes_ahead
from tests.shared import kept, refused

EPOCH_S = {16: 60.0, 32: 40.0, 64: 30.0}


def training(mode="gns", first=16, epochs=60, most=None):
    return Training("ResNet-18", first, epochs, mode, EPOCH_S, most)


def at(*lengths, sizes=(16, 32, 64)):
    return Progress(sum(lengths), tuple(map(Regime, sizes, lengths)))


def test_gns_doubles_up_to_the_largest_size_and_never_shrinks():
    assert sizes_ahead(training(), Gns(), (16,), 9) == (32, 64)
    assert Gns().following(training(), (16, 32, 64)) is None
    assert Gns().most_regimes(training()) == 3


def test_accordion_alternates_between_its_two_sizes():
    assert sizes_ahead(training("accordion"), Accordion(), (16,), 4) == (64, 16, 64)
    assert Accordion().most_regimes(training("accordion")) == 2
    assert Accordion().following(training("accordion", first=64), (64,)) is None
    assert Accordion().most_regimes(training("accordion", first=64)) == 1


def test_restatement_before_the_first_change():
    left = Restatement().left(training(), at(0.0))
    assert left == (Regime(16, 20.0), Regime(32, 20.0), Regime(64, 20.0))


def test_restatement_after_a_completed_regime():
    """Dir(m_1, S, S) with m_1 = 10, S = (60 - 10) / 2 = 25."""
    assert Restatement().trajectory(training(), at(10.0, 5.0)) == (Regime(16, 10.0), Regime(32, 25.0), Regime(64, 25.0))


def test_running_regime_is_at_least_as_long_as_observed():
    assert Restatement().left(training(), at(40.0)) == (Regime(16, 0.0), Regime(32, 10.0), Regime(64, 10.0))


def test_more_regimes_than_expected_extend_k():
    left = Restatement().left(training("accordion"), at(20.0, 20.0, 5.0, sizes=(16, 64, 16)))
    assert left == (Regime(16, 15.0),)


def test_declared_number_of_regimes_is_k():
    assert Restatement().left(training(most=2), at(0.0)) == (Regime(16, 30.0), Regime(32, 30.0))
    assert Restatement().left(training(most=1), at(3.0)) == (Regime(16, 57.0),)


def test_standard_bayes_counts_epochs():
    """Dir(20 + 10, 20 + 5, 20) of 60 epochs: 60 / 75 of each."""
    assert StandardBayes().trajectory(training(), at(10.0, 5.0)) == (
        Regime(16, pytest.approx(24.0)),
        Regime(32, pytest.approx(20.0)),
        Regime(64, pytest.approx(16.0)),
    )


def test_greedy_keeps_the_present_size():
    assert Greedy().left(training(), at(10.0, 5.0)) == (Regime(32, 45.0),)


def test_own_rule_of_a_user():
    class Once:
        def most_regimes(self, training):
            return 2

        def following(self, training, sizes):
            return 64 if len(sizes) == 1 else None

    rules = {**ADAPTATIONS, "own": Once()}
    assert Restatement(rules).left(training("own"), at(0.0)) == (Regime(16, 30.0), Regime(64, 30.0))
    assert Restatement().left(training("own"), at(0.0)) == (Regime(16, 60.0),)


def test_own_rule_must_go_on_to_a_profiled_size():
    class Wild:
        def most_regimes(self, training):
            return 2

        def following(self, training, sizes):
            return 48

    with pytest.raises(RegistryError, match="mode own: goes on to batch size 48"):
        Restatement({"own": Wild()}).left(training("own"), at(0.0))


@pytest.mark.parametrize("rule", REGIME_RULES.values())
def test_refuses_a_job_that_trains_nothing(rule):
    refused(RegistryError, "job 7: is no training job", rule().regimes, Job(0, "7", "a", 0.0, 1), at(0.0))


@given(
    mode=st.sampled_from(["static", "accordion", "gns", "else"]),
    first=st.sampled_from([16, 32, 64]),
    parts=st.lists(st.floats(0.1, 20.0), min_size=1, max_size=3),
    share=st.floats(0.0, 1.0),
    most=st.sampled_from([None, 1, 2, 5]),
)
def test_what_is_left_adds_up(mode, first, parts, share, most):
    job = Job(0, "0", "a", 0.0, 1, training=training(mode, first, 60, most))
    sizes = [first, *(size for size in (16, 32, 64) if size != first)]
    truth = [Regime(size, 60 * part / sum(parts)) for size, part in zip(sizes, parts, strict=False)]
    progress = progress_at(truth, 60 * share)
    for rule in REGIME_RULES.values():
        left = rule().regimes(job, progress)
        assert sum(regime.epochs for regime in left) == pytest.approx(60 - progress.epochs, abs=1e-9)
        assert left[0].batch_size == progress.batch_size
        assert all(regime.epochs >= 0 and regime.batch_size in EPOCH_S for regime in left)


# The learned prior: what it learns from generated jobs, its updates, and how it is kept.

SIZES = (16, 32, 64)
STEPS, FEW = 4000, 450
"""Steps of learning; few need no C compiler, and are enough for all but the numbers themselves."""


def finished(jobs, seed):
    """Accordion at 30 % of the epochs, gns after 12 and 15 epochs, a model that never changes; sigma 0.2."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(jobs):
        kind, epochs = int(rng.integers(3)), int(rng.integers(60, 300))
        model = ("A", "B", "still")[kind]
        training = Training(model, 16, epochs, "gns" if kind == 1 else "accordion", EPOCH_S)
        lengths = ([0.3 * epochs], [12.0, 15.0], [])[kind]
        lengths = [length * float(np.exp(0.2 * rng.standard_normal())) for length in lengths]
        sizes = ((16, 64), SIZES, (16,))[kind]
        found.append((training, tuple(map(Regime, sizes, [*lengths, epochs - sum(lengths)]))))
    return found


def learned(steps):
    return RegimePrior(seed=1, steps=steps, calibration="open").fit(finished(120, 0), 5.0, 9.0)


@pytest.fixture(scope="module")
def prior():
    return learned(FEW)


def job_of(training, seq=0):
    return Job(seq, str(seq), "a", 0.0, 1, training=training)


@pytest.mark.slow
def test_learns_when_each_kind_changes():
    prior = learned(STEPS)
    start = Progress(0.0, (Regime(16, 0.0),))
    accordion = prior.left(Training("A", 16, 200, "accordion", EPOCH_S), start)
    assert accordion[0].epochs == pytest.approx(60, rel=0.15)
    gns = prior.left(Training("B", 16, 250, "gns", EPOCH_S), start)
    assert [regime.batch_size for regime in gns] == [16, 32, 64]
    first, second, *_ = prior.numbers_["gns", "B", "16"].pieces
    assert (first.kind, second.kind) == ("epochs", "epochs")
    assert first.middle == pytest.approx(12, rel=0.25)
    assert second.middle == pytest.approx(15, rel=0.25)


def test_unseen_batch_size_and_model_fall_back(prior):
    start = Progress(0.0, (Regime(32, 0.0),))
    of_model = prior.left(Training("A", 32, 200, "accordion", EPOCH_S), start)
    assert 0.15 * 200 < of_model[0].epochs < 0.5 * 200
    of_mode = prior.left(Training("new", 32, 200, "accordion", EPOCH_S), start)
    assert 0.0 < of_mode[0].epochs < 200.0


def test_beats_restatement_on_jobs_that_it_has_not_seen(prior):
    later = finished(60, 7)
    jobs = [job_of(training, seq) for seq, (training, _) in enumerate(later)]
    rules = compare_rules({"prior": prior, "restatement": Restatement()}, jobs, [t for _, t in later])["all"]["rules"]
    assert rules["prior"]["misplaced"] < 0.5 * rules["restatement"]["misplaced"]
    assert rules["prior"]["total_accuracy"] > 97
    assert 80 <= rules["prior"]["coverage_open"] <= 99


@pytest.mark.slow
def test_same_seed_same_bytes_and_same_answers(prior, tmp_path):
    assert kept(prior, tmp_path / "a") == kept(learned(FEW), tmp_path / "b")
    read = RegimePrior.load(tmp_path / "a")
    job, progress = job_of(Training("B", 16, 90, "gns", EPOCH_S)), Progress(4.0, (Regime(16, 4.0),))
    assert read.remaining_time(job, progress) == prior.remaining_time(job, progress)
    assert (read.trained_from_s_, read.trained_until_s_, read.jobs_) == (5.0, 9.0, 120)


def test_a_bar_in_a_models_name_is_kept(prior, tmp_path):
    named = RegimePrior.read(prior.as_dict())
    named.numbers_ = {(*key[:1], *(f"{part}|7%7C" for part in key[1:])): one for key, one in prior.numbers_.items()}
    named.trained_from_s_ = named.trained_until_s_ = 0.0
    named.save(tmp_path)
    assert RegimePrior.load(tmp_path).numbers_ == named.numbers_


def test_intervals_widen_with_the_level_and_hold_the_mean(prior):
    job, progress = job_of(Training("A", 16, 200, "accordion", EPOCH_S)), Progress(20.0, (Regime(16, 20.0),))
    half, most = (prior.remaining_time(job, progress, level) for level in (0.5, 0.9))
    assert most.low_s <= half.low_s <= half.mean_s <= half.high_s <= most.high_s
    assert most.mean_s == pytest.approx(job.training.run_time_s(prior.regimes(job, progress)))


def test_declared_number_of_regimes_ends_it(prior):
    training = Training("B", 16, 90, "gns", EPOCH_S, max_regimes=1)
    assert prior.left(training, Progress(4.0, (Regime(16, 4.0),))) == (Regime(16, 86.0),)


def test_served_rows(prior):
    served = ServedRegimePrior(prior)
    answer = served.predict(served.example())
    assert list(answer.columns) == list(served.outputs)
    assert answer["low_s"][0] <= answer["remaining_s"][0] <= answer["high_s"][0]
    bad = served.example().assign(regimes="[]")
    refused(RegistryError, "at least one batch size", served.predict, bad)


@given(
    which=st.sampled_from([("A", "accordion"), ("B", "gns"), ("still", "accordion"), ("new", "gns"), ("x", "else")]),
    epochs=st.integers(1, 2000),
    cut=st.floats(0.001, 0.999),
    share=st.floats(0.0, 1.0),
)
def test_what_is_left_adds_up_by_the_prior(prior, which, epochs, cut, share):
    training = Training(which[0], 16, epochs, which[1], EPOCH_S)
    truth = (Regime(16, cut * epochs), Regime(32, (1 - cut) * epochs))
    progress = progress_at(truth, share * epochs)
    left = prior.regimes(job_of(training), progress)
    assert sum(regime.epochs for regime in left) == pytest.approx(max(0.0, epochs - progress.epochs), abs=1e-6)
    assert left[0].batch_size == progress.batch_size
    assert all(regime.epochs >= 0 and regime.batch_size in EPOCH_S for regime in left)
    time = prior.remaining_time(job_of(training), progress)
    assert 0 <= time.low_s <= time.mean_s <= time.high_s


def test_jobs_that_cannot_change_teach_nothing():
    static = [(Training("A", 16, 10, "static", EPOCH_S), (Regime(16, 10.0),))]
    refused(TrainingError, "no job could change", lambda: RegimePrior().fit(static))


def test_unknown_calibration():
    refused(RegistryError, "choose from open, all", RegimePrior, calibration="none")


def test_truncated_beta_by_hand():
    """Beta(2, 1) has density 2x: above 1/2 it holds 3/4, with mean (2/3)(1 - 1/8) / (3/4) = 7/9."""
    exceeds, mean = survival(2.0, 1.0, 0.5)
    assert exceeds == pytest.approx(0.75)
    assert mean == pytest.approx(7 / 9)
    assert survival(2.0, 1.0, 1.0)[0] == 0.0


def test_posterior_of_the_last_regime_by_hand():
    """Even odds before, a uniform share, half of the epochs over: (1/2 x 1/2) / (1/2 x 1/2 + 1/2) = 1/3."""

    class Even:
        def piece(self, order):
            return Piece("shares", 0.5, 2.0)

        def follows(self, order):
            return 0.5

    follows, mean = running(Even(), 0, 100.0, 50.0)
    assert follows == pytest.approx(1 / 3)
    assert mean == pytest.approx(75.0)
    training, progress = Training("A", 16, 100, "accordion", EPOCH_S), Progress(50.0, (Regime(16, 50.0),))
    left = mean_regimes(training, progress, Even(), (64,))
    assert [regime.epochs for regime in left] == pytest.approx([50 - 25 / 3, 25 / 3])


def test_epochs_and_shares_as_beta():
    a, b = Piece("epochs", 10.0, 0.5).beta(40.0)
    assert a / (a + b) == pytest.approx(0.25)
    assert 1 / a + 1 / b == pytest.approx(0.5**2)
    assert Piece("epochs", 50.0, 0.5).mean(40.0) == 0.9


def test_shortest_interval_is_the_atom_where_it_holds_enough():
    assert shortest(np.array([1.0, 5.0, 9.0]), np.array([0.04, 0.92, 0.04]), np.array([0.9])) == (5.0, 5.0)


def test_nothing_known_is_even():
    assert NOTHING_KNOWN.goes_on(0, 4.0) == pytest.approx(0.5)


# Scores of regimes, by hand.

TWO_SIZES_S = {16: 60.0, 64: 30.0}
TRUTH = (Regime(16, 30.0), Regime(64, 70.0))
JOB = Job(0, "0", "a", 0.0, 1, training=Training("A", 16, 100, "accordion", TWO_SIZES_S))


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
