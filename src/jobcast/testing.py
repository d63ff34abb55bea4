"""For whoever writes a policy or a predictor: what every one must keep to, tried on small random worlds.

`check_policy` replays worlds of every law, `check_predictor` trains and asks on traces whose futures differ.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jobcast.domain import law as laws
from jobcast.domain.elastic import ElasticJobs
from jobcast.domain.energy import EnergyCluster, EpochTimes, Tariff
from jobcast.domain.errors import RegistryError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool
from jobcast.domain.policy import Decision, Policy, View
from jobcast.domain.tasks import OPT_STOP, TaskCluster, TaskJobs
from jobcast.domain.training import Phase
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.law import Law
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload

if TYPE_CHECKING:
    import polars as pl

    from jobcast.models.predictor import Known
    from jobcast.traces.table import Trace

Make = Callable[[ForecastSource], Policy]
"""From a source of forecasts to a policy that asks it."""
JOBS, GPUS = 24, 8
LATER = 3.0
"""By how much longer what has not ended lasts in another future."""


class World(NamedTuple):
    """What is replayed, and what makes a law for a run of it."""

    workload: Workload
    law: Callable[[], Law | None]


def registered(name: str, law: str, **settings: object) -> Make:
    """What makes a policy by the name under which it is installed, as it is asked under a law."""
    from jobcast.schedulers.elastic.whole_widths import WholeWidths
    from jobcast.schedulers.policies import ELASTIC
    from jobcast.schedulers.registry import find_policy, make_policy

    spec = find_policy(name)
    if spec.kind != ELASTIC:
        return lambda source: make_policy(name, source if not spec.learned else None, settings)
    if law == laws.SPEEDUP:
        return lambda source: make_policy(name, None, settings)
    whole = {"whole_gpus": True} if "whole_gpus" in spec.settings.model_fields else {}
    return lambda source: WholeWidths(make_policy(name, None, {**settings, **whole}))


def check_policy(
    make: Make, law: str = laws.RUNTIME, seeds: Iterable[int] = range(4), *, jobs: int = JOBS, oracle: bool = False
) -> None:
    """Try a policy on random worlds of a law.

    It must end all jobs within the capacity that there is (the engine refuses what cannot be); decide the same
    whenever it is asked the same, by what it sees and what it keeps; leave the view as it is; and not see the future:
    where jobs to come are others, or those that run last longer, it decides until then as it did. Forecasts are
    conservative.

    Parameters
    ----------
    make : makes a policy, such as `registered` of an installed one
    law : one of `jobcast.domain.law`
    seeds : a world each
    jobs : of a world
    oracle : whether it cannot do without every job's future (`needs_every_job` of its spec): it is given the oracle's
        forecasts, and whether it sees the future is not asked

    Raises
    ------
    AssertionError
        It does not; what it did is told, with the seed.
    DecisionError
        It asks for what cannot be, or leaves jobs for ever.
    """
    for seed in seeds:
        where = f"{law}, seed {seed}"
        log, result = _run(make, world(law, seed, jobs), where, oracle)
        again, told_again = _run(make, world(law, seed, jobs), where, oracle)
        assert result == told_again, f"{where}: two runs decide differently"
        assert np.array_equal(log.end_s, again.end_s), f"{where}: two runs end differently"
        _check_capacity(log, seed)
        if not oracle:
            _check_futures(make, law, seed, jobs, log, result)


def _check_futures(
    make: Make, law: str, seed: int, jobs: int, log: RunLog, value: list[tuple[float, Decision]]
) -> None:
    """From some instant on jobs to come are others, or those that run last longer; until then it decides as it did."""
    cut_s = float(np.median(log.submit_s))
    before = [one for one in value if one[0] < cut_s]
    for what, other in (("jobs to come", {"later": 1}), ("what is left of jobs", {"ended_by": (log, cut_s)})):
        elsewhere = world(law, seed, jobs, cut_s=cut_s, **other)
        _, others = _run(make, elsewhere, f"{law}, seed {seed}, another future")
        seen = [one for one in others if one[0] < cut_s]
        assert seen == before, f"{law}, seed {seed}: it decides by {what}, which nobody can know yet"


def _run(make: Make, of: World, where: str, oracle: bool = False) -> tuple[RunLog, list[tuple[float, Decision]]]:
    """A run, and what was decided when; decisions are asked for twice."""
    source = Oracle(of.workload) if oracle else Conservative(of.workload)
    policy = _Twice(make(source), source, where)
    run = Simulation(of.workload, policy, source, law=of.law()).run()
    log = run.log()
    assert np.isfinite(log.end_s).all(), f"{where}: a job never ends"
    return log, policy.decisions


class _Twice:
    """A policy and its copy, asked the same."""

    def __init__(self, policy: Policy, source: ForecastSource, where: str) -> None:
        self.decisions: list[tuple[float, Decision]] = []
        self._policy, self._source, self._where = policy, source, where

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def decide(self, view: View) -> Decision:
        """What the policy says."""
        copy = deepcopy(self._policy, {id(self._source): self._source})
        before = _seen(view)
        decision, other = self._policy.decide(view), copy.decide(view)
        where = f"{self._where}, at {view.now_s:.6f} s"
        assert _plain(decision) == _plain(other), f"{where}: asked twice, it decides {decision}, then {other}"
        assert _seen(view) == before, f"{where}: it changed what it was shown"
        self.decisions.append((view.now_s, _plain(decision)))
        return decision


def _plain(decision: Decision) -> Decision:
    """A decision that can be compared."""
    return Decision(dict(decision.change), decision.wake_s, dict(decision.tasks), dict(decision.limit))


def _seen(view: View) -> list[Any]:
    """What a view shows of pools and jobs."""
    pools = [(name, pool.allocated, pool.dedicated, pool.pending.gpus) for name, pool in view.pools.items()]
    return [view.now_s, view.free_gpus, pools, list(view.running.items()), list(view.active)]


def _check_capacity(log: RunLog, seed: int) -> None:
    """Never more GPUs held than there are, on all nodes and in sum, from the log alone."""
    spans = log.spans
    at_s = np.concatenate([spans.until_s, spans.from_s])  # ends first
    change = np.concatenate([-spans.gpus, spans.gpus])
    held = np.cumsum(change[np.argsort(at_s, kind="stable")])
    assert held.max(initial=0.0) <= log.total_gpus + 1e-6, f"seed {seed}: more GPUs are held than there are"


def world(
    law: str,
    seed: int,
    jobs: int = JOBS,
    *,
    cut_s: float = inf,
    later: int = 0,
    ended_by: tuple[RunLog, float] | None = None,
) -> World:
    """A small random world of a law; the same seed, the same world.

    Parameters
    ----------
    law, seed, jobs : see `check_policy`
    cut_s : from here on the future may be another, seconds
    later : another number draws other jobs from `cut_s` on
    ended_by : a log and an instant: jobs that have not ended there by then last longer
    """
    rows = _rows(Random(f"{law} {seed}"), jobs)
    if later:
        others = _rows(Random(f"{law} {seed} {later}"), jobs)
        first = [row for row in rows if row.submit_s <= cut_s]
        rows = first + [row for row in others if row.submit_s > cut_s][: len(rows) - len(first)]
    longer = [1.0] * len(rows)
    if ended_by is not None:
        log, by_s = ended_by
        longer = [1.0 if end_s <= by_s else LATER for end_s in log.end_s.tolist()]
    return _WORLDS[law](rows, longer)


class _Row(NamedTuple):
    """A job: its pool, its submission, seconds on the GPUs that it asks for, these."""

    pool: str
    submit_s: float
    run_s: float
    gpus: int


def _rows(rng: Random, jobs: int) -> list[_Row]:
    """Jobs in bursts, equal ones among them."""
    rows, at_s = [], 0.0
    for _ in range(jobs):
        at_s += rng.choice((0.0, 0.0, 30.0, 300.0, 900.0))
        rows.append(_Row(rng.choice("ab"), at_s, rng.choice((60.0, 200.0, 201.5, 1800.0)), rng.choice((1, 1, 2, 4))))
    return rows


def _jobs(rows: Sequence[_Row], flat: bool, **more: Any) -> list[Job]:
    return [
        Job(seq, f"{seq:03}", FLAT_POOL if flat else row.pool, row.submit_s, row.gpus, preemptible=True, **more)
        for seq, row in enumerate(rows)
    ]


def _runtime(rows: Sequence[_Row], longer: Sequence[float]) -> World:
    outcomes = [Outcome(row.run_s * factor) for row, factor in zip(rows, longer, strict=True)]
    pools = [Pool("a", GPUS // 2), Pool("b", GPUS // 2)]
    return World(Workload(_jobs(rows, flat=False), outcomes, pools, restart_s=5.0), lambda: None)


def _speedup(rows: Sequence[_Row], longer: Sequence[float]) -> World:
    from jobcast.simulator.elastic.run import ElasticCluster
    from jobcast.simulator.laws.speedup import Speedup, elastic_workload

    count, most = len(rows), np.array([float(row.gpus) for row in rows])
    table = np.arange(GPUS + 1.0) ** 0.8
    size_s = np.array([row.run_s * float(row.gpus) ** 0.8 for row in rows])
    jobs = ElasticJobs(
        submit_s=np.array([row.submit_s for row in rows]),
        size_s=size_s,
        least=np.zeros(count),
        most=most,
        model=np.zeros(count, dtype=np.int64),
        stage_of=np.arange(count + 1),
        stage_end=np.ones(count),
        stage_most=most.copy(),
        speedup=np.stack([table, table])[None],
        speed=np.ones((1, 1)),
    )
    true_s = size_s * np.array(longer)
    workload = elastic_workload(jobs, true_s, ElasticCluster(np.array([float(GPUS)])))
    return World(workload, lambda: Speedup(jobs, true_s))


def _epochs(rows: Sequence[_Row], _: Sequence[float]) -> World:
    from jobcast.simulator.laws.epochs import Epochs

    cluster = EnergyCluster(
        kind_of=np.array([0, 0, 1]),
        kind_gpus=np.array([4, 2]),
        power_w=np.array([[0.0, 300.0, 500.0, 700.0, 900.0], [0.0, 200.0, 300.0, 300.0, 300.0]]),
        pue=1.3,
        tariff=Tariff(np.zeros(1), np.array([0.2])),
    )
    on = np.arange(1.0, 5.0) ** 0.8
    one_s = np.array([row.run_s / 10.0 * row.gpus**0.8 for row in rows])
    known_s = one_s[:, None, None] * (np.array([1.0, 1.5])[:, None] / on)
    jobs = [replace(job, due_s=job.submit_s + 3600.0, min_gpus=1) for job in _jobs(rows, flat=True)]
    workload = Workload(jobs, [Outcome(row.run_s) for row in rows], [Pool(FLAT_POOL, 10)], servers=(4, 4, 2))
    times = EpochTimes(np.full(len(rows), 10.0), known_s)  # jobs declare their epochs: nothing of them is to come
    return World(workload, lambda: Epochs(times, cluster, known_s, snapshot_epochs=None, restart_s=5.0))


def _goodput(rows: Sequence[_Row], longer: Sequence[float]) -> World:
    from jobcast.simulator.laws.goodput import Goodput, ScalableWork

    on = tuple(float(gpus) ** 0.8 for gpus in range(1, GPUS + 1))
    works = [
        ScalableWork(row.submit_s, row.gpus, (Phase(row.run_s * on[row.gpus - 1] * factor, on, (8,) * GPUS),))
        for row, factor in zip(rows, longer, strict=True)
    ]
    outcomes = [Outcome(work.exclusive_s()) for work in works]
    return World(Workload(_jobs(rows, flat=True), outcomes, [Pool(FLAT_POOL, GPUS)]), lambda: Goodput(works))


def _tasks(rows: Sequence[_Row], longer: Sequence[float]) -> World:
    """Two servers; a task a GPU, of single ones half a GPU; jobs end after a third of what they declare, or later."""
    from jobcast.simulator.laws.tasks import Tasks
    from jobcast.simulator.task_workload import TaskTruth, TaskWorkload

    count, epochs = len(rows), 2.0 * LATER
    gpus = np.array([row.gpus for row in rows])
    task_of, of = np.concatenate([[0], np.cumsum(gpus)]), np.repeat(np.arange(count), gpus)
    iteration_s, none = np.array([row.run_s / 100.0 for row in rows]), np.zeros(0, dtype=np.int64)
    jobs = TaskJobs(
        submit_s=np.array([row.submit_s for row in rows]),
        deadline_s=np.array([row.submit_s + 2.0 * row.run_s for row in rows]),
        urgency=1.0 + (np.arange(count) % 10).astype(np.float64),
        target=np.full(count, 0.5),
        iterations=np.full(count, 100.0 * LATER),
        epoch_iterations=np.full(count, 50.0),
        iteration_s=iteration_s,
        option=np.full(count, OPT_STOP),
        may_become=np.full(count, OPT_STOP),
        algorithm=np.zeros(count, dtype=np.int64),
        gpus=gpus,
        task_of=task_of,
        edge_of=np.zeros(count + 1, dtype=np.int64),
        job_of=of,
        demand=np.column_stack([np.where(gpus[of] > 1, 1.0, 0.5), *np.tile([[2.0], [10.0], [100.0]], len(of))]),
        compute_s=iteration_s[of],
        size_share=1.0 / gpus[of],
        is_server=np.zeros(len(of), dtype=np.bool_),
        edge_from=none,
        edge_to=none,
        volume_mb=np.zeros(0),
    )
    cluster = TaskCluster(np.tile([GPUS / 2, 32.0, 244.0, 1250.0], (2, 1)), np.repeat(np.arange(2), GPUS // 2))
    metric = np.tile(1.0 - np.exp(-np.arange(epochs + 1.0)), (count, 1))
    truth = TaskTruth(metric, np.full(count, 500.0), 100.0 * np.array(longer))
    whole = _jobs(rows, flat=True)
    workload = TaskWorkload(jobs, truth, cluster, [job.job_id for job in whole])
    outcomes = [Outcome(seconds) for seconds in workload.alone_s.tolist()]
    return World(
        Workload(whole, outcomes, [Pool(FLAT_POOL, GPUS)], shared=True), lambda: Tasks(workload, restart_s=5.0)
    )


_WORLDS = {
    laws.RUNTIME: _runtime,
    laws.SPEEDUP: _speedup,
    laws.EPOCHS: _epochs,
    laws.GOODPUT: _goodput,
    laws.TASKS: _tasks,
}


def check_predictor(make: Callable[[], Any], seeds: Iterable[int] = range(2)) -> None:
    """Try a predictor on small traces with the tables beside them that it needs.

    What it learned until an instant, to the last byte, and what it answers then, must not depend on what comes later:
    jobs to come are removed, shifted and invented, and those that have not ended last longer. Two trainings on the
    same data must give the same bytes; what is saved must answer as what was trained; and a folder without a model, of
    another predictor or of another schema must be refused.

    Parameters
    ----------
    make : makes a predictor, such as `lambda: find_predictor("her-durations")`, not trained yet
    seeds : a trace each

    Raises
    ------
    AssertionError
        It does not; what it did is told, with the seed.
    """
    for seed in seeds:
        with TemporaryDirectory() as folder:
            room = Path(folder)
            one = make()
            where = f"{one.name}, seed {seed}"
            known, later = predictor_world(one.needs, seed, room / "world")
            model = _trained(one, known, room / "first")
            assert _trained(make(), known, room / "again") == model, f"{where}: two trainings give different bytes"
            answers = one.predict(known)
            read = make().load(room / "first")
            assert read.predict(known).equals(answers), f"{where}: what is saved answers other than what was trained"
            assert _saved(read, room / "read") == model, f"{where}: what is read is saved as other bytes"
            for what, trace in futures(known):
                elsewhere, other = replace(known, trace=trace), make()
                assert _trained(other, elsewhere, room / what) == model, f"{where}: learns from the future ({what})"
                assert other.predict(elsewhere).equals(answers), f"{where}: answers by the future ({what})"
            assert repr(one.evaluate(later)) == repr(read.evaluate(later)), (
                f"{where}: what is saved is scored differently"
            )
            _check_refusals(make, room, where)


def predictor_world(needs: Iterable[str], seed: int, folder: Path) -> "tuple[Known, Known]":
    """Two weeks of a small campus until an instant in the second, and all of it from there on.

    Parameters
    ----------
    needs : tables beside the trace; see `models.predictor.Predictor`. `waits`: its pools are short of GPUs
    seed : of the jobs and of the tables
    folder : where tables are written on the way
    """
    from jobcast.features.queueing import queued
    from jobcast.models.predictor import Known
    from jobcast.pipelines.experiments.training_jobs import read_tables
    from jobcast.traces.enrich.columns import EnrichConfig
    from jobcast.traces.enrich.enrichment import enrich
    from jobcast.traces.facts import FILES
    from jobcast.traces.generators import generate
    from jobcast.traces.goodput_tables import read_step_table
    from jobcast.traces.learning_curves import read_job_curves
    from jobcast.traces.profiles import read_profiles

    trace, _ = generate("campus", seed, {"weeks": 2, "pools": 2, "jobs": 700, "widest": 8})
    tables: dict[str, Any] = {}
    if "waits" in needs:
        trace = queued(trace)
    if set(needs) - {"trace", "waits"}:
        facts = ("training", "epochs", "tasks", *(("goodput",) if "step_times" in needs else ()))
        enriched = enrich(trace, facts, EnrichConfig(), seed)
        trace = enriched.trace
        folder.mkdir(parents=True)
        files = {name: folder / FILES[name] for name in enriched.tables}
        for name, write in enriched.tables.items():
            write(files[name])
        readers: dict[str, Callable[[], Any]] = {
            "training": lambda: read_tables({name: str(path) for name, path in files.items()}),
            "curves": lambda: read_job_curves(files["curves"]),
            "profiles": lambda: read_profiles(files["profiles"]),
            "step_times": lambda: read_step_table(files["step_times"]),
        }
        tables = {name: readers[name]() for name in needs if name in readers}
    late = int(0.8 * len(trace))
    gaps_s = np.diff(trace.submit_s)[late:]
    between = late + int(np.argmax(gaps_s[: len(gaps_s) // 2]))
    cut_s = float(trace.submit_s[between : between + 2].mean())  # no job comes just then
    return Known(trace, tables, None, cut_s), Known(trace, tables, cut_s, None)


def futures(known: "Known") -> "list[tuple[str, Trace]]":
    """The same past until `known.until_s` with other futures, by what is other in them."""
    import polars as pl

    from jobcast.traces.table import Trace

    trace, cut_s = known.jobs, known.until_s
    assert cut_s is not None
    frame, source = trace.jobs, trace.source
    come = pl.Series(trace.submit_s >= cut_s)
    open_ = pl.Series((trace.end_s > cut_s) & (trace.submit_s < cut_s))
    waiting = pl.Series((trace.start_s > cut_s) & (trace.submit_s < cut_s))
    times = [name for name in ("submit_time", "start_time", "end_time") if name in frame.columns]

    def moved(rows: "pl.Series", names: Iterable[str], days: int) -> "list[pl.Expr]":
        return [pl.when(rows).then(pl.col(name).dt.offset_by(f"{days}d")).otherwise(pl.col(name)) for name in names]

    longer = [pl.when(open_).then(pl.col("duration") * LATER).otherwise(pl.col("duration"))]
    invented = frame.filter(come).with_columns(
        job_id=pl.concat_str(pl.lit("new-"), "job_id"), gpus=pl.lit(1).cast(frame["gpus"].dtype)
    )
    ends = [name for name in times if name == "end_time"]
    open_longer = frame.with_columns(longer).with_columns(moved(open_, ends, 30))
    starts = [name for name in times if name != "submit_time"]
    made = {
        "jobs to come are removed": frame.filter(~come),
        "jobs to come are shifted": frame.with_columns(moved(come, times, 9)),
        "jobs to come are invented": pl.concat([frame, invented]),
        "what is open lasts longer": open_longer.with_columns(moved(waiting, starts, 31)),
    }
    return [(what, Trace.from_frame(one, name=trace.name, source=source)) for what, one in made.items()]


def _trained(predictor: Any, known: "Known", folder: Path) -> dict[str, bytes]:
    return _saved(predictor.fit(known), folder)


def _saved(predictor: Any, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    predictor.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _check_refusals(make: Callable[[], Any], room: Path, where: str) -> None:
    """No folder but one of its own is read."""
    nothing = room / "nothing"
    nothing.mkdir()
    folders = {"a folder without a model": nothing}
    for what, key, value in (("another predictor", "predictor", "another"), ("another schema", "format", -1)):
        folder = room / what
        shutil.copytree(room / "first", folder)
        saved = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        (folder / "metadata.json").write_text(json.dumps({**saved, key: value}), encoding="utf-8")
        folders[f"a folder of {what}"] = folder
    for what, folder in folders.items():
        try:
            make().load(folder)
        except RegistryError:
            continue
        raise AssertionError(f"{where}: reads {what}; refuse it with a RegistryError")
