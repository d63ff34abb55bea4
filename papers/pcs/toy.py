"""Four jobs on one GPU: the toy by which PCS, section 2.2, tells FIFO, Tiresias and Themis apart, as published."""

import numpy as np

from jobcast.domain.elastic import ElasticJobs
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from papers.pcs.runs import cut

SUBMIT = (0.0, 0.0, 1.0, 10.0)
SIZES = (10.0, 8.0, 1.0, 8.0)
"""The text prints none; these are of the published figure's data, `data/fig1/fig1a.json`."""
LEASE = 1.0  # PCS, footnote 1
POLICIES = {"srsf": "Tiresias (SRSF)", "elastic_themis": "Themis", "elastic_fifo": "FIFO"}
"""In the order of the figure's rows."""


def toy_jobs() -> ElasticJobs:
    """The four jobs; a unit of time is a second."""
    count = len(SIZES)
    ones, none = np.ones(count), np.zeros(count)
    return ElasticJobs(
        submit_s=np.array(SUBMIT),
        size_s=np.array(SIZES),
        least=none,
        most=ones,
        model=np.zeros(count, dtype=np.int64),
        stage_of=np.arange(count + 1),
        stage_end=ones,
        stage_most=ones,
        speedup=np.array([[[0.0, 1.0], [0.0, 1.0]]]),
        speed=np.ones((1, 1)),
    )


def play_toy(policy: str, arrived: int = len(SIZES)) -> RunLog:
    """The first `arrived` jobs under a policy, to their end, each with the forecast made at its submission."""
    settings = {"lease_s": str(LEASE)} if policy == "elastic_themis" else {}
    jobs = cut(toy_jobs(), arrived)
    rule = make_policy(policy, None, settings)
    return replay_elastic(ElasticReplay(jobs, jobs.size_s, ElasticCluster(np.ones(1)), rule), predict=True)


def expected_ends(policy: str) -> list[list[float]]:
    """Completions of all jobs that have arrived as expected at each arrival; row k has k + 1 of them."""
    return [play_toy(policy, arrived).end_s.tolist() for arrived in range(1, len(SIZES) + 1)]
