"""Tables of where arrival forecasts are right: idle windows, groups of pools, hours, pools, sets of features."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.page import Table
from jobcast.pipelines.wording import UNKNOWN, between, number, share, signed

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
