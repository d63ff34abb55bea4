"""`jobcast simulate` for elastic policies: what was asked, carried out and told."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.commands.options import dropped_lines, table_or_json
from jobcast.pipelines.console import Console
from jobcast.pipelines.elastic.scene import ElasticScene, elastic_scene
from jobcast.pipelines.elastic.simulating import (
    simulate_elastic,
)
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.job_table import write_job_table
from jobcast.pipelines.run_record import record_of, write_run_record
from jobcast.pipelines.simulation import counted_from, figures_table, told_figures
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.traces.table import Trace

NO_MODELS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of one simulation.

    Attributes
    ----------
    policy, baseline : names; no baseline by default
    predict : whether to forecast completions
    window : from and until, seconds from the epoch
    limit : jobs at most
    warmup_days : days left out of the figures
    settings : `--set`
    seed : of draws; elastic policies draw none
    allow_overlap : whether learned schedulers may have seen the window's jobs
    degrade : whether the conservative answer is taken where a registered model is missing or damaged
    assumptions : what an enriched trace rests on, in sentences
    """

    policy: str
    baseline: str | None
    predict: bool
    window: tuple[float | None, float | None]
    limit: int | None
    warmup_days: float
    settings: Mapping[str, str]
    seed: int
    allow_overlap: bool = False
    degrade: bool = False
    assumptions: tuple[str, ...] = ()

    def provenance(
        self, inputs: Mapping[str, Any], models: Mapping[str, int] = NO_MODELS, overlap: bool = False
    ) -> dict[str, Any]:
        """Where a result comes from: inputs, configuration, versions that answered, whether one saw the window."""
        return {
            "simulated": True,
            "inputs": dict(inputs),
            "configuration": {
                "settings": dict(self.settings),
                "limit": self.limit,
                "warmup_days": self.warmup_days,
                "predict": self.predict,
            },
            "assumptions": list(self.assumptions),
            "seed": self.seed,
            "models": dict(models),
            "overlap_allowed": overlap,
            "jobcast": __version__,
        }


def simulate_and_tell(
    trace: Trace,
    place: Cluster,
    asked: Asked,
    spec: ForecastSpec | None,
    console: Console,
    *,
    out: Path | None,
    json_to: str | None,
) -> None:
    """Replay, write the job table, print or write the figures. Raises ConfigError and TraceError as its parts do."""
    if spec is not None and spec.kind != "oracle":
        raise ConfigError(
            f"--forecasts {spec.label}: elastic policies go by declared sizes (oracle); for wrong ones pass "
            "--set noise=0.4, for sizes and arrivals that are forecast ask `jobcast predict jct`"
        )
    from_s, until_s = asked.window
    split = split_settings(find_of_kind(asked.policy, ELASTIC), asked.settings)
    scene = elastic_scene(trace, place, from_s=from_s, until_s=until_s, limit=asked.limit, **split.files.given())
    own = split.plain("own", "mechanism")
    if asked.baseline not in (None, "none"):
        find_of_kind(asked.baseline or "", ELASTIC)
    with console.progress(f"simulate {asked.policy}") as step:
        run = simulate_elastic(scene, asked.policy, own, predict=asked.predict, progress=step)
    base = None
    if asked.baseline and asked.baseline != "none":
        base = run if asked.baseline == asked.policy and not own else simulate_elastic(scene, asked.baseline, {})
    last_s = scene.origin_s + float(scene.jobs.submit_s[-1])
    warmup_until_s = counted_from(scene.origin_s, last_s, asked.warmup_days)
    result = {
        **told_figures(run, base, policy=asked.policy, forecasts="oracle", warmup_until_s=warmup_until_s),
        "baseline": asked.baseline or "none",
        **asked.provenance(scene.provenance()),
    }
    if out:
        write_job_table(run.log, scene.listed(), out, None if base is None else base.log)
        write_run_record(out, record_of(run.log, asked.policy, result), run.log)
        console.note(f"jobs: {out}")
    for line in (*scene.notes, *_placing_notes(scene, asked.policy, own), *dropped_lines(scene.dropped)):
        console.note(line)
    table_or_json(result, json_to, figures_table(result), console)


def _placing_notes(scene: ElasticScene, policy: str, own: Mapping[str, str]) -> tuple[str, ...]:
    placed = len(scene.cluster.node_gpus) > 0
    if not placed or make_rule(policy, scene.gpu_types, own).integral:
        return ()
    return (f"{policy} deals out fractions of GPUs: jobs are not placed on nodes (--set whole_gpus=true places them)",)
