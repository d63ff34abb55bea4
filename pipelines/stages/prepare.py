"""Stage prepare: a checked trace, its quotas, and the split in time."""

from dataclasses import asdict

from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.prepared_traces import prepare_trace
from jobcast.traces.pools import write_pools
from jobcast.traces.table_files import write_trace


def work(context: Context, item: str = "") -> None:
    """Read or generate the trace; write it in canonical form with quotas and split."""
    prepared = prepare_trace(context.params.prepare)
    trace, split = prepared.trace, prepared.split
    context.jobs.parent.mkdir(parents=True, exist_ok=True)
    write_trace(trace, context.jobs)
    write_pools(prepared.pools, context.pools)
    dropped = {**trace.dropped, **prepared.left_out}
    result = {
        **asdict(split),
        "train_from": iso(split.train_from_s),
        "train_until": iso(split.train_until_s),
        "test_until": iso(split.test_until_s),
        "name": trace.name,
        "source": {"sha256": trace.source.sha256, "rows": trace.source.rows},
        "jobs": len(trace),
        "notes": list(trace.notes),
        "dropped": dropped,
        "pools_origin": prepared.pools_origin,
    }
    write_json(context.root / "interim/split.json", result)
    context.write_receipt("prepare", {"source": trace.source.path, "output": context.input_hash()})
    untaken = "".join(f", {count:,} left out ({reason})" for reason, count in dropped.items())
    context.console.note(
        f"prepare: {len(trace):,} jobs of {len(prepared.pools)} pools{untaken}; trained on "
        f"{iso(split.train_from_s)} to {iso(split.train_until_s)}, tested until {iso(split.test_until_s)}"
    )
