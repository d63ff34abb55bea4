"""Tables of how well predictors do, beside the rules that they must beat. SIA, Table 10."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.page import Table
from jobcast.pipelines.wording import UNKNOWN, number, share

Evaluation = Mapping[str, Any]
DETECTION = ("precision", "recall", "f1")
BINS = ("accuracy", "macro_f1", "log_loss", "ece", "under_predicted")

RULES_IN_WORDS = {
    "always": "always: jobs always arrive",
    "persistence": "persistence: as in the window before",
    "yesterday": "yesterday: as a day ago",
    "trailing_rate": "trailing rate of arrivals",
    "last_window": "load of the last window",
    "max_of_week": "largest window of a week",
    "majority": "most frequent bin in training",
    "last_20_pool_width": "last 20 jobs of pool and width",
}


def predictor_tables(evaluation: Mapping[str, Evaluation]) -> list[Table]:
    """All tables that evaluations have figures for; each is told by its figures, whatever the predictor's name."""
    tables: list[Table] = []
    for name, figures in evaluation.items():
        blocks = horizons(figures)
        if any("f1" in block for block in blocks.values()):
            tables += [_arrivals(name, blocks), _idle(name, blocks)]
        if any("coverage" in block for block in blocks.values()):
            tables.append(_loads(name, blocks))
        if "accuracy" in figures:
            tables.append(_bins(name, figures))
    return tables


def horizons(figures: Evaluation) -> dict[str, Mapping[str, Any]]:
    """Blocks by horizon; one block named "all" for an evaluation without horizons."""
    return dict(figures["horizons"]) if "horizons" in figures else {"all": figures}


def _arrivals(name: str, blocks: Mapping[str, Any]) -> Table:
    head = ("horizon", "rule", "precision", "recall", "F1", "PR AUC", "ROC AUC", "calibration error", "windows",
            "with arrivals")  # fmt: skip
    rows = []
    for horizon, block in blocks.items():
        own = [number(block.get(key)) for key in (*DETECTION, "pr_auc", "roc_auc", "ece", "n")]
        rows.append((horizon, name, *own, share(block.get("base_rate"))))
        for rule, figures in block.get("baselines", {}).items():
            shown = [number(figures.get(key)) for key in (*DETECTION, "pr_auc", "roc_auc", "ece")]
            rows.append((horizon, RULES_IN_WORDS.get(rule, rule), *shown, UNKNOWN, UNKNOWN))
    note = (
        "Precision and recall are of windows in which jobs arrive. PR AUC = average precision; the calibration error "
        "(ECE, 15 bins) is the mean gap between a probability and what came true."
    )
    return Table(f"Will jobs arrive? ({name})", head, rows, words=2, note=note)


def _idle(name: str, blocks: Mapping[str, Any]) -> Table:
    head = ("horizon", "idle: precision", "idle: recall", "idle: F1", "gate: windows with arrivals missed",
            "gate: idle windows freed")  # fmt: skip
    rows = [
        (
            horizon,
            *(number(block.get("idle", {}).get(key)) for key in DETECTION),
            share(block.get("gate", {}).get("miss_rate")),
            share(block.get("gate", {}).get("freed_idle_share")),
        )
        for horizon, block in blocks.items()
    ]
    note = (
        "What a scheduler lives on: idle windows. The gate is the threshold that schedulers use; a missed window is "
        "one in which GPUs were lent although their owners came, a freed one is one in which they could be lent."
    )
    return Table(f"Idle windows and the gate ({name})", head, rows, note=note)


def _loads(name: str, blocks: Mapping[str, Any]) -> Table:
    head = ("horizon", "rule", "worst pool", "its windows covered", "windows covered", "covered, where jobs arrive",
            "estimate / load (×)", "load missed")  # fmt: skip
    rows = [
        (
            horizon,
            RULES_IN_WORDS.get(rule, rule),
            str(block.get("worst_pool_name") or UNKNOWN),
            share(block.get("worst_pool")),
            share(block.get("coverage")),
            share(block.get("coverage_nonzero")),
            number(block.get("over")),
            share(block.get("missed")),
        )
        for horizon, its in blocks.items()
        for rule, block in {name: its, **its.get("baselines", {})}.items()
    ]
    note = "A window is covered when no more GPUs arrive than were estimated."
    return Table(f"How much load? ({name})", head, rows, words=3, note=note)


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
