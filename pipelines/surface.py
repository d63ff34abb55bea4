"""What `import jobcast` offers a notebook: the commands as functions, which return in place of printing.

Each calls what the command of its name calls. Instants are seconds from the epoch, ISO-8601 text or datetimes, in UTC
where they tell no zone; files and what was read from them are taken alike; `home` is the folder that holds the
registry, by default that of the command line. Mistakes of the caller's raise `UserError`s.
"""

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import click
import pandas as pd

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.models.evaluation.intervals import DRAWS
from jobcast.models.registry import ModelVersion, Registry, open_registry
from jobcast.pipelines.cli.backtest_request import BacktestRequest, run_backtest
from jobcast.pipelines.cli.main import cli, command_named
from jobcast.pipelines.cli.reference_pages import all_policies, all_predictors
from jobcast.pipelines.cli.simulate_request import Finished, SimulateRequest, check_request, simulated
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.explain.explanation import explain as explain_job
from jobcast.pipelines.experiments.explain.narration import tell
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts, split_forecasts
from jobcast.pipelines.experiments.worlds import check_law
from jobcast.pipelines.forecast_frame import ForecastFrame, forecast_frame
from jobcast.pipelines.lifecycle.evaluation import evaluate_known, predicted_rows
from jobcast.pipelines.lifecycle.predictors import check_capable, life_of
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, PREDICT, TRAIN, Wishes
from jobcast.pipelines.lifecycle.promotion import compare, refuse
from jobcast.pipelines.lifecycle.promotion import promote as promote_version
from jobcast.pipelines.lifecycle.replay_judges import Window
from jobcast.pipelines.lifecycle.standards import standards_of
from jobcast.pipelines.lifecycle.training import train_version
from jobcast.pipelines.report.console import Kept
from jobcast.pipelines.report.files import read_json
from jobcast.pipelines.report.model_tables import version_row
from jobcast.pipelines.surface_inputs import (
    Instant,
    PathName,
    Place,
    Settings,
    Traced,
    Version,
    cluster_meant,
    home_of,
    instants,
    known_of,
    learns_from_jobs,
    made,
    named,
    number,
    policy_named,
    reference_of,
    scores,
    seconds,
    several,
    texts,
    trace_of,
    untrained,
)
from jobcast.schedulers.policies import POOLS
from jobcast.schedulers.registry import DECLARED
from jobcast.simulator.workload import Workload
from jobcast.traces.describe import Description
from jobcast.traces.describe import describe as describe_trace
from jobcast.traces.generators import generate
from jobcast.traces.owners import scratch_room
from jobcast.traces.pools import write_pools
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace

EXAMPLE = {"weeks": 3, "pools": 2, "jobs": 800}
"""Settings of the generator `campus`."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """A finished backtest.

    Attributes
    ----------
    rows : a simulation each: label, policy, forecasts, window, seed, and its figures
    gains : hours saved and slowdowns of a row against another, with paired intervals
    result : all figures, as `jobcast backtest --json` tells them
    notes : what a reader should know of them
    """

    rows: pd.DataFrame
    gains: pd.DataFrame
    result: Mapping[str, Any] = field(repr=False)
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job waited, was helped or was slowed: `figures` as `jobcast explain --json`, `text` for a person."""

    figures: Mapping[str, Any]
    text: str

    def __repr__(self) -> str:
        return self.text


def example_trace(seed: int = 0) -> tuple[Trace, list[Pool]]:
    """A small generated trace of a campus, 21 days of two pools, and these pools.

    >>> import jobcast as jc
    >>> trace, pools = jc.example_trace()
    >>> len(trace), [pool.name for pool in pools]
    (803, ['production-1', 'research-1'])
    """
    return generate("campus", seed, EXAMPLE)


def describe(trace: Traced, cluster: Place = None) -> Description:
    """Figures of a trace, in all and by pool; against quotas where a cluster is named. See `traces.describe`.

    >>> import jobcast as jc
    >>> jc.describe(*jc.example_trace()).total.jobs
    803
    """
    read = trace_of(trace)
    place = cluster_meant(cluster, read)
    # Quotas over time where a file tells them, else those of the cluster.
    return describe_trace(read, None if place is None else place.quotas or place.pools)


def train(
    predictor: str,
    trace: Traced,
    *,
    start: Instant = None,
    until: Instant = None,
    algorithm: str | None = None,
    set: Settings = None,
    home: PathName | None = None,
    **settings: Any,
) -> ModelVersion:
    """Train a predictor on [start, until) and register it as a new version: `jobcast train`.

    Parameters
    ----------
    predictor : a name of `predictors()`
    trace : or the table that it learns from: a file of curves, of profiles, of step times
    algorithm : one of its own; None takes the default
    settings : of `lifecycle.recipes.common.TrainSettings`: horizons_min, coverage, miss_share, seed, tune, ...

    Raises
    ------
    ConfigError, TraceError, TrainingError
        It is not known, the file cannot be read, or holds too little to learn from.

    >>> import jobcast as jc, tempfile
    >>> (trace, _), room = jc.example_trace(), tempfile.TemporaryDirectory()
    >>> version = jc.train("new-load", trace, until="2024-01-15", algorithm="sliding-max", home=room.name)
    >>> str(version), version.aliases
    ('new-load:1', ('challenger', 'champion'))
    """
    folder, given, life = home_of(home), texts(set), life_of(predictor)
    one = untrained(predictor, algorithm, given, train, settings)
    span = {"from_s": seconds(start, "start"), "until_s": seconds(until, "until")}
    # A trace in memory goes as it is; its file is not read again.
    result = train_version(one, known_of(life, TRAIN, trace, folder, given, **span), home=folder)
    # By its number: another process may have registered one since.
    return open_registry(folder).resolve(predictor, result["version"])


def evaluate(
    version: Version,
    trace: Traced,
    *,
    start: Instant = None,
    until: Instant = None,
    draws: int = DRAWS,
    allow_overlap: bool = False,
    set: Settings = None,
    home: PathName | None = None,
    **wishes: Any,
) -> pd.DataFrame:
    """Score a version on [start, until), by default what came after its training: `jobcast evaluate`.

    Parameters
    ----------
    draws : of days, for intervals; 0 makes none
    wishes : of `pipelines.lifecycle.predictors.life.Wishes`: without, ablation, paper_recipe, smoothing, prefix, ...

    Returns
    -------
    A row a horizon and model: the version, then the rules to beat; `attrs["result"]` holds all that the command tells.

    Raises
    ------
    RegistryError, OverlapError, TrainingError, ConfigError
        There is no such version, it saw the window, or nothing can be scored.

    >>> import jobcast as jc, tempfile
    >>> (trace, _), room = jc.example_trace(), tempfile.TemporaryDirectory()
    >>> version = jc.train("new-load", trace, until="2024-01-15", algorithm="sliding-max", home=room.name)
    >>> scores = jc.evaluate(version, trace, draws=0, home=room.name)
    >>> scores["horizon"].unique().tolist(), scores["model"].iloc[0]
    (['5min', '60min', '720min'], 'new-load:1')
    """
    folder, given, reference = home_of(home), texts(set), reference_of(version)
    check_capable(EVALUATE, reference[0])
    wished = made(Wishes, evaluate, {"draws": draws, "given": given}, wishes)
    asked: dict[str, Any] = {"from_s": seconds(start, "start"), "until_s": seconds(until, "until")}
    # Lives look at the options of the command, too.
    asked |= {"prefix": wished.prefix, "points": wished.points, "seed": wished.seed}
    known = known_of(life_of(reference[0]), EVALUATE, trace, folder, given, **asked)
    result = evaluate_known(reference, known, home=folder, wishes=wished, allow_overlap=allow_overlap).result
    return scores(result)


def forecast(
    version: Version,
    trace: Traced,
    at: Instant | Sequence[Any] = None,
    *,
    set: Settings = None,
    home: PathName | None = None,
) -> ForecastFrame:
    """What a version says at an instant or several, from what was known then: `jobcast predict`.

    Parameters
    ----------
    at : by default the last submission of the trace; of who reads more than a trace the last that its file tells of

    Returns
    -------
    A pandas frame of `unique_id, cutoff, ds, ..., y_pred`; `plot()` draws it. See `ForecastFrame`.

    Raises
    ------
    RegistryError, TraceError, ConfigError
        There is no such version, no job was known by then, or the predictor answers no such question.

    >>> import jobcast as jc, tempfile
    >>> (trace, _), room = jc.example_trace(), tempfile.TemporaryDirectory()
    >>> version = jc.train("new-load", trace, until="2024-01-15", algorithm="sliding-max", home=room.name)
    >>> forecast = jc.forecast(version, trace, at="2024-01-20T09:00:00Z", home=room.name)
    >>> forecast.columns.tolist(), len(forecast)
    (['unique_id', 'cutoff', 'ds', 'horizon_min', 'y_pred'], 6)
    """
    folder, given, reference = home_of(home), texts(set), reference_of(version)
    check_capable(PREDICT, reference[0])
    life = life_of(reference[0])
    # Read once for all instants.
    read = trace_of(trace) if learns_from_jobs(life) else trace
    answers = []
    for at_s in instants(at, read):
        known = known_of(life, PREDICT, read, folder, given, until_s=at_s)
        rows, found = predicted_rows(reference, known, home=folder)
        # Tables have no time.
        answers.append((known.until_s or 0.0, rows))
    # The earliest cutoff decides: one forecast from before the end of training is enough.
    overlap = found.train_until_s > min(at_s for at_s, _ in answers)
    return forecast_frame(answers, {"predictor": found.name, "version": found.version, "overlap": overlap})


def simulate(
    trace: Traced,
    policy: str,
    cluster: Place = None,
    *,
    forecasts: str | None = None,
    baseline: str | None = None,
    start: Instant = None,
    until: Instant = None,
    recorded: bool = False,
    limit: int | None = None,
    law: str | None = None,
    drop_wide: bool = False,
    only_pools: bool = False,
    set: Settings = None,
    home: PathName | None = None,
    **request: Any,
) -> Finished:
    """Replay the jobs of [start, until) under a policy: `jobcast simulate`.

    Parameters
    ----------
    policy, baseline : names of `policies()`, `none` for no baseline
    forecasts : oracle, registry, random, conservative, ...; None takes the policy's default
    recorded : whether the run begins with the jobs that the trace has running and waiting at `start`
    law, limit, drop_wide, only_pools : as on the command line
    request : of `SimulateRequest`: warmup_days, predict, seed, allow_overlap, degrade

    Returns
    -------
    `result` (figures), `jobs` (a polars frame, a job a row), `notes`, `ran.log`; `write(path)` keeps it.

    Raises
    ------
    ConfigError, TraceError, PoolsError, RegistryError, OverlapError
        As the command does.

    >>> import jobcast as jc
    >>> trace, pools = jc.example_trace()
    >>> run = jc.simulate(trace, "mmfs", pools, limit=100)
    >>> run.result["baseline"], run.jobs.height
    ('fcfs', 100)
    """
    given = texts(set)
    spec = None if forecasts is None else parse_forecasts(forecasts)
    result = {"policy": policy_named(policy), "baseline": baseline, "spec": spec, "settings": given}
    wanted = made(SimulateRequest, simulate, result, request)
    limit = number("limit", limit)
    # As the command: what needs no trace comes first.
    check_law(law, given, None)
    check_request(wanted, None)
    how: dict[str, Any] = {"recorded": recorded, "limit": limit, "drop_wide": drop_wide, "only_pools": only_pools}
    experiment = _experiment(trace, cluster, start, until, law=law, **how)
    # Recorded, so that `explain` can be asked afterwards.
    done = simulated(experiment, wanted, home_of(home), Kept(), record=True)
    done.write_segments()
    return done


def backtest(
    trace: Traced,
    policies: str | Sequence[str],
    cluster: Place = None,
    *,
    forecasts: str | Sequence[str] = (),
    baseline: str = "fcfs",
    start: Instant = None,
    until: Instant = None,
    recorded: bool = False,
    law: str | None = None,
    drop_wide: bool = False,
    only_pools: bool = False,
    max_think_s: float | None = None,
    out: PathName | None = None,
    set: Settings = None,
    home: PathName | None = None,
    **request: Any,
) -> Backtest:
    """Replay policies with several sources of forecasts, compare them with paired intervals: `jobcast backtest`.

    Parameters
    ----------
    policies : names of `policies()`; `all` stands for every one
    forecasts : sources, such as oracle, registry, registry:challenger; none takes the policies' defaults
    recorded, law, drop_wide, only_pools : as of `simulate`
    max_think_s : longest think time of a closed loop; None: jobs come as the trace says
    out : folder for tables and the report
    request : of `BacktestRequest`: windows, seeds, jobs (processes), warmup_days, against, ...

    Raises
    ------
    ConfigError, TraceError, PoolsError, RegistryError, OverlapError
        As the command does.

    >>> import jobcast as jc
    >>> trace, pools = jc.example_trace()
    >>> found = jc.backtest(trace, ["mmfs", "ssf"], pools, forecasts=["oracle"], until="2024-01-04", jobs=1)
    >>> found.rows["policy"].tolist()
    ['fcfs', 'mmfs', 'ssf']
    """
    console = Kept()
    # A mixed source holds commas itself: a text is split by the command's own rule.
    sources = tuple(split_forecasts(forecasts) if isinstance(forecasts, str) else map(parse_forecasts, forecasts))
    found = {"policies": several(policies), "forecasts": sources, "baseline": baseline, "settings": texts(set)}
    if {*several(policies), baseline} & DECLARED.keys():
        request["jobs"] = 1  # other processes do not know what was declared in this one
    wanted = made(BacktestRequest, backtest, found, request)
    folder = None if out is None else Path(out)
    how: dict[str, Any] = {"recorded": recorded, "law": law, "drop_wide": drop_wide, "only_pools": only_pools}
    experiment = _experiment(trace, cluster, start, until, max_think_s=max_think_s, **how)
    result = run_backtest(wanted, experiment, out=folder, home=home_of(home), console=console)
    # Figures beside the keys, for a frame has no nested columns.
    rows = [
        {name: value for name, value in row.items() if name != "figures"} | row["figures"] for row in result["rows"]
    ]
    return Backtest(pd.DataFrame(rows), pd.DataFrame(result["gains"]), result, tuple(console.lines))


def _experiment(trace: Traced, cluster: Place, start: Instant, until: Instant, **how: Any) -> Experiment:
    """What is replayed; `how`: other fields of it."""
    read, from_s, until_s = trace_of(trace), seconds(start, "start"), seconds(until, "until")
    place, by_name = cluster_meant(cluster, read, from_s), named(cluster)
    return Experiment(trace=read, cluster=place, named=by_name, from_s=from_s, until_s=until_s, **how)


def explain(run: Finished | PathName, job_id: str | int) -> Explanation:
    """Why a job waited, was helped or was slowed: `jobcast explain`.

    Parameters
    ----------
    run : what `simulate` returned, or the table of jobs that it or the command wrote

    Raises
    ------
    ConfigError, TraceError, PoolsError
        There is no such job, or the table cannot be read.

    >>> import jobcast as jc
    >>> trace, pools = jc.example_trace()
    >>> run = jc.simulate(trace, "mmfs", pools, limit=100)
    >>> jc.explain(run, "007").text.splitlines()[0]
    'Job 007 of pool production-1: 1 GPU for 5.44 h; mmfs'
    """
    if not isinstance(run, Finished | str | PathLike):
        raise ConfigError(f"run: give what simulate returned, or the table that it wrote, not {type(run).__name__}")
    if isinstance(run, Finished):
        # Explanations are read from files: one way for runs in memory and on disk.
        with scratch_room("explain") as room:
            run.write(room / "jobs.parquet")
            table = replace(read_run_table(room / "jobs.parquet"), path=Path("the run"))
    else:
        table = read_run_table(Path(run))
    result = explain_job(table, str(job_id))
    return Explanation(result, tell(result))


def command(*words: Traced, **options: Any) -> Any:
    """Any command that has no function here, such as `drift`, `choose`, `worth`, `invoice`, `predict jct`, `promises`.

    Parameters
    ----------
    words : its name, a word each, and arguments, as on the command line; a trace may be in memory
    options : a keyword an option: `windows=4` stands for `--windows 4`, True for a flag, `start` for `--from`; a trace,
        pools and a run may be in memory, `set` is a mapping

    Returns
    -------
    What `--json` tells; None of commands that tell nothing.

    Raises
    ------
    UserError
        As the command does; ConfigError for what cannot be on its line.

    >>> import jobcast as jc
    >>> trace, pools = jc.example_trace()
    >>> run = jc.simulate(trace, "mmfs", pools, limit=100)
    >>> [one["pool"] for one in jc.command("invoice", out=run)["pools"]]
    ['production-1', 'research-1']
    """
    with scratch_room("command") as room:
        told = room / "told.json"
        asked = [_value("argument", word, room) for word in words]
        tells = any("--json" in parameter.opts for parameter in command_named(asked)[1].params)
        given = [word for name, value in options.items() for word in _on_line(name, value, room)]
        line = ["--quiet", *asked, *given, *(["--json", str(told)] if tells else [])]
        # What was in memory lies in files that are gone afterwards: nobody could type such a line.
        typed = [] if any(room.iterdir()) else [*asked, *given]
        try:
            with redirect_stdout(StringIO()):  # the table, which the figures stand for
                cli.main(line, "jobcast", standalone_mode=False, obj={"words": typed})
        except click.ClickException as error:
            raise ConfigError(f"{' '.join(asked)}: {error.format_message()}") from error
        return read_json(told) if tells else None


def _on_line(name: str, value: Any, room: Path) -> list[str]:
    """An option as the command line has it; see `_value`."""
    option = "--from" if name == "start" else f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if name == "set":
        return [word for key, text in texts(value).items() for word in ("--set", f"{key}={text}")]
    return [option, _value(name, value, room)]


def _value(name: str, value: Any, room: Path) -> str:
    """A word, or what an option is given, as the command line has it; what is in memory is written to a folder."""
    path = room / (f"{name}.csv" if name == "pools" else f"{name}.parquet")
    if isinstance(value, Trace):
        write_trace(value, path)
    elif isinstance(value, Finished):
        value.write(path)
    elif isinstance(value, Sequence) and value and all(isinstance(one, Pool) for one in value):
        write_pools(value, path)
    else:
        return value.isoformat() if isinstance(value, datetime) else str(value)
    return str(path)


def workload(trace: Traced, cluster: Place = None, *, start: Instant = None, until: Instant = None) -> Workload:
    """Jobs of [start, until), the truth about them, and their pools: what a `Simulation` steps through.

    Raises
    ------
    TraceError, PoolsError, ConfigError
        A job can never run, or the window is empty.

    >>> import jobcast as jc
    >>> run = jc.Simulation(jc.workload(*jc.example_trace()), jc.make_policy("fcfs"))
    >>> len(run.run(jc.example_trace()[0].submit_s[9]).jobs) >= 10
    True
    """
    jobs: Workload = _experiment(trace, cluster, start, until).scenario(POOLS).workload
    return jobs


def policies() -> pd.DataFrame:
    """All policies, a row each: ours, those declared by `policy`, those installed. `jobcast policies`.

    >>> import jobcast as jc
    >>> {"fcfs", "sia"} <= set(jc.policies()["name"])
    True
    """
    return pd.DataFrame(all_policies())


def predictors() -> pd.DataFrame:
    """All predictors, a row each: the question, what it learns from, who asks it. `jobcast predictors`.

    >>> import jobcast as jc
    >>> {"new-load", "job-duration"} <= set(jc.predictors()["name"])
    True
    """
    return pd.DataFrame(all_predictors())


def registry(home: PathName | None = None) -> Registry:
    """The registry of a home, to list, resolve, load, promote and export versions.

    >>> import jobcast as jc
    >>> jc.registry("nowhere").list()
    ()
    """
    return open_registry(home_of(home))


def versions(home: PathName | None = None) -> pd.DataFrame:
    """All registered versions, a row each: `jobcast models list`.

    >>> import jobcast as jc
    >>> len(jc.versions("nowhere"))
    0
    """
    return pd.DataFrame([version_row(one) for one in open_registry(home_of(home)).list()])


def load(version: Version, home: PathName | None = None) -> Any:
    """The model of a version. Raises RegistryError where it is not there, or not what was registered.

    >>> import jobcast as jc
    >>> jc.load("new-load", "nowhere")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    jobcast.domain.errors.RegistryError: new-load: there is no such model ...
    """
    found = open_registry(home_of(home))
    return found.load(found.resolve(*reference_of(version)))


def promote(
    version: Version,
    trace: Traced | None = None,
    cluster: Place = None,
    *,
    start: Instant = None,
    until: Instant = None,
    alias: str = "champion",
    force: bool = False,
    home: PathName | None = None,
) -> Mapping[str, Any]:
    """Make a version the champion; with a trace only if it is not worse there: `jobcast models promote`.

    Of predictors that learn from a trace of jobs alone; others are compared by the command.

    Raises
    ------
    PromotionError, RegistryError, OverlapError, ConfigError
        It did worse, there is no such version, it saw the window, or no number is named.

    >>> import jobcast as jc
    >>> jc.promote("new-load", home="nowhere")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    jobcast.domain.errors.ConfigError: new-load: name a version, as in new-load:2
    """
    name, ref = reference_of(version)
    # An alias may move meanwhile.
    if not isinstance(ref, int):
        raise ConfigError(f"{version}: name a version, as in {name}:2")
    act = None
    if trace is not None:
        if standards_of("promote", name).table is not None:
            raise ConfigError(
                f"{name}: learns from tables; compare with `jobcast models promote {version} --trace FILE`"
            )
        read, from_s = trace_of(trace), seconds(start, "start")
        place = cluster_meant(cluster, read, from_s)
        act = partial(compare, window=Window(read, from_s, seconds(until, "until"), named=place))
    result = promote_version(name, ref, alias, act, force=force, home=home_of(home))
    refuse(result)
    return result


def rollback(name: str, home: PathName | None = None) -> ModelVersion:
    """Give the alias champion back to the version that held it before: `jobcast models rollback`.

    >>> import jobcast as jc
    >>> jc.rollback("new-load", "nowhere")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    jobcast.domain.errors.RegistryError: new-load: there is no such model ...
    """
    return open_registry(home_of(home)).rollback(name)
