"""How good forecasts of step times are, beside the time of one GPU."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.models.fitted_goodput import FittedGoodput
from jobcast.models.scores import mean, skill
from jobcast.traces.goodput_tables import StepTimes


def score_steps(model: FittedGoodput, times: Mapping[str, StepTimes]) -> dict[str, Any]:
    """`mape`, the rule's, `skill` (the share of that which is saved), `coverage_90` over all steps; `mape` by app."""
    found = {app: model.errors(app, one) for app, one in times.items()}
    mine, rule, held = (
        np.concatenate([getattr(one, name) for one in found.values()]) for name in ("error", "rule_error", "covered")
    )
    ours, theirs = mean(mine), mean(rule)
    by_app = {app: mean(one.error) for app, one in found.items()}
    figures = {"mape": ours, "rule_mape": theirs, "skill": skill(ours, theirs), "coverage_90": mean(held)}
    return {"n": len(mine), **figures, "by_app": by_app}
