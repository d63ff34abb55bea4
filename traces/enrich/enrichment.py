"""`jobcast trace enrich`: a plain trace with what it lacks, in one folder with what was assumed."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast import __version__
from jobcast.domain.errors import TraceError
from jobcast.traces.columns import COLUMNS
from jobcast.traces.enrich.columns import (
    COLUMNS_OF,
    MODELS_FILE,
    EnrichConfig,
    EnrichedJobs,
    drawn_columns,
    enriched_jobs,
    filled,
    kept_and_drawn,
)
from jobcast.traces.enrich.tables import (
    dataset_table,
    enriched_curves,
    enriched_tasks,
    job_curves,
    noise_table,
    profile_rows,
    regime_courses,
    speedup_table,
    step_time_table,
    throughput_table,
)
from jobcast.traces.facts import ASSUMPTIONS, FILES, JOBS, KIND, assumptions_beside, is_enriched
from jobcast.traces.files import keep_others, replacing, sha256_of
from jobcast.traces.generators.settings import known_settings
from jobcast.traces.learning_curves import write_job_curves
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_plain, write_trace
from jobcast.traces.tasks import write_tasks
from jobcast.traces.trainings import write_courses

Writer = Callable[[Path], None]
SAYS: Mapping[str, str] = {
    "speedups": "Scaling is assumed: each job is taken for a published model by its GPU-hours and width; it can run on "
    "1 GPU up to those it asked for, and its duration holds for those.",
    "training": "Training is synthetic: models, batch sizes and how they change are drawn by rules, an epoch takes "
    "published seconds times a factor of the job's own, so that alone it takes the trace's duration.",
    "goodput": "Goodput is synthetic: step times follow the assumed speedups, gradient noise grows by a rule, work is "
    "scaled so that alone a job takes the trace's duration.",
    "tasks": "Task graphs and training curves are synthetic: drawn as MLFS's workload is, with iterations that add up "
    "to the trace's duration where nothing is sent and nothing held up.",
    "epochs": "Profiles are assumed: seconds an epoch follow the assumed speedups and one speed a GPU type, times a "
    "factor of the job's own, so that alone on the GPUs asked for of the reference type it takes the trace's duration.",
}
"""A sentence a fact, shown in whatever is made of it."""
OURS = ("an enriched trace", is_enriched)
"""What `--out` may replace."""
DRAWN: Mapping[str, str] = {
    "deadline": "Due dates are drawn, as multiples of the duration.",
    "weight": "Weights are drawn, uniformly.",
    "time_limit_s": "Time limits are drawn: the next usual one above the duration times a factor.",
}
"""The same of facts that are columns alone: a sentence a column, of those alone that the trace does not fill itself."""
OWN, EARLIER = "the trace's own", "of an earlier enrichment"
"""Whose a column is that is kept."""


@dataclass(frozen=True, slots=True)
class Enriched:
    """An enriched trace, not yet written.

    Attributes
    ----------
    trace : with the columns
    tables : writers by the names that `--set` gives the tables
    assumptions : what is told of it, without the files
    notes : in words, for the terminal
    """

    trace: Trace
    tables: Mapping[str, Writer]
    assumptions: Mapping[str, Any]
    notes: tuple[str, ...]


def enrich(trace: Trace, facts: Sequence[str], config: EnrichConfig, seed: int) -> Enriched:
    """Supply facts that a trace lacks; what it has is kept. Raises ConfigError and TraceError.

    Jobs without GPUs or a run time, which no rule knows the size of, stay in the trace as they are.

    Parameters
    ----------
    trace : canonical, jobs not elastic
    facts : names in `config.FACTS`
    config, seed : of the rules
    """
    # no rule can size a job without GPUs or a run time
    at = np.flatnonzero(trace.ended & (trace.gpus > 0))
    if not len(at):
        raise TraceError(f"{trace.source.path}: no job asks for GPUs and has ended; give a trace with such jobs")
    known = replace(trace, jobs=trace.jobs[at])
    jobs = enriched_jobs(known, config, seed)
    curves = enriched_curves(jobs) if "tasks" in facts else None
    columns = drawn_columns(known, jobs, config, None if curves is None else curves.final)
    # in canonical order, whatever order facts are asked in
    names = [name for name in COLUMNS if any(name in COLUMNS_OF[fact] for fact in facts)]
    counts = kept_and_drawn(known, names)
    nothing = {name: pl.Series(name, [None] * len(trace), columns[name].dtype) for name in names}
    # the trace's own values win
    frame = trace.jobs.with_columns(filled(trace, name, nothing[name].scatter(at, columns[name])) for name in names)
    order = [name for name in COLUMNS if name in frame.columns]
    whole = frame.select(order + [name for name in frame.columns if name not in COLUMNS])
    tables: dict[str, Writer] = {}
    for fact in facts:
        tables |= _tables(fact, jobs, config)
    if curves is not None:
        tasks, of_jobs = enriched_tasks(jobs, seed), job_curves(jobs, curves)
        tables |= {"tasks": partial(write_tasks, tasks), "curves": partial(write_job_curves, of_jobs)}
    says = {
        fact: SAYS.get(fact) or " ".join(DRAWN[name] for name in COLUMNS_OF[fact] if counts[name][1]) for fact in facts
    }
    # what was drawn once is no column of the trace's own the second time; the tables of then do not come along
    before = assumptions_beside(trace.source.path)
    old = {} if before is None else {fact: {**one, "tables": []} for fact, one in before["facts"].items()}
    # what the trace tells by itself is no assumption
    result = old | {
        fact: {"says": said, "columns": list(COLUMNS_OF[fact]), "tables": list(_TABLES_OF.get(fact, ()))}
        for fact, said in says.items()
        if said
    }
    assumptions = {
        "kind": KIND,
        "jobcast": __version__,
        "trace": {"path": trace.source.path, "sha256": trace.source.sha256, "rows": trace.source.rows},
        "jobs": len(jobs),
        "seed": seed,
        "settings": {name: getattr(config, name) for name in known_settings(EnrichConfig)},
        "facts": result,
        "columns": {name: {"kept": kept, "drawn": drawn} for name, (kept, drawn) in counts.items()},
        "models": _models(jobs),
        "models_sha256": sha256_of(MODELS_FILE),
        **({} if before is None else {"before": before}),
    }
    return Enriched(replace(trace, jobs=whole), tables, assumptions, _notes(counts, jobs, _drawn_in(before)))


def write_enriched(enriched: Enriched, folder: Path) -> None:
    """Write jobs, tables and assumptions into a folder, all or nothing; an enriched trace that is there is replaced.

    Raises ConfigError where there is something else, or it cannot be written.
    """
    # before anything is drawn up: nobody's own folder may be replaced
    keep_others(folder, *OURS)
    with replacing(folder) as draft:
        draft.mkdir()
        write_trace(enriched.trace, draft / JOBS)
        for name, write in enriched.tables.items():
            write(draft / FILES[name])
        files = {name: {"file": FILES[name], "sha256": sha256_of(draft / FILES[name])} for name in enriched.tables}
        # hashes of the written files, so that readers can tell changed ones
        result = {**enriched.assumptions, "jobs_sha256": sha256_of(draft / JOBS), "files": files}
        (draft / ASSUMPTIONS).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


_TABLES_OF: Mapping[str, tuple[str, ...]] = {
    "speedups": ("speedups",),
    "training": ("throughputs", "datasets", "regimes"),
    "goodput": ("step_times", "training_curves"),
    "tasks": ("tasks", "curves"),
    "epochs": ("profiles",),
}


def _tables(fact: str, jobs: EnrichedJobs, config: EnrichConfig) -> dict[str, Writer]:
    """Tables of a fact by model."""
    if fact == "speedups":
        return {"speedups": partial(write_plain, speedup_table(jobs, config))}
    if fact == "training":
        # without changing batch sizes there is nothing to write
        courses = regime_courses(jobs)
        changing: dict[str, Writer] = {"regimes": partial(write_courses, courses)} if courses else {}
        throughputs, datasets = throughput_table(jobs, config), dataset_table(jobs)
        known = {"throughputs": partial(write_plain, throughputs), "datasets": partial(write_plain, datasets)}
        return {**known, **changing}
    if fact == "goodput":
        steps, noise = step_time_table(jobs), noise_table(jobs)
        return {"step_times": partial(write_plain, steps), "training_curves": partial(write_plain, noise)}
    return {"profiles": partial(write_plain, profile_rows(jobs, config))} if fact == "epochs" else {}


def _models(jobs: EnrichedJobs) -> dict[str, dict[str, Any]]:
    """Of each model in the trace: which row it is taken for, how many jobs, where the numbers come from."""
    return {
        name: {
            "taken_for": model.name,
            "jobs": jobs.models.count(name),
            "dataset": model.dataset,
            "source": model.source,
            "licence": model.licence,
        }
        for name, model in jobs.model_of.items()
    }


def _drawn_in(assumptions: Mapping[str, Any] | None) -> set[str]:
    """Columns that an enrichment drew, or one before it."""
    if assumptions is None:
        return set()
    drawn = {name for name, count in assumptions["columns"].items() if count["drawn"]}
    return drawn | _drawn_in(assumptions.get("before"))


def _notes(counts: Mapping[str, tuple[int, int]], jobs: EnrichedJobs, before: Collection[str]) -> tuple[str, ...]:
    """In words: what was kept, of columns of the trace's own and of those that it was enriched with before."""
    kept = [
        f"column {name}: {EARLIER if name in before else OWN}, kept"
        + (f"; {drawn:,} empty rows filled" if drawn else "")
        for name, (own, drawn) in counts.items()
        if own
    ]
    # taken for others, which a user should know before trusting results
    strange = [f"{name} ({model.name})" for name, model in jobs.model_of.items() if name not in model.aliases]
    known = [f"models that are not known are taken for others: {', '.join(strange[:5])}"] if strange else []
    return tuple(kept + known)
