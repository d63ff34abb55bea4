"""What a stage works with, and the files that stages share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.pipelines.config import Params
from jobcast.pipelines.console import Console
from jobcast.pipelines.files import read_json, sha256_of, write_json
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import Split
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True)
class Context:
    """Parameters, the folder of the run's files, the home of the registry, the user's console."""

    params: Params
    root: Path
    home: Path
    console: Console

    @property
    def jobs(self) -> Path:
        """The trace of the run."""
        return self.root / "raw/jobs.parquet"

    @property
    def pools(self) -> Path:
        """The quotas of the run."""
        return self.root / "raw/pools.csv"

    @property
    def corpus(self) -> Path:
        """The feature corpus."""
        return self.root / "interim/corpus.parquet"

    def model(self, predictor: str, algorithm: str) -> Path:
        """The plain folder of a trained model."""
        return self.root / "processed/models" / predictor / algorithm

    def trace(self) -> Trace:
        """Read the trace of the run, under the name that it came with."""
        name = read_json(self.root / "interim/split.json")["name"]
        return replace(read_trace(self.jobs, format="canonical"), name=name)

    def split(self) -> tuple[Split, dict[str, Any]]:
        """The split in time, and all that prepare wrote beside it (names, origins, notes)."""
        told = read_json(self.root / "interim/split.json")
        return Split(told["train_from_s"], told["train_until_s"], told["test_until_s"]), told

    def write_receipt(self, name: str, figures: Mapping[str, Any]) -> None:
        """What differs from run to run: times, run ids, versions, paths."""
        base = {"stage": name, "jobcast": __version__, "home": str(self.home), "root": str(self.root)}
        write_json(self.root / f"processed/receipts/{name}.json", {**base, **figures})

    def input_hash(self) -> dict[str, Any]:
        """The trace of the run, by content."""
        return {"path": str(self.jobs), "sha256": sha256_of(self.jobs)}
