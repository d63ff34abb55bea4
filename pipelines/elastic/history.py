"""Jobs before a run begins, as the trace ran them: what forecasts of sizes and arrivals may learn from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.elastic.futures import NO_PAST, Past
from jobcast.pipelines.elastic.intervals import Earlier
from jobcast.pipelines.elastic.scene import ElasticScene, elastic_scene

NOBODY = Earlier(NO_PAST, np.zeros(0))


def earlier_of(scene: ElasticScene, place: Cluster, facts: Mapping[str, Any], from_s: float | None) -> Earlier:
    """Jobs submitted before a scene's window; each ended when its trace says, else as if it ran alone from the first.

    Models that the window does not know count as the window's first: their widths and sizes are what is learnt.
    """
    if from_s is None or not len(scene.earlier):
        return NOBODY
    try:
        before = elastic_scene(scene.earlier, place, **facts)
    except TraceError:
        return NOBODY
    rows = dict(zip(scene.models, scene.jobs.model.tolist(), strict=True))
    model = np.array([rows.get(name, 0) for name in before.models], dtype=np.int64)
    submit_s = before.jobs.submit_s + (before.origin_s - scene.origin_s)
    most = np.minimum(before.jobs.most, before.jobs.speedup.shape[2] - 1).astype(np.int64)
    alone_s = before.size_s / before.jobs.speedup[before.jobs.model, 0, most]
    end_s = submit_s + alone_s
    if "end_time" in before.trace.jobs.columns:
        told = before.trace.end_s - scene.origin_s
        end_s = np.where(np.isfinite(told), told, end_s)
    past = Past(submit_s, before.size_s, before.jobs.least, before.jobs.most, model)
    return Earlier(past, end_s)
