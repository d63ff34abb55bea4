"""What a stage works with, and the files that stages share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import read_json, write_json
from jobcast.pipelines.stages.config import OF_WAITS, Params
from jobcast.traces.facts import JOBS as ENRICHED_JOBS
from jobcast.traces.files import sha256_of
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import Split
from jobcast.traces.table import Trace

RECEIPTS = "processed/receipts"
"""Git and DVC leave them alone, and no stage depends on one."""


def read_receipt(root: Path, name: str) -> dict[str, Any]:
    """A receipt, where the file is still there that it was written with; else nothing."""
    path = root / RECEIPTS / f"{name}.json"
    result = read_json(path) if path.is_file() else {}
    # One that was written with no file tells nothing here: the root itself is no file.
    of = result.get("written_with", {"file": "", "sha256": ""})
    file = root / of["file"]
    return result if file.is_file() and sha256_of(file) == of["sha256"] else {}


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

    @property
    def enriched(self) -> Path:
        """The jobs around the split, with facts in tables beside them."""
        return self.root / "interim/enriched" / ENRICHED_JOBS

    @property
    def queue(self) -> Path:
        """When the jobs around the split started in a replay."""
        return self.root / "interim/queue.parquet"

    def learned_from(self, predictor: str) -> Path:
        """The jobs around the split that a predictor learns from: as they started, or with facts beside them."""
        return self.queue if predictor in OF_WAITS else self.enriched

    @property
    def nodes(self) -> Path:
        """The nodes and quotas that the enriched jobs run on."""
        return self.root / "interim/nodes.yaml"

    def trace(self) -> Trace:
        """Read the trace of the run, under the name that it came with."""
        # The file is called jobs whatever trace it is of.
        return replace(read_trace(self.jobs, format="canonical"), name=self.split()[1]["name"])

    def split(self) -> tuple[Split, dict[str, Any]]:
        """The split in time, and all that prepare wrote beside it (names, origins, notes)."""
        result = read_json(self.root / "interim/split.json")
        return Split(result["train_from_s"], result["train_until_s"], result["test_until_s"]), result

    def write_receipt(self, name: str, figures: Mapping[str, Any], beside: str = "") -> None:
        """What differs from run to run: times, run ids, versions, paths.

        Parameters
        ----------
        beside : the stage's own file, below the root, without which the receipt says nothing
        """
        base = {"stage": name, "jobcast": __version__, "home": str(self.home), "root": str(self.root)}
        # By content: a pull may bring another file of that name.
        of = {"written_with": {"file": beside, "sha256": sha256_of(self.root / beside)}} if beside else {}
        write_json(self.root / RECEIPTS / f"{name}.json", {**base, **of, **figures})

    def input_hash(self) -> dict[str, Any]:
        """The trace of the run, by content."""
        return {"path": str(self.jobs), "sha256": sha256_of(self.jobs)}
