"""The predictors by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol, Self

from jobcast.domain.errors import RegistryError
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.regimes.prior import RegimePrior
from jobcast.models.will_jobs_arrive import WillJobsArrive


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


def load_predictor(name: str, folder: Path) -> WillJobsArrive | NewLoad | JobDuration | RegimePrior:
    """Predictor from its folder.

    Raises
    ------
    RegistryError
        There is no predictor of that name, or the folder does not hold one.
    """
    if name not in PREDICTORS:
        raise RegistryError(f"predictor {name!r} is not known; choose from {', '.join(PREDICTORS)}")
    return PREDICTORS[name].load(folder)
