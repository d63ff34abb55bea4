"""The stages of the main job, one list: `jobcast run` executes it, dvc.yaml names it, a test holds them together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.forecast_specs import PREDICTORS
from jobcast.pipelines.stages import backtest, care, evaluate, featurize, prepare, promote, report, train
from jobcast.pipelines.stages.context import Context


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the main job and the files that it reads and writes, relative to the run's folder.

    Attributes
    ----------
    items : for a stage that runs once an item (dvc.yaml's foreach); `{item}` stands for it in the paths
    code : rooms whose code the stage's result depends on
    params : sections of the parameters that it reads
    """

    name: str
    work: Callable[[Context, str], None]
    code: Sequence[str]
    deps: Sequence[str] = ()
    outs: Sequence[str] = ()
    metrics: Sequence[str] = ()
    params: Sequence[str] = ()
    items: Sequence[str] = field(default=("",))

    @property
    def receipt(self) -> str:
        """Where times, run ids, versions and paths go."""
        return f"processed/receipts/{self.name}{'-{item}' if self.items != ('',) else ''}.json"


REPLAYS = (
    "domain",
    "traces",
    "features",
    "models",
    "simulator",
    "schedulers",
    "pipelines/backtest.py",
    "pipelines/backtest_results.py",
    "pipelines/cells.py",
    "pipelines/closed_loop.py",
    "pipelines/clusters.py",
    "pipelines/elastic/scene.py",
    "pipelines/elastic/simulating.py",
    "pipelines/energy/believing.py",
    "pipelines/energy/forecasting.py",
    "pipelines/energy/scene.py",
    "pipelines/energy/simulating.py",
    "pipelines/engines.py",
    "pipelines/experiment.py",
    "pipelines/forecast_plugins.py",
    "pipelines/forecast_specs.py",
    "pipelines/gains.py",
    "pipelines/gavel_mechanism.py",
    "pipelines/goodput_runs.py",
    "pipelines/job_forecasts.py",
    "pipelines/job_table.py",
    "pipelines/lifecycle/gate.py",
    "pipelines/lifecycle/switches_file.py",
    "pipelines/policy_settings.py",
    "pipelines/registered.py",
    "pipelines/rounds.py",
    "pipelines/running.py",
    "pipelines/scaling_jobs.py",
    "pipelines/scenario.py",
    "pipelines/scenes.py",
    "pipelines/simulation.py",
    "pipelines/sources.py",
    "pipelines/summaries.py",
    "pipelines/tasks/accuracy.py",
    "pipelines/tasks/learned.py",
    "pipelines/tasks/scene.py",
    "pipelines/tasks/simulating.py",
    "pipelines/training_jobs.py",
    "pipelines/whole_jobs.py",
    "pipelines/worlds.py",
    "pipelines/stages/backtest.py",
)
"""Code of every stage that replays the test window."""


STAGES: tuple[Stage, ...] = (
    Stage(
        "prepare",
        prepare.work,
        code=("domain", "traces", "pipelines/catalog.py", "pipelines/stages/prepare.py"),
        outs=("raw/jobs.parquet", "raw/pools.csv", "interim/split.json"),
        params=("prepare",),
    ),
    Stage(
        "featurize",
        featurize.work,
        code=("domain", "traces", "features", "pipelines/stages/featurize.py"),
        deps=("raw/jobs.parquet", "interim/split.json"),
        outs=("interim/corpus.parquet",),
        params=("featurize",),
    ),
    Stage(
        "care",
        care.work,
        code=(
            "domain",
            "traces",
            "features",
            "models",
            "simulator",
            "schedulers",
            "pipelines/careful_replay.py",
            "pipelines/cells.py",
            "pipelines/curves.py",
            "pipelines/forecast_plugins.py",
            "pipelines/forecast_specs.py",
            "pipelines/job_forecasts.py",
            "pipelines/job_table.py",
            "pipelines/predictor_names.py",
            "pipelines/recipes",
            "pipelines/scaling_jobs.py",
            "pipelines/scenes.py",
            "pipelines/sources.py",
            "pipelines/training.py",
            "pipelines/training_jobs.py",
            "pipelines/whole_jobs.py",
            "pipelines/worlds.py",
            "pipelines/stages/care.py",
            "pipelines/stages/train.py",
        ),
        deps=("raw/jobs.parquet", "raw/pools.csv", "interim/split.json", "interim/corpus.parquet"),
        outs=("interim/care.json", "interim/twins"),
        params=("featurize", "train", "care", "promote"),
    ),
    Stage(
        "train",
        train.work,
        code=(
            "domain",
            "traces",
            "features",
            "models",
            "pipelines/curves.py",
            "pipelines/predictor_names.py",
            "pipelines/recipes",
            "pipelines/training.py",
            "pipelines/stages/train.py",
        ),
        deps=(
            "raw/jobs.parquet",
            "interim/split.json",
            "interim/corpus.parquet",
            "interim/care.json",
            "interim/twins",
        ),
        outs=("processed/models/{item}", "interim/careful/{item}"),
        metrics=("processed/metrics/train-{item}.json",),
        params=("featurize", "train"),
        items=PREDICTORS,
    ),
    Stage(
        "evaluate",
        evaluate.work,
        code=("domain", "traces", "features", "models", "pipelines/curves.py", "pipelines/stages/evaluate.py"),
        deps=(
            "raw/jobs.parquet",
            "interim/split.json",
            "interim/corpus.parquet",
            *(f"processed/models/{name}" for name in PREDICTORS),
        ),
        outs=(
            "processed/evaluation.json",
            "processed/plots/precision_recall.csv",
            "processed/plots/reliability.csv",
        ),
        metrics=("processed/metrics/evaluate.json",),
        params=("featurize",),
    ),
    Stage(
        "backtest",
        backtest.work,
        code=REPLAYS,
        deps=(
            "raw/jobs.parquet",
            "raw/pools.csv",
            "interim/split.json",
            *(f"processed/models/{name}" for name in PREDICTORS),
        ),
        outs=("processed/backtest", "processed/gate.json", "processed/plots/speedup_cdf.csv"),
        metrics=("processed/metrics/backtest.json",),
        params=("backtest",),
    ),
    Stage(
        "promote",
        promote.work,
        code=(
            *REPLAYS,
            "pipelines/careful_replay.py",
            "pipelines/curves.py",
            "pipelines/lifecycle/comparison.py",
            "pipelines/lifecycle/rows.py",
            "pipelines/lifecycle/verdict.py",
            "pipelines/predictor_names.py",
            "pipelines/recipes",
            "pipelines/training.py",
            "pipelines/stages/promote.py",
            "pipelines/stages/train.py",
        ),
        deps=(
            "raw/jobs.parquet",
            "raw/pools.csv",
            "interim/split.json",
            "interim/corpus.parquet",
            "interim/care.json",
            "processed/gate.json",
            *(f"processed/models/{name}" for name in PREDICTORS),
            *(f"interim/careful/{name}" for name in PREDICTORS),
        ),
        outs=("processed/promotion.json",),
        params=("featurize", "train", "backtest", "promote"),
    ),
    Stage(
        "report",
        report.work,
        code=("pipelines",),
        deps=(
            "raw/pools.csv",
            "interim/split.json",
            "processed/evaluation.json",
            "processed/backtest",
            "processed/promotion.json",
            *(f"processed/models/{name}" for name in PREDICTORS),
        ),
        outs=("processed/report.html",),
    ),
)


def find_stage(name: str, item: str) -> Stage:
    """The stage of a name; ConfigError lists the stages or its items."""
    for stage in STAGES:
        if stage.name == name:
            if item in stage.items:
                return stage
            wanted = " or ".join(stage.items) or "no item"
            raise ConfigError(f"stage {name}: takes {wanted}, got {item or 'none'}")
    raise ConfigError(f"stage {name}: unknown; choose from {', '.join(stage.name for stage in STAGES)}")


def steps() -> Iterator[tuple[Stage, str]]:
    """Every (stage, item) in the order in which they run."""
    for stage in STAGES:
        for item in stage.items:
            yield stage, item
