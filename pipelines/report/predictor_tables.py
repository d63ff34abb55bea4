"""Tables of how well predictors do, beside the rules that they must beat. SIA, Tables 10, 20 and 23.

How well regimes are forecast, as text and as tables. Shockwave, section 5.

Tables of where arrival forecasts are right: idle windows, groups of pools, hours, pools, sets of features.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jobcast.pipelines.report.formatting import UNKNOWN, Shown, between, listed, number, share, signed
from jobcast.pipelines.report.layout import Table, aligned

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


def regime_lines(result: Mapping[str, Any]) -> list[str]:
    """Lines for a terminal: a group of jobs after another, a rule a line."""
    sample = result["sample"]
    lines = [f"jitter {sample['jitter']:g}, number of regimes {sample['k']}"]
    # Evaluations that were kept before this was counted do not have it.
    if sample.get("unknown"):
        lines.append(f"{sample['unknown']} jobs had not ended: their batch sizes to come are not known yet")
    tables = regime_tables(result["predictor"], result)
    for (group, block), table in zip(result["regimes"].items(), tables, strict=True):
        lines += ["", f"{block['jobs']} {GROUPS[group]}", aligned([table.head, *table.rows], words=1)]
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


Block = Mapping[str, Any]
Evaluation = Mapping[str, Any]
Blocks = Mapping[str, Block]
Show = Callable[[Block], str]
Columns = Mapping[str, Show]
"""How a block's figure is shown, by the column's head."""
Row = tuple[tuple[str, ...], Block]
PAPER_RECIPE = "paper_recipe"
IDLE_NOTE = (
    "What a scheduler lives on: idle windows. The gate is the threshold that schedulers use; a missed window is one in "
    "which GPUs were lent although their owners came, a freed one is one in which they could be lent. At long horizons "
    "persistence is hard to beat by F1 of idle windows: idle spells of quiet pools outlast a window, "
    "so that empty follows empty, while most windows have arrivals and the threshold of the F1 above suits "
    "those; the PR AUC of idle windows knows no threshold."
)
RULES_IN_WORDS = {
    "trailing_rate": "7-day rate",
    "ewma": "EWMA, half-life a day",
    "paper_recipe": "paper's recipe",
    "max_of_10": "largest of 10 windows",
    "max_of_n": "largest of n windows, n from training",
    "max_of_week": "largest window of a week",
    "majority": "most frequent bin in training",
    "last_finished": "the pool's last finished job",
    "tag_pool_width": "tag, else pool and width",
    "last_20_pool_width": "last 20 jobs of pool and width",
}


def _figure(*path: str, show: Callable[[Any], str] = number) -> Show:
    """A cell that shows a block's figure, by the names that lead to it; what is not there is unknown."""

    def cell(block: Block) -> str:
        value: Any = block
        for name in path:
            # Evaluations need not have every block: such cells stay unknown.
            value = (value or {}).get(name)
        return show(value)

    return cell


def _ends(figure: str, show: Shown = number) -> Show:
    """A cell that shows the interval of a figure."""

    def cell(block: Block) -> str:
        low, high = (block.get("intervals") or {}).get(figure) or (None, None)
        return between(low, high, show)

    return cell


def _table(
    caption: str, lead: tuple[str, ...], columns: Columns, rows: Iterable[Row], note: str, words: int | None = None
) -> Table:
    """Rows of labels, which fill the columns that lead, and of a block whose figures fill the others."""
    cells = [(*labels, *(show(block) for show in columns.values())) for labels, block in rows]
    return Table(caption, (*lead, *columns), cells, len(lead) if words is None else words, note)


def _with_rules(name: str, blocks: Blocks) -> Iterator[Row]:
    """Each horizon's block under the predictor's name, and those of the rules to beat under theirs."""
    for horizon, block in blocks.items():
        yield (horizon, name), block
        yield from (
            ((horizon, RULES_IN_WORDS.get(rule, rule)), its) for rule, its in block.get("baselines", {}).items()
        )


DETECTED: Columns = {
    "precision": _figure("precision"),
    "recall": _figure("recall"),
    "F1": _figure("f1"),
    "PR AUC": _figure("pr_auc"),
}
ARRIVALS: Columns = {
    **{head: DETECTED[head] for head in ("precision", "recall", "F1")},
    "F1, 95 %": _ends("f1"),
    "PR AUC": DETECTED["PR AUC"],
    "PR AUC, 95 %": _ends("pr_auc"),
    "ROC AUC": _figure("roc_auc"),
    "ECE": _figure("ece"),
    "with arrivals": _figure("base_rate", show=share),
}
IDLE: Columns = {
    "idle: precision": _figure("idle", "precision"),
    "idle: recall": _figure("idle", "recall"),
    "idle: F1": _figure("idle", "f1"),
    "idle: PR AUC": _figure("idle", "pr_auc"),
    "gate: windows with arrivals missed": _figure("gate", "miss_rate", show=share),
    "missed, 95 %": _ends("miss_rate", share),
    "gate: idle windows freed": _figure("gate", "freed_idle_share", show=share),
}
GROUPED: Columns = {
    "pools": lambda block: number(len(block["pools"])),
    "windows": _figure("n"),
    "with arrivals": _figure("base_rate", show=share),
    **DETECTED,
    "gate: missed": IDLE["gate: windows with arrivals missed"],
    "gate: freed": IDLE["gate: idle windows freed"],
}
BY_POOL: Columns = {"F1": DETECTED["F1"], "PR AUC": DETECTED["PR AUC"], "missed": GROUPED["gate: missed"]}
LOADS: Columns = {
    "worst pool": lambda block: str(block.get("worst_pool_name") or UNKNOWN),
    "its windows covered": _figure("worst_pool", show=share),
    "windows covered": _figure("coverage", show=share),
    "covered, where jobs arrive": _figure("coverage_nonzero", show=share),
    "estimate / load (×)": _figure("over"),
    "load missed": _figure("missed", show=share),
}
BINS: Columns = {
    "accuracy": _figure("accuracy"),
    "macro F1": _figure("macro_f1"),
    "log loss": _figure("log_loss"),
    "calibration error": _figure("ece"),
    "judged too short": _figure("under_predicted", show=share),
}


def idle_table(name: str, blocks: Blocks) -> Table:
    """Idle windows by horizon and rule, and what the gate misses and frees."""
    rows = [(labels, block) for labels, block in _with_rules(name, blocks) if labels[1] == name or block.get("idle")]
    return _table(f"Idle windows and the gate ({name})", ("horizon", "rule"), IDLE, rows, IDLE_NOTE)


def group_table(name: str, blocks: Blocks) -> Table | None:
    """Pools grouped by the mean duration of their jobs. SIA, Table 23."""
    rows = [
        ((horizon, label), figures)
        for horizon, block in blocks.items()
        for label, figures in (block.get("by_duration_group") or {}).items()
    ]
    note = "Pools of long jobs have few arrivals; SIA finds them the hardest to foresee."
    caption = f"By the mean duration of the pools' jobs ({name})"
    return _table(caption, ("horizon", "mean duration"), GROUPED, rows, note) if rows else None


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
    # A pool may be absent at some horizons.
    pools = list(dict.fromkeys(pool for block in blocks.values() for pool in block.get("by_pool", {})))
    head = ["pool", *(f"{horizon}: {word}" for horizon in blocks for word in BY_POOL)]
    rows = [
        [
            pool,
            *(show(block.get("by_pool", {}).get(pool, {})) for block in blocks.values() for show in BY_POOL.values()),
        ]
        for pool in pools
    ]
    note = "Missed: windows with arrivals that the gate declared idle."
    return Table(f"Pool by pool ({name})", head, rows, note=note) if rows else None


def ablation_table(name: str, figures: Mapping[str, Any]) -> Table:
    """Twins that may look at more and more features, all pools and by group. SIA, Tables 20 and 23."""
    sets_of = figures["horizons"]
    groups = list(
        dict.fromkeys(group for sets in sets_of.values() for one in sets.values() for group in one["by_duration_group"])
    )
    head = ["horizon", "features", *DETECTED, "gain", "gain, 95 %"]
    head += [f"{group}: {word}" for group in groups for word in DETECTED]
    rows = []
    for horizon, sets in sets_of.items():
        for label, block in sets.items():
            low, high = block.get("pr_auc_gain_interval") or (None, None)
            cells = [
                horizon,
                "the paper's recipe" if label == PAPER_RECIPE else label,
                *(show(block) for show in DETECTED.values()),
            ]
            cells += [signed(block.get("pr_auc_gain")), between(low, high, signed)]
            for group in groups:
                cells += [show(block["by_duration_group"].get(group, {})) for show in DETECTED.values()]
            rows.append(cells)
    return Table(f"What features add ({name})", head, rows, words=2, note=_ablation_note(figures))


def _ablation_note(figures: Mapping[str, Any]) -> str:
    note = (
        f"Twins trained anew on the same time (a row every {figures['train_step_s'] / 60:g} minutes a pool), each "
        "set on top of the one before; the gain is of PR AUC over the set before, its interval draws the same days "
        "for both."
    )
    for horizon, block in figures.get("closed_loop", {}).items():
        low, high = block["pr_auc_gain_interval"] or (None, None)
        note += (
            f" Recent and future completions together, {horizon} ahead: {signed(block['pr_auc_gain'])} "
            f"({between(low, high, signed)})."
        )
    return note


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
            return {name: {"in use": block, **_rules_of(block)} for name, block in blocks.items()}
    return {}


def _rules_of(block: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {RULES_IN_WORDS.get(name, name): rule for name, rule in block.get("baselines", {}).items()}


def _of_arrivals(name: str, figures: Evaluation, blocks: Mapping[str, Any]) -> list[Table]:
    tables = [_arrivals(f"Will jobs arrive? ({name})", name, blocks)]
    for key, left_out in (("without_bots", "without bot pools"), ("without", "without")):
        if key in figures:
            pools = listed(figures[key]["pools"])
            tables.append(_arrivals(f"Will jobs arrive, {left_out} {pools}? ({name})", name, figures[key]["horizons"]))
    tables.append(idle_table(name, blocks))
    optional = (group_table(name, blocks), hour_table(name, blocks), pool_table(name, blocks))
    tables += [table for table in optional if table is not None]
    if figures.get("ablation"):
        tables.append(ablation_table(name, figures["ablation"]))
    return tables


def _arrivals(caption: str, name: str, blocks: Blocks) -> Table:
    note = (
        "Precision and recall are of windows in which jobs arrive. PR AUC = average precision; ECE, the calibration "
        "error (15 bins), is the mean gap between a probability and what came true. Intervals draw whole days anew, "
        "since errors of a day hang together. Rules, always: jobs always arrive; persistence: as in the window before; "
        "yesterday: as a day ago; 7-day rate: memoryless arrivals at the pool's rate of the last 7 days; paper's "
        "recipe: XGBoost's defaults on the features of SIA's Table 9, trained on the same time."
    )
    return _table(caption, ("horizon", "rule"), ARRIVALS, _with_rules(name, blocks), note)


def _loads(name: str, blocks: Blocks) -> Table:
    note = (
        "A window is covered when no more GPUs arrive than were estimated. SIA lends what idle GPUs exceed its "
        "reservation, a lower level of the load's distribution, and reserves only where jobs are forecast to arrive."
    )
    lent = [
        ((horizon, described), figures)
        for horizon, block in blocks.items()
        for described, figures in (
            ("SIA reserves", block.get("lent")),
            ("SIA reserves, where jobs are forecast", block.get("lent", {}).get("gated")),
        )
        if figures
    ]
    rows = [*_with_rules(name, blocks), *lent]
    return _table(f"How much load? ({name})", ("horizon", "rule"), LOADS, rows, note, 3)


def _total(name: str, arrivals: str, blocks: Blocks) -> Table:
    rows = [
        ((horizon, rule), block)
        for horizon, its in blocks.items()
        for rule, block in (("gate x estimate", its), ("SIA reserves", its["reserved"]))
    ]
    note = (
        f"TotalNewLoad (SIA, section 5.4.1) is the estimate where the gate of {arrivals} forecasts arrivals, else "
        "nothing. A scheduler reserves less: a level of the load's distribution that covers fewer windows."
    )
    caption = f"How much load, where jobs are forecast to arrive? ({name})"
    return _table(caption, ("horizon", "rule"), LOADS, rows, note, 3)


def _bins(name: str, figures: Evaluation) -> Table:
    note = "Duration bins at submission. A job judged too short may outlast the window for which GPUs were lent."
    rows = [(labels[1:], block) for labels, block in _with_rules(name, {"": figures})]
    return _table(f"How long will a job run? ({name})", ("rule",), {**BINS, "jobs": _figure("n")}, rows, note)


def _tags(name: str, figures: Mapping[str, Any]) -> Table:
    note = "What experiment tags are worth: the same algorithm on the same time with and without them."
    columns = {**BINS, "accuracy of the paper's rule": _figure("rule", "accuracy")}
    rows = [((trained,), block) for trained, block in figures.items()]
    return _table(f"What tags add ({name})", ("trained anew",), columns, rows, note)
