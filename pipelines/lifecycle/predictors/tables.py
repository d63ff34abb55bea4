"""Lives of predictors that learn from tables, or from those beside a trace: what curves and profiles share."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.predictor import Known
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.lifecycle.predictors.life import Asked, Life, M, Told, Wishes
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.model_tables import made_from
from jobcast.traces.splits import finished_jobs
from jobcast.traces.table import Trace

OF_JOBS = ("from_s", "until_s", "pairs")
"""Options that go with it, too, where the table is of a trace's jobs."""


class TableLife(Life[M]):
    """Trained on a table, or on what the finished jobs of a trace add to it.

    Attributes
    ----------
    table : its name in `--set` and beside an enriched trace
    beside_trace : commands that read it beside a trace
    read, read_of_jobs : a file that is the table, one beside a trace of jobs
    """

    reads_settings: ClassVar[bool] = True
    table: ClassVar[str]
    beside_trace: ClassVar[Collection[str]]
    # Functions of a path; mypy would take a declared Callable for a method.
    read: ClassVar[Any]
    read_of_jobs: ClassVar[Any]

    @property
    def needs(self) -> Sequence[str]:  # type: ignore[override]
        """The table."""
        return (self.table,)

    @classmethod
    def settings_from(cls, asked: Asked) -> TrainSettings:
        """A seed."""
        return TrainSettings(seed=asked["seed"])

    @classmethod
    def options(cls, command: str, asked: Asked) -> Collection[str]:
        """With those of a trace's window, where the table is of its jobs."""
        # A file of its own has no calendar: only jobs can be cut by --from and --until.
        of_jobs = command in cls.beside_trace and cls._table_of_jobs(asked) is not None
        return (*cls.reads[command], *(OF_JOBS if of_jobs else ()))

    @classmethod
    def _table_of_jobs(cls, asked: Asked) -> Path | None:
        """The table of a trace's jobs that `--set` names, else that beside an enriched trace; None for other traces.

        Raises ConfigError for another setting.
        """
        from jobcast.traces.facts import facts_beside

        settings = asked.given
        for key in settings:
            if key != cls.table:
                text = f"--set {key}: only {cls.table}=FILE is read here, of the jobs of --trace"
                raise ConfigError(f"{text}; leave it out")
        # Looked for even where a setting names another: a trace without facts may still be given a table.
        found = facts_beside(asked.path, (cls.table,)).get(cls.table)
        return Path(settings[cls.table]) if cls.table in settings else found

    @classmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """The table; of `predict` what was seen of each job."""
        from jobcast.traces.readers import read_trace

        of_jobs = cls._table_of_jobs(asked) if command in cls.beside_trace else None
        if of_jobs is None:
            return Known(None, {cls.table: cls.read(asked.path)})
        return Known(read_trace(asked.path), {cls.table: cls.read_of_jobs(of_jobs)}, *asked.window)

    def table_of(self, known: Known) -> Any:
        """What is learnt from: the table, or what the jobs of the trace that were over by `until_s` add to it."""
        # Without a trace all rows are learnt from, whenever they were measured.
        table = known.tables[self.table]
        if known.trace is None:
            return table
        # What a running job will show by its end is not known yet.
        jobs, from_s, until_s = finished_jobs(known.trace, known.from_s, known.until_s)
        return replace(self.of_jobs(jobs, table), from_s=from_s, until_s=until_s)

    @classmethod
    @abstractmethod
    def of_jobs(cls, jobs: Trace, table: Any) -> Any:
        """What some jobs add."""

    def evaluate(self, known: Known) -> Told:
        """See `Life`."""
        return self.measured(self.table_of(known), Wishes())

    @abstractmethod
    def measured(self, table: Any, wishes: Wishes) -> Told:
        """Figures of the model on a table."""


def told_of_table(version: ModelVersion, table: Any, notes: Sequence[str], overlap: bool, **more: Any) -> Told:
    """What the figures of every version on a table are told with."""
    return {
        "algorithm": version.algorithm,
        "trained": {"trace": version.trace_name, "sha256": version.trace_sha256},
        **more,
        "overlap_allowed": overlap,
        "simulated": False,
        **made_from(table, (*table.notes, *notes)),
    }


@contextmanager
def of_file(path: str) -> Iterator[None]:
    """A TrainingError in here names the file that the training went by."""
    try:
        yield
    except TrainingError as error:
        # Models know no files.
        raise TrainingError(f"{path}: {error}") from error
