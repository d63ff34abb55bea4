"""`jobcast drift`: does a version still fit what comes, week by week?"""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.report.files import write_json


@click.command(name="drift")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@options.trace_option()
@options.cluster_options
@options.window_options
@click.option("--html", type=options.FILE, help="Write a page with the plots.")
@click.option("--out", type=options.FILE, metavar="DIR", help="Write report.html and drift.json there.")
@click.option("--switches-out", type=options.FILE, metavar="FILE", help="Write switches for sia: CSV.")
@click.option(
    "--most-missed",
    type=options.Finite(0, 1),
    default=0.5,
    show_default=True,
    help="Of the windows with arrivals, before sharing is switched off.",
)
@click.option(
    "--switch-days",
    "days",
    type=options.Finite(0, min_open=True),
    default=14.0,
    show_default=True,
    help="That it looks at.",
)
@click.option("--least-arrivals", type=click.IntRange(min=1), default=20, show_default=True, help="That it needs.")
@options.overlap_option
@options.set_option
@options.timezone_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    predictor: str,
    trace_path: Path,
    html: Path | None,
    out: Path | None,
    switches_out: Path | None,
    pairs: tuple[str, ...],
    json_to: str | None,
    **asked: Any,
) -> None:
    """Whether a version still fits, week by week: fine, watch, retrain, roll back, or check the data.

    The verdict is of bias, calibration and cost, as known at the end of a week; inputs that moved alone change nothing.
    Told with it: since when, what a week costs, the command to type, and figures expected before the truth is known.

    Weeks are counted from --from (default: where training ended). Switches turn the sharing of a pool's GPUs off, from
    the end of a completed week on, for windows whose arrivals the gate has missed too often by then; sia obeys them
    with --set switches=FILE.

    regime, accuracy-curve and epoch-time are watched by the jobs of a trace with facts that were over; the latter two
    as well by the rows of a file of curves or profiles, twenty at a time. mlf-policy and device-rl are watched by what
    they gain over the heuristic, each week replayed on the GPUs that are named.

    \b
    Example:
      jobcast drift will-jobs-arrive --trace jobs.parquet --html drift.html --switches-out switches.csv
      jobcast simulate --trace jobs.parquet --policy sia --forecasts registry --set switches=switches.csv
    """
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.cli.predictor_options import watched_table
    from jobcast.pipelines.experiments.settings import write_switches
    from jobcast.pipelines.lifecycle.drift import drift, drift_of_table
    from jobcast.pipelines.lifecycle.drift_page import drift_table, write_drift
    from jobcast.pipelines.lifecycle.drift_rules import SwitchRule
    from jobcast.pipelines.lifecycle.replay_judges import Window
    from jobcast.pipelines.lifecycle.standards import standards_of
    from jobcast.traces.readers import read_trace

    console, reference = options.console_of(), parse_reference(predictor)
    files = {"--html": html, "--switches-out": switches_out}
    options.check_places(json_to, (trace_path,), files, {"--out": out})
    # For its error: a name that is none must not cost reading a trace.
    standards_of("drift", reference[0])
    facts, alone = watched_table(ctx, reference[0], ("html", "out", "allow_overlap"))
    trace = None if alone is not None else read_trace(trace_path)
    # What is left of the options is the window, the GPUs and the overlap.
    rule = SwitchRule(*(asked.pop(name) for name in ("most_missed", "days", "least_arrivals")))
    with console.progress(f"drift {predictor}") as step:
        if trace is None:
            found = drift_of_table(reference, alone, home=options.home_of(), allow_overlap=asked["allow_overlap"])
        else:
            window = Window(trace, given=settings_of(pairs), **asked)
            found = drift(reference, window, home=options.home_of(), rule=rule, progress=step, facts=facts)
    # Known only now: an installed predictor of arrivals may have a gate.
    if switches_out and not found.result["switch_rule"]:
        raise ConfigError(f"--switches-out: {reference[0]} has no gate to switch by; name will-jobs-arrive")
    if switches_out:
        write_switches(found.switches, switches_out)
        console.note(f"switches: {switches_out}")
    for page in filter(None, (html, out and out / "report.html")):
        write_drift(found.result, page)
        console.note(f"page: {page}")
    if out:
        write_json(out / "drift.json", found.result)
    # A table's notes are in its result.
    if trace is not None:
        options.tell_notes(trace, console)
    options.table_or_json(found.result, json_to, drift_table(found.result), console)
