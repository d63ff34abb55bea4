"""The pipeline's parameters: read once from params.yaml (or the defaults), validated, frozen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.traces.files import reason
from jobcast.traces.yaml_values import load_yaml


class _Section(BaseModel):
    # A misspelt parameter must not be ignored.
    model_config = ConfigDict(frozen=True, extra="forbid")


class Prepare(_Section):
    """Which trace, which pools, and where training ends."""

    trace: str = "campus"
    pools: str | None = None
    seed: int = 0
    settings: dict[str, str | int | float] = {}
    train_share: Annotated[float, Field(gt=0, lt=1)] = 0.625
    load: Annotated[float, Field(gt=0, le=1)] = 0.8
    min_pool_jobs: Annotated[int, Field(ge=1)] = 300


class Featurize(_Section):
    """How often and how far ahead forecasts are made."""

    horizons_min: tuple[Annotated[float, Field(gt=0)], ...] = DEFAULT_HORIZONS_MIN
    step_s: Annotated[float, Field(gt=0)] = 300.0
    min_train_jobs: Annotated[int, Field(ge=1)] = 100

    @field_validator("horizons_min")
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        # Corpus columns and bins are in this order, and twice the same horizon would be two models.
        if not value or list(value) != sorted(set(value)):
            raise ValueError("horizons must ascend, at least one")
        return value


class Care(_Section):
    """How careful forecasts are made: the boldest that slows so few jobs of the end of the training time."""

    slowed_pct: Annotated[float, Field(ge=0, le=100)] = 0.5


class _Predictor(_Section):
    algorithms: Annotated[tuple[str, ...], Field(min_length=1)]
    seed: int = 0


class Arrivals(_Predictor):
    """How will-jobs-arrive is trained; the first algorithm is the one in use."""

    algorithms: Annotated[tuple[str, ...], Field(min_length=1)] = ("average",)
    miss_share: Annotated[float, Field(gt=0, lt=1)] = 0.05


class Loads(_Predictor):
    """How new-load is trained."""

    algorithms: Annotated[tuple[str, ...], Field(min_length=1)] = ("quantile", "sliding-max")
    coverage: Annotated[float, Field(gt=0, lt=1)] = 0.95


class Durations(_Predictor):
    """How job-duration is trained."""

    algorithms: Annotated[tuple[str, ...], Field(min_length=1)] = ("blended", "tag-pool-width")


class Train(_Section):
    """A section a predictor, by its name with underscores."""

    will_jobs_arrive: Arrivals = Arrivals()
    new_load: Loads = Loads()
    job_duration: Durations = Durations()

    def of(self, predictor: str) -> _Predictor:
        """The section of a predictor, by its name on the command line."""
        found: _Predictor = getattr(self, predictor.replace("-", "_"))
        return found

    def algorithms(self, predictor: str) -> tuple[str, ...]:
        """Algorithms to train for a predictor, by its name on the command line."""
        return self.of(predictor).algorithms


class Cells(_Section):
    """One policy of a backtest and the forecasts it is tried with; `registry` means every version trained here.

    With settings of the policy it is tried both without them and with them.
    """

    policy: str
    forecasts: tuple[str, ...] = ("oracle",)
    settings: dict[str, str] = {}


class Enrich(_Section):
    """The stretch around the split that is enriched: the jobs of a few small pools before it, and after it."""

    pools: Annotated[int, Field(ge=1)] = 2
    train_jobs: Annotated[int, Field(ge=2)] = 120
    test_jobs: Annotated[int, Field(ge=1)] = 40
    seed: int = 0
    settings: dict[str, str | int | float] = {"gpu_types": "v100,t4", "epochs": "5,30"}


class Learned(_Section):
    """How a predictor of enriched traces is trained, by options of `jobcast train`; no algorithm leaves it out."""

    algorithms: tuple[str, ...]
    seed: int = 0
    settings: dict[str, str | int | float] = {}


SHORT: dict[str, str | int | float] = {
    **{"iterations": 2, "workloads": 1, "runs": 2, "shown": 2, "imitation_steps": 50},
    **{"checks": 1, "compared": 2, "gpus": 16},
}
"""Training of a scheduler that takes seconds and shows that all is well; docs/mlf-rl.md tells of one that learns."""


class _Sections(_Section):
    """A section a predictor, by its name with underscores; what one leaves out is as by default."""

    @field_validator("*", mode="before")
    @classmethod
    def _filled(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic would take a section that names one key for one without the others.
        result: Learned = cls.model_fields[str(info.field_name)].default
        return {**result.model_dump(), **value} if isinstance(value, dict) else value


class Learn(_Sections):
    """Predictors of enriched traces; the first algorithm of each is the one in use."""

    regime: Learned = Learned(algorithms=("hierarchical",), settings={"steps": 500})
    accuracy_curve: Learned = Learned(algorithms=("combination",))
    epoch_time: Learned = Learned(algorithms=("steps",))
    completion_time: Learned = Learned(algorithms=("futures",))
    job_size: Learned = Learned(algorithms=("pooled",))
    goodput: Learned = Learned(algorithms=("pollux",))
    queue_wait: Learned = Learned(algorithms=("hazard",))


class Schedule(_Sections):
    """Schedulers that learn, for which the extra rl is needed."""

    mlf_policy: Learned = Learned(algorithms=("pgpe",), settings=SHORT)
    device_rl: Learned = Learned(algorithms=("ppo",), settings=SHORT)


LEARNED, SCHEDULERS = (tuple(one.replace("_", "-") for one in of.model_fields) for of in (Learn, Schedule))
"""Their names on the command line."""
OF_WAITS = ("queue-wait",)
"""Of them those that learn from when jobs started, not from what jobs are."""


class Backtest(_Section):
    """The matrix of a backtest."""

    baseline: str = "fcfs"
    cells: tuple[Cells, ...] = (
        Cells(policy="fcfs"),
        Cells(policy="mmfs"),
        Cells(policy="ssf"),
        Cells(policy="gssf"),
        Cells(policy="sia", forecasts=("oracle", "registry", "random", "conservative")),
    )
    windows: Annotated[int, Field(ge=1)] = 1
    seeds: Annotated[int, Field(ge=1)] = 3
    warmup_days: Annotated[float, Field(ge=0)] = 0.0
    draws: Annotated[int, Field(ge=100)] = 1000


class Promote(_Section):
    """What the trained predictors must show on the test window, together, to become champions."""

    slowed_pct: Annotated[float, Field(ge=0, le=100)] = 1.0
    speedup: Annotated[float, Field(ge=1)] = 1.2


class Params(_Section):
    """All sections, one a stage, of those that train one a predictor."""

    prepare: Prepare = Prepare()
    featurize: Featurize = Featurize()
    care: Care = Care()
    train: Train = Train()
    enrich: Enrich = Enrich()
    learn: Learn = Learn()
    schedule: Schedule = Schedule()
    backtest: Backtest = Backtest()
    promote: Promote = Promote()

    def learned(self, predictor: str) -> Learned:
        """The section of a predictor of enriched traces, by its name on the command line."""
        name = predictor.replace("-", "_")
        found: Learned = getattr(self.schedule if name in Schedule.model_fields else self.learn, name)
        return found


def load_params(path: Path | None, home: Path | None = None) -> Params:
    """Parameters of a file, else of `params.yaml` in a home; the defaults where there is none.

    Raises ConfigError naming the file and the first key that does not fit.
    """
    if path is None and home is not None and (home / "params.yaml").is_file():
        path = home / "params.yaml"
    if path is None:
        return Params()
    try:
        # An empty file is as good as none.
        raw: Any = load_yaml(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({reason(error)})") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not valid YAML ({error})") from error
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        # One mistake a line: the others may follow from it.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ConfigError(f"{path}: {where}: {_told(first)}; see the defaults in pipelines/stages/config.py") from error


def _told(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, or which keys there are in place of an unknown one."""
    if error["type"] != "extra_forbidden":
        return str(error["msg"])
    # Down the path of the key, to tell what there is in its place.
    section: Any = Params
    for part in error["loc"][:-1]:
        section = section.model_fields[part].annotation if hasattr(section, "model_fields") else None
    known = ", ".join(getattr(section, "model_fields", ()))
    return "no such parameter" + (f"; there are {known}" if known else "")
