"""The figures of an evaluation for a terminal, baselines beside them."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.wording import number

ARRIVALS = ("n", "base_rate", "precision", "recall", "f1", "pr_auc", "roc_auc", "ece", "threshold")
LOADS = ("n", "coverage", "coverage_nonzero", "over", "missed", "worst_pool")
DURATIONS = ("n", "accuracy", "macro_f1", "log_loss", "ece", "under_predicted")


def evaluation_table(result: Mapping[str, Any]) -> str:
    """A line a horizon and baseline; what a rule does not have stays empty."""
    head = f"{result['predictor']} {result['version']} on {result['window']['from']} to {result['window']['until']}"
    lines = [f"{head}, {len(result['pools'])} pools"]
    blocks = result.get("horizons") or {"all jobs": result}
    columns = (
        DURATIONS if "horizons" not in result else ARRIVALS if result["predictor"] == "will-jobs-arrive" else LOADS
    )
    lines.append(f"{'':<28}" + "".join(f"{name:>17}" for name in columns))
    for name, block in blocks.items():
        lines.append(_line(name, block, columns))
        lines += [_line(f"  {rule}", figures, columns) for rule, figures in block.get("baselines", {}).items()]
        if "idle" in block:
            lines.append(_line("  idle windows", block["idle"], columns))
        if "gate" in block:
            gate = block["gate"]
            missed, freed = number(gate["miss_rate"]), number(gate["freed_idle_share"])
            lines.append(f"  gate: misses {missed} of the windows with arrivals, frees {freed} of the idle ones")
    if result.get("overlap_allowed"):
        lines.append("warning: training data reach into this window (--allow-overlap)")
    return "\n".join(lines)


def _line(name: str, block: Mapping[str, Any], columns: tuple[str, ...]) -> str:
    return f"{name:<28}" + "".join(f"{number(block[c]) if block.get(c) is not None else '':>17}" for c in columns)
