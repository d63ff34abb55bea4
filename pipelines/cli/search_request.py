"""`jobcast search`: what was asked, carried out, told and written."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.search.evaluation import World, journal_beside, parse_objectives
from jobcast.pipelines.experiments.search.front import (
    Front,
    check_front_path,
    front_table,
    read_front,
    write_front,
    write_plots,
)
from jobcast.pipelines.experiments.search.pareto_search import LEAST_JOBS, SearchRequest, search_front
from jobcast.pipelines.experiments.search.workload_samples import Sampling, compare, workload_of
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import counted
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.traces.readers import read_trace

POLICY = "pcs"


KEPT = (
    "objectives", "gpus", "cluster_path", "algorithm", "space", "evaluations", "samples", "test_samples", "sample_jobs",
    "load", "gaps", "engine_name", "seed", "settings",
)  # fmt: skip
"""Options of `jobcast search pcs` that a later search needs to be like an earlier one; the window is its own."""
Options = Mapping[str, Any]


def _request(options: Options) -> SearchRequest:
    """What is searched for. Raises ConfigError for objectives that cannot be read."""
    names = ("algorithm", "evaluations", "samples", "test_samples", "space", "seed")
    return SearchRequest(
        objectives=parse_objectives(options["objectives"]),
        sampling=Sampling(options["sample_jobs"], options["load"], options["gaps"]),
        **{name: options[name] for name in names},
    )


def search_and_tell(
    trace_path: Path, out: Path, options: Options, console: Console, *, quiet: bool = False
) -> dict[str, Any]:
    """Search, write the front and its plots, print its table unless `quiet`; the front's figures.

    Raises ConfigError, TraceError and DecisionError as its parts do.
    """
    # Plots and a journal lie beside it: its ending names a format.
    check_front_path(out)
    request = _request(options)
    world_settings = _world_settings(options["settings"])
    scenario = _scenario(trace_path, options)
    world = World(scenario.workload.cluster, scenario.place.gpu_types, **world_settings)
    workload = workload_of(scenario)
    with console.progress("search pcs") as step:
        found = search_front(
            workload,
            world,
            request,
            journal=journal_beside(out),
            jobs=options["jobs"],
            engine_name=options["engine_name"],
            progress=step,
        )
    path = options["cluster_path"]
    about = {
        **found.front.about,
        "options": {**{name: options[name] for name in KEPT}, "cluster_path": path and str(path)},
        "inputs": scenario.provenance(),
        "gpus": scenario.place.origin,
    }
    front = replace(found.front, about=about)
    write_front(front, out)
    written = [out, *write_plots(front, out)]
    if len(scenario) < LEAST_JOBS:
        console.note(
            f"only {counted(len(scenario), 'job')}, fewer than {LEAST_JOBS}: "
            "the front is the default alone, FIFO, untested"
        )
    if found.resumed:
        console.note(f"simulations taken from {journal_beside(out)}: {found.resumed}")
    console.note(*scenario.notes, f"front: {', '.join(map(str, written))}")
    if not quiet:
        console.result(front_table(front))
    return front_figures(front)


def check_and_tell(
    front_path: Path, trace_path: Path, asked: Options, console: Console, *, quiet: bool
) -> dict[str, Any]:
    """Compare a trace's workload with a front's, print the verdict unless `quiet`, search anew where due and asked.

    Raises ConfigError and TraceError as its parts do.
    """
    front = read_front(front_path)
    about, out = front.about, asked["out"]
    try:
        options = {name: about["options"][name] for name in KEPT}
        options["cluster_path"] = Path(options["cluster_path"]) if options["cluster_path"] else None
        options |= {name: asked[name] for name in ("from_s", "until_s", "limit", "jobs")}
        # Read here, so that a front of an older version is told as such.
        gpus, searched = about["inputs"]["gpus"], about["workload"]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{front_path}: does not say what it was searched on ({error}); search anew") from error
    scenario = _scenario(trace_path, options, gpus)
    try:
        verdict = compare(searched, workload_of(scenario))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{front_path}: does not say what it was searched on ({error}); search anew") from error
    due = verdict["search_due"]
    if not quiet:
        console.result("\n".join(verdict["reasons"]) if due else "the workload is still the one that was searched on")
        console.result("a new search is due" if due else "no new search is due")
    verdict["started"] = due and asked["start"]
    if verdict["started"]:
        before = front_path.with_stem(f"{front_path.stem}-before")
        if out is None:
            # Configurations of it are in use.
            write_front(front, before)
        verdict["front"] = search_and_tell(trace_path, out or front_path, options, console, quiet=quiet)
        kept = f"; the old one is {before}" if out is None else ""
        configurations = verdict["front"]["configurations"]
        console.note(f"searched anew on {trace_path}, {configurations} configurations: {out or front_path}{kept}")
    elif due:
        console.note(f"no search was started (--no-start); {front_path} stays as it is")
    return verdict


def front_figures(front: Front) -> dict[str, Any]:
    """A front as JSON holds it."""
    labels = [one.label for one in front.objectives]
    rows = [
        {
            "pick": row.pick,
            "pareto": row.pareto,
            "test": dict(zip(labels, row.test, strict=True)) if row.test else None,
            "train": dict(zip(labels, row.train, strict=True)) if row.train else None,
            "parameters": dict(row.parameters),
            "config": row.config.to_json(),
        }
        for row in front.rows
    ]
    references = {name: dict(zip(labels, values, strict=True)) for name, values in front.references.items()}
    return {"rows": rows, "references": references, **front.about}


def _world_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """How PCS deals out. Raises ConfigError for a setting that it does not know, or that a search decides."""
    # Told by its own line: it is a setting of PCS, and would be accepted below.
    for name in ("config", "configs"):
        if name in settings:
            raise ConfigError(f"--set {name}: is what a search looks for; leave it out")
    split = split_settings(find_policy(POLICY), settings)
    return {
        "whole": split.own.whole_gpus,
        "monotone": split.own.caps == "monotone",
        "preempt_s": split.mechanism.preempt_s,
    }


def _scenario(trace_path: Path, options: Options, gpus: int | Mapping[str, float] | None = None) -> ElasticScene:
    """The jobs to draw from, and the GPUs: as given, else those of an earlier search, else the trace's own."""
    trace = read_trace(trace_path)
    known = options["gpus"]
    # A front was searched for so many GPUs: another number would be another question.
    if gpus is not None and known is None and options["cluster_path"] is None:
        known = gpus if isinstance(gpus, int) else round(sum(gpus.values()))
    place = cluster_of(trace, gpus=known, cluster=options["cluster_path"], from_s=options["from_s"])
    demand = split_settings(find_policy(POLICY), options["settings"]).files.given()
    window = {name: options[name] for name in ("from_s", "until_s", "limit")}
    return elastic_jobs(cut_scenario(trace, place.shared, **window), **demand)
