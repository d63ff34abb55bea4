"""MLFS's workload: what section 4.1 says, measured in what is drawn."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jobcast.domain.tasks import OPT_STOP, TARGET_ONLY
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.generators.mlfs_curves import SHAPES, spread_of_error
from jobcast.traces.generators.mlfs_tasks import ALGORITHMS, graph_of

UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be
WEEK_S, HOUR_S = 604800.0, 3600.0
MICROSECOND_S = 1e-6


@pytest.fixture(scope="module")
def drawn():
    """The paper's workload without a trace: canonical trace, tasks, curves."""
    return generate("mlfs", 1, {"jobs": 620})[0], *generate_tasks("mlfs", 1, {"jobs": 620})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Four weeks and a day of 300 jobs a week, run times by the week: 1000 s and the week's number more."""
    rows = [f"{at},p,{at * WEEK_S / 300},{1000 + at // 300},1" for at in range(1243)]
    path = tmp_path_factory.mktemp("mlfs") / "jobs.csv"
    path.write_text("\n".join(["job_id,pool,submit_time,duration,gpus", *rows]) + "\n")
    return str(path)


def longest_path(compute, edge_from, edge_to):
    """Seconds along the longest path of a job, without what is exchanged at the end: edges to earlier tasks."""
    ends = compute.copy()
    for task in range(len(compute)):
        before = edge_from[(edge_to == task) & (edge_from < task)]
        ends[task] += max((ends[other] for other in before), default=0.0)
    return ends.max()


def jobs_of(table):
    """(slice of tasks, edge_from, edge_to within the job, volumes) of each job."""
    for row in range(len(table.job_ids)):
        first, after = table.task_of[row], table.task_of[row + 1]
        edges = slice(table.edge_of[row], table.edge_of[row + 1])
        yield (
            slice(first, after),
            table.edge_from[edges] - first,
            table.edge_to[edges] - first,
            table.volume_mb[edges],
        )


def test_graph_of_a_sequence_with_a_parameter_server():
    graph = graph_of(partitions=2, width=1, replicas=2, server=True, rng=np.random.default_rng(0))
    assert list(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True)) == [
        *((0, 1), (1, 4), (2, 3), (3, 4), (4, 1), (4, 3)),
    ]
    assert graph.to_server.tolist() == [False, True, False, True, True, True]
    assert graph.units == pytest.approx(1.0)  # all partitions, one after another
    assert graph.hops == 3  # 0 -> 1 -> server -> 1


def test_graph_of_layers_with_a_ring():
    graph = graph_of(partitions=4, width=2, replicas=2, server=False, rng=np.random.default_rng(0))
    assert list(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True)) == [
        *((0, 2), (0, 3), (1, 2), (1, 3)),  # each part feeds all parts of the next layer
        *((4, 6), (4, 7), (5, 6), (5, 7)),
        *((6, 2), (7, 3)),  # from the second replica to the first, at the iteration's end
    ]
    assert not graph.to_server.any()
    share = graph.size_share
    assert graph.units == pytest.approx(share[:2].max() + share[2:4].max())
    assert graph.hops == 2
    np.testing.assert_array_equal(share[:4], share[4:])


def test_a_single_worker_sends_to_none_but_a_server():
    rng = np.random.default_rng(0)
    assert graph_of(1, 1, 1, False, rng).edge_from.size == 0
    both = graph_of(1, 1, 1, True, rng)
    assert both.edge_from.tolist() == [0, 1]
    assert both.edge_to.tolist() == [1, 0]


@given(
    layers=st.integers(1, 5),
    width=st.integers(1, 4),
    replicas=st.integers(1, 5),
    server=st.booleans(),
    seed=st.integers(0, 99),
)
def test_graphs_have_no_cycle_and_hang_together(layers, width, replicas, server, seed):
    graph = graph_of(layers * width, width, replicas, server, np.random.default_rng(seed))
    workers = layers * width * replicas
    assert len(graph.size_share) == workers + server
    assert len(set(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True))) == len(graph.edge_from)
    assert graph.size_share.sum() == pytest.approx(replicas)
    path = longest_path(graph.size_share, graph.edge_from, graph.edge_to)
    assert path == pytest.approx(graph.units)
    steps = longest_path(np.ones(workers + server), graph.edge_from, graph.edge_to)
    assert graph.hops == steps - 1 + (server or replicas > 1)  # and the exchange
    if layers > 1 or width == 1 or server:  # else the parts of the one layer only meet their like in other replicas
        linked = {0}
        for _ in range(workers + 1):
            for one, other in zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True):
                linked |= {one, other} if linked & {one, other} else set()
        assert linked == set(range(workers + server))


def test_the_offered_load_is_what_is_set(drawn):
    trace, tasks, _ = drawn
    gpu = np.add.reduceat(tasks.demand[:, 0], tasks.task_of[:-1])
    assert gpu @ trace.duration_s / WEEK_S / 80 == pytest.approx(0.25, rel=1e-4)  # durations are rounded
    assert trace.duration_s.min() >= 60.0
    assert trace.duration_s.max() <= 24 * HOUR_S


def test_run_times_are_those_of_the_tasks(drawn):
    trace, tasks, _ = drawn
    iterations = trace.jobs["epochs"].to_numpy() * tasks.epoch_iterations
    for row, (mine, edge_from, edge_to, _) in enumerate(jobs_of(tasks)):
        path = longest_path(tasks.compute_s[mine], edge_from, edge_to)
        assert path * iterations[row] == pytest.approx(trace.duration_s[row], rel=1e-4, abs=1e-3)
        assert path >= 0.1 * (1 - 1e-9)


def test_iterations_compute_more_than_they_send(drawn):
    """With all tasks apart, what is sent along any path takes half as long as computing at most."""
    _, tasks, _ = drawn
    for mine, edge_from, edge_to, volume_mb in list(jobs_of(tasks))[:300]:
        rate = tasks.demand[mine, 3]
        sent = np.zeros(len(rate))
        order = np.argsort(edge_from, kind="stable")
        forward = [edge for edge in order if edge_from[edge] < edge_to[edge]]
        for edge in forward:
            at = sent[edge_from[edge]] + volume_mb[edge] / rate[edge_from[edge]]
            sent[edge_to[edge]] = max(sent[edge_to[edge]], at)
        back = [volume_mb[edge] / rate[edge_from[edge]] for edge in order if edge_to[edge] < edge_from[edge]]
        path = longest_path(tasks.compute_s[mine], edge_from, edge_to)
        assert sent.max() + max(back, default=0.0) <= 0.5 * path * (1 + 1e-9)


def test_estimates_are_wrong_by_a_tenth(drawn):
    trace, tasks, _ = drawn
    true_s = trace.duration_s / trace.jobs["epochs"].to_numpy() / tasks.epoch_iterations
    errors = np.abs(tasks.iteration_s / true_s - 1)
    assert abs(errors.mean() - 0.11) < 4 * errors.std() / np.sqrt(len(errors))
    assert np.median(tasks.iteration_s / true_s) == pytest.approx(1.0, abs=0.02)


@cache
def error_of(**settings):
    """By job, the error of its estimate, beside the draw."""
    settings = {"jobs": 2000, "weeks": 2, **settings}
    trace, (tasks, _) = generate("mlfs", 5, settings)[0], generate_tasks("mlfs", 5, settings)
    true_s = trace.duration_s / trace.jobs["epochs"].to_numpy() / tasks.epoch_iterations
    return np.abs(tasks.iteration_s / true_s - 1), trace


def test_run_times_of_jobs_that_never_ran_are_known_less_well_until_they_are_sampled():
    known, trace = error_of()
    strange, alike = error_of(unseen=1.0)
    mixed, _ = error_of(unseen=0.5)
    sampled, later = error_of(unseen=1.0, sample_min=10.0)
    assert strange.mean() == pytest.approx(0.3, abs=0.03)
    assert mixed.mean() == pytest.approx((0.11 + 0.3) / 2, abs=0.03)
    np.testing.assert_array_equal(sampled, known)
    np.testing.assert_array_equal(alike.submit_s, trace.submit_s)
    np.testing.assert_allclose(later.submit_s - trace.submit_s, 600.0, atol=1e-3)
    np.testing.assert_allclose(later.due_s, trace.due_s, atol=1e-3)


def test_sampled_jobs_queue_behind_those_that_came_meanwhile():
    trace, later = error_of(unseen=0.5)[1], error_of(unseen=0.5, sample_min=60.0)[1]
    assert (np.diff(later.submit_s) >= 0.0).all()
    moved = np.sort(later.submit_s) - np.sort(trace.submit_s)
    assert 0.3 < (later.submit_s.sum() - trace.submit_s.sum()) / (3600.0 * len(trace)) < 0.7
    assert moved.max() <= 3600.0


@pytest.mark.parametrize("mean_error", [0.01, 0.11, 0.3])
def test_the_spread_of_errors_gives_their_mean(mean_error):
    spread = spread_of_error(mean_error)
    normal = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert np.abs(np.exp(spread * normal) - 1).mean() == pytest.approx(mean_error, rel=1e-3)


def test_deadlines_leave_a_tenth_and_half_an_hour_to_a_day(drawn):
    trace, tasks, _ = drawn
    estimate_s = tasks.iteration_s * tasks.epoch_iterations * trace.jobs["epochs"].to_numpy()
    within_s = (trace.jobs["deadline"] - trace.jobs["submit_time"]).dt.total_microseconds().to_numpy() / 1e6
    assert (within_s >= 1.1 * estimate_s - MICROSECOND_S).all()
    assert (within_s >= 0.5 * HOUR_S).all()
    drawn_s = within_s[within_s > 1.1 * estimate_s + 1.0]
    assert drawn_s.max() <= 24 * HOUR_S
    loose = within_s[estimate_s < 0.4 * HOUR_S]  # too short for their run times to matter
    assert stats.kstest(loose, stats.uniform(0.5 * HOUR_S, 23.5 * HOUR_S).cdf).pvalue > UNLIKELY


def test_jobs_are_what_section_4_1_says(drawn):
    trace, tasks, _ = drawn
    jobs = trace.jobs
    assert stats.chisquare(list(Counter(jobs["model"]).values())).pvalue > UNLIKELY
    assert set(jobs["model"]) == set(ALGORITHMS)
    widths = Counter(trace.gpus.tolist())
    assert sorted(widths) == [1, 2, 4, 8, 16, 32]
    assert stats.chisquare(list(widths.values())).pvalue > UNLIKELY
    urgencies = Counter(jobs["weight"].to_list())
    assert sorted(urgencies) == list(range(1, 11))
    assert stats.chisquare(list(urgencies.values())).pvalue > UNLIKELY
    assert jobs["epochs"].min() >= 20
    assert jobs["epochs"].max() <= 100
    assert tasks.volume_mb.min() >= 50.0
    assert tasks.volume_mb.max() <= 100.0
    assert set(tasks.option) == {OPT_STOP}
    assert set(tasks.may_become) == {TARGET_ONLY}
    most = np.where(jobs["model"].is_in(["alexnet", "resnet"]).to_numpy(), 1000, np.ceil(1000 / 0.0015))
    assert (tasks.epoch_iterations <= most).all()
    assert (tasks.epoch_iterations == tasks.epoch_iterations.clip(1)).all()


def test_accuracies_are_reached_and_shapes_differ(drawn):
    trace, _, curves = drawn
    epochs = trace.jobs["epochs"].to_numpy()
    assert curves.job_ids == tuple(trace.jobs["job_id"])
    np.testing.assert_array_equal(np.diff(curves.begin), epochs + 1)
    assert 0.0 <= curves.metric.min() <= curves.metric.max() <= 1.0
    final = curves.metric[curves.begin[1:] - 1]
    ratio = trace.jobs["target_accuracy"].to_numpy() / final
    assert ratio.min() >= 0.85
    assert ratio.max() <= 0.995
    assert stats.kstest(ratio, stats.uniform(0.85, 0.145).cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_shapes_rise_from_nothing(name):
    u = np.linspace(0.0, 1.0, 50)
    for log_k in (-3.0, 0.0, 3.0):
        values = SHAPES[name](u, np.full(50, log_k))
        assert values[0] == 0.0
        assert (np.diff(values) >= 0).all()
        assert values[-1] > values[0]


def test_other_options_leave_the_rest_of_the_draw_as_it_was():
    paper, mixed = (generate_tasks("mlfs", 4, {"jobs": 60, "options": name})[0] for name in ("paper", "mixed"))
    np.testing.assert_array_equal(paper.compute_s, mixed.compute_s)
    np.testing.assert_array_equal(paper.iteration_s, mixed.iteration_s)


@pytest.mark.slow
def test_jobs_of_one_week_of_a_trace_are_drawn_without_repeating(cluster):
    trace = generate("mlfs", 0, {"arrivals": cluster, "week": 2, "jobs": 100})[0]
    assert trace.submit_s.min() >= 2 * WEEK_S - MICROSECOND_S
    assert trace.submit_s.max() < 3 * WEEK_S
    assert len(set(trace.submit_s)) == 100
    weeks = {int(generate("mlfs", seed, {"arrivals": cluster, "jobs": 100})[0].submit_s[0] // WEEK_S)
             for seed in range(20)}  # fmt: skip
    assert weeks == {0, 1, 2, 3}  # the fifth is a day long
    both = generate("mlfs", 0, {"arrivals": cluster, "week": 0, "weeks": 2, "jobs": 500})[0]
    assert len(set(both.submit_s)) == 500
    more = generate("mlfs", 0, {"arrivals": cluster, "week": 0, "jobs": 500})[0]
    assert len(set(more.submit_s)) <= 300


@pytest.mark.slow
def test_a_week_of_philly_offers_a_quarter_of_80_gpus(philly):
    chosen = {"arrivals": str(philly / "philly_jobs.csv")}
    trace, tasks = generate("mlfs", 0, chosen)[0], generate_tasks("mlfs", 0, chosen)[0]
    gpu = np.add.reduceat(tasks.demand[:, 0], tasks.task_of[:-1])
    assert gpu @ trace.duration_s / WEEK_S / 80 == pytest.approx(0.25, rel=1e-4)
    assert trace.submit_s[-1] - trace.submit_s[0] <= WEEK_S
    assert trace.duration_s.max() <= 24 * HOUR_S
