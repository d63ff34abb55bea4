"""Where versions are replayed."""

from jobcast.pipelines.lifecycle.replay_judges import Window
from jobcast.pipelines.stages.config import Prepare
from jobcast.pipelines.stages.prepared_traces import _with_quotas
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import Split

DAY_S = 86400.0


def test_derived_quotas_that_the_traces_own_starts_outgrow_are_told(tmp_path):
    """Eight GPUs at once for 100 s of a day make a quota of two."""
    rows = ["7,a,-1,0,100,100,2", *(f"{row},a,0,0,100,100,2" for row in range(4))]
    header = "job_id,pool,submit_time,start_time,end_time,duration,gpus"
    (tmp_path / "jobs.csv").write_text("\n".join([header, *rows, "8,a,86400,86400,86500,100,1"]) + "\n")
    trace = read_trace(tmp_path / "jobs.csv")
    place = Window(trace).place(0.0, DAY_S)
    assert [(pool.name, pool.quota) for pool in place.pools] == [("a", 2)]
    assert "held more at once (a: 8, derived 2)" in place.origin
    # the run's own quotas, of the day that it tests on
    split = Split(train_from_s=-DAY_S, train_until_s=0.0, test_until_s=DAY_S)
    assert "held more at once (a: 8, derived 2)" in _with_quotas(trace, split, Prepare(min_pool_jobs=1)).pools_origin
