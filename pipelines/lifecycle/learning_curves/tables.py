"""Figures and forecasts of curves for a terminal."""

from collections.abc import Mapping
from typing import Any

FIGURES = ("curves", "mae", "mae_last_value", "coverage_90", "width_90")


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says."""
    training, validation = result["training"], result["validation"]
    lines = [
        f"{result['predictor']} version {result['version']} ({', '.join(result['aliases'])}), {result['algorithm']}",
        f"trained on {training['curves']} curves of {', '.join(training['apps'])}, {training['epochs']} epochs",
    ]
    if validation["prefixes"]:
        lines.append(f"without the {validation['left_out']} that is scored, by share of the epochs seen:")
        lines += _rows("seen", validation["prefixes"])
    return "\n".join(lines)


def evaluation_table(result: Mapping[str, Any]) -> str:
    """What `evaluate` says."""
    head = f"{result['predictor']} {result['version']}, {result['prefix']:.0%} of the epochs seen"
    lines = [f"{head}; errors and widths as shares of a curve's range"]
    lines += _rows("app", {**result["by_app"], "all": result})
    families = sorted(result["families"].items(), key=lambda item: (item[1] is None, item[1]))
    lines += ["", "mae of single families", *(f"{name:<24}{_figure(value):>10}" for name, value in families)]
    if result["overlap_allowed"]:
        lines.append("warning: the version was trained on some of these curves (--allow-overlap)")
    return "\n".join(lines)


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a running job."""
    target = result["target"]
    lines = [f"{result['predictor']} {result['version']}"]
    head = f"{'app':<20}{'batch size':>11}{'seen':>6}{'of':>6}{'last':>10}{'final':>10}  {'90 %':<22}"
    lines.append(head + ("" if target is None else f"{f'reaches {target:g}':>16}{'at epoch':>10}"))
    for one in result["curves"]:
        between = f"{_figure(one['final_low'])} to {_figure(one['final_high'])}"
        line = (
            f"{one['app']:<20}{one['batch_size']:>11}{one['seen']:>6}{one['epochs']:>6}{_figure(one['last']):>10}"
            f"{_figure(one['final']):>10}  {between:<22}"
        )
        if target is not None:
            when = "-" if one["reach_epoch"] is None else f"{one['reach_epoch']:g}"
            line += f"{one['reach_probability']:>16.0%}{when:>10}"
        lines.append(line.rstrip())
    if result["overlap"]:
        lines.append("note: the version was trained on some of these curves")
    return "\n".join(lines)


def _rows(name: str, blocks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [f"{name:<24}" + "".join(f"{figure:>16}" for figure in FIGURES)]
    lines += [f"{row:<24}" + "".join(f"{_figure(block[one]):>16}" for one in FIGURES) for row, block in blocks.items()]
    return lines


def _figure(value: float | None) -> str:
    """Four digits; whole numbers as they are.

    >>> _figure(26), _figure(0.12345), _figure(None)
    ('26', '0.1235', '-')
    """
    if value is None:
        return "-"
    return f"{value}" if isinstance(value, int) else f"{value:.4g}"
