"""Stage care: how careful the predictors must be, found on the end of the training time by twins that have not seen it.

The test window decides nothing here: it is kept for the gate (stage promote).
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from jobcast.domain.errors import TraceError, TrainingError
from jobcast.models.care import LADDER, RESPECTS, Care
from jobcast.pipelines.experiments.care_rehearsal import Rehearsal, Trio, in_order, rehearsed
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.lifecycle.recipes import recipe_of
from jobcast.pipelines.lifecycle.recipes.common import VALIDATION_SHARE, TrainingData
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.train import settings_of, training_data
from jobcast.traces.files import replacing
from jobcast.traces.pools import read_pools

LEAST_JOBS = 2000
"""So many jobs are rehearsed, where the training time has them: a share of half a per cent is then ten jobs."""
MOST_PARTS = 2
"""Parts of the training time, each of `VALIDATION_SHARE`, that are rehearsed at most; what comes before must teach."""
MOST_CARES = 6
"""That the gate may try, one after the other, where the first does not pass."""


def work(context: Context, item: str = "") -> None:
    """Rehearse the end of the training time; write the care that was chosen, what was tried, and the twins."""
    rehearsals, why_few = _rehearsals(context)
    most, allowed = context.params.train.will_jobs_arrive.miss_share, context.params.care.slowed_pct
    # The user's own miss share is the boldest that may be tried.
    ladder = [replace(care, miss_share=min(care.miss_share, most)) for care in LADDER]
    with context.console.progress("care") as step:
        tried = rehearsed(rehearsals, ladder, allowed, step)
    cares = in_order(ladder, tried, context.params.promote.speedup)[:MOST_CARES]
    # The whole folder at once: an interrupt leaves the old twins or the new ones.
    with replacing((context.root / "interim/twins").resolve()) as folder:
        folder.mkdir()
        for twin in rehearsals[0].twins if rehearsals else ():
            # Care changes thresholds and quantiles only: no twin is trained again for it.
            twin.take(cares[0])
            twin.save(folder / twin.name)
    result: dict[str, Any] = {
        "cares": [asdict(care) for care in cares],
        "slowed_pct": allowed,
        "tried": tried,
        "windows": [
            {"from": iso(one.scenario.from_s), "until": iso(one.scenario.until_s), "jobs": len(one.base)}
            for one in rehearsals
        ],
        "notes": why_few,
    }
    write_json(context.root / "interim/care.json", result)
    for name in PREDICTORS:
        write_json(context.root / f"interim/care/{name}.json", _own(name, cares))
    context.write_receipt("care", {"input": context.input_hash()})
    context.console.note(f"care: {_sentence(result)}")


def _rehearsals(context: Context) -> tuple[list[Rehearsal], list[str]]:
    """Of the last part of the training time, and of the one before it where that has few jobs; and what lacks."""
    split, _ = context.split()
    pools = read_pools(context.pools).at(split.train_until_s)
    data, found = training_data(context), list[Rehearsal]()
    try:
        for begin_s, end_s in _parts(data):
            found.append(Rehearsal.of(_twins(context, data, begin_s), data.trace, pools, begin_s, end_s))
            if sum(len(one.base) for one in found) >= LEAST_JOBS:
                break
    except (TrainingError, TraceError) as error:  # too short a history: what is found so far must do, and it is told
        return found, [str(error)]
    return found, []


def _parts(data: TrainingData) -> Iterator[tuple[float, float]]:
    # The first part is the twin's validation exactly, so that stage train need not fit another.
    length_s = VALIDATION_SHARE * (data.until_s - data.from_s)
    for number in range(MOST_PARTS):
        end_s = data.until_s - number * length_s
        yield (data.validation_from_s if number == 0 else end_s - length_s), end_s


def _twins(context: Context, data: TrainingData, until_s: float) -> Trio:
    """The first algorithm of each predictor, trained on what lies before an instant."""
    # A twin of a twin would be trained for nothing: it validates nothing.
    earlier = replace(data, trace=data.trace.between(None, until_s), until_s=until_s, validation_share=0.0)
    found: list[Any] = []
    for name in PREDICTORS:
        algorithm, recipe = recipe_of(name, context.params.train.algorithms(name)[0])
        with context.console.progress(f"care: twin of {name}") as step:
            found.append(recipe(earlier, algorithm, settings_of(context, name), step).predictor)
    return found[0], found[1], found[2]


def _own(predictor: str, cares: Sequence[Care]) -> dict[str, Any]:
    """What one predictor needs to know: how careful to be, the choice first. Others' care changes nothing of it."""
    # A file a predictor, so that DVC trains only those anew whose own care has changed.
    return {"respect": RESPECTS[predictor], "values": list(dict.fromkeys(care.of(predictor) for care in cares))}


def _sentence(values: dict[str, Any]) -> str:
    level = ", ".join(f"{name} {value:g}" for name, value in values["cares"][0].items())
    best = next((row for row in values["tried"] if row["care"] == values["cares"][0]), None)
    if best is None:
        return f"the most careful ({level}), for nothing could be rehearsed: {'; '.join(values['notes'])}"
    figures = f"slows {best['slowed_pct']:.2g} % of {best['jobs']:,} jobs at the end of the training time"
    return f"{level}; {figures}, {best['speedup_gmean']:.3g} times as fast"
