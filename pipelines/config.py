"""The pipeline's parameters: read once from params.yaml (or the defaults), validated, frozen."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.traces.files import reason
from jobcast.traces.yaml_values import load_yaml


class _Section(BaseModel):
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
        if not value or list(value) != sorted(set(value)):
            raise ValueError("horizons must ascend, at least one")
        return value


class Care(_Section):
    """How careful forecasts are made: the boldest that slows so few jobs of the end of the training time."""

    slowed_pct: Annotated[float, Field(ge=0, le=100)] = 0.5


class Train(_Section):
    """Algorithms by predictor; the first one listed is registered first."""

    will_jobs_arrive: tuple[str, ...] = ("average",)
    new_load: tuple[str, ...] = ("quantile", "sliding-max")
    job_duration: tuple[str, ...] = ("blended", "tag-pool-width")
    miss_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    coverage: Annotated[float, Field(gt=0, lt=1)] = 0.95
    seed: int = 0

    def algorithms(self, predictor: str) -> tuple[str, ...]:
        """Algorithms to train for a predictor, by its name on the command line."""
        return tuple(getattr(self, predictor.replace("-", "_")))


class Cells(_Section):
    """One policy of a backtest and the forecasts it is tried with; `registry` means every version trained here.

    With settings of the policy it is tried both without them and with them.
    """

    policy: str
    forecasts: tuple[str, ...] = ("oracle",)
    settings: dict[str, str] = {}


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
    """All sections, one a stage."""

    prepare: Prepare = Prepare()
    featurize: Featurize = Featurize()
    care: Care = Care()
    train: Train = Train()
    backtest: Backtest = Backtest()
    promote: Promote = Promote()


def load_params(path: Path | None, home: Path | None = None) -> Params:
    """Parameters of a file, else of `params.yaml` in a home; the defaults where there is none.

    Raises ConfigError naming the file and the first key that does not fit.
    """
    if path is None and home is not None and (home / "params.yaml").is_file():
        path = home / "params.yaml"
    if path is None:
        return Params()
    try:
        raw: Any = load_yaml(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({reason(error)})") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not valid YAML ({error})") from error
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ConfigError(f"{path}: {where}: {first['msg']}; see the defaults in pipelines/config.py") from error
