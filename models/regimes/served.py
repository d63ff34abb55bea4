"""RegimePrior as MLflow serves it: one row a running job."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.prior import RegimePrior

if TYPE_CHECKING:
    import pandas as pd


class ServedRegimePrior:
    """Columns: `model`, `mode`, `batch_size`, `epochs`; `epoch_s`, JSON, batch size -> seconds an epoch takes; and
    `regimes`, JSON, [[batch size, epochs], ...] run so far, the last one running.

    Answers the mean seconds that are left, an interval that holds them with 90 %, and the regimes that are left.
    """

    inputs: Mapping[str, str] = {
        "model": "string",
        "mode": "string",
        "batch_size": "long",
        "epochs": "long",
        "epoch_s": "string",
        "regimes": "string",
    }
    outputs: Mapping[str, str] = {"remaining_s": "double", "low_s": "double", "high_s": "double", "left": "string"}

    def __init__(self, predictor: RegimePrior) -> None:
        self.predictor = predictor

    def example(self) -> "pd.DataFrame":
        """A job that has not started."""
        import pandas as pd

        return pd.DataFrame([["LM", "gns", 10, 40, '{"10": 60, "20": 40}', "[[10, 0]]"]], columns=list(self.inputs))

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """Answers, one row for each job asked, in that order."""
        import pandas as pd

        answers = [self._answer(row) for row in frame[list(self.inputs)].itertuples(index=False)]
        return pd.DataFrame(answers, columns=list(self.outputs), index=frame.index)

    def _answer(self, row: Any) -> tuple[float, float, float, str]:
        try:
            epoch_s = {int(size): float(seconds) for size, seconds in json.loads(row.epoch_s).items()}
            seen = tuple(Regime(int(size), float(epochs)) for size, epochs in json.loads(row.regimes))
        except (ValueError, TypeError, AttributeError) as error:
            raise RegistryError(f"regime: epoch_s or regimes cannot be read ({error}); see the example") from error
        if not seen or any(regime.batch_size not in epoch_s for regime in seen):
            raise RegistryError("regime: regimes must name at least one batch size, all of them in epoch_s")
        training = Training(row.model, int(row.batch_size), int(row.epochs), row.mode, dict(sorted(epoch_s.items())))
        progress = Progress(sum(regime.epochs for regime in seen), seen)
        job = Job(0, "0", "", 0.0, 1, training=training)
        time = self.predictor.remaining_time(job, progress)
        left = [[regime.batch_size, regime.epochs] for regime in self.predictor.regimes(job, progress)]
        return time.mean_s, time.low_s, time.high_s, json.dumps(left)
