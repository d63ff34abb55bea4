"""MLFS's workload: what section 4.1 says, measured in what is drawn."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.generators.mlfs_curves import EARLY_GAIN, SHAPES, draw_curves, spread_of_error
from jobcast.traces.generators.mlfs_tasks import ALGORITHMS, MlfsConfig, graph_of
from jobcast.traces.generators.settings import known_settings
from jobcast.traces.tasks import write_tasks

UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be
DOCS = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
WEEK_S, HOUR_S = 604800.0, 3600.0
MICROSECOND_S = 1e-6


@pytest.fixture(scope="module")
def drawn():
    """The paper's workload at x = 3 without a trace: canonical trace, tasks, curves."""
    return generate("mlfs", 1, {"jobs": 1860})[0], *generate_tasks("mlfs", 1, {"jobs": 1860})


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
    assert gpu @ trace.duration_s / WEEK_S / 80 == pytest.approx(0.75, rel=1e-4)  # durations are rounded
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


def test_tasks_are_workers_and_every_other_job_has_a_server(drawn):
    trace, tasks, _ = drawn
    servers = np.add.reduceat(tasks.is_server.astype(int), tasks.task_of[:-1])
    np.testing.assert_array_equal(np.diff(tasks.task_of) - servers, trace.gpus)
    assert stats.binomtest(int(servers.sum()), len(servers), 0.5).pvalue > UNLIKELY
    workers = tasks.demand[~tasks.is_server]
    assert 0 < workers[:, 0].min() <= workers[:, 0].max() <= 0.85
    assert workers[:, 0].mean() == pytest.approx(0.5, abs=0.03)  # Philly's GPUs were 52 % busy
    for mine, _, _, volume_mb in jobs_of(tasks):
        assert len(set(volume_mb.tolist())) <= 2
        assert tasks.size_share[mine].sum() >= 1 - 1e-9


def test_svm_is_not_partitioned_and_paper_partitions_are_the_gpus():
    trace = generate("mlfs", 2, {"partitions": "gpus"})[0]
    tasks, _ = generate_tasks("mlfs", 2, {"partitions": "gpus"})
    for row, (mine, *_) in enumerate(jobs_of(tasks)):
        share = tasks.size_share[mine][~tasks.is_server[mine]]
        wanted = len(share) if trace.jobs["model"][row] == "svm" else 1
        assert share.sum() == pytest.approx(wanted)


def test_mixed_options_may_only_become_less():
    tasks, _ = generate_tasks("mlfs", 0, {"options": "mixed"})
    pairs = Counter(zip(tasks.option.tolist(), tasks.may_become.tolist(), strict=True))
    assert set(pairs) == {
        *((ALL_ITERATIONS, ALL_ITERATIONS), (ALL_ITERATIONS, OPT_STOP), (ALL_ITERATIONS, TARGET_ONLY)),
        *((OPT_STOP, OPT_STOP), (OPT_STOP, TARGET_ONLY), (TARGET_ONLY, TARGET_ONLY)),
    }


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


def test_curves_gain_what_was_drawn_in_a_fifth_of_the_epochs():
    drawn = draw_curves(np.full(4000, 100), np.random.default_rng(3))
    assert set(drawn.family) == set(range(len(SHAPES)))
    metric = drawn.metric.reshape(4000, 101)
    gain = (metric[:, 20] - metric[:, 0]) / (metric[:, -1] - metric[:, 0])
    low, high = np.quantile(gain, [0.05, 0.95])
    assert EARLY_GAIN[0] - 0.07 < low < EARLY_GAIN[0] + 0.05  # steps take up to 15 %, falls give 4 %
    assert EARLY_GAIN[1] - 0.07 < high < EARLY_GAIN[1] + 0.04
    for family in range(len(SHAPES)):  # no family has another spread of early gains
        mine = drawn.family == family
        assert stats.ks_2samp(gain[mine], gain[~mine]).pvalue > UNLIKELY
    final = metric[:, -1]
    assert final.min() > 0.4
    assert final.max() <= 1.0


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_shapes_rise_from_nothing(name):
    u = np.linspace(0.0, 1.0, 50)
    for log_k in (-3.0, 0.0, 3.0):
        values = SHAPES[name](u, np.full(50, log_k))
        assert values[0] == 0.0
        assert (np.diff(values) >= 0).all()
        assert values[-1] > values[0]


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), count=st.integers(30, 80))
def test_equal_arguments_give_equal_jobs_and_other_seeds_others(seed, count):
    chosen = {"jobs": count, "load": 0.3}
    trace, pools = generate("mlfs", seed, chosen)
    again, _ = generate("mlfs", seed, chosen)
    assert trace.jobs.equals(again.jobs)
    assert trace.source == again.source
    assert pools[0].quota == 80
    tasks, curves = generate_tasks("mlfs", seed, chosen)
    same, curves_again = generate_tasks("mlfs", seed, chosen)
    np.testing.assert_array_equal(tasks.demand, same.demand)
    np.testing.assert_array_equal(tasks.edge_to, same.edge_to)
    np.testing.assert_array_equal(curves.metric, curves_again.metric)
    assert tasks.job_ids == curves.job_ids == tuple(trace.jobs["job_id"])
    assert not generate("mlfs", seed + 1, chosen)[0].jobs.equals(trace.jobs)


def test_equal_draws_give_equal_bytes(tmp_path):
    for name in ("one.parquet", "two.parquet"):
        write_tasks(generate_tasks("mlfs", 5, {"jobs": 50})[0], tmp_path / name)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_other_options_leave_the_rest_of_the_draw_as_it_was():
    paper, mixed = (generate_tasks("mlfs", 4, {"jobs": 60, "options": name})[0] for name in ("paper", "mixed"))
    np.testing.assert_array_equal(paper.compute_s, mixed.compute_s)
    np.testing.assert_array_equal(paper.iteration_s, mixed.iteration_s)


def test_arrivals_of_the_poisson_week_follow_the_day():
    trace = generate("mlfs", 0, {"jobs": 6000, "widths": "1,2", "load": 0.05})[0]
    assert trace.submit_s[-1] - trace.submit_s[0] <= WEEK_S
    hour = (trace.submit_s % 86400.0) / HOUR_S
    edges = np.arange(25.0)
    area = edges + 0.5 * 24 / (2 * np.pi) * np.sin(2 * np.pi * (edges - 14) / 24)  # of 1 + cos(..) / 2
    assert stats.chisquare(np.histogram(hour, bins=edges)[0], np.diff(area) / 24 * len(hour)).pvalue > UNLIKELY


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


@pytest.mark.parametrize(
    ("chosen", "line"),
    [
        ({"partitions": "few"}, "partitions must be divisor or gpus, got few"),
        ({"options": "all"}, "options must be paper or mixed, got all"),
        ({"epochs": "30"}, "epochs must be two ascending numbers"),
        ({"target": "0.9,0.8"}, "target must be two ascending numbers"),
        ({"communication": 0}, "communication must be above 0"),
        ({"longest_h": 0.5, "shortest_min": 60}, "shortest_min must not be longer than longest_h"),
        ({"jobs": 1}, "jobs must lie in"),
        ({"load": 50, "jobs": 20}, "jobs as long as longest_h do not make the load; raise longest_h or lower load"),
        ({"load": 0.001}, "the shortest jobs are more than the load; raise load or communication"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(chosen, line):
    with pytest.raises(ConfigError) as refused:
        generate("mlfs", 0, chosen)
    assert str(refused.value).startswith("mlfs: ")
    assert line in str(refused.value)


def test_a_week_without_jobs_is_refused(cluster):
    with pytest.raises(ConfigError, match="has no job in week 9; set another week"):
        generate("mlfs", 0, {"arrivals": cluster, "week": 9})


def test_other_kinds_have_no_tasks():
    with pytest.raises(ConfigError, match="sia: its jobs have no tasks; kinds that have are mlfs"):
        generate_tasks("sia", 0, {})


def test_the_documentation_names_every_setting_and_its_default():
    text = DOCS.read_text(encoding="utf-8")
    section = text[text.index("### mlfs\n") :].splitlines()
    rows = {line.split("|")[1].strip(): line for line in section if line.startswith("| `")}
    for name, (default, meaning) in known_settings(MlfsConfig).items():
        row = rows.pop(f"`{name}`")
        assert row.endswith(f"| {meaning} |"), name
        if isinstance(default, int | float):
            assert f"| {default:g} |" in row, name
    assert not rows


def test_a_week_of_philly_offers_a_quarter_of_80_gpus():
    folder = os.environ.get("JOBCAST_DATA")
    if folder is None:
        pytest.skip("JOBCAST_DATA is not set: no trace of Philly to draw arrivals from")
    chosen = {"arrivals": f"{folder}/philly/philly_jobs.csv"}
    trace, tasks = generate("mlfs", 0, chosen)[0], generate_tasks("mlfs", 0, chosen)[0]
    gpu = np.add.reduceat(tasks.demand[:, 0], tasks.task_of[:-1])
    assert gpu @ trace.duration_s / WEEK_S / 80 == pytest.approx(0.25, rel=1e-4)
    assert trace.submit_s[-1] - trace.submit_s[0] <= WEEK_S
    assert trace.duration_s.max() <= 24 * HOUR_S
