"""Rules in closed form; values by hand from Shockwave, section 5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes import REGIME_RULES, Greedy, Restatement, StandardBayes
from jobcast.models.regimes.trajectories import ADAPTATIONS, Accordion, Gns, progress_at, sizes_ahead

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
    with pytest.raises(RegistryError, match="job 7: is no training job"):
        rule().regimes(Job(0, "7", "a", 0.0, 1), at(0.0))


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
