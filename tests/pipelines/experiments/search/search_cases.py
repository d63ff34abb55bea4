"""A small workload to search on: many small jobs, few large ones, one GPU short of enough."""

import numpy as np

from jobcast.pipelines.experiments.search.evaluation import World, parse_objectives
from jobcast.pipelines.experiments.search.pareto_search import SearchRequest
from jobcast.pipelines.experiments.search.workload_samples import Sampling, Workload
from jobcast.simulator.elastic.run import ElasticCluster
from tests.scenarios import elastic_jobs_of

GPUS = 4.0
NEEDS_PYMOO = "pymoo is not installed: pip install 'jobcast[search]'"


def small_workload(count=120, load=0.9, seed=0):
    rng = np.random.default_rng(seed)
    size_s = rng.lognormal(4, 2, count)
    gaps_s = rng.exponential(np.exp(6.0) / (load * GPUS), count - 1)  # the mean size is e^(4 + 2^2 / 2)
    most = rng.integers(1, 5, count).astype(float)
    submit_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
    jobs = elastic_jobs_of(submit_s, size_s, most, speedup=(0.0, 1.0, 1.8, 2.4, 2.8))
    return Workload(jobs, size_s, GPUS)


def small_world():
    return World(ElasticCluster(np.array([GPUS])))


def small_request(**changed):
    told = {"evaluations": 60, "samples": 2, "test_samples": 2, "sampling": Sampling(80), "seed": 3}
    return SearchRequest(parse_objectives("jct:mean,error:mean"), **(told | changed))
