"""What was forecast of one job while a policy was asked, each answer beside the truth."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from jobcast.domain.law import SPEEDUP
from jobcast.pipelines.explain.run_table import RunTable
from jobcast.pipelines.explain.telling_words import Told, instant, length
from jobcast.pipelines.wording import counted, forecasts_in_words, number
from jobcast.simulator.recording import ACCURACY, DURATION, EPOCH_TIME, LEFT

SHOWN_ANSWERS = 12
RIGHT = 5e-4
"""Share of the truth by which an answer may differ and still be called right."""
WORDS: Mapping[str, str] = {
    DURATION: "to run for {answer}",
    LEFT: "{answer} left, batch size x epochs: {of}",
    ACCURACY: "final accuracy {answer} after {of}",
    EPOCH_TIME: "{answer} an epoch on {of}",
}


def answers_of(table: RunTable, job: int) -> dict[str, Any]:
    """What the policy asks of forecasts, None where no record tells; who answers; what was answered of the job."""
    record = table.record
    if record is None:
        return {}
    rows = record.of_jobs
    mine = [] if rows is None else rows.filter(pl.col("job_id") == table.job_ids[job]).drop("job_id").to_dicts()
    return {"asks": record.told.get("asks"), "source": _source(record.told), "answers": mine}


def _source(told: Mapping[str, Any]) -> str | None:
    label = told.get("forecasts")
    if label == "oracle":
        return "declared sizes" if told["law"] == SPEEDUP else "the oracle: the future itself, which nobody has"
    return None if label is None else forecasts_in_words(label)


def tell_answers(told: Told) -> list[str]:
    """The answers, a line each; where there is none, why."""
    forecast, policy = told["forecast"], told["run"]["policy"]
    if forecast.get("asks") is None:
        return []
    if not forecast["asks"]:
        return [f"  {policy} asks for no forecasts"]
    answers = forecast["answers"]
    if not answers and not forecast.get("duration_bin"):
        return [f"  {policy} asks for {', '.join(forecast['asks'])}, and was told nothing of this job"]
    lines = [_line(one) for one in answers[:SHOWN_ANSWERS]]
    if len(answers) > SHOWN_ANSWERS:
        lines.append(f"  and {counted(len(answers) - SHOWN_ANSWERS, 'more answer')}")
    return lines


def _line(one: Told) -> str:
    seconds, answer, truth = one["question"] != ACCURACY, one["answer"], one["truth"]
    show = length if seconds else number
    spread = f" ± {number(one['spread'])}" if one["spread"] else ""
    when = f"{instant(one['at_s'])}: " if one["at_s"] is not None else ""
    said = WORDS[one["question"]].format(answer=show(answer) + spread, of=one["of"])
    if truth is None:
        return f"  {when}{said}"
    return f"  {when}{said}; in truth {show(truth)}{_off(answer - truth, truth, seconds)}"


def _off(more: float, truth: float, seconds: bool) -> str:
    """By how much an answer was off: a time by a share of the truth."""
    if abs(more) <= RIGHT * abs(truth):
        return ""
    way = ("too long" if more > 0 else "too short") if seconds else ("too high" if more > 0 else "too low")
    by = f"{number(100.0 * abs(more) / truth)} %" if seconds and truth > 0.0 else number(abs(more))
    return f", {by} {way}"
