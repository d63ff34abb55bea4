"""Another configuration of PCS while jobs are there: they keep theirs, or are promised anew. PCS, section 3.2."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.elastic import Preference
from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import replay_elastic
from jobcast.simulator.metrics import figures
from tests.simulator.elastic.elastic_cases import QUEUES, Case, cases, cluster_of, jobs_of

FIFO, SHORT_FIRST = WfqConfig(), WfqConfig((50.0, inf), (0.9, 0.1))


def changing(first, *later, keep=True, whole=False):
    """A policy that goes by other configurations from given instants on."""
    changes = tuple(Preference(at_s, config.numbers(("",), whole=whole)) for at_s, config in later)
    return replace(first.policy(whole=whole), later=changes, keep=keep)


def test_jobs_keep_what_they_were_promised():
    """One GPU. FIFO: 100 s, then 10 s. From 20 s on short ones go first, but behind those two: at 110.

    The last two then share as 9 to 1: 5 s of work end at 110 + 5 / 0.9, what is left of 100 s at 215.
    """
    case = Case(jobs_of([(0, 100, 1), (0, 10, 1), (30, 100, 1), (40, 5, 1)]), cluster_of(1))
    log = replay_elastic(case.run(changing(FIFO, (20.0, SHORT_FIRST))), predict=True)
    assert log.end_s.tolist() == pytest.approx([100.0, 110.0, 215.0, 110 + 5 / 0.9])
    # The old ones are waited for; then a tenth and nine tenths of the GPU are sure.
    assert log.columns["worst_case_end_s"].tolist() == pytest.approx([100.0, 110.0, 1110.0, 110 + 5 / 0.9], rel=1e-5)
    told = figures(log)
    assert (told["promises_made"], told["promises_kept"], told["promises_broken"]) == (4, 4, 0)


def test_promises_are_made_anew():
    """The same at 20 s for all: 10 s of work at nine tenths end at 20 + 10 / 0.9, the long one at 110."""
    case = Case(jobs_of([(0, 100, 1), (0, 10, 1)]), cluster_of(1))
    log = replay_elastic(case.run(changing(FIFO, (20.0, SHORT_FIRST), keep=False)), predict=True)
    assert log.end_s.tolist() == pytest.approx([110.0, 20 + 10 / 0.9])
    assert log.columns["renewed_end_s"].tolist() == pytest.approx([820.0, 20 + 10 / 0.9], rel=1e-5)
    told = figures(log)
    assert (told["promises_made"], told["promises_kept"]) == (2, 0)
    assert (told["promises_remade"], told["promises_broken"]) == (2, 2)


def test_set_preference_is_a_call():
    """By hand in the middle of a run, as planned changes are carried out."""
    case = Case(jobs_of([(0, 100, 1), (0, 10, 1), (30, 100, 1), (40, 5, 1)]), cluster_of(1))
    run = case.run(FIFO.policy())
    run.submit(2)
    run.advance(20.0)
    run.set_preference(SHORT_FIRST.numbers(("",)))
    run.submit(4)
    run.finish()
    assert run.state.end_s.tolist() == pytest.approx([100.0, 110.0, 215.0, 110 + 5 / 0.9])
    with pytest.raises(ConfigError, match="policy srsf: has no preference to set"):
        case.run(make_policy("srsf")).set_preference(SHORT_FIRST.numbers(("",)))


@given(case=cases(), at_s=st.floats(0.0, 200.0), gap_s=st.floats(1.0, 100.0), whole=st.booleans())
def test_kept_promises_are_kept_and_old_jobs_see_nobody(case, at_s, gap_s, whole):
    """With two changes: whoever was there at the first one ends as if nobody had come after it."""
    policy = changing(QUEUES, (at_s, SHORT_FIRST), (at_s + gap_s, FIFO), whole=whole)
    run = case.run(policy)
    log = replay_elastic(run, predict=True)
    promised = np.array([run.worst_cases[job].end_s for job in range(len(log))])
    assert (log.end_s <= promised).all()
    old = int((case.jobs.submit_s < at_s).sum())
    if old:
        alone = case.run(QUEUES.policy(whole=whole))
        alone.submit(old)
        alone.finish()
        assert log.end_s[:old] == pytest.approx(alone.state.end_s[:old], rel=1e-9)
