"""The predictors by name."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from jobcast.domain.errors import RegistryError
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.regimes.prior import RegimePrior
from jobcast.models.will_jobs_arrive import WillJobsArrive

if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve


class Predictor(Protocol):
    """What the registry keeps: a model that knows its name, what it has seen, and how to be a folder."""

    name: ClassVar[str]
    trained_from_s_: float
    trained_until_s_: float

    def save(self, folder: Path) -> None:
        """Write to a folder; equal models give equal bytes."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        ...


PREDICTORS: Mapping[str, type[WillJobsArrive] | type[NewLoad] | type[JobDuration] | type[RegimePrior]] = {
    predictor.name: predictor for predictor in (WillJobsArrive, NewLoad, JobDuration, RegimePrior)
}
"""Name -> class, in the order in which they are trained."""
ON_DEMAND: Mapping[str, str] = {
    "accuracy-curve": "jobcast.models.curves.accuracy_curve:AccuracyCurve",
    "epoch-time": "jobcast.models.epoch_time.epoch_time:EpochTime",
    "mlf-policy": "jobcast.models.scheduling.policy:MlfPolicy",
    "device-rl": "jobcast.models.scheduling.policy:DevicePolicy",
}
"""Name -> module and class of predictors whose compiled code is imported when they are asked for alone."""


def load_predictor(name: str, folder: Path) -> "WillJobsArrive | NewLoad | JobDuration | RegimePrior | AccuracyCurve":
    """Predictor from its folder.

    Raises
    ------
    RegistryError
        There is no predictor of that name, or the folder does not hold one.
    """
    if name in ON_DEMAND:
        loaded: AccuracyCurve = on_demand(ON_DEMAND[name]).load(folder)
        return loaded
    if name not in PREDICTORS:
        raise RegistryError(f"predictor {name!r} is not known; choose from {', '.join((*PREDICTORS, *ON_DEMAND))}")
    return PREDICTORS[name].load(folder)


def on_demand(place: str) -> Any:
    """What `MODULE:NAME` names.

    >>> on_demand("pathlib:Path").__name__
    'Path'
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
