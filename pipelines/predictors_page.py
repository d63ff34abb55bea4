"""What predictors there are: as figures, as a table for a person, and as a page of the documentation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobcast.domain.questions import Question
from jobcast.models.predictors import OURS, PREDICTORS, answers_of
from jobcast.pipelines.policy_tables import aligned, listed, markdown_lines
from jobcast.schedulers.registry import BUILT_IN

HEAD = """# Predictors

Written by `jobcast predictors --markdown`. A predictor answers a *question*; *learns from* is what it is fitted on: a
trace of jobs, and tables beside it. *Asked by* are the policies that ask its champion, unless `--forecasts` names
another source. *Beside* are the rules that `jobcast evaluate` scores it with; `--smoothing` adds statsforecast's
AutoETS and CES to those of arrivals and loads, fitted to each pool's hourly counts (`pip install 'jobcast[smoothing]'`;
`models/evaluation/smoothing.py` says how). *Gate* are the policies whose replays `jobcast models promote --trace`
decides by ([lifecycle.md](lifecycle.md)); *stages* are those of `jobcast run` and `dvc.yaml` that are its own. The
first algorithm is the default. An installed package adds its own by an entry point of the group `jobcast.predictors`
([plugins.md](plugins.md)).

"""
COLUMNS = (
    "predictor", "question", "learns from", "algorithms", "commands", "asked by", "beside", "gate", "stages",
)  # fmt: skip


def predictor_row(name: str) -> dict[str, Any]:
    """What there is to know of a predictor before any version of it."""
    from jobcast.pipelines.lifecycle.lives import judged
    from jobcast.pipelines.predictors import find_predictor
    from jobcast.pipelines.running import predictors_of
    from jobcast.pipelines.stages.plan import STAGES

    life, question = find_predictor(name), answers_of(name)
    ours = next((one for one, place in OURS.items() if place.answers == question), name)
    return {
        "name": name,
        "question": str(question),
        "learns_from": list(life.needs),
        "algorithms": list(life.algorithms),
        "commands": list(life.commands),
        "asked_by": [one.name for one in BUILT_IN.values() if ours in predictors_of(one)],
        "beside": list(rules_of(question)),
        "gate": [judge.policy for judge in judged(name).judges],
        "stages": [stage.name for stage in STAGES if name in stage.items],
    }


def rules_of(question: Question) -> Sequence[str]:
    """Names of the rules without a model that `evaluate` tells beside a predictor, or whose place it takes."""
    from jobcast.models.baselines import ARRIVAL_RULES, LOAD_RULES
    from jobcast.models.duration_booster import DURATION_RULES
    from jobcast.models.evaluation.ablation import PAPER_RECIPE
    from jobcast.models.evaluation.epoch_times import BASELINES
    from jobcast.models.evaluation.loads import MAX_OF_N
    from jobcast.models.regimes import REGIME_RULES

    rules: Mapping[Question, Iterable[str]] = {
        Question.ARRIVALS: (*ARRIVAL_RULES, "ewma", PAPER_RECIPE),
        Question.LOADS: (*LOAD_RULES, MAX_OF_N),
        Question.DURATIONS: DURATION_RULES,
        Question.REGIMES: REGIME_RULES,
        Question.ACCURACIES: ("last value",),
        Question.EPOCH_TIMES: BASELINES,
        Question.COMPLETIONS: ("median",),
        Question.SIZES: ("median",),
        Question.GOODPUT: ("one GPU",),
        Question.TASK_ORDER: ("mlf_h",),
        Question.DEVICE_ORDER: ("mlf_h",),
    }
    return tuple(rules.get(question, ()))


def all_predictors() -> list[dict[str, Any]]:
    """Rows of ours and of those installed."""
    return [predictor_row(name) for name in PREDICTORS]


def predictors_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line a predictor."""
    names = ("name", "question", "learns_from", "algorithms", "asked_by", "gate")
    cells = [tuple(one[name] if isinstance(one[name], str) else listed(one[name]) for name in names) for one in rows]
    return aligned([("predictor", "question", "learns from", "algorithms", "asked by", "gate"), *cells])


def predictors_page() -> str:
    """The page of the documentation: ours alone, whatever is installed."""
    told = (predictor_row(name) for name in OURS)
    rows = [(f"`{one['name']}`", one["question"], *(listed(one[key]) for key in list(one)[2:])) for one in told]
    return HEAD + "\n".join(markdown_lines(COLUMNS, rows))
