"""`jobcast trace`: generate, convert, enrich, describe, fetch.

`jobcast trace enrich`: supply what a plain trace lacks.

`jobcast trace speedups`: a speedup table from measured step times.

`jobcast trace anonymise`, `twin`: what of a trace can be shared.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.report.formatting import counted, shown_zone
from jobcast.traces.files import keep_others

_secret_seed = click.option(
    "--seed", type=click.IntRange(min=0), help="Of all draws: a secret, for it undoes the names; default: a random one."
)
_quotas = options.several(
    click.option("--pools", type=options.FILE, help="Quotas of the trace: CSV pool,gpus[,from][,cells]."),
    click.option(
        "--pools-out", type=options.FILE, help="Write them under the new names; derived where none are given."
    ),
)


@click.group(name="trace")
def command() -> None:
    """Generate, fetch, convert, enrich, describe and share job traces, and make speedup tables for elastic jobs.

    \b
    Example:
      jobcast trace generate campus --out jobs.parquet --pools-out pools.csv
      jobcast trace describe jobs.parquet --html jobs.html
    """


@command.command(name="enrich")
@click.argument("path", metavar="TRACE", type=options.FILE)
@click.option("--facts", required=True, metavar="A,B,...", help="What to supply, see below.")
@click.option("--out", required=True, type=options.FILE, help="Folder for the jobs and their tables.")
@options.seed_option
@options.set_option
@options.reading_options
def enrich_trace(path: Path, facts: str, out: Path, seed: int, pairs: tuple[str, ...]) -> None:
    """Supply what TRACE lacks, by declared rules: the schedulers of all papers run on OUT/jobs.parquet.

    Alone, uncontended, on the GPUs that it asks for of the reference type a job takes the trace's duration, whatever
    the scheduler counts in. Columns that the trace has are kept. What was assumed stands in OUT/assumptions.json.

    \b
    Facts:
      speedups  elastic jobs: from 1 GPU to those asked for        (pcs, srsf, afs, ...)
      training  models, batch sizes, epochs, regimes               (shockwave, gavel, srpt, ...)
      goodput   step times and gradient noise                      (pollux)
      tasks     task graphs, accuracies, targets, due dates        (mlfs, tiresias, gandiva, ...)
      epochs    seconds an epoch by GPU type                       (andreas, edf, ps, ...)
      due       due dates and weights
      limits    time limits

    \b
    Settings (--set):
      reference=v100                 GPU type that durations hold on
      gpu_types=v100,p100,t4,k80     GPU types in the tables; a100:2.5 where the speed (of V100s) is not known
      regimes=mixed                  batch sizes: static, accordion, gns, or a third of each
      epochs=5,100                   fewest and most epochs of a job
      due=1.2,3                      due dates, as multiples of the duration
      weights=1,10                   least and greatest weight
      limit_factor=1.1,3             time limits: the next usual one above so many durations

    \b
    Example:
      jobcast trace enrich jobs.parquet --facts speedups,training,goodput,tasks,epochs,limits --out enriched
      jobcast simulate --trace enriched/jobs.parquet --gpus 64 --policy shockwave
    """
    from jobcast.traces.enrich.columns import parse_enrich, parse_facts
    from jobcast.traces.enrich.enrichment import OURS, enrich, write_enriched
    from jobcast.traces.facts import ASSUMPTIONS, JOBS, sentences
    from jobcast.traces.readers import read_trace

    console = options.console_of()
    # Mistakes of the line before the trace is read.
    asked, config = parse_facts(facts.split(",")), parse_enrich(settings_of(pairs))
    keep_others(out, *OURS)
    trace = read_trace(path)
    made = enrich(trace, asked, config, seed)
    write_enriched(made, out)
    console.note(f"{out / JOBS}: {counted(len(made.trace), 'job')}; what was assumed: {out / ASSUMPTIONS}")
    said = (*trace.notes, *options.dropped_lines(trace.dropped), *made.notes, *sentences(made.assumptions))
    console.note(*(f"  {line}" for line in said))


@command.command(name="speedups")
@click.argument("step_times", metavar="STEP_TIMES", type=options.FILE)
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@click.option(
    "--fit",
    default="best",
    show_default=True,
    metavar="NAME",
    help="throughput (Pollux's model), amdahl, power, table, or best: by app, the one that errs least.",
)
@click.option("--most", "most_gpus", type=int, default=16, show_default=True, help="GPUs of the last row.")
@click.option("--gpus-per-node", type=int, default=4, show_default=True, help="Of the cluster that was measured.")
@click.option(
    "--batch-size",
    "pairs",
    metavar="APP=N",
    multiple=True,
    help="Total batch size; default: what one GPU holds, or what --most GPUs can share. May be repeated.",
)
@options.json_option
def speedups(step_times: Path, out: Path, pairs: tuple[str, ...], json_to: str | None, **asked: Any) -> None:
    """Make a table of speedups from a CSV of measured step times.

    STEP_TIMES has the columns app, num_nodes, num_replicas, local_bsz, step_time, sync_time. The table serves elastic
    policies as --set speedups=FILE. Errors are those on configurations that a fit did not see.

    \b
    Example:
      jobcast trace speedups step_times.csv --out speedups.csv
      jobcast trace speedups step_times.csv --out speedups.csv --fit amdahl --most 8 --batch-size bert=24
    """
    from jobcast.pipelines.experiments.speedups import make_speedups, speedups_text

    options.check_places(json_to, (step_times,), {"--out": out})
    sizes = settings_of(pairs, "--batch-size", "APP=N")
    result = make_speedups(step_times, out, batch_sizes=sizes, **asked)
    console = options.console_of()
    console.note(f"{out}: {len(result['apps'])} models, 1 to {asked['most_gpus']} GPUs")
    options.table_or_json(result, json_to, speedups_text(result), console)


@command.command(name="generate")
@click.argument("kind")
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@click.option("--pools-out", type=options.FILE, help="Write the pools' quotas as CSV.")
@click.option("--regimes-out", type=options.FILE, help="Of gavel: write the true batch sizes as CSV.")
@click.option("--tasks-out", type=options.FILE, help="Of mlfs: write the jobs' tasks, CSV or Parquet.")
@click.option("--curves-out", type=options.FILE, help="Of mlfs: write the true accuracies by epoch.")
@click.option("--profiles-out", type=options.FILE, help="Of andreas, armida: write seconds an epoch.")
@click.option("--cluster-out", type=options.FILE, help="Of andreas, armida: write the nodes as YAML.")
@options.seed_option
@options.set_option
@options.reading_options
def generate_trace(kind: str, out: Path, seed: int, pairs: tuple[str, ...], **beside: Path | None) -> None:
    """Generate a synthetic trace.

    \b
    KIND            what it is like
    andreas         training jobs with due dates for V100 and T4 nodes (ANDREAS, section V.B)
    armida          the eight jobs of ANDREAS, Table V
    automl          elastic apps of several trials (PCS, workload 1)
    campus          users, bursts, bots, a closed loop
    gavel           training jobs that adapt their batch size (Shockwave, section 8.1); needs throughputs
    gavel-elastic   elastic jobs, many small and few long (PCS, workload 3)
    mlfs            jobs of tasks, split over servers (MLFS, section 4.1); --set arrivals=FILE for a trace's arrivals
    philly-elastic  elastic jobs drawn anew from a trace (PCS, workload 2); needs --set trace=FILE
    sia             bursts of bimodal jobs (SIA, appendix A.1)

    \b
    Example:
      jobcast trace generate sia --out jobs.csv --pools-out pools.csv --seed 1 --set variant=more_queues
      jobcast trace generate gavel --out jobs.csv --regimes-out regimes.csv --set throughputs=t.csv --set jobs=460
      jobcast trace generate automl --out apps.csv --seed 3 --set load=0.6 --set halving=true
      jobcast trace generate mlfs --out jobs.parquet --tasks-out tasks.parquet --curves-out curves.parquet
      jobcast trace generate andreas --out jobs.parquet --profiles-out profiles.csv --cluster-out cluster.yaml
    """
    from jobcast.traces import generators
    from jobcast.traces.cluster_file import write_cluster
    from jobcast.traces.learning_curves import write_job_curves
    from jobcast.traces.pools import write_pools
    from jobcast.traces.profiles import write_profiles
    from jobcast.traces.table_files import write_trace
    from jobcast.traces.tasks import write_tasks
    from jobcast.traces.trainings import write_courses

    files = {f"--{name.replace('_', '-')}": path for name, path in beside.items()}
    options.check_places(None, files={"--out": out, **files})
    settings = settings_of(pairs)
    trace, pools = generators.generate(kind, seed, settings)
    tasks = generators.generate_tasks(kind, seed, settings) if beside["tasks_out"] or beside["curves_out"] else None
    # Each file has a kind of trace of its own; another kind refuses when it is made.
    makers: dict[str, tuple[Callable[[], Any], Callable[[Any, Path], None]]] = {
        "pools_out": (lambda: pools, write_pools),
        "regimes_out": (lambda: generators.generate_courses(kind, trace, seed, settings), write_courses),
        "tasks_out": (lambda: tasks and tasks[0], write_tasks),
        "curves_out": (lambda: tasks and tasks[1], write_job_curves),
        "profiles_out": (lambda: generators.generate_profiles(kind, settings), write_profiles),
        "cluster_out": (lambda: generators.generate_nodes(kind, settings), write_cluster),
    }
    # All are made before any is written.
    made = [(makers[name][0](), makers[name][1], path) for name, path in beside.items() if path]
    write_trace(trace, out)
    for value, write, path in made:
        write(value, path)
    console = options.console_of()
    console.note(f"{out}: {counted(len(trace), 'job')} of {counted(len(trace.pools), 'pool')}")
    console.note(*(f"  {note}" for note in trace.notes))


@command.command(name="convert")
@click.argument("format_name", metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", type=options.FILE)
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@click.option(
    "--pools-out",
    type=options.FILE,
    help="Write quotas as CSV: as the sources tell them, else derived.",
)
@click.option("--timezone", metavar="ZONE", help="Of times without an offset, as in America/Los_Angeles.")
@click.option(
    "--pool-by",
    type=click.Choice(["account", "qos", "partition"]),
    help="What of a job names its pool, where the trace tells it; default: as the format has it.",
)
@options.reading_options
@options.strict_option
def convert_trace(format_name: str, sources: tuple[Path, ...], out: Path, pools_out: Path | None, **asked: Any) -> None:
    """Convert a trace of FORMAT to the canonical form; auto looks at what the sources hold.

    \b
    FORMAT     SOURCE...
    acme       trace_seren.csv trace_kalos.csv
    canonical  jobs.csv
    gavel      jobs.trace
    helios     Earth/cluster_log.csv Earth/cluster_gpu_number.csv
    openb      openb_pod_list_default.csv openb_node_list_gpu_node.csv
    pai        pai_job_table.csv pai_task_table.csv pai_group_tag_table.csv
    pcs        trace.csv
    philly     cluster_job_log cluster_machine_list, or philly_jobs.csv (flat)
    sacct      sacct.txt sinfo.txt, or what sacct --json, squeue --json say
    shockwave  120_jobs.trace
    swf        log.swf

    A format of several tables takes them in any order. What was left out, and why, is told.

    \b
    Example:
      jobcast trace convert philly cluster_job_log --out philly.parquet --timezone America/Los_Angeles
      jobcast trace convert sacct sacct.json squeue.json --out now.parquet --pool-by account
    """
    from jobcast.pipelines.cli.trace_requests import AUTO, convert

    options.check_places(None, sources, {"--out": out, "--pools-out": pools_out})
    trace, read_format, quotas_from = convert(format_name, sources, out, pools_out, **asked)
    console = options.console_of()
    read_as = f", read as {read_format}" if format_name == AUTO else ""
    console.note(f"{out}: {len(trace):,} of {trace.source.rows:,} rows{read_as}")
    console.note(*(f"  {line}" for line in (*trace.notes, *options.dropped_lines(trace.dropped))))
    if quotas_from:
        console.note(f"{pools_out}: {quotas_from}")


@command.command(name="live")
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
def export_live(out: Path) -> None:
    """Write what `jobcast serve` and `jobcast advise` have seen of a running cluster as a trace.

    known_time tells from when each end was known, which training and evaluation go by. Jobs that wait or run have no
    end.

    \b
    Example:
      jobcast trace live --out seen.parquet
    """
    from jobcast.live.event_log import EventLog
    from jobcast.live.recorded_jobs import ClusterRecord, exported, in_order
    from jobcast.traces.table_files import write_plain

    options.check_places(None, (), {"--out": out})
    log = EventLog(options.home_of())
    frame = exported(ClusterRecord().take(in_order(event for _, event in log.since(0))))
    write_plain(frame, out)
    options.console_of().note(f"{out}: {counted(len(frame), 'job')} of {log.file}")


@command.command(name="describe")
@click.argument("path", metavar="FILE", type=options.FILE)
@click.option("--pools", "pools_path", type=options.FILE, help="Quotas, for utilisation and bursts.")
@click.option("--html", type=options.FILE, help="Write a page with the charts.")
@options.timezone_option
@options.reading_options
@options.json_option
def describe_trace(path: Path, pools_path: Path | None, html: Path | None, json_to: str | None) -> None:
    """Jobs, load, burstiness, durations and widths of a trace, by pool.

    \b
    Example:
      jobcast trace describe jobs.parquet --pools pools.csv --html jobs.html --timezone Europe/Berlin
    """
    from jobcast.pipelines.report.trace_page import description_table, write_description
    from jobcast.traces.describe import describe
    from jobcast.traces.pools import read_pools
    from jobcast.traces.readers import read_trace

    console = options.console_of()
    options.check_places(json_to, (path, pools_path), {"--html": html})
    trace = read_trace(path)
    description = describe(trace, read_pools(pools_path) if pools_path else None, shown_zone())
    figures: dict[str, Any] = description.to_dict()
    if json_to == "-":  # else the table tells them
        options.tell_notes(trace, console)
    if html:
        write_description(figures, html, submit_s=trace.submit_s)
        console.note(f"page: {html}")
    options.emit_json(figures, json_to)
    if json_to != "-":
        console.result(description_table(figures))


@command.command(name="fetch")
@click.argument("name", required=False)
@click.option("--from", "origin", metavar="DIR|URL", help="A folder or mirror that holds the files.")
@click.option("--out", type=options.FILE, help="The folder that they go to; default: data/raw/NAME.")
def fetch_trace(name: str | None, origin: str | None, out: Path | None) -> None:
    """Fetch the public trace NAME; without NAME, list those that are known, with sizes and licences.

    A download that was cut goes on where it stopped. Without a network, bring the files with --from.

    \b
    Example:
      jobcast trace fetch openb
      jobcast trace fetch philly --from /media/mirror
    """
    from jobcast.pipelines.cli.trace_requests import about, catalogue_table, fetched

    console = options.console_of()
    if name is None:
        console.result(catalogue_table())
        return
    # The licence is told before the download.
    console.note(about(name))
    console.result(fetched(name, origin, out, console))


@command.command(name="anonymise")
@click.argument("path", metavar="TRACE", type=options.FILE)
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@_quotas
@click.option("--k", type=int, default=5, show_default=True, help="Fewest users who look alike.")
@click.option(
    "--jitter", "jitter_s", metavar="S", type=float, default=7200.0, show_default=True, help="Most that a job moves, s."
)
@click.option(
    "--shift",
    type=click.Choice(["weeks", "days", "hours"]),
    default="weeks",
    show_default=True,
    help="Unit of the secret shift; weeks leave weekday and hour as they are, days the hour.",
)
@_secret_seed
@click.option("--key", type=options.FILE, help="Write the secret: seed, shift and words, for the owner alone (0600).")
@options.reading_options
@options.json_option
def anonymise(path: Path, json_to: str | None, **asked: Any) -> None:
    """Export TRACE so that it can be shared: other names, other times, users among at least k who look alike.

    Each job stays, so that schedulers meet the same queue. Who fears that a job be recognised shares a twin. The audit
    says what was replaced and what an attacker could still do; it is for you, not for those you share with.

    \b
    Example:
      jobcast trace anonymise jobs.parquet --pools pools.csv --out shared.parquet --pools-out shared.csv
    """
    from jobcast.pipelines.cli.sharing_requests import export

    options.check_places(
        json_to,
        (path, asked["pools"]),
        {"--out": asked["out"], "--pools-out": asked["pools_out"], "--key": asked["key"]},
    )
    result, text = export(path, asked, options.console_of())
    options.table_or_json(result, json_to, text, options.console_of())


@command.command(name="twin")
@click.argument("path", metavar="TRACE", type=options.FILE)
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@_quotas
@click.option("--weeks", type=int, metavar="N", help="Length of the twin; default: that of the trace.")
@_secret_seed
@click.option("--audit", "json_to", metavar="FILE", help="Write the audit as JSON; - is stdout.")
@options.reading_options
def twin(path: Path, json_to: str | None, **asked: Any) -> None:
    """Draw a synthetic trace from a model fitted to TRACE: its users, bursts, widths, run times, and no job of it.

    \b
    Example:
      jobcast trace twin jobs.parquet --pools pools.csv --out twin.parquet --pools-out twin.csv --audit audit.json
    """
    from jobcast.pipelines.cli.sharing_requests import twin

    options.check_places(json_to, (path, asked["pools"]), {"--out": asked["out"], "--pools-out": asked["pools_out"]})
    result, text = twin(path, asked, options.console_of())
    options.table_or_json(result, json_to, text, options.console_of())
