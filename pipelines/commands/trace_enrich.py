"""`jobcast trace enrich`: supply what a plain trace lacks."""

from pathlib import Path

import click

from jobcast.pipelines.commands import options


@click.command(name="enrich")
@click.argument("path", metavar="TRACE", type=options.FILE)
@click.option("--facts", required=True, metavar="A,B,...", help="What to supply, see below.")
@click.option("--out", required=True, type=options.FILE, help="Folder for the jobs and their tables.")
@options.seed_option
@options.set_option
@options.reading_options
@click.pass_context
def enrich_trace(ctx: click.Context, path: Path, facts: str, out: Path, seed: int, pairs: tuple[str, ...]) -> None:
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
    from jobcast.traces.enrich.config import parse_enrich, parse_facts
    from jobcast.traces.enrich.enrichment import check_folder, enrich, write_enriched
    from jobcast.traces.facts import ASSUMPTIONS, JOBS, sentences
    from jobcast.traces.readers import read_trace

    console = options.console_of(ctx)
    asked, config = parse_facts(facts.split(",")), parse_enrich(options.settings_of(pairs))
    check_folder(out)
    trace = read_trace(path)
    made = enrich(trace, asked, config, seed)
    write_enriched(made, out)
    console.note(f"{out / JOBS}: {len(made.trace):,} jobs; what was assumed: {out / ASSUMPTIONS}")
    for line in (*trace.notes, *options.dropped_lines(trace.dropped), *made.notes, *sentences(made.assumptions)):
        console.note(f"  {line}")
