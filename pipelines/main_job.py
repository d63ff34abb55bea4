"""The main job: every stage in order, then what came out of it."""

import time

from jobcast.pipelines.files import read_json
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.plan import steps


def run(context: Context) -> None:
    """Run all stages into `context.root`; print the table of gains, the registered versions, where the report lies."""
    context.console.note(f"results: {context.root}")
    began = time.perf_counter()
    todo = list(steps())
    for number, (stage, item) in enumerate(todo, 1):
        context.console.note(f"[{number}/{len(todo)}] {stage.name} {item}".rstrip())
        stage.work(context, item)
    context.console.note(f"done in {time.perf_counter() - began:.0f} s")
    _show_results(context)


def _show_results(context: Context) -> None:
    from jobcast.pipelines.lifecycle.gate import outcome
    from jobcast.pipelines.report import summary_table

    told = read_json(context.root / "processed/backtest/results.json")
    promotion = read_json(context.root / "processed/receipts/promote.json")
    lines = [summary_table(told), "", "registered model versions"]
    for model in promotion["models"]:
        aliases = ", ".join(model["aliases"]) or "no alias"
        lines.append(f"  {model['name']} {model['version']}: {model['algorithm']} ({aliases})")
    lines += ["", *outcome(promotion).lines, "", f"report: {context.root / 'processed/report.html'}"]
    context.console.result("\n".join(lines))
