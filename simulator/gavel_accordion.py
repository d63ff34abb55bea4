"""Accordion as the published simulator executes it: which epochs of a model are critical. Shockwave (NSDI 2023).

What jobs were planned to do differs: their first 30 % of epochs are critical too, and Recommendation has later windows.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from jobcast.domain.training import Training

ACCORDION = "accordion"
Critical = Callable[[int, int], bool]
"""(batch size that the job starts with, epoch) -> whether the epoch is critical."""


def _resnet18(batch_size: int, epoch: int) -> bool:
    return epoch < 10 or 150 <= epoch < 160 or 250 <= epoch < 260


def _resnet50(batch_size: int, epoch: int) -> bool:
    return epoch % 30 < 10


def _language_model(batch_size: int, epoch: int) -> bool:
    return epoch < 10


def _recommendation(batch_size: int, epoch: int) -> bool:
    return epoch < _RECOMMENDATION_FIRST.get(batch_size, 10)


_RECOMMENDATION_FIRST: Mapping[int, int] = MappingProxyType({512: 30, 1024: 30, 2048: 40})
CRITICAL: Mapping[str, Critical] = MappingProxyType(
    {"ResNet-18": _resnet18, "ResNet-50": _resnet50, "LM": _language_model, "Recommendation": _recommendation}
)
"""Critical epochs by model. Others never change their batch size."""


def wanted_after_end(training: Training) -> int | None:
    """The batch size that Accordion asks for in the epoch after a job's last, None where nothing is known of it.

    The rule looks at the epoch that begins next, also when the last one is running: a job whose number of epochs is
    the edge of a critical window is told to change before it ends.

    >>> wanted_after_end(Training("ResNet-50", 32, 10, "accordion", {32: 500.0, 128: 400.0}))
    128
    """
    critical = CRITICAL.get(training.model)
    if training.mode != ACCORDION or critical is None:
        return None
    return training.batch_size if critical(training.batch_size, training.epochs) else max(training.epoch_s)
