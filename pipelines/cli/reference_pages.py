"""What policies and predictors there are: as figures, as tables for a person, and as pages of the documentation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobcast.domain.forecasts import Question
from jobcast.domain.settings import Settings, values_of
from jobcast.models.predictors import OURS, PREDICTORS, answers_of
from jobcast.pipelines.report.layout import aligned, markdown_lines
from jobcast.schedulers.policies import KINDS, PolicySpec
from jobcast.schedulers.registry import BUILT_IN, POLICIES

POLICIES_HEAD = """# Policies

Written by `jobcast policies --markdown`. A policy's *law* is how jobs progress under it; its *scope* is `pool` where
quotas count and `cluster` where they are ignored; *asks* is what it asks of forecasts, *needs* what a trace must bring.
`jobcast policies NAME` shows one. An installed package adds its own by an entry point of the group `jobcast.policies`
that names a `jobcast.schedulers.policies.PolicySpec` of any kind, or a callable of (forecasts, settings) that makes a
policy over pools.

Several papers have a `fifo`, `las`, `themis` or `fair`. Where the trace by its own columns is elastic the short name
stands for `elastic_fifo`, `elastic_las`, `elastic_themis`, `elastic_fair`, and with `--set profiles=FILE` `fifo` stands
for `energy_fifo`; the output says which was taken.
"""
POLICY_COLUMNS = ("policy", "scope", "preempts", "asks", "needs", "what it does", "paper")


def policy_row(spec: PolicySpec) -> dict[str, Any]:
    """What a policy says of itself, without its settings."""
    return {
        "name": spec.name,
        "kind": spec.kind,
        "law": spec.law,
        "scope": spec.scope,
        "preempts": spec.preempts,
        "asks": list(spec.asks),
        "needs": list(spec.needs),
        "learned": spec.learned or None,
        "locality": spec.local is not None,
        "summary": spec.summary,
        "paper": spec.paper or None,
    }


def policy_figures(spec: PolicySpec) -> dict[str, Any]:
    """`policy_row` and all settings, by what they are about."""
    # All that `--set` may tell, with servers or without.
    parts = spec.parts(local=True)
    return {
        **policy_row(spec),
        "settings": {part: _settings(model) for part, model in parts.items() if model.model_fields},
    }


def all_policies() -> list[dict[str, Any]]:
    """Rows of ours and of those installed."""
    return [policy_row(POLICIES[name]) for name in POLICIES]


def policies_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line a policy."""
    cells = [("policy", "kind", "law", "scope", "preempts", "asks", "what it does")]
    cells += [
        (one["name"], one["kind"], one["law"], one["scope"], _yes(one["preempts"]), listed(one["asks"]), one["summary"])
        for one in rows
    ]
    return aligned(cells)


def policy_table(figures: Mapping[str, Any]) -> str:
    """One policy with its settings."""
    head = [
        f"{figures['name']}: {figures['summary']}",
        f"kind {figures['kind']}, law {figures['law']}, scope {figures['scope']}",
    ]
    head += [f"{what} {listed(figures[what])}" for what in ("asks", "needs") if figures[what]]
    head += [f"runs the predictor {figures['learned']}"] * bool(figures["learned"])
    for part, settings in figures["settings"].items():
        cells = [(one["name"], _shown(one["default"]), one["values"], one["about"]) for one in settings]
        head.append(f"\nsettings, {part}:\n" + aligned([("--set", "default", "values", "about"), *cells]))
    return "\n".join(head)


def policies_page() -> str:
    """The page of the documentation: ours alone, whatever is installed."""
    return "\n".join([POLICIES_HEAD, *(section for kind in KINDS for section in _kind(kind))])


def _kind(key: str) -> list[str]:
    kind, specs = KINDS[key], [spec for spec in BUILT_IN.values() if spec.kind == key]
    rows = [
        (f"`{one.name}`", one.scope, _yes(one.preempts), listed(one.asks), listed(one.needs), one.summary, one.paper)
        for one in specs
    ]
    # Ours alone, or the page would hang on what is installed.
    lines = [f"## Policies {kind.title}", "", f"Law: `{kind.law}`.", "", *markdown_lines(POLICY_COLUMNS, rows)]
    for title, model in (("How they are carried out", kind.mechanism), ("The site", kind.site), ("Files", kind.files)):
        if model.model_fields:
            lines += [f"{title}:", "", *_settings_markdown(model)]
    for spec in specs:
        if spec.settings.model_fields:
            lines += [f"### {spec.name}", "", *_settings_markdown(spec.settings)]
        if spec.local is not None and spec.local.settings.model_fields:
            lines += [f"### {spec.name} with locality", "", *_settings_markdown(spec.local.settings)]
    return lines


def _settings(model: type[Settings]) -> list[dict[str, Any]]:
    rows = []
    for name, field in model.model_fields.items():
        # Settings without a default have a marker of pydantic there.
        default = field.default if isinstance(field.default, bool | int | float | str) else None
        values = values_of(field.annotation, field.metadata)
        rows.append({"name": name, "default": default, "values": values, "about": field.description or ""})
    return rows


def _settings_markdown(model: type[Settings]) -> list[str]:
    rows = [(f"`{one['name']}`", _shown(one["default"]), one["values"], one["about"]) for one in _settings(model)]
    return markdown_lines(("setting", "default", "values", "about"), rows)


def listed(words: Iterable[str]) -> str:
    """Words between commas, or a dash."""
    return ", ".join(words) or "-"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _shown(value: object) -> str:
    # As it is written on the line: true, not True.
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


PREDICTORS_HEAD = """# Predictors

Written by `jobcast predictors --markdown`. A predictor answers a *question*; *learns from* is what it is fitted on: a
trace of jobs, and tables beside it. *Asked by* are the policies that ask its champion, unless `--forecasts` names
another source. *Beside* are the rules that `jobcast evaluate` scores it with; `--smoothing` adds statsforecast's
AutoETS and CES to those of arrivals and loads, fitted to each pool's hourly counts (`pip install 'jobcast[smoothing]'`;
`models/evaluation/smoothing.py` says how). *Gate* are the policies whose replays `jobcast models promote --trace`
decides by ([lifecycle.md](lifecycle.md)); *stages* are those of `jobcast run` and `dvc.yaml` that are its own. The
first algorithm is the default. An installed package adds its own by an entry point of the group `jobcast.predictors`
([plugins.md](plugins.md)).

"""
PREDICTOR_COLUMNS = (
    "predictor", "question", "learns from", "algorithms", "commands", "asked by", "beside", "gate", "stages",
)  # fmt: skip


def predictor_row(name: str) -> dict[str, Any]:
    """What there is to know of a predictor before any version of it."""
    from jobcast.pipelines.experiments.policy_runs import predictors_of
    from jobcast.pipelines.lifecycle.predictors import find_predictor
    from jobcast.pipelines.lifecycle.standards import judged
    from jobcast.pipelines.stages.plan import STAGES

    life, question = find_predictor(name), answers_of(name)
    # An installed predictor is asked by whoever asks ours of its question.
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
    # Of all models: loaded when the page is asked for.
    from jobcast.models.baselines import ARRIVAL_RULES, LOAD_RULES
    from jobcast.models.duration_booster import DURATION_RULES
    from jobcast.models.evaluation.ablation import PAPER_RECIPE
    from jobcast.models.evaluation.epoch_times import BASELINES
    from jobcast.models.evaluation.loads import MAX_OF_N
    from jobcast.models.evaluation.queue_waits import LIGHTGBM_L1, POOL_MEDIAN
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
        Question.WAITS: (POOL_MEDIAN, LIGHTGBM_L1),
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
    result = (predictor_row(name) for name in OURS)
    rows = [(f"`{one['name']}`", one["question"], *(listed(one[key]) for key in list(one)[2:])) for one in result]
    return PREDICTORS_HEAD + "\n".join(markdown_lines(PREDICTOR_COLUMNS, rows))
