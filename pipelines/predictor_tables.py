"""Tables of how well predictors do, beside the rules that they must beat. SIA, Tables 10, 20 and 23."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.page import Table
from jobcast.pipelines.recall_tables import ablation_table, group_table, hour_table, idle_table, pool_table
from jobcast.pipelines.regime_tables import regime_tables
from jobcast.pipelines.wording import UNKNOWN, between, listed, number, share

Evaluation = Mapping[str, Any]
DETECTION = ("precision", "recall", "f1")
BINS = ("accuracy", "macro_f1", "log_loss", "ece", "under_predicted")

RULES_IN_WORDS = {
    "trailing_rate": "7-day rate",
    "paper_recipe": "paper's recipe",
    "max_of_10": "largest of 10 windows",
    "max_of_n": "largest of n windows, n from training",
    "max_of_week": "largest window of a week",
    "majority": "most frequent bin in training",
    "last_finished": "the pool's last finished job",
    "tag_pool_width": "tag, else pool and width",
    "last_20_pool_width": "last 20 jobs of pool and width",
}


def predictor_tables(evaluation: Mapping[str, Evaluation]) -> list[Table]:
    """All tables that evaluations have figures for; each is told by its figures, whatever the predictor's name."""
    tables: list[Table] = []
    for name, figures in evaluation.items():
        blocks = horizons(figures)
        tables += regime_tables(name, figures) if "regimes" in figures else []
        if any("f1" in block for block in blocks.values()):
            tables += _of_arrivals(name, figures, blocks)
        if any("coverage" in block for block in blocks.values()):
            tables.append(_loads(name, blocks))
            total = figures.get("total", {}).get("horizons")
            tables += [_total(name, figures["total"]["arrivals"], total)] if total else []
        if "accuracy" in figures:
            tables.append(_bins(name, figures))
        if "accuracy" in figures and figures.get("ablation"):
            tables.append(_tags(name, figures["ablation"]))
    return tables


def horizons(figures: Evaluation) -> dict[str, Mapping[str, Any]]:
    """Blocks by horizon; one block named "all" for an evaluation without horizons."""
    return dict(figures["horizons"]) if "horizons" in figures else {"all": figures}


def points_in_use(evaluation: Mapping[str, Evaluation]) -> dict[str, dict[str, Any]]:
    """Precision and recall of the threshold in use and of the baselines, by horizon; {} without arrival forecasts."""
    for figures in evaluation.values():
        blocks = horizons(figures)
        if any("f1" in block for block in blocks.values()):
            return {name: {"in use": block, **block.get("baselines", {})} for name, block in blocks.items()}
    return {}


def _of_arrivals(name: str, figures: Evaluation, blocks: Mapping[str, Any]) -> list[Table]:
    tables = [_arrivals(f"Will jobs arrive? ({name})", name, blocks)]
    for key, left_out in (("without_bots", "without bot pools"), ("without", "without")):
        if key in figures:
            pools = listed(figures[key]["pools"])
            tables.append(_arrivals(f"Will jobs arrive, {left_out} {pools}? ({name})", name, figures[key]["horizons"]))
    tables.append(idle_table(name, blocks, RULES_IN_WORDS))
    optional = (group_table(name, blocks), hour_table(name, blocks), pool_table(name, blocks))
    tables += [table for table in optional if table is not None]
    if figures.get("ablation"):
        tables.append(ablation_table(name, figures["ablation"]))
    return tables


def _arrivals(caption: str, name: str, blocks: Mapping[str, Any]) -> Table:
    head = ("horizon", "rule", "precision", "recall", "F1", "F1, 95 %", "PR AUC", "PR AUC, 95 %", "ROC AUC", "ECE",
            "with arrivals")  # fmt: skip
    rows = []
    for horizon, block in blocks.items():
        ends = [_between(block, key) for key in ("f1", "pr_auc")]
        rows.append((horizon, name, *_interleaved(block, ends), share(block.get("base_rate"))))
        for rule, figures in block.get("baselines", {}).items():
            shown = _interleaved(figures, [UNKNOWN, UNKNOWN])
            rows.append((horizon, RULES_IN_WORDS.get(rule, rule), *shown, UNKNOWN))
    note = (
        "Precision and recall are of windows in which jobs arrive. PR AUC = average precision; ECE, the calibration "
        "error (15 bins), is the mean gap between a probability and what came true. Intervals draw whole days anew, "
        "since errors of a day hang together. Rules, always: jobs always arrive; persistence: as in the window before; "
        "yesterday: as a day ago; 7-day rate: memoryless arrivals at the pool's rate of the last 7 days; paper's "
        "recipe: XGBoost's defaults on the features of SIA's Table 9, trained on the same time."
    )
    return Table(caption, head, rows, words=2, note=note)


def _between(block: Mapping[str, Any], key: str) -> str:
    low, high = (block.get("intervals") or {}).get(key) or (None, None)
    return between(low, high)


def _interleaved(block: Mapping[str, Any], ends: list[str]) -> list[str]:
    """Precision, recall, F1 and its interval, PR-AUC and its interval, ROC-AUC, ECE."""
    shown = {key: number(block.get(key)) for key in (*DETECTION, "pr_auc", "roc_auc", "ece")}
    f1, pr_auc = ends
    return [*(shown[key] for key in DETECTION), f1, shown["pr_auc"], pr_auc, shown["roc_auc"], shown["ece"]]


LOAD_HEAD = ("horizon", "rule", "worst pool", "its windows covered", "windows covered", "covered, where jobs arrive",
             "estimate / load (×)", "load missed")  # fmt: skip


def _loads(name: str, blocks: Mapping[str, Any]) -> Table:
    rows = [
        _load_row(horizon, RULES_IN_WORDS.get(rule, rule), block)
        for horizon, its in blocks.items()
        for rule, block in {name: its, **its.get("baselines", {})}.items()
    ]
    note = "A window is covered when no more GPUs arrive than were estimated."
    return Table(f"How much load? ({name})", LOAD_HEAD, rows, words=3, note=note)


def _total(name: str, arrivals: str, blocks: Mapping[str, Any]) -> Table:
    rows = [
        _load_row(horizon, rule, block)
        for horizon, its in blocks.items()
        for rule, block in (("gate x estimate", its), ("SIA reserves", its["reserved"]))
    ]
    note = (
        f"TotalNewLoad (SIA, section 5.4.1) is the estimate where the gate of {arrivals} forecasts arrivals, else "
        "nothing. A scheduler reserves less: a level of the load's distribution that covers fewer windows."
    )
    return Table(f"How much load, where jobs are forecast to arrive? ({name})", LOAD_HEAD, rows, words=3, note=note)


def _load_row(horizon: str, rule: str, block: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        horizon,
        rule,
        str(block.get("worst_pool_name") or UNKNOWN),
        share(block.get("worst_pool")),
        share(block.get("coverage")),
        share(block.get("coverage_nonzero")),
        number(block.get("over")),
        share(block.get("missed")),
    )


def _bins(name: str, figures: Evaluation) -> Table:
    head = ("rule", "accuracy", "macro F1", "log loss", "calibration error", "judged too short", "jobs")
    rows = [
        (
            RULES_IN_WORDS.get(rule, rule),
            *(number(block.get(key)) for key in BINS[:-1]),
            share(block.get("under_predicted")),
            number(block.get("n")),
        )
        for rule, block in {name: figures, **figures.get("baselines", {})}.items()
    ]
    note = "Duration bins at submission. A job judged too short may outlast the window for which GPUs were lent."
    return Table(f"How long will a job run? ({name})", head, rows, note=note)


def _tags(name: str, told: Mapping[str, Any]) -> Table:
    head = ("trained anew", "accuracy", "macro F1", "log loss", "calibration error", "judged too short",
            "accuracy of the paper's rule")  # fmt: skip
    rows = [
        (
            trained,
            *(number(block.get(key)) for key in BINS[:-1]),
            share(block.get("under_predicted")),
            number(block.get("rule", {}).get("accuracy")),
        )
        for trained, block in told.items()
    ]
    note = "What experiment tags are worth: the same algorithm on the same time with and without them."
    return Table(f"What tags add ({name})", head, rows, note=note)
