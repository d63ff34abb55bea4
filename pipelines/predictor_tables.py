"""Tables of how well predictors do, beside the rules that they must beat. SIA, Tables 10, 20 and 23.

How well regimes are forecast, as text and as tables. Shockwave, section 5.

Tables of where arrival forecasts are right: idle windows, groups of pools, hours, pools, sets of features.
"""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.page import Table
from jobcast.pipelines.wording import UNKNOWN, between, listed, number, share, signed

COLUMNS = {
    "regime_error": "regime error %",
    "misplaced": "misplaced %",
    "total_accuracy": "total time %",
    "remaining_accuracy": "remaining time %",
    "coverage": "90 % held",
    "coverage_open": "of open",
    "open": "open %",
}
"""Figure -> head of its column."""
GROUPS = {"all": "all jobs", "changing": "jobs that change"}
NOTE = (
    "Means over jobs and 0, 5, ... 95 % of the epochs. Regime error: mean absolute difference of the regimes' "
    "epochs; misplaced: half of their sum; both in % of the job's epochs. Time: accuracy. 90 % held: intervals that "
    "hold the remaining time, of all and of those that are open, more than a point."
)
NAME_WIDTH, BETWEEN = 14, 2


def regime_lines(result: Mapping[str, Any]) -> list[str]:
    """Lines for a terminal: a group of jobs after another, a rule a line."""
    lines = [f"jitter {result['sample']['jitter']:g}, number of regimes {result['sample']['k']}"]
    for group, block in result["regimes"].items():
        head = "".join(f"{'':{BETWEEN}}{column}" for column in COLUMNS.values())
        lines += ["", f"{block['jobs']} {GROUPS[group]}", f"{'':{NAME_WIDTH}}{head}"]
        for name, figures in block["rules"].items():
            shown = "".join(f"{_shown(figures[key]):>{len(head) + BETWEEN}}" for key, head in COLUMNS.items())
            lines.append(f"{name:<{NAME_WIDTH}}{shown}".rstrip())
    return lines


def regime_tables(name: str, figures: Mapping[str, Any]) -> list[Table]:
    """A table a group of jobs."""
    return [
        Table(
            f"Regimes of {GROUPS[group]} ({name})",
            ("rule", *COLUMNS.values()),
            [(rule, *(_shown(one[key]) for key in COLUMNS)) for rule, one in block["rules"].items()],
            1,
            NOTE,
        )
        for group, block in figures["regimes"].items()
    ]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


Blocks = Mapping[str, Mapping[str, Any]]
DETECTION = ("precision", "recall", "f1")
PAPER_RECIPE = "paper_recipe"
IDLE_NOTE = (
    "What a scheduler lives on: idle windows. The gate is the threshold that schedulers use; a missed window is one in "
    "which GPUs were lent although their owners came, a freed one is one in which they could be lent. At long horizons "
    "persistence is hard to beat by F1 of idle windows: idle spells of quiet pools outlast a window, "
    "so that empty follows empty, while most windows have arrivals and the threshold of the F1 above suits "
    "those; the PR AUC of idle windows knows no threshold."
)


def idle_table(name: str, blocks: Blocks, in_words: Mapping[str, str]) -> Table:
    """Idle windows by horizon and rule, and what the gate misses and frees."""
    head = ("horizon", "rule", "idle: precision", "idle: recall", "idle: F1", "idle: PR AUC",
            "gate: windows with arrivals missed", "missed, 95 %", "gate: idle windows freed")  # fmt: skip
    rows = []
    for horizon, block in blocks.items():
        gate = block.get("gate", {})
        low, high = (block.get("intervals") or {}).get("miss_rate") or (None, None)
        shown = (share(gate.get("miss_rate")), between(low, high, share), share(gate.get("freed_idle_share")))
        rows.append((horizon, name, *_idle(block), *shown))
        for rule, figures in block.get("baselines", {}).items():
            if figures.get("idle"):
                rows.append((horizon, in_words.get(rule, rule), *_idle(figures), UNKNOWN, UNKNOWN, UNKNOWN))
    return Table(f"Idle windows and the gate ({name})", head, rows, words=2, note=IDLE_NOTE)


def _idle(block: Mapping[str, Any]) -> list[str]:
    return [number(block.get("idle", {}).get(key)) for key in (*DETECTION, "pr_auc")]


def group_table(name: str, blocks: Blocks) -> Table | None:
    """Pools grouped by the mean duration of their jobs. SIA, Table 23."""
    head = ("horizon", "mean duration", "pools", "windows", "with arrivals", "precision", "recall", "F1", "PR AUC",
            "gate: missed", "gate: freed")  # fmt: skip
    rows = [
        (
            horizon,
            label,
            number(len(figures["pools"])),
            number(figures["n"]),
            share(figures["base_rate"]),
            *(number(figures[key]) for key in (*DETECTION, "pr_auc")),
            share(figures["gate"]["miss_rate"]),
            share(figures["gate"]["freed_idle_share"]),
        )
        for horizon, block in blocks.items()
        for label, figures in (block.get("by_duration_group") or {}).items()
    ]
    note = "Pools of long jobs have few arrivals; SIA finds them the hardest to foresee."
    caption = f"By the mean duration of the pools' jobs ({name})"
    return Table(caption, head, rows, words=2, note=note) if rows else None


def hour_table(name: str, blocks: Blocks) -> Table | None:
    """Recall within each hour of each pool. SIA, Figure 21."""
    head = ("horizon", "pool-hours with arrivals", "mean recall", "all windows missed", "all found",
            "one or the other", "the same, were errors independent")  # fmt: skip
    rows = []
    for horizon, block in blocks.items():
        hours = block.get("recall_per_pool_hour")
        if hours and hours["hours"]:
            ends = hours["share_0"] + hours["share_1"]
            shown = (hours["share_0"], hours["share_1"], ends, hours["extremes_if_independent"])
            rows.append((horizon, number(hours["hours"]), number(hours["mean"]), *map(share, shown)))
    note = (
        "Of the predictions of an hour (one every 5 minutes) those whose windows have arrivals. Where one extreme or "
        "the other is far commoner than independent errors would make it, errors come in spells: a forecast that has "
        "just failed is likely to fail again."
    )
    return Table(f"Recall hour by hour ({name})", head, rows, note=note) if rows else None


def pool_table(name: str, blocks: Blocks) -> Table | None:
    """Pool by pool, horizons side by side."""
    pools = list(dict.fromkeys(pool for block in blocks.values() for pool in block.get("by_pool", {})))
    figures = (("f1", "F1"), ("pr_auc", "PR AUC"))
    head = ["pool"]
    for horizon in blocks:
        head += [f"{horizon}: {word}" for word in (*(word for _, word in figures), "missed")]
    rows = []
    for pool in pools:
        cells = [pool]
        for block in blocks.values():
            one = block.get("by_pool", {}).get(pool, {})
            cells += [number(one.get(key)) for key, _ in figures]
            cells.append(share(one.get("gate", {}).get("miss_rate")))
        rows.append(cells)
    note = "Missed: windows with arrivals that the gate declared idle."
    return Table(f"Pool by pool ({name})", head, rows, note=note) if rows else None


def ablation_table(name: str, told: Mapping[str, Any]) -> Table:
    """Twins that may look at more and more features, all pools and by group. SIA, Tables 20 and 23."""
    sets_of = told["horizons"]
    groups = list(
        dict.fromkeys(group for sets in sets_of.values() for one in sets.values() for group in one["by_duration_group"])
    )
    head = ["horizon", "features", "precision", "recall", "F1", "PR AUC", "gain", "gain, 95 %"]
    head += [f"{group}: {word}" for group in groups for word in ("precision", "recall", "F1", "PR AUC")]
    rows = []
    for horizon, sets in sets_of.items():
        for label, block in sets.items():
            low, high = block.get("pr_auc_gain_interval") or (None, None)
            cells = [horizon, "the paper's recipe" if label == PAPER_RECIPE else label, *_detected(block)]
            cells += [signed(block.get("pr_auc_gain")), between(low, high, signed)]
            for group in groups:
                cells += _detected(block["by_duration_group"].get(group, {}))
            rows.append(cells)
    return Table(f"What features add ({name})", head, rows, words=2, note=_ablation_note(told))


def _detected(block: Mapping[str, Any]) -> list[str]:
    return [number(block.get(key)) for key in (*DETECTION, "pr_auc")]


def _ablation_note(told: Mapping[str, Any]) -> str:
    note = (
        f"Twins trained anew on the same time (a row every {told['train_step_s'] / 60:g} minutes a pool), each set on "
        "top of the one before; the gain is of PR AUC over the set before, its interval draws the same days for both."
    )
    for horizon, block in told.get("closed_loop", {}).items():
        low, high = block["pr_auc_gain_interval"] or (None, None)
        note += (
            f" Recent and future completions together, {horizon} ahead: {signed(block['pr_auc_gain'])} "
            f"({between(low, high, signed)})."
        )
    return note


Evaluation = Mapping[str, Any]
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
